"""The ports are roles: what backends and worlds must look like, proven by the type checker and by use."""

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.kernel.state import RunState
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.outlet import Dispatch, Outlet
from remit.orchestrate.ports import Blobs, Clock, Journal
from remit.testing.scripts import in_turn, says
from remit.testing.world import SimulatedWorld
from tests.unit.orchestrate.stage import HandClock


def test_a_live_run_begins_with_nothing_but_its_state() -> None:
    live = Live("run", RunState())
    assert (live.run_id, live.state, live.conversation.messages) == ("run", RunState(), [])


def test_the_backend_in_memory_fits_its_ports() -> None:
    journal: Journal = MemoryJournal()
    blobs: Blobs = MemoryBlobs()
    assert {"append", "read"} <= set(dir(journal))
    assert {"get", "put"} <= set(dir(blobs))


def test_a_simulated_world_is_clock_and_dispatch_in_one() -> None:
    world = SimulatedWorld(model=in_turn(says("done")))
    clock: Clock = world
    dispatch: Outlet = world
    assert clock.now_ms() > 0
    assert {"send", "receive", "forget"} <= set(dir(dispatch))


def test_the_dispatch_within_a_process_fits_its_port() -> None:
    dispatch: Dispatch = InProcessDispatch({}, HandClock())
    assert {"send", "receive", "forget"} <= set(dir(dispatch))
