"""The boundary of a guarded run: a name, an object, or the one that lets provenance decide.

Rule 1: a run that brings no boundary has GUARDED: no effect needs a person for what it is, only for where its values
        come from; its caps stop a lost loop.
Rule 2: an object has the keys of a boundary file, some of them without their group as well, and says how a run differs
        from GUARDED, or from the boundary it extends; a key or a cap that nobody knows is refused by its name.
Rule 3: caps of the run's own time and of its model stand in the boundary and are the caller's to keep.
Rule 4: the guard is the gate, so a boundary without one has the standard options here.
"""

from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Authority, authority_of
from remit.core.limits.boundary import Boundary
from remit.core.limits.profiles import GUARDED, boundary_named
from remit.core.record import replace

GUARD_BOUNDARY_INVALID = "GUARD_BOUNDARY_INVALID"

_SHOWN_CHARS_MAX = 80


def boundary_of(said: Any) -> Boundary:
    """The boundary that a start names or writes out, always with a gate; raises RequestRejected for what is none."""
    if said is None:
        return gated(GUARDED)
    if isinstance(said, str):
        return gated(boundary_named(said))
    if not isinstance(said, dict):
        shown = repr(said)[:_SHOWN_CHARS_MAX]
        message = f"boundary={shown} cannot be used; use a name or a JSON object"
        raise RequestRejected(GUARD_BOUNDARY_INVALID, message, {"key": "boundary"})
    # Only those who write a boundary out pay for its reader.
    from remit.orchestrate.boundaries.boundary_file import boundary_from
    from remit.orchestrate.boundaries.boundary_shape import FLAT

    # Its options are refused under their own code.
    authority_of(said.get("authority"))
    # Null counts as absent, as everywhere in the protocol.
    present = {key: value for key, value in said.items() if value is not None}
    return gated(boundary_from(present, base=GUARDED, code=GUARD_BOUNDARY_INVALID, flat=FLAT))


def gated(boundary: Boundary) -> Boundary:
    """The boundary with a gate, which the guard is."""
    return boundary if boundary.authority is not None else replace(boundary, authority=Authority())
