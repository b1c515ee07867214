"""What becomes of a proposed call: ordered, held, refused; and later settled."""

import pytest

from remit.core.failure import ErrorCode, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, CallTool, ReconcileTool, StartChild
from remit.core.journal.rulings import Answer, Rung
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import Effect
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.call_rulings import INVALID, hold_call, issue_call, refuse_call, settle_call
from remit.kernel.results.endings import DENIED
from tests.unit.kernel.builders import Run, manifest_of, wants


def key_of(tool: str, n: int = 1) -> tuple[str, bytes]:
    return tool, wants(tool, n).arguments_hash


def test_a_call_is_ordered_under_a_key_of_our_own() -> None:
    tally = Run().tally()
    issue_call(tally, wants("look", call_id="theirs"))
    issue_call(tally, wants("look", call_id="theirs"))
    ordered = [command for command in tally.decisions if isinstance(command, CallTool)]
    assert [command.key for command in ordered] == ["run:1.0", "run:1.1"]
    assert tally.repeats == (key_of("look"),) * 2


def test_what_an_order_reserves_is_promised_from_there_on() -> None:
    tally = Run(manifest_of(budget=Budget(tool_calls=1))).tally()
    issue_call(tally, wants("look", 1))
    assert authorize(wants("look", 2), tally).code == Refusal.BUDGET_EXHAUSTED


def test_an_ordered_change_is_a_claim_until_it_is_proven() -> None:
    tally = Run().tally()
    issue_call(tally, wants("write"), approved_by="ada")
    assert tally.uncommitted == {key_of("write"): Rung.ATTEMPTED}
    command = tally.decisions[0]
    assert isinstance(command, CallTool)
    assert (command.mutating, command.approved_by) == (True, "ada")


def test_a_delegating_call_becomes_a_child() -> None:
    tally = Run().tally()
    issue_call(tally, wants("ask_child"))
    assert isinstance(tally.decisions[0], StartChild)
    assert tally.uncommitted == {}


def test_a_held_call_reserves_a_review_and_nothing_else() -> None:
    run = Run()
    run.proposes(wants("pay"))
    assert run.question().reserved == ((int(Dimension.HUMAN_REVIEWS), 1),)
    assert run.reserved(Dimension.TOOL_CALLS) == run.reserved(Dimension.SIDE_EFFECTS) == 0


def test_the_packet_is_bound_to_the_bytes_that_will_run() -> None:
    run = Run()
    call = wants("pay")
    run.proposes(call)
    packet = run.question().packet
    assert packet is not None
    assert packet.call == call
    assert packet.tool_version == run.state.derived.tools["pay"].version
    assert run.state.manifest is not None
    assert packet.boundary_version == run.state.manifest.versions.boundary
    assert len(packet.reasons) == 2


@pytest.mark.parametrize(("side_effects", "releases"), [(0, ((int(Dimension.SIDE_EFFECTS), 1),)), (2, ())])
def test_the_packet_says_when_it_lets_a_change_through_where_none_is_allowed(
    side_effects: int, releases: tuple[tuple[int, int], ...]
) -> None:
    run = Run(manifest_of(boundary=Boundary(budget=Budget(side_effects=side_effects))))
    run.proposes(wants("pay"))
    packet = run.question().packet
    assert packet is not None
    assert packet.releases == releases


def test_a_held_read_releases_nothing_and_claims_nothing() -> None:
    run = Run(manifest_of(boundary=Boundary("strict", approval_effects=(Effect.READ,))))
    run.proposes(wants("look"))
    packet = run.question().packet
    assert packet is not None
    assert (packet.releases, run.state.effects.uncommitted) == ((), {})


def test_a_call_that_needs_a_person_is_refused_when_no_review_is_left() -> None:
    tally = Run(manifest_of(budget=Budget(human_reviews=0))).tally()
    assert hold_call(tally, wants("write")) == Refusal.BUDGET_EXHAUSTED
    refused = tally.decisions[0]
    assert isinstance(refused, rulings.ToolCallRefused)
    assert refused.reason == "write needs a person and human_reviews_max=0 is spent"


def test_a_refused_change_stays_a_claim() -> None:
    tally = Run().tally()
    refuse_call(tally, wants("write"), Refusal.PERMISSION_DENIED, "no")
    assert tally.uncommitted == {key_of("write"): Refusal.PERMISSION_DENIED}


def test_a_refused_call_that_changes_nothing_claims_nothing() -> None:
    tally = Run().tally()
    refuse_call(tally, wants("look"), Refusal.PERMISSION_DENIED, "no")
    assert tally.uncommitted == {}


def test_a_call_of_a_tool_that_nobody_knows_claims_the_worst() -> None:
    tally = Run().tally()
    refuse_call(tally, wants("nothing"), Refusal.NOT_OFFERED, "no")
    assert tally.uncommitted == {key_of("nothing"): ErrorCode.TOOL_NOT_FOUND}


def test_the_model_is_told_of_a_refusal_with_a_bound_on_its_tokens() -> None:
    tally = Run().tally()
    refuse_call(tally, wants("look"), Refusal.PERMISSION_DENIED, "no")
    refused = tally.decisions[0]
    assert isinstance(refused, rulings.ToolCallRefused)
    assert tally.context_tokens == 30 + refused.tokens_bound
    assert tally.last_error == Refusal.PERMISSION_DENIED


def test_refusals_of_authority_and_of_form_are_told_apart() -> None:
    assert not {*DENIED} & {*INVALID}


def test_a_call_is_charged_in_full_whatever_came_of_it() -> None:
    run = Run()
    run.proposes(wants("fetch"))
    reserved = run.open(CallTool)[0].reserved
    run.fails("fetch")
    assert run.last(rulings.CallSettled).charged == reserved
    assert run.used(Dimension.EXTERNAL_API_CALLS) == 1


def test_only_a_committed_call_names_who_verified_it() -> None:
    run = Run()
    run.proposes(wants("look"))
    tally = run.tally()
    settle_call(tally, run.open(CallTool)[0], Rung.OBSERVED, verifier="schema", code=ErrorCode.TOOL_EXECUTION_FAILED)
    settled = tally.decisions[0]
    assert isinstance(settled, rulings.CallSettled)
    assert settled.verifier == ""
    assert tally.failures_in_a_row == {"look": (1, ErrorCode.TOOL_EXECUTION_FAILED, 1)}


def test_a_call_that_succeeds_after_failures_ends_the_row() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.fails("look")
    run.proposes(wants("look"))
    tally = run.tally()
    settle_call(tally, run.open(CallTool)[0], Rung.COMMITTED, verifier="schema", evidence=b"evidence")
    assert (tally.failures_in_a_row, tally.committed) == ({"look": None}, ("look",))


def in_doubt(tool: str) -> Run:
    run = Run()
    run.proposes(wants(tool))
    run.approves()
    run.fails(tool, ErrorCode.TOOL_TIMEOUT)
    return run


def test_a_late_outcome_withdraws_the_question_about_it() -> None:
    run = in_doubt("write")
    assert len(run.open(AskHuman)) == 1
    run.returns("write")
    assert run.last(rulings.QuestionSettled).answer is Answer.WITHDRAWN
    assert run.open(AskHuman) == []


def test_a_late_outcome_withdraws_what_its_tool_was_asked() -> None:
    run = in_doubt("pay")
    inquiry = run.open(ReconcileTool)[0]
    run.returns("pay")
    assert run.open(ReconcileTool) == []
    assert run.fault_of(arrivals.ToolReconciled(inquiry.id, arrivals.Happened.NO)) == "DUPLICATE"
    assert run.state.effects.uncommitted == {}
