"""Understood: a call passes only where the clause that orders it is understood whole, with the values that the call takes up.

Rule 1: every value of the clause is taken up, by an argument, by the record that supplied one, or by what that was looked
        up by. What stands beside a value that was taken, in the same role, is for a further call.
Rule 2: every word is understood, or the call accounts for it: a choice that it makes, the end of an order that picked a
        record, the name of one, what a look-up was asked, or what its text says.
Rule 3: a value binds in its role. What stands behind "from" binds only arguments that are called so or stand beside their
        noun; what stands in a place only where the order falls on something else than that; anything else as the table of
        prepositions has it. Two values of one kind bind two arguments only where names or nouns tell which is whose.
Rule 4: a value stands in the clause, or in what the clause points back to. Where anything else that is no order speaks of
        it, a person is asked.
"""

from collections.abc import Sequence, Set
from itertools import combinations

from remit.core.limits.authority import Stakes
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import MOMENTS, NUMBERS, UNSAYING, base_of
from remit.provenance.values.call_account import WORD, CallAccount, name_of
from remit.provenance.values.clause_roles import (
    are_ends_told,
    fits_choice,
    fits_number,
    fits_target,
    is_alike,
    is_barred,
    is_beside,
    is_composed,
    is_end,
    is_loose,
    is_moment_fitting,
    is_source,
    is_together,
)
from remit.provenance.values.grounds import Grounds
from remit.provenance.words.clause_items import QUOTE, Slot
from remit.provenance.words.imperatives import PLANNED_WORDS_MAX
from remit.provenance.words.moments import MONTHS, WEEKDAYS
from remit.provenance.words.prepositions import AIM, AS, BY, FAR, FOR, FROM, IN, OBJECT, TO, WITH
from remit.provenance.words.said_values import MOMENT, NAME, NUMBER
from remit.provenance.words.understood_clauses import ClauseRead
from remit.provenance.words.units import UNITS
from remit.provenance.words.vocabulary import (
    CURRENCIES,
    SUPERLATIVES,
    UNIVERSALS,
    name_stems,
    name_words,
    stem,
    word_stems,
)

_SUPERLATIVES = frozenset(map(stem, SUPERLATIVES))
# By what something is carried.
_CARRYING = frozenset({"by", "via", "with", "us", "through"})


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


class _Call(CallAccount):
    """One call against the clauses that order it."""

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
            if (
                self._is_missed(slot)
                or _is_term(slot, taken)
                or slot.value.text.lower().removesuffix("s") in (*MONTHS, *WEEKDAYS)
            ):
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
        is_known = value.sort != NAME or self._grounds.index.seen_in(value.text) is not None
        is_alike_one = is_known or any(is_alike(value.text, one.value.text) for one in taken)
        is_listed = is_alike_one and any(is_beside(slot, one, self._own) for one in taken)
        if is_listed or (self._is_open and value.sort != NUMBER):
            return True
        if value.sort == NUMBER and self._is_derived:
            return True
        targets = [
            one
            for one in taken
            if one.value.sort in (NAME, QUOTE) or (one.value.number is not None and one.value.number.caller)
        ]
        is_path = "/" in value.text and any(base_of(one.kind) == "path" for one in self._arguments)
        is_behind = bool(slot.lead) and any(one.is_object and one.value.start < value.start for one in targets)
        is_behind = is_behind and all(one.value.start != value.end + 1 for one in taken)  # "at up-to-date 30 days"
        if slot.role == IN and value.sort in (NAME, QUOTE) and is_behind:
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
        said = value.number
        if said is not None and said.caller and said.unit.lower() not in CURRENCIES and own.isdisjoint(slot.nouns):
            # What an amount is paid for: "pay invoice 77 to Ann, 5 EUR".
            is_paid = all(one.origin is not None for one in self._arguments) or any(
                one.value.number is not None and one.value.number.unit.lower() in CURRENCIES for one in taken
            )
            return is_paid and any(one.role in (OBJECT, TO, IN) for one in targets)
        return False

    def out_of_role(self, slots: list[Slot], readings: Sequence[ClauseRead]) -> str:
        """A value of the call that stands in another role than its argument takes, or elsewhere altogether."""
        # Whether the order falls on something else than what stands behind "in": "delete a.txt in /docs".
        objects = [slot.value.sort for slot in slots if slot.is_object and self._takes(slot.value)]
        things = frozenset(thing for reading in readings for thing in reading.things)
        placed: list[tuple[Argument, Slot]] = []
        for one in self._arguments:
            if isinstance(one.value, bool) or one.bound_by != "words" or one.span is None:
                continue
            if self._is_misplaced(one, slots, readings):
                return f"{str(one.value)!r} stands in another role"
            base = base_of(one.kind)
            is_moment = any(slot.value.sort == MOMENT and self._is_taken_by(one, slot.value) for slot in slots)
            if is_moment or base in MOMENTS:
                continue
            found = [slot for slot in slots if _is_at(slot, one)]
            if not found:
                if base in NUMBERS or not self._is_a_word(one, readings):
                    return f"{str(one.value)!r} stands elsewhere"
                if self._is_choice(one) and not self._is_led_in(one, readings):
                    return f"{str(one.value)!r} stands in another role"
            elif not any(self._fits(slot, one, things, objects) for slot in found):
                return f"{str(one.value)!r} stands in another role"
            placed += [(one, found[0])] if found and not is_composed(one, self._own) else []
        for (one, slot), (other, beside) in combinations(placed, 2):
            if not are_ends_told(one, slot, other, beside):
                return f"it is not told which is {name_of(one)!r} and which {name_of(other)!r}"
        return self._named_elsewhere(slots, readings, is_elsewhere=bool(objects) or not self._is_single or not things)

    def _named_elsewhere(self, slots: list[Slot], readings: Sequence[ClauseRead], *, is_elsewhere: bool) -> str:
        """A record whose name stands in another role than its argument takes, or elsewhere altogether."""
        for start, one in self._names.items():
            held = [slot for slot in slots if slot.value.start <= start < slot.value.end]
            inside = any(
                one.zone[0] <= start < one.end and not any(begin <= start < end for begin, end in one.told)
                for one in readings
            )
            if not held and (self._own[start : start + 1].isupper() or not inside):
                return "the name of the record stands elsewhere"
            if held and not any(self._names_target(slot, one, is_elsewhere=is_elsewhere) for slot in held):
                return f"{held[0].value.text!r} stands in another role"
        return ""

    @property
    def _actions(self) -> frozenset[str]:
        return self._grounds.tool_words.actions[self._declaration.name]

    @property
    def _is_single(self) -> bool:
        return self._grounds.tool_words.needed[self._declaration.name] < 2

    def _is_choice(self, one: Argument) -> bool:
        return base_of(one.kind) == "enum" or name_of(one) in self._lexicon.choosing

    def _is_led_in(self, one: Argument, readings: Sequence[ClauseRead]) -> bool:
        """Whether a choice in plain words stands behind what may lead it in; one that reads like any word is not looked at."""
        assert one.span is not None, "only what the words say has a place"
        start, end = one.span
        found = [stray for reading in readings for stray in reading.strays if start <= stray.start < end]
        wanted = word_stems(str(one.value))
        whole = [stray for stray in found if stray.text.isalpha() or stray.stems <= wanted]  # not of "non-reader"
        return not found or any(fits_choice(stray.before, stray.beside, one) for stray in whole)

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
            others = [
                slot
                for slot in slots
                if slot.value.sort == MOMENT and slot not in held and bool(slot.value.told.minutes) == is_clock
            ]
            if places and others and not any(is_end(slot, one) for slot in (*places, *others)):
                return True  # "10:00 and 11:00"
        return False

    def _names_target(self, slot: Slot, one: Argument, *, is_elsewhere: bool) -> bool:
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
        held = [" ".join(WORD.findall(value)) for value in self._held()]
        told = [self._own[start:end] for one in readings if not is_telling for start, end in one.told]
        # What is ruled out may be named by anything that its record is known by: "the heaviest crate (Not Nuts)".
        denied = [text for text in told if text.lower().startswith("not ")]
        targets = {" ".join(WORD.findall(one)) for one in self._targets()}
        for value in targets.union(held):
            texts = told if value in targets else denied
            if value and any(f" {value.lower()} " in f" {' '.join(WORD.findall(text.lower()))} " for text in texts):
                return f"{value!r} is spoken of beside the order"
        for sentence in self._grounds.reader.others:
            if any(start <= sentence.start and sentence.end <= end for start, end in (one.zone for one in readings)):
                continue
            said = f" {' '.join(WORD.findall(self._own[sentence.start : sentence.end]))} "
            for value in held:
                if value and (f" {value} " in said or f" {value.lower()} " in said.lower()):
                    return f"{value!r} is spoken of elsewhere"
            if (
                is_telling
                or not sentence.is_open
                or self._grounds.reader.is_polite(sentence)
                or all(one.end > sentence.end for one in readings)
            ):
                continue
            for one in sentence.values:
                # What an order names, too, adds nothing to it.
                if not self._takes(one) and self._own.count(one.text) < 2:
                    return f"{one.text!r} is added by a sentence that orders nothing"
        return ""

    def left_beside(self, readings: Sequence[ClauseRead]) -> str:
        """What is not understood in a sentence right before the order or behind it, and may take it back or narrow it."""
        reader = self._grounds.reader
        found = [(one, *beside) for one in readings for beside in reader.beside(one.zone[0], one.end)]
        for one, sentence, is_before in found:
            said = self._own[sentence.start : sentence.end].strip(" .\n")
            is_next = 0 <= (one.zone[0] - sentence.end if is_before else sentence.start - one.end) <= 1
            if not is_next and [value.text for value in sentence.values] == [said] and self._own.count(said) > 1:
                continue  # What another order names, too, or an answer to a question about that order.
            for stray in reader.strays_beside(sentence, self._lexicon, is_before=is_before):
                if not self._accounts_for(stray):
                    return f"{said[:80]!r} stands beside the order, and is not understood"
        return ""

    def _is_a_word(self, one: Argument, readings: Sequence[ClauseRead]) -> bool:
        """Whether an argument rests on plain words of a clause: a choice, "the branch main"."""
        assert one.span is not None, "only what the words say has a place"
        place = one.span[0]
        return any(
            reading.zone[0] <= place < reading.end and not any(start <= place < end for start, end in reading.told)
            for reading in readings
        )

    def _fits(self, slot: Slot, one: Argument, things: Set[str], objects: Sequence[str]) -> bool:
        """Whether a slot may give an argument; the order falls on `things` that have no value, or on values of these sorts."""
        base = base_of(one.kind)
        called = name_stems(name_of(one))
        is_beside = not ((called | name_stems(one.kind.partition(":")[2])) - UNSAYING).isdisjoint(slot.nouns)
        if slot.role == AIM:
            return False
        if slot.role == FROM:
            return is_source(one) or "from" in name_words(self._declaration.name)
        if isinstance(one.value, (int, float)) or base in NUMBERS:
            is_money = self._declaration.stakes is Stakes.MONEY
            return fits_number(slot, one, is_money=is_money) and (slot.role != TO or not is_source(one))
        if self._is_choice(one):
            is_whole = word_stems(slot.value.text) == word_stems(str(one.value))  # "as non-reader"
            return is_whole and fits_choice(slot.before, slot.nouns, one)
        if is_barred(slot.before) or slot.before in FAR:
            return False
        words, plan = self._grounds.tool_words, self._grounds.plan
        if slot.role == OBJECT:  # "All hives; HV-12" may leave it out.
            told = [self._grounds.asking.tokens[place] for place in plan.universals_of(self._declaration.name)]
            is_whole = any(one.start < slot.value.start and one.text.lower() in UNIVERSALS for one in told)
            return slot.before != "," or not is_whole
        is_turned_to = self._lexicon.is_telling or base in ("email", "who") or self._declaration.name in words.preparing
        is_placed = bool(objects) or is_turned_to
        if not is_placed and not fits_target(slot, one, things, self._actions, is_single=self._is_single):
            return False
        # "wire 75 EUR in AC-77", "drain 50 l into TK-7"; a thing may be put in another one, and money into an account.
        is_sum = {*objects} == {NUMBER} and not (things or is_turned_to)
        places = {"in"} if self._declaration.stakes is Stakes.MONEY else {"in", "into", "onto"}
        if not is_beside and is_sum and slot.before in places:
            return False
        # What is made is called as is told; a person is turned to with something.
        if (slot.role == WITH and base in ("email", "who", "")) or (slot.role == AS and base == "path"):
            return True
        if slot.role in (BY, WITH, AS):
            # "page with url https://…": no person, and no thing that something is done with.
            is_address = is_beside and slot.role == WITH and base in ("url", "path")
            is_tool = is_beside and self._lexicon.is_mild and self._lexicon.called.isdisjoint(slot.nouns)
            return is_address or is_tool or slot.value.sort != NAME or not called.isdisjoint(_CARRYING)
        return self._declaration.name not in words.making if slot.role == IN else not is_source(one)


def _is_term(slot: Slot, taken: list[Slot]) -> bool:
    """Whether a measure says how long an effect is to last, and no moment of the call has an end by it: "as usher for 3 days"."""
    said = slot.value.number
    is_measure = slot.role == FOR and said is not None and said.unit in UNITS
    return is_measure and not any(one.value.sort == MOMENT for one in taken)


def _is_at(slot: Slot, one: Argument) -> bool:
    assert one.span is not None, "only what the words say has a place"
    value = slot.value
    return (one.span[0] < value.end and value.start < one.span[1]) or value.text == str(one.value)
