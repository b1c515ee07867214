"""Closed sets: where the boundary says so, any member of a listing that the words chose may be the target of an order.

Rule 1: where the order names or numbers what it falls on, only the one member that bears it is in the set.
Rule 2: what the words rule out is not in it. Where the listing does not tell what that is, nothing is.
Rule 3: what a member points to is no member.
"""

from bisect import bisect_right
from collections.abc import Iterable

from remit.core.regex import regex
from remit.provenance.gate_verdict import Argument, Objection
from remit.provenance.kinds import LABEL
from remit.provenance.origins.labels import Group, OriginPlace
from remit.provenance.origins.relations import is_meant
from remit.provenance.values.grounds import Grounds
from remit.provenance.words.negation import NEGATING
from remit.provenance.words.said_values import NUMBER
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import CURRENCIES, FUNCTION_WORDS, stem, word_stems

# What any thing is called.
_ANYTHING = frozenset({"item", "thing", "entri", "on", "everyth", "anyth"})
_WORD = regex(r"[^\W_][\w'-]*")


def close_set(control: list[Argument], payload: Iterable[object], grounds: Grounds, tool: str) -> list[Argument]:
    """The arguments of a call, where an ambiguous member of a listing that the words chose is bound by closed sets."""
    given = {str(one.value) for one in control if one.code is None} | set(map(str, payload))
    return [
        Argument(one.path, one.value, "closed_set", origin=one.origin, kind=one.kind)
        if one.code is Objection.RECORD_AMBIGUOUS and one.origin and _is_in_set(one.origin, given, grounds, tool)
        else one
        for one in control
    ]


def _is_in_set(origin: OriginPlace, given: set[str], grounds: Grounds, tool: str) -> bool:
    observation, group = grounds.index.observations[origin.observation], grounds.group_of(origin)
    words = grounds.asking
    if not observation.chosen or group.is_cut or not is_meant(origin, observation, words):
        return False
    nouns = _ANYTHING | word_stems(tool) | word_stems(origin.kind) | word_stems(observation.tool)
    # What was looked for is what the members are: "buy a watch", among all that a search for watches found.
    nouns = nouns.union(*map(word_stems, observation.names))
    if words.negated:
        ruled_out = _ruled_out(group, nouns, grounds)
        if ruled_out is None or origin.record in ruled_out:
            return False
    if not _is_naming(given, nouns, grounds, tool) and grounds.plan.of(tool).things <= nouns | _stems_ruled_out(words):
        return True
    labels = [field for field, kind in group.kinds.items() if kind == LABEL]
    said = f" {words.spaced.lower()} "
    bearing = [
        place
        for place, record in enumerate(group.records)
        if any(_says_label(str(record[field]).lower(), said) for field in labels if field in record)
    ]
    return bearing == [origin.record]


def _is_naming(given: set[str], nouns: frozenset[str], grounds: Grounds, tool: str) -> bool:
    """Whether the order says which one it falls on, by a name or by a number that counts nothing."""
    words, ordering = grounds.asking, grounds.ordering
    is_ordered = ordering.is_ordered(tool)
    if any(
        name not in given and (not is_ordered or ordering.covers_quotation(tool, words.strings[name][0]))
        for name in words.names
    ):
        return True
    numbers = [value for clause in grounds.clauses_of(tool) for value in clause.values if value.sort == NUMBER]
    return any(
        one.text not in given
        and one.number is not None
        and (bool(one.number.caller) or (stem(one.number.unit) not in nouns and one.number.unit not in CURRENCIES))
        for one in numbers
    )


def _ruled_out(group: Group, nouns: frozenset[str], grounds: Grounds) -> set[int] | None:
    """The members that the words rule out; None where they rule out something that no member is labelled with."""
    words = grounds.asking
    labels = [field for field, kind in group.kinds.items() if kind == LABEL]
    found: set[int] = set()
    for start, end in words.negated:
        said = [word for word in map(str.lower, _WORD.findall(words.own, start, end)) if word not in NEGATING]
        spelled = f" {' '.join(said)} "
        named: set[int] = set()
        for place, record in enumerate(group.records):
            for label in (" ".join(_WORD.findall(str(record.get(field, "")).lower())) for field in labels):
                if label and f" {label} " in spelled:
                    named.add(place)
                    said = [word for word in said if word not in label.split()]
        if not named or any(word not in FUNCTION_WORDS and stem(word) not in nouns for word in said):
            return None
        found |= named
    return found


def _stems_ruled_out(words: Words) -> frozenset[str]:
    """The stems of what is ruled out, and of the words that rule it out."""
    found: set[str] = set()
    for start, end in words.negated:
        first = max(bisect_right(words.ends, start) - 1, 0)
        found.update(stem(token.text) for token in words.tokens[first : bisect_right(words.ends, end)])
    return frozenset(found)


def _says_label(label: str, said: str) -> bool:
    return any(f" {quote}{label}{end}" in said for quote in ("", "'", '"') for end in (" ", ".", ",", "'", '"'))
