"""Whatever a store derives from turns, made anew: the index of runs, places of sessions, quotas, and what became of entries.

Rule 1: turns, texts, signed heads, entries of the inbox that nobody settled, refusals, receipts of people and what deleted
        runs cost are inputs. They are read and never made.
Rule 2: a run that cannot be folded is left as it is, and named; verifying says what is wrong with it.
Rule 3: a run that goes on meanwhile is left to whoever drives it.
"""

from collections.abc import Sequence

from remit.core.arrivals import RunStarted
from remit.core.codec import decode_turn
from remit.core.failure import InvariantBroken
from remit.core.record import Record
from remit.core.rulings import RunEnded
from remit.core.storage import Derived
from remit.kernel.state import pinned
from remit.observe.history import fold, read_history
from remit.orchestrate.durability import answer_of, listing_of, standing_after
from remit.orchestrate.ports import Store
from remit.orchestrate.quotas import Quotas

# So many runs are written at once, so that others wait for no longer than that takes.
_AT_ONCE = 100


class Rebuilt(Record):
    """What came of making everything anew: how many runs are listed again, and which could not be."""

    runs: int
    unread: tuple[str, ...] = ()


async def rebuild(store: Store, quotas: Quotas) -> Rebuilt:
    """Make anew whatever is derived from turns."""
    made, unread, renewed = list[Derived](), list[str](), 0
    for name in await store.index.names():
        turns = await store.journal.read(name)
        try:
            if _is_run(turns):
                made.append(derived_from(name, turns))
        except InvariantBroken:
            unread.append(name)
        if len(made) == _AT_ONCE:
            renewed += await store.index.renew(made)
            made.clear()
    renewed += await store.index.renew(made)
    await quotas.rebuild()
    return Rebuilt(renewed, tuple(unread))


def derived_from(run_id: str, data: Sequence[bytes]) -> Derived:
    """What a store knows of a run beyond these turns of it; raises InvariantBroken where they are none."""
    history = read_history(run_id, data)
    turns = history.turns
    manifest = pinned(fold(history))
    copied = -1 if manifest.forked_from is None else manifest.forked_from.seq
    return Derived(
        run_id,
        len(turns),
        listing_of(manifest, turns[0].at_ms),
        standing_after(turns),
        next((turn.at_ms for turn in turns if any(isinstance(one, RunEnded) for one in turn.decisions)), None),
        tuple((turn.heard, answer_of(turn)) for turn in turns if turn.heard and turn.seq > copied),
    )


def _is_run(turns: Sequence[bytes]) -> bool:
    """Whether a journal is that of a run: that of halts is not."""
    return isinstance(decode_turn(turns[0]).arrival, RunStarted)
