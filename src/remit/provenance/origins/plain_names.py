"""Plain names: a record that an order means by a label that is none of its names: in small letters, or in two parts.

Rule 1: "unpack the yoga mat" means the one record whose label is that, in any case. Where another label has these words in
        it, or another record is called by other words of the order, nothing is meant.
Rule 2: only right behind the verb of an order: anybody can call a record by a common word that stands elsewhere.
Rule 3: two labels of one record that stand side by side in a name of the words mean it, where they mean no other.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import permutations

from remit.core.regex import regex
from remit.provenance.kinds import LABEL, MOMENTS, base_of
from remit.provenance.origins.labels import Group
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import FUNCTION_WORDS

# A longer listing is a search, and what is called by a common word in it is chance.
RECORDS_MAX = 100
# A noun of more words is a description.
_TAIL_WORDS_MAX = 2
_BEHIND_ARTICLE = regex(r"\b(?:the|a|an|my|our|your) ([a-z]+(?: [a-z]+){0,5})")


def called_plainly(group: Group, words: Words) -> Iterator[tuple[int, str]]:
    """The place of the record that is meant, and its label."""
    labels = [field for field, kind in group.kinds.items() if kind == LABEL]
    if not labels or len(group.records) > RECORDS_MAX:
        return
    said = [found[1] for found in _BEHIND_ARTICLE.finditer(words.bare) if _is_behind_order(found.start(), words)]
    texts = [[one.lower() for field in labels if isinstance(one := record.get(field), str)] for record in group.records]
    found = {
        label: place
        for place, borne in enumerate(texts if said else ())
        for label in borne
        if _is_plain(label) and any(f"{phrase} ".startswith(f"{label} ") for phrase in said)
    }
    for label, place in found.items():
        rivals = [one for one, borne in enumerate(texts) if any(label in text for text in borne)]
        if len(found) == 1 and len(rivals) == 1:
            yield place, label


def _is_plain(label: str) -> bool:
    return all(word.isalpha() and word not in FUNCTION_WORDS for word in label.split(" "))


def _is_behind_order(start: int, words: Words) -> bool:
    place = bisect_right(words.ends, start) - 1
    return place >= 0 and words.is_order(place) and not words.own[words.ends[place] : start].strip()


def named_by_two(group: Group, words: Words) -> Iterator[tuple[int, str]]:
    """The one record of which two labels side by side are a name of the words: "Taberna Lola Madrid", in Madrid."""
    labels = [field for field, kind in group.kinds.items() if kind == LABEL]
    names = {name for name in words.names if " " in name} if len(labels) > 1 else set()
    found = [
        (place, f"{record[one]} {record[two]}")
        for place, record in enumerate(group.records if names else ())
        for one, two in permutations(labels, 2)
        if one in record and two in record and f"{record[one]} {record[two]}" in names
    ]
    if len(found) == 1:
        yield found[0]


def is_named_noun(text: str, words: Words) -> bool:
    """A name with the noun it stands before, as the words put them: "the Compact car", "the Team lunch"."""
    head, *tail = text.split(" ")
    if not tail or len(tail) > _TAIL_WORDS_MAX or not head[:1].isupper():
        return False
    return all(word.islower() and word not in FUNCTION_WORDS for word in tail) and words.run_of(text) is not None


def dated(group: Group, asking: Words, words: Words) -> Iterator[tuple[int, str]]:
    """The one record of a day that the words give, where they give nothing else to go by, and that day."""
    fields = [field for field, kind in group.kinds.items() if base_of(kind) in MOMENTS]
    if words.names or len(fields) != 1:
        return
    for day in asking.moments.days:
        places = [place for place, one in enumerate(group.records) if str(one.get(fields[0])).startswith(day)]
        if len(places) == 1:
            yield places[0], day
