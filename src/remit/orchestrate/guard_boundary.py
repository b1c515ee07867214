"""The boundary of a guarded run: a name, an object, or the one that lets provenance decide.

Rule 1: a run that brings no boundary has GUARDED: no effect needs a person for what it is, only for where its values
        come from; its caps stop a lost loop.
Rule 2: an object says how a run differs from GUARDED; a key or a cap that nobody knows is refused by its name.
Rule 3: the guard has no clock: caps of time stand in the boundary and are the caller's to keep.
"""

from typing import Any

from remit.core.boundary import APPROVAL_WAIT_MS_MAX, Boundary, boundary_named
from remit.core.budget import FIELDS, Budget
from remit.core.canonical import INTEGER_MAX
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, Record, replace
from remit.core.tools import Effect
from remit.provenance.authority import Authority, authority_of

GUARD_BOUNDARY_INVALID = "GUARD_BOUNDARY_INVALID"

# A day's work of one agent, so that caps catch a loop and leave the judging to provenance; a person who was asked a
# hundred times about one run does not look any more.
GUARDED = Boundary(
    name="guarded",
    approval_effects=(),
    budget=Budget(tool_calls=1_000, external_api_calls=1_000, side_effects=200, human_reviews=100),
)

KEYS = ("name", "allowed_tools", "approval_effects", "permissions", "budget", "approval_wait_ms_max", "authority")
# A boundary's name stands in every refusal.
NAME_CHARS_MAX = 80
_SHOWN_CHARS_MAX = 80


class GuardTerms(Record):
    """What a guarded run may do, and how far the gate goes without a person."""

    boundary: Boundary = GUARDED
    authority: Authority = Authority()


def terms_of(said: Any) -> GuardTerms:
    """The terms that a start names or writes out; raises RequestRejected for what is none."""
    if said is None:
        return GuardTerms()
    if isinstance(said, str):
        return GuardTerms(GUARDED if said == GUARDED.name else boundary_named(said))
    if not isinstance(said, dict):
        raise _unfit("boundary", said, "a name or a JSON object")
    if unknown := [key for key in said if key not in KEYS]:
        raise _unfit("boundary", unknown[0], f"the keys {', '.join(KEYS)}")
    boundary = Boundary(
        name=_name(said.get("name")),
        allowed_tools=_texts("allowed_tools", said.get("allowed_tools"), GUARDED.allowed_tools),
        approval_effects=_effects(said.get("approval_effects")),
        permissions=_texts("permissions", said.get("permissions"), ()) or (),
        budget=_budget(said.get("budget")),
        approval_wait_ms_max=_cap("approval_wait_ms_max", said.get("approval_wait_ms_max", APPROVAL_WAIT_MS_MAX)),
    )
    return GuardTerms(boundary, authority_of(said.get("authority")))


def _name(value: Any) -> str:
    if value is None:
        return GUARDED.name
    if isinstance(value, str) and 0 < len(value) <= NAME_CHARS_MAX:
        return value
    raise _unfit("name", value, f"a text of 1 to {NAME_CHARS_MAX} characters")


def _texts(key: str, value: Any, fallback: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if value is None:
        return fallback
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise _unfit(key, value, "a list of texts")


def _effects(value: Any) -> tuple[Effect, ...]:
    if value is None:
        return GUARDED.approval_effects
    if isinstance(value, list) and all(isinstance(one, str) and one in list(Effect) for one in value):
        return tuple(Effect(one) for one in value)
    raise _unfit("approval_effects", value, f"a list of {', '.join(Effect)}")


def _budget(value: Any) -> Budget:
    if value is None:
        return GUARDED.budget
    if not isinstance(value, dict):
        raise _unfit("budget", value, f"an object with caps of {', '.join(FIELDS)}")
    if unknown := [key for key in value if key not in FIELDS]:
        raise _unfit("budget", unknown[0], f"caps of {', '.join(FIELDS)}")
    return replace(GUARDED.budget, **{key: _cap(key, cap) for key, cap in value.items()})


def _cap(key: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INTEGER_MAX:
        return value
    raise _unfit(key, value, f"a whole number from 0 to {INTEGER_MAX}")


def _unfit(key: str, value: Any, way_out: str) -> RequestRejected:
    details: JsonObject = {"key": key}
    shown = repr(value)[:_SHOWN_CHARS_MAX]
    return RequestRejected(GUARD_BOUNDARY_INVALID, f"boundary: {key}={shown} cannot be used; use {way_out}", details)
