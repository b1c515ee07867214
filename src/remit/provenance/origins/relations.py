"""Relations: in which relation the words name what a field of a record holds: its owner, its approver, what it links to.

Rule 1: the field's own noun stands right before the person: "owner ann@…", "whose owner is ann@…".
Rule 2: or a participle that the field is called by, with its preposition: "owned by" an owner, "assigned to" an assignee or
        `assigned_to`. A participle that is the name of no field names no person: "blocked by ann@…" is never what she wrote.
Rule 3: the author of a record is also whom the words put behind "from" and "by" without a participle, and who "sent" it.
Rule 4: where a record holds one person alone, any preposition will do that no participle governs.
Rule 5: a thing that a record points to is not the record: a member of a list, a second field of the same kind and a record
        within it are meant where the words name their relation.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Set

from remit.provenance.declarations import EACH
from remit.provenance.kinds import is_identity
from remit.provenance.origins.labels import Observation, OriginPlace
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import FUNCTION_WORDS, name_stems, name_words, stem, word_stems

_BEING = frozenset({"is", "are", "was", "were", "being", "as", "named", "called"})
_LINKS = frozenset({"by", "to", "from", "with", "for"})
_RELATING = frozenset({"of", "with", "for", "from", "by"})
_AUTHORED = frozenset({"from", "by"})
_AUTHORING = frozenset({"sent", "shared", "posted", "written", "wrote"})
# What those are called who do something, and to whom it is done.
_DOERS = ("er", "or", "r")
_RECEIVERS = ("ee", "e")
# Participles that no ending shows, and what those who do it are called by.
_IRREGULAR = {"sent": "send", "written": "writ", "paid": "pay", "sold": "sell", "bought": "buy", "lent": "lend"} | {
    "held": "hold", "led": "lead", "made": "mak", "kept": "keep", "hidden": "hid", "taken": "tak", "given": "giv", "won": "win",
}  # fmt: skip
_PARTICIPLE_ENDINGS = ("ed", "en")
# What the field is called that a record is known by, whatever the record is.
_OWN = frozenset(map(stem, ("id", "key", "uid", "uuid", "number", "no", "nr", "ref")))
_THE = frozenset({"the", "all", "its", "their"})


def is_related_to(
    words: Words, person: str, field: str, fields: Collection[str], nouns: Set[str], *, is_author: bool
) -> bool:
    """Whether the words name a person as the one whom a field holds.

    `fields` are all fields of the record that hold persons, `nouns` the stems of what the record is called.
    """
    start = words.strings.get(person, (-1, -1))[0]
    place = bisect_right(words.ends, start) - 1
    if start < 0 or place < 0:
        return False
    link = words.tokens[place].text.lower()
    verb = words.tokens[place - 1].text.lower() if place else ""
    relation = name_stems(field)
    if stem(link) in relation or (link in _BEING and stem(verb) in relation):
        return True
    if is_participle(verb) and link in _RELATING | _LINKS:
        if any(_is_called_by(one, verb, link) for one in fields):
            return _is_called_by(field, verb, link)
        return is_author and link in _AUTHORED and verb in _AUTHORING
    is_plain = stem(verb) in nouns or verb in FUNCTION_WORDS or not verb
    if (is_author and link in _AUTHORED) or (len(fields) == 1 and link in _RELATING):
        return is_plain or link != "by"
    behind = bisect_left(words.ends, start + len(person) + 1)
    said = [token.text.lower() for token in words.tokens[behind : behind + 2]]
    return is_author and not _AUTHORING.isdisjoint(said)


def is_participle(word: str) -> bool:
    """Whether a word may say what was done to a thing: "sent", "assigned"."""
    return word in _IRREGULAR or word in _AUTHORING or word.endswith(_PARTICIPLE_ENDINGS)


def _is_called_by(field: str, verb: str, link: str) -> bool:
    """Whether a field is called by a participle with its preposition: `assigned_to`, `assignee`, `owner`."""
    parts = name_words(field)
    if linked := _LINKS.intersection(parts):
        return link in linked and stem(verb) in name_stems(field)
    root = _IRREGULAR.get(verb, stem(verb))
    endings = _DOERS if link == "by" else _RECEIVERS if link == "to" else ()
    return any(f"{root}{ending}" in parts for ending in endings)


def is_meant(origin: OriginPlace, observation: Observation, words: Words) -> bool:
    """Whether the words mean this field of a picked record, and of a list in it all members or the only one."""
    held = observation.groups[origin.group].records[origin.record].get(origin.field)
    is_single = not isinstance(held, list) or len(held) == 1
    relation = None if is_identity(origin.kind) else _relation_of(origin, observation)
    if relation is not None and relation.isdisjoint(words.stems):
        return False
    return is_single or _says_all_of(_key_of(origin.field), words)


def _relation_of(origin: OriginPlace, observation: Observation) -> frozenset[str] | None:
    """The stems of what a field is to its record, other than the record itself; None where it needs no naming."""
    own, named = word_stems(origin.kind) | _OWN, name_stems(_key_of(origin.field))
    around = [name for name in observation.groups if name != origin.group and origin.group.startswith(name)]
    if any(origin.kind in observation.groups[name].kinds.values() for name in around):  # "related[].id"
        return (named | name_stems(_key_of(origin.group))) - own
    is_double = list(observation.groups[origin.group].kinds.values()).count(origin.kind) > 1
    if not origin.field.endswith(EACH):
        return named - own if is_double and not named <= own else None
    return named - own if is_double else named | word_stems(origin.kind) - _OWN


def _key_of(path: str) -> str:
    return path.removesuffix(EACH).rpartition(".")[2].removesuffix(EACH)


def _says_all_of(noun: str, words: Words) -> bool:
    """Whether the words mean all members of a list: "the guests" are all of them, "two of the guests" are not."""
    for place in words.places.get(noun, ()):
        before = [token.text.lower() for token in words.tokens[max(place - 2, 0) : place]]
        if before[-1:] and before[-1] in _THE and before[0] != "of" and words.tokens[place].text.endswith("s"):
            return True
    return False
