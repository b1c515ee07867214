"""The reader of JSON accepts and rejects what the JSON Parsing Test Suite says."""

import base64
import gzip
from typing import Any

import msgspec
import pytest

from tests.vectors import vectors

CASES = vectors("json_parsing_suite.json.gz")["cases"]


def text_of(case: dict[str, Any]) -> bytes:
    data = base64.b64decode(case["data"])
    return gzip.decompress(data) if case["enc"] == "gzip+b64" else data


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
    assert verdict(text_of(case)) in allowed
