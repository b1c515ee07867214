"""Packets: what an approval is bound to, how it cannot be spent on anything else, and calls that are held together."""

from typing import Any

import pytest

from remit.core.failure import ArrivalFault, Ending, IllegalArrival, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import ApprovalGiven
from remit.core.journal.commands import AskHuman, CallModel, CallTool, Packet, SetTimer, TimerPurpose, packet_version
from remit.core.journal.proposed_call import Provenance
from remit.core.journal.rulings import Answer
from remit.core.journal.turn import Decision
from remit.core.limits.authority import ValueOrigin
from remit.core.limits.boundary import Boundary, Condition, Exhaustion, Then
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.manifest import Source
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import waiting_for
from tests.unit.kernel.builders import Run, bound, known, lawful, manifest_of, wants

SOURCE = Source("write", "/tools.py", "write", "aa")
CHANGED = replace(SOURCE, digest="bb")
CALLS, EFFECTS = int(Dimension.TOOL_CALLS), int(Dimension.SIDE_EFFECTS)
REVIEWS = Dimension.HUMAN_REVIEWS


PAY = known("pay", category=ToolCategory.PAYMENT, blast_radius="one payment", rollback="ask the bank")


def held(*names: str, **manifest: Any) -> Run:
    """A run that asks about calls of these tools."""
    run = Run(manifest_of(**manifest))
    run.proposes(*(wants(name, n) for n, name in enumerate(names or ("write",))))
    return run


def packet_of(run: Run) -> Packet:
    packet = run.question().packet
    assert packet is not None
    return packet


def four_eyes() -> Run:
    return held("pay", tools=(PAY,), boundary=Boundary(four_eyes=(ToolCategory.PAYMENT,)))


# What a packet shows.


def test_a_packet_shows_the_call_its_code_and_labels_and_what_it_reaches_and_could_cost() -> None:
    manifest = manifest_of(tools=(PAY,), sources=(replace(SOURCE, name="pay"),))
    call = replace(
        wants("pay"),
        provenance=Provenance.UNBOUND,
        objection="PROVENANCE_UNBOUND",
        reasons=("n came from nowhere",),
        labels=("private",),
        origins=(ValueOrigin("n", "1"),),
    )
    run = Run(manifest)
    run.proposes(call)
    packet = packet_of(run)
    assert (packet.call, packet.tool_version) == (call, run.state.derived.tools["pay"].version)
    assert (packet.boundary_version, packet.source) == (manifest.versions.boundary, "aa")
    assert (packet.blast_radius, packet.rollback) == ("one payment", "ask the bank")
    assert packet.reasons[0] == "n came from nowhere"
    shown = {Dimension(dimension): left for dimension, left in packet.left}
    assert shown == {
        Dimension.TOOL_CALLS: 50,
        Dimension.EXTERNAL_API_CALLS: 10,
        Dimension.INFERENCE_COST_MICROUSD: run.state.spending.left[Dimension.INFERENCE_COST_MICROUSD],
        Dimension.SIDE_EFFECTS: 0,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"call": wants("write", 2)},
        {"call": replace(wants("write"), labels=("private",))},
        {"tool_version": "another"},
        {"boundary_version": "another"},
        {"source": "bb"},
        {"left": ((CALLS, 1),)},
        {"blast_radius": "everything"},
        {"rollback": "none"},
        {"reasons": ()},
        {"releases": ((EFFECTS, 2),)},
        {"approvals_needed": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_was_shown_is_part_of_the_version_that_an_approval_names(change: dict[str, Any]) -> None:
    packet = packet_of(held(sources=(SOURCE,)))
    assert packet_version(replace(packet, **change)) != packet_version(packet)
    assert packet_version(replace(packet)) == packet_version(packet)


# An approval cannot be spent on another call.


def test_an_approval_that_names_the_packet_it_saw_orders_exactly_that_call() -> None:
    run = held()
    packet = packet_of(run)
    run.take(ApprovalGiven(run.question().id, "ada", packet=packet_version(packet)))
    ordered = run.now(CallTool)[0]
    assert (ordered.arguments_hash, ordered.version) == (packet.call.arguments_hash, packet.tool_version)
    lawful(run)


def test_an_approval_of_one_call_is_not_one_of_the_same_tool_with_another_argument() -> None:
    run = held("write", "write")
    one, other = run.open(AskHuman)
    assert one.packet is not None
    spent = ApprovalGiven(other.id, "ada", packet=packet_version(one.packet))
    assert run.fault_of(spent) is ArrivalFault.PACKET_CHANGED
    assert run.open(CallTool) == []


def test_an_approval_seen_under_another_boundary_or_of_another_tool_version_is_not_heard() -> None:
    run, other = held(), held(boundary=Boundary("other"))
    spent = ApprovalGiven(run.question().id, "ada", packet=packet_version(packet_of(other)))
    assert run.fault_of(spent) is ArrivalFault.PACKET_CHANGED
    newer = held(tools=(known("write", description="writes otherwise"),))
    spent = ApprovalGiven(run.question().id, "ada", packet=packet_version(packet_of(newer)))
    assert run.fault_of(spent) is ArrivalFault.PACKET_CHANGED


def test_a_replayed_approval_is_a_duplicate() -> None:
    run = held()
    given = ApprovalGiven(run.question().id, "ada", packet=packet_version(packet_of(run)))
    run.take(given)
    assert run.fault_of(given) is ArrivalFault.DUPLICATE
    run.returns()
    run.proposes(wants("write", 0))
    assert run.fault_of(given) is ArrivalFault.DUPLICATE
    again = ApprovalGiven(run.question().id, "ada", packet=given.packet)
    assert run.fault_of(again) is ArrivalFault.PACKET_CHANGED


def test_an_approval_that_comes_when_its_packet_has_expired_is_not_heard() -> None:
    run = held()
    given = ApprovalGiven(run.question().id, "ada", packet=packet_version(packet_of(run)))
    run.now_ms = run.question().expires_at_ms
    assert run.fault_of(given) is ArrivalFault.NOT_WAITING


def test_a_question_without_a_packet_is_not_approved_by_the_version_of_one() -> None:
    boundary = Boundary(exhaustion=(("output_tokens", Exhaustion.ASK),), budget=Budget(output_tokens=0))
    run = Run(manifest_of(boundary=boundary))
    spent = ApprovalGiven(run.question().id, "ada", packet=packet_version(packet_of(held())))
    assert run.fault_of(spent) is ArrivalFault.PACKET_CHANGED
    run.approves()
    assert run.state.spending.caps[Dimension.OUTPUT_TOKENS] > 0


def test_code_that_was_accepted_is_asked_about_anew_and_the_old_question_is_gone() -> None:
    run = held("write", "pay", sources=(SOURCE,))
    old, other = run.open(AskHuman)
    run.take(arrivals.SourcesAccepted("ada", (CHANGED,)))
    kept, new = run.open(AskHuman)
    assert (kept, new.packet and new.packet.source, new.expires_at_ms) == (other, "bb", old.expires_at_ms)
    assert run.last(rulings.QuestionSettled).answer is Answer.WITHDRAWN
    assert [timer.about for timer in run.open(SetTimer)[1:]] == [other.id, new.id]
    assert run.fault_of(ApprovalGiven(old.id, "ada")) is ArrivalFault.DUPLICATE
    assert old.packet is not None
    stale = ApprovalGiven(new.id, "ada", packet=packet_version(old.packet))
    assert run.fault_of(stale) is ArrivalFault.PACKET_CHANGED
    assert (run.used(REVIEWS), run.reserved(REVIEWS)) == (1, 0)
    run.take(ApprovalGiven(new.id, "ada"))
    assert [call.tool for call in run.open(CallTool)] == ["write"]
    lawful(run)


def test_what_was_approved_by_one_of_two_is_approved_by_nobody_once_its_code_has_changed() -> None:
    sources = (replace(SOURCE, name="pay"),)
    run = held("pay", tools=(PAY,), boundary=Boundary(four_eyes=(ToolCategory.PAYMENT,)), sources=sources)
    run.approves(by="ada")
    run.take(arrivals.SourcesAccepted("ada", (replace(CHANGED, name="pay"),)))
    assert run.state.people.approvals == {}
    run.approves(by="bob")
    assert run.open(CallTool) == []
    run.approves(by="ada")
    assert len(run.open(CallTool)) == 1


def test_code_that_is_accepted_while_the_run_is_paused_is_asked_about_when_it_goes_on() -> None:
    run = held("write", "pay", sources=(SOURCE, replace(SOURCE, name="pay")))
    old, other = run.open(AskHuman)
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.SourcesAccepted("ada", (CHANGED,)))
    assert run.open(AskHuman) == [old, other]
    assert run.fault_of(ApprovalGiven(old.id, "ada")) is ArrivalFault.PACKET_CHANGED
    run.take(arrivals.ResumeRequested("ada"))
    kept, new = run.open(AskHuman)
    assert (kept, new.packet and new.packet.source) == (other, "bb")
    run.take(ApprovalGiven(new.id, "ada"))
    assert [call.tool for call in run.open(CallTool)] == ["write"]
    lawful(run)


def test_code_that_was_accepted_without_a_change_is_not_asked_about_again() -> None:
    run = held(sources=(SOURCE,))
    question = run.question()
    run.take(arrivals.SourcesAccepted("ada", (SOURCE,)))
    assert run.open(AskHuman) == [question]


def test_calls_that_were_held_together_are_asked_about_together_once_their_code_has_changed() -> None:
    run = held("write", "write", sources=(SOURCE,))
    first = run.question()
    run.take(arrivals.SourcesAccepted("ada", (CHANGED,)))
    assert [question.group for question in run.open(AskHuman)] == [first.id] * 2
    assert (run.used(REVIEWS), run.reserved(REVIEWS)) == (1, 0)
    run.approves()
    run.approves()
    assert len(run.open(CallTool)) == 2
    lawful(run)


def test_a_question_about_what_became_of_a_call_stays_when_its_code_is_accepted() -> None:
    run = held(sources=(SOURCE,))
    run.approves()
    run.loses()
    question = run.question()
    run.take(arrivals.SourcesAccepted("ada", (CHANGED,)))
    assert run.open(AskHuman) == [question]


def test_a_packet_whose_code_is_not_what_would_run_is_not_approved() -> None:
    run = held(sources=(SOURCE,))
    run.state.sources["write"] = CHANGED
    with pytest.raises(IllegalArrival) as refused:
        take_turn(run.state, ApprovalGiven(run.question().id, "ada"), run.now_ms)
    assert refused.value.fault is ArrivalFault.PACKET_CHANGED


def test_a_packet_of_a_time_when_packets_named_no_code_can_still_be_approved() -> None:
    run = Run(manifest_of(sources=(SOURCE,)))
    answered = arrivals.ModelAnswered(run.open(CallModel)[0].id, calls=(wants("write"),), tokens_bound=40)
    turn = take_turn(run.state, answered, run.now_ms)
    old = tuple(_unbound(decision) for decision in turn.decisions)
    apply(run.state, replace(turn, decisions=old), b"head")
    assert packet_of(run).source == ""
    ordered = take_turn(run.state, ApprovalGiven(run.question().id, "ada"), run.now_ms).decisions
    assert any(isinstance(decision, CallTool) for decision in ordered)


def _unbound(decision: Decision) -> Decision:
    if not isinstance(decision, AskHuman) or decision.packet is None:
        return decision
    return replace(decision, packet=replace(decision.packet, source=""))


# Four eyes.


def test_four_eyes_of_two_people_order_the_call_once_and_in_both_their_names() -> None:
    run = four_eyes()
    assert packet_of(run).approvals_needed == 2
    question = run.question()
    run.approves(by="ada")
    assert run.now(rulings.ApprovalCounted) == [rulings.ApprovalCounted(question.id, "ada")]
    assert (run.open(CallTool), run.open(AskHuman)) == ([], [question])
    run.approves(by="bob")
    assert [call.approved_by for call in run.open(CallTool)] == ["ada, bob"]
    assert run.state.people.approvals == {}
    lawful(run)


def test_the_same_person_twice_is_one_person() -> None:
    run = four_eyes()
    run.approves(by="ada")
    assert run.fault_of(ApprovalGiven(run.question().id, "ada")) is ArrivalFault.ALREADY_APPROVED


def test_what_two_people_must_approve_is_changed_by_neither() -> None:
    run = four_eyes()
    changed = ApprovalGiven(run.question().id, "ada", wants("pay", 7))
    assert run.fault_of(changed) is ArrivalFault.WRONG_PACKET
    run.approves(by="ada")
    changed = ApprovalGiven(run.question().id, "bob", wants("pay", 7))
    assert run.fault_of(changed) is ArrivalFault.WRONG_PACKET


def test_one_no_is_enough_where_two_must_say_yes() -> None:
    run = four_eyes()
    run.approves(by="bob")
    run.rejects()
    assert run.last(rulings.ToolCallRefused).code == Refusal.APPROVAL_REJECTED
    assert (run.state.people.approvals, run.all(CallTool)) == ({}, [])


def test_a_read_in_a_category_of_four_eyes_needs_nobody() -> None:
    look = known("look", category=ToolCategory.PAYMENT)
    run = held("look", tools=(look,), boundary=Boundary(four_eyes=(ToolCategory.PAYMENT,)))
    assert [call.tool for call in run.open(CallTool)] == ["look"]


# What is judged again when the yes has come.


def test_a_condition_that_stops_ends_the_run_at_the_approval_too() -> None:
    boundary = Boundary(conditions=(Condition("seven", "args.n == 7", Then.STOP, "nobody writes seven"),))
    run = held(boundary=boundary)
    run.approves(modified=wants("write", 7))
    assert (run.state.end.ending, run.all(CallTool)) == (Ending.UNSAFE_DETECTION, [])
    assert run.state.end.message == "write: condition seven: nobody writes seven"
    lawful(run)


def test_a_yes_releases_what_its_packet_says_and_nothing_that_was_spent_meanwhile() -> None:
    boundary = Boundary(
        exhaustion=(("tool_calls", Exhaustion.ASK),), budget=Budget(tool_calls=1, side_effects=5), approval_effects=()
    )
    run = held("write", "put", boundary=boundary)
    assert [question.packet and question.packet.releases for question in run.open(AskHuman)] == [(), ()]
    run.approves()
    run.approves()
    assert run.last(rulings.ToolCallRefused).code == Refusal.BUDGET_EXHAUSTED
    assert run.last(rulings.ToolCallRefused).reason == (
        "tool_calls was spent meanwhile, and the approval released none of it"
    )
    assert (run.state.spending.caps[CALLS], run.state.spending.left[CALLS]) == (1, 0)
    run.returns("write")
    run.proposes(wants("put", 3))
    assert packet_of(run).releases == ((CALLS, 1),)
    run.approves()
    assert (run.state.spending.caps[CALLS], run.state.spending.left[CALLS]) == (2, 0)
    lawful(run)


# Calls that are held together.


def test_calls_that_are_held_in_one_turn_are_one_packet_and_one_review() -> None:
    run = held("write", "pay", "put")
    first, *others = run.open(AskHuman)
    assert (first.group, {question.group for question in others}) == ("", {first.id})
    assert [question.reserved for question in run.open(AskHuman)] == [((int(REVIEWS), 1),), (), ()]
    run.approves()
    run.rejects()
    run.approves()
    assert (run.used(REVIEWS), run.reserved(REVIEWS)) == (1, 0)
    lawful(run)


def test_each_of_a_group_is_answered_by_itself_and_the_node_waits_for_all() -> None:
    run = held("write", "pay", "put")
    second = run.open(AskHuman)[1]
    run.take(arrivals.ApprovalRefused(second.id, "ada"))
    run.approves()
    run.returns("write")
    assert run.path()[-1] == "act"
    run.approves()
    assert run.path()[-1] == "act"
    run.returns("put")
    assert run.path()[-1] == "think"
    lawful(run)


def test_a_second_turn_that_holds_calls_is_a_second_review() -> None:
    run = held("write")
    run.rejects()
    run.proposes(wants("pay", 3), wants("put", 4))
    assert run.open(AskHuman)[0].group == ""
    assert (run.used(REVIEWS), run.reserved(REVIEWS)) == (1, 1)


def test_one_review_is_enough_for_a_group_and_none_for_the_next() -> None:
    run = held("write", "pay", budget=Budget(human_reviews=1))
    assert len(run.open(AskHuman)) == 2
    run.rejects()
    run.rejects()
    run.proposes(wants("put", 5))
    assert run.last(rulings.ToolCallRefused).reason == "put needs a person and human_reviews_max=1 is spent"


def test_a_call_that_fits_more_than_one_record_waits_for_a_choice() -> None:
    run = Run()
    run.proposes(replace(wants("write"), provenance=Provenance.UNBOUND, objection="RECORD_AMBIGUOUS"))
    assert (run.question().ending, waiting_for(run.state)) == (Ending.AMBIGUOUS_INTENT, Ending.AMBIGUOUS_INTENT)
    escalation = run.question().escalation
    assert escalation is not None
    assert (escalation.trigger, escalation.queue) == ("ambiguous_goal", "user")
    run.approves()
    assert len(run.open(CallTool)) == 1


def test_a_bound_call_beside_a_held_one_is_ordered_at_once() -> None:
    boundary = Boundary(approval_effects=(), budget=Budget(side_effects=5))
    run = Run(manifest_of(boundary=boundary))
    run.proposes(bound(wants("write")), wants("put"))
    assert ([call.tool for call in run.open(CallTool)], len(run.open(AskHuman))) == (["write"], 1)


# Noes in a row.


@pytest.mark.req("4.37")
def test_a_third_answer_of_which_a_person_turns_a_call_away_ends_the_run_when_its_other_calls_are_settled() -> None:
    run = held("write")
    run.rejects()
    run.proposes(wants("pay", 1))
    run.rejects()
    run.proposes(wants("put", 2), wants("put", 3))
    run.rejects()
    run.approves()
    assert run.open(CallTool)
    run.returns("put")
    assert (run.state.end.ending, run.state.end.message) == (
        Ending.PERMISSION_DENIED,
        "people said no to calls of 3 answers, denials_max=3",
    )
    lawful(run)


def test_what_is_held_together_is_one_no_and_silence_and_a_full_queue_are_none() -> None:
    run = held("write", "pay", "put")
    for _ in range(3):
        run.rejects()
    assert (run.state.people.noes, run.path()[-1]) == (1, "think")
    run.proposes(wants("write", 1))
    run.rings(TimerPurpose.APPROVAL)
    run.proposes(wants("write", 2))
    run.take(arrivals.ApprovalRefused(run.question().id, "queue:operator"))
    assert (run.state.people.noes, run.path()[-1]) == (1, "think")
