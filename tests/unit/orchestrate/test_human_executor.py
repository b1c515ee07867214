"""People: what they are shown, and which question their answer belongs to."""

import pytest

from remit.core.failure import ArrivalFault, Ending, RequestRejected
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import AskPurpose
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Dimension
from remit.core.limits.escalation import Gravity
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.approval import What
from remit.core.run.signals import PACKET_UNKNOWN, Signal
from remit.core.work.goal import Goal
from remit.core.work.graph import Node, NodeKind
from remit.orchestrate.executors.human import answer_to, approvals_in
from remit.orchestrate.executors.reports import PersonApproved, PersonSaid
from tests.simulation.scenarios import TOOLS
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants
from tests.unit.orchestrate.house import signal


def test_a_held_call_is_shown_with_what_will_run_and_what_it_is_bound_to() -> None:
    run = Run()
    run.proposes(wants("write", 7))
    (shown,) = approvals_in(run.state)
    packet = run.question().packet
    assert packet is not None
    assert (shown.id, shown.run_id, shown.tool, shown.effect) == ("run/1.2", "run", "write", "write")
    assert (shown.arguments, shown.tool_version) == ({"n": 7}, packet.tool_version)
    assert shown.boundary_version == run.tally().manifest.versions.boundary
    assert (shown.purpose, shown.ending) == (What.APPROVAL, Ending.CONFIRM_REQUIRED)
    assert shown.reasons == packet.reasons != ()
    # The boundary allows no change, so the person lifts that once.
    assert shown.releases == (("side_effects", 1),)


def test_a_question_of_the_graph_is_shown_in_its_words() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which city?"))))
    (shown,) = approvals_in(run.state)
    assert (shown.question, shown.tool, shown.purpose) == ("Which city?", "", What.QUESTION)


def test_a_call_in_doubt_is_shown_with_the_call_it_is_about() -> None:
    run = in_doubt()
    (shown,) = approvals_in(run.state)
    assert (shown.purpose, shown.tool) == (What.OUTCOME, "write")
    assert shown.about in run.state.commands.doubted


def in_doubt() -> Run:
    """A run with a write whose outcome is unknown."""
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.loses()
    return run


@pytest.mark.parametrize(("kind", "happened"), [(Signal.APPROVE, Happened.YES), (Signal.REJECT, Happened.NO)])
def test_a_yes_or_no_about_a_call_in_doubt_says_what_became_of_it(kind: Signal, happened: Happened) -> None:
    run = in_doubt()
    asked = run.question().id
    report = answer_to(run.state, signal(kind, "run", packet_id=f"run/{asked}"))
    assert report == arrivals.OutcomeJudged(asked, "ada", happened)


def test_a_yes_to_a_question_in_words_carries_the_answer() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which city?"))))
    asked = run.question().id
    report = answer_to(run.state, signal(Signal.APPROVE, "run", packet_id=asked, text="Rome"))
    assert report == PersonSaid("ada", "Rome", asked)


def test_a_no_to_a_question_in_words_refuses_it() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which city?"))))
    asked = run.question().id
    report = answer_to(run.state, signal(Signal.REJECT, "run", packet_id=asked, reason="no idea"))
    assert report == arrivals.ApprovalRefused(asked, "ada", "no idea")


def test_a_yes_to_a_held_call_approves_it_with_or_without_other_arguments() -> None:
    run = Run()
    run.proposes(wants("write"))
    report = answer_to(run.state, signal(Signal.APPROVE, "run", packet_id="run/1.2", arguments={"n": 2}))
    assert report == PersonApproved("1.2", "ada", {"n": 2})
    (shown,) = approvals_in(run.state)
    named = signal(Signal.APPROVE, "run", packet_id="run/1.2", packet=shown.packet, reason="fine")
    assert answer_to(run.state, named) == PersonApproved("1.2", "ada", None, shown.packet, "fine")


@pytest.mark.parametrize("version", ["0" * 64, ""])
@pytest.mark.parametrize("kind", [Signal.APPROVE, Signal.REJECT])
def test_an_answer_to_another_version_of_a_packet_is_refused(kind: Signal, version: str) -> None:
    run = Run()
    run.proposes(wants("write"))
    with pytest.raises(RequestRejected) as refused:
        answer_to(run.state, signal(kind, "run", packet_id="run/1.2", packet=version))
    assert refused.value.code == ArrivalFault.PACKET_CHANGED
    asking = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which city?"))))
    with pytest.raises(RequestRejected):
        answer_to(asking.state, signal(kind, "run", packet_id=asking.question().id, packet="0" * 64, text="Rome"))


def test_a_question_says_to_whom_it_goes_since_when_and_who_has_approved_it() -> None:
    tools = tuple(replace(tool, category=ToolCategory.FILE_SYSTEM) for tool in TOOLS)
    run = Run(manifest_of(boundary=Boundary(name="test", four_eyes=(ToolCategory.FILE_SYSTEM,)), tools=tools))
    run.proposes(wants("write", 1), wants("write", 2, call_id="other"))
    first, second = approvals_in(run.state, run.turns)
    assert (first.queue, first.severity, first.asked_at_ms) == ("operator", Gravity.HIGH, run.turns[1].at_ms)
    assert second.group == first.id
    assert (first.approvals_needed, first.approved_by) == (2, ())
    run.take(arrivals.ApprovalGiven("1.2", "ann"))
    first, _ = approvals_in(run.state, run.turns)
    assert first.approved_by == ("ann",)
    assert approvals_in(run.state)[0].asked_at_ms == 0


def test_a_release_of_budget_is_shown_with_what_it_releases() -> None:
    run = Run()
    run.proposes(wants("write"))
    question = run.question()
    released = replace(question, packet=None, purpose=AskPurpose.RELEASE, releases=((int(Dimension.TOOL_CALLS), 5),))
    run.state.commands.open[question.id] = released
    (shown,) = approvals_in(run.state)
    assert (shown.releases, shown.packet, shown.tool) == ((("tool_calls", 5),), "", "")
    report = answer_to(run.state, signal(Signal.APPROVE, "run", packet_id=shown.id))
    assert report == PersonApproved("1.2", "ada")


def test_a_yes_to_a_doubtful_answer_is_a_yes_and_no_words() -> None:
    run = Run(manifest_of(goal=Goal("be sure", confidence_ppm_min=1)))
    run.says("perhaps")
    (shown,) = approvals_in(run.state)
    assert shown.purpose is What.REVIEW
    yes = answer_to(run.state, signal(Signal.APPROVE, "run", packet_id=shown.id))
    no = answer_to(run.state, signal(Signal.REJECT, "run", packet_id=shown.id, reason="wrong"))
    assert isinstance(yes, PersonApproved)
    assert isinstance(no, arrivals.ApprovalRefused)


def test_a_packet_of_another_run_is_refused() -> None:
    with pytest.raises(RequestRejected) as refused:
        answer_to(Run().state, signal(Signal.APPROVE, "run", packet_id="other/1.2"))
    assert refused.value.code == PACKET_UNKNOWN


def test_every_other_signal_is_reported_as_it_stands() -> None:
    assert answer_to(Run().state, signal(Signal.PAUSE, "run")) == arrivals.PauseRequested("ada")
