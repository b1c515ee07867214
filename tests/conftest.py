"""What all tests share: a failing example says how to play it again, and a slow machine fails nothing."""

import os

import pytest
from hypothesis import settings

from tests.tidy.source import ROOT

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
    "tests/unit/testing/",
    "tests/unit/tool/builtin/",
)

settings.register_profile("remit", deadline=None, print_blob=True)
# The inner loop looks at fewer examples of everything; the whole test run looks at all of them.
settings.register_profile("quick", settings.get_profile("remit"), max_examples=25)
settings.load_profile(os.environ.get("REMIT_EXAMPLES", "remit"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the tests of leaves as slow."""
    for item in items:
        if item.path.relative_to(ROOT).as_posix().startswith(LEAVES):
            item.add_marker(pytest.mark.slow)
