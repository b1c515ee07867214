"""The runner writes before anyone acts, and decides anew when another was faster."""

import asyncio

import pytest

from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import ArrivalFault, Ending, IllegalArrival, InvariantBroken, RequestRejected
from remit.core.journal import arrivals, rulings
from remit.core.journal.codec import encode_turn, hash_turn
from remit.core.journal.commands import CallModel, CallTool
from remit.core.journal.storage import AppendConflict, BlobMissing, LeaseLost, Warrant
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.tools import ToolResult
from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, replace
from remit.core.run.inference import ModelResult
from remit.kernel.state import NOT_BEGUN, RunState
from remit.observe.linked_turns import JOURNAL_CHAIN_BROKEN
from remit.orchestrate.executors.reports import ModelSaid, PersonApproved, PersonSaid, Report, ToolSaid
from remit.orchestrate.loop import runner
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import CONFLICTS_MAX
from remit.testing.runs import fold_journal
from remit.testing.scripts import in_turn, proposes, proposes_all, says
from tests.unit.kernel.builders import BEGINS_AT_MS, manifest_of
from tests.unit.orchestrate.stage import Stage, WatchedJournal, let_others_run, ok, play

LONG = "x" * (TEXT_INLINE_BYTES_MAX + 1)


def looks_twice() -> Stage:
    return Stage(in_turn(proposes("look", {"n": 1}), proposes("look", {"n": 2}), says("done")), tools={"look": ok})


@pytest.mark.req("4.20")
def test_a_run_is_driven_to_its_end_and_every_step_is_a_turn() -> None:
    async def scene() -> None:
        stage = looks_twice()
        live = await stage.runner.start(manifest_of())
        await stage.runner.drive(live)
        run = await stage.run()
        assert run.ending is Ending.SUCCESS
        assert live.state == run.state
        entered = run.all(rulings.NodeEntered)
        assert [entry.node for entry in entered] == [
            "prepare",
            "think",
            "act",
            "think",
            "act",
            "think",
            "check",
            "done",
        ]

    play(scene())


def test_nothing_is_performed_before_the_turn_that_orders_it_is_written() -> None:
    async def scene() -> None:
        async def note(run_id: str, after: int) -> None:
            written = len(await journal.kept.read(run_id))
            seen.append((written, [command.id for command in stage.performed]))

        seen: list[tuple[int, list[str]]] = []
        journal = WatchedJournal(beside_append=note)
        stage = Stage(in_turn(proposes("look", {"n": 1}), says("done")), tools={"look": ok}, journal=journal)
        await stage.runner.drive(await stage.runner.start(manifest_of()))
        assert len(stage.performed) == 3
        for written, performed in seen:
            assert all(int(command_id.partition(".")[0]) < written for command_id in performed)

    play(scene())


def test_starting_a_run_twice_is_refused() -> None:
    async def scene() -> None:
        stage = Stage()
        await stage.runner.start(manifest_of())
        with pytest.raises(IllegalArrival) as caught:
            await stage.runner.start(manifest_of())
        assert caught.value.fault is ArrivalFault.ALREADY_STARTED

    play(scene())


def test_a_manifest_that_cannot_be_written_begins_nothing() -> None:
    async def scene() -> None:
        stage = Stage()
        with pytest.raises(RequestRejected):
            await stage.runner.start(replace(manifest_of(), run_id="half \ud800"))
        assert await stage.journal.read("half \ud800") == []

    play(scene())


def test_a_loaded_run_is_the_fold_of_its_turns_and_has_nothing_under_way() -> None:
    async def scene() -> None:
        stage = looks_twice()
        await stage.runner.start(manifest_of())
        other = Stage(journal=stage.journal)
        live = await other.runner.load("run")
        assert live.state == fold_journal(await stage.journal.read("run"))
        assert other.dispatch._work == {}

    play(scene())


def test_a_report_that_cannot_be_judged_makes_no_turn() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        assert await stage.runner.advance(live, arrivals.ResumeRequested("ada")) is None
        assert len(await stage.journal.read("run")) == 1

    play(scene())


def test_a_sender_who_wants_to_know_is_told_why_they_were_not_heard() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        with pytest.raises(IllegalArrival) as caught:
            await stage.runner.rule_on(live, arrivals.ResumeRequested("ada"))
        assert caught.value.fault is ArrivalFault.NOT_PAUSED

    play(scene())


@pytest.mark.parametrize(
    ("report", "fault"),
    [
        (ModelSaid("9.9", ModelResult("who?")), ArrivalFault.UNKNOWN_COMMAND),
        (ModelSaid("0.0", ModelResult("who?")), ArrivalFault.DUPLICATE),
        (ModelSaid("half \ud800", ModelResult("who?")), ArrivalFault.UNKNOWN_COMMAND),
        (PersonApproved("9.9", "ada", {"n": 1}), ArrivalFault.UNKNOWN_COMMAND),
        (PersonApproved("0.1", "ada", {"n": 1}), ArrivalFault.UNKNOWN_COMMAND),
        (ToolSaid("9.9", ToolResult("c", "look", "{}")), ArrivalFault.UNKNOWN_COMMAND),
        (arrivals.TimerFired("9.9"), ArrivalFault.UNKNOWN_COMMAND),
    ],
)
def test_a_report_about_a_command_that_is_not_open_names_its_fault(report: Report, fault: ArrivalFault) -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        with pytest.raises(IllegalArrival) as caught:
            await stage.runner.rule_on(live, report)
        assert caught.value.fault is fault

    play(scene())


def test_a_report_for_a_run_that_is_not_there_is_refused() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.load("nobody")
        with pytest.raises(IllegalArrival) as caught:
            await stage.runner.rule_on(live, PersonSaid("ada", "hello?"))
        assert caught.value.fault is ArrivalFault.NOT_STARTED

    play(scene())


@pytest.mark.req("3.30")
def test_a_runner_that_is_behind_catches_up_and_decides_anew() -> None:
    async def scene() -> None:
        here, there = two_stages()
        mine = await here.runner.start(manifest_of())
        theirs = await there.runner.load("run")
        await there.runner.advance(theirs, PersonSaid("ada", "from there"))
        turn = await here.runner.advance(mine, PersonSaid("bob", "from here"))
        assert turn is not None
        assert turn.seq == 2
        assert mine.state == fold_journal(await here.journal.read("run"))

    play(scene())


def test_a_runner_that_has_seen_more_turns_than_there_are_says_so_and_writes_nothing() -> None:
    async def scene() -> None:
        stage = looks_twice()
        live = await stage.runner.start(manifest_of())
        await stage.runner.rule_on(live, PersonSaid("ada", "hurry"))
        journal, kept = MemoryJournal(), await stage.journal.read("run")
        await journal.append("run", kept[0], after=-1)
        stage.runner.journal = journal
        with pytest.raises(RequestRejected) as refused:
            await stage.runner.rule_on(live, PersonSaid("ada", "hurry more"))
        assert (refused.value.code, refused.value.details["last"]) == ("STORE_BEHIND_ITS_LOG", 0)
        assert list(await journal.read("run")) == [kept[0]]

    play(scene())


@pytest.mark.req("3.30")
def test_only_the_newest_state_may_refuse_a_report() -> None:
    async def scene() -> None:
        here, there = two_stages()
        mine = await here.runner.start(manifest_of())
        theirs = await there.runner.load("run")
        await there.runner.advance(theirs, arrivals.PauseRequested("ada"))
        # To the state this runner knows, the run is not paused and cannot be resumed.
        assert await here.runner.advance(mine, arrivals.ResumeRequested("bob")) is not None

    play(scene())


def test_a_report_on_a_command_that_another_runner_ordered_is_taken() -> None:
    async def scene() -> None:
        here, there = two_stages()
        mine = await here.runner.start(manifest_of())
        theirs = await there.runner.load("run")
        (call,) = (command for command in theirs.state.commands.open.values() if isinstance(command, CallModel))
        await there.runner.advance(theirs, ModelSaid(call.id, proposes("look", {"n": 1})))
        (ordered,) = (command for command in theirs.state.commands.open.values() if isinstance(command, CallTool))
        turn = await here.runner.advance(mine, tool_said(ordered))
        assert turn is not None
        assert turn.seq == 2

    play(scene())


def test_what_was_ordered_before_another_took_the_run_up_is_not_begun_here() -> None:
    async def scene() -> None:
        here, there = two_stages()
        mine = await here.runner.start(manifest_of())
        mine.warrant = Warrant(1)
        await there.runner.advance(await there.runner.load("run"), arrivals.RunTaken(2))
        await here.runner.catch_up(mine)
        with pytest.raises(LeaseLost):
            await here.runner.drive(mine)
        assert here.performed == there.performed == []

    play(scene())


def test_an_ended_run_refuses_a_stale_runners_report_and_tells_it_the_end() -> None:
    async def scene() -> None:
        here, there = two_stages()
        mine = await here.runner.start(manifest_of())
        await there.runner.advance(await there.runner.load("run"), arrivals.CancelRequested("ada"))
        assert await here.runner.advance(mine, PersonSaid("bob", "still there?")) is None
        assert mine.state.end.ending is Ending.USER_CANCEL

    play(scene())


def test_a_runner_that_always_loses_gives_up() -> None:
    async def scene() -> None:
        async def be_faster(run_id: str, after: int) -> None:
            if after >= 0:
                await a_person_speaks(run_id, journal)

        journal = WatchedJournal(beside_append=be_faster)
        stage = Stage(journal=journal)
        live = await stage.runner.start(manifest_of())
        with pytest.raises(AppendConflict):
            await stage.runner.advance(live, PersonSaid("ada", "hello"))
        assert live.state.seq == CONFLICTS_MAX

    play(scene())


def test_a_runner_whose_reports_are_overtaken_again_and_again_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CONFLICTS_MAX", 5)

    async def scene() -> None:
        async def be_faster(run_id: str, after: int) -> None:
            await a_person_speaks(run_id, journal)

        journal = WatchedJournal(before_read=be_faster)
        stage = Stage(journal=journal)
        live = await stage.runner.start(manifest_of())
        with pytest.raises(AppendConflict):
            await stage.runner.advance(live, arrivals.ResumeRequested("ada"))

    play(scene())


def test_the_number_of_conflicts_is_limited() -> None:
    assert 1 < CONFLICTS_MAX < 1000


def test_time_never_goes_back_although_the_clock_does() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        stage.clock.at_ms = BEGINS_AT_MS - 5000
        turn = await stage.runner.advance(live, PersonSaid("ada", "what time is it?"))
        assert turn is not None
        assert turn.at_ms == BEGINS_AT_MS

    play(scene())


def test_long_texts_are_in_blobs_before_their_turn_is_written() -> None:
    async def scene() -> None:
        stage = Stage(in_turn(says(LONG)))
        live = await stage.runner.start(manifest_of())
        await stage.runner.drive(live)
        assert isinstance(live.state.result.answer, BlobRef)
        assert await stage.runner.text(live.state.result.answer) == LONG

    play(scene())


def test_long_messages_of_the_request_are_in_blobs_too() -> None:
    async def scene() -> None:
        stage = Stage()
        request = manifest_of().request
        message = replace(request.messages[0], content=LONG)
        live = await stage.runner.start(manifest_of(request=replace(request, messages=(message,))))
        (shown,) = live.conversation.catch_up(live.state)
        assert await stage.runner.text(shown.content) == LONG

    play(scene())


def test_a_short_text_is_its_own_text() -> None:
    assert play(Stage().runner.text("short")) == "short"


def test_a_text_that_nobody_kept_is_missing() -> None:
    with pytest.raises(BlobMissing):
        play(Stage().runner.text(BlobRef(b"digest", 5)))


def test_a_journal_with_a_gap_stops_the_run() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        await stage.journal.append("run", encode_turn(turn_after(live, seq=2)), after=0)
        with pytest.raises(InvariantBroken) as caught:
            await stage.runner.load("run")
        assert caught.value.code == JOURNAL_CHAIN_BROKEN

    play(scene())


def test_a_turn_that_does_not_carry_the_hash_of_the_one_before_stops_the_run() -> None:
    async def scene() -> None:
        stage = Stage()
        live = await stage.runner.start(manifest_of())
        forged = replace(turn_after(live, seq=1), previous=hash_turn(b"another journal"))
        await stage.journal.append("run", encode_turn(forged), after=0)
        with pytest.raises(InvariantBroken) as caught:
            await stage.runner.load("run")
        assert caught.value.code == JOURNAL_CHAIN_BROKEN

    play(scene())


def test_two_that_hold_the_same_run_fold_each_turn_once() -> None:
    async def scene() -> None:
        journal = WatchedJournal(before_read=let_others_run)
        here, there = Stage(journal=journal), Stage(journal=journal)
        mine = await here.runner.start(manifest_of())
        await there.runner.advance(await there.runner.load("run"), PersonSaid("ada", "hello"))
        await asyncio.gather(here.runner.catch_up(mine), here.runner.catch_up(mine))
        assert mine.state == fold_journal(await here.journal.read("run"))

    play(scene())


@pytest.mark.req("3.30")
def test_many_reports_on_one_run_at_once_are_all_taken_in_some_order() -> None:
    async def scene() -> None:
        stage = Stage(journal=WatchedJournal(beside_append=let_others_run))
        live = await stage.runner.start(manifest_of())
        said = [PersonSaid("ada", f"word {number}") for number in range(10)]
        turns = await asyncio.gather(*(stage.runner.advance(live, report) for report in said))
        assert sorted(turn.seq for turn in turns if turn is not None) == list(range(1, 11))
        assert live.state == fold_journal(await stage.journal.read("run"))

    play(scene())


def test_a_command_that_was_settled_while_its_turn_was_written_is_not_performed() -> None:
    async def scene() -> None:
        async def hold(run_id: str, after: int) -> None:
            appends.append(after)
            if appends == [-1, -1, 0, 0]:
                written.set()
                await cancelled.wait()

        appends: list[int] = []
        written, cancelled = asyncio.Event(), asyncio.Event()
        stage = Stage(tools={"look": ok}, journal=WatchedJournal(beside_append=hold))
        live = await stage.runner.start(manifest_of())
        (call,) = (command for command in live.state.commands.open.values() if isinstance(command, CallModel))
        proposed = ModelSaid(call.id, proposes_all(("look", {"n": 1}), ("look", {"n": 2})))
        writing = asyncio.create_task(stage.runner.advance(live, proposed))
        await written.wait()
        await stage.runner.advance(live, arrivals.CancelRequested("ada"))
        cancelled.set()
        await writing
        assert live.state.end.ending is Ending.USER_CANCEL
        assert [command for _, command in stage.dispatch._work["run"].outbox if isinstance(command, CallTool)] == []

    play(scene())


def test_a_command_that_stands_is_performed_although_others_went_on_meanwhile() -> None:
    async def scene() -> None:
        async def hold(run_id: str, after: int) -> None:
            appends.append(after)
            if appends == [-1, -1, 0, 0]:
                written.set()
                await spoken.wait()

        appends: list[int] = []
        written, spoken = asyncio.Event(), asyncio.Event()
        stage = Stage(tools={"look": ok}, journal=WatchedJournal(beside_append=hold))
        live = await stage.runner.start(manifest_of())
        (call,) = (command for command in live.state.commands.open.values() if isinstance(command, CallModel))
        writing = asyncio.create_task(stage.runner.advance(live, ModelSaid(call.id, proposes("look", {"n": 1}))))
        await written.wait()
        await stage.runner.advance(live, PersonSaid("ada", "and hurry"))
        spoken.set()
        await writing
        assert [type(command) for _, command in stage.dispatch._work["run"].outbox][-1] is CallTool

    play(scene())


def test_a_drive_that_is_cancelled_leaves_nothing_under_way() -> None:
    async def scene() -> None:
        begun = asyncio.Event()

        async def slow(live: Live, command: CallModel) -> Report:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        stage = Stage(executors={CallModel: slow})
        live = await stage.runner.start(manifest_of())
        driving = asyncio.create_task(stage.runner.drive(live))
        await begun.wait()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        assert live.state.end.ending is None
        assert stage.dispatch._work == {}

    play(scene())


async def a_person_speaks(run_id: str, journal: WatchedJournal) -> None:
    """Another process takes a turn."""
    stage = Stage(journal=journal.kept)
    await stage.runner.advance(await stage.runner.load(run_id), PersonSaid("eve", "and another thing"))


def two_stages() -> tuple[Stage, Stage]:
    """Two processes on one journal."""
    journal = MemoryJournal()
    return Stage(journal=journal), Stage(journal=journal)


def tool_said(command: CallTool) -> Report:
    return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))


def turn_after(live: Live, *, seq: int) -> Turn:
    """A turn that anybody could have forged, after the state as it stands."""
    feedback = arrivals.FeedbackGiven("mallory", "trust me", 30)
    return Turn(seq, live.state.at_ms, live.state.head, KERNEL_VERSION, feedback, (rulings.FeedbackTaken("mallory"),))


def test_a_run_that_another_process_has_begun_is_brought_up_to_date_and_what_has_not_begun_stays_empty() -> None:
    async def scene() -> None:
        stage = looks_twice()
        await stage.runner.start(manifest_of())
        late = Live(manifest_of().run_id)
        with pytest.raises(IllegalArrival):
            await stage.runner.start(manifest_of(), late)
        assert late.state == (await stage.run()).state
        assert RunState() == NOT_BEGUN

    play(scene())
