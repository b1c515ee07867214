"""The runs that a guard has open, under the names that their hosts give them, and the bytes that they may hold."""

from collections import OrderedDict
from collections.abc import Iterator

from remit.core.failure import RequestRejected
from remit.core.record import JsonObject
from remit.orchestrate.guard.open_run import OpenRun
from remit.orchestrate.guard.protocol import id_under, required_text

GUARD_RUN_UNKNOWN = "GUARD_RUN_UNKNOWN"
GUARD_RUN_AMBIGUOUS = "GUARD_RUN_AMBIGUOUS"
GUARD_RUNS_FULL = "GUARD_RUNS_FULL"
GUARD_BYTES_FULL = "GUARD_BYTES_FULL"

# One process guards the agents of a busy service; a caller with more has forgotten to end them.
RUNS_MAX = 1_000
# Runs that ended before it was known what came of a call: a result that comes after a thousand others is not waited for.
ENDED_MAX = 1_000
# What came in and is remembered: of one run (more than any context holds), and of all runs together.
RUN_BYTES_MAX = 32 * 1024 * 1024
BYTES_MAX = 256 * 1024 * 1024


class RunRegister:
    """Open runs by their tenant and name, and those that ended before it was known what came of a call."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], OpenRun] = {}
        self._ended: OrderedDict[tuple[str, str], OpenRun] = OrderedDict()
        self._size_bytes = 0

    def __iter__(self) -> Iterator[OpenRun]:
        return iter(self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._runs

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the open runs, which several tenants may have given alike."""
        return tuple([name for _, name in self._runs])

    def check_room(self) -> None:
        """Raise where no more runs may be open."""
        if len(self._runs) >= RUNS_MAX:
            message = f"{len(self._runs)} runs are open, runs_max={RUNS_MAX}; end those that are over"
            raise RequestRejected(GUARD_RUNS_FULL, message)

    def open(self, name: str, run: OpenRun) -> None:
        """Add a run, with the bytes that it holds."""
        self._runs[run.tenant, name] = run
        self._size_bytes += run.size_bytes

    def close(self, name: str, run: OpenRun) -> None:
        """Take a run off, and give back the bytes that it held."""
        del self._runs[run.tenant, name]
        self._size_bytes -= run.size_bytes

    def clear(self) -> None:
        """Take all runs off."""
        self._runs.clear()
        self._ended.clear()

    def keep_ended(self, name: str, run: OpenRun) -> None:
        """Keep a run that has ended where a result may yet come, and not the one before it; of too many, drop the oldest."""
        self._ended.pop((run.tenant, name), None)
        if not run.is_broken and run.is_waiting:
            self._ended[run.tenant, name] = run
        if len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def forget_ended(self, name: str, run: OpenRun) -> None:
        """Drop a run that has ended and waits for no result any more."""
        del self._ended[run.tenant, name]

    def named(self, name: str, tenant: str | None) -> list[OpenRun]:
        """The open runs of this name."""
        if tenant is not None:
            return [self._runs[tenant, name]] if (tenant, name) in self._runs else []
        return [run for (_, known), run in self._runs.items() if known == name]

    def run(self, name: str, tenant: str | None = None, way_out: str = "start it first") -> OpenRun:
        """The one open run of this name; raises where there is none, or several tenants have one."""
        runs = self.named(name, tenant)
        if not runs:
            raise RequestRejected(GUARD_RUN_UNKNOWN, f"run {name!r} is not open; {way_out}")
        if len(runs) > 1:
            message = f"{len(runs)} tenants have a run {name!r} open; say whose you mean with `tenant`"
            raise RequestRejected(GUARD_RUN_AMBIGUOUS, message)
        return runs[0]

    def ended_with(self, name: str, tenant: str | None, operation: JsonObject) -> OpenRun | None:
        """The run that ended before it was known what came of the call of this result, unless an open run of the name has one."""
        if not self._ended:
            return None
        call_id, tool = id_under(operation, "id"), required_text(operation, "tool")
        for run in self.named(name, tenant):
            if call_id is None or run.answered(call_id, tool) or run.is_known(call_id, tool):
                return None
        ended = [run for (whose, known), run in self._ended.items() if known == name and tenant in (None, whose)]
        return next((run for run in ended if run.takes(call_id, tool)), None)

    def charge(self, name: str, run: OpenRun, size_bytes: int) -> None:
        """Count more bytes for a run; raises where it, or all runs together, would hold too many."""
        self.check_bytes(name, run.size_bytes, size_bytes)
        self.grow(run, size_bytes)

    def grow(self, run: OpenRun, size_bytes: int) -> None:
        """Count more bytes for a run."""
        run.size_bytes += size_bytes
        self._size_bytes += size_bytes

    def check_bytes(self, name: str, held: int, more: int) -> None:
        """Raise where a run that holds so many bytes, or all runs together, may not hold so many more."""
        if held + more > RUN_BYTES_MAX:
            message = f"run {name!r} holds {held} bytes and {more} more exceed run_bytes_max={RUN_BYTES_MAX}"
            raise RequestRejected(GUARD_BYTES_FULL, f"{message}; start another run")
        if self._size_bytes + more > BYTES_MAX:
            message = f"all runs hold {self._size_bytes} bytes and {more} more exceed bytes_max={BYTES_MAX}"
            raise RequestRejected(GUARD_BYTES_FULL, f"{message}; end runs that are over")
