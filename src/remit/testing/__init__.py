"""Shipped for users too: builders of scripts, SimulatedWorld, laws and conformance suites.

A test imports all of it from here; each name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.testing.conformance.custody.checkup import CHECKUP_CHECKS
    from remit.testing.conformance.custody.head_log import HEAD_LOG_CHECKS
    from remit.testing.conformance.custody.redactions import REDACTIONS_CHECKS
    from remit.testing.conformance.custody.retention import RETENTION_CHECKS
    from remit.testing.conformance.custody.seals import SEALS_CHECKS
    from remit.testing.conformance.custody.signing_key import KEY_CHECKS
    from remit.testing.conformance.engine import (
        ENGINE_CHECKS,
        Situation,
        a_dropped_connection_is_a_fault_that_costs,
        checks_without,
    )
    from remit.testing.conformance.processes.bell import BELL_CHECKS
    from remit.testing.conformance.processes.dispatch import DISPATCH_CHECKS, in_process_dispatch
    from remit.testing.conformance.processes.feed import FEED_CHECKS
    from remit.testing.conformance.processes.halts import HALTS_CHECKS
    from remit.testing.conformance.processes.inbox import INBOX_CHECKS
    from remit.testing.conformance.processes.leases import LEASES_CHECKS
    from remit.testing.conformance.processes.two_handles import TWO_HANDLES_CHECKS
    from remit.testing.conformance.records.answers import ANSWERS_CHECKS
    from remit.testing.conformance.records.blobs import BLOBS_CHECKS
    from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS
    from remit.testing.conformance.records.index import INDEX_CHECKS, KEPT_INDEX_CHECKS
    from remit.testing.conformance.records.journal import JOURNAL_CHECKS
    from remit.testing.conformance.records.ledger import LEDGER_CHECKS
    from remit.testing.conformance.records.receipts import RECEIPTS_CHECKS
    from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS
    from remit.testing.elsewhere import Elsewhere, KillAt
    from remit.testing.runs import LawBroken, SimulatedRun
    from remit.testing.scripts import Breaks, Reply, Stops, in_turn, proposes, proposes_all, says
    from remit.testing.trouble import CALM, STORM, Faults
    from remit.testing.world import SimulatedWorld, keep_the_law

# fmt: off
__all__ = [
    "ANSWERS_CHECKS", "BELL_CHECKS", "BLOBS_CHECKS", "CALM", "CATALOGUE_CHECKS", "CHECKUP_CHECKS",
    "DISPATCH_CHECKS", "ENGINE_CHECKS", "FEED_CHECKS", "HALTS_CHECKS", "HEAD_LOG_CHECKS", "INBOX_CHECKS",
    "INDEX_CHECKS", "JOURNAL_CHECKS", "KEPT_INDEX_CHECKS", "KEY_CHECKS", "LEASES_CHECKS", "LEDGER_CHECKS", "RECEIPTS_CHECKS",
    "REDACTIONS_CHECKS", "RETENTION_CHECKS", "SEALS_CHECKS", "SNAPSHOTS_CHECKS", "STORM", "TWO_HANDLES_CHECKS",
    "Breaks", "Elsewhere", "Faults", "KillAt", "LawBroken", "Reply", "SimulatedRun", "SimulatedWorld", "Situation",
    "Stops", "a_dropped_connection_is_a_fault_that_costs", "checks_without", "in_process_dispatch", "in_turn",
    "keep_the_law", "proposes", "proposes_all", "says",
]
# fmt: on

# Where each name is loaded from: modules of this room, and the names that they define.
_HOMES = {
    name: f"remit.testing.{home}"
    for home, names in {
        "world": "SimulatedWorld keep_the_law",
        "runs": "LawBroken SimulatedRun",
        "scripts": "Breaks Reply Stops in_turn proposes proposes_all says",
        "trouble": "CALM STORM Faults",
        "elsewhere": "Elsewhere KillAt",
        "conformance.engine": "ENGINE_CHECKS Situation checks_without a_dropped_connection_is_a_fault_that_costs",
        "conformance.processes.dispatch": "DISPATCH_CHECKS in_process_dispatch",
        "conformance.records.answers": "ANSWERS_CHECKS",
        "conformance.processes.bell": "BELL_CHECKS",
        "conformance.records.blobs": "BLOBS_CHECKS",
        "conformance.records.catalogue": "CATALOGUE_CHECKS",
        "conformance.custody.checkup": "CHECKUP_CHECKS",
        "conformance.processes.feed": "FEED_CHECKS",
        "conformance.processes.halts": "HALTS_CHECKS",
        "conformance.custody.head_log": "HEAD_LOG_CHECKS",
        "conformance.processes.inbox": "INBOX_CHECKS",
        "conformance.records.index": "INDEX_CHECKS KEPT_INDEX_CHECKS",
        "conformance.records.journal": "JOURNAL_CHECKS",
        "conformance.custody.signing_key": "KEY_CHECKS",
        "conformance.processes.leases": "LEASES_CHECKS",
        "conformance.records.ledger": "LEDGER_CHECKS",
        "conformance.records.receipts": "RECEIPTS_CHECKS",
        "conformance.custody.redactions": "REDACTIONS_CHECKS",
        "conformance.custody.retention": "RETENTION_CHECKS",
        "conformance.custody.seals": "SEALS_CHECKS",
        "conformance.records.snapshots": "SNAPSHOTS_CHECKS",
        "conformance.processes.two_handles": "TWO_HANDLES_CHECKS",
    }.items()
    for name in names.split()
}

# Hidden from type checkers, for which it would make every name exist.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a name from its home and keep it."""
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'remit.testing' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
