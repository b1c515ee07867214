"""Like runs are looked up when a run begins, and what they needed is pinned in its manifest.

Rule 1: a store is asked by an index alone; journals are read only of runs that are alike and succeeded, each of them once
        while it is remembered, and never more turns at a time than TURNS_MAX.
Rule 2: what was found serves the next submissions too, more of them where more is known; then the store is asked again.
Rule 3: a journal that does not add up says nothing, and keeps no run from beginning; `remit verify` tells of it.
Rule 4: what is pinned is all that a replay needs: nothing is looked up while a run goes on.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from remit.core.failure import RemitError
from remit.core.journal.storage import RunEntry
from remit.core.limits.foresight import RUNS_MIN, Foresight
from remit.core.run.manifest import Manifest
from remit.observe.cost.like_runs import Course, course_of, foresight_of, likeness_of
from remit.observe.linked_turns import read_history, states
from remit.orchestrate.ports import Catalogue, Journal

# How many of the newest similar runs are learned from. The chance that the next one is cheaper than all 50 is 1 in 51.
RUNS_MAX = 50
# Reading and folding takes some twenty microseconds a turn, so that beginning a run never waits longer than a blink.
TURNS_MAX = 2_000
# So many runs are begun with what was found while few are known, and once half as many are known as are learned from: then
# most of what is added says nothing new, and reading it would cost each run a tenth of its time.
USES_MAX = 10
USES_SETTLED_MAX = 250
# Kinds of runs that a process begins in turn; what is remembered of one takes some ten kilobytes.
KINDS_MAX = 64

# What is raised over turns that no kernel could have taken.
_NONSENSE = (RemitError, AssertionError, LookupError, ValueError, TypeError, AttributeError)


class _Kind:
    """What is remembered of runs that are alike."""

    __slots__ = ("courses", "foresight", "learning", "uses_left")

    def __init__(self) -> None:
        self.courses: dict[str, Course] = {}
        self.foresight: Foresight | None = None
        self.uses_left = 0
        # Of many that begin at once, one learns and the others wait for it.
        self.learning = asyncio.Lock()


class LikeRunLookup:
    """Looks up what like runs needed, in one store."""

    def __init__(self, catalogue: Catalogue, journal: Journal) -> None:
        self._catalogue = catalogue
        self._journal = journal
        self._kinds: OrderedDict[str, _Kind] = OrderedDict()

    async def foresight_of(self, manifest: Manifest) -> Foresight | None:
        """What runs like this one needed; None where too little is known, or no run is stopped early."""
        likeness = likeness_of(manifest)
        if not likeness:
            return None
        kind = self._kinds.get(likeness)
        if kind is None:
            if len(await self._catalogue.alike(likeness, limit=RUNS_MIN)) < RUNS_MIN:
                return None
            kind = self._kinds.get(likeness) or self._remembered(likeness)
        self._kinds.move_to_end(likeness)
        async with kind.learning:
            if kind.uses_left == 0:
                await self._learn(likeness, kind)
            kind.uses_left -= 1
        return kind.foresight

    async def _learn(self, likeness: str, kind: _Kind) -> None:
        entries = await self._catalogue.alike(likeness, limit=RUNS_MAX)
        kind.courses = {entry.run_id: await self._course(kind, entry) for entry in _affordable(kind, entries)}
        kind.foresight = foresight_of(kind.courses.values())
        kind.uses_left = USES_MAX if 2 * len(kind.courses) < RUNS_MAX else USES_SETTLED_MAX

    def _remembered(self, likeness: str) -> _Kind:
        kind = self._kinds[likeness] = _Kind()
        if len(self._kinds) > KINDS_MAX:
            self._kinds.popitem(last=False)
        return kind

    async def _course(self, kind: _Kind, entry: RunEntry) -> Course:
        if (known := kind.courses.get(entry.run_id)) is not None:
            return known
        # Whatever else goes on here has its turn between two journals.
        await asyncio.sleep(0)
        try:
            return course_of(states(read_history(entry.run_id, await self._journal.read(entry.run_id))))
        except _NONSENSE:
            return ()


def _affordable(kind: _Kind, entries: Sequence[RunEntry]) -> list[RunEntry]:
    """The runs that are known already, and the newest of the others whose turns may be read beside them."""
    chosen, turns_left = [], TURNS_MAX
    for entry in entries:
        if entry.run_id not in kind.courses:
            if entry.turns > turns_left:
                continue
            turns_left -= entry.turns
        chosen.append(entry)
    return chosen
