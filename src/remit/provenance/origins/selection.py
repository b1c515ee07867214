"""Selection: an id is trustworthy, the choice of which id is not. Here the gate makes the choice again.

Rule 1: a record is picked when it is the only one of a lookup whose arguments came from the user, the only one that the
        words name, or at the end of an order that the words ask for and the gate computes itself.
Rule 2: naming is exact, and rivals are counted loosely: whatever contains the name in any case is a rival.
Rule 3: who a person is comes from a record only where the words name the relation (the field's own name), or from a
        directory in which they name the entry. A label that others wrote names no person.
Rule 4: all, each, every and both cover the records they are said of, if the lookup came from the user.
Rule 5: a listing that was cut, or whose arguments the model chose, picks nothing.
"""

from collections.abc import Callable, Iterator, Set
from decimal import Decimal
from typing import Any

from remit.core.record import Record, replace
from remit.core.regex import regex
from remit.provenance.declarations import EACH, Declaration
from remit.provenance.kinds import (
    EMAIL,
    INFERRED,
    LABEL,
    MOMENTS,
    NUMBERS,
    TEXT,
    base_of,
    day_of,
    is_identity,
    number_of,
    shape_of,
)
from remit.provenance.origins.labels import Group, Observation, OriginPlace
from remit.provenance.origins.plain_names import called_plainly, dated, is_named_noun, named_by_two
from remit.provenance.origins.relations import is_related_to
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import (
    COUNTS,
    EARLIEST,
    FUNCTION_WORDS,
    GREATEST,
    LATEST,
    LEAST,
    MOST,
    NARROWING,
    PAIRS,
    RECENT,
    SELF,
    name_stems,
    name_words,
    stem,
    word_stems,
)

# A prompt that names more records than this is a listing itself.
NAMES_MAX = 64
# How far after "all" its noun may stand: "all of the other unread messages".
_NOUN_WORDS_MAX = 5
_MEASURES = NUMBERS | MOMENTS
_COSTS = frozenset({"pric", "cost", "fee", "far", "amount", "rent"})
_PERIODS = frozenset({"week", "month", "year", "night", "day", "weekend", "time", "name", "names", "quarter"})
_BEGINNING = regex(r"\b(?:start|begin)\w* with [\"']?([^\s\"',.]+)")
# Shorter labels are parts of too many names.
_PART_CHARS_MIN = 3
# Stems that tell nothing about who a person is to the user.
_GENERIC = frozenset({"nam", "user", "id", "address"})
_VAGUE = frozenset({"best", "top"})
_DEAR = frozenset({"cheapest", "priciest", "expensive", "costly"})


class Pick(Record):
    """Why a record was picked: only, named or superlative; the words that did it, and whether earlier ones helped."""

    reason: str
    words: tuple[str, ...] = ()
    is_earlier: bool = False


class OrderedEnd(Record):
    """One end of an order that the words ask for: numbers or dates, which end, and the words around it."""

    word: str
    is_date: bool
    is_greatest: bool
    nearby: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    is_narrowed: bool = False
    count: int = 1
    reach: tuple[int, int] = (0, 0)


def picks_of(
    observation: Observation,
    name: str,
    asking: Words,
    orders: tuple[OrderedEnd, ...],
    words: Words,
    *,
    author: str = "",
    about: Set[str] = frozenset(),
) -> dict[int, Pick]:
    """The records of a group that the user's words pick out, each with the reason.

    `words` are those of this exchange, `asking`, and of earlier ones: these name a record only where it names none.
    `author` is the field that says who wrote a record, `about` what the tool reads: "the largest file in the drive".
    """
    group = observation.groups[name]
    if group.is_cut or not observation.chosen:
        return {}
    picks = dict(_named(group, asking, author, about))
    if not picks and words is not asking:
        picks = {place: replace(pick, is_earlier=True) for place, pick in _named(group, words, author, about)}
    for place, day in dated(group, asking, words):
        picks.setdefault(place, Pick("named", (day,)))
    for place, pick in _beginning(group, observation, asking):
        picks.setdefault(place, pick)
    for order in orders:
        if not _is_about(order, group, observation) or not _is_as_narrow(asking, order, observation, about):
            continue
        for place in _ends_of(group, order):
            picks.setdefault(place, Pick("superlative", (order.word,)))
    # Where the words name something, a listing that was not looked up by a name is no answer to them, even if it
    # happens to hold one record.
    is_aside = EACH in name and not observation.names and (words.names or words.numbers)
    if len(group.records) == 1 and not is_aside and _bears_addresses(group, observation):
        picks.setdefault(0, Pick("only"))
    if observation.is_earlier:
        picks = {place: replace(pick, is_earlier=True) for place, pick in picks.items()}
    return picks


def _named(group: Group, words: Words, author: str = "", about: Set[str] = frozenset()) -> Iterator[tuple[int, Pick]]:
    """Records that the words name exactly and that have no rival for all of their names."""
    naming = [field for field, kind in group.kinds.items() if _may_name(kind)]
    nouns = tuple(stem(kind.partition(":")[2]) for kind in group.kinds.values() if base_of(kind) == "id")
    persons = [field for field in naming if group.kinds[field] != LABEL and is_identity(group.kinds[field])]
    called = about | frozenset(nouns)
    exact: dict[str, list[int]] = {}
    fields: dict[str, str] = {}
    texts: list[str] = []
    for place, record in enumerate(group.records):
        values = [value for field in naming for value in _each(record.get(field))]
        texts.append("\n".join(str(value) for value in values).lower())
        for field in naming:
            for value in _each(record.get(field)):
                if is_named(value, group.kinds[field], words, nouns) and (
                    field not in persons
                    or is_related_to(words, str(value), field, persons, called, is_author=author == field)
                ):
                    exact.setdefault(str(value), []).append(place)
                    fields.setdefault(str(value), field)
    if not exact:
        yield from ((place, Pick("named", (name,))) for place, name in named_by_two(group, words))
        yield from ((place, Pick("named", (label,))) for place, label in called_plainly(group, words))
    if not exact or len(exact) > NAMES_MAX:
        return
    rivals = {
        name: _rivals(name, field, group, words, texts, is_person=field in persons) for name, field in fields.items()
    }
    found = []
    for place in sorted({place for places in exact.values() for place in places}):
        names = tuple(name for name in exact if place in rivals[name])
        if len(set.intersection(*(rivals[name] for name in names))) == 1:
            found.append((place, Pick("named", names)))
    # Two records with a name each are two candidates, unless the words put the names side by side.
    if len(found) == 1 or words.are_coordinated([pick.words[0] for _, pick in found]):
        yield from found


def _rivals(name: str, field: str, group: Group, words: Words, texts: list[str], *, is_person: bool) -> set[int]:
    """The records that a name may mean, by number."""
    if is_person:  # The words say who of a record they mean: the others of it are no rivals.
        return {place for place, record in enumerate(group.records) if name in _each(record.get(field))}
    if words.is_quoted(name):  # What is quoted is meant to the letter.
        return {place for place, text in enumerate(texts) if name.lower() in text.split("\n")}
    longer = {place for place, text in enumerate(texts) if name.lower() in text}
    return longer | {place for place, record in enumerate(group.records) if _is_part(record.get(field), name)}


def _is_part(value: Any, name: str) -> bool:
    """Whether a label is a part of a longer name: who says "Lola Madrid" may mean "Lola"."""
    return any(len(part) >= _PART_CHARS_MIN and part.lower() in name.lower() for part in map(str, _each(value)))


def _may_name(kind: str) -> bool:
    return kind == LABEL or (kind != TEXT and not kind.startswith(INFERRED) and base_of(kind) not in _MEASURES)


def is_named(value: Any, kind: str, words: Words, nouns: tuple[str, ...] = ()) -> bool:
    """`nouns` are what the records are called: "the card ending 9023" is the one whose label that is."""
    text = str(value)
    if text.isdecimal():
        hints = nouns if kind == LABEL else (stem(kind.partition(":")[2]),)
        return words.identifier_said(text, hints) is not None
    if kind == LABEL and EMAIL.fullmatch(text):
        return False  # An address names whom it belongs to, not what was labelled with it.
    # A plain word is too common to name a record: any writer can call a file "summary".
    return text in words.names or is_named_noun(text, words)


def _each(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def orders_in(words: Words) -> tuple[OrderedEnd, ...]:
    """The superlatives of the words, in the order in which they stand."""
    lowered = [token.text.lower() for token in words.tokens]
    found = []
    for place, word in enumerate(lowered):
        # "the highest-rated hotel" is the hotel with the highest rating.
        word, _, tail = word.partition("-")
        after = tail or (lowered[place + 1] if place + 1 < len(lowered) else "")
        order = None if after in _PERIODS else _order(word, after)
        if order is not None and not words.is_negated(place):
            around = lowered[max(place - _NOUN_WORDS_MAX, 0) : place] + lowered[place + 1 : place + _NOUN_WORDS_MAX]
            before = lowered[place - 1] if place else ""
            found.append(
                replace(
                    order,
                    nearby=tuple(stem(near) for near in (tail, *lowered[place + 1 : place + 4])),
                    around=tuple(stem(near) for near in around),
                    is_narrowed=words.is_narrowed(place),
                    reach=words.reach_of(place),
                    count=COUNTS.get(before) or (int(before) if before.isdecimal() and len(before) < 3 else 1),
                )
            )
    return tuple(found)


def _order(word: str, after: str) -> OrderedEnd | None:
    if word == MOST:
        if after in FUNCTION_WORDS or not after:
            return None
        return OrderedEnd(word if after == RECENT else after, is_date=after == RECENT, is_greatest=True)
    if word in LATEST or word in EARLIEST:
        return OrderedEnd(word, is_date=True, is_greatest=word in LATEST)
    if word in LEAST or word in GREATEST:
        return OrderedEnd(word, is_date=False, is_greatest=word in GREATEST)
    return None


def _is_as_narrow(words: Words, order: OrderedEnd, observation: Observation, about: Set[str]) -> bool:
    """Whether a lookup was narrowed by what narrows the superlative, if anything does; where it reads narrows nothing."""
    if not order.is_narrowed or any(words.stands_within(name, order.reach) for name in observation.names):
        return True
    start, end = words.rest_of(order.reach[0])
    said = [token.text for token in words.tokens if start <= token.start < end]
    narrowing = next((place for place, word in enumerate(said) if word.lower() in NARROWING), len(said))
    plain = [word for word in said[narrowing + 1 :] if word.lower() not in FUNCTION_WORDS]
    return bool(plain) and all(stem(word) in about for word in plain) and not words.names_within((start, end))


def _bears_addresses(group: Group, observation: Observation) -> bool:
    """A record that was looked up by an address must bear it as an identity, where it has any: a label proves nothing."""
    wanted = {name for name in observation.names if EMAIL.fullmatch(name)}
    fields = [field for field, kind in group.kinds.items() if shape_of(kind) is EMAIL]
    borne = {value for field in fields for value in _each(group.records[0].get(field))}
    return not wanted or not fields or wanted <= borne


def _beginning(group: Group, observation: Observation, words: Words) -> Iterator[tuple[int, Pick]]:
    """A record whose label alone begins as the words say: "the event starting with External"."""
    found = _BEGINNING.search(words.own)
    if found is None or found[1] not in words.names or _BEGINNING.search(words.own, found.end()) is not None:
        return
    before = [stem(word) for word in words.own[: found.start()].split()[-_NOUN_WORDS_MAX:]]
    labels = [field for field, kind in group.kinds.items() if kind == LABEL]
    places = [
        place
        for place, record in enumerate(group.records)
        if any(str(one).startswith(found[1]) for field in labels for one in _each(record.get(field)))
    ]
    if len(places) == 1 and words.names == {found[1]} and not _called(group, observation).isdisjoint(before):
        yield places[0], Pick("named", (found[1],))


def _is_about(order: OrderedEnd, group: Group, observation: Observation) -> bool:
    """Whether the words around a superlative speak of these records: by the tool that lists them or by their ids."""
    return not _called(group, observation).isdisjoint(order.around)


def _called(group: Group, observation: Observation) -> set[str]:
    """The stems of what records are called, by the tool that lists them or by their ids."""
    called = {stem(word) for word in name_words(observation.tool)[1:]}
    for kind in group.kinds.values():
        if base_of(kind) == "id":
            called |= {stem(word) for word in name_words(kind)[1:]}
    return called


def _ends_of(group: Group, order: OrderedEnd) -> list[int]:
    """The records at the end of the order; none when a value is missing or records beyond share the end."""
    column = _column(group, order)
    if column is None or len(group.records) <= order.count:
        return []
    ranked = [(_rank(record.get(column), order), place) for place, record in enumerate(group.records)]
    known = sorted(((rank, place) for rank, place in ranked if rank is not None), reverse=order.is_greatest)
    if len(known) < len(ranked) or not order.count or known[order.count - 1][0] == known[order.count][0]:
        return []
    return [place for _, place in known[: order.count]]


def _rank(value: Any, order: OrderedEnd) -> tuple[Decimal, str] | None:
    if order.is_date:
        is_day = isinstance(value, str) and day_of(value) is not None
        return (Decimal(0), value.replace("T", " ")) if is_day else None
    number = number_of(value)
    return None if number is None else (number, "")


def _column(group: Group, order: OrderedEnd) -> str | None:
    """The field that the order is about: the only one of its sort, or the only one that the words around it name."""
    family = MOMENTS if order.is_date else NUMBERS
    columns = [field for field, kind in group.kinds.items() if base_of(kind.removeprefix(INFERRED)) in family]
    if order.word in _DEAR:
        columns = [field for field in columns if _COSTS & name_stems(field)] or columns
    elif order.word in _VAGUE:
        # The best price is the lowest and the best rating the highest: only a field that is named, and no price.
        named = [field for field in columns if name_stems(field) & set(order.nearby)]
        columns = [field for field in named if not _COSTS & name_stems(field)]
    else:
        columns = [field for field in columns if name_stems(field) & set(order.nearby)] or columns
    return columns[0] if len(columns) == 1 else None


def is_covered(
    words: Words,
    origin: OriginPlace,
    observation: Observation,
    declaration: Declaration | None,
    places: tuple[int, ...],
    *,
    is_picked: bool = False,
) -> bool:
    """Whether one of the universal words at these places is said of these records, as narrowly as they were looked up."""
    group = observation.groups[origin.group]
    if not observation.chosen or group.is_cut or not places:
        return False
    lists_people = is_identity(origin.kind) and (
        not origin.field or (declaration is not None and declaration.directory)
    )
    wanted = _noun_stems(origin, observation)
    for place in places:
        word = words.tokens[place].text.lower()
        if words.is_limited(place):
            continue  # Who or what is taken out again is for a person to say.
        if is_picked and origin.field.endswith(EACH) and word in ("everyone", "everybody"):
            return True  # Everyone that one picked record lists.
        if word in PAIRS and len(group.records) != 2:
            continue
        reach = words.reach_of(place)
        is_narrowed = words.is_narrowed(place) and not any(
            words.stands_within(name, reach) for name in observation.names
        )
        if is_narrowed and not _begins_as_said(words, reach, group, origin):
            continue
        if word in ("everyone", "everybody") and lists_people:
            return True
        near = [token.text.lower() for token in words.tokens[place + 1 : place + 1 + _NOUN_WORDS_MAX]]
        # "both files a.txt and b.txt" are these two.
        noun = _noun_of(wanted, near, observation)
        if noun and not words.has_name_behind(place + noun):
            return True
    return False


def _begins_as_said(words: Words, reach: tuple[int, int], group: Group, origin: OriginPlace) -> bool:
    """Whether a label of the record begins with what the words say that it begins with: "all files starting with Old"."""
    reach = words.rest_of(reach[0])
    found = _BEGINNING.search(words.own, *reach)
    if found is None or found[1] not in words.names or len(words.names_within(reach)) > 1:
        return False
    record = group.records[origin.record]
    labels = [str(one) for field, kind in group.kinds.items() if kind == LABEL for one in _each(record.get(field))]
    return any(label.startswith(found[1]) for label in labels)


def _noun_of(wanted: set[str], near: list[str], observation: Observation) -> int:
    """How far behind a universal word its noun stands, if it is wanted and what qualifies it went into the lookup; else 0."""
    looked_for = {
        stem(word) for word in name_words(" ".join((observation.tool, *observation.arguments, *observation.names)))
    }
    for place, word in enumerate(near, 1):
        # The last of the words that a thing is called by is the noun.
        if stem(word) in wanted and not (place < len(near) and stem(near[place]) in wanted):
            return place
        if word not in FUNCTION_WORDS and stem(word) not in looked_for | wanted:
            return 0
    return 0


def _noun_stems(origin: OriginPlace, observation: Observation) -> set[str]:
    """What the records may be called: their namespace, their field, or for a plain list the tool that lists them."""
    base, _, space = origin.kind.partition(":")
    key = origin.field.removesuffix("[]").rpartition(".")[2]
    wanted = {stem(word) for word in name_words(key)} - {"id"}
    if base == "id" and space and not (key and origin.field.endswith(EACH)):
        wanted |= {stem(word) for word in name_words(space)}
    if not key:
        wanted |= {stem(word) for word in name_words(observation.tool)[1:]}
    return wanted


def is_related(
    words: Words,
    origin: OriginPlace,
    pick: Pick,
    observation: Observation,
    declaration: Declaration | None,
    addresses: Callable[[str], bool],
) -> bool:
    """Whether the words ask for who a person is in just this way, or turn to them; things need no relation."""
    if not is_identity(origin.kind):
        return True
    key = origin.field.removesuffix("[]").rpartition(".")[2]
    if not (name_stems(key) - word_stems(origin.kind) - _GENERIC).isdisjoint(words.stems):
        return True
    if declaration is None or not declaration.directory or declaration.author:
        return False
    if pick.reason == "only" and not observation.arguments:
        return bool(SELF & words.lower)
    names = pick.words if pick.reason == "named" else observation.names
    if not any(map(addresses, names)):
        return False
    return pick.reason == "named" or (pick.reason == "only" and _answers_to(origin, observation))


def _answers_to(origin: OriginPlace, observation: Observation) -> bool:
    """Whether an entry that was looked up by a name bears that name, as far as it bears any."""
    group = observation.groups[origin.group]
    record = group.records[origin.record]
    labels = [field for field, kind in group.kinds.items() if kind == LABEL]
    borne = [str(value).lower() for field in labels for value in _each(record.get(field))]
    names = [name.lower() for name in observation.names]
    return bool(names) and (not borne or any(name in label for name in names for label in borne))


def fits_argument(asking: Words, origin: OriginPlace, group: Group, argument: str, words: Words) -> bool:
    """Whether a number or date is the one meant: named like the argument, named by the words, or the only one."""
    base = base_of(origin.kind)
    family = NUMBERS if base in NUMBERS else MOMENTS
    if base not in family:
        return True
    key = name_stems(origin.field.removesuffix("[]").rpartition(".")[2])
    if key & asking.stems:
        return True
    if family is NUMBERS and argument and words.numbers:
        return False  # The words give numbers of their own.
    if key & name_stems(argument):
        return True
    return sum(base_of(kind.removeprefix(INFERRED)) in family for kind in group.kinds.values()) == 1
