"""Names that mean a secret, and the values that stand beside them in a structure.

Rule 1: a name means a secret by how it ends. Some words always do; short ones (`pass`, `pw`, `pin`, `otp`, `auth`) only as a
        word of their own: `db_pass` and `dbPass` are names of passwords, `bypass` is none.
Rule 2: what is assigned to a name of a password may be any word; to a key, letters and digits; to a short name or to a
        session, what no name of a program is; a PIN is four digits or more.
Rule 3: of a header only the credential is the secret: what stands behind the scheme, and the pairs of a cookie.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from remit.core.regex import regex
from remit.core.secrets.secret_values import is_chancy, is_given, is_key, is_mixed, is_password, is_place

# Words that mean a password wherever a name ends with them, also in other languages.
PASSWORDS = (
    "p[a@]ssw[o0]r[dt]|passwd|pass[ _-]?phrase|passcode|pwd|psk|kennwort|wachtwoord|senha|heslo|has[łl]o|l[öo]senord"
    "|contrase(?:ñ|n\u0303?)a|mot[ _-]?de[ _-]?passe|пароль|密[码碼]|パスワード"
)
# What may follow in the name: `passwordConfirm`, `token_value`, `password2`.
BEHIND = (
    r"(?:[_-]?(?:confirm(?:ation|ed)?|again|repeat(?:ed)?|retyped?|verification|value|string|plain(?:text)?|hash|new|old))?"
    r"(?:_?[0-9]{1,2})?"
)
# What makes a secret of a key; others are public, or keys of rows and of maps.
KEY_OF = (
    "api|access|secret|private|account|encryption|signing|master|auth|service"
    "|licen[cs]e|shared|hmac|jwt|deploy|app|client"
)
SESSIONS = r"session[_-]?id|sess(?:ion)?id|(?<![A-Za-z])sid"

# Names beside whose value stands another name: `{"name": "password", "value": V}`.
NAME_MEMBERS = frozenset(
    ["name", "key", "field", "id", "param", "parameter", "header", "variable", "env", "k", "label"]
)
VALUE_MEMBERS = frozenset(
    [
        "value",
        "val",
        "v",
        "data",
        "content",
        "text",
        "plain",
        "plaintext",
        "current",
        "new",
        "old",
        "new_value",
        "old_value",
    ]
)
# Names of structures whose every member is a cookie.
COOKIE_JARS = frozenset(["cookie", "cookies"])

# Longer names are no names of fields.
_NAME_CHARS_MAX = 100
_NAMES_REMEMBERED_MAX = 1_024
_PASSWORD_NAME = regex(rf"(?:{PASSWORDS}){BEHIND}$", re.IGNORECASE)
_KEY_NAME = regex(rf"(?:(?:{KEY_OF})[_-]?key(?:[_-]?(?:base|id))?|secret|token|credentials?){BEHIND}$", re.IGNORECASE)
_SHORT_NAME = regex(rf"(pass|pw|pin|otp|auth){BEHIND}$", re.IGNORECASE)
_SESSION_NAME = regex(rf"(?:{SESSIONS})$", re.IGNORECASE)
_HEADER_NAME = regex(r"(authorization|cookies?)$", re.IGNORECASE)
_COMPOUND = regex(
    r"(?:^|[^a-z])(?:user|db|smtp|imap|ftp|ssh|sql|mail|root|admin|my|wifi|http|proxy|login|key|store|trust|ldap|bind|require)"
    r"[_-]?$",
    re.IGNORECASE,
)
_CREDENTIAL = regex(r"(?:[A-Za-z]{3,12} {1,3}|[^\s:]{1,64}:(?!/))?([^\s,]{8,4000})$")
_COOKIE = regex(r"[^\s\"'=;]{1,100}=[^\n\"']{6,4000}$|[A-Za-z0-9+/_.%=-]{12,4000}$")
_PIN = regex(r"[0-9]{4,10}")
_UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class NamedSecret(NamedTuple):
    """The secret in a value: its kind, and where it stands."""

    kind: str
    start: int
    end: int


def is_word_of_its_own(before: str, word: str) -> bool:
    """Whether a short word is a word of its own behind the name that stands before it."""
    if not before or not before[-1].isalnum():
        return True
    return (word[0].isupper() and before[-1].islower()) or _COMPOUND.search(before) is not None


def is_session(value: str) -> bool:
    """Whether the value of a session's identifier opens the session: letters by chance, and no identifier of a row."""
    return len(value) >= 12 and is_chancy(value) and _UUID.fullmatch(value) is None and is_given(value)


def is_short(before: str, word: str, value: str) -> bool:
    """Whether the value beside a short word, behind what stands before it in the name, is a secret."""
    folded = word.casefold()
    if folded in ("pin", "otp"):
        return _PIN.fullmatch(value) is not None or is_key(value)
    if folded == "auth":
        return is_key(value) and is_chancy(value)
    if not is_password(value) or _COMPOUND.search(before) is not None:
        return is_password(value)
    return is_mixed(value) and (len(value) < 8 or is_key(value))


def means_a_secret(name: str) -> bool:
    """Whether a name is one of a secret."""
    return len(name) <= _NAME_CHARS_MAX and _means_a_secret(name)


# A pure memo: the parameters of a tool have the same names in every call.
@lru_cache(maxsize=_NAMES_REMEMBERED_MAX)
def _means_a_secret(name: str) -> bool:
    if any(names.search(name) for names in (_PASSWORD_NAME, _SESSION_NAME, _HEADER_NAME)):
        return True
    key = _KEY_NAME.search(name)
    if key is not None:
        return not is_place(name[: key.start()])
    short = _SHORT_NAME.search(name)
    return short is not None and is_word_of_its_own(name[: short.start()], short[1])


def secret_of_named(name: str, value: str) -> NamedSecret | None:
    """The secret that a value is, or holds, by the name of its field."""
    if not means_a_secret(name):
        return None
    header = _HEADER_NAME.search(name)
    if header is not None:
        return _of_header(header[1].casefold(), value)
    if _PASSWORD_NAME.search(name) is not None:
        return NamedSecret("password", 0, len(value)) if is_password(value) else None
    if _SESSION_NAME.search(name) is not None:
        return NamedSecret("cookie", 0, len(value)) if is_session(value) else None
    if _KEY_NAME.search(name) is not None:
        return (
            _after_scheme("key", value)
            if " " in value
            else NamedSecret("key", 0, len(value))
            if is_key(value)
            else None
        )
    short = _SHORT_NAME.search(name)
    before, word = (name[: short.start()], short[1].casefold()) if short is not None else ("", "")
    if word == "auth" and (" " in value or ":" in value):
        return _after_scheme("authorization", value)
    kind = "authorization" if word == "auth" else "password"
    return NamedSecret(kind, 0, len(value)) if is_short(before, word, value) else None


def _of_header(header: str, value: str) -> NamedSecret | None:
    if header == "authorization":
        return _after_scheme("authorization", value)
    found = _COOKIE.match(value)
    return NamedSecret("cookie", 0, found.end()) if found is not None and is_mixed(value) and is_given(value) else None


def _after_scheme(kind: str, value: str) -> NamedSecret | None:
    """What stands behind `Basic` or `Bearer`, or alone."""
    found = _CREDENTIAL.match(value)
    if found is None or not is_given(found[1]) or not (is_mixed(found[1]) or (" " in value and found[1].endswith("="))):
        return None
    return NamedSecret(kind, *found.span(1))
