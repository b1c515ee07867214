"""Calls of a guarded run that wait for a person, by their ids.

Rule 1: it holds what the run's state has open questions about and nothing else.
Rule 2: the moment at which the next question expires is known, so that nobody has to look at all of them.
"""

from dataclasses import dataclass, field

from remit.core.arrivals import ProposedCall
from remit.core.commands import AskHuman, Packet
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject
from remit.provenance.calls import Scope

CALL_NOT_HELD = "CALL_NOT_HELD"

# No question expires so late.
_NEVER_MS = 2**63
_SHOWN_MAX = 5


@dataclass(slots=True)
class Held:
    """A call that waits: its question, the name by which the gate knows it, and how far each yes went so far."""

    question: AskHuman
    name: str
    shown: JsonObject
    scopes: list[Scope] = field(default_factory=list)

    @property
    def packet(self) -> Packet:
        """What is to be approved."""
        assert self.question.packet is not None, "what is held is a call"
        return self.question.packet

    @property
    def call(self) -> ProposedCall:
        """The call."""
        return self.packet.call


class HeldCalls:
    """The held calls of one run."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._due_ms = _NEVER_MS

    def __contains__(self, call_id: str) -> bool:
        """Whether a call of this id waits."""
        return call_id in self._held

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the calls that wait."""
        return tuple(self._held)

    def get(self, call_id: str) -> Held | None:
        """The held call of this id, if there is one."""
        return self._held.get(call_id)

    def of(self, call_id: str) -> Held:
        """The held call of this id; raises RequestRejected when there is none."""
        held = self._held.get(call_id)
        if held is None:
            known = ", ".join(self.ids[:_SHOWN_MAX]) or "none"
            raise RequestRejected(CALL_NOT_HELD, f"call {call_id!r} is not held; answer one of {known}")
        return held

    def only(self) -> str:
        """The id of the one call that waits, where an answer does not say which."""
        if len(self._held) == 1:
            return self.ids[0]
        shown = ", ".join(self.ids[:_SHOWN_MAX])
        found = f"{len(self._held)} calls are held ({shown}); say which by its id" if shown else "no call is held"
        raise RequestRejected(CALL_NOT_HELD, found)

    def add(self, call_id: str, held: Held) -> None:
        """Hold a call; one that is held again waits for the answer to its new question."""
        self._held[call_id] = held
        self._due_ms = min(self._due_ms, held.question.expires_at_ms)

    def drop(self, call_id: str) -> None:
        """Forget a call that was answered."""
        del self._held[call_id]

    def due(self, at_ms: int) -> tuple[str, ...]:
        """The calls whose questions nobody answered in time."""
        if at_ms < self._due_ms:
            return ()
        expiring = {call_id: held.question.expires_at_ms for call_id, held in self._held.items()}
        self._due_ms = min((moment for moment in expiring.values() if moment > at_ms), default=_NEVER_MS)
        return tuple([call_id for call_id, moment in expiring.items() if moment <= at_ms])
