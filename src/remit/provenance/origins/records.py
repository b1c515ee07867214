"""Records: one result cut into groups of records with their declared fields, and the texts that nothing vouches for.

Rule 1: a field supplies values when the tool declares its kind and the value looks like that kind; all else is text.
Rule 2: a result that is no JSON, or JSON with a key twice, is text as a whole.
Rule 3: the work is linear in the result. What exceeds a limit is dropped, and the group says so.
Rule 4: what the run itself wrote is text. A run that wrote more than can be kept reads nothing but text from then on.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from remit.core.limits.authority import Inference
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.schema.json_text import NotJson, parse_json
from remit.provenance.declarations import ANY_KEY, EACH, Declaration, DeclaredField, segments_of, spelled_path
from remit.provenance.kinds import CODE, INFERRED, LABEL, VALUE_CHARS_MAX, looks_like, number_of, supplies
from remit.provenance.origins.labels import Group, OriginIndex
from remit.provenance.words.references import is_prose, references_in, skimmed
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import name_words

# A listing a model can read has fewer records; a run that looks at more should look more closely.
RECORDS_MAX = 10_000
# Values of one field of one record: the members of a channel, the recipients of a mail.
VALUES_MAX = 1_000
# Results that people design stay under twenty levels.
DEPTH_MAX = 64
# References are noted to say where else a value was seen; the first million characters are enough for that.
TEXT_CHARS_MAX = 1_000_000
REFERENCES_MAX = 5_000
# Some dozens of pages, which are looked through in microseconds.
WRITTEN_CHARS_MAX = 200_000
# What is shorter stands in every text, and is looked for as a whole word.
_PART_CHARS_MIN = 5
# No longer than the shortest part.
_PIECE_CHARS = 4
_SIGNS = regex(r"[^\w\s]+|_+")
_ASCII_SIGNS = bytes(code for code in range(128) if _SIGNS.fullmatch(chr(code)))
KEY = "@key"
_FIELD = "@field"
_CODE = regex(r"\bcode\b[^\d\n]{0,40}(\d{4,8})\b", re.IGNORECASE)


def read_content(content: Any) -> Any:
    """The JSON value of a result; a text that is no sound JSON stays a text."""
    if not isinstance(content, str) or not content[:200].lstrip().startswith(("{", "[", '"')):
        return content
    if len(content) > TEXT_CHARS_MAX * 16:
        return content
    try:
        return parse_json(content)
    except NotJson:
        return content


def groups_along(layout: "ResultLayout", content: Any, inference: Inference) -> tuple[dict[str, Group], list[str]]:
    """The groups of records in a JSON value, for a tool whose paths are known."""
    if inference is Inference.IDENTITY and not layout.declaration.result:
        layout = _shaped(layout.declaration, content)
    builder = _Builder(layout, inference)
    builder.walk(content, (), 0, layout.trie, {})
    return builder.groups(), builder.texts


def references_of(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """The references that untrusted texts hold, each once, with their kinds."""
    found: dict[tuple[str, str], None] = {}
    left = TEXT_CHARS_MAX
    for text in texts:
        seen = text[:left]
        for code in _CODE.findall(seen) if "code" in seen.lower() else ():
            found.setdefault((CODE, code))
        if not is_prose(seen):
            for reference in references_in(skimmed(seen)):
                found.setdefault((reference.kind, reference.compact))
        left -= len(text)
        if left <= 0 or len(found) >= REFERENCES_MAX:
            break
    return tuple(found)[:REFERENCES_MAX]


def leaf_values(content: Any, segments: tuple[str, ...]) -> Iterator[Any]:
    """All values at the end of a path."""
    if isinstance(content, (list, tuple)) and (not segments or segments[0] == EACH):
        for inner in content:
            yield from leaf_values(inner, segments[1:])
    elif not segments:
        yield content
    elif isinstance(content, dict):
        found = content.values() if segments[0] == ANY_KEY else (content.get(segments[0]),)
        for inner in found:
            yield from leaf_values(inner, segments[1:])


def readers_of(declaration: Declaration, content: Any) -> tuple[str, ...] | None:
    """Who may read every record of a JSON value, where the tool declares who may read one."""
    if not declaration.readers:
        return None
    segments = segments_of(declaration.readers)
    holders = content if segments[:1] == (EACH,) and isinstance(content, list) else [content]
    steps = segments[1:] if segments[:1] == (EACH,) else segments
    sets = [{value for value in leaf_values(one, steps) if isinstance(value, str)} for one in holders]
    return tuple(sorted(set.intersection(*sets))) if sets else ()


class ResultLayout:
    """The declared paths of a tool's result. Made once per tool."""

    def __init__(self, declaration: Declaration) -> None:
        """Lay out the declared fields."""
        self.declaration = declaration
        self.trie: JsonObject = {}
        self.kinds: dict[str, dict[str, str]] = {}
        for field in declaration.result:
            self._declare(field)

    def _declare(self, field: DeclaredField) -> None:
        self.open_at(field.segments[: field.group_steps])
        node = self.trie
        for step in field.segments:
            node = node.setdefault(step, {})
        node[_FIELD] = field
        self.kinds[field.group][field.name] = field.kind

    def open_at(self, steps: tuple[str, ...]) -> None:
        """Let a record begin wherever these steps lead."""
        node = self.trie
        for step in steps:
            node = node.setdefault(step, {})
        node[KEY] = spelled_path(steps)
        self.kinds.setdefault(spelled_path(steps), {})


class _Builder:
    """Walks one result along the declared paths."""

    def __init__(self, layout: ResultLayout, inference: Inference) -> None:
        self.texts: list[str] = []
        self._infers = inference
        self._tool = layout.declaration.name
        self._groups: dict[str, tuple[list[JsonObject], dict[str, str]]] = {
            name: ([], dict(kinds)) for name, kinds in layout.kinds.items()
        }
        self._cut: set[str] = set()

    def groups(self) -> dict[str, Group]:
        """What was found; groups without records are left out."""
        return {
            name: Group(tuple(records), kinds, name in self._cut)
            for name, (records, kinds) in self._groups.items()
            if any(records)
        }

    def walk(self, value: Any, path: tuple[str, ...], depth: int, node: JsonObject, record: JsonObject) -> None:
        """Follow one value; `record` is the record that its fields belong to."""
        if depth > DEPTH_MAX:
            return
        if KEY in node:
            record = self._open(node[KEY])
            if path and path[-1] != EACH and node[KEY].endswith(ANY_KEY):
                self._put(record, node[KEY], KEY, path[-1], LABEL)
        if isinstance(value, dict):
            for key, inner in value.items():
                self._step(key, inner, path, depth, node, record)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                self.walk(inner, (*path, EACH), depth + 1, node.get(EACH, {}), record)
        else:
            self._leaf(value, path, node, record)

    def _step(
        self, key: Any, inner: Any, path: tuple[str, ...], depth: int, node: JsonObject, record: JsonObject
    ) -> None:
        # A key that spells a step of ours must not pass for one.
        below = node.get(key) if isinstance(key, str) and key not in (KEY, _FIELD, EACH, ANY_KEY) else None
        if below is None:
            below = node.get(ANY_KEY)
        if below is None:
            below = {}
            if isinstance(key, str) and KEY in node:
                self._infer(key, inner, node[KEY], record)
        self.walk(inner, (*path, str(key)), depth + 1, below, record)

    def _leaf(self, value: Any, path: tuple[str, ...], node: JsonObject, record: JsonObject) -> None:
        field: DeclaredField | None = node.get(_FIELD)
        if field is not None and looks_like(field.kind, value):
            self._put(record, field.group, field.name, value, field.kind)
            if supplies(field.kind):
                return
        if isinstance(value, str):
            self.texts.append(value)

    def _infer(self, key: str, value: Any, group: str, record: JsonObject) -> None:
        """A number or a date without a declaration may select; it supplies when the operator says so."""
        kind = _identity(key, value, self._tool) if self._infers is Inference.IDENTITY else ""
        kind = kind or _typed(value)
        kind = kind if self._infers is not Inference.OFF or not kind else INFERRED + kind
        # A field that looks different from record to record, or that was declared, is not read off its values.
        if kind and self._groups[group][1].get(key, kind) == kind:
            self._put(record, group, key, value, kind)

    def _open(self, group: str) -> JsonObject:
        records, _ = self._groups[group]
        record: JsonObject = {}
        if len(records) < RECORDS_MAX:
            records.append(record)
        else:
            self._cut.add(group)
        return record

    def _put(self, record: JsonObject, group: str, field: str, value: Any, kind: str) -> None:
        if isinstance(value, str) and len(value) > VALUE_CHARS_MAX:
            return
        self._groups[group][1].setdefault(field, kind)
        if field not in record:
            record[field] = value
        elif not isinstance(record[field], list):
            record[field] = [record[field], value]
        elif len(record[field]) < VALUES_MAX:
            record[field].append(value)
        else:
            self._cut.add(group)


def _typed(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (int, float)):
        return "number" if number_of(value) is not None else ""
    return "date" if isinstance(value, str) and looks_like("date", value) else ""


def _identity(key: str, value: Any, tool: str) -> str:
    """An identity by its key: convenient, and not safe, hence an operator's switch."""
    words = name_words(key)
    if words and words[-1] in ("id", "ids") and looks_like("id", value):
        owner = words[-2] if len(words) > 1 else (name_words(tool) or ("thing",))[-1]
        return f"id:{owner}"
    return "who:email" if looks_like("email", value) else ""


def _shaped(declaration: Declaration, content: Any) -> ResultLayout:
    """Without any declared field, the plain shapes of a result give the groups: an object, a list, lists in an object."""
    layout = ResultLayout(declaration)
    for steps in _shapes(content):
        layout.open_at(steps)
    return layout


def _shapes(content: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(content, (list, tuple)):
        yield (EACH,)
    elif isinstance(content, dict):
        yield ()
        yield from ((key, EACH) for key, inner in content.items() if isinstance(inner, list) and isinstance(key, str))


class OwnTexts:
    """The texts that one run wrote: they come back as text, from whatever place they are read.

    What a call carried without a known origin is kept, without signs and blanks, one behind the other: a value in pieces is
    found again. What the user's words say, and what a trusted field held before, stays what it was.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.parts: list[str] = []
        self.words: set[str] = set()
        self._chars = 0
        self._text = ""
        # Every few letters that stand together in the text: most values are known by them not to be in it.
        self._pieces: set[str] = set()

    def note(self, texts: Iterable[str]) -> None:
        """Keep what a call carries."""
        for text in texts:
            if self._chars <= WRITTEN_CHARS_MAX:
                words = _unsigned(text).split()
                self.parts.append("".join(words))
                self._chars += len(self.parts[-1])
                self.words.update(words)

    def taken_from(self, groups: dict[str, Group], words: Words, index: OriginIndex) -> bool:
        """Take out of records what the run wrote; whether there was any."""
        if not self._chars or not groups:
            return False
        if len(self._text) < self._chars:
            known, self._text = len(self._text), "".join(self.parts)
            starts = range(max(known - _PIECE_CHARS + 1, 0), len(self._text) - _PIECE_CHARS + 1)
            self._pieces.update([self._text[start : start + _PIECE_CHARS] for start in starts])
        found = False
        for group in groups.values():
            for record in group.records:
                for field, value in [*record.items()]:
                    members = value if isinstance(value, list) else [value]
                    kept = [one for one in members if not self._holds(one, words, index)]
                    if len(kept) == len(members):
                        continue
                    found = True
                    record.pop(field)
                    if kept:
                        record[field] = kept if len(kept) > 1 else kept[0]
        return found

    def _holds(self, value: Any, words: Words, index: OriginIndex) -> bool:
        if isinstance(value, bool):
            return False
        said = str(value)
        if self._chars <= WRITTEN_CHARS_MAX and not self._is_written(said):
            return False
        return not (index.origins_of(value) or said in words.strings)

    def _is_written(self, said: str) -> bool:
        squeezed = said.lower() if said.isalnum() else "".join(_unsigned(said).split())
        if len(squeezed) < _PART_CHARS_MIN:
            return squeezed in self.words
        pieces = self._pieces
        return squeezed[:_PIECE_CHARS] in pieces and squeezed[-_PIECE_CHARS:] in pieces and squeezed in self._text


def _unsigned(text: str) -> str:
    """A text in lower case and without its signs."""
    bare = text.encode().translate(None, _ASCII_SIGNS).decode() if text.isascii() else _SIGNS.sub("", text)
    return bare.lower()
