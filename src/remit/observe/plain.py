"""Text from models, tools and people, made fit for a terminal, a log line or a sentence.

Rule 1: nothing that a terminal obeys, and nothing that hides or turns text around, is left as it is: control and format
        characters, line ends, lone surrogates, unusual spaces and whatever has no printed form or is not seen become escapes.
Rule 2: a backslash becomes two, so that an escape is never mistaken for the text itself.
"""

from remit.core.regex import regex

_CUT = "…"
# As much of a name of a person as a line shows.
_PERSON_CHARS_MAX = 60
# What Unicode calls printable and is not seen: fillers, joiners, and selectors that can carry a hidden text. The two
# selectors between a plain and a colourful sign (U+FE0E, U+FE0F) belong to everyday text and stay.
_UNSEEN = regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0d\uffa0\U00016fe4\U000e0100-\U000e01ef]"
)


def printable_line(text: str, limit: int = 0) -> str:
    """The text as one printable line; with a limit, cut to so many characters, of which the last then is an ellipsis."""
    if limit <= 0:
        return text if _is_plain(text) else "".join(map(_shown, text))
    if len(text) <= limit and _is_plain(text):
        return text
    # More characters than the limit can never be shown, so a long text is not read to its end.
    shown = [_shown(character) for character in text[: limit + 1]]
    if len(text) <= limit and sum(map(len, shown)) <= limit:
        return "".join(shown)
    kept, room = [], limit - len(_CUT)
    for piece in shown:
        if len(piece) > room:
            break
        kept.append(piece)
        room -= len(piece)
    return "".join([*kept, _CUT])


def is_seen(text: str) -> bool:
    """Whether a terminal prints every character of a text, and a reader sees it."""
    return text.isprintable() and (text.isascii() or _UNSEEN.search(text) is None)


def _is_plain(text: str) -> bool:
    return "\\" not in text and is_seen(text)


def _shown(character: str) -> str:
    """A character as it may be printed."""
    if character == "\\":
        return "\\\\"
    return character if is_seen(character) else character.encode("unicode_escape").decode()


def by_whom(person: str) -> str:
    """Who did something, to stand behind what was done; empty where that is not known."""
    return f" by {printable_line(person, _PERSON_CHARS_MAX)}" if person else ""
