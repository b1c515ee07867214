"""What the hands log can be found by its run: every record carries the identifiers, or says that it is about no run."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import Source, expect_none, source, sources

LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
FIELDS = "extra"


def unfound(file: Source) -> Iterator[str]:
    """The log calls of a file that pass no identifiers."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and _is_logging(node) and FIELDS not in {word.arg for word in node.keywords}:
            yield file.at(node, f"pass {FIELDS}=run_fields(...), or {FIELDS}=NO_RUN where it is about no single run")


def _is_logging(call: ast.Call) -> bool:
    called = call.func
    return (
        isinstance(called, ast.Attribute)
        and called.attr in LEVELS
        and isinstance(called.value, ast.Name)
        and called.value.id in {"_log", "logging"}
    )


def test_every_log_call_of_the_hands_passes_identifiers() -> None:
    expect_none(complaint for file in sources("src/remit/orchestrate") for complaint in unfound(file))


def test_the_tool_room_leaves_logging_to_those_who_know_the_run() -> None:
    expect_none(
        file.at(node, "let the executor log it, with the run's identifiers")
        for file in sources("src/remit/tool")
        for node in file.nodes
        if isinstance(node, ast.Call) and _is_logging(node)
    )


@pytest.mark.parametrize("text", ['_log.warning("it broke")', '_log.exception("run %s broke", run_id)'])
def test_a_call_without_identifiers_is_found(text: str) -> None:
    assert list(unfound(source("src/remit/orchestrate/loop/hub.py", text)))


@pytest.mark.parametrize("text", ['_log.warning("it broke", extra=NO_RUN)', 'self.log.append("x")'])
def test_a_call_with_identifiers_is_in_order(text: str) -> None:
    assert not list(unfound(source("src/remit/orchestrate/loop/hub.py", text)))
