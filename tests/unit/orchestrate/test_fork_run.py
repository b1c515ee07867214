"""A fork goes on under its own name; the run it was made of stays ended."""

from remit.core.failure import Ending
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import AskHuman, CallCode, CallModel, ForkRun, StartChild
from remit.orchestrate.executors.reports import ChildSaid, ModelSaid, PersonApproved
from remit.orchestrate.history.fork_run import fork
from remit.testing.scripts import in_turn, proposes, says
from tests.unit.kernel.builders import manifest_of
from tests.unit.kernel.plans import child_step, code_step, plan_of
from tests.unit.orchestrate.stage import Stage, ok, play


async def to_be_tried_again(stage: Stage, tool: str = "look") -> ForkRun:
    """A run that was cancelled in the middle of a call, and the order to fork it."""
    live = await stage.runner.start(manifest_of())
    (call,) = (command for command in live.state.commands.open.values() if isinstance(command, CallModel))
    await stage.runner.advance(live, ModelSaid(call.id, proposes(tool, {"n": 1})))
    for question in [command for command in live.state.commands.open.values() if isinstance(command, AskHuman)]:
        await stage.runner.advance(live, PersonApproved(question.id, "ada"))
    await stage.runner.advance(live, arrivals.CancelRequested("ada"))
    turn = await stage.runner.rule_on(live, arrivals.RetryRequested("bob"))
    stage.dispatch.forget(live)
    (order,) = (decision for decision in turn.decisions if isinstance(decision, ForkRun))
    return order


def test_a_fork_goes_on_to_an_end_of_its_own() -> None:
    async def scene() -> None:
        stage = Stage(in_turn(proposes("look", {"n": 1}), says("done")), tools={"look": ok})
        order = await to_be_tried_again(stage)
        live = await fork(stage.runner, "run", order)
        await stage.runner.drive(live)
        assert live.state.end.ending is Ending.SUCCESS
        assert (await stage.run("run")).ending is Ending.USER_CANCEL

    play(scene())


def test_a_fork_is_resumed_by_the_person_who_wanted_the_retry() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await fork(stage.runner, "run", await to_be_tried_again(stage))
        assert not live.state.place.paused
        assert (await stage.run(live.run_id)).last(arrivals.ResumeRequested).by == "bob"

    play(scene())


def test_forking_twice_forks_and_resumes_once() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await to_be_tried_again(stage)
        first = await fork(stage.runner, "run", order)
        again = await fork(Stage(journal=stage.journal).runner, "run", order)
        assert again.state == first.state

    play(scene())


def test_a_process_that_holds_the_fork_already_only_resumes_it() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await to_be_tried_again(stage)
        held = await fork(stage.runner, "run", order)
        assert await fork(stage.runner, "run", order, live=held) is held
        assert len((await stage.run(held.run_id)).all(arrivals.ResumeRequested)) == 1

    play(scene())


def test_an_effect_in_flight_is_asked_about_in_the_fork() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await fork(stage.runner, "run", await to_be_tried_again(stage, "write"))
        (question,) = (command for command in live.state.commands.open.values() if isinstance(command, AskHuman))
        await stage.runner.rule_on(live, arrivals.OutcomeJudged(question.id, "ada", Happened.NO))
        assert live.state.commands.doubted == {}

    play(scene())


def test_a_fork_has_the_children_the_outputs_and_the_confidence_of_its_origin() -> None:
    async def scene() -> None:
        stage = Stage()
        graph = plan_of(child_step("a"), code_step("b", "a"))
        live = await stage.runner.start(manifest_of(graph=graph))
        (child,) = (command for command in live.state.commands.open.values() if isinstance(command, StartChild))
        await stage.runner.advance(live, ChildSaid(child.id, Ending.SUCCESS, "found it"))
        await stage.runner.advance(live, arrivals.CancelRequested("ada"))
        turn = await stage.runner.rule_on(live, arrivals.RetryRequested("bob"))
        (order,) = (decision for decision in turn.decisions if isinstance(decision, ForkRun))
        forked = await fork(stage.runner, "run", order)
        assert forked.state.children.ended == live.state.children.ended
        assert forked.state.result.outputs == live.state.result.outputs
        assert [command.name for command in forked.state.commands.open.values() if isinstance(command, CallCode)] == [
            "step:custom"
        ]

    play(scene())
