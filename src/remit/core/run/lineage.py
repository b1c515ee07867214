"""Ids of runs, and the lineage of a run: those that it came from, as a child or as another try.

Rule 1: an id is one word of letters, digits, dashes and underscores, so that it can be a token of a subject, a part of a
        path and the name of a file.
Rule 2: the id of a run that another one orders follows from the id of that one and of its command, without chance:
        ordering it twice names the same run. So does that of a guarded conversation from its tenant, the name that its host
        gives it and how many there were before it.
Rule 3: nothing is read from an id. A lineage is pinned in the manifest, the first run first; only runs that were begun
        before it was pinned are named after theirs, and `lifted` alone reads that.
"""

from hashlib import sha256

from remit.core.regex import regex

# Crockford's alphabet: no letter that reads as a digit, so an id can be read out.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BITS_PER_LETTER = 5
# Eighty bits of a digest: a store would need a million million runs before two of them may share an id.
ID_LETTERS = 16
# No file system takes longer names with an ending behind them.
ID_CHARS_MAX = 200

# One word of ASCII: every other sign is a separator or a wildcard of some broker, path or shell.
_SAFE = regex(rf"[A-Za-z0-9_-]{{1,{ID_CHARS_MAX}}}")
# How a run was named that was ordered before ids were derived: after the run that ordered it, and the command.
_NAMED_AFTER = regex(r"(.+)\.[0-9]+\.[0-9]+")


def letters(number: int, count: int) -> str:
    """The lowest bits of a number in so many letters of the alphabet of ids."""
    shifts = range((count - 1) * _BITS_PER_LETTER, -1, -_BITS_PER_LETTER)
    return "".join([_ALPHABET[(number >> shift) & (len(_ALPHABET) - 1)] for shift in shifts])


def derived_id(*parts: str) -> str:
    """The id of the run that follows from these: from a run and a command of it, or what a conversation is known by."""
    # A length before each part: no two lists are written alike.
    told = "".join([f"{len(part)}:{part}" for part in parts])
    digest = sha256(told.encode("utf-8", "surrogatepass")).digest()
    return letters(int.from_bytes(digest), ID_LETTERS)


def is_safe_id(run_id: str) -> bool:
    """Whether a new run may have this id."""
    return _SAFE.fullmatch(run_id) is not None


def lifted(run_id: str) -> tuple[str, ...]:
    """The lineage of a run that was ordered before lineages were pinned, the first run first."""
    lineage: list[str] = []
    while (found := _NAMED_AFTER.fullmatch(run_id)) is not None:
        run_id = found[1]
        lineage.append(run_id)
    return tuple(lineage[::-1])
