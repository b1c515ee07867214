"""Filters of an agent: functions that look at its calls before anything is judged."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from remit import AgentLoop, SpecializedLoop
from remit.agents.terms import FILTERS_INVALID, FILTERS_MAX, filters_of
from remit.assemble import system_in_memory
from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.loop.needs import RUN_PARTS_MISSING
from remit.orchestrate.setup.kit import FilterContext
from tests.unit.orchestrate.house import calls, helper, keep, look
from tests.unit.orchestrate.stage import play

SAID: JsonObject = {"text": "done"}
SHAPE: JsonObject = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def masks(call: ToolCall) -> ToolCall | None:
    """Hide what a tool looks at."""
    return ToolCall(call.id, call.name, {"at": "***"}) if call.name == "look" else None


def invalid(call: ToolCall) -> ToolCall:
    """Nothing that any schema takes."""
    return ToolCall(call.id, call.name, {"at": 7})


async def refuses_stars(call: ToolCall) -> str | None:
    """No stars."""
    return "no stars, please" if call.arguments.get("at") == "***" else None


class Curfew:
    """A filter that is an object."""

    def __call__(self, call: ToolCall) -> str:
        """Nothing, at this hour."""
        return "it is too late"


def agent(*replies: JsonObject, **terms: Any) -> AgentLoop:
    return AgentLoop(ScriptedEngine(replies), tools=[look, keep, helper], system=system_in_memory(), **terms)


@pytest.mark.req("3.21")
def test_an_agent_shows_its_calls_to_its_filters_one_after_the_other() -> None:
    masked = play(agent(calls("look", at="moon"), SAID, filters=[masks]).chat("look"))
    assert [made.result for made in masked.tool_calls_made] == ["seen ***"]
    refused = play(agent(calls("look", at="moon"), SAID, filters=[masks, refuses_stars]).chat("look"))
    assert [made.status for made in refused.tool_calls_made] == [CallStatus.REFUSED]


def test_a_call_that_was_changed_and_then_refused_shows_what_was_proposed() -> None:
    response = play(agent(calls("look", at="moon"), SAID, filters=[masks, refuses_stars]).chat("look"))
    assert [made.arguments for made in response.tool_calls_made] == [{"at": "moon"}]
    later = play(agent(calls("look", at="moon"), calls("look", at="sun"), SAID, filters=[invalid]).chat("look"))
    assert [made.arguments for made in later.tool_calls_made] == [{"at": "moon"}, {"at": "sun"}]


@pytest.mark.req("3.21")
def test_what_a_filter_changed_is_authorized_again() -> None:
    def other_text(call: ToolCall) -> ToolCall:
        return ToolCall(call.id, call.name, {"text": "theirs"})

    async def scene() -> None:
        async with agent(calls("keep", text="mine"), SAID, filters=[other_text]) as speaker:
            asked = await speaker.chat("keep it")
            assert asked.waiting_for is not None
            done = await speaker.approve(asked.waiting_for.packet_ids[0], by="ada")
            assert [made.result for made in done.tool_calls_made] == ["kept theirs"]

    play(scene())


def test_a_specialized_loop_has_filters_too() -> None:
    replies = (calls("look", at="moon"), SAID, {"text": '{"ok": true}'})
    loop = SpecializedLoop(
        ScriptedEngine(replies), schema=SHAPE, tools=[look], filters=[masks], system=system_in_memory()
    )
    response = play(loop.call("look"))
    assert [made.result for made in response.tool_calls_made] == ["seen ***"]


def test_the_calls_of_a_child_pass_the_filters_of_its_parent() -> None:
    speaker = agent(calls("helper", task="look"), calls("look", at="moon"), SAID, SAID, filters=[masks])
    response = play(speaker.chat("have a helper look"))
    assert "seen ***" in [made.result for made in response.tool_calls_made]


def test_the_manifest_names_the_filters_and_nobody_goes_on_without_them(tmp_path: Path) -> None:
    async def scene() -> None:
        replies = (calls("keep", text="mine"), SAID)
        settings: dict[str, Any] = {"tools": [keep], "home": tmp_path, "session_id": "one"}
        async with AgentLoop(ScriptedEngine(replies), filters=[masks], **settings) as first:
            asked = await first.chat("keep it")
        assert asked.waiting_for is not None
        packet_id = asked.waiting_for.packet_ids[0]
        async with AgentLoop(ScriptedEngine(replies), **settings) as bare:
            with pytest.raises(RequestRejected, match="filter 'masks'") as refused:
                await bare.approve(packet_id, by="ada")
            assert refused.value.code == RUN_PARTS_MISSING
        async with AgentLoop(ScriptedEngine(replies), filters=[masks], **settings) as again:
            assert [made.result for made in (await again.approve(packet_id, by="ada")).tool_calls_made] == ["kept mine"]

    play(scene())


def test_filters_are_told_by_their_names_in_their_order() -> None:
    curfew = Curfew()
    assert list(filters_of([refuses_stars, curfew, masks]).items()) == [
        ("refuses_stars", refuses_stars),
        ("Curfew", curfew),
        ("masks", masks),
    ]
    assert filters_of(iter(())) == {}
    assert list(filters_of([partial(masks)])) == ["partial"]


def numbered(n: int) -> Any:
    def passes(call: ToolCall) -> None:
        """Everything may pass."""

    passes.__name__ = f"passes_{n}"
    return passes


@pytest.mark.parametrize(
    ("filters", "complaint"),
    [
        ([masks, masks], "two filters are named 'masks'; rename one of them"),
        ([Curfew(), Curfew()], "two filters are named 'Curfew'"),
        ([lambda call: None], "filter '<lambda>' has no name to be told by; use a def"),
        (["masks"], "filter 'masks' is no function"),
        ([None], "filter None is no function"),
        ("masks", "filters='masks' are no filters; give a list of functions"),
        (masks, "are no filters; give a list of functions"),
        ([numbered(n) for n in range(FILTERS_MAX + 1)], "the agent has 17 filters, filters_max=16"),
    ],
)
def test_what_is_no_list_of_filters_is_refused_when_the_agent_is_made(filters: Iterable[Any], complaint: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        agent(SAID, filters=filters)
    assert refused.value.code == FILTERS_INVALID
    assert complaint in refused.value.message


def test_as_many_filters_as_there_may_be_are_taken() -> None:
    assert len(filters_of([numbered(n) for n in range(FILTERS_MAX)])) == FILTERS_MAX


class PerRun:
    """A filter that lets a tool be called so often in a run, and no batch of more than two calls at all."""

    def __init__(self) -> None:
        self.made: dict[str, int] = {}
        self.seen: list[FilterContext] = []

    def __call__(self, call: ToolCall, context: FilterContext) -> str | None:
        """Count."""
        self.seen.append(context)
        if len(context.calls) > 2:
            return "at most two at once"
        self.made[context.run_id] = self.made.get(context.run_id, 0) + 1
        return "often enough in this run" if self.made[context.run_id] > 1 else None


@pytest.mark.req("3.21")
def test_a_filter_is_told_the_run_the_node_and_the_whole_batch(tmp_path: Path) -> None:
    async def scene() -> None:
        limit = PerRun()
        three = {"tool_calls": [{"name": "look", "arguments": {"at": str(n)}} for n in range(3)]}
        engine = ScriptedEngine([three, calls("look", at="a"), calls("look", at="b"), SAID])
        async with AgentLoop(engine, tools=[look], filters=[limit], user_id="ann", home=tmp_path / "store") as agent:
            response = await agent.chat("go")
        results = [call.result for call in response.tool_calls_made if call.status is CallStatus.COMMITTED]
        assert results == ["seen a"]
        first = limit.seen[0]
        assert (first.run_id, first.user_id, first.tenant_id) == (response.run_id, "ann", "")
        assert (first.session_id, first.node, first.why) == (response.session_id, "act", "")
        assert [call.arguments["at"] for call in first.calls] == ["0", "1", "2"]
        assert [len(context.calls) for context in limit.seen] == [3, 3, 3, 1, 1]

    play(scene())


def keeps_out(call: ToolCall, context: FilterContext) -> str | None:
    """Nothing that is forbidden, whichever filter puts it there."""
    return f"forbidden ({context.why})" if call.arguments.get("text") == "forbidden" else None


@pytest.mark.req("3.21")
@pytest.mark.parametrize(("text", "is_made"), [("forbidden", False), ("fine", True)])
def test_what_a_person_puts_into_an_approval_is_shown_to_the_filters(text: str, is_made: bool, tmp_path: Path) -> None:
    async def scene() -> None:
        engine = ScriptedEngine([calls("keep", text="first"), SAID])
        async with AgentLoop(engine, tools=[keep], filters=[keeps_out], home=tmp_path / "store") as agent:
            asked = await agent.chat("go")
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            done = await agent.approve(packet, by="bob", arguments={"text": text})
        (made,) = done.tool_calls_made
        assert (made.result == "kept fine") is is_made
        if not is_made:
            assert made.status is not CallStatus.COMMITTED

    play(scene())
