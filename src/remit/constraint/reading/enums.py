"""Enums: a text that is meant to be one of the allowed words becomes that word.

Rule 1: only where the schema admits no other text, and exactly one allowed word fits: first by case, then by case and by
        what joins its parts (`In Progress`, `in-progress`, `in_progress`). A beginning of a word is not the word, and
        a word beside several dots may be a beginning; one dot behind it ends a sentence.
Rule 2: every match is a repair. Where two words fit, nothing is changed, and validation says so.
Rule 3: what the walk does not understand, it does not touch.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize
from urllib.parse import unquote

from remit.constraint.reading.lenient_json import BareWord
from remit.constraint.reading.repair_log import RepairCode, RepairLog
from remit.core.journal.codec import to_json
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.schema.json_schema import JsonSchema
from remit.core.schema.schema_work import pointer

# Places of a value times schemas that speak of each; so many take about 50 ms. Beyond, nothing is matched.
VISITS_MAX = 50_000

# A schema, and the document in which its references start.
_Rule: TypeAlias = tuple[Any, Any]
_Path: TypeAlias = tuple[str | int, ...]

# What joins two parts of a word, one of which ends or begins with a letter: 1-2 is not 12.
_joints = regex(r"(?<=[^\W\d_])[\s_-]+(?=[^\W_])|(?<=[^\W_])[\s_-]+(?=[^\W\d_])")
# A constant alone is no choice, so a text that differs from it is wrong; among alternatives it is one word of several.
_LISTED, _EITHER = ("enum",), ("enum", "const")
_AROUND = " \t\r\n\"'\u201c\u201d\u2018\u2019"
_full_stop = regex(r"(?<=[^\s.])\.\Z")
# What a boolean is called in prose.
_POLAR = ("yes", "no")


class Matched(NamedTuple):
    """What became of a value: the value, the paths of texts that no allowed word fits, the words still without quotes."""

    value: Any
    unrecognized: frozenset[str]
    bare: tuple[BareWord, ...]


class Enums:
    """The enums of one schema."""

    def __init__(self, schema: JsonSchema, resources: Mapping[str, Any]) -> None:
        self._schema = schema
        self._resources = resources

    @cached_property
    def words(self) -> frozenset[str]:
        """The only texts that the whole value may be; none when that is unknown, or there are others."""
        words = _Walk(self._resources, RepairLog()).words([(self._schema, self._schema)], _EITHER)
        return frozenset(words or ())

    @cached_property
    def choices(self) -> frozenset[str]:
        """Plain forms of the texts that the schema lists anywhere, and of yes and no where it may want a boolean."""
        found: set[str] = set()
        waiting: list[Any] = [self._schema, self._resources]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Mapping):
                listed = [*_listed(part.get("enum")), part.get("const")]
                found.update(plain_form(word) for word in listed if isinstance(word, str))
                if "boolean" in _listed(_types(part)) or any(isinstance(word, bool) for word in listed):
                    found.update(_POLAR)
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part
        return frozenset(found)

    @cached_property
    def are_there(self) -> bool:
        """Whether the schema lists words anywhere, as far as its text tells."""
        written = to_json((self._schema, self._resources))
        return '"enum"' in written or '"const"' in written

    def match(self, value: Any, bare_words: int, log: RepairLog) -> Matched:
        """Match every text of a value that has to be one of some words; lists and objects are changed in place.

        So many of its texts stand without quotes: of those without a match is told.
        """
        if not bare_words and not self.are_there:
            return Matched(value, frozenset(), ())
        walk = _Walk(self._resources, log)
        matched = walk.matched(value, [(self._schema, self._schema)], ())
        return Matched(matched, frozenset(walk.unrecognized), tuple(walk.bare))


class _Walk:
    """One walk over a value and the schemas that speak of its parts."""

    def __init__(self, resources: Mapping[str, Any], log: RepairLog) -> None:
        self._resources = resources
        self._ledger = log
        self._visits = 0
        self.unrecognized: list[str] = []
        self.bare: list[BareWord] = []

    def matched(self, value: Any, rules: list[_Rule], path: _Path) -> Any:
        if isinstance(value, str):
            return self._text(value, rules, path)
        if isinstance(value, dict):
            expanded = list(self._expanded(rules))
            for key, member in value.items():
                if isinstance(member, str | dict | list):
                    value[key] = self.matched(member, list(self._members(expanded, key)), (*path, key))
        elif isinstance(value, list):
            expanded = list(self._expanded(rules))
            for index, item in enumerate(value):
                if isinstance(item, str | dict | list):
                    value[index] = self.matched(item, list(self._items(expanded, index)), (*path, index))
        return value

    def _text(self, text: str, rules: list[_Rule], path: _Path) -> str:
        words = self.words(rules, _EITHER if isinstance(text, BareWord) else _LISTED)
        if words is None or text in words:
            found = None if words is None else str(text)
        else:
            found = the_one_meant(text, words)
            if found is None:
                self.unrecognized.append(pointer(path))
        if isinstance(text, BareWord):
            if found is None:
                self.bare.append(text)
                return text
            self._ledger.note(RepairCode.VALUE_QUOTED, text.at, text, f'"{found}"', path=pointer(path))
        elif found is not None and found != text:
            self._ledger.note(RepairCode.ENUM_MATCHED, 0, text, found, path=pointer(path))
        return text if found is None else found

    def words(self, rules: Iterable[_Rule], keywords: Iterable[str]) -> set[str] | None:
        """The only texts that are admitted, or None when others are, too, or that is unknown."""
        words: set[str] | None = None
        for schema, root in self._expanded(rules):
            for own in self._own_words(schema, root, keywords):
                words = own if words is None else words & own
        return words

    def _own_words(self, schema: JsonObject, root: Any, keywords: Iterable[str]) -> Iterator[set[str]]:
        if isinstance(listed := schema.get("enum"), list):
            yield {word for word in listed if isinstance(word, str)}
        if "const" in keywords and isinstance(constant := schema.get("const"), str):
            yield {constant}
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list):
                offered = [self.words([(branch, root)], _EITHER) for branch in branches if _admits_text(branch)]
                if offered and all(words is not None for words in offered):
                    yield set().union(*(words for words in offered if words is not None))

    def _expanded(self, rules: Iterable[_Rule]) -> Iterator[tuple[JsonObject, Any]]:
        """The schemas that all hold, references and allOf followed; each once."""
        waiting, seen = list(rules), set()
        while waiting and self._visits < VISITS_MAX:
            schema, root = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            self._visits += 1
            seen.add(id(schema))
            yield schema, root
            if isinstance(reference := schema.get("$ref"), str):
                waiting += self._target(reference, root)
            if isinstance(parts := schema.get("allOf"), list):
                waiting += [(part, root) for part in parts]

    def _target(self, reference: str, root: Any) -> list[_Rule]:
        uri, _, fragment = reference.partition("#")
        if uri:
            root = self._resources.get(uri)
        found = schema_at(root, fragment)
        return [] if found is None else [(found, root)]

    def _members(self, expanded: list[_Rule], key: str) -> Iterator[_Rule]:
        """The schemas for the member of this name."""
        for schema, root in expanded:
            yield from _named(schema, key, root)
            for keyword in ("anyOf", "oneOf"):
                branches = schema.get(keyword)
                if isinstance(branches, list):
                    parts = [
                        self._of_branch(branch, root, lambda rules: self._members(rules, key)) for branch in branches
                    ]
                    yield from _alternatives(parts, root)

    def _items(self, expanded: list[_Rule], index: int) -> Iterator[_Rule]:
        """The schemas for the item at this place."""
        for schema, root in expanded:
            first = schema.get("prefixItems")
            if isinstance(first, list) and index < len(first):
                yield first[index], root
            elif "items" in schema:
                yield schema["items"], root
            for keyword in ("anyOf", "oneOf"):
                branches = schema.get(keyword)
                if isinstance(branches, list):
                    parts = [
                        self._of_branch(branch, root, lambda rules: self._items(rules, index)) for branch in branches
                    ]
                    yield from _alternatives(parts, root)

    def _of_branch(self, branch: Any, root: Any, below: Any) -> list[_Rule] | None:
        """What one alternative says of a part; None when it cannot hold the whole, so says nothing."""
        expanded = list(self._expanded([(branch, root)]))
        if any("type" in schema and not {"object", "array"} & set(_types(schema)) for schema, _ in expanded):
            return None
        return list(below(expanded))


def _alternatives(parts: list[list[_Rule] | None], root: Any) -> Iterator[_Rule]:
    """One `anyOf` schema of the alternatives; nothing if one of them allows any value."""
    said = [rules for rules in parts if rules is not None]
    # References of a resource start from another document; those of one schema from one alone.
    if said and all(rules and all(each is root for _, each in rules) for rules in said):
        yield {"anyOf": [{"allOf": [schema for schema, _ in rules]} for rules in said]}, root


def _named(schema: JsonObject, key: str, root: Any) -> Iterator[_Rule]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and key in properties:
        yield properties[key], root
    elif "additionalProperties" in schema and "patternProperties" not in schema:
        yield schema["additionalProperties"], root


def _listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else []


def _types(schema: Mapping[str, Any]) -> list[Any]:
    kinds = schema.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


def _admits_text(branch: Any) -> bool:
    """Whether a text could fit an alternative, as far as its type says."""
    return branch is not False and not (
        isinstance(branch, dict) and "type" in branch and "string" not in _types(branch)
    )


def schema_at(root: Any, fragment: str) -> Any:
    """The part of a schema to which the fragment of a reference points; None where it points to nothing, or by a name."""
    if fragment and not fragment.startswith("/"):
        return None
    found = root
    for token in unquote(fragment).split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(name)] if name.isdecimal() and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found


def the_one_meant(text: str, words: Iterable[str]) -> str | None:
    """The only word that a text can mean, or None."""
    known = list(words)
    for form in (_cased, plain_form):
        meant = form(text)
        fitting = [word for word in known if form(word) == meant]
        if fitting:
            return fitting[0] if len(fitting) == 1 and meant else None
    return None


def _cased(text: str) -> str:
    return _full_stop.sub("", normalize("NFKC", text).strip(_AROUND)).strip(_AROUND).casefold()


def plain_form(text: str) -> str:
    """A text without its case and what joins its parts."""
    return _joints.sub("", _cased(text))
