"""Units: how measures are spelled, and by which exact factor one becomes another of its dimension.

Rule 1: a number with a unit may stand for the same measure in another unit only where that is exact; nothing is rounded.
Rule 2: a spelling that may be two units ("m", "t", "C" behind no degree) is none.
"""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from remit.core.regex import regex
from remit.provenance.words.vocabulary import COUNTS, stem

# Each dimension: how often the smallest unit goes into each, and how that is spelled; the first spelling is its name.
_DIMENSIONS: tuple[dict[int, str], ...] = (
    {
        1: "seconds secs",
        60: "minute minutes min mins",
        3_600: "hour hours hr hrs h",
        86_400: "day days",
        604_800: "week weeks",
        1_209_600: "fortnight fortnights",
    },
    {1: "millilitre millilitres milliliter milliliters ml", 1_000: "litre litres liter liters l L"},
    {1: "mg milligram milligrams", 1_000: "gram grams g", 1_000_000: "kg kilo kilos kilogram kilograms"},
    {1: "mm millimetre millimetres millimeter millimeters", 10: "cm centimetre centimetres centimeter centimeters",
     1_000: "metre metres meter meters", 1_000_000: "km kilometre kilometres kilometer kilometers"},
    {1: "celsius degree degrees centigrade °C °c"},
)  # fmt: skip
UNITS = {
    spelling: (number, size)
    for number, dimension in enumerate(_DIMENSIONS)
    for size, spellings in dimension.items()
    for spelling in spellings.split()
}
_TIMES = "|".join(spelling for spelling, (number, size) in UNITS.items() if not number and size > 1)
# "half an hour", "two weeks", "a fortnight": a measure in words, with a noun of time alone.
SPOKEN = regex(
    rf"(?<!\bof )\b(half an|an?|{'|'.join(COUNTS)})\s({_TIMES})\b(?!\s+(?:ago|later|earlier|before|after|hence|from now|and\s+an?\s))"
)


# All that measures the same as a unit does, by name and stem.
_KIN = tuple(frozenset(stem(names.split()[0]) for names in dimension.values()) for dimension in _DIMENSIONS)


def unit_name(unit: str) -> str:
    """What a unit is called, however it is spelled; any other word is its own."""
    if unit not in UNITS:
        return unit
    number, size = UNITS[unit]
    return _DIMENSIONS[number][size].split()[0]


def kin_of(unit: str) -> frozenset[str]:
    """The stems of all units of the same dimension."""
    return _KIN[UNITS[unit][0]] if unit in UNITS else frozenset()


def spoken_count(word: str) -> Decimal:
    """How many a word of a spoken measure says."""
    return Decimal("0.5") if word == "half an" else Decimal(COUNTS.get(word, 1))


def in_other_units(number: Decimal, unit: str) -> Iterator[tuple[Decimal, str]]:
    """The sizes that a measure has in the units of its dimension, its own included, with their names; exact ones alone."""
    if unit not in UNITS:
        return
    dimension, size = UNITS[unit]
    for other, spellings in _DIMENSIONS[dimension].items():
        exact = Fraction(number) * size / other
        found = Decimal(exact.numerator) / Decimal(exact.denominator)
        if Fraction(found) == exact:
            yield found, spellings.split()[0]
