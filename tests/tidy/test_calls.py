"""A long record is built with names, so that a reader need not count the fields."""

import ast

from tests.tidy.source import PACKAGE, Source, dotted, expect_none, source, sources
from tests.tidy.test_names import unexpected

POSITIONS_MAX = 5
# Classes of which a long record may be built without names, each with why. Shrinks only.
BY_POSITION: dict[str, str] = {
    "Asked": "the gate makes one for every tool of every call",
    "Attempt": "one for every call of a tool, whose time is measured",
    "CallModel": "names take half as long again, in every turn of a model",
    "CallSettled": "names take half as long again, in every turn of a tool",
    "CallTool": "names take half as long again, in every turn of a tool",
    "CallTrace": "names take half as long again, in every turn of a tool",
    "EndingRow": "a row of a table, whose columns stand in one order",
    "Leaf": "the gate makes one for every value of every call",
    "Message": "one for every result that a model is shown",
    "NumberSaid": "the gate makes one for every number of a prompt",
    "SaidValue": "the gate makes one for every value of a prompt",
    "Turn": "names take half as long again, in every turn",
}


def long_by_position(file: Source) -> dict[str, str]:
    """Classes of which a record with many fields is built without names, each with where."""
    return {
        name: file.at(node, f"{name} is built with {len(node.args)} positions; name those behind the second")
        for node in file.nodes
        if isinstance(node, ast.Call) and len(node.args) > POSITIONS_MAX
        if (name := dotted(node.func).rpartition(".")[2])[:1].isupper()
    }


def test_a_long_record_is_built_with_names() -> None:
    found = {name: where for file in sources(PACKAGE) for name, where in long_by_position(file).items()}
    expect_none([where for name, where in sorted(found.items()) if name not in BY_POSITION])
    expect_none(unexpected([name for name in found if name in BY_POSITION], BY_POSITION, ""))


def test_a_long_record_without_names_is_found() -> None:
    assert long_by_position(source("src/remit/a.py", "core.Record(1, 2, 3, 4, 5, 6)\n")) != {}
    passing = "Record(1, 2, 3, 4, 5, six=6)\ncall(1, 2, 3, 4, 5, 6)\n"
    assert long_by_position(source("src/remit/a.py", passing)) == {}
