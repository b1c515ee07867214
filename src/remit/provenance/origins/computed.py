"""Computed numbers: a sum, a difference or a percentage that the words ask for and the gate computes itself.

Rule 1: only where the words ask for that very operation, and only its result.
Rule 2: what goes in is bound as everything else: numbers of the words, and fields of records that were picked.
Rule 3: a sum is over a whole listing that the user's words chose, or over all numbers of the words; never over a part.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import permutations

from remit.provenance.kinds import NUMBERS, base_of, number_of
from remit.provenance.origins.labels import Group, Observation, OriginPlace
from remit.provenance.origins.selection import fits_argument
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import DIFFERENCES, PERCENTS, SUMS

# A handful of numbers stands in a request; with more, the choice among pairs would be the model's.
OPERANDS_MAX = 8
_CENT = Decimal("0.01")
# Beyond this a number is no amount, and rounding it would fail.
_NUMBER_MAX = Decimal(10) ** 20


class Figures:
    """The numbers of one run that others may be derived from. A sum is looked up, however many there are."""

    def __init__(self, words: Words) -> None:
        """Begin with the numbers of the words."""
        self._sums: set[Decimal] = set()
        self.operands: list[Decimal] = []
        self.read(words)

    def read(self, words: Words) -> None:
        """Take in the words anew; what was picked by the old ones is picked again."""
        self.operands = []
        self._said = words.lower
        self._spoken = _spoken(words)
        self._spoken_sum = sum(self._spoken, Decimal(0))
        self._shares = [Decimal(key) for key, uses in words.numbers.items() if any(use.percent for use in uses)]

    def add(self, observation: Observation) -> None:
        """Take in the sums of a result."""
        for total in sums_of(observation):
            self._sums.add(total)
            if abs(total) < _NUMBER_MAX:
                self._sums.add(total.quantize(_CENT))

    def operation_for(self, number: Decimal) -> str:
        """The operation that yields this number, if the words ask for it; else nothing."""
        said = self._said
        if not SUMS.isdisjoint(said) and (number in self._sums or _same(number, self._spoken_sum)):
            return "sum"
        known = list(dict.fromkeys((*self._spoken, *self.operands)))
        if len(known) > OPERANDS_MAX:
            return ""
        differs = not DIFFERENCES.isdisjoint(said)
        if differs and any(_same(number, a - b) for a, b in permutations(known, 2) if a >= b):
            return "difference"
        shares = self._shares
        if (shares or not PERCENTS.isdisjoint(said)) and any(_same(number, part) for part in _parts(shares, known)):
            return "percent"
        return ""


def sums_of(observation: Observation) -> Iterator[Decimal]:
    """The sum of each declared number over the whole of each listing that the words chose."""
    for group in observation.groups.values():
        if observation.chosen and not group.is_cut and len(group.records) > 1:
            for field, kind in group.kinds.items():
                values = _column(group, field) if base_of(kind) in NUMBERS else None
                if values is not None:
                    yield sum(values, Decimal(0))


def operands_of(words: Words, number: int, name: str, group: Group, places: Iterable[int]) -> Iterator[Decimal]:
    """The declared numbers of picked records, as far as it is clear which of their numbers is meant."""
    fields = [(field, kind) for field, kind in group.kinds.items() if base_of(kind) in NUMBERS]
    for place in places:
        for field, kind in fields:
            value = number_of(group.records[place].get(field))
            if value is not None and fits_argument(
                words, OriginPlace(number, name, place, field, kind), group, "", words
            ):
                yield value


def _column(group: Group, field: str) -> list[Decimal] | None:
    values = [number_of(record.get(field)) for record in group.records]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _spoken(words: Words) -> list[Decimal]:
    """The plain numbers of the words; one that is called an identifier is none."""
    return [
        Decimal(key)
        for key, uses in words.numbers.items()
        if any(not use.percent and not use.is_converted and not {"id", "#"} & set(use.mentions) for use in uses)
    ]


def _same(number: Decimal, computed: Decimal) -> bool:
    return number == computed or (abs(computed) < _NUMBER_MAX and number == computed.quantize(_CENT))


def _parts(shares: list[Decimal], operands: list[Decimal]) -> Iterator[Decimal]:
    for share in shares:
        for operand in operands:
            part = operand * share / 100
            yield from (part, operand + part, operand - part)
