"""Findings: every fault of a run or of an export of one, with a stable code, and which signed turns are missing."""

from enum import StrEnum

from remit.core.record import Record


class Fault(StrEnum):
    """The faults that verifying a run may find."""

    RUN_EMPTY = "RUN_EMPTY"
    RUN_FOREIGN = "RUN_FOREIGN"
    RUN_NOT_STARTED = "RUN_NOT_STARTED"
    TURN_UNREADABLE = "TURN_UNREADABLE"
    TURN_MISPLACED = "TURN_MISPLACED"
    TURN_AFTER_ENDING = "TURN_AFTER_ENDING"
    CHAIN_BROKEN = "CHAIN_BROKEN"
    TIME_REVERSED = "TIME_REVERSED"
    COMMAND_MISNUMBERED = "COMMAND_MISNUMBERED"
    COMMAND_UNKNOWN = "COMMAND_UNKNOWN"
    BLOB_ALTERED = "BLOB_ALTERED"
    BLOB_REDACTED = "BLOB_REDACTED"
    TURN_REDACTED = "TURN_REDACTED"
    REDACTION_FORGED = "REDACTION_FORGED"
    HEAD_FORGED = "HEAD_FORGED"
    HEAD_FOREIGN = "HEAD_FOREIGN"
    HEAD_MISMATCH = "HEAD_MISMATCH"
    HEAD_BEYOND_JOURNAL = "HEAD_BEYOND_JOURNAL"
    END_HEAD_MISSING = "END_HEAD_MISSING"
    TURN_UNSIGNED = "TURN_UNSIGNED"
    SIGNER_UNTRUSTED = "SIGNER_UNTRUSTED"
    # These belong to stores, which list their runs and keep a log of heads beside them.
    INDEX_DIFFERS = "INDEX_DIFFERS"
    RUN_GONE = "RUN_GONE"
    LOG_GONE = "LOG_GONE"
    HALTS_ALTERED = "HALTS_ALTERED"
    ENTRIES_REFUSED = "ENTRIES_REFUSED"
    # These four belong to exports.
    EXPORT_READING_DIFFERS = "EXPORT_READING_DIFFERS"
    EXPORT_COUNTS_DIFFER = "EXPORT_COUNTS_DIFFER"
    EXPORT_DIGEST_DIFFERS = "EXPORT_DIGEST_DIFFERS"
    EXPORT_SIGNATURE_FORGED = "EXPORT_SIGNATURE_FORGED"


# What is reported and proves nothing against the run.
HARMLESS = frozenset({Fault.BLOB_REDACTED, Fault.TURN_REDACTED, Fault.ENTRIES_REFUSED})


class Finding(Record):
    """One thing that is wrong, or worth knowing. `seq` is the turn it is about, or -1."""

    code: Fault
    message: str
    seq: int = -1


class Verification(Record):
    """What was found. `signed_turns` counts the turns that a signed head vouches for, of `turns` in all."""

    run_id: str
    turns: int
    signed_turns: int
    head: str
    ending: str
    signer: str
    redacted: tuple[str, ...]
    findings: tuple[Finding, ...]
    findings_left_out: int = 0
    # The turns that something was taken out of.
    redacted_turns: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found that a run left alone could not show."""
        return all(finding.code in HARMLESS for finding in self.findings)


class RunInDoubt(Record):
    """A run of which turns were signed that are not here."""

    run_id: str
    # The last turn that is here, and the last that was signed, -1 where that is not known; how the run ended there, if it did.
    last: int
    signed: int
    ending: str = ""
    # What it was about to do, or was doing, when its last turn here was written.
    may_have_done: tuple[str, ...] = ()
    # Why it is unknown whether turns are missing; empty where it is known that they are.
    why: str = ""


class StoreInDoubt(Record):
    """What a store has lost, as far as its log of heads knows."""

    runs: tuple[RunInDoubt, ...] = ()
    # Runs of which nothing is left, and that were not deleted.
    missing: tuple[RunInDoubt, ...] = ()
    is_log_lost: bool = False
    is_log_damaged: bool = False
