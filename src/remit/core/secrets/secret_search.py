"""Finding secrets that no vault knows: by their shape, by randomness that no person writes, and behind three encodings.

Rule 1: a shape is looked for as it is, and in what runs of base64 and hexadecimal and percent signs decode to, up to two
        encodings deep. An encoded secret is found as the run that encodes it, so that it can be given back unchanged.
Rule 2: letters by chance count where nothing says what they are only if they are CHANCE_CHARS_MIN to CHANCE_CHARS_MAX long
        and have capitals, small letters and digits in the disorder of chance. Digests, identifiers of runs, addresses,
        paths, data in base64 and words of programs have not.
Rule 3: what stands for a secret already is none: a handle, or a mark of the vault.
Rule 4: the work grows with the length of a text and with nothing else: less than a microsecond for a sentence, and some 150 to
        400 for 1 KiB of a document with long words.
"""

import base64
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from math import log2
from typing import NamedTuple

from remit.core.regex import regex
from remit.core.schema.json_schema import text_matcher
from remit.core.secrets.secret_shapes import BEFORE_CHARS_MAX, SHAPES, Shape, value_span

# The kind of a secret that is recognised by its randomness alone.
CHANCE = "chance"
# Identifiers of calls, payments and documents have up to 29 letters by chance; keys that carry no mark have 32 and more.
CHANCE_CHARS_MIN = 32
# What is longer is data: a picture, a certificate, a document.
CHANCE_CHARS_MAX = 200
# Bits a letter. Thirty-two letters by chance have 4.5 of them, names and words below 4.
CHANCE_BITS_MIN = 4.0
# How many neighbours are of different kinds, of capitals, small letters and digits: by chance 62 of 100, in names below 30.
CHANCE_CHANGES_MIN = 0.4
# Among so many letters by chance stand five digits, here and there; a name has one number, or two.
CHANCE_NUMBERS_MIN = 3

# Encodings within encodings are read so deep: a token in an address in a document in base64.
DEPTH_MAX = 2
# Below this nothing is a secret: a name, a sign and the shortest value.
CHARS_MIN = 8
# Without a word so long, a text holds no key with a mark, and no encoding of one.
_WORD_CHARS_MIN = 14
# So much of what was decoded must be text for the whole to be one.
_TEXT_SHARE_MIN = 0.9
# Names of values in small letters; without a long word only what stands beside one of them may be a secret.
_NAMES = (
    *(
        "pass",
        "pwd",
        "pw",
        "pin",
        "otp",
        "kennwort",
        "wachtwoord",
        "senha",
        "contrase",
        "key",
        "secret",
        "token",
        "credential",
    ),
    *("bearer", "ssws", "auth", "cookie", "sess", "wifi:", "identified", " -"),
    *("p@ss", "psk", "heslo", "hasło", "haslo", "senord", "sid", "парол", "密", "パスワ"),
)

# `secret:KIND#DIGITS`, a handle; `[secret NAME]` and `[exposed secret NAME]`, marks of the vault.
HANDLE = regex(r"secret:([a-z0-9_]{1,40})#([0-9a-f]{12,32})")
_STANDING = regex(r"secret:[a-z0-9_]{1,40}#[0-9a-f]{12,32}|\[(?:exposed )?secret [^\]\n]{1,200}\]")

# An escape of JSON belongs to the text around a run.
_BASE64 = regex(r"(?<!\\)[A-Za-z0-9+/_-]{16,}(?:(?:\r?\n|\\n)[A-Za-z0-9+/_-]{16,})*={0,2}")
_HEX = regex(r"[0-9A-Fa-f]{24,}")
_HEX_ESCAPED = regex(r"(?:\\x[0-9A-Fa-f]{2}){12,}")
_UNBROKEN = regex(r"[^\s\"'<>]{8,}")
_ESCAPE = regex(r"%([0-9A-Fa-f]{2})")
_BREAKS = regex(r"\r?\n|\\n")
_LINE = regex(r"(?<!\\)[A-Za-z0-9+/_-]{16,}={0,2}")
_STANDARD = str.maketrans("-_", "+/")
# A text among other bytes, of the length of the shortest secret.
_PIECE = regex(rb"[\t\r\n -~]{10,}")
_PRINTED = bytes(range(32, 127)) + b"\t\r\n"
_TOKEN = regex(r"(?<!\\)[A-Za-z0-9+/_-]{32,}={0,2}")
_LABEL = regex(r"[a-z]{2,16}[-_]")
# Where letters by chance are public: an address, a certificate or a public key, a decentralised identifier, a checksum.
_PUBLIC = regex(
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'<>]*"
    r"|-----BEGIN (?!(?:[A-Z0-9]{1,20} ){0,3}PRIVATE)[A-Z0-9 ]{1,60}-----[^-]*"
    r"|did:[a-z0-9]{1,20}:[A-Za-z0-9._:%-]*"
    r"|(?:sha(?:1|224|256|384|512)|md5|h1|blake[0-9a-z]{1,4})[-:=][A-Za-z0-9+/=_-]*"
    r"|(?:ssh-[a-z0-9]{2,10}|ecdsa-[a-z0-9-]{4,30}) [A-Za-z0-9+/=]*"
    r"|;base64,[A-Za-z0-9+/=_-]*"
    r"|pub(?:lic)?[_ -]?key[^A-Za-z0-9+/]{1,6}[A-Za-z0-9+/=_-]*"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
# How pictures, archives, documents, certificates, public keys and multihashes begin in base64 and base58.
_DATA = (
    "iVBOR",
    "/9j/",
    "R0lGOD",
    "UEsDB",
    "JVBERi0",
    "H4sI",
    "UklGR",
    "AAAA",
    "MII",
    "MCowBQYDK2V",
    "MFkwEwYHKo",
    "MHYwEAYHKo",
    "Qm",
    "bafy",
)
# What most ids of sessions and requests are: public, and too short a hexadecimal run to be an encoding.
_UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_CHARS = 36
# The address of an account in a public ledger.
_LEDGER = regex(r"[13][1-9A-HJ-NP-Za-km-z]{31,34}")
# Lines of data have 60, 64 or 76 letters.
_LINE_CHARS_MIN = 60
_LINES_CHARS = 160
_LINE_BEFORE = regex(r"(?:^|\n|\\n)[A-Za-z0-9+/]{60,}(?:\r?\n|\\n)$")
_LINE_BEHIND = regex(r"(?:\r?\n|\\n)[A-Za-z0-9+/]{2,}={0,2}(?:\s|\\n|\"|$)")


# Every literal with its shape; and for each how it begins, or that it is too short to have a triple.
_LITERALS = [(shape, literal) for shape in SHAPES for literal in shape.literals]
_SHORT = [place for place, (_, literal) in enumerate(_LITERALS) if len(literal) < 3]
_TRIPLES: dict[tuple[str, ...], list[int]] = {}
for _place, (_, _literal) in enumerate(_LITERALS):
    if len(_literal) >= 3:
        _TRIPLES.setdefault(tuple(_literal[:3].lower()), []).append(_place)
# In longer texts it is cheaper to look for every literal.
_TRIPLES_CHARS_MAX = 4096


class FoundSecret(NamedTuple):
    """A secret in a text: what kind it is, and where it stands."""

    kind: str
    start: int
    end: int


def secrets_in(text: str) -> tuple[FoundSecret, ...]:
    """Every secret in a text, in order; no two overlap."""
    return _settled(text, _search(text, 0)) if _may_hold_one(text) else ()


def _may_hold_one(text: str) -> bool:
    """Whether a text is worth a search. Most short ones are words of people, without a long word or a telling name."""
    if len(text) < CHARS_MIN or (len(text) == _UUID_CHARS and _UUID.fullmatch(text) is not None):
        return False
    return _matches(_telling(), text.lower())


def _matches(matcher: Callable[[str], bool], text: str) -> bool:
    try:
        return matcher(text)
    except ValueError:
        return True  # Half a surrogate pair is nothing that people write.


@cache
def _telling() -> Callable[[str], bool]:
    """Finds a long word or a telling name in small letters."""
    return text_matcher("|".join([rf"\S{{{_WORD_CHARS_MIN}}}", *map(re.escape, _NAMES)]))


@cache
def _marked() -> Callable[[str], bool]:
    """Finds a literal of a shape that has a triple, in small letters."""
    marks = dict.fromkeys(literal.lower() for _, literal in _LITERALS if len(literal) >= 3)
    return text_matcher("|".join(map(re.escape, marks)))


def without_secrets(text: str, mark: Callable[[str, str], str]) -> str:
    """The text with a mark in place of every secret, made of its kind and its value."""
    found = secrets_in(text)
    if not found:
        return text
    parts, end = [], 0
    for kind, start, stop in found:
        parts += [text[end:start], mark(kind, text[start:stop])]
        end = stop
    return "".join([*parts, text[end:]])


def covered(text: str) -> str:
    """The text with the kind in place of every secret, for what belongs to no run that could keep its value."""
    return without_secrets(text, lambda kind, _: f"[secret:{kind}]")


def _search(text: str, depth: int) -> Iterator[FoundSecret]:
    """What may be a secret; pieces may overlap, and those that tell most come first."""
    yield from _shaped(text)
    if depth < DEPTH_MAX:
        if "%" in text:
            yield from _percent_encoded(text, depth)
        for run in _HEX_ESCAPED.finditer(text) if "\\x" in text else ():
            yield from _encoded(run.span(), _from_hex(run[0]), depth)
        for run in _BASE64.finditer(text):
            # Every digit of the one is a letter of the other.
            for digits in _HEX.finditer(text, *run.span()):
                yield from _encoded(digits.span(), _from_hex(digits[0]), depth)
            yield from _encoded(run.span(), _from_base64(run[0]), depth)
            if _BREAKS.search(run[0]) is not None:
                # Several lines may be one secret, or each a secret of its own.
                for line in _LINE.finditer(text, *run.span()):
                    yield from _encoded(line.span(), _from_base64(line[0]), depth)
    yield from _by_chance(text)


def _shaped(text: str) -> Iterator[FoundSecret]:
    folded = text.lower()
    if len(folded) != len(text):
        # A few letters grow when they are made small; nothing that is looked for is among them.
        folded = text.encode("ascii", "replace").decode().lower()
    for shape, literal in _candidates(folded):
        where = folded if shape.is_folded else text
        at = where.find(literal)
        while at >= 0:
            found = _matched(shape, text, at)
            if found is not None:
                yield found
            at = where.find(literal, at + len(literal) if found is None else max(found.end, at + len(literal)))


def _candidates(folded: str) -> list[tuple[Shape, str]]:
    """The literals that a text in small letters may hold, in the order of their shapes: of a short one by its triples."""
    if len(folded) > _TRIPLES_CHARS_MAX:
        return _LITERALS
    if not _matches(_marked(), folded):
        return [_LITERALS[place] for place in _SHORT]
    places: set[int] = set(_SHORT)
    for triple in _TRIPLES.keys() & set(zip(folded, folded[1:], folded[2:], strict=False)):
        places.update(_TRIPLES[triple])
    return [_LITERALS[place] for place in sorted(places)]


def _matched(shape: Shape, text: str, at: int) -> FoundSecret | None:
    """The secret whose literal stands here, if it is one."""
    found = shape.pattern.match(text, at)
    if found is None:
        return None
    start, before = at, text[max(at - BEFORE_CHARS_MAX, 0) : at]
    if shape.before is not None:
        begun = shape.before.search(before)
        if begun is None:
            return None
        start = at - len(begun[0])
    if shape.is_one is not None and not shape.is_one(found, before):
        return None
    return FoundSecret(shape.kind, *(value_span(found) or (start, found.end())))


def _encoded(span: tuple[int, int], decoded: Iterator[bytes], depth: int) -> Iterator[FoundSecret]:
    """The run of an encoding if what it decodes to holds a secret, among texts or among other bytes."""
    for data in decoded:
        for piece in _PIECE.findall(data):
            text = piece.decode()
            for inner in _settled(text, _search(text, depth + 1)):
                yield FoundSecret(inner.kind, *span)
                return


def _from_hex(run: str) -> Iterator[bytes]:
    """What a run decodes to from its first digit on, and from its second."""
    digits = run.replace("\\x", "")
    for first in (0, 1):
        yield bytes.fromhex(digits[first : len(digits) - (len(digits) - first) % 2]).replace(b"\0", b"")


def _from_base64(run: str) -> Iterator[bytes]:
    """What a run decodes to from each of its first four letters on: words before it may have been taken for a part of it.

    A text of sixteen bits a letter, as some shells write it, has a zero in every second place.
    """
    letters = _BREAKS.sub("", run).rstrip("=").translate(_STANDARD)
    for first in range(4):
        whole = len(letters) - first
        # A single letter at the end is less than a byte.
        piece = letters[first : len(letters) - (whole % 4 == 1)]
        yield base64.b64decode(piece + "=" * (-len(piece) % 4)).replace(b"\0", b"")


def _percent_encoded(text: str, depth: int) -> Iterator[FoundSecret]:
    for run in _UNBROKEN.finditer(text):
        if _ESCAPE.search(run[0]) is None:
            continue
        letters: list[str] = []
        places: list[int] = []
        end = 0
        for escape in _ESCAPE.finditer(run[0]):
            letters += run[0][end : escape.start()]
            places += range(end, escape.start())
            letters.append(chr(int(escape[1], 16)))
            places.append(escape.start())
            end = escape.end()
        letters += run[0][end:]
        places += range(end, len(run[0]) + 1)
        decoded = "".join(letters)
        for kind, start, stop in _settled(decoded, _search(decoded, depth + 1)):
            yield FoundSecret(kind, run.start() + places[start], run.start() + places[stop])


def _by_chance(text: str) -> Iterator[FoundSecret]:
    public: list[tuple[int, int]] | None = None
    for token in _TOKEN.finditer(text):
        if not _is_chance(token[0]):
            continue
        if public is None:
            public = [found.span() for found in _PUBLIC.finditer(text)]
        start, end = token.span()
        if not any(first < end and start < last for first, last in public) and not _is_among_data(text, start, end):
            yield FoundSecret(CHANCE, start, end)


def _is_chance(value: str) -> bool:
    # Many identifiers begin with a word that says what they identify.
    label = _LABEL.match(value)
    bare = value[label.end() if label else 0 :].rstrip("=")
    if not CHANCE_CHARS_MIN <= len(bare) <= CHANCE_CHARS_MAX or bare.startswith(_DATA) or _LEDGER.fullmatch(bare):
        return False
    kinds = "".join(["d" if letter.isdigit() else "u" if letter.isupper() else "l" for letter in bare])
    numbers = sum(kind == "d" and before != "d" for before, kind in pairwise("l" + kinds))
    if numbers < CHANCE_NUMBERS_MIN or not {"u", "l"} <= set(kinds):
        return False
    changes = sum(before != kind for before, kind in pairwise(kinds))
    if changes < CHANCE_CHANGES_MIN * len(bare) or _bits(bare) < CHANCE_BITS_MIN:
        return False
    # Words in base64 look like chance; what they say was searched.
    data = next(_from_base64(value))
    return len(data.translate(None, _PRINTED)) > (1 - _TEXT_SHARE_MIN) * len(data)


def _is_among_data(text: str, start: int, end: int) -> bool:
    """Whether this is a line of data: behind a whole line of it, or whole and before one."""
    before, behind = text[max(start - _LINES_CHARS, 0) : start], text[end : end + _LINES_CHARS]
    is_last = _LINE_BEFORE.search(before) is not None
    return is_last or (end - start >= _LINE_CHARS_MIN and _LINE_BEHIND.match(behind) is not None)


def _bits(value: str) -> float:
    counts = [value.count(letter) / len(value) for letter in set(value)]
    return -sum(share * log2(share) for share in counts)


def _settled(text: str, found: Iterator[FoundSecret]) -> tuple[FoundSecret, ...]:
    """The findings in order, those that overlap made one under the name of the first that was found."""
    standing = [mark.span() for mark in _STANDING.finditer(text)] if "secret" in text else []
    ranked = [
        (each.start, each.end, rank, each.kind)
        for rank, each in enumerate(found)
        if not any(first < each.end and each.start < last for first, last in standing)
    ]
    settled: list[tuple[int, int, int, str]] = []
    for start, end, rank, kind in sorted(ranked):
        if settled and start < settled[-1][1]:
            last = settled.pop()
            first = min((last[2], last[3]), (rank, kind))
            settled.append((last[0], max(last[1], end), *first))
        else:
            settled.append((start, end, rank, kind))
    return tuple([FoundSecret(kind, start, end) for start, end, _, kind in settled])
