"""Redacting reports: no secret of the vault stands in what becomes an arrival.

Rule 1: a tool's report is redacted by its executor, which may tell it late; every other report where it is received.
Rule 2: what a model said is marked apart: it should never have had a secret, so a call with such an argument is not made,
        and an answer with one is none.
"""

from collections.abc import Callable
from typing import Any

from remit.core.record import Record, replace
from remit.orchestrate.executors.reports import ModelSaid, Report, ToolAccounted, ToolBroke, ToolSaid
from remit.tool.secrets.vault import Vault

OF_TOOLS = (ToolSaid, ToolBroke, ToolAccounted)


def redacted(report: Report, vault: Vault) -> Report:
    """The report without any value of the vault."""
    redactor = vault.redactor
    if not redactor.names:
        return report
    if not isinstance(report, ModelSaid):
        found: Report = _changed(report, redactor.redacted)
        return found

    def exposed(text: str) -> str:
        if name := redactor.value_in(text):
            # A model that can say it knows it. That is no suspicion, so nobody gets it any more.
            vault.revoke(name)
        return redactor.exposed(text)

    known = redactor.value_in(report.result.content) or redactor.value_in(report.result.reasoning)
    said: ModelSaid = _changed(report, exposed)
    return replace(said, exposed=known) if known else said


def received(report: Report, vault: Vault) -> Report:
    """The same for reports of any executor; those of tools come redacted."""
    return report if isinstance(report, OF_TOOLS) else redacted(report, vault)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; a code is no text, though it is written as one."""
    if type(value) is str:
        return change(value)
    if isinstance(value, Record):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        changes = {name: new for name, old in fields if (new := _changed(old, change)) is not old}
        return replace(value, **changes) if changes else value
    if isinstance(value, tuple | list):
        parts = [_changed(part, change) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    if isinstance(value, dict):
        return {_changed(key, change): _changed(part, change) for key, part in value.items()}
    return value
