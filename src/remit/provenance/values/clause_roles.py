"""Clause roles: where the ends of a range, the moments and the paths of a call stand in the clause that orders it.

Rule 1: what stands behind "from" is for an argument that is called a source or a beginning, what stands behind "to" is for
        none of those. Where the name of an argument tells neither, the order asks.
Rule 2: a moment is the day of a call where "on", "at", "for" or nothing leads it in; what draws a line, "until", "before",
        "by", is for an argument that is called an end. Anything else beside it, "the day after", makes another day of it.
Rule 3: a file and a folder make one path only where both stand in one clause and belong together by their place: the folder
        behind the file, or before all of them, and no other folder of the same role between them.
Rule 4: a word with a capital, in brackets, behind a sign or "and", is a name only in a list with a name that the call takes.
"""

from collections.abc import Sequence

from remit.core.regex import regex
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import ANY, base_of
from remit.provenance.words.clause_parts import FROM, OBJECT, TO, Slot
from remit.provenance.words.said_values import MOMENT, NAME, NUMBER, SaidValue
from remit.provenance.words.understood_clauses import ClauseRead
from remit.provenance.words.vocabulary import COURTESIES, stem, word_stems

# What arguments are called that take where something comes from or begins, and those that take where it ends.
_SOURCE_NAMES = "from source origin sender src old payer start since begin in"
_END_NAMES = "to end until till due deadline by before return out"
SOURCES = frozenset(map(stem, _SOURCE_NAMES.split()))
_ENDS = frozenset(map(stem, _END_NAMES.split()))
_PLAIN_LEADS = frozenset({"", "on", "at", "for", "and", "to", "is"})
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
_PLAIN_GAP = regex(r"[\s,;:(\"'\u201c\u2018]*")


def _name_of(one: Argument) -> str:
    """What an argument is called: the last part of its path."""
    return one.path.rpartition(".")[2].partition("[")[0]


def is_source(one: Argument) -> bool:
    """Whether an argument is called what takes where something comes from or begins."""
    return not word_stems(_name_of(one)).isdisjoint(SOURCES)


def is_moment_fitting(slot: Slot, one: Argument) -> bool:
    """Whether a moment stands where the argument takes one."""
    called = word_stems(_name_of(one))
    if _PLAIN_GAP.fullmatch(slot.gap) is None:
        return False
    if slot.lead == "from":
        return is_source(one)
    if slot.lead == "to":
        return not is_source(one)
    if slot.lead in _PLAIN_LEADS or stem(slot.lead) in slot.nouns:
        return True
    return stem(slot.lead) in called or (
        slot.lead in ("until", "till", "by", "before", "through") and not called.isdisjoint(_ENDS)
    )


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
    if slot.value.sort == NUMBER:
        if not (slot.nouns or slot.value.listed == taken.value.listed):
            return False
    elif slot.value.sort != MOMENT:
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
    if pair[1].role == FROM:
        return is_source(one) or not any(slot.role == TO for slot in reading.slots)
    return pair[1].role != TO or not is_source(one)
