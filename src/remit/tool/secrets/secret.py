"""Secrets: values that a tool is given and that are never shown, and how long they hold.

Rule 1: code that wants to see a value has to say so, with `reveal()`; every other way of writing it shows its name at most.
Rule 2: a credential says when it expires in milliseconds since 1970, as every other moment in the house does.
Rule 3: what is wrong with an entry is told by its name, never by its value.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias

from remit.core.failure import RequestRejected
from remit.core.regex import regex

SECRET_INVALID = "SECRET_INVALID"  # noqa: S105  # a code, and no password

# Such a name is also the end of a variable's name, and reads well within a sentence.
NAME_CHARS_MAX = 64
NAME_PATTERN = regex(rf"[A-Za-z_][A-Za-z0-9_]{{0,{NAME_CHARS_MAX - 1}}}")

# What is shorter stands in ordinary words, and can be guessed by asking which guess is hidden.
VALUE_CHARS_MIN = 8
# A chain of certificates fits; more is a file, and every text is searched for all of it.
VALUE_CHARS_MAX = 64 * 1024

# Before this, in 1973, nothing expires: a smaller number counts seconds.
EXPIRES_AT_MS_MIN = 100_000_000_000

_KEYS = ("value", "expires_at", "refresh")
_HIDDEN = "[secret]"


class Secret:
    """A text that is not shown by being printed, formatted, logged, copied or written as JSON."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"Secret({_HIDDEN!r})"

    def __str__(self) -> str:  # type: ignore[explicit-override]
        return _HIDDEN

    def __format__(self, form: str) -> str:  # type: ignore[explicit-override]
        return format(_HIDDEN, form)

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:  # type: ignore[explicit-override]
        raise TypeError("a Secret is not written down; pass the name of the secret instead")


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret, when it expires if it does, and what gives a new one. Without a value the first call asks for one."""

    value: Secret | None
    expires_at_ms: int | None = None
    refresh: "Refresh | None" = None


# What stands for a secret: its text, or a mapping with `value`, `expires_at` (ISO 8601 or milliseconds) and `refresh`.
Given: TypeAlias = str | Secret | Credential | Mapping[str, Any]
# Gives a new value in one of these forms; it may block, or be an `async def`.
Refresh: TypeAlias = Callable[[], Given | Awaitable[Given]]


def credential_of(name: str, given: object) -> Credential:
    """What is given for a name as a credential; raises RequestRejected for what can be none."""
    if not NAME_PATTERN.fullmatch(name):
        problem = f"a name is 1 to {NAME_CHARS_MAX} letters, digits or '_', and begins with no digit"
        raise invalid_secret(name, problem)
    match given:
        case Credential():
            found = given if given.value is None else replace(given, value=_secret(name, given.value))
        case str() | Secret():
            found = Credential(_secret(name, given))
        case Mapping():
            found = _entry(name, given)
        case _:
            raise invalid_secret(name, f"a {type(given).__name__} is no secret; give a text, or value and expires_at")
    if found.value is None and found.refresh is None:
        raise invalid_secret(name, "has no value; give one, or a refresh that does")
    return found


def invalid_secret(name: str, problem: str) -> RequestRejected:
    """The refusal of an entry."""
    return RequestRejected(SECRET_INVALID, f"secret {name[:80]!r}: {problem}", {"secret": name[:80]})


def _entry(name: str, given: Mapping[str, Any]) -> Credential:
    if unknown := [str(key)[:80] for key in given if key not in _KEYS]:
        raise invalid_secret(name, f"has the unknown keys {unknown}; known are {', '.join(_KEYS)}")
    value, refresh = given.get("value"), given.get("refresh")
    if refresh is not None and not callable(refresh):
        raise invalid_secret(name, f"refresh is a {type(refresh).__name__}; give a function that returns a new value")
    return Credential(
        None if value is None else _secret(name, value), _moment(name, given.get("expires_at")), refresh=refresh
    )


def _secret(name: str, value: object) -> Secret:
    secret = value if isinstance(value, Secret) else Secret(value) if isinstance(value, str) else None
    if secret is None:
        raise invalid_secret(name, f"its value is a {type(value).__name__}; write it as a text")
    if not secret.reveal().strip():
        raise invalid_secret(name, "its value is empty; give one, or leave the secret out")
    if len(secret.reveal()) < VALUE_CHARS_MIN:
        problem = f"its value has fewer than value_chars_min={VALUE_CHARS_MIN} characters, so that it could be guessed"
        raise invalid_secret(name, f"{problem}; use a longer one")
    if len(secret.reveal()) > VALUE_CHARS_MAX:
        raise invalid_secret(name, f"value_chars={len(secret.reveal())} exceeds value_chars_max={VALUE_CHARS_MAX}")
    return secret


def _moment(name: str, given: object) -> int | None:
    """When an entry expires, in milliseconds since 1970."""
    way_out = "write 2031-01-31T12:00:00Z, or milliseconds since 1970"
    moment = given
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            # It may be a value in the wrong place, so it is not quoted.
            raise invalid_secret(name, f"expires_at is no time; {way_out}") from None
    match moment:
        case None:
            return None
        case datetime():
            if moment.tzinfo is None:
                raise invalid_secret(name, f"expires_at names no offset from UTC; {way_out}")
            return int(moment.timestamp() * 1000)
        case bool():
            raise invalid_secret(name, f"expires_at is a bool; {way_out}")
        case int() if moment >= EXPIRES_AT_MS_MIN:
            return moment
        case int():
            raise invalid_secret(name, f"expires_at={moment} is before 1973, perhaps in seconds; {way_out}")
    raise invalid_secret(name, f"expires_at is a {type(given).__name__}; {way_out}")


def written_moment(at_ms: int) -> str:
    """A moment as people read it."""
    try:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        # Beyond the year 9999 a calendar ends and the number is as good.
        return f"{at_ms} ms"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
