"""Size creeps unless a test says no, and a module that one other uses belongs to it unless it is large."""

import ast
from collections.abc import Iterable

from tests.tidy.source import PACKAGE, Source, expect_none, functions, imported, source, sources
from tests.tidy.test_names import COMMANDS, unexpected

FILE_LINES_MAX = 500
# One screen, with some room for a table.
FUNCTION_LINES_MAX = 60
# A module below this with a single importer is a part of that one.
MODULE_LINES_MIN = 80

# Small modules with one importer, each with why it stands alone. Shrinks only.
DWARFS: dict[str, str] = {
    "backend/embedded/owner/accept_store.py": "it opens whole stores, which nothing else in its room may import",
    "front.py": "`import remit` loads it, and nothing behind it",
    "inference/anthropic/engine.py": "each vendor has an engine.py",
    "inference/endpoint/recorded.py": "what a manifest recorded of an engine is read apart from the specs that users write",
    "kernel/rules/started.py": "a file for each family of arrivals",
    "kernel/rules/timer.py": "a file for each family of arrivals",
    "observe/worker_figures.py": "the client of Prometheus belongs to the room that observes",
    "orchestrate/setup/engine_checkup.py": "check-ups are wired by the assembly alone",
    "provenance/words/earlier.py": "what earlier runs showed is one of the grounds, each of which has a file",
    "tool/builtin/ask_person.py": "a file for each builtin tool",
    "tool/delegate.py": "users import it from remit, and nothing else does",
}


def long_files(file: Source) -> list[str]:
    lines = len(file.text.splitlines())
    return [f"{file.path}: {lines} lines, at most {FILE_LINES_MAX}"] if lines > FILE_LINES_MAX else []


def long_functions(file: Source) -> list[str]:
    return [
        file.at(function, f"{function.name} has {lines} lines, at most {FUNCTION_LINES_MAX}")
        for function in functions(file.nodes)
        if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]


def dwarfs(files: Iterable[Source]) -> dict[str, str]:
    """Small modules that a single module imports, each with its importer; commands of the command line excepted."""
    by_module = {_module(file): file for file in files}
    importers: dict[str, set[str]] = {name: set() for name in by_module}
    for name, file in by_module.items():
        for imported_name in _imports(file):
            if imported_name in importers:
                importers[imported_name].add(name)
    return {
        file.place: by_module[next(iter(importers[name]))].place
        for name, file in by_module.items()
        if len(importers[name]) == 1 and len(file.text.splitlines()) < MODULE_LINES_MIN and not _stands_alone(file)
    }


def _module(file: Source) -> str:
    return file.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(file: Source) -> set[str]:
    """Modules that a file imports, those that it takes from a package by name included."""
    names = {module for _, module in imported(file.nodes)}
    members = {
        f"{node.module}.{alias.name}" for node in file.nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return names | members


def _stands_alone(file: Source) -> bool:
    """Whether a file is the sign of a room, a part of the test kit that users import, or a command, named as people type it."""
    return file.place.endswith("__init__.py") or file.place.startswith((f"{COMMANDS}/", "testing/"))


def test_no_small_module_serves_a_single_other_one() -> None:
    found = dwarfs(sources(PACKAGE))
    whose = {place: f"{place} (used by {importer} alone)" for place, importer in found.items()}
    known = [whose.get(place, place) for place in DWARFS]
    expect_none(unexpected(list(whose.values()), known, f"under {MODULE_LINES_MIN} lines; move it there"))


def test_a_small_module_with_one_importer_is_found() -> None:
    small = source("src/remit/core/small.py", "X = 1\n")
    tall = source("src/remit/core/tall.py", "X = 1\n" * MODULE_LINES_MIN)
    command = source(f"src/remit/{COMMANDS}/fork.py", "X = 1\n")
    user = source(
        "src/remit/core/user.py",
        "from remit.core import small\nfrom remit.core.tall import X\nimport remit.adapters.cli.commands.fork\n",
    )
    other = source("src/remit/core/other.py", "from remit.core.small import X\n")
    assert dwarfs([small, tall, command, user]) == {"core/small.py": "core/user.py"}
    assert dwarfs([small, tall, command, user, other]) == {}


def test_no_file_in_src_is_over_the_wall() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in long_files(file))


def test_no_function_in_src_is_over_the_wall() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in long_functions(file))


def test_a_file_one_line_over_the_wall_is_found() -> None:
    assert long_files(source("src/remit/a.py", "x = 1\n" * FILE_LINES_MAX)) == []
    assert long_files(source("src/remit/a.py", "x = 1\n" * (FILE_LINES_MAX + 1))) != []


def test_a_function_one_line_over_the_wall_is_found_even_inside_a_class() -> None:
    tall = "class A:\n    async def f(self):\n" + "        x = 1\n" * (FUNCTION_LINES_MAX - 1)
    assert long_functions(source("src/remit/a.py", tall)) == []
    assert long_functions(source("src/remit/a.py", tall + "        x = 1\n")) != []
