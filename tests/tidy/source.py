"""Reading the house: where it stands, and its Python files, parsed once."""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/remit"

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the root, its text and its tree, which is made when it is first asked for."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The file, parsed."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree; finding them takes longer than most rules that look at them."""
        return tuple(ast.walk(self.tree))

    @property
    def place(self) -> str:
        """The path from the package, as the vendor table names files: core/schema/json_schema.py."""
        return self.path.removeprefix(f"{PACKAGE}/")

    @property
    def room(self) -> str:
        """The room of src/remit that the file belongs to; a file that stands alone is its own room."""
        return self.place.split("/")[0].removesuffix(".py")

    def at(self, node: ast.stmt | ast.expr | ast.arg | ast.excepthandler, complaint: str) -> str:
        """A complaint with its address."""
        return f"{self.path}:{node.lineno}: {complaint}"


def source(path: str, text: str) -> Source:
    """A file as it would be; bad examples are made with this."""
    return Source(path, text)


def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below the given folders of the project; a folder may be absent."""
    return tuple(file for folder in folders for file in _below(folder))


@cache
def _below(folder: str) -> tuple[Source, ...]:
    return tuple(_kept(path) for path in sorted((ROOT / folder).rglob("*.py")))


@cache
def _kept(path: Path) -> Source:
    """A file of the project, read and parsed once, whichever folder it is asked for with."""
    return source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def expect_none(complaints: Iterable[str]) -> None:
    """Fail with one complaint per line, so that each names its file and line in full."""
    if found := list(complaints):
        pytest.fail("\n".join(found), pytrace=False)


def functions(nodes: Iterable[ast.AST]) -> Iterator[Function]:
    """Every function among the nodes of a file, methods and inner functions included."""
    return (node for node in nodes if isinstance(node, FUNCTION))


def imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Every module the nodes of a file import, by its full name, at any depth; a literal import_module counts."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from ((node, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node, module
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield node, module


def dotted(node: ast.expr) -> str:
    """The dotted name an expression spells, or nothing when it is not a plain name."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            prefix = dotted(value)
            return f"{prefix}.{attr}" if prefix else ""
    return ""


@cache
def project_files() -> tuple[Path, ...]:
    """What git keeps, or would keep once added; without git, everything that is not a cache."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not is_cache(path.relative_to(ROOT))]
    return tuple(sorted(path for path in paths if path.is_file()))


def is_cache(path: Path) -> bool:
    """Whether a path lies in something that tools made."""
    return any(part == "__pycache__" or part in {".git", ".venv", ".tools"} or "_cache" in part for part in path.parts)
