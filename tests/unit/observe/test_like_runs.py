"""What runs needed is read off their turns, and says what those like them need."""

from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import RunStarted, SessionNoted
from remit.core.journal.codec import encode_turn
from remit.core.journal.rulings import StoppedEarly
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.foresight import MILESTONES_MAX, RUNS_MIN, Foresight, Milestone
from remit.core.limits.tools import ToolCall
from remit.core.record import BlobRef, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Manifest, Origin
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.goal import Goal, TaskClass
from remit.core.work.graph import Graph, NodeKind
from remit.core.work.plan import PlanTrace
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.cost.like_runs import (
    Course,
    Need,
    Stopped,
    course_of,
    early_stop,
    foresight_of,
    likeness_of,
    needs_of,
    shortfall_in,
)
from remit.observe.linked_turns import History, read_history, states
from remit.observe.reading import reading_of
from remit.observe.views.explain import explain
from remit.observe.views.sentence import said_needs, said_stopped, sentence
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import Breaks, Model, Reply, in_turn, proposes, proposes_all, says
from remit.testing.world import SimulatedWorld
from tests.simulation.scenarios import LEASE
from tests.unit.kernel.builders import manifest_of

INPUT, OUTPUT = int(Dimension.INPUT_TOKENS), int(Dimension.OUTPUT_TOKENS)
CALLS, STEPS, EFFECTS = int(Dimension.TOOL_CALLS), int(Dimension.STEPS), int(Dimension.SIDE_EFFECTS)
OK = '{"ok": true}'


def played(model: Model, *, reply: Reply = Reply.APPROVE, **parts: Any) -> SimulatedRun:
    tools = {name: lambda arguments: OK for name in ("look", "write", "pay")}
    world = SimulatedWorld(model=model, tools=tools, person=lambda chance: reply)
    return world.finish(manifest_of(**parts))


def history(run: SimulatedRun) -> History:
    return read_history(run.run_id, run.journal)


def course(run: SimulatedRun) -> Course:
    return course_of(states(history(run)))


def looks(n: int, tokens: int = 4) -> ModelResult:
    call = ToolCall(f"c{n}", "look", {"n": n})
    return ModelResult(tool_calls=(call,), usage=TokenUsage(prompt_tokens=10, output_tokens=tokens))


def as_enough(found: Course) -> Foresight:
    foresight = foresight_of([found] * RUNS_MIN)
    assert foresight is not None
    return foresight


TWO_LOOKS = played(in_turn(looks(1), looks(2), says("done")))


def test_what_a_run_needed_is_counted_from_each_of_its_calls() -> None:
    found = course(TWO_LOOKS)
    assert [dict(milestone.least).get(CALLS, 0) for milestone in found] == [2, 1, 0]
    assert [dict(milestone.least)[OUTPUT] for milestone in found] == [12, 8, 4]
    # A step for each think, act and check; the one that is about to be entered counts.
    assert [dict(milestone.least)[STEPS] for milestone in found] == [6, 4, 2]
    assert all(dict(milestone.most)[OUTPUT] == dict(milestone.least)[OUTPUT] for milestone in found)


def test_only_counters_are_foreseen() -> None:
    named = {dimension for milestone in course(TWO_LOOKS) for dimension, _ in (*milestone.least, *milestone.most)}
    assert not named & {Dimension.WALL_CLOCK_MS, Dimension.CONTEXT_TOKENS, Dimension.RETRIES, Dimension.DEPTH}


def test_what_failed_attempts_cost_is_not_needed_but_may_be() -> None:
    def stumbling(messages: Any, chance: Any) -> ModelResult | Breaks:
        failures.append(len(messages))
        if len(failures) == 1:
            return Breaks(ErrorCode.INFERENCE_ENGINE_ERROR, was_cut=True)
        return says("done")

    failures: list[int] = []
    run = played(stumbling)
    assert (run.ending, len(failures)) == (Ending.SUCCESS, 2)
    (milestone,) = course(run)
    assert dict(milestone.least)[OUTPUT] == 4
    assert dict(milestone.most)[OUTPUT] > 4
    assert shortfall_in(states(history(run)), as_enough((milestone,))) is None


def test_parallel_calls_are_counted_together() -> None:
    run = played(in_turn(proposes_all(("look", {"n": 1}), ("look", {"n": 2}), ("look", {"n": 3})), says("done")))
    assert [dict(milestone.least).get(CALLS, 0) for milestone in course(run)] == [3, 0]


def test_what_people_release_is_not_needed_of_the_budget() -> None:
    run = played(in_turn(proposes("pay", {"n": 1}), says("paid")), budget=Budget(side_effects=0))
    assert run.ending is Ending.SUCCESS
    first = course(run)[0]
    assert dict(first.most)[EFFECTS] == 1
    assert EFFECTS not in dict(first.least)


def test_what_a_child_spends_counts_when_its_parent_settles_it() -> None:
    world = SimulatedWorld(model=in_turn(proposes("ask_child", {"n": 1}), says("done")))
    run = world.finish(manifest_of())
    assert run.ending is Ending.SUCCESS
    assert len(world.run_ids()) == 2
    child = world.run(world.run_ids()[1]).state
    spent = run.state.used[OUTPUT]
    assert dict(course(run)[0].least)[OUTPUT] == spent
    assert spent > child.used[OUTPUT] > 0
    assert dict(LEASE)["output_tokens"] > spent


@pytest.mark.parametrize("budget", [Budget(tool_calls=1), Budget(output_tokens=9)])
def test_nothing_is_learned_from_a_run_that_failed(budget: Budget) -> None:
    run = played(in_turn(looks(1), looks(2), says("done")), budget=budget)
    assert run.ending is Ending.BUDGET_EXHAUSTED
    assert course(run) == ()


def test_nothing_is_learned_from_a_run_that_is_open() -> None:
    run = played(in_turn(proposes("pay", {"n": 1})), reply=Reply.IGNORE, boundary=Boundary(approval_wait_ms_max=10**9))
    begun = read_history(run.run_id, run.journal[:2])
    assert course_of(states(begun)) == ()


def test_what_comes_after_the_ending_is_none_of_its_cost() -> None:
    state = TWO_LOOKS.state
    late = encode_turn(take_turn(state, SessionNoted("ada", "key", "1"), state.at_ms))
    noted = read_history("run", (*TWO_LOOKS.journal, late))
    assert len(noted.turns) == state.end.seq + 2
    assert course_of(states(noted)) == course(TWO_LOOKS)


def test_the_least_of_many_runs_is_the_least_of_any_and_the_most_the_most() -> None:
    short = course(played(in_turn(looks(1, 3), says("done"))))
    foresight = foresight_of([course(TWO_LOOKS), short] * RUNS_MIN)
    assert foresight is not None
    assert foresight.runs == 2 * RUNS_MIN
    first = foresight.milestones[0]
    assert (dict(first.least)[OUTPUT], dict(first.most)[OUTPUT]) == (7, 12)
    assert (dict(first.least)[CALLS], dict(first.most)[CALLS]) == (1, 2)


def test_what_one_run_did_without_is_not_needed() -> None:
    idle, busy = (Milestone(((OUTPUT, 1),)),), (Milestone(((OUTPUT, 2), (CALLS, 3)), ((CALLS, 4),)),)
    foresight = foresight_of([busy, idle], runs_min=1)
    assert foresight == Foresight(2, (Milestone(((OUTPUT, 1),), ((CALLS, 4),)),))


def test_a_milestone_that_few_runs_reached_is_left_out() -> None:
    short = course(played(in_turn(looks(1), says("done"))))
    foresight = foresight_of([short] * RUNS_MIN + [course(TWO_LOOKS)] * (RUNS_MIN - 1))
    assert foresight is not None
    assert len(foresight.milestones) == 2


def test_too_few_runs_say_nothing_and_those_without_a_call_are_none() -> None:
    assert foresight_of([course(TWO_LOOKS)] * (RUNS_MIN - 1) + [()] * 5) is None
    assert foresight_of([]) is None


def test_a_long_run_is_foreseen_only_so_far() -> None:
    long = played(in_turn(*(looks(n) for n in range(MILESTONES_MAX + 5)), says("done")), graph=chat_graph(99))
    assert long.ending is Ending.SUCCESS
    assert len(course(long)) == MILESTONES_MAX
    assert len(as_enough(course(long)).milestones) == MILESTONES_MAX


def test_a_run_with_less_left_than_the_least_falls_short_where_that_shows() -> None:
    run = played(in_turn(looks(1), looks(2), says("done")), budget=Budget(tool_calls=1))
    found = shortfall_in(states(history(run)), as_enough(course(TWO_LOOKS)))
    assert found is not None
    assert (found.answers, found.dimension, found.left, found.needed) == (0, Dimension.TOOL_CALLS, 1, 2)
    assert found.seq == 0


def test_a_run_is_like_another_in_everything_that_decides_what_it_needs() -> None:
    manifest = manifest_of()
    request, goal = manifest.request, Goal("fetch it", task_class=TaskClass.CURRENT_FACT)
    unlike = {
        "tenant": replace(manifest, request=replace(request, tenant_id="t")),
        "length": replace(manifest, request=replace(request, messages=(user_message("please " * 99),))),
        "task class": replace(manifest, goal=goal),
        "boundary": replace(manifest, versions=replace(manifest.versions, boundary="b")),
        "graph": replace(manifest, versions=replace(manifest.versions, graph="g")),
        "tools": replace(manifest, versions=replace(manifest.versions, tools="t")),
        "model": replace(manifest, models=(replace(manifest.models[0], name="other"),)),
    }
    found = {name: likeness_of(other) for name, other in unlike.items()}
    assert len({likeness_of(manifest), *found.values()}) == len(unlike) + 1
    assert likeness_of(replace(manifest, run_id="another", caps=(1,) * 15)) == likeness_of(manifest)
    assert likeness_of(replace(manifest, goal=replace(goal, task_class=None))) == likeness_of(manifest)


def test_a_request_is_as_long_wherever_its_words_are_kept() -> None:
    inline = replace(manifest_of(), request=SystemRequest((user_message("ä" * 20),)))
    stored = replace(inline, request=SystemRequest((user_message(BlobRef(b"", 40)),)))
    assert likeness_of(inline) == likeness_of(stored)
    assert likeness_of(replace(inline, request=SystemRequest((user_message("\ud800"),))))


def _without_models() -> Graph:
    nodes = tuple(node for node in chat_graph().nodes if node.kind is not NodeKind.MODEL)
    return replace(chat_graph(), nodes=nodes)


@pytest.mark.parametrize(
    "changes",
    [
        {"parent": Origin("above")},
        {"boundary": Boundary(stops_early=False)},
        {"models": ()},
        {"graph": _without_models()},
    ],
    ids=["a child", "never stopped", "no model", "asks no model itself"],
)
def test_a_run_that_is_not_foreseen_is_like_none(changes: dict[str, Any]) -> None:
    assert likeness_of(replace(manifest_of(), **changes)) == ""


def begun(manifest: Manifest) -> RunState:
    state = RunState()
    apply(state, take_turn(state, RunStarted(manifest, 10), 5), b"")
    return state


def test_an_open_run_says_what_it_still_needs() -> None:
    foresight = Foresight(RUNS_MIN, (Milestone(((OUTPUT, 4),), ((OUTPUT, 90), (CALLS, 3))),))
    state = begun(replace(manifest_of(), foresight=foresight))
    assert needs_of(state) == (Need("output_tokens", 4, 90), Need("tool_calls", 0, 3))
    told = "4 to 90 output_tokens and 0 to 3 tool_calls more, as runs like it did"
    assert said_needs(needs_of(state)) == told
    assert f", needs {told}, and has not ended" in sentence(explain(state, reading_of(())))
    state.counts.iterations = 1
    assert needs_of(state) == ()


def test_a_run_of_which_nothing_is_known_or_that_has_ended_needs_nothing() -> None:
    assert needs_of(begun(manifest_of())) == ()
    assert needs_of(TWO_LOOKS.state) == ()
    foresight = as_enough(course(TWO_LOOKS))
    ended = played(in_turn(says("done")), budget=Budget())
    ended.state.manifest = replace(manifest_of(), foresight=foresight)
    assert needs_of(ended.state) == ()


def test_what_is_needed_exactly_is_said_as_one_number() -> None:
    assert said_needs((Need("tool_calls", 2, 2),)) == "2 tool_calls more, as runs like it did"


def test_a_run_that_was_stopped_early_says_of_what_and_what_that_saved() -> None:
    turn = TWO_LOOKS.turns[-1]
    ruling = StoppedEarly(CALLS, 1, 2, ((OUTPUT, 812), (CALLS, 1)))
    turns = (*TWO_LOOKS.turns[:-1], replace(turn, decisions=(ruling, *turn.decisions)))
    stopped = early_stop(reading_of(turns).stopped)
    assert stopped == Stopped("tool_calls", 1, 2, (("output_tokens", 812), ("tool_calls", 1)))
    told = "1 tool_calls were left and at least 2 needed, which saved at most 812 output_tokens and 1 tool_calls"
    assert said_stopped(stopped) == told
    assert f", was stopped early, since {told}, and ended as" in sentence(explain(TWO_LOOKS.state, reading_of(turns)))
    assert said_stopped(replace(stopped, saved=())) == "1 tool_calls were left and at least 2 needed"


def test_a_run_that_was_not_stopped_early_says_nothing_of_it() -> None:
    assert early_stop(reading_of(TWO_LOOKS.turns).stopped) is None
    explained = explain(TWO_LOOKS.state, reading_of(TWO_LOOKS.turns))
    assert (explained.stopped, explained.needs) == (None, ())


def test_the_maker_of_the_plan_may_only_widen_what_is_thought_to_be_needed_at_most() -> None:
    hopeful = replace(manifest_of(), plan=PlanTrace("model", estimate=(("tool_calls", 9), ("steps", 0))))
    state = begun(hopeful)
    assert needs_of(state) == (Need("tool_calls", 0, 9),)
    state.spending.left[Dimension.TOOL_CALLS] -= 9
    assert needs_of(state) == ()
