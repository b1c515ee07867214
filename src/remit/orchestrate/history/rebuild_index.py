"""Whatever a store derives from turns, made anew: the index of runs, places of sessions, quotas, and what became of entries.

Rule 1: turns, texts, signed heads, entries of the inbox that nobody settled, refusals, receipts of people and what deleted
        runs cost are inputs. They are read and never made.
Rule 2: a run that cannot be folded, or whose place in a session another has, is left as it is, and named. One that is listed
        and has no turn is listed no more, and named.
Rule 3: a run that goes on meanwhile is left to whoever drives it.
"""

from collections.abc import Sequence

from remit.core.failure import InvariantBroken
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import Derived
from remit.core.record import Record
from remit.core.run.halt import HALTS
from remit.kernel.state import pinned
from remit.observe.history import fold, read_history
from remit.orchestrate.loop.durability import answer_of, listing_of, standing_after
from remit.orchestrate.ports import Store
from remit.orchestrate.tenants.quota_ledger import Quotas

# So many runs are written at once, so that others wait for no longer than that takes.
_AT_ONCE = 100


class Rebuilt(Record):
    """What came of making everything anew: how many runs are listed again, and which could not be."""

    runs: int
    unread: tuple[str, ...] = ()
    # Journals that tell no name, or one that another has.
    nameless: int = 0
    # Runs that were listed, and that no turn tells of.
    untold: tuple[str, ...] = ()


async def rebuild(store: Store, quotas: Quotas) -> Rebuilt:
    """Make anew whatever is derived from turns."""
    made, unread, renewed = list[Derived](), list[str](), 0
    nameless, untold = await store.index.mend(), await store.index.strike()
    for name in await store.index.names():
        if name == HALTS:
            continue  # The journal of halts is no run.
        try:
            made.append(derived_from(name, await store.journal.read(name)))
        except InvariantBroken:
            unread.append(name)
    for _ in range(2):  # A place in a session may be free once whoever had it without right is listed as it should be.
        left = list[Derived]()
        for start in range(0, len(made), _AT_ONCE):
            some = made[start : start + _AT_ONCE]
            listed = frozenset(await store.index.renew(some))
            renewed += len(listed)
            left += [run for run in some if run.run_id not in listed]
        made = left
    unread += [run.run_id for run in made if len(await store.journal.read(run.run_id)) == run.turns]
    await quotas.rebuild()
    await store.index.sum_up()
    return Rebuilt(renewed, tuple(unread), nameless, tuple(untold))


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
