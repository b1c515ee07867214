"""Text from models, tools and people, made fit for a terminal, a log line or a sentence.

Rule 1: nothing that a terminal obeys, and nothing that hides or turns text around, is left as it is: control and format
        characters, line ends, lone surrogates, unusual spaces and whatever has no printed form become escapes.
Rule 2: a backslash becomes two, so that an escape is never mistaken for the text itself.
"""

_CUT = "…"


def plain(text: str, limit: int = 0) -> str:
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


def _is_plain(text: str) -> bool:
    return text.isprintable() and "\\" not in text


def _shown(character: str) -> str:
    """A character as it may be printed."""
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode()
