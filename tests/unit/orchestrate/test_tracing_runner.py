"""The tracer of a live run: used on from turn to turn, and made again wherever it knows of something that never was."""

import pytest

from remit.core.failure import Ending, IllegalArrival, RequestRejected
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import CodeReturned
from remit.core.limits.profiles import GUARDED
from remit.core.limits.tools import ToolCall
from remit.core.record import Text, replace
from remit.core.run.inference import ModelResult
from remit.orchestrate.executors.reports import (
    ModelSaid,
    PersonSaid,
)
from remit.orchestrate.facts.texts import stored
from remit.orchestrate.loop.runner import Runner, _followed
from tests.unit.orchestrate.stage import WatchedJournal, play
from tests.unit.orchestrate.traced import (
    BOUND,
    FIND,
    LONG,
    LOOKUP,
    MAILED,
    PAID,
    PAY,
    STOLEN,
    Office,
    answer,
    asked,
    manifest,
    performed,
    resumed,
    same,
    to,
    uses,
)


def test_a_paused_run_decides_later_on_calls_that_were_judged_before() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.commands.open.values() if isinstance(c, commands.CallModel)]
        await office.runner.rule_on(live, arrivals.PauseRequested("ada"))
        await office.runner.rule_on(live, ModelSaid(command.id, answer(PAID, STOLEN)))
        assert performed(office) == []
        await office.runner.rule_on(live, arrivals.ResumeRequested("ada"))
        assert live.tracer is not None
        assert live.tracer._gate.ledger.held_ids() == ("2/1",)
        await same(office, live)

    play(act())


def test_a_live_tracer_is_used_on_and_never_made_again() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(MAILED), answer(PAID))
        reads: list[int] = []

        async def read(run_id: str, after: int) -> None:
            reads.append(after)

        journal = WatchedJournal(before_read=read)
        office.journal = journal
        office.runner = Runner(journal=journal, blobs=office.blobs, clock=office.clock, dispatch=office.dispatch)
        live = await office.runner.start(manifest())
        tracer = live.tracer
        await office.runner.drive(live)
        assert live.state.end.ending is Ending.SUCCESS
        assert live.tracer is tracer is not None
        assert reads == []

    play(act())


def test_a_report_that_made_no_turn_leaves_nothing_in_the_gate() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        tracer = live.tracer
        forged = ModelSaid("9.9", answer(PAID))
        with pytest.raises(IllegalArrival):
            await office.runner.rule_on(live, forged)
        assert tracer is not None
        assert not tracer.is_at(live.state.seq)
        await office.runner.drive(live)
        assert live.tracer is not tracer
        await same(office, live)

    play(act())


def test_a_write_that_failed_leaves_nothing_in_the_gate() -> None:
    failing: list[int] = []

    async def fails(run_id: str, after: int) -> None:
        if failing:
            failing.clear()
            raise OSError("no space left")

    async def act() -> None:
        office = Office(answer(PAID))
        journal = WatchedJournal(beside_append=fails)
        office.journal = journal
        office.runner = Runner(journal=journal, blobs=office.blobs, clock=office.clock, dispatch=office.dispatch)
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.commands.open.values() if isinstance(c, commands.CallModel)]
        failing.append(1)
        with pytest.raises(OSError, match="no space"):
            await office.runner.rule_on(live, ModelSaid(command.id, answer(PAID)))
        await office.runner.rule_on(live, ModelSaid(command.id, answer(PAID)))
        assert await office.found() == [BOUND]
        await same(office, live)

    play(act())


def test_an_answer_that_cannot_be_read_to_its_end_leaves_nothing_in_the_gate() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.commands.open.values() if isinstance(c, commands.CallModel)]
        broken = ModelResult(tool_calls=(ToolCall("a", *PAID), ToolCall("b", 5, {})))  # type: ignore[arg-type]
        await office.runner.rule_on(live, ModelSaid(command.id, broken))
        assert uses(live, "pay") == 0
        await same(office, live)

    play(act())


def test_a_rival_who_was_faster_is_heard_before_the_call_is_judged() -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        (command,) = [c for c in live.state.commands.open.values() if isinstance(c, commands.CallModel)]
        rival, theirs = await resumed(office)
        await rival.runner.rule_on(theirs, PersonSaid("ada", "Mail carl@corp.example, too."))
        await office.runner.rule_on(live, ModelSaid(command.id, answer(("send_mail", to("carl@corp.example")))))
        assert await office.found() == [BOUND]
        await same(office, live)

    play(act())


def test_a_text_that_was_kept_before_makes_the_tracer_be_made_again() -> None:
    async def act() -> None:
        office = Office(answer(PAID))
        live = await office.begin()
        tracer = live.tracer
        assert tracer is not None
        kept: list[tuple[bytes, bytes]] = []
        value: Text = stored(LONG, kept)
        turn = replace((await office.turns())[-1], arrival=CodeReturned("1.1", value), decisions=())
        assert _followed(tracer, turn, kept) is tracer
        assert _followed(tracer, turn, []) is None
        # Once something is known to be gone, there is nothing to be found by making it again.
        assert _followed(tracer, turn, []) is tracer

    play(act())


def test_an_untraced_run_has_no_tracer() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP))
        live = await office.begin(manifest(tools=(replace(FIND, network=False),)))
        assert live.tracer is None
        untraced = replace(GUARDED, authority=None)
        blunt = await Office(answer(PAID)).begin(manifest(boundary=untraced, tools=(replace(FIND, network=False), PAY)))
        assert blunt.tracer is None
        assert len(asked(blunt)) == 1
        watched = await Office(answer(PAID)).begin(manifest(boundary=untraced))
        assert watched.tracer is not None, "some of its tools may read outside"
        assert len(asked(watched)) == 1

    play(act())


def test_a_declaration_that_the_gate_cannot_read_refuses_the_run_before_anything_is_written() -> None:
    async def act() -> None:
        office = Office(answer(PAID))
        misspelt = replace(PAY, trust=replace(PAY.trust, fields=(("[", "id:file"),)))
        with pytest.raises(RequestRejected, match="DECLARATION_INVALID"):
            await office.begin(manifest(tools=(misspelt,)))
        assert await office.journal.read("run") == []

    play(act())
