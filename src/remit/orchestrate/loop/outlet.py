"""Outlet: what carries commands to those who perform them, and their reports back; in this process, or through workers.

Rule 1: like all ports, they are satisfied by shape.
Rule 2: once dispatched, a command is performed at least once; its report is taken at most once.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from remit.core.journal.commands import Command
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.loop.live import Live


class Outlet(Protocol):
    """Takes the commands of a runner: the part of a dispatch that a runner needs."""

    def send(self, live: Live, command: Command) -> None:
        """Have a command performed; a CancelCommand has another one stopped. One that is under way is not begun twice."""

    async def receive(self, live: Live) -> Report | None:
        """The next report for a run, or None when nothing is under way that could report."""

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """Whether a call that changes something will certainly not be made. False: it was claimed, or may have been."""

    def carries(self, command: Command) -> bool:
        """Whether sending a command again waits for what an earlier driver sent, and performs nothing twice."""

    def forget(self, live: Live) -> None:
        """Stop performing what is under way for a run that has ended or is no longer driven here."""


class Dispatch(Outlet, Protocol):
    """Carries commands to those who perform them, and their reports back. All that a hub knows of it stands here."""

    def wake(self, live: Live) -> None:
        """Let the driver of a run look at it again: another caller had a report ruled on for it."""

    def call_off(self, live: Live) -> None:
        """Stop whatever is under way for a run and halted by now."""

    async def claim(self, run_id: str, command_id: str) -> bool:
        """Whether a call that changes something may begin, asked by its performer just before; not if revoked, or begun."""

    async def finish(self, run_id: str = "") -> None:
        """Wait until every child that was to be cancelled has been told, and every fork made: of one run, or of all."""

    def under_way(self) -> Sequence[tuple[asyncio.Task[None], str]]:
        """The tasks that have to be waited for before this process leaves, each with its run."""
