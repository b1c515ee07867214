"""Tools that leave a line in a ledger for each of their effects, by the key of the call."""

import os
from pathlib import Path
from typing import Literal

from remit import tool
from remit.core.record import JsonObject
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.kit import Kit
from remit.tool.registry import Registry

# Names the file that the effects of tools are noted in.
LEDGER_VARIABLE, TOOL_VARIABLE = "PAYMENT_LEDGER", "PAYMENT_TOOL"


def effects() -> list[str]:
    """The keys of the calls that had an effect, in their order."""
    ledger = Path(os.environ[LEDGER_VARIABLE])
    return ledger.read_text().split() if ledger.exists() else []


def _act(key: str) -> Literal["paid"]:
    with Path(os.environ[LEDGER_VARIABLE]).open("a") as ledger:
        ledger.write(f"{key}\n")
    return "paid"


def _is_noted(key: str) -> bool:
    return key in effects()


@tool(effect="external", network=True, asks=["pay"])
def pay(idempotency_key: str) -> Literal["paid"]:
    """Pay; it cannot be said whether it was done."""
    return _act(idempotency_key)


@tool(effect="external", network=True, asks=["pay"], reconcile=_is_noted)
def pay_by_book(idempotency_key: str) -> Literal["paid"]:
    """Pay, and keep books."""
    return _act(idempotency_key)


@tool(effect="external", network=True, asks=["pay"], idempotent=True)
def pay_once(idempotency_key: str) -> Literal["paid"]:
    """Pay, once for a key."""
    return _act(idempotency_key)


def kit() -> Kit:
    """The kit, the same in every process."""
    replies: list[JsonObject] = [
        {"tool_calls": [{"name": os.environ[TOOL_VARIABLE], "arguments": {}}]},
        {"text": "That is all."},
    ]
    engine = ScriptedEngine(replies)
    return Kit({engine.model_info().name: engine}, Registry([pay, pay_by_book, pay_once]))
