"""Left out: an argument that a call does not give is a choice too. Without "for user 4242" it would fall on everybody.

Rule 1: what the clause that orders a tool gives is taken up: by an argument of the call, by the record that supplied one, or
        by what that record was looked up by. Where a value is left that an argument which is not given could take, by its
        kind, its schema or its noun, a person is asked. An argument that is empty or says its default is not given.
Rule 2: where money, rights or deletion are at stake, or it is not declared what is, what a value is called refuses nothing:
        it is enough that the argument could hold it.
Rule 3: a switch, a choice or a currency that the clause names is given, or a person is asked.
Rule 4: a call that says nothing and gives none of the arguments that could narrow it falls on everything, which is to be
        said: all, every.
"""

from collections.abc import Iterator, Mapping, Sequence

from remit.core.limits.authority import Stakes
from remit.core.record import JsonObject, Record
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import (
    ANY,
    EMAIL,
    LABEL,
    MOMENTS,
    NUMBERS,
    TEXT,
    UNSAYING,
    base_of,
    is_target,
    number_key,
    number_of,
    shape_of,
    unit_of,
)
from remit.provenance.values.grounds import Grounds
from remit.provenance.values.leaves import told_kind
from remit.provenance.words.atoms import NumberSaid
from remit.provenance.words.moments import is_said
from remit.provenance.words.said_values import MOMENT, NAME, NUMBER, SaidClause, SaidValue
from remit.provenance.words.units import kin_of
from remit.provenance.words.user_words import is_called_for
from remit.provenance.words.vocabulary import CODES, CURRENCIES, name_stems, word_stems

# Deeper objects than people declare are one argument.
_DEPTH_MAX = 4
_EUROS = frozenset({"euro", "euros"})
_RATES = frozenset({"percent", "percentag", "rat", "share"})


class Choosable:
    """One argument that steers a call, nested ones too: its path, its own name, its kind and its schema. Made once per tool."""

    __slots__ = ("argument", "choices", "is_currency", "is_offered", "is_switch", "kind", "nouns", "path", "schema")

    def __init__(self, path: str, argument: str, kind: str, schema: JsonObject) -> None:
        """Read off the declaration what every call would ask."""
        self.path = path
        self.argument = argument
        self.kind = kind
        self.schema = schema
        offered = schema.get("enum")
        # The texts that the schema offers.
        self.choices = [one for one in offered if isinstance(one, str)] if isinstance(offered, (list, tuple)) else []
        self.is_switch = schema.get("type") == "boolean" or base_of(kind) in ("bool", "boolean")
        self.is_currency = "currenc" in name_stems(argument) or any(one.upper() in CODES for one in self.choices)
        # Whether all that it can hold is offered, so that no value of the words is one of its.
        self.is_offered = "enum" in schema or self.is_switch or base_of(kind) == "enum"
        # The stems of what the argument and its kind are called.
        self.nouns = (name_stems(argument) | name_stems(kind.partition(":")[2])) - UNSAYING

    def may_be(self, *types: str) -> bool:
        """Whether the schema lets it hold one of these; one that does not say lets all."""
        told = self.schema.get("type")
        held = told if isinstance(told, list) else [told]
        return told is None or any(one in types for one in held)


def choosable_of(declaration: Declaration) -> tuple[Choosable, ...]:
    """The arguments that steer a call, payload left out."""
    kinds = dict(declaration.control_args)
    return tuple(_choosable(declaration.parameters, "", kinds, frozenset(declaration.payload_args), 0))


def _choosable(
    schema: JsonObject, above: str, kinds: Mapping[str, str], payload: frozenset[str], depth: int
) -> Iterator[Choosable]:
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        path = f"{above}{name}"
        if path in payload or not isinstance(inner, dict):
            continue
        items = inner.get("items")
        told = items if isinstance(items, dict) else inner
        if depth < _DEPTH_MAX and isinstance(told.get("properties"), dict):
            yield from _choosable(told, f"{path}.", kinds, payload, depth + 1)
            continue
        kind = kinds.get(path) or kinds.get(f"{path}[]") or kinds.get(path.partition(".")[0], ANY)
        default = {"default": inner["default"]} if "default" in inner else {}
        yield Choosable(path, name, told_kind(kind, told), {**told, **default})


def left_out(
    choosable: Sequence[Choosable], given: Sequence[Argument], declaration: Declaration, grounds: Grounds
) -> Iterator[str]:
    """The arguments that a call leaves out although the words give them, or although without any it has no bounds.

    `given` are all arguments of the call; those that say their default count as left out.
    """
    chosen = [one for one in given if one.bound_by != "default"]
    said = {_place_of(one.path) for one in chosen}
    payload = set(declaration.payload_args)
    missing = [one for one in choosable if one.path not in said]
    if not missing:
        return
    is_loose = declaration.stakes is not Stakes.NONE
    # What a tool with payload is told is mostly what is to be said: only what is called so is meant for another argument.
    reach = _Reach(is_loose=is_loose, is_telling=bool(payload))
    clauses = grounds.clauses_of(declaration.name)
    touched = [one for one in clauses if any(arg.span and one.start <= arg.span[0] < one.end for arg in chosen)]
    own, free = word_stems(declaration.name), [one for one in missing if not one.is_offered]
    for clause in touched or clauses:
        if is_loose and clause.described and not payload and _described_things(clause, own, chosen):
            yield from (one.path for one in missing if is_target(one.kind) and one.may_be("string", "array"))
        yield from (one.path for one in missing if _is_named(one, clause, own, is_loose=is_loose))
        if free:
            held = _Held(clause, chosen, payload, grounds, is_loose=is_loose)
            yield from (one.path for one in free if any(_could_take(one, value, reach) for value in held.left_for(one)))
    if not said and not payload and not grounds.plan.universals_of(declaration.name):
        yield from (one.path for one in missing if is_target(one.kind or "enum"))


def _described_things(clause: SaidClause, own: frozenset[str], chosen: Sequence[Argument]) -> frozenset[str]:
    """The things of a tool that are told by what they are like, where no argument says which they are."""
    described = clause.described & own
    for one in chosen if described else ():
        described -= word_stems(one.kind) | word_stems(one.path)
    return described


def _place_of(path: str) -> str:
    """The path of an argument without the numbers of members."""
    return path if "[" not in path else ".".join([part.partition("[")[0] for part in path.split(".")])


class _Held:
    """Which values of a clause a call takes up, and by which kinds of arguments."""

    def __init__(
        self, clause: SaidClause, chosen: Sequence[Argument], payload: set[str], grounds: Grounds, *, is_loose: bool
    ) -> None:
        told = [(one, _place_of(one.path) in payload) for one in chosen]
        self._taken: list[SaidValue] = []
        # The kinds of the arguments that took a value of each list.
        self._lists: dict[int, set[str]] = {}
        for value in clause.values:
            kinds = {
                one.kind
                for one, is_payload in told
                if _takes(one, value, grounds, is_payload=is_payload, is_loose=is_loose)
            }
            if kinds:
                self._taken.append(value)
                self._lists.setdefault(value.listed, set()).update(kinds)
        self._left = [
            value
            for value in clause.values
            if not any(one.start < value.end and value.start < one.end for one in self._taken)
        ]

    def left_for(self, missing: Choosable) -> Iterator[SaidValue]:
        """The values that nothing took up. A list of which one was taken is for further calls, unless it could be both."""
        for value in self._left:
            kinds = self._lists.get(value.listed)
            if kinds is None or (missing.kind != ANY and missing.kind in kinds):
                yield value


def _takes(argument: Argument, value: SaidValue, grounds: Grounds, *, is_payload: bool, is_loose: bool) -> bool:
    """Whether an argument takes up a value of the words."""
    held, kind = argument.value, argument.kind
    if isinstance(held, bool) or held is None:
        return False
    if is_payload:
        # Prose may repeat anything; where much is at stake, a number that is only spoken of is not given.
        return isinstance(held, str) and value.text in held and not (is_loose and value.sort == NUMBER)
    if argument.origin is not None and _is_of_record(value, argument, grounds):
        return True
    if value.sort == MOMENT:
        return isinstance(held, str) and is_said(held, value.told, today=grounds.today, years=grounds.years)
    is_here = argument.span is not None and argument.span[0] < value.end and value.start < argument.span[1]
    if value.number is not None:
        number = number_of(held)
        is_equal = number is not None and number_key(number) == value.text
        name = _place_of(argument.path).rpartition(".")[2]
        return is_here or (is_equal and is_called_for(value.number, kind, name))
    return is_here or (isinstance(held, str) and value.text.lstrip("@#") in held)


def _is_of_record(value: SaidValue, argument: Argument, grounds: Grounds) -> bool:
    """Whether the record that supplied an argument has a value, or was looked up by it."""
    assert argument.origin is not None, "only a field has a record"
    observation = grounds.index.observations[argument.origin.observation]
    if any(value.text in name for name in observation.names):
        return True
    record = grounds.group_of(argument.origin).records[argument.origin.record]
    held = [one for field in record.values() for one in (field if isinstance(field, list) else (field,))]
    if value.sort == MOMENT:
        return any(
            isinstance(one, str) and is_said(one, value.told, today=grounds.today, years=grounds.years) for one in held
        )
    if value.sort == NUMBER:
        return any((number := number_of(one)) is not None and number_key(number) == value.text for one in held)
    return any(isinstance(one, str) and value.text in one for one in held)


def _is_named(missing: Choosable, clause: SaidClause, own: frozenset[str], *, is_loose: bool) -> bool:
    """Whether a clause names a switch, a choice or a currency that is not the default."""
    default = missing.schema.get("default")
    if missing.is_switch:
        stems = name_stems(missing.argument) - own
        called = frozenset[str]().union(*(value.nouns for value in clause.values))
        if is_loose:
            found = not (stems - called).isdisjoint(clause.denied if default is True else clause.stems)
        else:
            found = bool(stems) and stems <= (clause.denied if default is True else clause.stems)
        return found
    if missing.is_currency:
        units = [value.number.unit for value in clause.values if value.number is not None]
        codes = ["EUR" if unit.lower() in _EUROS else unit.upper() for unit in units if unit.lower() in CURRENCIES]
        return any(code != str(default).upper() for code in codes)
    return any(
        bool(stems := word_stems(one) - own) and stems <= clause.stems for one in missing.choices if one != default
    )


class _Reach(Record):
    """How far a value may be from what it is called, for one tool."""

    is_loose: bool
    is_telling: bool


def _could_take(missing: Choosable, value: SaidValue, reach: _Reach) -> bool:
    """Whether an argument could hold a value: by its kind and schema, and by what the value is called."""
    kind, base = missing.kind, base_of(missing.kind)
    is_open = kind in (ANY, LABEL, TEXT)
    is_number = base in NUMBERS or (is_open and not missing.may_be("string", "array", "object"))
    if value.sort == MOMENT:
        return base in MOMENTS or (is_open and not is_number and not reach.is_telling)
    if is_number or base in MOMENTS:
        return is_number and value.number is not None and _could_count(missing, value.number, reach)
    if (shape := shape_of(kind)) is not None:
        return (
            value.sort == NAME and shape.fullmatch(value.text) is not None and not (reach.is_telling and value.is_aside)
        )
    if base in ("id", "path") and (EMAIL.fullmatch(value.text) or "://" in value.text):
        return False
    if not value.nouns.isdisjoint(missing.nouns):
        return True
    if reach.is_telling and (value.is_aside or value.nouns or value.sort == NUMBER):
        return False
    if value.nouns and not reach.is_loose:
        return False
    # A word with a capital letter is a person sooner than an identifier.
    return value.is_marked or base == "who" or (is_open and not reach.is_telling)


def _could_count(missing: Choosable, said: NumberSaid, reach: _Reach) -> bool:
    if reach.is_loose and not reach.is_telling:
        return True
    if said.percent:
        return base_of(missing.kind) == "percent" or bool(name_stems(missing.argument) & _RATES)
    unit = unit_of(missing.kind)
    if not kin_of(said.unit).isdisjoint(missing.nouns):
        return True
    return bool(unit and said.unit == unit) or is_called_for(said, missing.kind, missing.argument)
