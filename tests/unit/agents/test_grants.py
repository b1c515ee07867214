"""Standing grants: a yes given beforehand, for more than one run, drawn down and named."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import AgentLoop, RequestRejected, ScriptedEngine, boundary_of, delegate, tool
from remit.core.journal.storage import AppendConflict
from remit.core.limits.grant import GrantDeed, GrantStanding
from remit.core.run.contract import SystemResponse
from remit.orchestrate.facade import System

REACHES = [GrantDeed]
HOUR_MS = 3_600_000
DONE: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


@tool(effect="external", control_args={"to": "email", "cents": "money"}, verify=lambda arguments, result: True)
def pay(to: str, cents: int) -> str:
    """Pay a person."""
    DONE.append((to, cents))
    return "paid"


@tool(effect="external", control_args={"to": "email"}, payload_args=["body"], verify=lambda arguments, result: True)
def tell(to: str, body: str) -> str:
    """Tell a person something."""
    DONE.append((to, len(body)))
    return "told"


@tool(effect="read", network=False, reads="private")
def read_mail() -> str:
    """Read the inbox."""
    return "Nothing new."


@tool(effect="write", destructive=True, control_args={"name": "id:file"}, verify=lambda arguments, result: True)
def wipe(name: str) -> str:
    """Wipe a file."""
    DONE.append((name, 0))
    return "wiped"


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


PAY = call("pay", to="ann@corp.example", cents=500)


async def played(
    system: System, *calls: dict[str, Any], boundary: Any = "guarded", user: str = "bob"
) -> SystemResponse:
    engine = ScriptedEngine([*calls, {"text": "Done."}])
    async with AgentLoop(
        engine, tools=[pay, tell, read_mail, wipe], boundary=boundary, system=system, user_id=user
    ) as agent:
        return await agent.chat("Go through the list.")


def granting(play: Callable[[System], Awaitable[None]], tmp_path: Path) -> None:
    async def run() -> None:
        async with remit.open(tmp_path / "home") as system:
            await play(system)

    asyncio.run(run())


async def give(
    system: System, order: dict[str, Any], *, by: str = "ada", until_ms: int = 0, **more: Any
) -> GrantStanding:
    until_ms = until_ms or system.grants.now_ms + HOUR_MS
    names = {name.removesuffix("_max"): value for name, value in more.items()}
    return await system.grants.give(order, until_ms=until_ms, by=by, **names)


TO_ANN = {"tool": "pay", "args": {"to": "ann@corp.example", "cents": 500}}


def test_a_grant_lets_exactly_its_call_happen_so_often_across_runs_and_is_named(tmp_path: Path) -> None:
    async def play(system: System) -> None:
        given = await give(system, TO_ANN, times_max=2)
        for place in (1, 2):
            said = await played(system, PAY)
            assert said.terminal_code == "SUCCESS"
            told = await system.archive.told(said.run_id)
            assert f"grant {given.id}: {place} of 2, until " in str(told.explanation.orders)
        assert (await played(system, PAY)).waiting_for is not None
        assert DONE == [("ann@corp.example", 500)] * 2
        (standing,) = await system.grants.standings()
        assert len(standing.draws) == 2

    granting(play, tmp_path)


@pytest.mark.parametrize(
    "other", [call("pay", to="eve@evil.example", cents=500), call("pay", to="ann@corp.example", cents=501)]
)
def test_a_grant_covers_no_more_than_its_bytes_say(tmp_path: Path, other: dict[str, Any]) -> None:
    async def play(system: System) -> None:
        await give(system, TO_ANN, times_max=9)
        assert (await played(system, other)).waiting_for is not None
        assert DONE == []

    granting(play, tmp_path)


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("fire", {"type": "boolean", "default": True}),
        ("also", {"type": "array", "items": {"type": "string"}, "default": ["H-2"]}),
        ("mode", {"type": "string", "default": "burn"}),
        ("depth", {"type": "integer", "default": 3}),
    ],
)
def test_a_grant_covers_no_default_that_it_does_not_name_and_no_other_tool_of_the_name(
    tmp_path: Path, name: str, schema: dict[str, Any]
) -> None:
    def smoke(**more: Any) -> dict[str, Any]:
        taken = {"type": "object", "properties": {"hive": {"type": "string"}, **more}}
        return {"name": "smoke", "effect": "external", "parameters": taken, "control_args": {"hive": "id:hive"}}

    async def play(system: System) -> None:
        await give(system, {"tool": "smoke", "args": {"hive": "H-1"}}, times_max=9)
        guard = system.guard()
        said = []
        calls = [
            (smoke(**{name: schema}), {"hive": "H-1"}),
            (smoke(**{name: schema}), {"hive": "H-1", name: schema["default"]}),
            (smoke(), {"hive": "H-1"}),
            (smoke(other={"type": "string"}), {"hive": "H-1"}),
        ]
        for number, (smoker, arguments) in enumerate(calls):
            run = str(number)
            await guard.answer({"op": "start", "run": run, "prompt": "Do it.", "tools": [smoker], "user": "bob"})
            said.append(await guard.answer({"op": "call", "run": run, "id": "c", "tool": "smoke", "args": arguments}))
        assert [one and one["decision"] for one in said] == ["ask", "ask", "allow", "ask"]

    granting(play, tmp_path)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "boolean", "default": True},
        {"type": "boolean", "default": False},
        {"type": "integer", "default": 1},
        {"type": "string", "default": ""},
        {"type": "string", "default": "soft"},
        {"type": "array", "items": {"type": "string"}, "default": ["H-2"]},
    ],
)
def test_a_grant_like_a_question_covers_its_call_with_its_defaults_written_or_left_out(
    tmp_path: Path, schema: dict[str, Any]
) -> None:
    def smoke(default: Any) -> dict[str, Any]:
        taken = {"type": "object", "properties": {"hive": {"type": "string"}, "more": {**schema, "default": default}}}
        return {"name": "smoke", "effect": "external", "parameters": taken, "control_args": {"hive": "id:hive"}}

    async def asked(system: System, run: str, tool: dict[str, Any], **given: Any) -> dict[str, Any]:
        guard = system.guard()
        await guard.answer({"op": "start", "run": run, "prompt": "Do it.", "tools": [tool], "user": "bob"})
        answer = await guard.answer({"op": "call", "run": run, "id": "c", "tool": "smoke", "args": given})
        assert answer is not None
        return answer

    async def play(system: System) -> None:
        tool, default = smoke(schema["default"]), schema["default"]
        named = {"hive": {"literal": "H-1"}, "more": {"literal": default}}
        await give(system, {"tool": "smoke", "args": named}, times_max=9)
        assert (await asked(system, "1", tool, hive="H-1"))["decision"] == "allow"
        assert (await asked(system, "2", tool, hive="H-1", more=default))["decision"] == "allow"
        for number, tool in enumerate((smoke("other"), smoke(["x"]))):
            assert (await asked(system, f"3{number}", tool, hive="H-1"))["decision"] == "ask"

    granting(play, tmp_path)


def test_a_grant_of_money_is_drawn_down_by_amounts(tmp_path: Path) -> None:
    async def play(system: System) -> None:
        await give(system, {"tool": "pay", "args": {"to": "ann@corp.example"}}, times_max=0, amount_max=1200)
        for _ in range(2):
            assert (await played(system, PAY)).terminal_code == "SUCCESS"
        assert (await played(system, PAY)).waiting_for is not None
        assert sum(cents for _, cents in DONE) == 1000

    granting(play, tmp_path)


def test_a_grant_is_for_its_person_and_revoked_and_given_by_who_may_approve(tmp_path: Path) -> None:
    async def play(system: System) -> None:
        given = await give(system, TO_ANN, times_max=9, who="carol")
        assert (await played(system, PAY)).waiting_for is not None
        assert (await played(system, PAY, user="carol")).terminal_code == "SUCCESS"
        await system.grants.revoke(given.id, by="ada")
        assert (await system.grants.revoke(given.id, by="eve")).revoked_by == "ada"
        assert (await played(system, PAY, user="carol")).waiting_for is not None
        await give(system, TO_ANN, times_max=9, by="bob")
        alone = boundary_of({"name": "alone", "extends": "guarded", "self_approval": False})
        assert (await played(system, PAY, boundary=alone)).waiting_for is not None
        with pytest.raises(RequestRejected, match="was never given"):
            await system.grants.revoke("g99", by="ada")

    granting(play, tmp_path)


@pytest.mark.parametrize("user", ["BOB", "bob ", "\uff42ob", "b.ob"])
def test_a_grant_for_a_user_is_for_no_user_of_another_spelling(tmp_path: Path, user: str) -> None:
    async def play(system: System) -> None:
        await give(system, TO_ANN, times_max=9, who="bob")
        assert (await played(system, PAY, user=user)).waiting_for is not None
        assert (await played(system, PAY, user="bob")).terminal_code == "SUCCESS"

    granting(play, tmp_path)


@pytest.mark.parametrize(("argument", "value"), [("to", "eve@evil.example"), ("to", "eve")])
def test_a_grant_leaves_nothing_that_steers_to_free_words(tmp_path: Path, argument: str, value: str) -> None:
    async def play(system: System) -> None:
        await give(system, {"tool": "tell", "text": {argument: {"free": []}, "body": {"free": []}}}, times_max=9)
        assert (await played(system, call("tell", **{argument: value, "body": "Hi."}))).waiting_for is not None
        assert not DONE

    granting(play, tmp_path)


def test_free_text_stays_in_once_something_private_was_read(tmp_path: Path) -> None:
    async def play(system: System) -> None:
        await give(
            system, {"tool": "tell", "args": {"to": "ann@corp.example"}, "text": {"body": {"free": []}}}, times_max=9
        )
        say = call("tell", to="ann@corp.example", body="All is well.")
        assert (await played(system, say)).terminal_code == "SUCCESS"
        assert (await played(system, call("read_mail"), say)).waiting_for is not None

    granting(play, tmp_path)


def test_what_destroys_is_granted_only_where_the_boundary_lets_a_confirmation_stand_for_it(tmp_path: Path) -> None:
    async def play(system: System) -> None:
        await give(system, {"tool": "wipe", "args": {"name": "f1"}}, times_max=9)
        assert (await played(system, call("wipe", name="f1"))).waiting_for is not None
        standing = boundary_of({"name": "stands", "extends": "guarded", "authority": {"stands_for": "approval"}})
        assert (await played(system, call("wipe", name="f1"), boundary=standing)).terminal_code == "SUCCESS"

    granting(play, tmp_path)


@pytest.mark.parametrize(
    ("order", "more", "words"),
    [
        ({**TO_ANN, "if": "it is late"}, {}, "nothing would check"),
        ({"tool": "tell", "text": {"body": {"free": ["read_mail"]}}}, {}, "exact text"),
        ({"tool": "tell", "args": {"to": {"lookup": {"tool": "x", "field": "y"}}}}, {}, "literals"),
        (TO_ANN, {"times_max": 0}, "how often"),
        (TO_ANN, {"times_max": 5000}, "up to"),
        (TO_ANN, {"until_ms": 1}, "within a year"),
    ],
)
def test_a_grant_that_says_too_little_or_too_much_is_refused(
    tmp_path: Path, order: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    async def play(system: System) -> None:
        with pytest.raises(RequestRejected, match=words):
            await give(system, order, **more)

    granting(play, tmp_path)


def test_a_process_that_dies_between_drawing_and_approving_draws_once(tmp_path: Path) -> None:
    async def play(system: System) -> None:
        waiting = await played(system, PAY)
        await give(system, TO_ANN, times_max=2)
        for _ in range(2):
            approval = await system._grants.approve(await system.state_of(waiting.run_id))
            assert approval is not None
            assert approval.grant.startswith("grant g1: 1 of 2")
        # Nothing heard of it; what takes the run up finds that it has drawn.
        done = await system.resume(waiting.run_id)
        assert done.terminal_code == "SUCCESS"
        (standing,) = await system.grants.standings()
        assert (len(standing.draws), DONE) == (1, [("ann@corp.example", 500)])

    granting(play, tmp_path)


def test_a_child_draws_from_the_same_grant(tmp_path: Path) -> None:
    lease = {"input_tokens": 50_000, "output_tokens": 10_000, "tool_calls": 5, "steps": 20, "human_reviews": 3}
    helper = delegate(
        "helper", description="Have it done.", lease={**lease, "side_effects": 5, "external_api_calls": 5}
    )

    async def play(system: System) -> None:
        await give(system, TO_ANN, times_max=1)
        script: list[dict[str, Any]] = [
            {**PAY, "when": "errand"},
            {"when": "paid", "text": "Child."},
            call("helper", task="errand"),
            PAY,
            {"text": "Done."},
        ]
        async with AgentLoop(
            ScriptedEngine(script), tools=[pay, helper], boundary="guarded", system=system, user_id="bob"
        ) as agent:
            said = await agent.chat("Go through the list.")
        assert said.waiting_for is not None
        assert DONE == [("ann@corp.example", 500)]

    granting(play, tmp_path)


def test_a_child_that_was_sent_behind_a_held_call_draws_nothing(tmp_path: Path) -> None:
    lease = {"input_tokens": 50_000, "output_tokens": 10_000, "tool_calls": 5, "steps": 20, "human_reviews": 3}
    helper = delegate(
        "helper", description="Have it done.", lease={**lease, "side_effects": 5, "external_api_calls": 5}
    )

    async def play(system: System) -> None:
        await give(system, TO_ANN, times_max=1)
        eve = {"name": "pay", "arguments": {"to": "eve@evil.example", "cents": 500}}
        both = {"tool_calls": [eve, {"name": "helper", "arguments": {"task": "errand"}}]}
        script: list[dict[str, Any]] = [{**PAY, "when": "errand"}, {"when": "paid", "text": "Child."}, both]
        async with AgentLoop(
            ScriptedEngine([*script, {"text": "Done."}]),
            tools=[pay, helper],
            boundary="guarded",
            system=system,
            user_id="bob",
        ) as agent:
            said = await agent.chat("Go through the list.")
        assert said.waiting_for is not None
        assert [one.arguments["to"] for one in said.waiting_for.packets] == ["eve@evil.example", "ann@corp.example"]
        assert DONE == []

    granting(play, tmp_path)


def test_a_journal_of_the_store_that_does_not_add_up_lends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(system: System) -> None:
        await give(system, TO_ANN, times_max=2)

        async def conflict(*_: object, **__: object) -> None:
            raise AppendConflict("halts")

        monkeypatch.setattr(system._halts, "decide", conflict)
        assert (await played(system, PAY)).waiting_for is not None

    granting(play, tmp_path)


def test_an_agent_elsewhere_is_allowed_what_was_granted(tmp_path: Path) -> None:
    declared = {
        "name": "pay",
        "description": "Pays.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "cents": {"type": "integer"}}},
        "effect": "external",
        "control_args": {"to": "email", "cents": "money"},
    }

    async def play(system: System) -> None:
        await give(system, TO_ANN, times_max=1)
        guard = system.guard()
        await guard.answer({"op": "start", "run": "r", "prompt": "Go.", "tools": [declared]})
        verdicts = []
        for name in ("a", "b"):
            said = {
                "op": "call",
                "run": "r",
                "id": name,
                "tool": "pay",
                "args": {"to": "ann@corp.example", "cents": 500},
            }
            verdicts.append(await guard.answer(said) or {})
        assert [verdict["decision"] for verdict in verdicts] == ["allow", "ask"]
        assert verdicts[0]["grant"].startswith("grant g1: 1 of 1")
        await guard.close()

    granting(play, tmp_path)
