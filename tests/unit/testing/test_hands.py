"""The hands of a simulated world perform every kind of command, well or badly."""

from collections.abc import Sequence
from random import Random

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import COMMANDS, AskHuman, AskPurpose, StartChild
from remit.core.journal.rulings import Answer, QuestionSettled
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelResult
from remit.core.run.messages import Message, user_message
from remit.core.work.goal import Criterion, Goal
from remit.testing.scripts import Reply, Stops, in_turn, proposes, says
from remit.testing.trouble import Faults
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.scenarios import review_graph, tools
from tests.unit.kernel.builders import manifest_of

LOOKS = in_turn(proposes("look", {"n": 1}), says("done"))
PAYS = in_turn(proposes("pay", {"n": 1}), says("done"))
WRITES = in_turn(proposes("write", {"n": 1}), says("done"))
DELEGATES = in_turn(proposes("ask_child", {"n": 1}), says("done"))
# Enough worlds to meet each of the six ways in which tools break.
SEEDS = range(40)


def test_every_kind_of_command_is_performed() -> None:
    world = SimulatedWorld(model=LOOKS)
    assert set(world.hands._performers) == COMMANDS


def test_a_tool_that_raises_is_an_observation() -> None:
    def broken(arguments: dict[str, object]) -> str:
        raise RuntimeError("disk full")

    world = SimulatedWorld(model=LOOKS, tools={"look": broken})
    failed = world.finish(manifest_of()).last(arrivals.ToolFailed)
    assert (failed.code, failed.error) == (ErrorCode.TOOL_EXECUTION_FAILED, "disk full")


def test_a_tool_that_nobody_scripted_fails_by_its_name() -> None:
    failed = SimulatedWorld(model=LOOKS).finish(manifest_of()).last(arrivals.ToolFailed)
    assert "look" in failed.error


def test_a_tool_may_end_the_loop_with_its_text() -> None:
    model = in_turn(proposes("finish", {"n": 1}), says("never asked"))
    world = SimulatedWorld(model=model, tools={"finish": lambda arguments: Stops('{"ok": true}')})
    assert world.finish(manifest_of()).state.result.answer == '{"ok": true}'


@pytest.mark.req("4.13")
def test_tools_break_in_every_way_and_the_law_is_kept() -> None:
    seen: set[object] = set()
    for seed in SEEDS:
        for model in (LOOKS, PAYS, WRITES):
            world = SimulatedWorld(model=model, tools=tools(), faults=Faults(tool_failure=0.5), seed=seed)
            run = world.finish(manifest_of())
            keep_the_law(world)
            seen |= {failed.code for failed in run.all(arrivals.ToolFailed)}
            seen |= {bool(returned.refuted) for returned in run.all(arrivals.ToolReturned)}
            seen |= {accounted.happened for accounted in run.all(arrivals.ToolReconciled)}
            seen |= {judged.happened for judged in run.all(arrivals.OutcomeJudged)}
    assert seen >= {ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_UNAVAILABLE, ErrorCode.TOOL_TIMEOUT}
    assert seen >= {True, False, Happened.UNKNOWN, Happened.YES, Happened.NO}


def test_a_tool_that_raises_while_it_breaks_is_reported_as_it_is() -> None:
    def broken(arguments: dict[str, object]) -> str:
        raise RuntimeError("disk full")

    for seed in SEEDS:
        world = SimulatedWorld(model=LOOKS, tools={"look": broken}, faults=Faults(tool_failure=1.0), seed=seed)
        world.finish(manifest_of())
        keep_the_law(world)


def test_a_validator_is_heard() -> None:
    goal = Goal("be polite", (Criterion("polite", validator="polite"),))
    for problems, ending in (([], Ending.SUCCESS), (["rude"], Ending.VALIDATION_FAIL)):
        world = SimulatedWorld(model=in_turn(says("hi")), validators={"polite": lambda text, p=problems: p})  # type: ignore[misc]
        assert world.finish(manifest_of(goal=goal)).ending is ending


def test_a_validator_that_raises_has_failed() -> None:
    goal = Goal("be polite", (Criterion("polite", validator="unknown"),))
    run = SimulatedWorld(model=in_turn(says("hi"))).finish(manifest_of(goal=goal))
    assert run.all(arrivals.CodeFailed) != []


@pytest.mark.parametrize(("failure", "kind"), [(0.0, arrivals.ContextFound), (1.0, arrivals.ContextFailed)])
def test_evidence_is_found_or_not(failure: float, kind: type[arrivals.Arrival]) -> None:
    world = SimulatedWorld(model=in_turn(says("hi")), faults=Faults(tool_failure=failure))
    run = world.finish(manifest_of(retrieves_context=True))
    assert run.ending is Ending.SUCCESS
    assert len(run.all(kind)) == 1


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (Reply.APPROVE, Answer.APPROVED),
        (Reply.REJECT, Answer.REJECTED),
        (Reply.MODIFY, Answer.ANSWERED),
        (Reply.IGNORE, Answer.EXPIRED),
    ],
)
def test_a_question_of_the_graph_is_answered_in_every_way(reply: Reply, answer: Answer) -> None:
    long_enough = says("x" * 200)
    world = SimulatedWorld(model=in_turn(long_enough), person=lambda chance: reply)
    run = world.finish(manifest_of(graph=review_graph(), request=SystemRequest((user_message("please"),))))
    assert run.all(AskHuman)[0].purpose is AskPurpose.QUESTION
    assert run.all(QuestionSettled)[0].answer is answer
    keep_the_law(world)


def test_a_person_says_what_really_became_of_an_effect() -> None:
    for seed in SEEDS:
        world = SimulatedWorld(model=WRITES, tools=tools(), faults=Faults(tool_failure=0.9), seed=seed)
        run = world.finish(manifest_of())
        for judged in run.all(arrivals.OutcomeJudged):
            call = run.last(commands.CallTool)
            assert (judged.happened is Happened.YES) == (call.key in world.hands.effects)


def test_a_child_is_started_and_heard_of() -> None:
    world = SimulatedWorld(model=DELEGATES, tools=tools())
    run = world.finish(manifest_of())
    assert run.last(StartChild).run_id in world.run_ids()
    assert len(run.all(arrivals.ChildEnded)) == 1


def test_a_child_that_never_starts_is_given_up() -> None:
    lost = [
        SimulatedWorld(model=DELEGATES, tools=tools(), faults=Faults(lost_child=1.0), seed=seed).finish(manifest_of())
        for seed in range(10)
    ]
    assert any(run.all(arrivals.ChildLost) for run in lost)


def test_a_cancel_of_the_parent_reaches_its_child() -> None:
    def model(messages: Sequence[Message], chance: Random) -> ModelResult:
        is_child = messages[0].content == '{"n":1}'
        return proposes("write", {"n": 1}) if is_child else proposes("ask_child", {"n": 1})

    world = SimulatedWorld(model=model, tools=tools(), person=lambda chance: Reply.IGNORE)
    world.later(lambda: world.deliver("run", arrivals.CancelRequested("ada")), after_ms=30_000)
    world.finish(manifest_of())
    (child,) = (run_id for run_id in world.run_ids() if run_id != "run")
    assert world.run("run").ending is world.run(child).ending is Ending.USER_CANCEL


def test_a_failed_run_is_forked_when_a_person_wants_it_tried_again() -> None:
    forked = []
    for seed in range(10):
        world = SimulatedWorld(model=in_turn(says("")), faults=Faults(signal=0.5), seed=seed)
        world.finish(manifest_of())
        keep_the_law(world)
        forked += [run_id for run_id in world.run_ids() if world.run(run_id).all(commands.ForkRun)]
    assert forked != []
