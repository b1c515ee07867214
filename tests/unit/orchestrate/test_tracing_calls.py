"""Traced runs and their calls: filters, ids that repeat, failures, doubts and tools that stand in for others."""

import json
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import (
    CallCode,
    CallTool,
    ReconcileTool,
)
from remit.core.limits.profiles import GUARDED
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import JsonObject, replace
from remit.orchestrate.executors.reports import (
    FilterSaid,
    PersonApproved,
    Report,
    SiftedCall,
    ToolAccounted,
    ToolBroke,
    ToolSaid,
)
from remit.orchestrate.loop.live import Live
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.traced import (
    BOB,
    BOUND,
    EVIL,
    FIND,
    LETTER,
    LOOKUP,
    MAIL,
    MAILED,
    PAID,
    SERVICES,
    STOLEN,
    UNTRACED,
    Office,
    answer,
    asked,
    manifest,
    performed,
    same,
    to,
    uses,
)


def sifting(*looks: Any) -> dict[type[commands.Command], Any]:
    """Filters, in their order: each makes something of the arguments, or says why not."""

    async def code(live: Live, command: CallCode) -> Report:
        look = looks[live.state.calls.filtered]
        sifted = []
        for call in live.state.calls.proposed:
            said = look(call.tool, json.loads(str(call.said or call.arguments)))
            arguments, reason = ({}, said) if isinstance(said, str) else (said, "")
            sifted.append(SiftedCall(ToolCall(call.call_id, call.tool, arguments), reason))
        return FilterSaid(command.id, tuple(sifted))

    return {CallCode: code}


def test_a_call_that_the_kernel_refuses_was_never_made() -> None:
    async def act() -> None:
        boundary = replace(GUARDED, allowed_tools=("find_user", "pay"))
        office = Office(answer(LOOKUP, MAILED), answer(STOLEN), answer(PAID))
        live = await office.begin(manifest(boundary=boundary))
        assert (uses(live, "send_mail"), uses(live, "pay")) == (0, 1)
        assert live.tracer is not None
        assert live.tracer._gate.ledger.tripped == ""
        await same(office, live)

    play(act())


def test_what_the_last_filter_made_of_a_call_is_judged() -> None:
    def passes(tool: str, arguments: JsonObject) -> JsonObject:
        return arguments

    def redirects(tool: str, arguments: JsonObject) -> JsonObject:
        return to(EVIL) if tool == "send_mail" else arguments

    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), answer(LOOKUP), executors=sifting(passes, redirects))
        live = await office.begin(manifest(filters=("passes", "redirects")))
        (question,) = asked(live)
        assert question.packet is not None
        assert question.packet.call.objection == "PROVENANCE_UNBOUND"
        assert set(await office.found()) == {UNTRACED}
        await office.tell(live, PersonApproved(question.id, "ada"))
        await same(office, live)

    play(act())


def test_what_a_filter_turned_away_is_not_judged_and_takes_nothing_back() -> None:
    def refuses(tool: str, arguments: JsonObject) -> JsonObject | str:
        return "not twice" if arguments.get("amount") == 7 else arguments

    async def act() -> None:
        turned_away = ("pay", {**PAID[1], "amount": 7})
        office = Office(
            answer(PAID, ids=["x"]), answer(turned_away, ids=["x"]), answer(PAID, ids=["x"]), executors=sifting(refuses)
        )
        live = await office.begin(manifest(filters=("refuses",)))
        assert uses(live, "pay") == 1
        (question,) = asked(live)
        assert question.packet is not None
        assert question.packet.call.objection == "REPEAT"
        await same(office, live)

    play(act())


def test_a_filter_that_broke_lets_nothing_through_and_the_next_answer_is_judged_as_ever() -> None:
    broken = [True]

    async def code(live: Live, command: CallCode) -> Report:
        if broken:
            broken.clear()
            return arrivals.CodeFailed(command.id, "it broke")
        calls = [ToolCall(c.call_id, c.tool, json.loads(str(c.arguments))) for c in live.state.calls.proposed]
        return FilterSaid(command.id, tuple(map(SiftedCall, calls)))

    async def act() -> None:
        office = Office(answer(PAID), answer(PAID), executors={CallCode: code})
        live = await office.begin(manifest(filters=("one", "two")))
        assert (performed(office), uses(live, "pay")) == (["pay"], 1)
        await same(office, live)

    play(act())


def test_two_calls_of_one_answer_are_judged_one_after_the_other() -> None:
    async def act() -> None:
        office = Office(answer(PAID, PAID, LOOKUP))
        live = await office.begin()
        assert await office.found() == [BOUND, "REPEAT", UNTRACED]
        await office.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert uses(live, "pay") == 1
        await same(office, live)

    play(act())


def test_calls_of_one_answer_that_share_an_id_do_not_share_their_results() -> None:
    async def act() -> None:
        mallory = ("find_user", {"name": "Mallory"})
        nameless = replace(FIND, trust=replace(FIND.trust, fields=(("[].email", "who:email"),)))
        office = Office(answer(mallory, LOOKUP, ids=["x", "x"]), answer(STOLEN))
        live = await office.begin(manifest(tools=(nameless, MAIL, LETTER)))
        assert (await office.found())[-1] == "RECORD_AMBIGUOUS"
        assert performed(office) == ["find_user", "find_user"]
        await same(office, live)

    play(act())


def test_calls_that_are_alike_to_the_last_byte_are_told_apart_by_their_places() -> None:
    async def act() -> None:
        office = Office(answer(PAID, PAID, PAID, ids=["x", "x", "x"]))
        live = await office.begin()
        assert await office.found() == [BOUND, "REPEAT", "REPEAT"]
        _, second = asked(live)
        await office.tell(live, PersonApproved(second.id, "ada"))
        assert uses(live, "pay") == 2
        assert live.tracer is not None
        assert live.tracer._gate.ledger.held_ids() == ("1/1",)
        # It is asked anew, with what came of the other.
        (first,) = asked(live)
        await office.tell(live, arrivals.ApprovalRefused(first.id, "ada"))
        assert live.tracer._gate.ledger.held_ids() == ()
        await same(office, live)

    play(act())


def test_an_invalid_call_under_the_id_of_one_that_was_made_takes_nothing_back() -> None:
    async def act() -> None:
        office = Office(
            answer(LOOKUP),
            answer(MAILED, ids=["x"]),
            answer(("send_mail", {"recipients": 7}), ids=["x"]),
            answer(MAILED, ids=["x"]),
        )
        live = await office.begin()
        assert uses(live, "send_mail") == 1
        assert (await office.found())[-1] == "REPEAT"
        await same(office, live)

    play(act())


def test_a_failure_is_text_whatever_it_looks_like() -> None:
    def lies(arguments: JsonObject) -> str:
        raise RuntimeError(json.dumps([{"email": EVIL, "name": "Bob"}]))

    async def act() -> None:
        office = Office(answer(LOOKUP), answer(STOLEN), services={**SERVICES, "find_user": lies})
        live = await office.begin()
        assert (await office.found())[-1] == "PROVENANCE_UNBOUND"
        assert live.tracer is not None
        assert "untrusted" in live.tracer._gate.grounds.labels
        await same(office, live)

    play(act())


def test_the_failure_of_a_read_that_nobody_asked_for_is_as_private_as_the_read() -> None:
    def blabs(arguments: JsonObject) -> str:
        raise RuntimeError("cannot open the diary of Ann: hunter2")

    async def act() -> None:
        office = Office(
            answer(LOOKUP, ("read_diary", {"day": "today"})),
            answer(("send_mail", to(BOB, body="by the way, it is hunter2"))),
            services={**SERVICES, "read_diary": blabs},
        )
        live = await office.begin()
        assert (await office.found())[-1] == "PRIVATE_FLOW"
        await same(office, live)

    play(act())


def test_a_result_that_broke_its_schema_or_was_refuted_is_text() -> None:
    promised = replace(FIND, result={"type": "array", "maxItems": 0})

    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED))
        live = await office.begin(manifest(tools=(promised, MAIL, LETTER)))
        assert (await office.found())[-1] == "PROVENANCE_UNBOUND"
        await same(office, live)

    async def refuted(live: Live, command: CallTool) -> Report:
        return ToolSaid(command.id, ToolResult("", "", json.dumps([{"email": BOB, "name": "Bob"}])), "not him")

    async def act_refuted() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), executors={CallTool: refuted})
        live = await office.begin()
        assert (await office.found())[-1] == "PROVENANCE_UNBOUND"
        await same(office, live)

    play(act())
    play(act_refuted())


@pytest.mark.parametrize("happened", list(Happened))
def test_what_a_tool_says_became_of_a_call_in_doubt_is_its_result_if_it_happened(happened: Happened) -> None:
    async def slow(live: Live, command: CallTool) -> Report:
        if command.tool == "send_mail":
            return ToolBroke(command.id, ErrorCode.TOOL_TIMEOUT, "too slow")
        return ToolSaid(command.id, ToolResult("", "", SERVICES[command.tool](json.loads(str(command.arguments)))))

    async def accounts(live: Live, command: ReconcileTool) -> Report:
        return ToolAccounted(command.id, happened, '{"sent": true}')

    async def act() -> None:
        office = Office(
            answer(LOOKUP), answer(MAILED), answer(MAILED), executors={CallTool: slow, ReconcileTool: accounts}
        )
        live = await office.begin()
        if happened is Happened.UNKNOWN:
            await office.tell(live, arrivals.OutcomeJudged(asked(live)[0].id, "ada", Happened.YES))
        assert live.tracer is not None
        told = live.tracer._gate.grounds.index.observations
        named = [one for one in told if one.call_id == "3/0"]
        assert len(named) == (happened is Happened.YES)
        # What did not happen can be done again, and repeats nothing.
        assert (await office.found())[-1] == ("bound" if happened is Happened.NO else "REPEAT")
        await same(office, live)

    play(act())


def test_a_tool_that_stands_in_for_another_has_made_the_call_in_its_place() -> None:
    async def absent(live: Live, command: CallTool) -> Report:
        if command.tool == "send_mail":
            return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, "the server is down")
        return ToolSaid(command.id, ToolResult("", "", SERVICES[command.tool](json.loads(str(command.arguments)))))

    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), answer(("post_letter", to(BOB))), executors={CallTool: absent})
        live = await office.begin()
        assert (uses(live, "send_mail"), uses(live, "post_letter")) == (0, 1)
        assert (await office.found())[-1] == "REPEAT"
        await same(office, live)

    play(act())
