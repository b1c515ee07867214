"""Shipped for users too: builders of scripts, SimulatedWorld, laws and conformance suites.

A test imports all of it from here; each name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.testing.conformance.answers import ANSWERS_CHECKS
    from remit.testing.conformance.bell import BELL_CHECKS
    from remit.testing.conformance.blobs import BLOBS_CHECKS
    from remit.testing.conformance.catalogue import CATALOGUE_CHECKS
    from remit.testing.conformance.checkup import CHECKUP_CHECKS
    from remit.testing.conformance.dispatch import DISPATCH_CHECKS, in_process_dispatch
    from remit.testing.conformance.engine import (
        ENGINE_CHECKS,
        Situation,
        a_dropped_connection_is_a_fault_that_costs,
        checks_without,
    )
    from remit.testing.conformance.feed import FEED_CHECKS
    from remit.testing.conformance.halts import HALTS_CHECKS
    from remit.testing.conformance.head_log import HEAD_LOG_CHECKS
    from remit.testing.conformance.inbox import INBOX_CHECKS
    from remit.testing.conformance.index import INDEX_CHECKS, KEPT_INDEX_CHECKS
    from remit.testing.conformance.journal import JOURNAL_CHECKS
    from remit.testing.conformance.key import KEY_CHECKS
    from remit.testing.conformance.leases import LEASES_CHECKS
    from remit.testing.conformance.ledger import LEDGER_CHECKS
    from remit.testing.conformance.receipts import RECEIPTS_CHECKS
    from remit.testing.conformance.redactions import REDACTIONS_CHECKS
    from remit.testing.conformance.retention import RETENTION_CHECKS
    from remit.testing.conformance.seals import SEALS_CHECKS
    from remit.testing.conformance.snapshots import SNAPSHOTS_CHECKS
    from remit.testing.conformance.two_handles import TWO_HANDLES_CHECKS
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
        "conformance.dispatch": "DISPATCH_CHECKS in_process_dispatch",
        "conformance.answers": "ANSWERS_CHECKS",
        "conformance.bell": "BELL_CHECKS",
        "conformance.blobs": "BLOBS_CHECKS",
        "conformance.catalogue": "CATALOGUE_CHECKS",
        "conformance.checkup": "CHECKUP_CHECKS",
        "conformance.feed": "FEED_CHECKS",
        "conformance.halts": "HALTS_CHECKS",
        "conformance.head_log": "HEAD_LOG_CHECKS",
        "conformance.inbox": "INBOX_CHECKS",
        "conformance.index": "INDEX_CHECKS KEPT_INDEX_CHECKS",
        "conformance.journal": "JOURNAL_CHECKS",
        "conformance.key": "KEY_CHECKS",
        "conformance.leases": "LEASES_CHECKS",
        "conformance.ledger": "LEDGER_CHECKS",
        "conformance.receipts": "RECEIPTS_CHECKS",
        "conformance.redactions": "REDACTIONS_CHECKS",
        "conformance.retention": "RETENTION_CHECKS",
        "conformance.seals": "SEALS_CHECKS",
        "conformance.snapshots": "SNAPSHOTS_CHECKS",
        "conformance.two_handles": "TWO_HANDLES_CHECKS",
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
