"""Understood: a call passes only where the clause that orders it is understood whole, with the values that the call takes up.

Rule 1: every value of the clause is taken up, by an argument, by the record that supplied one, or by what that was looked
        up by. What stands beside a value that was taken, in the same role, is for a further call.
Rule 2: every word is understood, or the call accounts for it: a choice that it makes, the end of an order that picked a
        record, the name of one, what a look-up was asked, or what its text says.
Rule 3: a value binds in its role. What stands behind "from" binds only arguments that are called so or stand beside their
        noun; what stands behind "in" or "of" only where the order falls on something else than that.
Rule 4: a value stands in the clause, or in what the clause points back to. Where anything else that is no order speaks of
        it, a person is asked.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import combinations

from remit.core.limits.authority import Stakes
from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import MOMENTS, NUMBERS, TEXT, UNSAYING, base_of, number_key, number_of
from remit.provenance.origins.labels import Group, Observation
from remit.provenance.origins.relations import is_participle
from remit.provenance.values.clause_roles import (
    are_ends_told,
    fits_choice,
    fits_number,
    fits_target,
    is_barred,
    is_composed,
    is_loose,
    is_moment_fitting,
    is_source,
    is_together,
)
from remit.provenance.values.grounds import Grounds
from remit.provenance.words.clause_parts import ORDINAL, QUOTE, Slot, Stray
from remit.provenance.words.imperatives import PLANNED_WORDS_MAX
from remit.provenance.words.moments import is_said
from remit.provenance.words.negation import NEGATING
from remit.provenance.words.prepositions import AIM, AS, BY, FOR, FROM, IN, OBJECT, TO, WITH
from remit.provenance.words.said_values import MOMENT, NAME, NUMBER, SaidValue
from remit.provenance.words.understood_clauses import ClauseRead
from remit.provenance.words.user_words import is_called_for
from remit.provenance.words.vocabulary import (
    CURRENCIES,
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
_RELATING = frozenset(
    map(
        stem,
        (
            "that",
            "sent",
            "shared",
            "posted",
            "written",
            "wrote",
            "which",
            "stands",
            "is",
            "owner",
            "whose",
            "what",
            "has",
        ),
    )
)
_RELATIVE = frozenset({"that", "they", "whom", "who", "which", "he", "she", "same"})
# What says how a number is worked out.
_FIGURING = frozenset(
    map(stem, SUMS | DIFFERENCES | PERCENTS | {"half", "size", "between", "less", "plus", "minus", "more", "than"})
)
_SUPERLATIVES = frozenset(map(stem, SUPERLATIVES))
# By what something is carried.
_CARRYING = frozenset({"by", "via", "with", "us", "through"})
# How a day and a time are written within a moment.
_DAY_CHARS, _TIME_CHARS = 10, 5
_WORD = regex(r"[\w'-]+")


def not_understood(
    arguments: Sequence[Argument], payload: Sequence[Argument], declaration: Declaration, grounds: Grounds
) -> str:
    """What of the clauses that order a call is not understood, as a note; empty where all is."""
    if len(grounds.asking.tokens) > PLANNED_WORDS_MAX:
        return f"more than {PLANNED_WORDS_MAX} words"
    readings = grounds.readings_of(declaration.name)
    call = _Call(arguments, payload, declaration, grounds)
    touched = [one for one in readings if call.touches(one)] or list(readings)
    # What is made ready for another order takes none of its other values.
    is_own = declaration.name not in grounds.tool_words.preparing or not grounds.plan.of(declaration.name).others
    for reading in touched if is_own else ():
        if note := call.leftover(reading):
            return note
    slots = [slot for reading in touched for slot in reading.slots]
    if not touched:
        return ""
    return call.out_of_role(slots, touched) or call.spoken_of(touched) or call.left_beside(touched)


class _Call:
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

    def touches(self, reading: ClauseRead) -> bool:
        """Whether a value of the call stands in a clause or in what it points back to."""
        places = [*self._names, *(one.span[0] for one in self._arguments if one.span is not None)]
        return any(reading.start <= place < reading.end for place in places) or (
            reading.points_back and any(reading.zone[0] <= place < reading.zone[1] for place in places)
        )

    def leftover(self, reading: ClauseRead) -> str:
        """What of a clause the call leaves over."""
        is_taken = [self._takes(slot.value) for slot in reading.slots]
        taken = [slot for slot, one in zip(reading.slots, is_taken, strict=True) if one]
        for slot in (slot for slot, one in zip(reading.slots, is_taken, strict=True) if not one):
            if is_loose(slot, taken, reading.slots, self._own) and not self._grounds.index.origins_of(slot.value.text):
                return f"{slot.value.text!r} is not understood"
            if self._is_missed(slot):
                return f"the call leaves {slot.value.text!r} over"
            if slot.is_needed and not self._may_be_left(slot, taken):
                return f"the call leaves {slot.value.text!r} over"
        ends = {stray.text for stray in reading.strays if not stray.stems.isdisjoint(_SUPERLATIVES)}
        if len(ends) > 1:
            return f"{' and '.join(sorted(ends))} are two ends"
        for stray in reading.strays:
            if not self._accounts_for(stray):
                return f"{stray.text!r} is not understood"
        own = self._lexicon.own
        has_object = not reading.things or any(slot.is_object for slot in reading.slots)
        if has_object or reading.things[-1] in own or reading.things[-1] in self._stems:
            return ""
        return f"{reading.things[-1]!r} is no thing of the tool"

    def _is_missed(self, slot: Slot) -> bool:
        """Whether an argument that the call leaves out could take what an order is said to be for: "for user 4242"."""
        said = slot.value.number
        if slot.role not in (FOR, AIM) or (said is not None and not said.caller):
            return False
        given = {one.path.partition(".")[0].partition("[")[0] for one in self._all if one.bound_by != "default"}
        return any(
            base_of(kind) in ("id", "who") and name not in given for name, kind in self._declaration.control_args
        )

    def _may_be_left(self, slot: Slot, taken: list[Slot]) -> bool:
        """Whether a value is for a further call, or says no more than what was taken."""
        value, own = slot.value, self._lexicon.own
        if any(_is_beside(slot, one) for one in taken) or (self._is_open and value.sort != NUMBER):
            return True
        if value.sort == NUMBER and self._is_derived:
            return True
        targets = [
            one
            for one in taken
            if one.value.sort in (NAME, QUOTE) or (one.value.number is not None and one.value.number.caller)
        ]
        is_path = "/" in value.text and any(base_of(one.kind) == "path" for one in self._arguments)
        if slot.role == IN and value.sort in (NAME, QUOTE) and any(one.is_object for one in targets):
            return not is_path  # Where the thing is that was named.
        if (
            slot.role == FROM
            and value.sort != MOMENT
            and self._lexicon.is_mild
            and any(one.role == TO for one in taken)
        ):
            return True  # Where the thing is until then.
        if value.sort == NAME and not value.is_marked and slot.is_object:
            return any(one.role == IN and "@" in one.value.text for one in taken)  # "Ann at ann@corp.example"
        if value.number is not None and slot.nouns and own.isdisjoint(slot.nouns):
            # What an amount is paid for: "pay invoice 77 to Ann, 5 EUR".
            is_paid = all(one.origin is not None for one in self._arguments) or any(
                one.value.number is not None and one.value.number.unit.lower() in CURRENCIES for one in taken
            )
            return is_paid and any(one.role in (OBJECT, TO, IN) for one in targets)
        return False

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
            parts = (held, held[:_DAY_CHARS], held[_DAY_CHARS + 1 :][:_TIME_CHARS])
            return any(is_said(part, value.told, today=grounds.today, years=grounds.years) for part in parts)
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
        if self._is_label(stray.text):
            return True
        if self._is_open and (stray.text not in FUNCTION_WORDS or stray.text in _RELATIVE):
            return True
        if self._is_of_set and (stray.text == "one" or self._is_ruled_out(stray)):
            return True
        if self._is_related(stray):
            return True
        if self._is_derived and stray.stems <= _FIGURING:
            return True
        return stray.is_sayable and any(stray.text in map(str.lower, _WORD.findall(text)) for text in self._payload)

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

    def _is_label(self, text: str) -> bool:
        """Whether a word is what a picked record is labelled with as a whole: "the debit card ending 9023"."""
        if not text.isalpha() or text in FUNCTION_WORDS or ORDINAL.fullmatch(text):
            return False
        said = f" {' '.join(_WORD.findall(self._own.lower()))} "
        for group, record in self._records():
            for field, kind in group.kinds.items():
                value = str(group.records[record].get(field)).lower()
                if kind != TEXT and text in value.split() and f" {value} " in said:
                    return True
        return False

    def out_of_role(self, slots: list[Slot], readings: Sequence[ClauseRead]) -> str:
        """A value of the call that stands in another role than its argument takes, or elsewhere altogether."""
        # Whether the order falls on something else than what stands behind "in": "delete a.txt in /docs".
        has_object = any(slot.is_object and self._takes(slot.value) for slot in slots)
        things = frozenset(thing for reading in readings for thing in reading.things)
        is_elsewhere = has_object or not self._is_single or not things
        placed: list[tuple[Argument, Slot]] = []
        for one in self._arguments:
            if isinstance(one.value, bool) or one.bound_by != "words" or one.span is None:
                continue
            if self._is_misplaced(one, slots, readings):
                return f"{str(one.value)!r} stands in another role"
            if base_of(one.kind) in MOMENTS:
                continue
            found = [slot for slot in slots if _is_at(slot, one)]
            if not found:
                if not self._is_a_word(one, readings):
                    return f"{str(one.value)!r} stands elsewhere"
                if self._is_choice(one) and not self._is_led_in(one, readings):
                    return f"{str(one.value)!r} stands in another role"
            elif not any(self._fits(slot, one, things, has_object=has_object) for slot in found):
                return f"{str(one.value)!r} stands in another role"
            placed += [(one, found[0])] if found and not is_composed(one, self._own) else []
        for (one, slot), (other, beside) in combinations(placed, 2):
            if not are_ends_told(one, slot, other, beside):
                return f"it is not told which is {_name_of(one)!r} and which {_name_of(other)!r}"
        for start, one in self._names.items():
            held = [slot for slot in slots if slot.value.start <= start < slot.value.end]
            inside = any(
                one.zone[0] <= start < one.end and not any(begin <= start < end for begin, end in one.told)
                for one in readings
            )
            if not held and (self._own[start : start + 1].isupper() or not inside):
                return "the name of the record stands elsewhere"
            if held and not any(self._names_target(slot, one, is_elsewhere) for slot in held):
                return f"{held[0].value.text!r} stands in another role"
        return ""

    @property
    def _actions(self) -> frozenset[str]:
        return self._grounds.tool_words.actions[self._declaration.name]

    @property
    def _is_single(self) -> bool:
        return self._grounds.tool_words.needed[self._declaration.name] < 2

    def _is_choice(self, one: Argument) -> bool:
        return base_of(one.kind) == "enum" or _name_of(one) in self._lexicon.choosing

    def _is_led_in(self, one: Argument, readings: Sequence[ClauseRead]) -> bool:
        """Whether a choice in plain words stands behind what may lead it in; one that reads like any word is not looked at."""
        assert one.span is not None, "only what the words say has a place"
        start, end = one.span
        found = [stray for reading in readings for stray in reading.strays if start <= stray.start < end]
        return not found or any(fits_choice(stray.before, stray.beside, one) for stray in found)

    def _is_misplaced(self, one: Argument, slots: list[Slot], readings: Sequence[ClauseRead]) -> bool:
        """Whether a moment stands in another role, or the file and the folder of a path do not belong together."""
        if is_composed(one, self._own):
            return not any(is_together(one, reading, self._own) for reading in readings)
        held = [slot for slot in slots if slot.value.sort == MOMENT and self._is_taken_by(one, slot.value)]
        if base_of(one.kind) in MOMENTS and not held and any(str(one.value) in slot.value.text for slot in slots):
            return True  # It is a part of something else: "~2026-12-03".
        for is_clock in (True, False):  # The day and the time of a moment may stand apart.
            places = [slot for slot in held if bool(slot.value.told.minutes) == is_clock]
            if places and not any(is_moment_fitting(slot, one, self._actions) for slot in places):
                return True
        return False

    def _names_target(self, slot: Slot, one: Argument, is_elsewhere: bool) -> bool:  # noqa: FBT001
        """Whether what stands in a role may name the record of an argument; the relation of a person is judged elsewhere."""
        if slot.role in (OBJECT, IN, AIM) or is_elsewhere or "@" in slot.value.text:
            return True
        if base_of(one.kind) in ("email", "who", ""):
            return slot.role != FROM  # A person is turned to.
        nouns = name_stems(one.kind.partition(":")[2]) | name_stems(one.path.rpartition(".")[2].partition("[")[0])
        return not (nouns - UNSAYING).isdisjoint(slot.nouns)

    def spoken_of(self, readings: Sequence[ClauseRead]) -> str:
        """What a sentence that orders nothing says of the values of the call, where the order does not point to it."""
        is_telling = self._lexicon.is_telling
        held = [" ".join(_WORD.findall(value)) for value in self._held()]
        told = [self._own[start:end] for one in readings if not is_telling for start, end in one.told]
        # What is ruled out may be named by anything that its record is known by: "the heaviest crate (Not Nuts)".
        denied = [text for text in told if text.lower().startswith("not ")]
        targets = {" ".join(_WORD.findall(one)) for one in self._targets()}
        for value in targets.union(held):
            texts = told if value in targets else denied
            if value and any(f" {value.lower()} " in f" {' '.join(_WORD.findall(text.lower()))} " for text in texts):
                return f"{value!r} is spoken of beside the order"
        for sentence in self._grounds.reader.others:
            if any(start <= sentence.start and sentence.end <= end for start, end in (one.zone for one in readings)):
                continue
            said = f" {' '.join(_WORD.findall(self._own[sentence.start : sentence.end]))} "
            for value in held:
                if value and (f" {value} " in said or f" {value.lower()} " in said.lower()):
                    return f"{value!r} is spoken of elsewhere"
            if is_telling or not sentence.is_open or all(one.end > sentence.end for one in readings):
                continue
            for one in sentence.values:
                # What an order names, too, adds nothing to it.
                if not self._takes(one) and self._own.count(one.text) < 2:
                    return f"{one.text!r} is added by a sentence that orders nothing"
        return ""

    def left_beside(self, readings: Sequence[ClauseRead]) -> str:
        """What is not understood in a sentence right before the order or behind it, and may take it back or narrow it."""
        reader = self._grounds.reader
        for sentence in reader.others:
            if not any(0 <= one.zone[0] - sentence.end <= 1 or 0 <= sentence.start - one.end <= 1 for one in readings):
                continue
            for stray in reader.strays_beside(sentence, self._lexicon):
                if not self._accounts_for(stray):
                    return f"{self._own[sentence.start : sentence.end].strip()[:80]!r} stands beside the order, and is not understood"
        return ""

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

    def _is_a_word(self, one: Argument, readings: Sequence[ClauseRead]) -> bool:
        """Whether an argument rests on plain words of a clause: a choice, "the branch main"."""
        assert one.span is not None, "only what the words say has a place"
        place = one.span[0]
        return any(
            reading.zone[0] <= place < reading.end and not any(start <= place < end for start, end in reading.told)
            for reading in readings
        )

    def _fits(self, slot: Slot, one: Argument, things: Set[str], *, has_object: bool) -> bool:
        base = base_of(one.kind)
        called = name_stems(_name_of(one))
        is_beside = not ((called | name_stems(one.kind.partition(":")[2])) - UNSAYING).isdisjoint(slot.nouns)
        if slot.role == AIM:
            return False
        if slot.role == FROM:
            return is_beside or is_source(one) or "from" in name_words(self._declaration.name)
        if isinstance(one.value, (int, float)) or base in NUMBERS:
            is_money = self._declaration.stakes is Stakes.MONEY
            return fits_number(slot, one, is_money=is_money) and (slot.role != TO or not is_source(one))
        if self._is_choice(one):
            return fits_choice(slot.before, slot.nouns, one)
        if is_barred(slot.before):
            return False
        if slot.role == OBJECT:
            return True
        is_turned_to = self._lexicon.is_telling or base in ("email", "who")
        if not (has_object or is_turned_to) and not fits_target(
            slot, one, things, self._actions, is_single=self._is_single
        ):
            return False
        if slot.role == IN:
            return self._declaration.name not in self._grounds.tool_words.making
        if slot.role == WITH and base in ("email", "who", ""):
            return True
        if slot.role == AS and base == "path":
            return True  # What is made is called so.
        if slot.role in (BY, WITH, AS):
            return is_beside or slot.value.sort != NAME or not called.isdisjoint(_CARRYING)
        return not is_source(one)


def _stems(texts: Iterable[str]) -> Iterator[str]:
    """The stems of what a look-up was asked; words that turn an order around are none of it."""
    for text in texts:
        for word in (*name_words(text), *text.lower().split()):
            if word not in FUNCTION_WORDS and not ORDINAL.fullmatch(word):
                yield stem(word)


def _name_of(one: Argument) -> str:
    return one.path.rpartition(".")[2].partition("[")[0]


def _is_at(slot: Slot, one: Argument) -> bool:
    assert one.span is not None, "only what the words say has a place"
    value = slot.value
    return (one.span[0] < value.end and value.start < one.span[1]) or value.text == str(one.value)


def _is_beside(slot: Slot, taken: Slot) -> bool:
    """Whether a value stands beside one that was taken, so that it is for a further call."""
    if slot.value.sort != taken.value.sort or slot.role != taken.role or not taken.is_needed:
        return False
    if slot.value.sort == NUMBER and not (slot.nouns or slot.value.listed == taken.value.listed):
        return False
    return slot.nouns == taken.nouns or not slot.nouns or not taken.nouns
