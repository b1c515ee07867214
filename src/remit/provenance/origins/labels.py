"""Labels: where every value of a run came from, kept beside the text and never in it.

Each result becomes an observation: groups of records with their declared fields, and nothing else. From these the index
is built: value to origins. Free text leaves only its references behind, to say where else a value was seen.

Rule 1: only fields of a supplying kind are origins.
Rule 2: an observation is plain JSON values; the index is made from observations alone and can be thrown away.
Rule 3: the origins of a value are bounded; the first and the latest are kept.
"""

from collections.abc import Iterable
from typing import Any

from remit.core.record import JsonObject, Record
from remit.provenance.kinds import number_key, number_of, supplies

# Enough origins to find one that was selected; more of them cannot make a value more trusted.
ORIGINS_MAX = 16


class OriginPlace(Record):
    """One place that supplied a value: observation, group of records, record, field, and the field's kind."""

    observation: int
    group: str
    record: int
    field: str
    kind: str


class Group(Record):
    """The records of one group; `is_cut` when some were dropped."""

    records: tuple[JsonObject, ...]
    kinds: dict[str, str]
    is_cut: bool = False


class Observation(Record):
    """What one result left behind, and how its call came about.

    `chosen`: all arguments came from the user, and nothing was cut off. `is_earlier`: some came from earlier exchanges.
    `located`: the words name its source. `names`: what the lookup was given that the words use as a name. `asked`: the
    words speak of what was read. `untrusted`: some text in it has no voucher.
    """

    call_id: str
    tool: str
    groups: dict[str, Group]
    references: tuple[tuple[str, str], ...] = ()
    chosen: bool = False
    asked: bool = False
    is_earlier: bool = False
    located: bool = False
    untrusted: bool = False
    arguments: tuple[str, ...] = ()
    readers: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()


class OriginIndex:
    """From value to origins, over all observations of a run."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []
        self.origins: dict[str, list[OriginPlace]] = {}
        self.seen: dict[str, int] = {}

    def add(self, observation: Observation) -> int:
        """Take in an observation and give its number."""
        number = len(self.observations)
        self.observations.append(observation)
        for group_name, group in observation.groups.items():
            trusted = {field for field, kind in group.kinds.items() if supplies(kind)}
            for place, record in enumerate(group.records):
                for field, value in record.items():
                    values = value if isinstance(value, list) else (value,)
                    if field in trusted:
                        self._note(values, OriginPlace(number, group_name, place, field, group.kinds[field]))
                        continue
                    for single in values:
                        self.seen.setdefault(index_key(single), number)
        for _, reference in observation.references:
            self.seen.setdefault(reference, number)
        return number

    def _note(self, values: Iterable[Any], origin: OriginPlace) -> None:
        for value in values:
            key = index_key(value)
            known = self.origins.get(key)
            if known is None:
                self.origins[key] = [origin]  # Most values have one, and a list of one is shorter than one that grew.
                continue
            if len(known) == ORIGINS_MAX:
                del known[ORIGINS_MAX // 2]  # The first and the latest are kept.
            known.append(origin)

    def origins_of(self, value: Any) -> list[OriginPlace]:
        """The trusted places that supplied a value, earliest first."""
        return self.origins.get(index_key(value), [])

    def seen_in(self, value: Any) -> int | None:
        """The first observation whose untrusted part held this value, as far as it was noted."""
        return self.seen.get(index_key(value))


def index_key(value: Any) -> str:
    """The key of a value in the index: numbers by their size, texts by their exact characters."""
    if isinstance(value, str):
        return value
    number = number_of(value)
    return number_key(number) if number is not None else repr(value)
