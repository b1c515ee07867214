"""Lineages: from which runs a run came, asked by its id.

A lineage is pinned by the first turn of a run and never changes. The index has it, and so does whoever has the run's manifest.
"""

from remit.core.run.manifest import Manifest, lineage_of
from remit.orchestrate.ports import Catalogue

# Of so many runs that were begun here it is remembered: the index does not list a run before its first turn is written.
REMEMBERED_MAX = 4096


class Lineages:
    """Tells the lineages of runs."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[str, tuple[str, ...]] = {}

    def learn(self, manifest: Manifest) -> None:
        """Remember the lineage of a run that is about to begin."""
        self._known[manifest.run_id] = lineage_of(manifest)
        if len(self._known) > REMEMBERED_MAX:
            del self._known[next(iter(self._known))]

    async def of(self, run_id: str) -> tuple[str, ...]:
        """The runs that a run came from as a child or as a retry, the first of them first; none where nobody started it."""
        if (known := self._known.get(run_id)) is not None:
            return known
        entry = await self._catalogue.entry(run_id)
        return () if entry is None else entry.listing.lineage

    async def family(self, run_id: str) -> str:
        """The first run of the lineage of a run, or the run itself."""
        return next(iter(await self.of(run_id)), run_id)

    async def is_beneath(self, run_id: str, above: str) -> bool:
        """Whether a run is another one, or came from it."""
        return run_id == above or above in await self.of(run_id)
