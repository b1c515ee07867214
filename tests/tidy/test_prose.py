"""Texts name who or what they speak of: no "whoever" and no "somebody" in code, tests, messages and documents.

An identifier is told from a word by its backticks, so that a rename of one cannot reach the other.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.tidy.source import PACKAGE, ROOT, Source, expect_none, source, sources

UNCLEAR = re.compile(
    r"(?<![a-z])(?:whoever|whomever|somebody|someone|what[ _]is[ _]told|one's own)(?![a-z])", re.IGNORECASE
)
# Files in which such a word is meant, each with why.
MEANT = {
    "src/remit/core/limits/roles.py": "an instruction for a model, which old journals hold",
    "src/remit/provenance/words/vocabulary.py": "words that users write",
    "src/remit/testing/conformance/processes/bell.py": "names of checks, by which other stores may know them",
    "src/remit/testing/conformance/processes/dispatch.py": "names of checks, by which other stores may know them",
    "src/remit/testing/conformance/custody/retention.py": "names of checks, by which other stores may know them",
    "tests/tidy/test_prose.py": "the words themselves",
    "tests/unit/core/test_person.py": "a name that looks like no other",
    "tests/unit/provenance/domains.py": "descriptions of tools",
    "tests/unit/provenance/office.py": "descriptions of tools",
    "tests/unit/provenance/test_kinds.py": "descriptions of arguments",
    "tests/unit/provenance/test_negation.py": "words that users write",
    "tests/unit/provenance/test_repeated_effects.py": "descriptions of tools",
    "tests/unit/provenance/test_words_bind_narrowly.py": "words that users write",
    "tests/unit/testing/test_dispatch_conformance.py": "names of shipped checks",
    "tests/unit/testing/test_keeping_conformance.py": "names of shipped checks",
}
# A word with an underscore that is neither called nor a part of a path, a subject or a dotted name.
BARE = re.compile(r"(?<![\w./`*$<{:-])[a-z]+(?:_[a-z0-9]+)+(?![\w(=/`*>\]-]|\.\w)")
UNDERSCORED = re.compile(r"[a-z]_[a-z0-9]")
QUOTED = re.compile(r"`[^`]*`|\"[^\"\n]*\"")
DIRECTIVE = re.compile(r"#.*\b(?:noqa|type:|pragma)")
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
# Docstrings that are descriptions of tools, which models are shown and manifests hold.
SHOWN_TO_MODELS = {"src/remit/tool/builtin/sqlite_query.py"}
# Rooms in which a short docstring names what is returned, instead of "What …".
SAID_IN_NOUNS = {"core", "kernel", "observe", "orchestrate"}
WHAT_WORDS_MIN = 10
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")


def unclear(path: str, text: str) -> list[str]:
    """Each line that leaves open whom or what it means."""
    lines = enumerate(text.splitlines(), start=1)
    return [f"{path}:{number}: say who: {found[0]}" for number, line in lines if (found := UNCLEAR.search(line))]


def texts() -> Iterator[tuple[str, str]]:
    """The code that is shipped, the code beside it with its tests, and the documents."""
    folders = {PACKAGE: "*.py", "docs": "*.md"} | dict.fromkeys(("benchmarks", "examples", "scripts", "tests"), "*.py")
    paths = [path for folder, kind in folders.items() for path in (ROOT / folder).rglob(kind)]
    for path in (*sorted(paths), *(ROOT / name for name in DOCUMENTS)):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_the_code_and_the_documents_say_who_is_meant() -> None:
    expect_none(complaint for path, text in texts() if path not in MEANT for complaint in unclear(path, text))


def test_every_word_that_is_meant_is_still_there() -> None:
    assert [path for path, text in texts() if path in MEANT and not unclear(path, text)] == []


@pytest.mark.parametrize(
    "text", ["# Whoever asks.", '"somebody else"', "a key of one's own", "def test_whoever_asks():"]
)
def test_a_text_that_leaves_open_who_is_meant_is_found(text: str) -> None:
    assert unclear("src/remit/a.py", f"x = 1\n{text}\n") != []
    assert unclear("src/remit/a.py", "# One process asks another one.\n") == []


def bare_identifiers(file: Source) -> list[str]:
    """Each identifier with an underscore that stands in a docstring or a comment without backticks, as if it were a word."""
    found = []
    for number, text in prose(file):
        for line, words in enumerate(QUOTED.sub("", text).splitlines()):
            found += [f"{file.path}:{number + line}: {name} needs backticks" for name in BARE.findall(words)]
    return found


def prose(file: Source) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a file, each with the line where it begins."""
    if not UNDERSCORED.search(file.text):
        return
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield token.start[0], token.string
    for node in file.nodes:
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
            yield node.body[0].lineno, text


def test_an_identifier_in_prose_stands_in_backticks() -> None:
    expect_none(
        complaint
        for file in sources(PACKAGE)
        if file.path not in SHOWN_TO_MODELS
        for complaint in bare_identifiers(file)
    )


@pytest.mark.parametrize("text", ['"""Say it, wrapped_text between words."""', "x = 1  # Wrapped by wrapped_text."])
def test_an_identifier_that_stands_as_a_word_is_found(text: str) -> None:
    assert bare_identifiers(source("src/remit/a.py", f"{text}\n")) != []
    passing = '"""Wrapped by `wrapped_text`, as "some_words" or wrapped_text()."""\nx = 1  # noqa: E501  # of_it\n'
    assert bare_identifiers(source("src/remit/a.py", passing)) == []


def empty_beginnings(file: Source) -> list[str]:
    """Each docstring that begins with "The same", and each public one that says in a few words "What" something does."""
    return [
        f"{file.path}:{node.body[0].lineno}: say what it is or gives: {text}"
        for node in file.nodes
        if isinstance(node, DOCUMENTED) and (text := (ast.get_docstring(node) or "").partition("\n")[0])
        if text.startswith("The same")
        or (
            file.room in SAID_IN_NOUNS
            and text.startswith("What ")
            and len(text.split()) < WHAT_WORDS_MIN
            and not getattr(node, "name", "").startswith("_")
        )
    ]


def test_a_docstring_names_the_thing() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in empty_beginnings(file))


@pytest.mark.parametrize(
    ("text", "is_found"), [("The same, later.", True), ("What runs cost.", True), ("A cost.", False)]
)
def test_a_docstring_that_names_nothing_is_found(text: str, is_found: bool) -> None:
    assert bool(empty_beginnings(source("src/remit/kernel/a.py", f'def f():\n    """{text}"""\n'))) is is_found
    assert empty_beginnings(source("src/remit/kernel/a.py", 'def _f():\n    """What runs cost."""\n')) == []
