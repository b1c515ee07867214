"""What all tests share: a failing example says how to play it again, and a slow machine fails nothing."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests import measured, parsed
from tests.tidy.source import ROOT

# Counts from before the first import of the house.
COUNTER = measured.Counter(Path(measured.REPORT)) if measured.REPORT else None

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


parsed.find_once()

# A shell that starts the tests in the background has them ignore interrupts; what they start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Stores that tests make are entered in a list of their own, never in that of the user who runs the tests.
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


def pytest_collection_finish() -> None:
    """What was collected stays until the end, so that the garbage collector need not look at it again."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Write down what was counted."""
    if COUNTER is not None:
        COUNTER.write()
