"""Break the shell on purpose, as it was once broken or as it could be, and see the simulation of whole systems find it."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest

from remit.backend.folded.inbox import FoldedInbox
from remit.backend.folded.shared_logs import SharedLogs
from remit.backend.memory.ledger import MemoryLedger
from remit.core.failure import ArrivalFault, IllegalArrival, RemitError
from remit.core.journal.arrivals import PauseRequested, ResumeRequested, RunTaken, ToolOutcomeLost
from remit.core.journal.codec import decode_signal
from remit.core.journal.commands import CallTool, CancelCommand, Command, ForkRun
from remit.core.journal.storage import RunHeld, Warrant
from remit.core.journal.turn import Turn
from remit.core.limits.quota import Charge
from remit.kernel import decide
from remit.kernel.fold.apply import HEARD
from remit.kernel.rules.signal import on_pause
from remit.kernel.state import RunState
from remit.kernel.tally import Tally
from remit.orchestrate.bus import post
from remit.orchestrate.bus.post import Post
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.history import fork_run
from remit.orchestrate.history.fork_run import begin_fork, origin_of
from remit.orchestrate.loop import durability, hub, in_process, offspring
from remit.orchestrate.loop.claims import Claims
from remit.orchestrate.loop.driver import Driver, Steps
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.hub import Hub
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.late_delivery import LateDelivery
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.run_leases import FencedJournal, RunLeases
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.store_in_use import StoreInUse
from remit.testing.runs import LawBroken
from tests.simulation.laws.shells import keep_the_law
from tests.simulation.shell_world import earlier_scenario, shell_scenario

# A mutant that survives this many worlds is one the laws would miss in practice.
SEEDS = 400

leases_take = RunLeases.take
hub_hear = Hub._hear
hub_step = Hub._step
dispatch_send = InProcessDispatch.send
runner_advance = Runner.advance
dispatch_chore = InProcessDispatch._run_chore


def _instead(place: object, name: str, replacement: object) -> Any:
    return mock.patch.object(place, name, replacement)


async def _copy_unheld(self: Hub, run_id: str, report: ResumeRequested, copy: Callable[[Warrant], Any]) -> None:
    await copy(Warrant())
    await self.hear(run_id, report)


def _pause_once(tally: Tally, arrival: PauseRequested) -> None:
    if tally.paused:
        raise IllegalArrival(ArrivalFault.ALREADY_PAUSED, "it stands still, whatever caused that")
    on_pause(tally, arrival)


async def _nothing(*_: object) -> None:
    return None


async def _always(*_: object) -> bool:
    return True


def _any_room(*_: object, **__: object) -> None:
    return None


def _no_fence(state: RunState, arrival: RunTaken) -> None:
    return None


async def _append_on(self: FencedJournal, *turn: Any, **orders: Any) -> int:
    return await self._journal.append(*turn, **orders)


def _say_nothing(self: Halts, scopes: object) -> None:
    return None


def _unexplained(turn: Turn, why: str) -> Turn:
    return turn


async def _hear_and_wait(self: Hub, run_id: str, report: Report, *, heard: int = 0) -> tuple[Driver, Turn]:
    try:
        return await hub_step(self, run_id, hub_hear(self, run_id, report, heard))
    except RemitError:
        if (driver := self.drivers.get(run_id)) is not None:
            await self.at_rest(driver)
        raise


async def _step_although_closed(self: Hub, run_id: str, step: Any) -> Any:
    return await self.steps.finish(run_id, step)


async def _refuse_a_fork_that_goes_on(self: ChildExecutor, live: Live, command: ForkRun) -> None:
    runner = self._hub.runner
    origin = origin_of(live.run_id, command, runner.clock.now_ms())

    async def copy(warrant: Warrant) -> None:
        await begin_fork(runner.journal, origin, command.run_id, warrant=warrant)

    await self._hub.fork(command.run_id, ResumeRequested(command.by), copy)


async def _hear_without_saying_so(self: Post, live: Live, number: int, data: bytes) -> None:
    report = await self._report(live.state, decode_signal(data))
    try:
        if live.run_id in self.hub.drivers:
            await self.hub.hear(live.run_id, report)
        else:
            await self.hub.runner.rule_on(live, report)
    except RemitError as error:
        await self._inbox.settle(number, str(error.code), error.message)
        return
    await self._inbox.settle(number, "", "")


def _report_quietly(self: in_process._Work, report: Report) -> None:
    self.reports.append(report)


async def _take_nothing(self: RunLeases, run_id: str) -> Warrant:
    try:
        return await leases_take(self, run_id)
    except RunHeld:
        return Warrant(1)


async def _keep_the_lease(self: Hub, live: Live) -> None:
    self.dispatch.forget(live)


def _stop_nothing(self: InProcessDispatch, work: in_process._Work, live: Live, command_id: str) -> None:
    return None


def _tell_no_child(self: InProcessDispatch, live: Live, command: Command) -> None:
    if not isinstance(command, CancelCommand):
        dispatch_chore(self, live, command)


def _send_calls_twice(self: InProcessDispatch, live: Live, command: Command) -> None:
    dispatch_send(self, live, command)
    if isinstance(command, CallTool):
        self._work[live.run_id].outbox.append((live, command))


def _forget_timers(self: InProcessDispatch, work: in_process._Work, live: Live) -> None:
    return None


def _cut_nothing(work: in_process._Work) -> None:
    return None


def _call_off_nothing(self: Hub) -> None:
    return None


def _drive_on(self: Hub, run_id: str) -> None:
    return None


def _drive_what_was_lost(self: RunLeases, live: Live, put_down: Callable[[Live], None]) -> None:
    return None


def _leave_to_its_fate(self: LateDelivery, state: RunState) -> None:
    return None


def _revoke_at_any_time(self: Claims, run_id: str, command_id: str) -> bool:
    return True


def _claim_at_any_time(self: Claims, run_id: str, command_id: str, *, is_repeatable: bool = False) -> bool:
    return True


async def _tell_of_no_loss(self: Runner, live: Live, report: Report) -> Turn | None:
    return None if isinstance(report, ToolOutcomeLost) else await runner_advance(self, live, report)


async def _keep_nothing(self: SharedLogs, charge: Charge, *, is_anew: bool = False) -> None:
    return None


async def _refuse_in_silence(self: FoldedInbox, number: int, code: str, message: str, *, token: int = 0) -> None:
    return None


async def _hear_nothing_left(self: Post, live: Live) -> None:
    return None


async def _renew_nothing(self: RunLeases) -> None:
    await asyncio.Event().wait()


async def _at_any_time(self: Steps, run_id: str, step: Coroutine[Any, Any, Any]) -> Any:
    return await step


async def _close_at_once(self: StoreInUse) -> None:
    await self._store.close()


# What is broken -> the law that says so, seeds of worlds that show it, and how it is broken. What shows seldom has several seeds:
# most changes of the shell leave one of their worlds as it was.
MUTANTS: Mapping[str, tuple[str, tuple[int, ...], tuple[Any, ...]]] = {
    "a fork is copied by any process": (
        "one_driver_at_a_time",
        (0,),
        (_instead(Hub, "fork", _copy_unheld), _instead(hub, "copy_whole", _nothing)),
    ),
    "a pause is refused because a fork is being made": (
        "a_pause_holds_until_a_person_resumes",
        (11, 42, 43),
        (mock.patch.dict(decide.RULES, {PauseRequested: _pause_once}),),
    ),
    "a fork goes on although a person has paused it": (
        "a_pause_holds_until_a_person_resumes",
        (11, 72, 87),
        (_instead(fork_run, "awaits_resume", lambda state: state.place.is_copy),),
    ),
    "the fork of a fork forgets why its origin was one": (
        "journals_add_up",
        (7, 10, 13),
        (_instead(offspring, "_explained", _unexplained),),
    ),
    "a retry is told the newest fork": (
        "a_retry_names_its_own_fork",
        (10, 29),
        (_instead(durability, "answer_of", lambda turn: ""), _instead(post, "answer_of", lambda turn: "")),
    ),
    "a retry that is recorded is refused": (
        "no_signal_is_lost_or_doubled",
        (10, 37, 40),
        (_instead(ChildExecutor, "fork", _refuse_a_fork_that_goes_on),),
    ),
    "a refused caller waits until the run rests": (
        "nobody_is_kept_waiting",
        (13, 66, 120),
        (_instead(Hub, "hear", _hear_and_wait),),
    ),
    # It writes nothing: a store is asked nothing any more once its system has let it go.
    "runs are taken up after closing": (
        "nothing_outlives_closing",
        (),
        (_instead(Hub, "_step", _step_although_closed),),
    ),
    "a store is closed under its callers": (
        "a_store_is_closed_when_nobody_asks_it",
        (34, 79, 94),
        (_instead(StoreInUse, "close", _close_at_once),),
    ),
    "an entry is heard apart from its turn": (
        "no_signal_is_lost_or_doubled",
        (26, 61, 71),
        (_instead(Post, "_hear", _hear_without_saying_so),),
    ),
    "what was settled is heard again": (
        "no_signal_is_lost_or_doubled",
        (240, 361, 432),
        (_instead(FoldedInbox, "take", _nothing),),
    ),
    # The store refuses its turns, and it has begun what the driver before had ordered.
    "nobody looks who holds a run": (
        "no_mutating_command_is_issued_again",
        (7, 34),
        (_instead(RunLeases, "take", _take_nothing),),
    ),
    "a lease is forgotten": ("nothing_outlives_closing", (5, 8, 12), (_instead(Hub, "_rest", _keep_the_lease),)),
    "a stale holder writes on": (
        "one_driver_at_a_time",
        (14, 44, 59),
        (mock.patch.dict(HEARD, {RunTaken: _no_fence}), _instead(FencedJournal, "append", _append_on)),
    ),
    "a place is taken from a run that is about to begin": (
        "journals_add_up",
        (10, 1),
        (_instead(SharedLogs, "_forestall", _always),),
    ),
    "no child is told that its parent has ended": (
        "an_ended_run_leaves_nothing_running",
        (1, 2, 75),
        (_instead(ChildExecutor, "end", _nothing),),
    ),
    "nobody looks what is left of a quota": (
        "no_tenant_exceeds_its_quota",
        (41,),
        (_instead(MemoryLedger, "check_room", _any_room),),
    ),
    "nobody looks what is halted": (
        "nothing_is_done_while_everything_is_halted",
        (12, 43, 103),
        (_instead(Halts, "_among_standing", _say_nothing),),
    ),
    "a call is sent twice": (
        "no_mutating_command_is_issued_again",
        (5, 20, 33),
        (_instead(InProcessDispatch, "send", _send_calls_twice),),
    ),
    "a cancel of a call is lost": (
        "nothing_is_done_for_an_ended_run",
        (67,),
        (_instead(InProcessDispatch, "_take_back", _stop_nothing),),
    ),
    "a cancel of a child is lost": (
        "children_end_with_their_parent",
        (125, 165, 263),
        (_instead(InProcessDispatch, "_run_chore", _tell_no_child),),
    ),
    "a wake is dropped": (
        "nothing_waits_for_ever",
        (2, 18),
        (_instead(in_process._Work, "report", _report_quietly),),
    ),
    "timers are forgotten": (
        "nothing_waits_for_ever",
        (16, 18, 20),
        (_instead(InProcessDispatch, "_arm", _forget_timers),),
    ),
    "a deadline cuts nothing off": ("a_deadline_is_kept", (7, 44, 73), (_instead(in_process, "_cut", _cut_nothing),)),
    "what an ended run spent is not written": (
        "what_an_ended_run_reserved_is_given_back",
        (11, 26, 41),
        (_instead(SharedLogs, "keep", _keep_nothing),),
    ),
    "a halt calls nothing off": (
        "what_a_halt_finds_under_way_is_called_off",
        (553,),
        (_instead(Hub, "call_off", _call_off_nothing),),
    ),
    "no run is told of a lost outcome": (
        "no_call_stays_open_for_ever",
        (209,),
        (_instead(Runner, "advance", _tell_of_no_loss),),
    ),
    "a refusal is never told": (
        "every_entry_is_answered",
        (3, 7, 9),
        (_instead(FoldedInbox, "settle", _refuse_in_silence),),
    ),
    "a run that is taken up hears nothing of what was left for it": (
        "every_entry_is_answered",
        (5, 9, 12),
        (_instead(Post, "hear_waiting", _hear_nothing_left),),
    ),
    "a parent is not told that its child has ended": (
        "a_parent_goes_on_when_its_child_has_ended",
        (75, 188, 300),
        (_instead(LateDelivery, "tell_parent", _leave_to_its_fate),),
    ),
    "the holder of a parent does not look after its children": (
        "a_parent_goes_on_when_its_child_has_ended",
        (20,),
        (_instead(LateDelivery, "look_after", _leave_to_its_fate),),
    ),
    "children that ended elsewhere are not looked for": (
        "a_parent_goes_on_when_its_child_has_ended",
        (20, 75),
        (_instead(LateDelivery, "child_ended", _nothing),),
    ),
    "what was begun is said not to have been": (
        "what_was_not_begun_has_no_effect",
        (13,),
        (_instead(Claims, "revoke", _revoke_at_any_time),),
    ),
    "what was taken back begins": (
        "what_was_not_begun_has_no_effect",
        (13, 155, 166),
        (_instead(Claims, "claim", _claim_at_any_time),),
    ),
    "a lost run is driven on": ("a_run_that_was_lost_is_put_down", (479,), (_instead(Hub, "_lost", _drive_on),)),
    "a run that was lost while it was taken up is driven": (
        "a_run_that_was_lost_is_put_down",
        (209,),
        (_instead(RunLeases, "expect_held", _drive_what_was_lost),),
    ),
    "leases are not renewed": (
        "a_living_process_renews_its_leases",
        (10, 14, 25),
        (_instead(RunLeases, "_renew", _renew_nothing),),
    ),
    "steps of one run are done at once": (
        "nothing_waits_for_ever",
        (49,),
        (_instead(Steps, "_in_turn", _at_any_time),),
    ),
}


# Of what shows very seldom, worlds as they were before there were small troubles.
EARLIER: Mapping[str, tuple[int, ...]] = {
    "runs are taken up after closing": (56,),
    "what was settled is heard again": (28,),
    "no run is told of a lost outcome": (58, 66, 70),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.slow
def test_a_broken_shell_is_found_by_its_seed(name: str) -> None:
    law, seeds, patches = MUTANTS[name]
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        with pytest.raises(LawBroken) as found:
            _play((*seeds, *range(SEEDS)), EARLIER.get(name, ()))
    assert found.value.law == law, f"found by {found.value.law} at seed {found.value.seed}"


def _play(seeds: Iterable[int], earlier: Iterable[int]) -> None:
    """The seeds that found a mutant come first; where worlds have changed since, any of the others may."""
    for seed in earlier:
        keep_the_law(earlier_scenario(seed))
    for seed in seeds:
        keep_the_law(shell_scenario(seed))
