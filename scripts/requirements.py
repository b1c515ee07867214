"""List every numbered requirement with the tests that prove it.

Rule 1: docs/requirements.md holds the numbers and their owners, pyproject.toml says which works are done.
Rule 2: marks are read from the source, so a test that is never collected still shows.
Rule 3: a number of a finished work that holds, with limits or without, must have a test; a mark must name a number that
        exists; a verdict other than `holds` says why.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(
    r"^\| (?P<number>\d+\.\d+) \| (?P<text>.+) \| (?P<owner>\w+) \| (?P<verdict>\w+)(?:: (?P<why>[^|]+))? \|$"
)
VERDICTS = ("holds", "limits", "open")


@dataclass(frozen=True)
class Requirement:
    """One row of docs/requirements.md."""

    number: str
    text: str
    owner: str
    verdict: str
    why: str | None = None


@dataclass(frozen=True)
class Mark:
    """A number that a test claims, and where. A number of None is one that cannot be read from the source."""

    number: str | None
    test: str


@dataclass(frozen=True)
class Works:
    """The works that own requirements, and those among them that are done."""

    known: tuple[str, ...]
    done: tuple[str, ...]


def main() -> int:
    """Print the list and every problem; the exit code says whether there was one."""
    requirements = read_requirements((ROOT / "docs" / "requirements.md").read_text())
    works = read_works((ROOT / "pyproject.toml").read_text())
    marks = [
        mark
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for mark in marks_in(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    proofs = proofs_of(requirements, marks)
    for line in listing(requirements, proofs, works):
        print(line)
    problems = problems_of(requirements, marks, works)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def read_requirements(text: str) -> list[Requirement]:
    """The rows of every table, in the order of the document."""
    return [Requirement(**match.groupdict()) for line in text.splitlines() if (match := ROW.match(line))]


def read_works(text: str) -> Works:
    """The table [tool.remit] of pyproject.toml."""
    table = tomllib.loads(text)["tool"]["remit"]
    return Works(known=tuple(table["works"]), done=tuple(table["done"]))


def marks_in(path: str, text: str) -> list[Mark]:
    """Every `pytest.mark.req(...)` of a test file: on a function, on a class, or on the module."""
    tree = ast.parse(text)
    owners: dict[ast.Call, str] = {}
    for name, node in definitions(tree):
        for decorator in node.decorator_list:
            owners.update((call, f"{path}::{name}") for call in req_calls(decorator))
    marks: list[Mark] = []
    for call in req_calls(tree):
        test = owners.get(call, path)
        if call.keywords or not call.args:
            marks.append(Mark(None, test))
        marks.extend(Mark(literal(argument), test) for argument in call.args)
    return marks


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Top-level functions and classes, and the methods of those classes, by the name pytest gives them."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}::{inner.name}", inner


def req_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of `….mark.req` below a node."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="req", value=ast.Attribute(attr="mark"))):
                yield node


def literal(argument: ast.expr) -> str | None:
    """The number as written, or None when it is not written out."""
    match argument:
        case ast.Constant(value=str(number)):
            return number
    return None


def proofs_of(requirements: Iterable[Requirement], marks: Iterable[Mark]) -> dict[str, list[str]]:
    """The tests of every number, each once, in order."""
    proofs: dict[str, list[str]] = {requirement.number: [] for requirement in requirements}
    for mark in marks:
        tests = proofs.get(mark.number or "")
        if tests is not None and mark.test not in tests:
            tests.append(mark.test)
    return proofs


def listing(requirements: list[Requirement], proofs: Mapping[str, list[str]], works: Works) -> list[str]:
    """One block per number: the demand and its verdict, then its tests; at the end the counts."""
    lines: list[str] = []
    for requirement in requirements:
        why = f": {requirement.why}" if requirement.why else ""
        lines.append(f"{requirement.number:<6}{requirement.owner:<11}{requirement.verdict}{why}  {requirement.text}")
        lines.extend(f"{'':<17}{test}" for test in proofs[requirement.number] or ["no test"])
    proven = sum(1 for tests in proofs.values() if tests)
    lines.append(f"{proven} of {len(requirements)} requirements have a test")
    lines.append(summary(requirements, works))
    return lines


def summary(requirements: Iterable[Requirement], works: Works) -> str:
    """How many of the numbers that finished works own hold, hold with limits, and are open."""
    owned = [requirement.verdict for requirement in requirements if requirement.owner in works.done]
    holds, limits, still_open = (owned.count(verdict) for verdict in VERDICTS)
    return f"of {len(owned)} numbers of finished works {holds} hold, {limits} hold with limits, {still_open} open"


def problems_of(requirements: list[Requirement], marks: Iterable[Mark], works: Works) -> list[str]:
    """Everything that makes the list untrue."""
    marks = list(marks)
    proofs = proofs_of(requirements, marks)
    return [
        *([] if requirements else ["docs/requirements.md: no requirement found"]),
        *(f"{r.number} appears twice" for i, r in enumerate(requirements) if r.number in numbers_of(requirements[:i])),
        *(f"{r.number} is owned by {r.owner}, which is not a work" for r in requirements if r.owner not in works.known),
        *(f"{r.number}: {r.verdict} is no verdict" for r in requirements if r.verdict not in VERDICTS),
        *(f"{r.number} {r.verdict}: a reason is missing" for r in requirements if r.verdict != "holds" and not r.why),
        *(f"{work} is done but not a work" for work in works.done if work not in works.known),
        *(f"{mark.test}: a req mark takes numbers written out" for mark in marks if mark.number is None),
        *(f"{m.test}: there is no requirement {m.number}" for m in marks if m.number and m.number not in proofs),
        *(
            f"{r.number} has no test, and {r.owner} is done"
            for r in requirements
            if r.owner in works.done and r.verdict != "open" and not proofs[r.number]
        ),
    ]


def numbers_of(requirements: Iterable[Requirement]) -> set[str]:
    """The numbers alone."""
    return {requirement.number for requirement in requirements}


if __name__ == "__main__":
    sys.exit(main())
