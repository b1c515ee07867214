"""A function's source says where to find it again, or that it cannot be found."""

import json
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

from remit.core.run.manifest import Source
from remit.tool.source import LOADED_DIGEST, file_digest, source_of


def at_the_top() -> None: ...


class Desk:
    def method(self) -> None: ...


def made_with(**namespace: object) -> FunctionType:
    function = FunctionType(at_the_top.__code__, dict(namespace), "f")
    function.__qualname__ = "f"
    return function


def test_a_function_of_a_module_is_found_by_the_module_and_its_name() -> None:
    digest = sha256(Path(__file__).read_bytes()).hexdigest()
    assert source_of(at_the_top, "top") == Source("top", __name__, "at_the_top", digest)


def test_a_function_of_a_script_is_found_by_its_path() -> None:
    function = made_with(__name__="__main__", __file__=__file__)
    assert source_of(function, "f").place == str(Path(__file__).resolve())


def test_the_digest_of_a_loaded_file_is_that_of_the_bytes_that_were_loaded() -> None:
    function = made_with(__name__="x", __file__=__file__, **{LOADED_DIGEST: "00"})
    assert source_of(function, "f").digest == "00"


def test_what_was_made_on_the_spot_has_no_place() -> None:
    def inner() -> None: ...

    functions: tuple[Any, ...] = (
        inner,
        Desk().method,
        Desk.method,
        len,
        json.JSONDecoder,
        lambda: None,
        made_with(),
    )
    for function in (*functions, made_with(__file__="/nowhere/at/all.py")):
        assert source_of(function, "x") == Source("x")


def test_a_file_that_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    assert file_digest(tmp_path) == ""
