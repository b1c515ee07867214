"""Call accounts: which values and words of the clauses that order a call are taken up by it.

Rule 1: a value is taken by an argument that has it, by the record that supplied one, by what that record was looked up by,
        or by a text of the call.
Rule 2: a word is accounted for where it is a choice that the call makes, the end of an order that picked a record, the name
        of one, what a look-up was asked, or what a text of the call says.
"""

from collections.abc import Iterable, Iterator, Sequence

from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import MOMENTS, NUMBERS, TEXT, base_of, number_key, number_of
from remit.provenance.origins.labels import Group, Observation
from remit.provenance.origins.relations import is_participle
from remit.provenance.values.grounds import Grounds
from remit.provenance.words.clause_items import ORDINAL, Stray
from remit.provenance.words.moments import is_said
from remit.provenance.words.negation import NEGATING
from remit.provenance.words.said_values import MOMENT, SaidValue
from remit.provenance.words.user_words import COUNTED, is_called_for
from remit.provenance.words.vocabulary import (
    DIFFERENCES,
    FUNCTION_WORDS,
    PERCENTS,
    SUMS,
    SUPERLATIVES,
    name_stems,
    name_words,
    stem,
    word_stems,
)

# The ends of orders, and words that go with them: "the same as last time", "the best rated hotel".
_ENDS = frozenset(map(stem, SUPERLATIVES | {"most", "recent", "same", "time", "rated", "liked"}))
# What relates a record to a person or to its source.
_RELATING_SAID = "that sent shared posted written wrote which stands is owner whose what has"
_RELATING = frozenset(map(stem, _RELATING_SAID.split()))
_RELATIVE = frozenset({"that", "they", "whom", "who", "which", "he", "she", "same"})
# What says how a number is worked out.
_FIGURING = frozenset(
    map(stem, SUMS | DIFFERENCES | PERCENTS | {"half", "size", "between", "less", "plus", "minus", "more", "than"})
)
# How a day and a time are written within a moment.
_DAY_CHARS, _TIME_CHARS = 10, 5
_BEGINNING = regex(r"\b(?:start|begin)\w* with [\"']?$")
_BEGINNING_CHARS = 24
WORD = regex(r"[\w'-]+")


class CallAccount:
    """One call, as far as it can account for words."""

    def __init__(
        self, arguments: Sequence[Argument], payload: Sequence[Argument], declaration: Declaration, grounds: Grounds
    ) -> None:
        self._all = arguments
        self._is_derived = any(one.bound_by.startswith("derived") for one in arguments)
        self._arguments = [one for one in arguments if one.bound_by not in ("default", "earlier")]
        self._payload = [one.value for one in payload if isinstance(one.value, str)]
        self._declaration, self._grounds = declaration, grounds
        self._lexicon = grounds.tool_words.lexicons[declaration.name]
        self._own = grounds.asking.own
        # Where the names of picked records stand, and the look-ups that supplied records.
        self._names: dict[int, Argument] = {}
        self._looked: list[Observation] = []
        # Whether a value of the call is a moment that stands at a place.
        self._moments: dict[tuple[str, int], bool] = {}
        self._stems = self._accounted()

    def _accounted(self) -> frozenset[str]:
        grounds, found = self._grounds, set[str]()
        for one in self._arguments:
            name = one.path.rpartition(".")[2].partition("[")[0]
            if one.value is True:
                found |= name_stems(name)
            elif isinstance(one.value, str) and one.bound_by == "words" and one.origin is None:
                found |= word_stems(one.value)
            if one.origin is None:
                continue
            observation = grounds.index.observations[one.origin.observation]
            self._looked.append(observation)
            told = (observation.tool, *observation.arguments, *observation.names)
            found.update(_stems(told))
            pick, group = grounds.pick_of(one.origin), grounds.group_of(one.origin)
            if pick is not None and pick.reason == "superlative":
                found |= _ENDS.union(map(stem, pick.words))
            elif len(group.records) == 1 or base_of(one.kind) in NUMBERS:
                found |= _ENDS
            for field in group.kinds:
                found |= word_stems(field)
            if observation.located or any(base_of(kind) in ("who", "email") for kind in group.kinds.values()):
                found |= _RELATING
            for name in pick.words if pick is not None and pick.reason == "named" else ():
                if name in grounds.asking.strings or name in self._own:
                    start = grounds.asking.strings.get(name, (self._own.find(name), 0))[0]
                    self._names[start] = one
        return frozenset(found)

    @property
    def _is_open(self) -> bool:
        """Whether a value of the call stands elsewhere by its nature: in an earlier exchange, a source, a code."""
        return any(one.bound_by in ("earlier", "named_source", "only_code", "approval") for one in self._all)

    def _takes(self, value: SaidValue) -> bool:
        if any(value.text in text for text in self._payload):
            return True
        if any(value.text in name for observation in self._looked for name in observation.names):
            return True
        if any(start < value.end and value.start < start + len(self._name_at(start)) for start in self._names):
            return True
        return any(self._is_taken_by(one, value) for one in self._arguments)

    def _name_at(self, start: int) -> str:
        found = self._names[start]
        assert found.origin is not None, "only a record has a name"
        pick = self._grounds.pick_of(found.origin)
        return next((one for one in (pick.words if pick else ()) if self._own.startswith(one, start)), "")

    def _is_taken_by(self, one: Argument, value: SaidValue) -> bool:
        held, grounds = one.value, self._grounds
        if value.sort == MOMENT and isinstance(held, str):
            key = held, value.start
            if key not in self._moments:
                parts = (held, held[:_DAY_CHARS], held[_DAY_CHARS + 1 :][:_TIME_CHARS])
                said = (is_said(part, value.told, today=grounds.today, years=grounds.years) for part in parts)
                self._moments[key] = any(said)
            return self._moments[key]
        if one.span is not None and one.span[0] <= value.start + 1 and value.end <= one.span[1]:
            return True
        if isinstance(held, bool) or held is None:
            return False
        if value.number is not None:
            number = number_of(held)
            name = one.path.rpartition(".")[2]
            is_equal = number is not None and number_key(number) == value.text
            return is_equal and (one.span is None or is_called_for(value.number, one.kind, name))
        if isinstance(held, str) and value.text.lstrip("@#") in held:
            return True
        return one.origin is not None and self._is_of_record(value, one)

    def _is_of_record(self, value: SaidValue, one: Argument) -> bool:
        assert one.origin is not None, "only a field has a record"
        record = self._grounds.group_of(one.origin).records[one.origin.record]
        held = [single for field in record.values() for single in (field if isinstance(field, list) else (field,))]
        if value.sort == MOMENT:
            today, years = self._grounds.today, self._grounds.years
            return any(isinstance(text, str) and is_said(text, value.told, today=today, years=years) for text in held)
        if one.bound_by.endswith(":each") or one.bound_by == "closed_set":  # "all files starting with Old"
            is_beginning = _BEGINNING.search(self._own, max(value.start - _BEGINNING_CHARS, 0), value.start)
            if is_beginning is not None:
                return any(str(single).startswith(value.text) for single in held)
        return any(str(single) == value.text for single in held)

    def _accounts_for(self, stray: Stray) -> bool:
        if stray.stems and stray.stems <= self._stems and not (stray.is_fronted and stray.stems <= _ENDS):
            return True
        spans = [one.span for one in self._arguments if one.span is not None]
        if any(start <= stray.start and stray.end <= end for start, end in spans):
            return True
        if any(start <= stray.start < start + len(self._name_at(start)) for start in self._names):
            return True
        if self._is_label(stray.text) or self._is_counted(stray):
            return True
        if self._is_open and (stray.text not in FUNCTION_WORDS or stray.text in _RELATIVE):
            return True
        if self._is_of_set and (stray.text == "one" or self._is_ruled_out(stray)):
            return True
        if self._is_related(stray):
            return True
        if self._is_derived and stray.stems <= _FIGURING:
            return True
        return stray.is_sayable and any(stray.text in map(str.lower, WORD.findall(text)) for text in self._payload)

    @property
    def _is_of_set(self) -> bool:
        return any(one.bound_by == "closed_set" for one in self._arguments)

    def _is_ruled_out(self, stray: Stray) -> bool:
        """Whether a word stands where the words rule something out, which a closed set heeds by itself."""
        return any(
            start <= stray.start < end or (stray.text in NEGATING and 0 <= start - stray.end <= 1)
            for start, end in self._grounds.asking.negated
        )

    def _is_related(self, stray: Stray) -> bool:
        """Whether a word tells the relation of a person to the record that is picked by it: "assigned by ann@…"."""
        names = [self._name_at(start) for start in self._names]
        return is_participle(stray.text) and any("@" in name for name in names)

    def _is_counted(self, stray: Stray) -> bool:
        """Whether a word is what a number counts that the call takes as a count: "two tickets"."""
        return any(
            one.span is not None
            and not COUNTED.isdisjoint(name_words(name_of(one)))
            and self._own[one.span[1] : stray.start] == " "
            and stray.text.endswith("s")
            and not self._own.startswith(" of ", stray.end)  # "2 pairs of seats"
            for one in self._arguments
        )

    def _is_label(self, text: str) -> bool:
        """Whether a word is what a picked record is labelled with as a whole: "the debit card ending 9023"."""
        if not text.isalpha() or text in FUNCTION_WORDS or ORDINAL.fullmatch(text):
            return False
        said = f" {' '.join(WORD.findall(self._own.lower()))} "
        for group, record in self._records():
            for field, kind in group.kinds.items():
                value = str(group.records[record].get(field)).lower()
                if kind != TEXT and text in value.split() and f" {value} " in said:
                    return True
        return False

    def _targets(self) -> set[str]:
        """What the call falls on, by the values that say on whom or on what; of all of a listing, by whatever they are called."""
        kinds = (*MOMENTS, *NUMBERS)
        held = {one.value for one in self._arguments if isinstance(one.value, str) and base_of(one.kind) not in kinds}
        is_each = any(one.bound_by.endswith((":each", "closed_set")) for one in self._arguments)
        return held | (self._held() if is_each else set())

    def _held(self) -> set[str]:
        """What the call falls on, by its values and by all that the records that supplied them are known by."""
        held = {one.value for one in self._arguments if isinstance(one.value, str) and len(one.value) > 1}
        for group, record in self._records():
            values = [group.records[record].get(field) for field, kind in group.kinds.items() if kind != TEXT]
            held.update(value for value in values if isinstance(value, str))
        return held

    def _records(self) -> Iterator[tuple[Group, int]]:
        for one in self._arguments:
            if one.origin is not None:
                yield self._grounds.group_of(one.origin), one.origin.record


def _stems(texts: Iterable[str]) -> Iterator[str]:
    """The stems of what a look-up was asked; words that turn an order around are none of it."""
    for text in texts:
        for word in (*name_words(text), *text.lower().split()):
            if word not in FUNCTION_WORDS and not ORDINAL.fullmatch(word):
                yield stem(word)


def name_of(one: Argument) -> str:
    """What an argument is called: the last part of its path."""
    return one.path.rpartition(".")[2].partition("[")[0]
