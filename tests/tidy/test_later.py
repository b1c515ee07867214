"""Codes that nothing emits yet, and fields that nothing reads yet, stand in later.toml with the work that will.

A code is emitted when src names it outside the failure table and not merely as the key of another table. A field of a
contract or a tool is read when src asks for it outside the files that define and check it.
"""

import ast
import tomllib
from collections.abc import Collection

from remit.core.failure import Ending, ErrorCode
from remit.core.limits.tools import ToolDefinition
from remit.core.run.contract import ExecutionHints, OutputContract
from tests.tidy.source import PACKAGE, ROOT, Source, dotted, expect_none, source, sources

CODES = (Ending, ErrorCode)
RECORDS = (ExecutionHints, OutputContract, ToolDefinition)
# The table of codes names them all; contracts and tools are defined and checked without being read.
TABLE = f"{PACKAGE}/core/failure.py"
DEFINING = tuple(f"{PACKAGE}/core/{name}.py" for name in ("contract", "envelope", "tools"))


def unemitted(package: Collection[Source]) -> set[str]:
    named: set[str] = set()
    for file in package:
        keys = {id(key) for node in file.nodes if isinstance(node, ast.Dict) for key in node.keys}
        attributes = (node for node in file.nodes if isinstance(node, ast.Attribute))
        named |= {dotted(node) for node in attributes if id(node) not in keys}
    return {f"{kind.__name__}.{member.name}" for kind in CODES for member in kind} - named


def unread(package: Collection[Source]) -> set[str]:
    asked = {
        node.attr
        for file in package
        for node in file.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    return {f"{r.__name__}.{field}" for r in RECORDS for field in r.__struct_fields__ if field not in asked}


def untrue(listed: Collection[dict[str, str]], missing: set[str], works: Collection[str]) -> list[str]:
    names = [entry["name"] for entry in listed]
    complaints = [f"{name} is missing and not in later.toml" for name in sorted(missing - set(names))]
    complaints += [f"{name} is in later.toml and not missing" for name in sorted(set(names) - missing)]
    return complaints + [f"{e['name']} waits for {e['work']!r}" for e in listed if e["work"] not in works]


def test_what_nothing_emits_or_reads_yet_waits_for_work_that_is_not_done() -> None:
    package = [file for file in sources("src") if file.path != TABLE]
    readers = [file for file in package if file.path not in DEFINING]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["remit"]
    open_works = [work for work in settings["works"] if work not in settings["done"]]
    later = tomllib.loads((ROOT / "tests/tidy/later.toml").read_text(encoding="utf-8"))
    expect_none(untrue(later.get("code", []), unemitted(package), open_works))
    expect_none(untrue(later.get("field", []), unread(readers), open_works))


def test_a_code_that_is_only_a_key_of_a_table_is_not_emitted() -> None:
    table = source("src/a.py", "TABLE = {Ending.TIMEOUT: 1}\n")
    assert "Ending.TIMEOUT" in unemitted([table])
    assert "Ending.TIMEOUT" not in unemitted([source("src/a.py", "end(Ending.TIMEOUT)\n")])


def test_a_field_that_nobody_asks_for_is_unread() -> None:
    assert "OutputContract.grammar" in unread([source("src/a.py", "x = 1\n")])
    assert "OutputContract.grammar" not in unread([source("src/a.py", "x = output.grammar\n")])


def test_an_untrue_list_of_what_comes_later_is_found() -> None:
    entry = {"name": "Ending.TIMEOUT", "work": "run"}
    assert untrue([], {"Ending.TIMEOUT"}, ["run"])
    assert untrue([entry], set(), ["run"])
    assert untrue([entry], {"Ending.TIMEOUT"}, [])
    assert not untrue([entry], {"Ending.TIMEOUT"}, ["run"])
