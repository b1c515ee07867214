"""The reader of JSON accepts and rejects what the JSON Parsing Test Suite says."""

import base64
from typing import Any

import msgspec
import pytest

from tests.vectors import vectors

CASES = vectors("json_parsing_suite.json.gz")["cases"]


def verdict(text: bytes) -> str:
    """What the reader does; anything but a value or these errors would break the suite."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "reject"
    return "accept"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_reader_does_what_the_suite_expects(case: dict[str, Any]) -> None:
    allowed = {"accept", "reject"} if case["expect"] == "either" else {case["expect"]}
    assert verdict(base64.b64decode(case["data"])) in allowed
