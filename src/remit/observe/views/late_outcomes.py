"""Outcomes that were in doubt when a run ended, as every view tells them: the doubt, or what was found out since.

Rule 1: of each effect that an ending names as in doubt exactly one thing is told, wherever it is told: that it is unknown what
        became of it, or what its tool said after the ending, and in which turn.
Rule 2: of a call that was said not to have happened and returned after all, that is told, as of one of which nothing else is.
Rule 3: what was found out changes nothing about the ending: nothing is committed after it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from remit.core.journal.rulings import OUTCOME_UNKNOWN
from remit.core.record import BlobRef, Text
from remit.kernel.results.endings import listed_effects
from remit.kernel.results.proven_effects import effects_in_doubt
from remit.kernel.state import RunState
from remit.kernel.traces import LateOutcome

# As much of what a call came to as a line shows; the call itself shows all of it.
RESULT_CHARS_MAX = 200


class FoundOutcome(NamedTuple):
    """What was found out of an effect after the ending: in words, and whether it may have changed anything."""

    told: str
    has_returned: bool


NOTHING_FOUND: Mapping[str, FoundOutcome] = MappingProxyType({})


class EffectsBeneath(NamedTuple):
    """Effects of runs beneath one that has ended, as it names them: those in doubt, and what was found out of others."""

    doubted: tuple[str, ...] = ()
    found: Mapping[str, FoundOutcome] = NOTHING_FOUND


NOTHING_BELOW = EffectsBeneath()


def in_doubt(state: RunState, below: EffectsBeneath = NOTHING_BELOW) -> tuple[str, ...]:
    """The effects that a run ended over, for which it is unknown whether they happened."""
    known = {**found_since(state), **below.found}
    doubted = listed_effects(effects_in_doubt(state))
    denied = {_claim_of(state, command_id) for command_id, late in state.end.late.items() if late.was_denied}
    left = [claim for claim in (*state.end.doubted, *denied) if claim in known or claim in doubted]
    every = dict.fromkeys((*left, *below.doubted, *below.found))
    return tuple([known[claim].told if claim in known else doubt_told(claim) for claim in every])


def found_since(state: RunState) -> dict[str, FoundOutcome]:
    """What was found out of a run's own calls after its ending, by the name that the ending gave each effect."""
    if not state.end.late:
        return {}
    doubted = listed_effects(effects_in_doubt(state))
    found: dict[str, FoundOutcome] = {}
    for command_id, late in state.end.late.items():
        if (claim := _claim_of(state, command_id)) not in doubted:
            told = late_told(claim, late, is_settled=state.calls.made[command_id].code == OUTCOME_UNKNOWN)
            found[claim] = joined_outcomes(found.get(claim), FoundOutcome(told, late.is_returned))
    return found


def _claim_of(state: RunState, command_id: str) -> str:
    """The name of the effect of a call, as endings give it."""
    trace = state.calls.made[command_id]
    (claim,) = listed_effects({(trace.tool, trace.arguments_hash): OUTCOME_UNKNOWN})
    return claim


def joined_outcomes(before: FoundOutcome | None, then: FoundOutcome) -> FoundOutcome:
    """What was found out of two calls that one name stands for."""
    return (
        then
        if before is None
        else FoundOutcome(f"{before.told}; {then.told}", before.has_returned or then.has_returned)
    )


def doubt_told(claim: str) -> str:
    """What a caller is told of an effect in doubt."""
    return f"it is unknown what became of {claim}: find out before it is done again"


def late_told(claim: str, late: LateOutcome, *, is_settled: bool = False) -> str:
    """What a caller is told of an effect whose outcome came after the ending, under way until then or settled as unknown."""
    if late.was_denied:
        return f"{claim} {late_outcome(late)}"
    return f"{claim} was {'in doubt' if is_settled else 'under way'} when the run ended; it {late_outcome(late)}"


def late_outcome(late: LateOutcome) -> str:
    """What became of a call, as was told after the ending; a sentence about it, without its name."""
    if late.was_denied:
        twice = "if it was done again since, it was done twice: find out"
        return (
            f"was said not to have happened and returned after all (turn {late.seq}): {_shown(late.content)}; {twice}"
        )
    if not late.is_returned:
        why = f": {late.reason}" if late.reason else ""
        return f"did not happen, as its tool said after the end (turn {late.seq}){why}"
    if late.code:
        return f"returned after the end (turn {late.seq}) and was contradicted: {late.code}: {late.reason}"
    return f"returned after the end (turn {late.seq}): {_shown(late.content)}"


def _shown(text: Text) -> str:
    if isinstance(text, BlobRef):
        return f"<{text.size_bytes} bytes>"
    return text if len(text) <= RESULT_CHARS_MAX else f"{text[:RESULT_CHARS_MAX]}..."
