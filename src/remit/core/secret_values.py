"""Values beside a telling name: whether what is assigned to a password, a token or a key is a secret.

Rule 1: a value that is left out, referred to, covered or called for is none: `None`, `${TOKEN}`, `****`, `<your key>`.
Rule 2: a value that names something of a program is none: `settings.password`, `get_token()`.
Rule 3: a password may be any word; a token or a key is long and has letters among its digits.
"""

import re

# Shorter values are counts, codes and names of types.
PASSWORD_CHARS_MIN = 6
KEY_CHARS_MIN = 8

# How the name of a field ends that holds a password; and one that holds a key, a token or a secret.
_PASSWORD_NAME = re.compile(r"(?:passwor[dt]|passwd|passphrase|pwd)(?:_?[0-9]{1,2})?$", re.IGNORECASE)
_KEY_NAME = re.compile(
    r"(?:(?:api|access|secret|private|account|encryption|signing|master|auth|service)[_-]?key(?:[_-]?(?:base|id))?"
    r"|secret|token|credentials?)(?:_?[0-9]{1,2})?$",
    re.IGNORECASE,
)
# Longer names are no names of fields.
_NAME_CHARS_MAX = 100

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
# A name in a program, with the names that it is found under.
_PROGRAM = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.:]{1,2}[A-Za-z_][A-Za-z0-9_]*){1,8}")


def is_mixed(value: str) -> bool:
    """Whether a value has letters and digits, as chance has and words have not."""
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)


def is_password(value: str) -> bool:
    """Whether a value that is assigned to a password may be one."""
    return len(value) >= PASSWORD_CHARS_MIN and " " not in value and _is_given(value)


def is_key(value: str) -> bool:
    """Whether a value that is assigned to a token, a key or a secret may be one."""
    return len(value) >= KEY_CHARS_MIN and " " not in value and is_mixed(value) and _is_given(value)


def is_place(name: str) -> bool:
    """Whether what stands before `token` makes it the place of a page or a count."""
    return name.casefold().rstrip("_- ").endswith(_PLACES)


def kind_of_named(name: str, value: str) -> str:
    """The kind of secret that a value is by the name of its field: `password`, `key`, or empty."""
    if len(name) > _NAME_CHARS_MAX:
        return ""
    if _PASSWORD_NAME.search(name) is not None:
        return "password" if is_password(value) else ""
    found = _KEY_NAME.search(name)
    return "key" if found is not None and is_key(value) and not is_place(name[: found.start()]) else ""


def _is_given(value: str) -> bool:
    folded = value.casefold()
    if folded.strip("<>[](){}*.!?-_") in _PLACEHOLDERS or any(part in folded for part in _NAMING):
        return False
    if value[0] in "$<{[(%*&" or value.startswith(("...", "xxx", "XXX")) or "://" in value:
        return False
    if _PROGRAM.fullmatch(value) is not None or (value.endswith(")") and "(" in value):
        return False
    return len(set(value)) > 2
