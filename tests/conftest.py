"""What all tests share: a failing example says how to play it again, and a slow machine fails nothing."""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import measured
from tests.tidy.source import ROOT

# A worker counts from before the first import of the house; the process that hands out the tests adds up.
COUNTER = measured.Counter() if measured.REPORT and measured.is_worker() else None
SUM = measured.Sum() if measured.REPORT and not measured.is_worker() else None

# Leaves of the house, which nothing else stands on, and rules that read every test there is: the inner loop leaves them
# out, and the whole test run has them all.
LEAVES = (
    "tests/tidy/test_later",
    "tests/tidy/test_reached",
    "tests/tidy/test_tests",
    "tests/unit/inference/test_anthropic",
    "tests/unit/inference/test_openai",
    "tests/unit/inference/test_local",
    "tests/unit/inference/test_gguf",
    "tests/unit/adapters/",
    "tests/unit/constraint/",
    "tests/unit/provenance/",
    "tests/unit/validate/",
    "tests/property/test_cost",
    "tests/property/test_snapshot",
    "tests/property/test_tracing",
    "tests/unit/testing/",
    "tests/unit/tool/builtin/",
)

# Coverage is counted for these, unless they say otherwise: laws and what plays for long cover nothing that shorter tests
# do not.
MEASURED = "tests/unit/"

# What is looked at where a test does not say how much: by the inner loop, by the whole test run, and by the long one.
settings.register_profile("tested", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("quick", settings.get_profile("tested"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("tested"), max_examples=400)
settings.load_profile(os.environ.get("REMIT_EXAMPLES", "tested"))


# Whoever starts the tests in the background of a shell has them ignore interrupts; what they start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Stores that tests make are entered in a list of their own, never in that of whoever runs the tests.
_LISTS = tempfile.mkdtemp(prefix="remit-trust-")
atexit.register(shutil.rmtree, _LISTS, ignore_errors=True)
os.environ["REMIT_TRUST"] = f"{_LISTS}/stores.jsonl"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the tests of leaves as slow, and say for which no coverage is counted."""
    for item in items:
        path = item.path.relative_to(ROOT).as_posix()
        if path.startswith(LEAVES):
            item.add_marker(pytest.mark.slow)
        if not path.startswith(MEASURED):
            item.add_marker(pytest.mark.unmeasured)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands over what it has counted before it is told to go; a lost count fails the run by name."""
    if COUNTER is not None:
        COUNTER.tell(session.config)
    if SUM is not None:
        SUM.write(Path(measured.REPORT))
        if SUM.lost:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was lost, after everything else."""
    for line in SUM.lost if SUM is not None else ():
        terminalreporter.write_line(f"COVERAGE DATA LOST: {line}; the figures would be wrong, run again", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear what the worker that has ended has counted."""
    if SUM is not None:
        SUM.hear(node.gateway.id, getattr(node, "workeroutput", {}))
