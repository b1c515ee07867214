"""What is left of a turn when words are taken out of it. Every store that redacts does it so.

Rule 1: a turn that cannot be read stays as it is; verifying finds it.
Rule 2: a turn is written anew where it holds the words, or refers to a text that held them and was removed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

from remit.core.failure import RequestRejected
from remit.core.journal.codec import digests_in, encode_turn, hash_turn, readable_turn
from remit.core.journal.turn import RedactedTurn
from remit.core.record import Record, replace
from remit.core.secrets.secret_search import CHANCE, secrets_in
from remit.core.secrets.secret_shapes import SHAPES
from remit.tool.secrets.secret_masks import forms_of

PATTERN_UNKNOWN = "PATTERN_UNKNOWN"
ANY_KIND = "any"

# Gives what is to be taken out of a text.
FindSecrets: TypeAlias = Callable[[str], Iterable[str]]

# What stands in the place of what was taken out: a handle without a value, so that no tool is ever called with it.
MARK = "secret:redacted#000000000000"


def finder_of(text: str, kind: str = "") -> FindSecrets:
    """Who finds what is to be taken out of texts: a text in each of its forms, or every secret of a kind, or of any."""
    if text:
        forms = tuple(forms_of(text))
        return lambda searched: [form for form in forms if form in searched]
    known = sorted({shape.kind for shape in SHAPES} | {CHANCE})
    if kind not in (ANY_KIND, *known):
        message = f"pattern {kind[:80]!r} names no kind of secret; there are {ANY_KIND}, {', '.join(known)}"
        raise RequestRejected(PATTERN_UNKNOWN, message)
    return lambda searched: [
        searched[found.start : found.end] for found in secrets_in(searched) if kind in (ANY_KIND, found.kind)
    ]


def words_to_redact(find: FindSecrets, data: bytes, texts: Iterable[bytes]) -> dict[str, None]:
    """What is to be taken out of a turn and of the long texts that it refers to, in the order it was found."""
    values: dict[str, None] = {}
    for text in _texts_in(readable_turn(data)):
        values |= dict.fromkeys(find(text))
    for blob in texts:
        values |= dict.fromkeys(find(blob.decode(errors="replace")))
    return values


def longest_first(values: Iterable[str]) -> tuple[str, ...]:
    """The values in the order in which they are taken out, so that no part of one is left."""
    return tuple(sorted((value for value in values if value), key=len, reverse=True))


def holds_value(data: bytes, values: Iterable[str]) -> bool:
    """Whether one of the values stands in these bytes."""
    return any(value.encode(errors="surrogatepass") in data for value in values)


def without(
    values: tuple[str, ...], data: bytes, removed: Collection[bytes], said: RedactedTurn
) -> RedactedTurn | None:
    """What is left of a turn, still to be signed; None where it stays as it is. `said` names who takes it out, and why."""
    turn = readable_turn(data)
    if turn is None:
        return None
    changed = _without(turn, values)
    if changed is turn and not any(digest in removed for digest in digests_in(data)):
        return None
    return replace(said, link=hash_turn(data), data=encode_turn(changed))


def _texts_in(value: Any) -> Iterator[str]:
    if type(value) is str:
        yield value
    elif isinstance(value, Record):
        for name in value.__struct_fields__:
            yield from _texts_in(getattr(value, name))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _texts_in(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts_in(key)
            yield from _texts_in(part)


def _without(value: Any, values: tuple[str, ...]) -> Any:
    """The value without any of the texts; the very same where none stands in it."""
    if type(value) is str:
        for taken in values:
            value = value.replace(taken, MARK) if taken in value else value
        return value
    if isinstance(value, Record):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        changes = {name: new for name, old in fields if (new := _without(old, values)) is not old}
        return replace(value, **changes) if changes else value
    if isinstance(value, tuple | list):
        parts = [_without(part, values) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    if isinstance(value, dict):
        items = [(_without(key, values), _without(part, values)) for key, part in value.items()]
        is_same = all(
            new is old
            for pair, old_pair in zip(items, value.items(), strict=True)
            for new, old in zip(pair, old_pair, strict=True)
        )
        return value if is_same else dict(items)
    return value
