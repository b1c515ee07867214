"""Two gates that judge nothing: the suites must find fault with both.

Rule 1: they speak the whole protocol, so that only their judgement is at fault.
"""

from collections.abc import Callable
from typing import Any

Operation = dict[str, Any]


def _always(decision: str) -> Callable[[Operation], Operation | None]:
    def gate(operation: Operation) -> Operation | None:
        if operation["op"] == "call":
            return {"decision": decision, "code": "", "reasons": []}
        return None if operation["op"] == "result" else {"ok": True}

    return gate


def allow_everything() -> Callable[[Operation], Operation | None]:
    """A gate that is no gate."""
    return _always("allow")


def ask_everything() -> Callable[[Operation], Operation | None]:
    """A gate that asks a person about every call."""
    return _always("ask")
