"""Finding the real gate: the guard of the house, or, while there is none, the gate of provenance behind the same operations.

Rule 1: it is looked up when it is asked for, so that the suites can be read and tested without it.
Rule 2: nothing of the gate is used but what the protocol's operations need.
"""

import importlib
from collections.abc import Callable
from typing import Any

GUARD = "remit.agents.guard_in_memory"
GATE = "remit.provenance.gate"

Operation = dict[str, Any]


def real_gate() -> Callable[[Operation], Operation | None]:
    """What answers the operations of the protocol."""
    if _is_there(GUARD):
        answer: Callable[[Operation], Operation | None] = importlib.import_module(GUARD).GuardInMemory().answer
        return answer
    return Bare().answer


def has_gate() -> bool:
    """Whether the house has anything to test."""
    return _is_there(GUARD) or _is_there(GATE)


def _is_there(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return True


class Bare:
    """The gate without its guard: one gate a run, and an approved call is judged once more, so that it counts as made."""

    def __init__(self) -> None:
        self._gates: dict[str, Any] = {}
        self._held: dict[tuple[str, str], Operation] = {}

    def answer(self, operation: Operation) -> Operation | None:
        """Answer one operation of the protocol."""
        run = operation["run"]
        if operation["op"] == "start":
            return self._start(operation)
        if operation["op"] == "end":
            del self._gates[run]
            return {"ok": True}
        gate = self._gates[run]
        if operation["op"] == "call":
            self._held[run, operation["id"]] = operation
            return self._judged(gate, operation)
        if operation["op"] == "result":
            gate.observe(operation["id"], operation["tool"], operation["content"])
            return None
        gate.answer(operation["id"], operation["approve"], operation["by"])
        if operation["approve"]:
            self._judged(gate, self._held[run, operation["id"]])
        return {"ok": True}

    def _start(self, operation: Operation) -> Operation:
        authority = importlib.import_module("remit.core.limits.authority")
        options = authority.authority_of((operation.get("boundary") or {}).get("authority"))
        self._gates[operation["run"]] = importlib.import_module(GATE).start(
            operation["prompt"], operation["tools"], options, read=operation.get("read", ())
        )
        return {"ok": True}

    def _judged(self, gate: Any, operation: Operation) -> Operation:
        verdict = gate.verdict_on(operation["id"], operation["tool"], operation["args"])
        shown: Operation = importlib.import_module("remit.provenance.gate_verdict").verdict_json(verdict)
        return shown
