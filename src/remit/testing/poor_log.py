"""A log that can do the least: one entry at a time, behind the last one that was seen."""

from remit.backend.folded.log import Entry
from remit.core.journal.storage import START, AppendConflict, Place

_APART = 3


class PoorLog:
    """Entries in memory, for everybody who has it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._stands: dict[str, Place] = {}

    async def append(self, name: str, data: bytes, after: Place) -> Place:
        """Write the next entry of a log that stands at `after`."""
        if self._stands.get(name, START) != after:
            raise AppendConflict(name)
        # Three apart, so that nobody takes a place for a number.
        place = _APART * len(self.entries) + 2
        self.entries.append(Entry(place, name, data))
        self._stands[name] = place
        return place

    async def news(self, after: Place) -> list[Entry]:
        """The entries of all logs after a place, oldest first."""
        return self.entries[(after + 1) // _APART :]
