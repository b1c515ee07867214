"""Text from outside becomes a value in one place, which refuses a key that stands twice: core/schema/json_text.py."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import Source, dotted, expect_none, source, sources

# Readers of JSON that take the last of two equal keys without a word.
LOOSE = frozenset(
    {
        "json.load",
        "json.loads",
        "json.JSONDecoder",
        "json.decoder.JSONDecoder",
        "msgspec.json.decode",
        "msgspec.json.Decoder",
        "jiter.from_json",
        "pydantic_core.from_json",
    }
)
# Methods of other libraries' classes that read JSON as loosely.
METHODS = frozenset({"model_validate_json", "validate_json", "parse_raw"})
# The name for texts that this program wrote or has read strictly before.
KEPT = "kept_value"

# Who may use them, and why nothing is decided there by a text from outside that was not read strictly.
ALLOWED = {
    "core/schema/json_text.py": "the strict reader itself",
    "core/journal/codec.py": "records: the text is read strictly first; signals are in bytes that this program wrote",
    "core/schema/json_schema.py": "copies of values that were just written",
    "core/schema/schema_source.py": "copies of values that were just written",
    "kernel/graph/compiled.py": "a copy of a record that was just written",
    "backend/embedded/heads_file.py": "lines of our own, each of them signed over the values that are read",
    "observe/proof/export.py": "each line must be spelt as it would be written again, which no repeated key is",
    "constraint/grammar/notation.py": "counts levels of a schema that llguidance reads; decides nothing else",
    "inference/answers/text_calls.py": "finds where a value ends; what it is, is read strictly",
    "context/fts.py": "metadata that the index wrote itself",
    "orchestrate/history/retold.py": "arguments in canonical form, from the journal",
    "tool/call/arguments.py": "arguments in canonical form, just written or as they were judged",
    "tool/process/isolated_child.py": "what the process that started this one wrote",
    "tool/builtin/sqlite_child.py": "what the process that started this one wrote",
    "tool/builtin/sqlite_query.py": "lists of rows from a process that runs our code alone",
}
KEPT_IN = {
    "core/journal/codec.py": "arguments in canonical form",
    "inference/scripted/script.py": "arguments that were just written in canonical form",
    "kernel/authority/earlier_attempts.py": "arguments in canonical form",
    "kernel/authority/call_rulings.py": "arguments in canonical form",
    "kernel/authority/conditions.py": "arguments in canonical form",
    "kernel/graph/compiled.py": "schemas of a graph that was read strictly where it came in",
    "kernel/graph/graph_checks.py": "the same; an old journal's graph is not judged anew",
    "observe/views/trace.py": "a turn that was just written",
    "orchestrate/executors/human.py": "arguments in canonical form",
    "orchestrate/executors/tool.py": "arguments in canonical form",
    "orchestrate/loop/offspring.py": "schemas of a graph that was read strictly where it came in",
    "orchestrate/patterns/plan_graph.py": "schemas of a graph that was read strictly where it came in",
    "orchestrate/exchange/sessions.py": "values in canonical form",
    "tool/call/performing.py": "arguments in canonical form, as they were judged",
}


def readers(file: Source) -> Iterator[tuple[str, str]]:
    """Every use of a loose reader in a file, with its address."""
    names = dict(_names(file))
    for node in file.nodes:
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            yield "loose", file.at(node, f"{node.attr} takes the last of two equal keys")
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            head, _, rest = dotted(node).partition(".")
            said = f"{names.get(head, head)}.{rest}" if rest else names.get(head, head)
            if said in LOOSE:
                yield "loose", file.at(node, f"{said} takes the last of two equal keys; use read_json or from_json")
            elif said == f"remit.core.schema.json_text.{KEPT}":
                yield KEPT, file.at(node, f"{KEPT} is for texts of our own; use read_json")


def _names(file: Source) -> Iterator[tuple[str, str]]:
    """What each imported name stands for."""
    for node in file.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def test_only_the_strict_reader_makes_values_of_text_from_outside() -> None:
    allowed = {"loose": ALLOWED, KEPT: KEPT_IN}
    expect_none(
        complaint
        for file in sources("src/remit")
        if file.room != "testing"
        for kind, complaint in readers(file)
        if file.place not in allowed[kind]
    )


def test_every_permission_is_still_needed() -> None:
    used = {(kind, file.place) for file in sources("src/remit") for kind, _ in readers(file)}
    listed = {("loose", place) for place in ALLOWED} | {(KEPT, place) for place in KEPT_IN}
    assert not listed - used - {(KEPT, "core/schema/json_text.py")}


@pytest.mark.parametrize(
    "text",
    [
        "import json\njson.loads(text)",
        "import json as j\nj.load(file)",
        "from json import loads\nloads(text)",
        "import msgspec\nread = msgspec.json.Decoder(Line).decode",
        "from json import JSONDecoder\nJSONDecoder().raw_decode(text)",
        "import jiter\njiter.from_json(data)",
        "Model.model_validate_json(text)",
        "from remit.core.schema.json_text import kept_value\nkept_value(text)",
    ],
)
def test_a_loose_reader_is_found_by_any_name(text: str) -> None:
    assert list(readers(source("src/remit/tool/new.py", text)))


@pytest.mark.parametrize(
    "text", ["import json\njson.dumps(value)", "from remit.core.journal.codec import read_json\nread_json(text)"]
)
def test_writers_and_the_strict_reader_are_in_order(text: str) -> None:
    assert not list(readers(source("src/remit/tool/new.py", text)))
