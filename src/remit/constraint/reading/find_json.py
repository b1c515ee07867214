"""Finding: the one JSON value in what a model said, among fences, reasoning and prose.

Rule 1: a text holds one value. When several are equal, or the schema wants a list of them and nothing stands between them,
        the text has one meaning, otherwise none: a value of another type may be a part of the one that is wanted, or correct
        it.
Rule 2: a bracket that begins like JSON and goes wrong is the answer gone wrong; nothing inside it is taken instead.
Rule 3: of fences that hold one value, begun and broken off, and a whole one behind them, the whole one is meant. What is
        begun behind a whole value and broken off may replace it, whatever its type and however alike it begins, so the
        text is cut off. A fence behind a value may replace it as well, whatever it holds.
Rule 4: words around the value are left out only where they are known to say nothing of it (`prose.py`), since what is ruled
        out, corrected or given as an example looks like an answer. Everything else around it is such words, too: brackets
        in prose ("[note]", "{name}"), lists that no reader of JSON takes, what is begun and never finished, and what the
        line of a fence says beside a language. A word that the schema lists, or yes and no where it wants a boolean, may
        be the answer, so it is no greeting.
Rule 5: a text that is nothing but one of the words that the schema admits at its root is that word.
"""

import re
from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

from remit.constraint.reading.enums import plain_form, the_one_meant
from remit.constraint.reading.lenient_json import LenientReader, same_json
from remit.constraint.reading.literals import is_literal
from remit.constraint.reading.prose import (
    LANGUAGE,
    begins_a_value,
    names_a_value,
    says_nothing_before,
    says_nothing_behind,
    says_nothing_between,
)
from remit.constraint.reading.repair_log import Reason, RepairCode, RepairLog, Unreadable
from remit.constraint.reading.sought import Sought
from remit.core.regex import regex
from remit.core.schema.json_text import parse_json

# Reading takes up to two seconds a megabyte. Longer texts are parsed as they are.
REPAIR_CHARS_MAX = 1_048_576
# Of words that may change what is meant, enough to see which.
WORDS_CHARS_SHOWN = 80
# More values than a list in lines has entries that a model writes.
VALUES_MAX = 1_000

BOM = "\ufeff"
_reasoning = regex(r"\s*+<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_open_reasoning = regex(r"\s*+<(?:think|thinking|reasoning)>")
_reasoning_tag = regex(r"<(?P<ends>/)?(?:think|thinking|reasoning)>")
# What may follow the mark of a fence: a language, and words of a renderer; or attributes in braces.
_INFO = r"(?:[\w+-]++(?:[ \t]++[^\s`~{\[][^\n`{\[]*+)?|\{\.[\w .=-]*+\})"
_MERE_LANGUAGE = rf"(?:{LANGUAGE}|\{{\.{LANGUAGE}\}})"
# What looks ahead is never tried otherwise, so the body is read once. A group that repeats possessively would do the same,
# and before 3.11.5 Python matches such a group wrongly.
_fenced = regex(
    rf"\s*+(```|~~~)[ \t]*+{_MERE_LANGUAGE}?[ \t]*+\r?\n(?=(?P<body>(?:(?!\1).)*))(?P=body)(?P<close>\1)?\s*+\Z",
    re.DOTALL | re.IGNORECASE,
)
_number_last = regex(r"[+-]?\.?[0-9][\w.+-]*+\Z")
_fence_marks = regex(r"(?:```|~~~)[\w+-]*")
_mere_fence_line = regex(
    rf"^[ \t]*+(?:`{{3,}}+|~{{3,}}+)[ \t]*+{_MERE_LANGUAGE}?[ \t]*+\r?$", re.MULTILINE | re.IGNORECASE
)
_fence_line = regex(rf"^[ \t]*+(?:`{{3,}}+|~{{3,}}+)[ \t]*+(?P<info>{_INFO})?[ \t]*+\r?$", re.MULTILINE)
# A fence that is begun and empty. Without a language the mark may end a fence.
_fence_begun = regex(r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+\w[\w+-]*+\s*+\Z", re.MULTILINE)
_fence_within = regex(r"(?:```|~~~)[ \t]*+\w")
# A text in quotes, closed or not, or a bracket outside of one.
_structural = regex(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_member_first = regex(r'"(?P<key>[^"\n]{1,200})"\s*:')
# A member of an object that stands in no brackets.
_member_behind = regex(r'"[^"\n]{1,200}"\s*:\s*(?:["0-9-]|true\b|false\b|null\b)')
_bracket = regex(r"[{\[]")
_prose_bracket = regex(r'\[[^\[\]{}"\n]*+\]|\{[^\[\]{}":\n]*+\}|\{\{[^\[\]{}":\n]*+\}\}')
_suspect = regex(r"[\"':{}\[\]]")
_quoted = regex(r"[\"'`\u2018\u201c\u201e].*[\"'`\u2019\u201c\u201d]", re.DOTALL)
_only_closers = regex(r"[\s\]}]+")
# What may stand between the values of a list without brackets: JSON in lines, or in a row.
_only_separators = regex(r"[\s,]*")

_footnote = regex(r"\[\s*[0-9]+(?:\s*[,;-]\s*[0-9]+)*\s*\]")
_word_before = regex(r"\w[\s`*_]*+\Z")
_announced = regex(r"\b(?:is|are)[\s`*_]*+\Z|\n[\s`*_]*+\Z")
_VALUE_FIRST = "\"'{[0123456789-"

_KINDS: dict[type, str] = {dict: "object", list: "array"}


class FoundValue(NamedTuple):
    """The value of a text, and whether words without quotes stand in it."""

    value: Any
    bare_words: int


class _Candidate(NamedTuple):
    value: Any
    begin: int
    end: int
    log: RepairLog
    bare_words: int


class _Candidates(NamedTuple):
    """The values of a text: what is JSON, and what may as well be words in brackets."""

    strong: list[_Candidate]
    weak: list[_Candidate]


def find_json(text: str, log: RepairLog, wanted: Sought) -> FoundValue:
    """The value that a text holds."""
    if len(text) > REPAIR_CHARS_MAX:
        message = f"a text of {len(text)} characters is not repaired, repair_chars_max={REPAIR_CHARS_MAX}"
        raise Unreadable(Reason.TOO_LONG, 0, message)
    begin, end = _uncovered(text, log)
    # Places are those of the whole text, so what stands before is not cut off but passed.
    body = text[:end]
    if not body[begin:]:
        raise Unreadable(Reason.EMPTY, begin, "the text is empty")
    try:
        return FoundValue(parse_json(body[begin:]), 0)
    except ValueError:
        pass  # Expected: now it is read with repairs.
    if (begun := _fence_begun.search(body, begin)) is not None and _bracket.search(body, begin, begun.start()):
        raise _begun_again(begun.start())
    if (whole := _whole_fence(body, begin, log, wanted)) is not None:
        return whole
    if body[begin] == "{" and body.startswith('\\"', begin + 1):
        return _unescaped(body, begin, log)
    if _member_first.match(body, begin):
        return _opened(body, begin, log, len(text), wanted)
    if _bracket.search(body, begin) is None:
        word = _worded(body[begin:], wanted.words)
        if word is None:
            return _alone(body, begin, log)
        log.note(RepairCode.VALUE_QUOTED, begin, body[begin:], f'"{word}"')
        return FoundValue(word, 0)
    return _chosen(_candidates(body, begin, len(text)), body, begin, log, wanted)


def _uncovered(text: str, log: RepairLog) -> tuple[int, int]:
    """Where the text begins and ends without a byte order mark, reasoning and fence."""
    begin, end = 0, len(text.rstrip())
    if text.startswith(BOM):
        log.note(RepairCode.BOM_REMOVED, 0, BOM)
        begin = 1
    if (found := _reasoning.match(text, begin)) is not None:
        log.note(RepairCode.REASONING_REMOVED, begin, found[0].strip())
        begin = found.end()
    elif _open_reasoning.match(text, begin):
        raise Unreadable(Reason.CUT_OFF, begin, "the text ends within the reasoning")
    elif unopened := _unopened_reasoning(text, begin):
        log.note(RepairCode.REASONING_REMOVED, begin, text[begin:unopened].strip())
        begin = unopened
    if (fenced := _fenced.match(text, begin)) is not None:
        log.note(RepairCode.FENCE_REMOVED, begin, fenced[1])
        begin, end = fenced.start("body"), fenced.end("body")
        end -= len(fenced["body"]) - len(fenced["body"].rstrip())
    while begin < end and text[begin].isspace():
        begin += 1
    if fenced is not None and not fenced["close"] and _number_last.match(text, begin):
        raise Unreadable(Reason.CUT_OFF, begin, "the text ends within its fence, with a number that may go on")
    return begin, end


def _unopened_reasoning(text: str, begin: int) -> int:
    """Where reasoning ends that was begun in the prompt, so that its last tag is the only one; 0 where there is none."""
    tags = list(_reasoning_tag.finditer(text, begin))
    if len(tags) != 1 or not tags[0]["ends"]:
        return 0
    # A tag within a value that is not closed yet is a part of it.
    depth = 0
    for part in _structural.finditer(text[begin : tags[0].start()]):
        depth += (part[0] in "{[") - (part[0] in "}]")
    return 0 if depth > 0 else tags[0].end()


def _whole_fence(body: str, begin: int, log: RepairLog, wanted: Sought) -> FoundValue | None:
    """The value of the fence that is whole, where the model had begun it in others and broken off."""
    kinds = wanted.kinds
    fences = [(start, end) for start, end in _fences(body, begin) if body[start:end].strip()]
    around = _around(body, begin, fences)
    if len(fences) < 2 or _bracket.search(_prose_bracket.sub("", "".join(around))):
        return None
    pieces = [body[start:end].strip() for start, end in fences]
    cut = [place for place, piece in enumerate(pieces) if _is_cut(piece)]
    whole = [place for place in range(len(pieces)) if place not in cut]
    read = [_read_in(body, *fences[place]) for place in whole]
    values = [found for found in read if found is not None]
    if not cut or not values or len(values) < len(read):
        return None
    if cut[-1] > whole[-1] or _fences(body, begin)[-1][0] == len(body):
        raise _begun_again(fences[cut[-1]][0])
    chosen, first = values[0], whole[0]
    is_part = [_begins_like(pieces[place], chosen.value) for place in cut if place < first]
    # What is said again in the end may be broken off in the same words before.
    is_part += [_unspaced(pieces[first]).startswith(_unspaced(pieces[place])) for place in cut if place > first]
    is_one = all(is_part) and all(same_json(chosen.value, each.value) for each in values)
    if not is_one or (kinds and _KINDS[type(chosen.value)] not in kinds):
        return None
    _check_silent(["", "\n".join(around[:-1]), around[-1]], begin, wanted)
    _note_removed(body[begin : fences[first][0]], begin, log)
    log.extend(chosen.log)
    _note_removed(body[fences[first][1] :], fences[first][1], log)
    return FoundValue(chosen.value, chosen.bare_words)


def _begun_again(at: int) -> Unreadable:
    """The refusal of a text in which a value was begun behind a whole one, and how it goes on is unknown."""
    return Unreadable(Reason.CUT_OFF, at, "a value is begun behind a whole one and broken off; it may be another one")


def _read_in(body: str, start: int, end: int) -> _Candidate | None:
    """The object or array that a fence holds, and nothing else; None where it holds anything else."""
    start += len(body[start:end]) - len(body[start:end].lstrip())
    log = RepairLog()
    reader = LenientReader(body[:end].rstrip(), start, log, chars=len(body))
    try:
        found = _Candidate(parse_json(body[start:end]), start, end, log, 0)
    except ValueError:
        try:
            found = _Candidate(reader.read(), start, reader.at, log, reader.bare_words)
        except Unreadable:
            return None
    return found if type(found.value) in _KINDS and not body[found.end : end].strip() else None


def _fences(body: str, begin: int) -> list[tuple[int, int]]:
    """Where the fences of a text begin and end; the last may have no end. A mark with a word ends one and begins one."""
    found: list[tuple[int, int]] = []
    opened = -1
    # Where the text begins a line begins, whatever was taken off before it.
    for mark in _fence_line.finditer(body[begin:]):
        if opened >= 0:
            found.append((opened, begin + mark.start()))
        opened = begin + mark.end() if mark["info"] or opened < 0 else -1
    return found if opened < 0 else [*found, (opened, len(body))]


def _around(body: str, begin: int, parts: list[tuple[int, int]]) -> list[str]:
    """The words before the parts of a text, between them, and behind the last one."""
    edges = [begin, *(edge for part in parts for edge in part), len(body)]
    return [body[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _is_cut(piece: str) -> bool:
    """Whether a text is an object or array whose first bracket is never closed, whatever else stands in it."""
    depth = 0
    for token in _structural.finditer(piece):
        depth += (token[0] in "{[") - (token[0] in "}]")
        if depth <= 0:
            return False
    return piece[0] in "{["


def _begins_like(piece: str, value: Any) -> bool:
    """Whether what was broken off began like a value; else it may have been the answer, and the value a part of it."""
    first = _member_first.match(piece, 1 + len(piece[1:]) - len(piece[1:].lstrip()))
    if isinstance(value, dict):
        return piece[0] == "{" and (first is None or first["key"] in value)
    return piece[0] == "["


def _unspaced(text: str) -> str:
    return "".join(text.split())


def _unescaped(body: str, begin: int, log: RepairLog) -> FoundValue:
    """A text that was escaped once too often, as within a JSON string."""
    try:
        value = parse_json(parse_json(f'"{body[begin:]}"'))
    except ValueError:
        raise Unreadable(Reason.UNEXPECTED, begin, "a backslash stands where a key should stand") from None
    log.note(RepairCode.ESCAPING_UNDONE, begin, '\\"', '"')
    return FoundValue(value, 0)


def _opened(body: str, begin: int, log: RepairLog, chars: int, wanted: Sought) -> FoundValue:
    """A text that begins with a key: its first brace was left out, or stood in the words that the model went on from."""
    log.note(RepairCode.OPENER_ADDED, begin, "", "{")
    reader = LenientReader(body, begin, log, chars=chars)
    value = reader.read_members()
    if _bracket.search(_prose_bracket.sub("", body[reader.at :])):
        raise Unreadable(Reason.SEVERAL_VALUES, reader.at, "another value follows the one without its first brace")
    _check_rest(body, reader.at, log)
    if "]" in body[reader.at :]:
        raise Unreadable(
            Reason.UNEXPECTED, reader.at, "a list is closed that begins before the text, perhaps with more in it"
        )
    if not _only_closers.fullmatch(body[reader.at :]):
        _check_silent(["", body[reader.at :]], reader.at, wanted)
    return FoundValue(value, reader.bare_words)


def _worded(said: str, words: Collection[str]) -> str | None:
    """The word of the schema that a text is, being nothing else: no number, no literal, and in no quotes."""
    return the_one_meant(said, words) if said[0].isalpha() and not is_literal(said) else None


def _alone(body: str, begin: int, log: RepairLog) -> FoundValue:
    """A text, number or literal that is all there is."""
    if body.startswith(("```", "~~~"), begin):
        # A fence of which more is said than a language; no text in back quotes.
        raise _unclear(body[begin:], begin)
    reader = LenientReader(body, begin, log, chars=len(body))
    try:
        value = reader.read()
    except Unreadable as error:
        if error.reason in (Reason.UNEXPECTED, Reason.CUT_OFF) and body[begin] not in "\"'\u201c":
            raise Unreadable(Reason.NO_JSON, begin, "the text holds no JSON") from None
        raise
    if body[reader.at :].strip():
        raise Unreadable(Reason.NO_JSON, begin, "the text holds no JSON object or array")
    if isinstance(value, str) and (_quoted.fullmatch(value) or (body[begin] == "`" and _may_be_code(value))):
        raise Unreadable(Reason.QUOTES_UNCLEAR, begin, "the quotes may be a part of the text, or show that it is code")
    return FoundValue(value, reader.bare_words)


def _may_be_code(text: str) -> bool:
    """Whether a text in back quotes is several lines, nothing, or holds JSON, and so perhaps no text at all."""
    try:
        parse_json(text)
    except ValueError:
        return not text or "\n" in text or '"' in text
    return True


def _chosen(found: _Candidates, body: str, begin: int, log: RepairLog, wanted: Sought) -> FoundValue:
    strong, kinds = found.strong, wanted.kinds
    if not strong and len(found.weak) == 1:
        # Words in brackets are a list where nothing but a list is wanted; whether it knows them, the schema says.
        weak = found.weak[0]
        is_wanted = set(kinds) == {"array"} and isinstance(weak.value, list)
        if is_wanted or not _has_words(body[begin : weak.begin] + body[weak.end :]):
            strong = found.weak
    if not strong:
        raise Unreadable(Reason.NO_JSON, begin, "the text holds no JSON object or array")
    if any(_is_closed_here(each) for each in strong[1:]):
        raise _begun_again(strong[-1].begin)
    first = strong[0]
    _check_behind(body, begin, strong[-1])
    if len(strong) == 1:
        return _taken(body, begin, log, first, wanted)
    if all(same_json(first.value, each.value) for each in strong):
        _check_words(body, begin, strong, wanted)
        log.note(RepairCode.VALUE_REPEAT_DROPPED, strong[1].begin, body[strong[1].begin : strong[1].end])
        log.extend(first.log)
        return FoundValue(first.value, first.bare_words)
    if set(kinds) == {"array"} and _is_row(body, strong):
        _check_words(body, begin, strong, wanted)
        log.note(RepairCode.VALUES_LISTED, first.begin, f"{len(strong)} values", "[...]")
        for each in strong:
            log.extend(each.log)
        return FoundValue([each.value for each in strong], sum(each.bare_words for each in strong))
    message = f"the text holds {len(strong)} different values, any of which may be meant; give one JSON alone"
    raise Unreadable(Reason.SEVERAL_VALUES, strong[1].begin, message)


def _is_closed_here(found: _Candidate) -> bool:
    """Whether brackets of a value were open where its text ended."""
    return RepairCode.CLOSER_ADDED in found.log.codes


def _is_row(body: str, values: list[_Candidate]) -> bool:
    """Whether values are none of them lists and stand directly behind each other: words between may take one back."""
    between = [body[first.end : second.begin] for first, second in pairwise(values)]
    return all(map(_only_separators.fullmatch, between)) and not any(isinstance(each.value, list) for each in values)


def _candidates(body: str, begin: int, chars: int) -> _Candidates:
    """The values that stand in a text, and those that may as well be words in brackets."""
    strong: list[_Candidate] = []
    weak: list[_Candidate] = []
    at = begin
    while (bracket := _bracket.search(body, at)) is not None:
        start = bracket.start()
        prose = _prose_bracket.match(body, start)
        log = RepairLog()
        reader = LenientReader(body, start, log, chars=chars)
        try:
            value = reader.read()
        except Unreadable as error:
            is_all = prose is not None and (start, prose.end()) == (begin, len(body))
            if prose is None or is_all or error.reason is not Reason.UNEXPECTED:
                error.repairs = log.repairs
                raise
            at = prose.end()
            continue
        at = reader.at
        found = _Candidate(value, start, at, log, reader.bare_words)
        (weak if prose is not None and reader.bare_words else strong).append(found)
        if len(strong) + len(weak) > VALUES_MAX:
            raise Unreadable(Reason.SEVERAL_VALUES, start, f"the text holds more than values_max={VALUES_MAX} values")
    return _Candidates(strong, weak)


def _taken(body: str, begin: int, log: RepairLog, found: _Candidate, wanted: Sought) -> FoundValue:
    before = body[begin : found.begin].strip()
    if before.endswith(",") and body[begin] in _VALUE_FIRST:
        raise Unreadable(Reason.UNEXPECTED, begin, "a value follows a comma; what stands before it may belong to it")
    _note_removed(before, begin, log)
    _check_rest(body, found.end, log)
    if isinstance(found.value, dict) and "array" in wanted.kinds and "]" in body[found.end :]:
        raise Unreadable(Reason.UNEXPECTED, found.end, "a list is closed behind the object, and none is open")
    _check_words(body, begin, [found], wanted)
    log.extend(found.log)
    return FoundValue(found.value, found.bare_words)


def _check_behind(body: str, begin: int, last: _Candidate) -> None:
    """Refuse what may replace the last value: a fence behind it, whatever it holds."""
    rest = body[last.end :]
    mark = _fence_line.search(rest)
    is_fenced = any(start <= last.begin and last.end <= end for start, end in _fences(body, begin))
    closes = mark is not None and not mark["info"] and (is_fenced or not _has_words(rest[: mark.start()]))
    behind = _fences(body, last.end + (mark.end() if mark is not None and closes else 0))
    if behind:
        raise _begun_again(behind[0][0])
    line = rest[rest.rfind("\n") + 1 :]
    if _fence_within.search(rest) or (line.endswith(("```", "~~~")) and _has_words(line)):
        raise _begun_again(len(body))


def _check_rest(body: str, end: int, log: RepairLog) -> None:
    """Refuse what looks like a part of the value that was closed too early; note what is only words."""
    rest = body[end:].strip()
    if not rest:
        return
    if _only_closers.fullmatch(rest):
        log.note(RepairCode.CLOSER_DROPPED, end, rest)
    elif rest[0] in ",:\"'" and _suspect.search(rest, 1):
        raise Unreadable(Reason.UNEXPECTED, end, f"{rest[:10]!r} follows the value and may belong to it")
    elif (member := _member_behind.search(_bracket.split(rest, 1)[0])) is not None:
        at = end + body[end:].index(rest) + member.start()
        raise Unreadable(Reason.SEVERAL_VALUES, at, f"{member[0][:40]} stands behind the value and may replace a part")
    else:
        _note_removed(rest, end, log)


def _check_words(body: str, begin: int, taken: list[_Candidate], wanted: Sought) -> None:
    """Refuse words around the values that are taken, and a list that may be a citation."""
    around = _around(body, begin, [(each.begin, each.end) for each in taken])
    first = body[taken[0].begin : taken[0].end]
    is_index = around[0][-1:].isalnum() or (_footnote.fullmatch(first) and _is_cited(around[0]))
    if _only_closers.fullmatch(around[-1]):
        around[-1] = ""
    _check_silent(_unwrapped(around), begin, wanted)
    if is_index:
        raise _unclear(around[0], begin)


def _is_cited(before: str) -> bool:
    """Whether a list of numbers stands within a sentence, where it may be a citation: "Here is the answer [1]"."""
    return _word_before.search(before) is not None and _announced.search(before) is None


def _unwrapped(around: list[str]) -> list[str]:
    """The words around values without the quotes in which all of it stands."""
    before, *between, behind = around
    while before and behind and before[-1] == behind[0] and behind[0] in "\"'`":
        before, behind = before[:-1], behind[1:]
    return [before, *between, behind]


def _check_silent(around: list[str], begin: int, wanted: Sought) -> None:
    """Refuse words before, between and behind values that may say something of them, or begin another value."""
    before, *between, behind = [_mere_fence_line.sub("", words) for words in around]
    names = wanted.names
    closes = behind[:1] in ('"', "'", "`") and behind[0] in before
    if begins_a_value(behind[1:] if closes else behind):
        raise _begun_again(begin)
    for words in (before, *between, behind):
        if names_a_value(words, lambda phrase: plain_form(phrase) in wanted.choices):
            raise _unclear(words, begin)
    if not says_nothing_before(before, names):
        raise _unclear(before, begin)
    for words in between:
        if not says_nothing_between(words, names):
            raise _unclear(words, begin)
    if not says_nothing_behind(behind, names):
        raise _unclear(behind, begin)


def _unclear(words: str, begin: int) -> Unreadable:
    shown = " ".join(words.split())[:WORDS_CHARS_SHOWN]
    message = f"words around the JSON may change what is meant, so give the JSON alone: {shown!r}"
    return Unreadable(Reason.PROSE_UNCLEAR, begin, message)


def _has_words(around: str) -> bool:
    return any(character.isalnum() for character in _fence_marks.sub("", around))


def _note_removed(words: str, at: int, log: RepairLog) -> None:
    if words:
        is_fence = not _fence_marks.sub("", words).strip()
        log.note(RepairCode.FENCE_REMOVED if is_fence else RepairCode.PROSE_REMOVED, at, words)
