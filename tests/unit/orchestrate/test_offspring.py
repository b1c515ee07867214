"""Children hold their lease and nothing more; forks are copies that name where they come from."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import InvariantBroken
from remit.core.journal import arrivals
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn, hash_turn
from remit.core.journal.commands import AskHuman, CallModel, CallTool, ForkRun, StartChild
from remit.core.journal.rulings import RunPaused
from remit.core.limits.boundary import Boundary, boundary_version
from remit.core.limits.budget import COUNTERS, Dimension
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import BlobRef, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.lineage import derived_id
from remit.core.run.manifest import Manifest, Origin, permissions_of
from remit.core.run.messages import user_message
from remit.core.run.principal import Principal
from remit.core.work.graph import graph_version
from remit.kernel.state import pinned
from remit.orchestrate.executors.reports import ModelSaid, PersonApproved
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.offspring import child_manifest, copy_turns, spent_by
from remit.orchestrate.loop.recover import recover
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import SimulatedRun, fold_journal
from remit.testing.scripts import proposes, proposes_all
from tests.simulation.scenarios import LEASE
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.orchestrate.stage import Stage, WatchedJournal, let_others_run, play


def child_of(parent: Manifest, **changes: object) -> Manifest:
    run = Run(parent)
    run.proposes(wants("ask_child"))
    (order,) = run.open(StartChild)
    return child_manifest(parent, replace(order, **changes), chat_graph(tool_rounds_max=3))


def test_a_child_has_exactly_its_lease_in_every_counter() -> None:
    child = child_of(manifest_of())
    lease = {Dimension[name.upper()]: amount for name, amount in LEASE}
    assert {counter: child.caps[counter] for counter in COUNTERS} == {c: lease.get(c, 0) for c in COUNTERS}


def test_a_child_inherits_gauges_clock_and_deadline() -> None:
    parent = manifest_of()
    child = child_of(parent, deadline_at_ms=4711)
    for dimension in (Dimension.RETRIES, Dimension.CONTEXT_TOKENS, Dimension.DEPTH, Dimension.WALL_CLOCK_MS):
        assert child.caps[dimension] == parent.caps[dimension]
    assert child.deadline_at_ms == 4711


def test_a_childs_boundary_is_its_parents_or_narrower() -> None:
    boundary = Boundary(name="narrow", allowed_tools=("look", "ask_child"), permissions=("vault.open",))
    request = SystemRequest((user_message("please"),), tools=("look", "ask_child", "write"))
    child = child_of(manifest_of(boundary=boundary, request=request))
    assert child.boundary.allowed_tools == ("look", "ask_child")
    assert child.boundary.permissions == ("vault.open",)
    assert child.boundary.budget.side_effects == 0


PERMISSIONS = st.lists(st.sampled_from(["vault.open", "email.read", "email.send", "files.read"]), unique=True).map(
    tuple
)


@given(PERMISSIONS, PERMISSIONS, st.lists(st.none() | PERMISSIONS, min_size=1, max_size=4))
def test_no_chain_of_delegations_ever_adds_a_permission(
    held: tuple[str, ...], scopes: tuple[str, ...], grants: list[tuple[str, ...] | None]
) -> None:
    above = replace(manifest_of(boundary=Boundary(permissions=held)), principal=Principal("acme", "ada", scopes))
    expected = set(held) & set(scopes)
    assert set(permissions_of(above)) == expected
    for granted in grants:
        tools = tuple(replace(tool, grants=granted) if tool.delegates else tool for tool in above.tools)
        child = child_of(replace(above, tools=tools, depth=0, caps=manifest_of().caps))
        expected &= expected if granted is None else set(granted)
        assert set(permissions_of(child)) == expected
        assert child.principal == above.principal
        above = child


def test_a_child_names_the_agents_through_which_it_came() -> None:
    clerk = replace(manifest_of(), agents=("clerk",))
    child = child_of(clerk)
    assert child.agents == ("clerk", "ask_child")
    assert child_of(clerk, tool="", call_id="").agents == ("clerk",)


def test_a_child_pins_the_versions_of_what_it_was_given() -> None:
    child = child_of(manifest_of())
    assert child.versions.boundary == boundary_version(child.boundary)
    assert child.versions.graph == graph_version(child.graph)


def test_a_child_names_its_parent_and_the_command_that_started_it() -> None:
    child = child_of(manifest_of())
    assert child.parent is not None
    assert child.parent.run_id == "run"
    assert child.run_id == derived_id("run", child.parent.command_id)
    assert child.lineage == ("run",)


def test_a_child_of_a_child_knows_every_run_above_it() -> None:
    child = child_of(manifest_of())
    command = StartChild("0.3", "grandchild", "look around", (), 0, 0, ())
    assert child_manifest(child, command, chat_graph()).lineage == ("run", child.run_id)


def test_a_child_of_an_old_run_knows_the_runs_that_that_one_is_named_after() -> None:
    old = replace(manifest_of(), run_id="run.1.2", parent=Origin("run", "1.2"))
    assert child_of(old).lineage == ("run", "run.1.2")


def test_a_child_keeps_who_asked_and_forgets_what_for() -> None:
    request = SystemRequest(
        (user_message("please"),), request_id="r", session_id="s", trace_id="t", tenant_id="ten", user_id="u"
    )
    child = child_of(manifest_of(request=replace(request, metadata={"k": 1})))
    kept = child.request
    assert (kept.request_id, kept.session_id, kept.trace_id, kept.tenant_id, kept.user_id, kept.metadata) == (
        "r",
        "s",
        "t",
        "ten",
        "u",
        {"k": 1},
    )
    assert (child.goal, kept.messages) == (None, (user_message('{"n":1}'),))


def test_a_long_task_of_a_child_stays_a_reference() -> None:
    reference = BlobRef(b"digest", 5000)
    assert child_of(manifest_of(), prompt=reference).request.messages == (user_message(reference),)


def test_a_run_that_may_call_no_tools_has_no_child_that_does() -> None:
    command = StartChild("0.3", "run.0.3", "look around", (), 0, 0, ())
    request = SystemRequest((user_message("please"),), tool_choice=ToolChoice(ToolChoiceMode.NONE))
    child = child_manifest(manifest_of(request=request), command, chat_graph())
    assert child.request.tool_choice.mode is ToolChoiceMode.NONE


def test_which_tool_a_run_must_call_is_no_business_of_its_child() -> None:
    command = StartChild("0.3", "run.0.3", "look around", (), 0, 0, ())
    request = SystemRequest((user_message("please"),), tool_choice=ToolChoice(ToolChoiceMode.FUNCTION, "look"))
    child = child_manifest(manifest_of(request=request), command, chat_graph())
    assert child.request.tool_choice == ToolChoice()


def test_a_child_of_a_fork_is_no_fork() -> None:
    parent = replace(manifest_of(), forked_from=Origin("another", "3.1", 2))
    assert child_of(parent).forked_from is None


def test_what_a_run_spent_is_what_it_used() -> None:
    run = Run()
    run.says("done")
    spent = dict(spent_by(run.state))
    assert spent[Dimension.INPUT_TOKENS] == run.used(Dimension.INPUT_TOKENS)
    assert spent[Dimension.STEPS] == run.used(Dimension.STEPS)
    assert Dimension.TOOL_CALLS not in spent


def test_what_a_person_released_beyond_the_lease_is_not_charged_to_it() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.returns()
    assert run.used(Dimension.SIDE_EFFECTS) == 1
    assert Dimension.SIDE_EFFECTS not in dict(spent_by(run.state))


def test_a_call_in_doubt_when_the_run_ended_counts_as_spent() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.commands.doubted != {}
    assert dict(spent_by(run.state))[Dimension.TOOL_CALLS] == 1


async def failed(stage: Stage, *tools: str) -> ForkRun:
    """A run that proposed these calls, was cancelled, and is to be tried again."""
    live = await stage.runner.start(manifest_of())
    answer = proposes_all(*((tool, {"n": number}) for number, tool in enumerate(tools)))
    await stage.runner.advance(live, ModelSaid(model_call(live).id, answer))
    for question in [c for c in live.state.commands.open.values() if isinstance(c, AskHuman)]:
        await stage.runner.advance(live, PersonApproved(question.id, "ada"))
    return await retried(stage, live)


async def retried(stage: Stage, live: Live) -> ForkRun:
    await stage.runner.advance(live, arrivals.CancelRequested("ada"))
    turn = await stage.runner.rule_on(live, arrivals.RetryRequested("ada"))
    (order,) = (decision for decision in turn.decisions if isinstance(decision, ForkRun))
    return order


async def copied(stage: Stage, order: ForkRun, run_id: str = "run") -> None:
    await copy_turns(stage.journal, Origin(run_id, order.id, order.at_seq), order.run_id)


def model_call(live: Live) -> CallModel:
    return next(command for command in live.state.commands.open.values() if isinstance(command, CallModel))


def test_a_fork_is_its_origin_up_to_the_turn_before_it_ended() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "look")
        await copied(stage, order)
        copy, original = await stage.run(order.run_id), await stage.run("run")
        assert copy.state.end.ending is None
        assert [turn.decisions for turn in copy.turns[:-1]] == [
            turn.decisions for turn in original.turns[: order.at_seq + 1]
        ]

    play(scene())


def test_a_fork_is_paused_until_a_person_resumes_it() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "look")
        await copied(stage, order)
        copy = await stage.run(order.run_id)
        assert copy.state.place.paused
        assert copy.turns[-1].at_ms == copy.turns[-2].at_ms

    play(scene())


def test_a_fork_of_a_run_that_was_paused_is_not_paused_once_more() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        await stage.runner.advance(live, arrivals.PauseRequested("ada"))
        order = await retried(stage, live)
        await copied(stage, order)
        copy = await stage.run(order.run_id)
        assert (copy.state.seq, copy.state.place.paused) == (order.at_seq + 1, True)
        assert isinstance(copy.turns[-1].arrival, arrivals.RunForked)
        assert not any(isinstance(decision, RunPaused) for decision in copy.turns[-1].decisions)

    play(scene())


def test_a_fork_names_its_origin_and_its_chain_holds() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "look")
        await copied(stage, order)
        copy = await stage.run(order.run_id)
        assert pinned(copy.state).forked_from == Origin("run", order.id, order.at_seq)
        assert [turn.previous for turn in copy.turns[1:]] == [hash_turn(data) for data in copy.journal[:-1]]

    play(scene())


def test_copying_twice_copies_once() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "look")
        await copied(stage, order)
        before = await stage.journal.read(order.run_id)
        await copied(stage, order)
        assert await stage.journal.read(order.run_id) == before

    play(scene())


def test_two_that_copy_at_once_write_one_fork() -> None:
    async def scene() -> None:
        journal = WatchedJournal(beside_append=let_others_run)
        stage = Stage(journal=journal)
        order = await failed(stage, "look")
        await asyncio.gather(*(copied(stage, order) for _ in range(5)))
        assert (await stage.run(order.run_id)).state.seq == order.at_seq + 1

    play(scene())


def test_a_copy_that_was_cut_off_goes_on_from_there() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "look")
        await copied(stage, order)
        whole = await stage.journal.read(order.run_id)
        for already in range(len(whole)):
            partly = MemoryJournal()
            for data in await stage.journal.read("run"):
                await partly.append("run", data, after=decode_turn(data).seq - 1)
            for data in whole[:already]:
                await partly.append(order.run_id, data, after=decode_turn(data).seq - 1)
            await copy_turns(partly, Origin("run", order.id, order.at_seq), order.run_id)
            assert await partly.read(order.run_id) == whole

    play(scene())


@pytest.mark.parametrize("run_id", ["nobody", "run"])
def test_a_turn_that_is_not_there_cannot_be_forked_at(run_id: str) -> None:
    async def scene() -> None:
        stage = Stage()
        await failed(stage, "look")
        with pytest.raises(InvariantBroken) as caught:
            await copy_turns(stage.journal, Origin(run_id, "9.0", 99), "fork")
        assert caught.value.code == "FORK_TOO_LATE"
        assert await stage.journal.read("fork") == []

    play(scene())


def test_a_fork_of_a_fork_names_the_fork() -> None:
    async def scene() -> None:
        stage = Stage()
        first = await failed(stage, "look")
        await copied(stage, first)
        again = await retried(stage, await stage.runner.load(first.run_id))
        await copied(stage, again, first.run_id)
        manifest = pinned((await stage.run(again.run_id)).state)
        assert manifest.forked_from == Origin(first.run_id, again.id, again.at_seq)
        assert manifest.run_id == again.run_id

    play(scene())


def test_a_fork_keeps_the_keys_of_effects_since_the_world_knows_them() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "put")
        await copied(stage, order)
        assert (await stage.run(order.run_id)).last(CallTool).key == (await stage.run("run")).last(CallTool).key

    play(scene())


def test_an_effect_in_flight_is_in_doubt_in_the_fork_too() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "write")
        await copied(stage, order)
        live = await recover(stage.runner, order.run_id)
        assert len(live.state.commands.doubted) == 1

    play(scene())


def test_the_children_of_a_fork_are_its_own() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "ask_child")
        await copied(stage, order)
        child = (await stage.run(order.run_id)).last(StartChild)
        assert child.run_id == derived_id(order.run_id, child.id)

    play(scene())


def test_a_fork_of_a_child_answers_to_nobody() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(child_of(manifest_of()))
        await stage.runner.advance(live, ModelSaid(model_call(live).id, proposes("look", {"n": 1})))
        order = await retried(stage, live)
        await copied(stage, order, live.run_id)
        assert pinned((await stage.run(order.run_id)).state).parent is None

    play(scene())


def test_a_fork_folds_although_its_first_arrival_was_rewritten() -> None:
    async def scene() -> None:
        stage = Stage()
        order = await failed(stage, "look", "write")
        await copied(stage, order)
        data = await stage.journal.read(order.run_id)
        assert isinstance(SimulatedRun(order.run_id, data).turns[0].arrival, RunStarted)
        assert fold_journal(data).run_id == order.run_id

    play(scene())
