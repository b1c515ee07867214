"""What is in doubt because signed turns are missing, as it is told to people and programs."""

from remit.core.record import Record


class RunInDoubt(Record):
    """A run of which turns were signed that are not here."""

    run_id: str
    # The last turn that is here, and the last that was signed; how the run ended there, if it did.
    last: int
    signed: int
    ending: str = ""
    # What it was about to do, or was doing, when its last turn here was written.
    may_have_done: tuple[str, ...] = ()
    # Why nobody can tell whether turns are missing; empty where it is known that they are.
    why: str = ""


class StoreInDoubt(Record):
    """What a store has lost, as far as its log of heads knows."""

    runs: tuple[RunInDoubt, ...] = ()
    # Runs of which nothing is left, and that nobody deleted.
    missing: tuple[RunInDoubt, ...] = ()
    is_log_lost: bool = False
    is_log_damaged: bool = False
