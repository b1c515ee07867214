"""Lenient JSON: a value as models write it, read from left to right, once, with every change written down.

Rule 1: a change is made only where the text then has one meaning (repair_log.py); everything else is Unreadable.
Rule 2: what is whole is kept: at the end of a text, open objects and arrays are closed. What was cut, or may have been,
        a text without its quote, a key without its value, a number whose digits may go on, a bracket or a comma with
        nothing behind it, is refused, and what was read before it goes along as a part.
Rule 3: a closing bracket may be missing before another one only where nothing but closing brackets follows; elsewhere it
        could not be told to which object the rest belongs.
Rule 4: a key that stands twice with one value is dropped once; with two values it is refused.
Rule 5: a word without quotes is kept as a BareWord; only the schema can tell whether it is one of its words (enums.py).
Rule 6: a number may have a sign in front, a point without digits on one side, hexadecimal digits and underscores between
        digits. Leading zeros have three meanings (decimal, octal, a text of digits), and are refused. No number of JSON is
        infinite or not a number.
Rule 7: spaces of every kind and comments without words say nothing. What a comment says may correct what stands beside it,
        or say that something was left out, so one with words leaves the value unknown.
"""

import re
from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any

from remit.constraint.reading.literals import is_literal, read_beginning, read_literal, refuse_no_value
from remit.constraint.reading.quoted_text import CLOSERS, KEY_CHARS_MAX, QuotePlace, read_quoted
from remit.constraint.reading.repair_log import NO_VALUE, Reason, RepairCode, RepairLog, Unreadable
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.regex import regex

# More digits than any quantity has; reading very many takes long, and Python refuses to.
DIGITS_MAX = 1000

_is_json = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_is_hex = regex(r"-?0[xX][0-9a-fA-F]+")
_is_grouped = regex(r"-?[1-9][0-9]{0,2}(?:_[0-9]{3})+")
_has_zeros = regex(r"-?0[0-9]")
_is_open = regex(r"-|-?[0-9]+(?:\.|(?:\.[0-9]+)?[eE][+-]?)")
_no_number = regex(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)


def is_unfinished(token: str) -> bool:
    """Whether something must follow for a token to be a number."""
    return _is_open.fullmatch(token) is not None


def read_numeral(token: str, at: int, log: RepairLog) -> int | float:
    """The number that a token means."""
    if len(token) > DIGITS_MAX:
        raise Unreadable(Reason.TOO_LONG, at, f"a number has {len(token)} characters, digits_max={DIGITS_MAX}")
    if _no_number.fullmatch(token):
        raise Unreadable(Reason.NO_NUMBER, at, f"{token} is no number of JSON; it may stand for null or for a mistake")
    if (found := _is_json.fullmatch(token)) is not None:
        return _number(token, at, is_fraction=bool(found[1] or found[2]))
    plain = _plain(token, at)
    log.note(RepairCode.NUMBER_REWRITTEN, at, token, str(plain))
    return plain


def _plain(token: str, at: int) -> int | float:
    bare = token.removeprefix("+")
    if _is_hex.fullmatch(bare):
        return int(bare, 16)
    if _is_grouped.fullmatch(bare):
        return int(bare)
    if _has_zeros.match(bare):
        message = f"{token} begins with a zero: it may be decimal, octal, or a text of digits"
        raise Unreadable(Reason.NUMBER_UNCLEAR, at, message)
    if not any(character.isdigit() for character in bare):
        raise Unreadable(Reason.UNEXPECTED, at, f"{token:.40} is no number")
    sign, digits = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
    filled = f"{sign}0{digits}" if digits.startswith(".") else bare
    filled = f"{filled}0" if filled.endswith(".") else filled
    if (found := _is_json.fullmatch(filled)) is None:
        raise Unreadable(Reason.UNEXPECTED, at, f"{token:.40} is no number")
    return _number(filled, at, is_fraction=bool(found[1] or found[2]))


def _number(token: str, at: int, *, is_fraction: bool) -> int | float:
    if not is_fraction:
        return int(token)
    number = float(token)
    if not isfinite(number):
        raise Unreadable(Reason.NO_NUMBER, at, f"{token:.40} is beyond what a double holds")
    return number


# Characters that are no space to Python, and that no reader sees.
_UNSEEN = "\u200b\u2060\ufeff"
_ELLIPSIS = "\u2026"

_space = regex(r"[ \t\n\r]*+")
_line_comment = regex(r"(?://|\#)[^\n]*+")
_block_comment = regex(r"/\*.*?\*/", re.DOTALL)
_structural = regex(r"[\"{}\[\]]")
_says = regex(r"[^\W_]|[^\x00-\x7f]")


def skip(text: str, at: int, log: RepairLog) -> int:
    """Where the next token begins."""
    while True:
        found = _space.match(text, at)
        assert found is not None, "nothing is space as well"
        at = found.end()
        character = text[at : at + 1]
        if character in ("/", "#"):
            at = _behind_comment(text, at, log)
        elif character and (character.isspace() or character in _UNSEEN):
            log.note(RepairCode.SPACE_REPLACED, at, character, " ")
            at += 1
        else:
            return at


def elided(at: int) -> Unreadable:
    """The refusal of a text in which something stands for more than it says."""
    return Unreadable(Reason.ELIDED, at, "something was left out here, and what it was is unknown")


def _behind_comment(text: str, at: int, log: RepairLog) -> int:
    if text.startswith("/*", at):
        found = _block_comment.match(text, at)
        if found is None:
            raise Unreadable(Reason.CUT_OFF, at, "a comment has no end")
    else:
        found = _line_comment.match(text, at)
        if found is None:
            raise Unreadable(Reason.UNEXPECTED, at, "a slash begins a comment only where another one follows")
        if found.end() == len(text) and _structural.search(found[0]):
            raise Unreadable(Reason.COMMENT_UNCLEAR, at, "a comment may end within the last line")
    if "..." in found[0] or _ELLIPSIS in found[0]:
        raise elided(at)
    if _says.search(found[0]):
        raise Unreadable(
            Reason.COMMENT_UNCLEAR, at, "a comment may change what is meant; give the JSON without comments"
        )
    log.note(RepairCode.COMMENT_REMOVED, at, found[0])
    return found.end()


_numeral = regex(r"[+-]?[0-9A-Za-z_.]++(?:(?<=[eE])[+-][0-9]*+)?")
_number_first = regex(r"-?[0-9]")
_word = regex(r"[^\W\d][\w$]*+")
_phrase = regex(r"[^\W\d][\w$ \t.-]*+")
_name = regex(rf"[^\W\d][\w$-]{{0,{KEY_CHARS_MAX}}}|\$[\w$-]{{1,{KEY_CHARS_MAX}}}|[0-9]{{1,20}}")
_colon = regex(r"\s*+[:=]")
_member_ahead = regex(
    rf"""(?:"[^"\n]{{0,{KEY_CHARS_MAX}}}"|'[^'\n]{{0,{KEY_CHARS_MAX}}}'|[^\W\d][\w$-]{{0,{KEY_CHARS_MAX}}})\s*+[:=]"""
)
_only_closers_ahead = regex(r"[\s\]}]*+(?:\Z|```)")
_CLOSES = {"}": dict, "]": list}


class BareWord(str):
    """A word that stood without quotes."""

    __slots__ = ("at",)

    at: int


class LenientReader:
    """Reads one value of a text, of which `text` is the part that counts and `chars` the length of the whole."""

    def __init__(self, text: str, at: int, log: RepairLog, *, chars: int) -> None:
        self.at = at
        self.bare_words = 0
        self._text = text
        self._ledger = log
        self._chars = chars
        # The open objects and arrays, each with the key under which the next one will stand.
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str] = []

    def read(self) -> Any:
        """The value at this place; Unreadable brings along what was read before."""
        self._skip()
        return self._whole(partial(self._value, QuotePlace.ROOT))

    def read_members(self) -> Any:
        """The object whose first key stands at this place, its brace being absent."""
        # Entering an object passes its brace.
        self.at -= 1
        return self._whole(self._object)

    def _whole(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Unreadable as error:
            if error.reason is Reason.CUT_OFF:
                error.partial = self._part()
            raise

    def _part(self) -> Any:
        part: Any = NO_VALUE
        for container, key in zip(reversed(self._open), reversed(self._keys), strict=True):
            if part is not NO_VALUE:
                if isinstance(container, dict):
                    container[key] = part
                else:
                    container.append(part)
            part = container
        return part

    def _value(self, place: QuotePlace) -> Any:
        character = self._text[self.at : self.at + 1]
        if character == "{":
            return self._object()
        if character == "[":
            return self._array()
        if character in CLOSERS and character:
            text, self.at = read_quoted(self._text, self.at, place, self._ledger)
            return text
        if character.isdecimal() or character in ("-", "+", "."):
            return self._number()
        if (found := _word.match(self._text, self.at)) is not None:
            return self._worded(found[0])
        if not character:
            raise Unreadable(Reason.CUT_OFF, self.at, "the text ends where a value should stand")
        if character == "\u2026":
            raise elided(self.at)
        raise self._unexpected("a value")

    def _object(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._enter(members)
        comma = -1
        while True:
            character = self._skip()
            if character == ",":
                self._ledger.note(RepairCode.COMMA_DROPPED, self.at, ",")
                self.at += 1
                continue
            if self._is_over(character, "}", comma):
                return members
            self._member(members)
            comma = self._separator(self._is_member_ahead)

    def _member(self, members: dict[str, Any]) -> None:
        key_at = self.at
        key = self._key()
        self._keys[-1] = key
        self._colon(is_quoted=self._text[key_at] in CLOSERS)
        if self._skip() in (",", "}", "]", ";"):
            raise Unreadable(Reason.VALUE_MISSING, self.at, f"{key[:40]!r} has no value; it may be null or left out")
        value = self._value(QuotePlace.MEMBER)
        if key not in members:
            members[key] = value
        elif same_json(members[key], value):
            self._ledger.note(RepairCode.KEY_REPEAT_DROPPED, key_at, key)
        else:
            raise Unreadable(Reason.KEY_REPEATED, key_at, f"{key[:40]!r} stands twice, with two values")

    def _key(self) -> str:
        character = self._text[self.at]
        if character in CLOSERS:
            key, self.at = read_quoted(self._text, self.at, QuotePlace.KEY, self._ledger)
            return key
        if character == "." or character == "\u2026":
            raise elided(self.at)
        found = _name.match(self._text, self.at)
        if found is None or not _colon.match(self._text, found.end()):
            if found is not None and found.end() == len(self._text):
                raise Unreadable(Reason.CUT_OFF, self.at, "the text ends within a key")
            raise self._unexpected("a key")
        if is_literal(found[0]):
            raise self._unexpected("a key, which is a text,")
        self._ledger.note(RepairCode.KEY_QUOTED, self.at, found[0], f'"{found[0]}"')
        self.at = found.end()
        return found[0]

    def _colon(self, *, is_quoted: bool) -> None:
        character = self._skip()
        if character == ":":
            self.at += 1
        elif character == "=":
            sign = "=>" if self._text.startswith("=>", self.at) else "="
            self._ledger.note(RepairCode.SEPARATOR_REPLACED, self.at, sign, ":")
            self.at += len(sign)
        elif not character:
            raise Unreadable(Reason.CUT_OFF, self.at, "the text ends behind a key")
        elif is_quoted and character not in ",;}]":
            self._ledger.note(RepairCode.COLON_ADDED, self.at, "", ":")
        else:
            raise self._unexpected("a colon")

    def _array(self) -> list[Any]:
        items: list[Any] = []
        self._enter(items)
        comma = -1
        while True:
            character = self._skip()
            if self._is_over(character, "]", comma):
                return items
            if character == ",":
                raise Unreadable(Reason.VALUE_MISSING, self.at, "a list has a hole; it may be null or nothing")
            items.append(self._value(QuotePlace.ITEM))
            comma = self._separator(self._is_item_ahead)

    def _enter(self, container: dict[str, Any] | list[Any]) -> None:
        if len(self._open) == DEPTH_MAX:
            raise Unreadable(Reason.TOO_DEEP, self.at, f"the text nests deeper than depth_max={DEPTH_MAX}")
        self._open.append(container)
        self._keys.append("")
        self.at += 1

    def _is_over(self, character: str, closer: str, comma: int) -> bool:
        """Close an object or array that ends here, with its own bracket or without; False where it goes on."""
        if character == closer:
            self.at += 1
        elif not character or character == "`":
            if comma >= 0 or not self._open[-1]:
                raise Unreadable(Reason.CUT_OFF, self.at, "the text ends where something more was begun")
            if character and not _only_closers_ahead.match(self._text, self.at):
                raise self._unexpected(f"{closer!r}")
            self._ledger.note(RepairCode.CLOSER_ADDED, self.at, "", closer)
        elif character in _CLOSES:
            of_another = any(type(each) is _CLOSES[character] for each in self._open)
            if not of_another or not _only_closers_ahead.match(self._text, self.at):
                raise self._unexpected(f"{closer!r}")
            self._ledger.note(RepairCode.CLOSER_ADDED, self.at, "", closer)
        else:
            return False
        if comma >= 0:
            self._ledger.note(RepairCode.COMMA_DROPPED, comma, ",")
        self._open.pop()
        self._keys.pop()
        return True

    def _separator(self, is_next_ahead: Callable[[int], bool]) -> int:
        """Pass the comma behind a member or an item; where it stood, or -1 when there was none."""
        ended = self.at
        character = self._skip()
        if character == ",":
            self.at += 1
            return self.at - 1
        if character == ";" and isinstance(self._open[-1], dict):
            self._ledger.note(RepairCode.SEPARATOR_REPLACED, self.at, ";", ",")
            self.at += 1
            return -1
        if character and character not in "}]`":
            if not is_next_ahead(ended):
                raise self._unexpected("a comma")
            self._ledger.note(RepairCode.COMMA_ADDED, ended, "", ",")
        return -1

    def _is_member_ahead(self, ended: int) -> bool:
        del ended
        return _member_ahead.match(self._text, self.at) is not None

    def _is_item_ahead(self, ended: int) -> bool:
        character = self._text[self.at]
        is_new_line = "\n" in self._text[ended : self.at]
        # Between two brackets nothing else can be missing; elsewhere the line must end, and not within a number.
        if not is_new_line or self._text[ended - 1] == ".":
            return character in "{[" and self._text[ended - 1] in "}]"
        return character in "{[" or character in CLOSERS or self._is_plain_ahead()

    def _is_plain_ahead(self) -> bool:
        """Whether a number or a literal follows."""
        word = _word.match(self._text, self.at)
        return _number_first.match(self._text, self.at) is not None if word is None else is_literal(word[0])

    def _number(self) -> int | float:
        if self._text.startswith("...", self.at):
            raise elided(self.at)
        found = _numeral.match(self._text, self.at)
        token = found[0] if found is not None else self._text[self.at]
        end = self.at + len(token)
        # Within a bracket that is still open the text was cut, perhaps within the number.
        is_cut = end == len(self._text) and (is_unfinished(token) or (bool(self._open) and end == self._chars))
        if is_cut:
            raise Unreadable(Reason.CUT_OFF, self.at, f"the text ends with the number {token:.40}, which may go on")
        number = read_numeral(token, self.at, self._ledger)
        self.at += len(token)
        return number

    def _worded(self, word: str) -> Any:
        at, end = self.at, self.at + len(word)
        if is_literal(word):
            self.at = end
            return read_literal(word, at, self._ledger)
        refuse_no_value(word, at)
        if end == len(self._text):
            self.at = end
            return read_beginning(word, at, self._ledger)
        return self._bare()

    def _bare(self) -> BareWord:
        found = _phrase.match(self._text, self.at)
        assert found is not None, "a word begins here"
        word = BareWord(found[0].rstrip())
        word.at = self.at
        self.at += len(word)
        if self._skip() not in (",", "}", "]"):
            raise self._unexpected("a text in quotes")
        self.bare_words += 1
        return word

    def _skip(self) -> str:
        """Pass whatever says nothing; the character that follows, or nothing at the end."""
        self.at = skip(self._text, self.at, self._ledger)
        return self._text[self.at : self.at + 1]

    def _unexpected(self, wanted: str) -> Unreadable:
        there = repr(self._text[self.at : self.at + 10])
        return Unreadable(Reason.UNEXPECTED, self.at, f"{there} stands where {wanted} should stand")


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 and true are not, though Python says so."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same_json(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)
