"""Every run is answerable in one sentence: allowed, chose, called, spent, updated, ended because."""

from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import CancelRequested, ChildSuspended, ToolFailed
from remit.core.journal.codec import hash_turn
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import Boundary
from remit.core.record import replace
from remit.core.run.manifest import Manifest
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.reading import reading_of
from remit.observe.views.explain import Explanation, Spent, explain
from remit.observe.views.sentence import NAMED_MAX, PATH_NODES_MAX, sentence
from remit.orchestrate.facts.first_arrival import started
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import Model, Reply, in_turn, proposes, says
from remit.testing.world import SimulatedWorld
from tests.simulation.play import demo_manifest, demo_world
from tests.simulation.scenarios import TOOLS, played_world


def explained(run: SimulatedRun) -> Explanation:
    return explain(run.state, reading_of(run.turns))


def played(model: Model, reply: Reply = Reply.APPROVE, **changes: Any) -> SimulatedRun:
    manifest: Manifest = replace(demo_manifest(), **changes)
    return SimulatedWorld(model=model, tools={"lookup_order": lambda a: "{}"}, person=lambda c: reply).finish(manifest)


DEMO = explained(demo_world().finish(demo_manifest()))


@pytest.mark.req("4.43")
def test_a_run_is_answered_for_in_one_sentence() -> None:
    assert sentence(DEMO) == (
        "The agent was allowed to call lookup_order and refund under the boundary customer_support (tier 5 of at most 6, "
        "supervised agentic loop; refund only with a person's approval), chose the path prepare > think > act > think > act > think > check > done, called "
        "lookup_order once and refund once (find_order was refused once: TOOL_NOT_FOUND), spent 24 of 200,000 "
        "input_tokens, 12 of 30,000 output_tokens, 2 of 30 tool_calls, 1 of 10 external_api_calls, 3.1 s of 5 min "
        "wall_clock, $0.000012 of $2.00 inference_cost, 8 of 100,000 context_tokens, 1 of 0 side_effects [1 released], 7 of 15 "
        "steps and 1 of 20 human_reviews, updated its state from 1 verified observation (refund) and 1 unchecked observation (lookup_order), and "
        "ended as SUCCESS because it answered and no effect was left uncommitted; nothing checked the answer."
    )


@pytest.mark.req("4.43")
def test_the_parts_of_the_sentence_are_records_for_programs() -> None:
    assert DEMO.allowed.tools == ("lookup_order", "refund")
    assert DEMO.allowed.approval_tools == ("refund",)
    assert DEMO.allowed.approval_effects == ("write", "external")
    assert [(call.tool, call.made, call.committed, call.refused) for call in DEMO.calls] == [
        ("lookup_order", 1, 1, 0),
        ("refund", 1, 1, 0),
        ("find_order", 0, 0, 1),
    ]
    assert DEMO.calls[2].refusals == (("TOOL_NOT_FOUND", 1),)
    assert Spent("tool_calls", 2, 30) in DEMO.spent
    assert [(seen.tool, seen.seq, seen.verifier) for seen in DEMO.observations] == [
        ("lookup_order", 2, "observed"),
        ("refund", 5, "schema"),
    ]
    assert all(len(seen.evidence) == 64 for seen in DEMO.observations)
    assert (DEMO.standing.status, DEMO.standing.code) == ("ended", "SUCCESS")


def test_a_run_that_waits_for_a_person_says_for_which_packet() -> None:
    run = played(in_turn(proposes("refund", {"order_id": "42"})), Reply.IGNORE)
    waiting = up_to_the_question(run)
    assert waiting.standing.status == "waiting"
    assert waiting.standing.code == Ending.CONFIRM_REQUIRED
    assert waiting.standing.questions[0].tool == "refund"
    assert sentence(waiting).endswith(
        "and has not ended: it waits at act under CONFIRM_REQUIRED for an answer to packet demo/1.2 about refund."
    )


def test_a_run_whose_child_waits_for_a_person_names_the_child() -> None:
    run = next(
        run
        for seed in range(100)
        for run in runs_of(seed)
        if any(type(decision).__name__ == "StartChild" for turn in run.turns for decision in turn.decisions)
    )
    state, turns = RunState(), list[Turn]()
    for turn, data in zip(run.turns, run.journal, strict=True):
        apply(state, turn, hash_turn(data))
        turns.append(turn)
        if children := [c.id for c in state.commands.open.values() if type(c).__name__ == "StartChild"]:
            turns.append(take_turn(state, ChildSuspended(children[0], Ending.CONFIRM_REQUIRED), turn.at_ms))
            apply(state, turns[-1], b"head")
            break
    explanation = explain(state, reading_of(turns))
    assert explanation.standing.status == "waiting"
    assert explanation.standing.children[0] in sentence(explanation)


def test_a_cancelled_run_says_who_cancelled_it() -> None:
    run = played(in_turn(proposes("refund", {"order_id": "42"})), Reply.IGNORE)
    state, turns = folded_to_the_question(run)
    turns.append(take_turn(state, CancelRequested("ada", "\x1b[2Jenough"), state.at_ms + 10))
    apply(state, turns[-1], b"head")
    explanation = explain(state, reading_of(turns))
    assert (explanation.standing.code, explanation.standing.by) == ("USER_CANCEL", "ada")
    assert "cancelled by ada" in sentence(explanation)
    assert sentence(explanation).isprintable()


def test_a_refused_effect_is_named_as_left_uncommitted() -> None:
    run = played(in_turn(proposes("refund", {"order_id": "42"}), says("Sorry.")), Reply.REJECT)
    assert ", leaving refund uncommitted." in sentence(explained(run))
    assert explained(run).calls[0].refusals == (("APPROVAL_REJECTED", 1),)


def test_a_run_that_ends_for_lack_of_budget_says_which() -> None:
    run = played(in_turn(says("hi")), caps=(0,) * 15)
    assert "ended as BUDGET_EXHAUSTED" in sentence(explained(run))
    assert "spent" in sentence(explained(run))


def test_a_run_that_has_only_begun_is_under_way() -> None:
    state = RunState()
    turn = take_turn(state, started(demo_manifest(), []), 5)
    apply(state, turn, b"head")
    assert sentence(explain(state, reading_of([turn]))).endswith("and has not ended: it is under way at think.")


@pytest.mark.slow
def test_a_paused_run_says_where_it_stands() -> None:
    paused = next(run for seed in range(200) for run in runs_of(seed) if run.state.place.paused)
    assert "it is paused at" in sentence(explained(paused))


def test_a_run_without_tools_was_allowed_none() -> None:
    run = played(in_turn(says("hi")), boundary=Boundary(name="bare", allowed_tools=()))
    text = sentence(explained(run))
    assert "was allowed to call no tool under the boundary bare" in text
    assert "called no tool" in text
    assert "updated no state, since nothing was observed and verified" in text


def test_a_tool_whose_permission_is_lacking_was_not_allowed() -> None:
    run = played(in_turn(says("hi")), boundary=Boundary(name="bare"))
    assert explained(run).allowed.tools == ("refund",)


def test_the_clock_of_an_ended_run_stopped_with_its_ending() -> None:
    late = next(run for seed in range(300) for run in runs_of(seed) if run.state.end.addenda)
    spent = {entry.dimension: entry.used for entry in explained(late).spent}
    until_ms = late.turns[late.state.end.seq].at_ms - late.turns[0].at_ms
    assert spent.get("wall_clock_ms", 0) <= until_ms
    assert explained(late).addenda == late.state.end.addenda


def test_every_simulated_run_has_one_printable_sentence() -> None:
    for seed in range(15):
        for run in runs_of(seed):
            text = sentence(explained(run))
            assert text.isprintable()
            assert text.startswith("The agent was allowed to call ")
            assert text.endswith(".")


def test_the_calls_of_a_tool_add_up_to_what_became_of_them() -> None:
    for seed in range(15):
        for run in runs_of(seed):
            for call in explained(run).calls:
                assert call.made >= call.committed + call.failed + call.in_doubt + call.under_way
                assert call.refused == sum(count for _, count in call.refusals)


def test_a_call_that_is_under_way_or_in_doubt_is_shown_as_such() -> None:
    run = played(in_turn(proposes("refund", {"order_id": "42"})), Reply.APPROVE)
    state, turns = RunState(), list[Turn]()
    for turn, data in zip(run.turns, run.journal, strict=True):
        apply(state, turn, hash_turn(data))
        turns.append(turn)
        if state.calls.made:
            break
    assert "called refund once [1 under way]" in sentence(explain(state, reading_of(turns)))
    timeout = ToolFailed(next(iter(state.calls.made)), ErrorCode.TOOL_TIMEOUT)
    turns.append(take_turn(state, timeout, state.at_ms))
    apply(state, turns[-1], b"head")
    assert "called refund once [1 outcome unknown]" in sentence(explain(state, reading_of(turns)))
    assert explain(state, reading_of(turns)).calls[0].in_doubt == 1


def test_a_read_that_the_ending_cut_off_is_shown_with_an_unknown_outcome() -> None:
    run = played(in_turn(proposes("lookup_order", {"order_id": "42"})))
    state, turns = RunState(), list[Turn]()
    for turn, data in zip(run.turns, run.journal, strict=True):
        apply(state, turn, hash_turn(data))
        turns.append(turn)
        if state.calls.made:
            break
    turns.append(take_turn(state, CancelRequested("ada"), state.at_ms))
    apply(state, turns[-1], b"head")
    assert "called lookup_order once [1 outcome unknown]" in sentence(explain(state, reading_of(turns)))


def test_a_sentence_counts_what_it_does_not_name() -> None:
    tools = tuple(replace(tool, name=f"tool{place}") for place, tool in enumerate(TOOLS * 2))
    run = played(in_turn(says("hi")), tools=tools, boundary=Boundary(name="wide", permissions=("vault.open",)))
    assert f"{len(tools) - NAMED_MAX} more under the boundary wide" in sentence(explained(run))
    long = replace(DEMO, path=tuple(f"node{place}" for place in range(30)))
    assert f"node5 > ({30 - PATH_NODES_MAX} more) > node24" in sentence(long)


def test_a_run_that_took_no_step_and_spent_nothing_says_so() -> None:
    bare = replace(DEMO, path=(), spent=(), standing=replace(DEMO.standing, reason=""))
    assert "chose the path of no step" in sentence(bare)
    assert "spent nothing" in sentence(bare)
    assert "because the condition SUCCESS was met" in sentence(bare)


def folded_to_the_question(run: SimulatedRun) -> tuple[RunState, list[Turn]]:
    state, turns = RunState(), list[Turn]()
    for turn, data in zip(run.turns, run.journal, strict=True):
        apply(state, turn, hash_turn(data))
        turns.append(turn)
        if state.people.asking:
            break
    return state, turns


def up_to_the_question(run: SimulatedRun) -> Explanation:
    state, turns = folded_to_the_question(run)
    return explain(state, reading_of(turns))


def runs_of(seed: int) -> list[SimulatedRun]:
    world = played_world(seed)
    return [world.run(run_id) for run_id in world.run_ids()]
