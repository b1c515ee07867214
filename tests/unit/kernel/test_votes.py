"""Votes: when the children of a node may be counted, and what a count comes to."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import CodeReturned
from remit.core.journal.commands import CallCode, CancelCommand, StartChild
from remit.core.journal.rulings import OutcomeParked, VoteCounted
from remit.core.limits.budget import Budget, Dimension
from remit.core.record import replace
from remit.core.run.manifest import CODE_TIMEOUT_MS
from remit.core.work.graph import NodeOutcome
from remit.kernel.results.votes import in_order, voting_answers
from remit.kernel.traces import ChildTrace
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import manifest_of
from tests.unit.kernel.plans import SCHEMA, PlanRun, vote_of

NO_CONSENSUS = ErrorCode.ORCHESTRATION_NO_CONSENSUS
ENGINE = ErrorCode.INFERENCE_ENGINE_ERROR


class TestCounting:
    def test_nothing_is_counted_before_all_have_ended(self) -> None:
        run = PlanRun(vote_of())
        run.answers("a")
        run.answers("a")
        assert run.all(CallCode) == []
        run.answers("b")
        assert [command.name for command in run.open(CallCode)] == ["vote:majority"]
        assert run.open(CallCode)[0].timeout_ms == CODE_TIMEOUT_MS

    def test_the_answer_of_the_run_is_the_winners_own_words(self) -> None:
        run = PlanRun(vote_of())
        started = [run.open(StartChild)[0].id]
        run.answers("a")
        started.append(run.open(StartChild)[0].id)
        run.answers("b")
        run.answers("b")
        run.elects(1)
        assert run.last(VoteCounted) == VoteCounted(started[1], 2, 3, 666_667)
        assert (run.state.end.ending, run.state.result.answer, run.state.result.confidence_ppm) == (
            Ending.SUCCESS,
            "b",
            666_667,
        )
        assert run.state == fold_journal(run.journal)

    def test_a_replica_that_failed_has_no_vote_and_does_not_fail_the_others(self) -> None:
        run = PlanRun(vote_of())
        run.ends(Ending.VALIDATION_FAIL, text="half an answer")
        run.answers("b")
        run.answers("c")
        run.elects(0, 1, 500_000)
        assert (run.state.result.answer, run.last(VoteCounted).answered) == ("b", 2)

    @pytest.mark.parametrize("ending", [Ending.CONFIRM_REQUIRED, Ending.BUDGET_EXHAUSTED, Ending.TIMEOUT])
    def test_whatever_befalls_a_replica_the_next_one_is_asked(self, ending: Ending) -> None:
        run = PlanRun(vote_of())
        run.ends(ending)
        assert (run.state.end.ending, len(run.open(StartChild))) == (None, 1)

    def test_one_replica_is_a_vote_of_one(self) -> None:
        run = PlanRun(vote_of(1))
        run.answers("a")
        run.elects(0, 1, 1_000_000)
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "a")

    def test_half_of_the_replicas_are_no_quorum(self) -> None:
        run = PlanRun(vote_of(2))
        run.answers("a")
        run.ends(Ending.IMPOSSIBLE)
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, NO_CONSENSUS)
        assert run.state.end.message == "only 1 of 2 replicas answered, and it takes more than half"
        assert run.all(CallCode) == []

    def test_a_replica_that_was_partly_successful_votes(self) -> None:
        run = PlanRun(vote_of(1))
        run.ends(Ending.PARTIAL_SUCCESS, text="most of it")
        run.elects(0, 1, 1_000_000)
        assert run.state.result.answer == "most of it"

    def test_a_tie_does_not_depend_on_who_was_faster(self) -> None:
        run = PlanRun(vote_of(is_parallel=True))
        ids = [command.id for command in run.open(StartChild)]
        for place in (2, 1, 0):
            run.answers("abc"[place], place=place)
        assert [child.command_id for child in run.state.children.ended] == ids[::-1]
        assert [child.text for child in voting_answers(run.state.children.ended)] == ["a", "b", "c"]
        run.elects(0, 1, 333_333)
        assert (run.state.result.answer, run.last(VoteCounted).winner) == ("a", ids[0])

    def test_replicas_are_ordered_by_their_numbers_and_not_by_their_letters(self) -> None:
        started = [ChildTrace(f"{turn}.{place}", "replica", Ending.SUCCESS) for turn in (2, 10) for place in (3, 12)]
        assert in_order([started[3], started[0], started[2], started[1]]) == started


class TestFailing:
    def test_a_vote_without_a_winner_is_no_consensus_with_its_reason(self) -> None:
        run = self.counting()
        run.take(CodeReturned(run.open(CallCode)[0].id, problems=("three answers, three opinions",)))
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, NO_CONSENSUS)
        assert run.state.end.message == "three answers, three opinions"

    def test_a_vote_that_gives_no_reason_gets_one(self) -> None:
        run = self.counting()
        run.take(CodeReturned(run.open(CallCode)[0].id))
        assert run.state.end.message == "the vote named no winner"

    @pytest.mark.parametrize(
        ("winner", "votes", "ppm"),
        [(-1, 1, 1), (3, 1, 1), (0, 0, 1), (0, 4, 1), (0, 1, -1), (0, 1, 1_000_001)],
    )
    def test_a_vote_cannot_make_up_a_winner_its_votes_or_its_confidence(
        self, winner: int, votes: int, ppm: int
    ) -> None:
        run = self.counting()
        run.elects(winner, votes, ppm)
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, NO_CONSENSUS)
        assert run.all(VoteCounted) == []

    def test_a_voter_that_breaks_fails_the_run(self) -> None:
        run = self.counting()
        run.raises()
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_EXECUTION_FAILED)

    def test_when_none_answered_the_run_fails_as_the_last_of_them(self) -> None:
        run = PlanRun(vote_of(2))
        run.ends(Ending.IMPOSSIBLE, error=ErrorCode.INFERENCE_CONTEXT_EXCEEDED, message="too long")
        run.ends(Ending.UNAVAILABLE_DEP, error=ENGINE, message="down")
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ENGINE)
        assert run.state.end.message.endswith(": down")

    def test_an_inference_error_is_shown_before_any_other(self) -> None:
        run = PlanRun(vote_of(2))
        run.ends(Ending.UNAVAILABLE_DEP, error=ENGINE, message="down")
        run.ends(Ending.VALIDATION_FAIL, error=ErrorCode.CONSTRAINT_JSON_INVALID, message="no JSON")
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ENGINE)

    @pytest.mark.parametrize("is_parallel", [False, True])
    def test_when_all_are_lost_the_run_says_so(self, is_parallel: bool) -> None:
        run = PlanRun(vote_of(is_parallel=is_parallel))
        for _ in range(3):
            run.vanishes()
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_UNAVAILABLE)

    def counting(self) -> PlanRun:
        run = PlanRun(vote_of())
        for text in "abc":
            run.answers(text)
        return run


class TestStoppingEarly:
    def test_it_is_counted_after_every_answer_that_can_be_compared(self) -> None:
        run = PlanRun(vote_of(5, early_stop=True))
        run.answers("a")
        assert run.all(CallCode) == []
        run.answers("b")
        assert len(run.open(CallCode)) == 1

    def test_a_vote_that_may_still_change_asks_another_replica(self) -> None:
        run = PlanRun(vote_of(3, early_stop=True))
        run.answers("a")
        run.answers("b")
        run.elects(0, 1, 500_000, is_settled=False)
        assert (run.all(VoteCounted), len(run.open(StartChild))) == ([], 1)
        run.answers("b")
        run.elects(1)
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "b")

    def test_a_settled_vote_spares_the_others(self) -> None:
        run = PlanRun(vote_of(3, early_stop=True))
        run.answers("a")
        run.answers("a")
        run.elects(0, 2, 1_000_000)
        assert (run.state.end.ending, len(run.all(StartChild))) == (Ending.SUCCESS, 2)

    def test_a_vote_is_not_settled_before_half_of_all_have_answered(self) -> None:
        run = PlanRun(vote_of(5, early_stop=True))
        run.answers("a")
        run.answers("a")
        run.elects(0, 2, 1_000_000)
        assert len(run.open(StartChild)) == 1

    def test_it_ends_as_soon_as_too_few_could_answer(self) -> None:
        run = PlanRun(vote_of(5, early_stop=True))
        run.answers("a")
        for _ in range(3):
            run.ends(Ending.IMPOSSIBLE)
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, NO_CONSENSUS)
        assert len(run.all(StartChild)) == 4

    def test_it_fails_as_the_last_did_as_soon_as_too_few_could_answer_and_none_has(self) -> None:
        run = PlanRun(vote_of(3, early_stop=True))
        run.ends(Ending.UNAVAILABLE_DEP, error=ENGINE)
        run.ends(Ending.UNAVAILABLE_DEP, error=ENGINE)
        assert (run.state.end.error, len(run.all(StartChild))) == (ENGINE, 2)

    def test_without_early_stop_all_are_asked_whatever_they_say(self) -> None:
        run = PlanRun(vote_of(3))
        run.ends(Ending.IMPOSSIBLE)
        run.ends(Ending.IMPOSSIBLE)
        assert len(run.open(StartChild)) == 1


class TestSpending:
    def test_a_replica_that_could_not_be_started_has_no_vote_and_the_others_are_counted(self) -> None:
        run = self.within(Budget(child_runs=2))
        run.answers("a")
        run.answers("a")
        assert len(run.open(CallCode)) == 1
        run.elects(0, 2, 1_000_000)
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "a")

    def test_an_early_vote_that_is_not_settled_stands_when_no_replica_can_follow(self) -> None:
        run = self.within(Budget(child_runs=2), early_stop=True)
        run.answers("a")
        run.answers("b")
        run.elects(0, 1, 500_000, is_settled=False)
        # The third could not be started, so what there is is counted once more, for good.
        run.elects(0, 1, 500_000, is_settled=False)
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "a")

    def test_an_early_vote_without_a_leader_is_no_consensus_when_no_replica_can_follow(self) -> None:
        run = self.within(Budget(child_runs=2), early_stop=True)
        run.answers("a")
        run.answers("b")
        run.elects(0, 0, 0, is_settled=False)
        run.elects(0, 0, 0, is_settled=False)
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, NO_CONSENSUS)

    def test_too_few_that_could_be_started_are_no_consensus(self) -> None:
        run = self.within(Budget(child_runs=1))
        run.answers("a")
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, NO_CONSENSUS)

    @pytest.mark.parametrize("is_parallel", [False, True])
    def test_when_none_could_be_started_the_budget_is_exhausted(self, is_parallel: bool) -> None:
        run = self.within(Budget(child_runs=0), is_parallel=is_parallel)
        assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
        assert run.state.end.message == "none of 3 replicas could be started with what is left of the budget"

    def test_replicas_beside_each_other_are_started_all_or_none(self) -> None:
        run = self.within(Budget(child_runs=2), is_parallel=True)
        assert (run.state.end.ending, run.all(StartChild)) == (Ending.BUDGET_EXHAUSTED, [])

    def test_a_replica_that_used_all_its_steps_leaves_enough_for_the_vote(self) -> None:
        run = self.within(Budget(steps=30))
        for _ in range(3):
            (child,) = run.open(StartChild)
            run.take(arrivals.ChildEnded(child.id, Ending.SUCCESS, "a", child.lease))
        run.elects(0, 3, 1_000_000)
        assert run.state.end.ending is Ending.SUCCESS
        assert run.state.spending.left[Dimension.STEPS] >= 0

    def within(self, budget: Budget, *, early_stop: bool = False, is_parallel: bool = False) -> PlanRun:
        redundancy = Redundancy(3, early_stop=early_stop, is_parallel=is_parallel)
        return PlanRun(manifest_of(graph=redundant_graph(SCHEMA, "", redundancy), budget=budget))


class TestInterrupting:
    def test_an_answer_that_comes_while_paused_is_counted_after_the_resume(self) -> None:
        run = PlanRun(vote_of(1))
        run.pauses()
        run.answers("a")
        assert (run.now(OutcomeParked)[0].outcome, run.all(CallCode)) == (NodeOutcome.JOINED, [])
        run.resumes()
        assert len(run.open(CallCode)) == 1

    def test_a_count_that_comes_while_paused_stands(self) -> None:
        run = PlanRun(vote_of(1))
        run.answers("a")
        run.pauses()
        run.elects(0, 1, 1_000_000)
        assert (run.state.end.ending, run.state.result.answer) == (None, "a")
        run.resumes()
        assert (run.state.end.ending, len(run.all(VoteCounted))) == (Ending.SUCCESS, 1)

    def test_an_undecided_vote_goes_on_after_a_pause(self) -> None:
        run = PlanRun(vote_of(3, early_stop=True))
        run.answers("a")
        run.answers("b")
        run.pauses()
        run.elects(0, 1, 500_000, is_settled=False)
        assert run.open(StartChild) == []
        run.resumes()
        assert len(run.open(StartChild)) == 1

    def test_a_cancel_reaches_every_replica(self) -> None:
        run = PlanRun(vote_of(is_parallel=True))
        children = {command.run_id for command in run.open(StartChild)}
        run.take(arrivals.CancelRequested("ada"))
        assert run.state.end.ending is Ending.USER_CANCEL
        assert {command.run_id for command in run.now(CancelCommand)} == children

    def test_the_deadline_of_the_run_ends_its_replicas_and_its_vote(self) -> None:
        manifest = replace(vote_of(), deadline_at_ms=1_000_500)
        run = PlanRun(manifest)
        (child,) = run.open(StartChild)
        run.take(arrivals.ChildEnded(child.id, Ending.TIMEOUT, "cut"), after_ms=600)
        assert (run.state.end.ending, run.all(StartChild)) == (Ending.TIMEOUT, [child])
