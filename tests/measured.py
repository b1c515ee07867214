"""Coverage counted by several workers: each saves what it counted before it says that it is done.

A worker that saves only while its process exits may be cut off by a busy machine, and the rooms it had tested would then
read as untested. So a worker saves at the end of its session, says where, and the process that handed out the tests looks.
"""

from pathlib import Path

import pytest
from coverage import Coverage, CoverageData
from coverage.exceptions import CoverageException

# What a worker says of the file that it has written.
SAVED = "coverage_saved"


def save(config: pytest.Config) -> None:
    """Save what this worker has counted, if anything is counted at all, and name the file to the main process."""
    output, counter = getattr(config, "workeroutput", None), Coverage.current()
    if output is None or counter is None:
        return
    counter.stop()
    counter.save()
    output[SAVED] = counter.get_data().data_filename()


def is_counted() -> bool:
    """Whether coverage is counted in this process."""
    return Coverage.current() is not None


def loss(worker: str, saved: str | None) -> str:
    """What is wrong with the file of a worker; empty when it is there and can be read."""
    if saved is None:
        return f"worker {worker} ended without saying where its coverage data is"
    if not Path(saved).exists():
        return f"worker {worker} saved its coverage data to {saved}, which is not there"
    data = CoverageData(saved)
    try:
        data.read()
    except CoverageException as error:
        return f"the coverage data of worker {worker} cannot be read: {error}"
    return "" if data.measured_files() else f"the coverage data of worker {worker} at {saved} names no file"
