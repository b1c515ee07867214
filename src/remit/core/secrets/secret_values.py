"""Values beside a telling name: whether what is assigned to a password, a token or a key is a secret.

Rule 1: a value that is left out, referred to, covered or called for is none: `None`, `${TOKEN}`, `****`, `<your key>`.
Rule 2: a value that names something of a program is none: `settings.password`, `get_token()`.
Rule 3: a password may be any word; a token or a key is long and has letters among its digits.
"""

import re

from remit.core.regex import regex

# Shorter values are counts, codes and names of types.
PASSWORD_CHARS_MIN = 6
KEY_CHARS_MIN = 8

# Values that stand where a secret would, in documents, forms and programs.
_PLACEHOLDERS = frozenset(
    [
        "absent",
        "accepted",
        "allowed",
        "basic",
        "bearer",
        "blank",
        "boolean",
        "bytes",
        "changed",
        "correct",
        "default",
        "disabled",
        "empty",
        "enabled",
        "expired",
        "false",
        "field",
        "forgotten",
        "hidden",
        "incorrect",
        "input",
        "integer",
        "invalid",
        "masked",
        "missing",
        "needed",
        "never",
        "null",
        "number",
        "object",
        "optional",
        "present",
        "protected",
        "public",
        "redacted",
        "refused",
        "rejected",
        "renewed",
        "required",
        "reset",
        "revoked",
        "sample",
        "string",
        "text",
        "true",
        "undefined",
        "unknown",
        "unset",
        "username",
        "valid",
        "value",
        "wrong",
    ]
)
# A value with one of them names a secret, or says what to write there.
_NAMING = ("passw", "secret", "token", "apikey", "api_key", "credential", "your", "example", "placeholder", "dummy")
# A name before `token` that makes it the place of a page, or a count.
_PLACES = ("page", "next", "sync", "continuation", "pagination", "cursor", "max", "min", "num", "watch", "csrf", "stop")
# A word of a program with a number: `BRACKET_OPEN1`, `user-id-2`.
_NUMBERED = regex(r"[A-Za-z]{2,40}[0-9]{0,2}(?:[_-][A-Za-z]{2,40}[0-9]{0,2}){1,8}")
_PIECES = regex(r"[A-Za-z0-9]+")
_WORD = regex(r"[A-Za-z]*[0-9]{0,4}|[0-9]+[A-Za-z]{0,2}")
_ODD = regex(r"[a-z][A-Z]|[A-Za-z][!#$%^*+=~@][A-Za-z]")
# What is filled in by a template, a shell or a program.
_REFERENCE = regex(
    r"\$[A-Za-z_][A-Za-z0-9_]*$|\$[({]|\{\{|[<\[({].*[>\])}]$|\{[A-Za-z0-9_.]*\}|%[A-Za-z_][A-Za-z0-9_]*%$|%\(|%[a-z]$"
    r"|[*&][A-Za-z_][A-Za-z0-9_.]*$|\*\*|\.\.\.|xxx|XXX",
    re.DOTALL,
)
# A name in a program, with the names that it is found under.
_PROGRAM = regex(r"[A-Za-z_][A-Za-z0-9_]*(?:[.:]{1,2}[A-Za-z_][A-Za-z0-9_]*){1,8}")


def is_mixed(value: str) -> bool:
    """Whether a value has letters and digits, as chance has and words have not."""
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)


def is_password(value: str) -> bool:
    """Whether a value that is assigned to a password may be one."""
    return len(value) >= PASSWORD_CHARS_MIN and " " not in value and is_given(value)


def is_key(value: str) -> bool:
    """Whether a value that is assigned to a token, a key or a secret may be one."""
    if len(value) < KEY_CHARS_MIN or " " in value or _NUMBERED.fullmatch(value) is not None:
        return False
    return is_mixed(value) and is_given(value)


def is_chancy(value: str) -> bool:
    """Whether letters and digits are mixed as in no name: not a word, a number, or a word with a number behind it."""
    return any(_WORD.fullmatch(piece) is None for piece in _PIECES.findall(value))


def is_odd(value: str) -> bool:
    """Whether a value is written as no word is: with digits, signs, or capitals within."""
    return is_mixed(value) or _ODD.search(value) is not None


def is_place(name: str) -> bool:
    """Whether what stands before `token` makes it the place of a page or a count."""
    return name.casefold().rstrip("_- ").endswith(_PLACES)


def is_reference(value: str) -> bool:
    """Whether a value only says where the value comes from, or covers it."""
    return _REFERENCE.match(value) is not None


def is_given(value: str) -> bool:
    """Whether a value is written out: no placeholder, reference or name of a program."""
    folded = value.casefold()
    if folded.strip("<>[](){}*.!?-_") in _PLACEHOLDERS or any(part in folded for part in _NAMING):
        return False
    if is_reference(value) or "://" in value:
        return False
    if _PROGRAM.fullmatch(value) is not None or (value.endswith(")") and "(" in value):
        return False
    return len(set(value)) > 2
