"""Ballots: the candidates of a vote, read, told apart and put into groups, and whether the leader can still be overtaken.

Rule 1: two candidates are equal when their keys are: the canonical form of a JSON answer, the bare text of any other.
Rule 2: groups and tallies stand in the order in which they were first seen; the first of them wins a tie.
Rule 3: sums are exact before they are rounded, so that adding in another order gives the same winner.
"""

import json
from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import DEPTH_MAX, CanonicalFault, NotCanonical, canonical_json
from remit.core.journal.codec import read_json

VOTING_INVALID = "VOTING_INVALID"

# Votes are taken among three to fifty answers; similarity compares every pair of them.
CANDIDATES_MAX = 256


class ComparedCandidate(NamedTuple):
    """A candidate as it is compared: by its key when only equality counts, else by its value."""

    key: str
    value: Any


def compared_candidates(candidates: Sequence[str]) -> list[ComparedCandidate]:
    """Every candidate as it is compared; equal texts are read once."""
    if len(candidates) > CANDIDATES_MAX:
        message = f"{len(candidates)} candidates are more than candidates_max={CANDIDATES_MAX}; ask fewer replicas"
        raise RequestRejected(VOTING_INVALID, message)
    read: dict[str, ComparedCandidate] = {}
    for text in candidates:
        if text not in read:
            read[text] = _read(text.strip())
    return [read[text] for text in candidates]


def _read(text: str) -> ComparedCandidate:
    try:
        value = read_json(text)
        return ComparedCandidate(json_key(value), value)
    except (ValueError, RecursionError):
        return ComparedCandidate(text, text)  # It is no JSON, or nests too deep to have a canonical form.


def json_key(value: Any) -> str:
    """The key by which JSON values are told apart; raises ValueError for one that nests too deep."""
    try:
        return canonical_json(value).decode()
    except NotCanonical as fault:
        if fault.code is not CanonicalFault.INTEGER_TOO_LARGE:
            raise
        # Numbers of orders and accounts may be longer than a double is exact; two that differ are two answers.
        return json.dumps(_exact(value, DEPTH_MAX), sort_keys=True, separators=(",", ":"))


def _exact(value: Any, levels_left: int) -> Any:
    """The value with 1 for 1.0; raises ValueError where it nests too deep."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, dict | list):
        return value
    if levels_left == 0:
        raise ValueError(f"value nests deeper than depth_max={DEPTH_MAX}")
    if isinstance(value, list):
        return [_exact(item, levels_left - 1) for item in value]
    return {name: _exact(member, levels_left - 1) for name, member in value.items()}


def keys_of(candidates: Sequence[str]) -> list[str]:
    """The key by which each candidate is told apart."""
    return [answer.key for answer in compared_candidates(candidates)]


def equal_groups(keys: Sequence[str]) -> list[list[int]]:
    """The places of equal keys, the group seen first in front."""
    groups: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def is_beyond_reach(tallies: Sequence[Sequence[float]], left: Sequence[float]) -> bool:
    """Whether the leader stays ahead even if all that is left goes to one rival; of equals the first one seen leads."""
    sums = [fsum(tally) for tally in tallies]
    lead = max(sums, default=0.0)
    if not lead:
        return not any(left)
    leader = sums.index(lead)
    reached = [fsum([*tally, *left]) for tally in tallies]
    behind = [*reached[leader + 1 :], fsum(left)]  # The last is an answer that was not given yet.
    return all(rival < lead for rival in reached[:leader]) and all(rival <= lead for rival in behind)
