"""Payload: free text may say anything, but what it points to must be bound, and what it carries out must be asked for.

Rule 1: links, addresses, account and telephone numbers inside payload are bound by the words or by a picked record.
Rule 2: opaque tokens and invisible characters ask: what they carry cannot be seen.
Rule 3: text is folded to find references, never to match them; folding can only make the gate ask more.
Rule 4: after private data was read that the words did not ask for, only the user's own words leave, unless all who
        receive them could read that data anyway. After secrets were read, always.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import unescape

from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument, Objection
from remit.provenance.kinds import INFERRED, satisfies
from remit.provenance.values.grounds import Grounds
from remit.provenance.values.leaves import Leaf
from remit.provenance.words.references import is_file_name, is_prose, opaque_in, pointers_in, references_in, skimmed

# A text of this length is a document; it cannot be judged at a glance, and its references could be anywhere.
PAYLOAD_CHARS_MAX = 100_000
# Zero-width, bidirectional and tag characters. The joiner U+200D is left out: it builds emoji.
_INVISIBLE = regex("[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
# What vouches for payload that carries nothing but the user's own words.
_HARMLESS = frozenset({"words", "typed"})
# What stands before the name of a person who is addressed, and before that of a purse.
_SIGILS = frozenset("@$")
# Browsers take these for the dot of a host.
_DOTS = regex("[\u3002\uff0e\uff61]")
# An address that is spelled out, as it is read aloud: "eve at evil dot example", "www dot evil dot example".
_SPOKEN = regex(r"\b(?:(?:at|slash)\s+[\w-]+|www)\s+dot\s+\w", re.IGNORECASE)
_SPOKEN_DOT = regex(r"\s+dot\s+", re.IGNORECASE)
_SPOKEN_AT = regex(r"\s+at\s+(?=[\w-]+\.\w)", re.IGNORECASE)
# A host in two pieces, of which the second has a path: "evil .example/x".
_PARTED = regex(r"(?<=\w) +(?=\.\w+[/:?])")
_DISARMED = regex(r"[ \t]{0,2}[\[({]\s{0,2}(?:\.|dot)\s{0,2}[\])}][ \t]{0,2}", re.IGNORECASE)
_DISARMED_AT = regex(r"[ \t]{0,2}[\[({]\s{0,2}(?:@|at)\s{0,2}[\])}][ \t]{0,2}", re.IGNORECASE)
# What free text of an order may hold no more than any other number or address, however it is spelled: a number of so many
# digits with signs between them, an address of a machine in groups, a scheme of any kind, and a key with signs in it.
_MOMENT = regex(r"\b\d{4}-\d{2}-\d{2}|\b\d{1,2}:\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b")
_LONG_NUMBER = regex(r"\d(?:[\W_]{0,3}\d){12,33}")
_IN_GROUPS = regex(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}[:-]){3,7}[0-9A-Fa-f]{1,4}(?![\w:-])|::[0-9A-Fa-f]")
_SCHEME = regex(r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}:[^\s:][^\s]{0,200}")
_LETTERING = regex(r"(?<=\w)[#!$%^&*~?=|;_]{1,3}(?=\w)")


def check_payload(leaf: Leaf, grounds: Grounds, declaration: Declaration) -> Argument:
    """What vouches for one payload value: the user's own words, or that it points nowhere it should not."""
    path, text = leaf.path, leaf.value
    if not isinstance(text, str):
        return Argument(path, text, "typed")
    if grounds.asking.owns(text):
        return Argument(path, text, "words")
    if len(text) > PAYLOAD_CHARS_MAX or (not text.isascii() and _INVISIBLE.search(text)):
        return Argument(path, text, code=Objection.PAYLOAD_REFERENCE)
    for form in _forms(text):
        for reference in () if is_prose(form) else _pointers(form):
            if not _is_bound(reference, grounds, declaration):
                seen = grounds.index.seen_in(reference)
                also = () if seen is None else (seen,)
                shown = f"{path}~{reference[:80]}"
                return Argument(shown, reference, also_seen=also, code=Objection.PAYLOAD_REFERENCE)
    return Argument(path, text, "prose")


def points_to(text: str) -> Iterator[str]:
    """Everything in a text that points somewhere or hides something, as it is written and as it would be read."""
    if len(text) > PAYLOAD_CHARS_MAX or (not text.isascii() and _INVISIBLE.search(text)):
        yield text[:80]
        return
    for form in _forms(text):
        if not is_prose(form):
            yield from _pointers(form)
        yield from _spelled_out(form)


def _spelled_out(form: str) -> Iterator[str]:
    """Numbers, addresses and keys that signs within keep from looking like what they are."""
    plain = _MOMENT.sub(" ", form)
    for pattern in (_LONG_NUMBER, _IN_GROUPS, _SCHEME):
        yield from (found.group() for found in pattern.finditer(plain))
    if (bare := _LETTERING.sub("", form)) != form:
        yield from opaque_in(bare)


def _forms(text: str) -> tuple[str, ...]:
    """A text as it is written and, where that differs, as it would be read."""
    folded = text if text.isascii() else _DOTS.sub(".", unicodedata.normalize("NFKC", text))
    if "&" in folded and ";" in folded:
        folded = unescape(folded)
    if "[" in folded or "(" in folded or "{" in folded:
        folded = _DISARMED_AT.sub("@", _DISARMED.sub(".", folded))
    if " ." in folded:
        folded = _PARTED.sub("", folded)
    if "dot" in folded.lower() and _SPOKEN.search(folded) is not None:
        folded = _SPOKEN_AT.sub("@", _SPOKEN_DOT.sub(".", folded))
    return (text,) if folded == text else (text, folded)


def _pointers(form: str) -> Iterator[str]:
    """Everything in a text that points somewhere or hides something."""
    busy = skimmed(form)
    yield from (found.compact for found in references_in(busy) if not is_file_name(found))
    yield from pointers_in(busy)
    yield from opaque_in(busy)


def _is_bound(reference: str, grounds: Grounds, declaration: Declaration) -> bool:
    words = grounds.words
    is_number = any(not said.is_converted for said in words.numbers.get(reference, ()))
    if is_number or reference in words.references or reference in words.strings:
        return True
    # A user who says "ann" means "@ann" as well.
    if reference[:1] in _SIGILS and reference[1:2] not in _SIGILS and _is_bound(reference[1:], grounds, declaration):
        return True
    if (declaration.name, "", reference) in grounds.approved:
        return True
    for origin in grounds.index.origins_of(reference):
        if not origin.kind.startswith(INFERRED) and satisfies("", origin.kind):
            pick = grounds.picked(origin, reference, "", declaration.name)
            if pick is not None:
                return True
    return False


def is_own(argument: Argument) -> bool:
    """Whether a payload argument says nothing but the user's own words."""
    return argument.bound_by in _HARMLESS


def is_private_flow(arguments: Iterable[Argument], payload: Iterable[Argument], grounds: Grounds) -> bool:
    """Whether words that are not the user's would leave although private data was read that they did not ask for."""
    if not grounds.holds_back:
        return False
    if all(map(is_own, payload)):
        return False
    receivers = {str(argument.value) for argument in arguments if argument.kind.startswith(("who", "email"))}
    return not receivers or not receivers <= (grounds.may_know or frozenset())
