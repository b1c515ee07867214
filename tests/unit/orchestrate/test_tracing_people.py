"""Traced runs and people: approvals, refusals, silence, changed arguments, words; and others who object."""

import pytest

from remit.core.failure import Refusal
from remit.core.journal import arrivals
from remit.core.journal.arrivals import TimerFired
from remit.core.journal.commands import (
    SetTimer,
    StartChild,
    TimerPurpose,
)
from remit.core.journal.proposed_call import Provenance
from remit.core.journal.rulings import CallNoted, ToolCallRefused
from remit.core.limits.boundary import BoundaryMode, Condition, Then
from remit.core.limits.profiles import GUARDED
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.orchestrate.executors.reports import (
    PersonApproved,
    PersonSaid,
)
from remit.provenance.gate_verdict import SILENCE
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.traced import (
    BOB,
    BOUND,
    EVIL,
    LOOKUP,
    PAID,
    STOLEN,
    Office,
    a_child_says,
    answer,
    asked,
    manifest,
    performed,
    same,
    to,
    uses,
)


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
        timer = next(c for c in live.state.commands.open.values() if isinstance(c, SetTimer) and c.about == question.id)
        assert timer.purpose is TimerPurpose.APPROVAL
        office.clock.at_ms = timer.due_at_ms
        await office.tell(live, TimerFired(timer.id))
        assert [call.provenance for call in await office.calls()] == [Provenance.UNBOUND, Provenance.REFUSED]
        assert live.tracer is not None
        assert list(live.tracer._gate.ledger.rejected.values()) == [SILENCE]
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


def test_a_person_who_gives_the_arguments_that_were_turned_away_before_says_yes_to_them() -> None:
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


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_call_that_another_check_objects_to_is_held_at_the_gate_too(is_approved: bool) -> None:
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
        ledger = live.tracer._gate.ledger
        # Neither of them is an effect, so the wire is not for them.
        assert (ledger.held_ids(), ledger.tripped) == (("1/0",), "")
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada"))
        assert "1/0" not in ledger.held_ids()
        if tool == "ask_user":
            await office.tell(live, PersonSaid("ada", "Thanks.", asked(live)[0].id))
        assert (await office.found())[-1] == (BOUND if tool == "ask_user" else "REPEAT")
        await same(office, live)

    play(act())


def test_where_nobody_may_be_asked_any_more_a_held_call_trips_the_wire_for_good() -> None:
    async def act() -> None:
        boundary = replace(GUARDED, budget=replace(GUARDED.budget, human_reviews=0))
        office = Office(answer(STOLEN), answer(PAID))
        live = await office.begin(manifest(boundary=boundary))
        assert await office.found() == ["PROVENANCE_UNBOUND", "TRIPPED"]
        assert (performed(office), asked(live)) == ([], [])
        await same(office, live)

    play(act())
