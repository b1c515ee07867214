"""Outward: whether a read that leaves the machine, or may, holds something that it could carry out, and to whom.

Rule 1: a tool that says where its calls go goes there; of any other, the links in the arguments tell, and one that is
        not plainly a link to a trusted host is not trusted.
Rule 2: of a tool that does not say whether it leaves, only a link, an address, or more characters than an identifier
        has is worth a question. What the user wrote, and what the schema itself offers, carries nothing.
Rule 3: whatever is free to be said once is counted when it is said again: yes and no, said often enough, spell anything.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from remit.core.regex import regex
from remit.provenance.values.leaves import Leaf
from remit.provenance.words.references import is_file_name, is_prose, pointers_in, references_in, skimmed
from remit.provenance.words.user_words import Words

# So many characters that the user did not write may go along with the arguments of one call: an id or a few.
CARRIED_CHARS_MAX = 40
# How a host that stands for all below it begins.
BELOW = "*."

_LINK = regex(r"https?://((?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+)(?::\d{1,5})?(?:[/?#][\x21-\x7e]*)?")
_PLACES = frozenset({"url", "email", "host"})
# What names of people and purses begin with: they reach no machine.
_SIGILS = ("@", "$")
# Endings of source files that are top-level domains as well; a name with one of them and no other dot is a file.
_SOURCE = regex(
    r"[^/?#:.]+\.(?:py|md|rs|sh|js|ts|tsx|jsx|go|c|h|cc|cpp|hpp|java|rb|pl|sql|css|toml|cfg|ini|lock|in|ps|zip|gz|so)",
    re.IGNORECASE,
)


# Addresses of machines in brackets, and those written as one number, or with a number that no name has: 0x7f.1.
_ADDRESS = regex(
    r"\[(?=[0-9A-Fa-f:.%]*:)[0-9A-Fa-f:.%]{2,}[\w]*\]"
    r"|(?<![\w.])0[xX][0-9A-Fa-f]{6,8}(?![\w.])|(?<![\w.])(?:0[xX][0-9A-Fa-f]+|\d+)(?:\.(?:0[xX][0-9A-Fa-f]+|\d+)){3}(?![\w.])"
    r"|(?<![\w.])0[xX][0-9A-Fa-f]+(?:\.(?:0[xX][0-9A-Fa-f]+|\d+)){1,3}(?![\w.])"
    r"|(?<![\w.])\d{1,3}\.\d{5,8}(?![\w.])|(?:^|//)(?:1[6-9]\d{6}|[2-9]\d{7}|\d{9}|[1-4]\d{9})(?=$|[:/?#])"
)
# Browsers take these for the dot of a host.
_DOTS = regex("[\u3002\uff0e\uff61]")


def _plain(text: str) -> str:
    return text if text.isascii() else _DOTS.sub(".", unicodedata.normalize("NFKC", text))


def goes_to_trusted(leaves: Iterable[Leaf], hosts: tuple[str, ...], trusted: tuple[str, ...]) -> bool:
    """Whether a call reaches nothing but hosts that the operator trusts."""
    if not trusted:
        return False
    if hosts:
        return all(is_trusted(host, trusted) for host in hosts)
    found = [_is_linked(leaf.value, trusted) for leaf in leaves if isinstance(leaf.value, str)]
    return True in found and False not in found


def is_trusted(host: str, trusted: tuple[str, ...]) -> bool:
    """Whether a host is one of these, or below one of them."""
    host = host.lower()
    return any(host == one.lower() or (one.startswith(BELOW) and host.endswith(one[1:].lower())) for one in trusted)


def _is_linked(text: str, trusted: tuple[str, ...]) -> bool | None:
    """Whether a text is a link to a trusted host; None where it leads nowhere."""
    link = _LINK.fullmatch(text)
    if link is not None:
        return is_trusted(link[1], trusted)
    return False if any(_places_in(text)) else None


def holds_something_to_carry(leaves: Iterable[Leaf], words: Words) -> bool:
    """Whether arguments hold a link, an address, or more characters than fit that the user did not write."""
    carried = 0
    free: list[object] = []
    for leaf in leaves:
        value = leaf.value
        text = value if isinstance(value, str) else str(value)
        if isinstance(value, bool) or value is None or _is_offered(leaf) or words.owns(text):
            free.append(value)
            continue
        if any(_places_in(text)) or _is_machine(leaf):
            return True
        for part in text.split():
            if part.lower() in words.lower:
                free.append(part)
            else:
                carried += len(part)
    return carried + repeats_in(free) > CARRIED_CHARS_MAX


def _is_machine(leaf: Leaf) -> bool:
    """Whether a text is the address of a machine in a form that no name has; what is declared as an identifier is one."""
    is_text = isinstance(leaf.value, str) and not leaf.kind.startswith("id")
    return is_text and _ADDRESS.search(_plain(leaf.value)) is not None


def repeats_in(values: Sequence[object]) -> int:
    """How many of these values were among them before."""
    return len(values) - len({(type(value), str(value)) for value in values})


def _is_offered(leaf: Leaf) -> bool:
    """Whether the schema itself offers the value."""
    choices = leaf.schema.get("enum")
    is_chosen = isinstance(choices, (list, tuple)) and leaf.value in choices
    return not leaf.is_key and (is_chosen or ("default" in leaf.schema and leaf.schema["default"] == leaf.value))


def _places_in(text: str) -> Iterator[str]:
    """The links and addresses in a text. A name that ends like a file is a file, whatever domains there are."""
    plain = _plain(text)
    if is_prose(plain):
        return
    busy = skimmed(plain)
    for found in references_in(busy):
        is_file = found.kind == "host" and (is_file_name(found) or _SOURCE.fullmatch(found.text) is not None)
        if found.kind in _PLACES and not is_file:
            yield found.compact
    yield from (pointer for pointer in pointers_in(busy) if not pointer.startswith(_SIGILS))
