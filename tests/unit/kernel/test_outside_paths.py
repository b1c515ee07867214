"""Which arguments of a call point outside of the folder that its tool works in."""

from typing import Any

import pytest

from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import ToolDefinition
from remit.kernel.authority.outside_paths import paths_outside

PUT = ToolDefinition(
    "put",
    "put",
    {"type": "object", "properties": {"x": {}, "text": {}, "whither": {}}},
    control_args=(("x", "path"),),
    trust=Trust(payload_args=("text", "file")),
)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": "/etc/passwd"},
        {"x": "a/../b"},
        {"x": ".."},
        {"x": "$HOME/a"},
        {"x": "s3://bucket/a"},
        {"x": "file:///etc"},
        {"x": "\\\\share\\a"},
        {"path": "~"},
        {"outputPath": "/tmp/my file"},
        {"output-dir": "C:/x"},
        {"files": ["a", "/b"]},
        {"where": {"path": "/a"}},
        {"file": "/payload/or/not"},
        {"whither": " /etc/cron.d/job "},
        {"whither": ["../a"]},
        {"whither": "D:\\x"},
    ],
)
def test_paths_that_are_absolute_or_climb_point_outside(arguments: dict[str, Any]) -> None:
    assert paths_outside(arguments, PUT) == list(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": "a/b.txt"},
        {"x": "a..b"},
        {"x": None},
        {"path": 3},
        {"text": "/etc/passwd"},
        {"files": ["a", "b/c"]},
        {"where": {"path": "a", "line": 3}},
        {"whither": "a/b.txt"},
        {"whither": "/* a comment */ x = 1"},
        {"whither": "go to /etc/passwd and back"},
        {"whither": None},
    ],
)
def test_everything_else_does_not(arguments: dict[str, Any]) -> None:
    assert paths_outside(arguments, PUT) == []


def test_a_path_that_is_too_long_to_be_shown_may_lead_anywhere() -> None:
    assert paths_outside({"x": None, "whither": None, "path": "a"}, PUT, is_whole=False) == ["x"]
