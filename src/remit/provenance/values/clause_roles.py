"""Clause roles: where the numbers, choices, targets, ends, moments and paths of a call stand in the clause that orders it.

Rule 1: what stands behind "from" is for an argument that is called a source or a beginning, what stands behind "to" is for
        none of those. Where the name of an argument tells neither, the order asks.
Rule 2: a moment is the day of a call where "on", "at", "for" or nothing leads it in; what draws a line, "until", "before",
        "by", is for an argument that is called an end. Anything else beside it, "the day after", makes another day of it.
Rule 3: a file and a folder make one path only where both stand in one clause and belong together by their place: the folder
        behind the file, or before all of them, and no other folder of the same role between them.
Rule 4: a number, a choice and a target stand behind what the table of prepositions lets stand before them. A place is no
        target where the order falls on a thing of its noun: "dump the tank in TK-7".
Rule 5: a word with a capital, in brackets, behind a sign or "and", is a name only in a list with a name that the call takes.
"""

from collections.abc import Sequence, Set

from remit.core.regex import regex
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import ANY, EMAIL, UNSAYING, base_of
from remit.provenance.values.call_account import name_of
from remit.provenance.words.clause_items import Slot
from remit.provenance.words.prepositions import (
    BEFORE_CHOICES,
    BEFORE_FOLDERS,
    BEFORE_MONEY,
    BEFORE_NAMED_CHOICES,
    BEFORE_NUMBERED,
    BEFORE_NUMBERS,
    BOUNDS,
    BY,
    CORRECTING,
    FROM,
    OBJECT,
    PICKING,
    TO,
    WITH,
)
from remit.provenance.words.said_values import MOMENT, NAME, SaidValue
from remit.provenance.words.understood_clauses import ClauseRead
from remit.provenance.words.units import UNITS
from remit.provenance.words.user_words import COUNTED
from remit.provenance.words.vocabulary import (
    COURTESIES,
    CURRENCIES,
    NUMBERING,
    name_stems,
    name_words,
    stem,
    word_stems,
)

# What arguments are called that take where something comes from or begins, and those that take where it ends.
_SOURCE_NAMES = "from source origin sender src old payer start since begin in input"
_GOAL_NAMES = "to target destination dst dest receiver recipient new payee into output name title value"
_END_NAMES = "to end until till due deadline by before return out"
SOURCES = frozenset(map(stem, _SOURCE_NAMES.split()))
_GOALS = frozenset(map(stem, _GOAL_NAMES.split()))
_ENDS = frozenset(map(stem, _END_NAMES.split()))
# Verbs of tools that give a thing another moment: "move it to Friday".
_MOVING = frozenset(map(stem, ["move", "reschedule", "postpone", "shift", "delay", "push", "extend", "defer"]))
# Verbs that give a thing another value: "change my password to".
SETTING = frozenset(map(stem, ["set", "change", "update", "reset", "rename", "switch", "turn"]))
# What may stand right before a word that belongs to what is before it, and within a list.
_PLAIN_LEAD_IN = regex(r"[\s\"'\u201c\u2018]*")
_COMMA = regex(r"\s*,?\s*")
_QUOTES = ("'", '"', "\u201d", "\u2019", "\u00bb", "`")
_WORDS = regex(r"[^\W\d_][^\d_@/\\#+=.:]*")
# What joins the members of a list, and words after which it is none.
_JOINT = regex(r"[,;&\n/]|\b(?:and|or)\b")
_TURN = regex(r"\b(?:now|instead|rather|no|not|make|but)\b")
_DIGIT = regex(r"\d")
_INNER = frozenset("@./\\_")
# What a moment stands behind that is an end of a stretch.
_END_LEADS = frozenset({FROM, TO, "until", "till", "by", "before", "through"})
_NOT_BEFORE_COUNTS = frozenset({"with", "at", "of"})
_PLAIN_LEADS = frozenset({"", "on", "at", "for", "and", "is"})
# What a choice may be called whatever its argument is, and what the words of an interval begin with: "every week".
_MODES = frozenset(map(stem, ("mode", "access", "right", "permission")))
_INTERVALS = frozenset({"every", "each"})
_PLAIN_GAP = regex(r"[\s,;:(\"'\u201c\u2018]*")


def is_source(one: Argument) -> bool:
    """Whether an argument is called what takes where something comes from or begins."""
    return not word_stems(name_of(one)).isdisjoint(SOURCES)


def is_moment_fitting(slot: Slot, one: Argument, actions: Set[str]) -> bool:
    """Whether a moment stands where the argument takes one; `actions` are the verbs of the tool."""
    called, lead = word_stems(name_of(one)), slot.lead
    if _PLAIN_GAP.fullmatch(slot.gap) is None or slot.before in PICKING or " " in slot.before:
        return False
    if lead == FROM:
        return is_source(one)
    if lead == TO:
        is_new = not actions.isdisjoint(_MOVING | SETTING) or not called.isdisjoint(_GOALS | _ENDS | slot.nouns)
        return is_new and not is_source(one)
    if lead in _PLAIN_LEADS or stem(lead) in called or (stem(lead) in slot.nouns and slot.before not in BOUNDS):
        return True
    return lead in _END_LEADS and not called.isdisjoint(_ENDS)


def is_end(slot: Slot, one: Argument) -> bool:
    """Whether a moment is told from another one: as an end of a stretch, or by what the argument is called."""
    return slot.lead in _END_LEADS or not slot.nouns.isdisjoint(word_stems(name_of(one)))


def is_barred(before: str) -> bool:
    """Whether what leads a value in draws a line, picks, or is more than one preposition: no target stands behind it."""
    return before in BOUNDS | PICKING | CORRECTING or " " in before


def fits_number(slot: Slot, one: Argument, *, is_money: bool) -> bool:
    """Whether a number stands behind what may lead in its argument: an amount, or any other number."""
    lead, said = slot.before, slot.value.number
    is_count = not COUNTED.isdisjoint(name_words(name_of(one)))
    if lead in _NOT_BEFORE_COUNTS and is_count and slot.nouns.isdisjoint(word_stems(name_of(one))):
        return False  # "with 4 stars"
    if said is not None and said.caller and said.caller in _nouns_of(one):
        return lead in BEFORE_NUMBERED
    if lead in BOUNDS or lead == BY:
        called = word_stems(name_of(one))
        if stem(lead) in called or not called.isdisjoint(_ENDS):
            return True
    return lead in (BEFORE_MONEY if is_money else BEFORE_NUMBERS)


def fits_choice(before: str, beside: Set[str], one: Argument) -> bool:
    """Whether a choice stands behind what may lead it in, or beside the noun of its argument."""
    if before in _INTERVALS and str(one.value).endswith("ly"):
        return True
    if not beside.isdisjoint(_nouns_of(one) | _MODES):
        return before in BEFORE_NAMED_CHOICES
    return before in BEFORE_CHOICES


def fits_target(slot: Slot, one: Argument, things: Set[str], actions: Set[str], *, is_single: bool) -> bool:
    """Whether what stands behind a preposition may be what the order falls on: not where that is of the same noun.

    `things` are the nouns on which the order falls without a value: "dump the tank in TK-7" names no tank.
    """
    nouns = _nouns_of(one)
    is_set = slot.role == TO and not (actions.isdisjoint(SETTING) and word_stems(name_of(one)).isdisjoint(_GOALS))
    if is_set or not nouns.isdisjoint(slot.nouns) or (slot.role == WITH and slot.lead in NUMBERING):
        return True
    if nouns and things:
        return nouns.isdisjoint(things)
    return bool(things) or not is_single


def _nouns_of(one: Argument) -> frozenset[str]:
    return (word_stems(name_of(one)) | name_stems(one.kind.partition(":")[2])) - UNSAYING


def are_ends_told(one: Argument, slot: Slot, other: Argument, beside: Slot) -> bool:
    """Whether the names of two arguments of one kind tell which value is for which, as the words put them."""
    if slot.value.sort != beside.value.sort or one.kind != other.kind or name_of(one) == name_of(other):
        return True
    if bool(EMAIL.fullmatch(str(one.value))) != bool(EMAIL.fullmatch(str(other.value))):
        return True
    own, others = word_stems(name_of(one)), word_stems(name_of(other))
    if not (own - others).isdisjoint(slot.nouns) or not (others - own).isdisjoint(beside.nouns):
        return True
    if beside.role in (OBJECT, FROM) and slot.role not in (OBJECT, FROM):
        own, others, slot, beside = others, own, beside, slot
    if slot.role not in (OBJECT, FROM) or beside.role in (OBJECT, FROM):
        return False
    return own.isdisjoint(_GOALS - SOURCES) and (not own.isdisjoint(SOURCES) or not others.isdisjoint(_GOALS))


def is_loose(slot: Slot, taken: Sequence[Slot], slots: Sequence[Slot], own: str) -> bool:
    """Whether a word with a capital stands beside an order, in no list of names ("Ann, Bob and Carl"): it may say anything."""
    value = slot.value
    is_cut = slot.lead in ("and", "or") or _PLAIN_LEAD_IN.fullmatch(slot.gap) is None
    if value.sort != NAME or not is_cut or not _is_capital(value) or own[value.end : value.end + 1] in _QUOTES:
        return False
    if COURTESIES.issuperset(value.text.lower().split()):
        return False
    listed = [one for one in slots if one.value.listed == value.listed and one.value.sort == NAME]
    is_list = any(one.lead in ("and", "or") for one in listed) and all(_COMMA.fullmatch(one.gap) for one in listed[1:])
    return not is_list or not any(one in taken and _is_capital(one.value) for one in listed)


def _is_capital(value: SaidValue) -> bool:
    """Whether a name is told from words by its capital alone."""
    return value.text[:1].isupper() and _WORDS.fullmatch(value.text) is not None


def is_beside(slot: Slot, taken: Slot, own: str) -> bool:
    """Whether a value stands in one list with a value that was taken, so that it is for a further call."""
    if slot.value.sort != taken.value.sort or slot.role != taken.role or not taken.is_needed:
        return False
    if bool(slot.value.told.minutes) is not bool(taken.value.told.minutes):
        return False  # "10:00 yesterday"
    said = slot.value.number
    if said is not None and (
        said.percent or said.unit in UNITS or said.unit.lower() in CURRENCIES or slot.before in BOUNDS
    ):
        return False  # "two weeks and three days", "50 % 200 EUR"
    if slot.value.sort != MOMENT:
        left, right = sorted((slot.value, taken.value), key=lambda one: one.start)
        between = own[left.end : right.start].lower()
        if _JOINT.search(between) is None or _TURN.search(between) is not None:
            return False
    return slot.nouns == taken.nouns or not slot.nouns or not taken.nouns


def is_alike(left: str, right: str) -> bool:
    """Whether two names are shaped alike, so that they may be of one list: by digits, or by the signs within or before them."""
    if _DIGIT.search(left) and _DIGIT.search(right):
        return True
    if not _INNER.isdisjoint(left[1:-1]) or not _INNER.isdisjoint(right[1:-1]):
        return not _INNER.intersection(left).isdisjoint(right)
    return not _DIGIT.search(left + right) and left[:1].isalpha() == right[:1].isalpha()


def is_composed(one: Argument, own: str) -> bool:
    """Whether the words name the file of a path and its folder, and not the path."""
    if (
        one.span is None
        or one.bound_by != "words"
        or not isinstance(one.value, str)
        or base_of(one.kind) not in ("path", ANY)
    ):
        return False
    folder, _, name = one.value.rpartition("/")
    return bool(folder) and own[one.span[0] : one.span[1]] in (name, folder, f"{folder}/")


def _pair_of(one: Argument, slots: Sequence[Slot]) -> tuple[Slot, Slot] | None:
    """The file and the folder of a path, where they belong together in one clause."""
    folder, _, name = str(one.value).rpartition("/")
    ordered = sorted(slots, key=lambda slot: slot.value.start)
    files = [at for at, slot in enumerate(ordered) if slot.value.text == name or slot.value.text.endswith(f"/{name}")]
    folders = [at for at, slot in enumerate(ordered) if slot.value.text.rstrip("/") == folder]
    for at in folders:
        role = ordered[at].role
        alike = [
            place for place, slot in enumerate(ordered) if slot.role == role and place != at and place not in files
        ]
        objects = [place for place, slot in enumerate(ordered) if slot.role == OBJECT]
        is_fronted = at < min(objects, default=len(ordered))
        for file in files:
            if is_fronted and not alike:
                return ordered[file], ordered[at]
            is_behind = file < at and not any(file < place < at for place in alike)
            if role != OBJECT and is_behind and not any(place < min(objects, default=0) for place in alike):
                return ordered[file], ordered[at]
    return None


def _is_called_beside(one: Argument, reading: ClauseRead, own: str) -> bool:
    """Whether the folder of a path is a plain word, and stands in the clause of the file: "a.txt in the folder docs"."""
    folder = str(one.value).rpartition("/")[0]
    is_value = any(slot.value.text.rstrip("/") == folder for slot in reading.slots)
    return (
        not is_value
        and one.span is not None
        and reading.start <= one.span[0] < reading.end
        and folder.isalnum()
        and own.find(folder, reading.start, reading.end) >= 0
    )


def is_together(one: Argument, reading: ClauseRead, own: str) -> bool:
    """Whether the file and the folder of a path belong together in a clause, where the argument takes them."""
    pair = _pair_of(one, reading.slots)
    if pair is None:
        return _is_called_beside(one, reading, own)
    if pair[1].before not in BEFORE_FOLDERS:
        return False
    if pair[1].role == FROM:
        return is_source(one) or not any(slot.role == TO for slot in reading.slots)
    return pair[1].role != TO or not is_source(one)
