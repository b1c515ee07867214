"""The map of ARCHITECTURE.md is true: each row of "To add something" is followed with its example, and every room is drawn.

An example is one or more identifiers in backticks. Each must stand in exactly the files of its row, so that a file which
has to be touched and is not named, or is named and need not be touched, is found. Uses in testing/ are not counted: what
plays the world there follows the tables of the house.
"""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pytest

from tests.tidy.source import FUNCTION, PACKAGE, ROOT, Source, expect_none, source, sources

TITLE = "## To add something, touch these"
ANSWERS = "## Where is the answer"
MEANINGS = "## Words with more than one meaning"
PORTS = "## Where a backend has its ports"
CODE = re.compile(r"`([^`]+)`")
TREE = re.compile(r"```text\n(.*?)```", re.DOTALL)
KINDS = (
    "a budget dimension, per tool call",
    "a budget dimension, per child run",
    "a budget dimension, per question",
    "a gauge of model calls",
    "an arrival",
    "a field of an arrival",
    "a command",
    "a ruling, or another stored kind of event",
    "a node kind",
    "a name for conditions on edges",
    "an engine",
    "an option of an openai: spec",
    "a field of ModelRequest",
    "a field of SystemResponse",
    "a backend",
    "a question to a store",
    "an argument of a question to a store",
    "a subject of the cluster",
    "a message of the wire",
    "an endpoint of a worker's port",
    "a tool category",
    "a command of the CLI",
    "a slash command of the chat",
    "a line of `remit doctor`",
    "a grouping of costs",
    "a source of secrets",
    "a shape of secrets",
    "a setting from the environment",
    "a view of a run",
    "a key of boundary files",
    "a known boundary (profile)",
    "a way out when a budget is spent",
    "a part of an order",
    "a way of voting",
    "a field of a packet",
    "a builtin tool",
    "an error code",
    "a refusal",
    "an objection of the gate",
    "an ending",
    "a signal, with its arrival",
    "a public verb",
    "a keyword of the public classes",
    "an option of `@tool`",
    "a preset of engines",
    "a check of rule files",
    "a law of the simulation, with its mutant",
    "a field of the listing of runs",
    "a field of the turn",
    "a field of what is streamed",
    "the time of a lease, its renewal",
    "a source of prices",
    "an operation of the guard",
    "a limit of a grant",
    "a period of quotas",
    "the bound of a hint to models",
    "a clause of `remit explain`",
)


class Row(NamedTuple):
    """One row: what is added, the files that it names, and the identifiers of its example."""

    kind: str
    files: tuple[str, ...]
    example: tuple[str, ...]


def rows_of(text: str) -> list[Row]:
    """The rows of the map in a document."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines_of_rows(text)]
    return [
        Row(kind, tuple(CODE.findall(f"{first} {others}")), tuple(CODE.findall(example)))
        for kind, first, others, example in cells
    ]


def lines_of_rows(text: str) -> list[str]:
    """The lines of the map in a document, without its head."""
    lines = text.partition(TITLE)[2].partition("\n## ")[0].splitlines()
    return [line for line in lines if line.startswith("|")][2:]


def holders(identifier: str, texts: Mapping[str, str]) -> set[str]:
    """The files in which an identifier stands, as a word of its own."""
    begins = r"(?<!\w)" if identifier[0].isidentifier() else ""
    ends = r"(?!\w)" if identifier[-1].isidentifier() else ""
    pattern = re.compile(f"{begins}{re.escape(identifier)}{ends}")
    return {path for path, text in texts.items() if pattern.search(text)}


def untrue(row: Row, texts: Mapping[str, str]) -> list[str]:
    """What a row leaves out, and what it names in vain. A folder stands for the files in it."""
    held = {path for identifier in row.example for path in holders(identifier, texts)}
    code = {path for path in held if not is_document(path)}
    named = [(name, {path for path in held if path == name or is_in(path, name)}) for name in row.files]
    reached = {path for _, found in named for path in found}
    return [
        *(f"{row.kind}: {path} has the example and is not named" for path in sorted(code - reached)),
        *(f"{row.kind}: {name} is named and has no example" for name, found in named if not found),
    ]


def is_in(path: str, folder: str) -> bool:
    return folder.endswith("/") and path.startswith(folder)


def is_document(path: str) -> bool:
    """Documents and tests are looked at where a row names them; others may speak of anything."""
    return path.startswith(("docs/", "tests/"))


def undrawn(tree: str, places: Iterable[str]) -> list[str]:
    """What the tree of rooms does not show: a room or a module at the margin, a sub-room below its room or on its line."""
    drawn: set[str] = set()
    room = ""
    for line in tree.splitlines():
        if not line.startswith(" "):
            room = line.split()[0].rstrip("/")
            drawn |= set(re.findall(r"(?:^|   )(\w+)/", line))
            drawn |= set(re.findall(r"\w+\.py", line)) if room.endswith(".py") else set()
        drawn |= {f"{room}/{name}" for name in re.findall(r"(\w+)/", line)}
    return [place for place in places if _shown(place) not in drawn]


def _shown(folder: str) -> str:
    """A folder as it is drawn: its room and its own name."""
    parts = folder.split("/")
    return folder if len(parts) == 1 else f"{parts[0]}/{parts[-1]}"


class PortRow(NamedTuple):
    """The files that have one port, a cell for each backend."""

    port: str
    files: Mapping[str, str]


def port_rows(text: str) -> list[PortRow]:
    """The rows of the table of ports in a document; its head names the backends."""
    table = [line for line in text.partition(PORTS)[2].partition("\n## ")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table]
    return [PortRow(port, dict(zip(cells[0][1:], files, strict=True))) for port, *files in cells[2:]]


def misfiled(row: PortRow, members: set[str], files: Collection[Source]) -> list[str]:
    """Cells of a row that do not name the one file with a class of this shape; those of another backend begin with its folder."""
    shaped = {file.place for file in files for node in classes(file) if members <= shape(node, files)}
    complaints = []
    for backend, name in row.files.items():
        own = {place for place in shaped if place.startswith(f"backend/{backend}/")}
        other = f"backend/{name}"
        expected = {f"backend/{backend}/{name}"} if other not in shaped else set()
        if own != expected:
            complaints.append(f"{row.port}, {backend}: {name} is named, and it is in {sorted(own) or 'no file'}")
    return complaints


def shape(node: ast.ClassDef, files: Collection[Source]) -> set[str]:
    """What a class offers: each method with its parameters, properties, what is set in it, and the same of its bases."""
    assigned = [name for item in ast.walk(node) if isinstance(item, ast.Assign) for name in item.targets]
    own = {
        name.id if isinstance(name, ast.Name) else name.attr
        for name in assigned
        if isinstance(name, ast.Name | ast.Attribute)
    }
    own |= {_offered(item) for item in node.body if isinstance(item, FUNCTION)}
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)} - {"Protocol"}
    inherited = [shape(base, files) for file in files for base in all_classes(file) if base.name in bases]
    return own.union(*inherited)


def _offered(method: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    is_property = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in method.decorator_list)
    takes = [argument.arg for argument in (*method.args.args, *method.args.kwonlyargs)]
    return method.name if is_property else f"{method.name}({', '.join(takes)})"


def classes(file: Source) -> list[ast.ClassDef]:
    """The classes of a file that may be a port of a store; protocols are none."""
    return [node for node in all_classes(file) if "Protocol" not in {ast.unparse(base) for base in node.bases}]


def all_classes(file: Source) -> list[ast.ClassDef]:
    return [node for node in file.tree.body if isinstance(node, ast.ClassDef)]


def ports() -> dict[str, set[str]]:
    """The ports that a store is made of, with what each offers."""
    (file,) = (file for file in sources(PACKAGE) if file.place == "orchestrate/ports.py")
    found = {node.name: node for node in all_classes(file)}
    asked = [item.returns for item in found["Store"].body if isinstance(item, FUNCTION)]
    names = {item.id for item in asked if isinstance(item, ast.Name)}
    return {name: shape(found[name], [file]) for name in sorted(names)}


def texts_of(rows: Collection[Row]) -> dict[str, str]:
    """The files of the package outside testing/, and the documents and tests that rows name."""
    texts = {file.place: file.text for file in sources(PACKAGE) if file.room != "testing"}
    outside = [ROOT / name for row in rows for name in row.files if is_document(name)]
    paths = {path for place in outside for path in (place, *place.rglob("*")) if path.is_file()}
    return texts | {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def architecture() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_map_has_a_row_for_every_kind_of_thing_that_is_added() -> None:
    assert [row.kind for row in rows_of(architecture())] == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_the_map_names_exactly_the_files_that_hold_its_example(kind: str) -> None:
    rows = [row for row in rows_of(architecture()) if row.kind == kind]
    texts = texts_of(rows)
    expect_none(complaint for row in rows for complaint in untrue(row, texts))
    assert all(row.example for row in rows)


def test_the_tree_shows_every_room_and_sub_room_and_every_module_beside_them() -> None:
    package = ROOT / PACKAGE
    folders = sorted(path.parent.relative_to(package).as_posix() for path in package.rglob("*/__init__.py"))
    modules = sorted(path.name for path in package.glob("*.py") if not path.name.startswith("__"))
    tree = TREE.search(architecture())
    assert tree is not None
    assert undrawn(tree[1], [*(folder for folder in folders if folder != "."), *modules]) == []


def test_the_table_of_ports_has_every_port_of_a_store_and_names_its_file_in_each_backend() -> None:
    rows = port_rows(architecture())
    assert sorted(row.port for row in rows) == list(ports())
    backend = sources(f"{PACKAGE}/backend")
    expect_none(complaint for row in rows for complaint in misfiled(row, ports()[row.port], backend))


def test_a_port_that_is_filed_elsewhere_is_found() -> None:
    files = [
        source("src/remit/backend/memory/inbox.py", "class A:\n    def take(self): pass\n    lasts_ms = 0\n"),
        source("src/remit/backend/folded/leases.py", "class B:\n    def take(self): self.lasts_ms = 1\n"),
        source("src/remit/backend/cluster/leases.py", "class C(A):\n    pass\n"),
        source("src/remit/backend/cluster/ports.py", "class D(Protocol):\n    def take(self): self.lasts_ms = 1\n"),
    ]
    text = f"{PORTS}\n\n| Port | memory | folded | cluster | other |\n|---|---|---|---|---|\n| Leases | `leases.py` | `leases.py` | `leases.py` | `folded/leases.py` |\n"
    (row,) = port_rows(text)
    assert misfiled(row, {"take(self)", "lasts_ms"}, files) == [
        "Leases, memory: leases.py is named, and it is in ['backend/memory/inbox.py']"
    ]
    assert misfiled(PortRow("Leases", {"other": "leases.py"}), {"take(self)"}, files) == [
        "Leases, other: leases.py is named, and it is in no file"
    ]


def test_the_architecture_is_read_in_ten_minutes() -> None:
    """At 220 words a minute. The rows of the map, of ports, of words with two meanings and of answers are looked up."""
    parts = [architecture().partition(title)[2].partition("\n## ")[0] for title in (MEANINGS, ANSWERS, PORTS)]
    looked_up = [
        *lines_of_rows(architecture()),
        *(line for part in parts for line in part.splitlines() if line.startswith("|")),
    ]
    assert len(architecture().split()) - len(" ".join(looked_up).split()) <= 1750


def test_a_file_that_a_row_leaves_out_or_names_in_vain_is_found() -> None:
    row = Row("a signal", ("core/a.py", "core/b.py", "inference/x/"), ("Signal.X", "said("))
    texts = {
        "core/a.py": "Signal.X",
        "core/c.py": "Signal.X = 1",
        "core/d.py": "Signal.XY, unsaid(",
        "docs/a.md": "Signal.X",
    }
    assert untrue(row, texts) == [
        "a signal: core/c.py has the example and is not named",
        "a signal: core/b.py is named and has no example",
        "a signal: inference/x/ is named and has no example",
    ]
    full = {"core/a.py": "Signal.X", "core/b.py": "said(1)", "inference/x/y.py": "Signal.X"}
    assert untrue(row, full) == []


def test_rows_are_read_from_the_table_below_the_title_alone() -> None:
    text = f"| a | b |\n{TITLE}\n\n| To add | Touch | Also | Example |\n|---|---|---|---|\n| x | `a.py` | `b.py` | `X` |\n\n## Next\n| y |\n"
    assert rows_of(text) == [Row("x", ("a.py", "b.py"), ("X",))]


def test_a_room_that_the_tree_lacks_is_found() -> None:
    tree = "core/  the words\n  run/  one run   work/  graphs\ntool/  declare/, call/\n"
    assert undrawn(tree, ["core", "core/run", "core/work", "tool/call"]) == []
    assert undrawn(tree, ["core/call", "kernel", "tool/process"]) == ["core/call", "kernel", "tool/process"]


def test_a_module_that_the_tree_lacks_is_found() -> None:
    tree = "front.py  (with side.py) the door\ncore/  the words; run.py is its door\n  a.py  one\n"
    assert undrawn(tree, ["front.py", "side.py", "run.py", "a.py"]) == ["run.py", "a.py"]
