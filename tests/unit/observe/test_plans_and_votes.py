"""What plans and votes came to: which steps are finished, which replicas answered, who won."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import CancelRequested, ChildLost
from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import VoteCounted
from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind, schema_text
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.observe.node_names import percent, places_of, vote_words
from remit.observe.reading import reading_of
from remit.observe.steps import CUT_OFF, FAILED, LOST, UNDER_WAY
from remit.observe.views.explain import explain
from remit.observe.views.plans_and_votes import (
    FINISHED,
    NOT_BEGUN,
    SENT_BACK,
    ReplicaTold,
    children_told,
    steps_told,
    vote_told,
)
from remit.observe.views.sentence import sentence
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from tests.unit.kernel.builders import Run, manifest_of
from tests.unit.observe.patterned import (
    BAD,
    FAILS,
    GOOD,
    HOSTILE,
    MIXED,
    QUESTION,
    SCHEMA,
    Ran,
    handlers,
    planned,
    voted,
)


def statuses(ran: Ran) -> list[tuple[str, str]]:
    return [(step.name, step.status) for step in ran.explanation.steps]


def says_good(text: str) -> None:
    if "good" not in text:
        raise ValueError("it must say good")


# Plans.


def test_the_steps_of_a_plan_are_told_with_what_each_gave() -> None:
    ran = planned(Step("find", "find"), Step("order", "rerank"), Step("answer", "infer"), Step("size", "count"))
    assert statuses(ran) == [(name, FINISHED) for name in ("find", "order", "answer", "size")]
    find, order, answer, size = ran.explanation.steps
    assert (find.type, find.gave, find.begun) == ("find", "3 candidates", 1)
    assert str(order.begins).startswith("doc 3: text 3 ")
    assert (answer.gave, answer.begins) == ("a text", "It is 72 m tall.")
    assert (size.gave, size.begins) == ("an object with 1 field", '{"length":16}')


def test_a_plan_that_failed_says_which_steps_are_finished_which_failed_and_which_never_began() -> None:
    ran = planned(Step("answer", "infer"), Step("boom", "break"), Step("never", "count"))
    assert statuses(ran) == [("answer", FINISHED), ("boom", FAILED), ("never", NOT_BEGUN)]
    said = sentence(ran.explanation)
    assert "finished 1 of 3 steps (answer; boom failed and never was not begun)" in said
    assert "because step boom failed: " in said
    assert "raised ValueError" in said
    assert HOSTILE not in said
    assert said.isprintable()


def test_a_step_whose_model_failed_is_named_as_the_reason() -> None:
    ran = planned(Step("find", "find"), Step("answer", "infer"), replies=[FAILS])
    assert statuses(ran) == [("find", FINISHED), ("answer", FAILED)]
    assert "because step answer failed: child " in sentence(ran.explanation)


def test_a_validate_step_that_sent_back_says_how_often() -> None:
    ran = planned(
        Step("answer", "infer"), Step("judge", "validate", retries=2), replies=["bad", "good"], check=says_good
    )
    answer, judge = ran.explanation.steps
    assert (answer.begun, answer.begins, judge.sent_back, judge.gave) == (2, "good", 1, "a text")
    assert "finished 2 of 2 steps (answer and judge; judge sent back once)" in sentence(ran.explanation)


def test_a_validate_step_that_was_never_satisfied_has_failed_and_is_named_once() -> None:
    ran = planned(Step("answer", "infer"), Step("judge", "validate", retries=1), replies=["bad"], check=says_good)
    assert statuses(ran) == [("answer", FINISHED), ("judge", FAILED)]
    assert sentence(ran.explanation).endswith("because step judge: it must say good.")


def test_a_mismatch_is_told_as_one() -> None:
    ran = planned(Step("number", "say"), Step("look", "tool", tool="look"), more={"say": lambda step: "a text"})
    assert ran.response.error is not None
    assert ran.response.error.code == ErrorCode.ORCHESTRATION_STEP_MISMATCH
    assert "because a step cannot work on what it was given: step look" in sentence(ran.explanation)


def test_a_plan_that_stops_in_the_middle_says_what_is_under_way_sent_back_and_cut_off() -> None:
    steps = (Step("answer", "infer", input="x"), Step("judge", "validate", retries=1))
    run = Run(manifest_of(graph=plan_graph(ExecutionPlan(steps), PlanPolicy(), handlers(["x"], says_good))))
    told = steps_told(reading_of(run.turns))
    assert [(step.status, step.begun) for step in told] == [(UNDER_WAY, 1), (NOT_BEGUN, 0)]
    assert "finished no step (answer is under way and judge was not begun)" in sentence(
        explain(run.state, reading_of(run.turns))
    )
    run.take(CancelRequested("ada"))
    assert [step.status for step in steps_told(reading_of(run.turns))] == [CUT_OFF, NOT_BEGUN]


def test_a_step_that_sent_back_and_waits_for_the_new_answer_is_not_finished() -> None:
    ran = planned(
        Step("answer", "infer"),
        Step("judge", "validate", retries=2),
        replies=["bad", FAILS],
        check=says_good,
    )
    assert statuses(ran) == [("answer", FAILED), ("judge", SENT_BACK)]
    assert "judge sent back once" in sentence(ran.explanation)


def test_a_run_that_is_no_plan_has_no_steps_and_one_without_a_ballot_no_vote() -> None:
    run = Run()
    assert steps_told(reading_of(run.turns)) == ()
    assert vote_told(reading_of(run.turns)) is None
    assert children_told(reading_of(run.turns)) == ()


# Votes.


def test_a_vote_is_told_with_its_winner_and_how_many_agree() -> None:
    ran = voted(BAD, GOOD, GOOD)
    vote = ran.explanation.vote
    assert vote is not None
    assert (vote.wanted, vote.winner, vote.votes, vote.confidence_ppm) == (3, 2, 2, 666_667)
    assert [replica.status for replica in vote.replicas] == ["answered"] * 3
    assert "asked 3 replicas, of which 2 agreed (67 %) with the winner, replica 2" in sentence(ran.explanation)


def test_a_replica_that_failed_is_named_with_its_code() -> None:
    ran = voted(GOOD, FAILS, GOOD)
    vote = ran.explanation.vote
    assert vote is not None
    assert (vote.replicas[1].status, vote.replicas[1].code) == (FAILED, ErrorCode.INFERENCE_CONTEXT_EXCEEDED)
    assert "asked 3 replicas (replica 2 failed: INFERENCE_CONTEXT_EXCEEDED)" in sentence(ran.explanation)


def test_no_consensus_is_said_in_one_sentence() -> None:
    ran = voted(GOOD, BAD, MIXED, voting="unanimity")
    assert ran.response.terminal_code is Ending.IMPOSSIBLE
    said = sentence(ran.explanation)
    assert "asked 3 replicas and counted no winner" in said
    assert "because there was no consensus: unanimity voting: candidate 1 differs" in said


def test_where_no_replica_answered_that_is_the_reason() -> None:
    said = sentence(voted(FAILS).explanation)
    assert "because no replica answered: child " in said


def test_a_vote_that_ended_early_says_how_many_were_asked() -> None:
    said = sentence(voted(GOOD, GOOD, GOOD, n=5, early_stop=True).explanation)
    assert "asked 3 of 5 replicas, of which 3 agreed (100 %)" in said


def test_a_replica_that_was_lost_has_no_vote_and_no_code() -> None:
    run = Run(manifest_of(graph=redundant_graph(schema_text(SCHEMA), "", Redundancy())))
    (child,) = run.open(StartChild)
    assert vote_told(reading_of(run.turns)) == vote_told(reading_of(run.turns[:1]))
    run.take(ChildLost(child.id))
    vote = vote_told(reading_of(run.turns))
    assert vote is not None
    assert vote.replicas[0] == ReplicaTold(1, child.run_id, LOST)
    assert "asked 2 of 3 replicas (replica 1 was lost) and counted no winner" in sentence(
        explain(run.state, reading_of(run.turns))
    )


def test_children_are_named_by_their_step_or_their_number() -> None:
    assert [child.name for child in voted(GOOD).explanation.children] == ["replica 1", "replica 2", "replica 3"]
    ran = planned(Step("answer", "infer"))
    assert [child.name for child in ran.explanation.children] == ["step answer"]
    assert ran.explanation.children[0].run_id in ran.children


# Places.


def test_places_say_what_a_node_is_to_people() -> None:
    fan = Node("fan", NodeKind.MAP, children=2, lease=(("steps", 3),), prompt="go")
    graph = Graph("g", "fan", (fan, *TERMINALS), (Edge("fan", "done"),), EXITS)
    places = places_of(graph)
    assert (places.child("fan", 2), places.child("unknown", 1), places.where("fan")) == ("fan 2", "unknown", "")
    assert (places.type_of("fan"), places.step("fan"), places.steps) == ("", "", ())


def test_a_tool_step_has_two_nodes_and_one_name() -> None:
    steps = (Step("look it up", "tool", input={"at": "x"}, tool="look"),)
    places = places_of(plan_graph(ExecutionPlan(steps), PlanPolicy(), handlers(["x"]), QUESTION))
    assert places.steps == ("look it up",)
    assert places.step("look it up:arguments") == places.where("look it up") == "look it up"
    assert (places.where("check"), places.type_of("look it up")) == ("check", "tool")


@pytest.mark.parametrize(("share", "said"), [(0, "0 %"), (666_667, "67 %"), (999_999, "99 %"), (1_000_000, "100 %")])
def test_only_what_is_certain_is_a_hundred_percent(share: int, said: str) -> None:
    assert percent(share) == said


@pytest.mark.parametrize(
    ("votes", "answered", "asked", "said"),
    [
        (2, 3, 3, "2 of 3 replicas agree (50 %): replica 1 wins"),
        (2, 2, 3, "2 of 2 answers agree (50 %): replica 1 wins"),
        (1, 1, 1, "1 of 1 replica agrees (50 %): replica 1 wins"),
    ],
)
def test_a_vote_is_one_sentence(votes: int, answered: int, asked: int, said: str) -> None:
    assert vote_words(VoteCounted("0.1", votes, answered, 500_000), "replica 1", asked) == said
