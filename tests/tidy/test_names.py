"""A file is a room, not a drawer, and a name says what a thing is, not which pattern it follows."""

import ast
import re
from collections.abc import Collection, Iterable
from itertools import combinations
from pathlib import PurePosixPath

import pytest

from tests.tidy.source import FUNCTION, PACKAGE, Source, expect_none, functions, source, sources

DRAWERS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "base"}

# A word of the pattern catalogue at the start or the end. A lower-case letter must follow I, so that Inference passes.
CATALOGUE_CLASS = re.compile(r"^_*(I[A-Z][a-z]|Base[A-Z]|Abstract)|(Impl|DTO|Manager|[a-z]IR)$")
# The stores, with the sub-rooms that hold their ports, and the suites that prove these.
BACKENDS = (
    "backend/cluster",
    "backend/cluster/logs",
    "backend/cluster/work",
    "backend/embedded",
    "backend/folded",
    "backend/memory",
)
SUITES = (
    "testing/conformance",
    "testing/conformance/custody",
    "testing/conformance/processes",
    "testing/conformance/records",
)
# Rooms side by side in which the same base name is the same role: a port of a backend, a part of an engine, a family of events.
SIBLINGS: tuple[frozenset[str], ...] = (
    frozenset({*BACKENDS, *SUITES}),
    frozenset(
        {
            "inference",
            "inference/anthropic",
            "inference/local",
            "inference/openai",
            "inference/scripted",
            "testing/conformance",
        }
    ),
    frozenset({"kernel/rules", "orchestrate/executors"}),
)
# A command is named as people type it, even where a library has that name.
COMMANDS = "adapters/cli/commands"
# Words that mean more than one thing here (the glossary of ARCHITECTURE.md says which): none is the whole name of a file.
AMBIGUOUS = frozenset(
    {
        "chunks",
        "envelope",
        "events",
        "key",
        "keys",
        "place",
        "places",
        "policy",
        "proposals",
        "redaction",
        "replica",
        "trust",
        "wire",
    }
)
# Base names that occur twice with two meanings, each with why it may. Shrinks only.
REPEATED: dict[str, str] = {
    "checkup": "the records of a check-up, and the check-up of each store",
}

# Class names that occur in two files with two meanings, each with why it may. Shrinks only.
REPEATED_CLASSES: dict[str, str] = {
    "ContextEvent": "a record of the wire has the name that its protocol gives it",
}

# The same of functions.
REPEATED_FUNCTIONS: dict[str, str] = {
    "boundary_at": "what commands may import of the reader of boundary files",
    "goal_at": "what commands may import of the reader of goal files",
    "main": "where a program begins",
}

# The same of names for types.
REPEATED_ALIASES: dict[str, str] = {
    "Decision": "of a turn: a ruling or a command; of the gate: allow, ask or refuse",
    "Report": "of an executor, which becomes an arrival; of validators, which users import from remit",
}

DEFINED = (ast.ClassDef, *FUNCTION)

# Modules named for a doing instead of a thing. Shrinks only; "offspring" is a noun.
DOINGS = frozenset(
    {
        "constraint/grammar/matching.py",
        "core/installing.py",
        "core/journal/signing.py",
        "inference/endpoint/serving.py",
        "observe/reading.py",
        "orchestrate/loop/offspring.py",
        "orchestrate/people/draining.py",
        "provenance/values/binding.py",
        "rerank/embedding.py",
        "tool/call/performing.py",
        "tool/process/framing.py",
    }
)

EMPTY_VERB = re.compile(r"^_*(handle|process|manage)(_|$)")


def drawers(path: str) -> list[str]:
    parts = PurePosixPath(path).with_suffix("").parts
    return [f"{path}: a drawer, not a room" for part in parts if DRAWERS & set(part.split("_"))]


def ambiguous_names(places: Iterable[str]) -> list[str]:
    """Files that are called by a word of several meanings, commands excepted."""
    return [
        f"{place}: say which of its meanings"
        for place in places
        if PurePosixPath(place).stem in AMBIGUOUS and not place.startswith(f"{COMMANDS}/")
    ]


def repeated_names(places: Iterable[str]) -> dict[str, list[str]]:
    """Base names of files in rooms that are no siblings, with the files that have them."""
    by_name: dict[str, list[str]] = {}
    for place in sorted(places):
        by_name.setdefault(PurePosixPath(place).stem, []).append(place)
    return {
        name: found
        for name, found in by_name.items()
        if name not in {"__init__", "__main__"} and any(not _are_siblings(*pair) for pair in combinations(found, 2))
    }


def repeated_definitions(files: Iterable[Source], *kinds: type[ast.stmt]) -> dict[str, list[str]]:
    """Names of public classes or functions that files which are no siblings define, with these files."""
    by_name: dict[str, list[str]] = {}
    for file in files:
        named = {node.name for node in file.tree.body if isinstance(node, DEFINED) and isinstance(node, kinds)}
        for name in named:
            by_name.setdefault(name, []).append(file.place)
    return {
        name: found
        for name, found in by_name.items()
        if not name.startswith("_") and any(not _are_siblings(*pair) for pair in combinations(found, 2))
    }


def repeated_aliases(files: Collection[Source]) -> dict[str, list[str]]:
    """Names of types, said to be such (`X: TypeAlias = …`), that another file which is no sibling gives to a type or a class."""
    classes = {(node.name, file.place) for file in files for node in file.tree.body if isinstance(node, ast.ClassDef)}
    aliases = {
        (node.target.id, file.place)
        for file in files
        for node in file.tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_alias(node)
    }
    by_name = {name: sorted(place for other, place in classes | aliases if other == name) for name, _ in aliases}
    return {
        name: found
        for name, found in by_name.items()
        if not name.startswith("_") and any(not _are_siblings(*pair) for pair in combinations(found, 2))
    }


def _is_alias(node: ast.AnnAssign) -> bool:
    return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"


def _are_siblings(one: str, other: str) -> bool:
    rooms = {PurePosixPath(one).parent.as_posix(), PurePosixPath(other).parent.as_posix()}
    return COMMANDS in rooms or any(rooms <= siblings for siblings in SIBLINGS)


def unexpected(found: Collection[str], known: Collection[str], what: str) -> list[str]:
    """What is found and not known, and what is known and no longer found: a list of exceptions only shrinks."""
    return [
        *(f"{name}: {what}" for name in sorted(set(found) - set(known))),
        *(f"{name}: no longer an exception; take it off the list" for name in sorted(set(known) - set(found))),
    ]


def catalogue_classes(file: Source) -> list[str]:
    return [
        file.at(node, f"class {node.name} is named for a pattern")
        for node in file.nodes
        if isinstance(node, ast.ClassDef) and CATALOGUE_CLASS.search(node.name)
    ]


def empty_verbs(file: Source) -> list[str]:
    return [
        file.at(function, f"{function.name} does not say what it does")
        for function in functions(file.nodes)
        if EMPTY_VERB.match(function.name)
    ]


def open_keywords(file: Source) -> list[str]:
    return [
        file.at(function, f"{function.name} takes **{function.args.kwarg.arg}")
        for function in functions(file.nodes)
        if function.args.kwarg and not _is_typed(function.args.kwarg)
    ]


def _is_typed(keywords: ast.arg) -> bool:
    """Whether a checker knows the keywords: those of a typed dict, or of another function that they are handed on to."""
    annotation = keywords.annotation
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "kwargs"
    return (
        isinstance(annotation, ast.Subscript)
        and isinstance(annotation.value, ast.Name)
        and annotation.value.id == "Unpack"
    )


def test_no_file_or_folder_is_a_drawer() -> None:
    everywhere = sources("src", "tests", "benchmarks", "scripts")
    assert [complaint for file in everywhere for complaint in drawers(file.path)] == []


def test_no_base_name_occurs_twice_with_two_meanings() -> None:
    found = repeated_names(file.place for file in sources(PACKAGE))
    expect_none(unexpected(found, REPEATED, "occurs in rooms that are no siblings: give each its own name"))


def test_no_file_is_called_by_a_word_of_several_meanings() -> None:
    expect_none(ambiguous_names(file.place for file in sources(PACKAGE)))


def test_a_name_of_several_meanings_is_found_unless_people_type_it() -> None:
    assert ambiguous_names(["core/limits/trust.py", "inference/openai/wire.py"]) != []
    assert ambiguous_names([f"{COMMANDS}/trust.py", "core/limits/tool_trust.py", "wire/__init__.py"]) == []


def test_a_module_is_named_for_a_thing() -> None:
    found = [file.place for file in sources(PACKAGE) if file.place.endswith("ing.py")]
    expect_none(unexpected(found, DOINGS, "is named for a doing: name the thing that it holds"))


def test_a_name_that_occurs_in_two_rooms_is_found_unless_they_are_siblings() -> None:
    siblings = [
        "backend/memory/bell.py",
        "testing/conformance/processes/bell.py",
        "kernel/rules/tool.py",
        "orchestrate/executors/tool.py",
    ]
    assert repeated_names([*siblings, "adapters/cli/commands/graph.py", "core/work/graph.py"]) == {}
    assert repeated_names(["kernel/steps.py", "observe/steps.py", "core/__init__.py", "kernel/__init__.py"]) == {
        "steps": ["kernel/steps.py", "observe/steps.py"]
    }


def test_no_class_name_occurs_twice_with_two_meanings() -> None:
    found = repeated_definitions(sources(PACKAGE), ast.ClassDef)
    expect_none(unexpected(found, REPEATED_CLASSES, "is a class in rooms that are no siblings: give each its own name"))


def test_no_function_name_occurs_twice_with_two_meanings() -> None:
    found = repeated_definitions(sources(PACKAGE), *FUNCTION)
    expect_none(
        unexpected(found, REPEATED_FUNCTIONS, "is a function in rooms that are no siblings: say what each gives")
    )


def test_no_name_of_a_type_occurs_twice_with_two_meanings() -> None:
    found = repeated_aliases(sources(PACKAGE))
    expect_none(unexpected(found, REPEATED_ALIASES, "is a type in rooms that are no siblings: say what each is"))


def test_a_name_of_a_type_that_two_rooms_give_is_found_unless_they_are_siblings_or_it_is_private() -> None:
    text = "Place: TypeAlias = int\n_Part: TypeAlias = int\nkept: int = 1\n"
    backends = [source(f"{PACKAGE}/backend/{name}/log.py", text) for name in ("cluster", "folded")]
    strangers = [
        source(f"{PACKAGE}/kernel/a.py", text),
        source(f"{PACKAGE}/core/b.py", "class Place: ...\nclass Other: ...\n"),
        source(f"{PACKAGE}/wire/c.py", "class Other: ...\n"),
    ]
    assert repeated_aliases(backends) == {}
    assert repeated_aliases(strangers) == {"Place": [f"{room}.py" for room in ("core/b", "kernel/a")]}


def test_a_class_or_function_that_two_rooms_define_is_found_unless_they_are_siblings_or_it_is_private() -> None:
    text = "class Answer:\n    class Part: ...\nclass _Part: ...\ndef told(): ...\ndef _kept(): ...\n"
    siblings = [source(f"{PACKAGE}/inference/{vendor}/answer.py", text) for vendor in ("openai", "anthropic")]
    strangers = [source(f"{PACKAGE}/{room}/answer.py", text) for room in ("kernel", "observe")]
    assert repeated_definitions(siblings, ast.ClassDef) == repeated_definitions(siblings, *FUNCTION) == {}
    places = ["kernel/answer.py", "observe/answer.py"]
    assert repeated_definitions(strangers, ast.ClassDef) == {"Answer": places}
    assert repeated_definitions(strangers, *FUNCTION) == {"told": places}


def test_an_exception_that_is_none_any_more_is_found() -> None:
    assert unexpected(["a"], ["a"], "is twice") == []
    assert unexpected(["a"], ["b"], "is twice") == ["a: is twice", "b: no longer an exception; take it off the list"]


def test_no_class_is_named_for_a_pattern() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in catalogue_classes(file))


def test_no_function_has_an_empty_verb() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in empty_verbs(file))


def test_no_function_in_src_takes_open_keywords() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in open_keywords(file))


@pytest.mark.parametrize(
    "path", ["src/remit/core/utils.py", "src/remit/misc/a.py", "src/remit/core/budget_utils.py", "tests/common.py"]
)
def test_a_drawer_is_found_as_file_folder_or_part_of_a_name(path: str) -> None:
    assert drawers(path) != []


def test_a_word_that_only_contains_a_drawer_passes() -> None:
    assert drawers("src/remit/backend/embedded/disk/database.py") == []


@pytest.mark.parametrize(
    "name",
    ["IJournal", "BaseEngine", "AbstractJournal", "JournalImpl", "RunDTO", "LoopManager", "CandidateIR", "_BaseX"],
)
def test_a_class_named_for_a_pattern_is_found(name: str) -> None:
    assert catalogue_classes(source("src/remit/a.py", f"class {name}:\n    pass\n")) != []


@pytest.mark.parametrize(
    "name", ["InferenceRequest", "IOFailed", "Baseline", "Journal", "SQLiteJournal", "Manager2Run"]
)
def test_a_plain_class_name_passes(name: str) -> None:
    assert catalogue_classes(source("src/remit/a.py", f"class {name}:\n    pass\n")) == []


@pytest.mark.parametrize("name", ["handle_call", "_process_item", "manage"])
def test_an_empty_verb_is_found_even_on_a_method(name: str) -> None:
    assert empty_verbs(source("src/remit/a.py", f"class A:\n    def {name}(self): pass\n")) != []


def test_a_verb_that_only_begins_alike_passes() -> None:
    assert empty_verbs(source("src/remit/a.py", "def processed_at(): pass\ndef handled(): pass\n")) == []


def test_open_keywords_are_found_but_unpacking_in_a_call_passes() -> None:
    assert open_keywords(source("src/remit/a.py", "def f(a, **kwargs): pass\n")) != []
    assert open_keywords(source("src/remit/a.py", "def f(a, **options: Any): pass\n")) != []
    assert open_keywords(source("src/remit/a.py", "def f(a, **options: Unpack[Options]): pass\n")) == []
    assert open_keywords(source("src/remit/a.py", "def f(a, *rest): g(**a)\n")) == []
