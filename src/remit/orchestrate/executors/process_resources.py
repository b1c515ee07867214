"""The resources of a process that performs errands: what they need beside the kit of their run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from remit.core.record import Text
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.ports import Clock
from remit.tool.secrets.vault import NO_SECRETS, Vault


def _unheard(run_id: str, report: Report) -> None:
    """Tell no run."""


async def _free(run_id: str, command_id: str) -> bool:
    """No call is ever taken back."""
    return True


@dataclass(frozen=True, slots=True)
class ProcessResources:
    """Long texts, secrets, halts and the time, as they are at hand here.

    `claim` says whether a call that changes something may begin, and `is_wanted` whether one whose claim took long still may
    (None where no other process gives a call up). `on_late` is told of an outcome that comes when no caller waits for it any
    more.
    """

    text: Callable[[Text], Awaitable[str]]
    vault: Vault = NO_SECRETS
    sealer: Sealer | None = None
    halts: Halts | None = None
    clock: Clock | None = None
    on_late: Callable[[str, Report], None] = _unheard
    claim: Callable[[str, str], Awaitable[bool]] = _free
    # Who hears what models say; None where none can.
    bus: Bus | None = None
    is_wanted: Callable[[str, str], Awaitable[bool]] | None = None
