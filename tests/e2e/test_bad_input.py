"""Bad input from models, tools and files: each has its code, and nothing that was there before is lost.

Every test has a run in its store from before; it is still readable, verifiable and replayable afterwards.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from remit.adapters.cli.arguments.inputs import ARGUMENTS_UNREADABLE, PROMPT_UNREADABLE, SCHEMA_FILE_UNREADABLE
from remit.assemble import Settings, opened_to_read
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING, ErrorCode
from remit.core.journal.arrivals import SourcesAccepted
from remit.core.schema.strict_yaml import YamlFault
from remit.inference.scripted.script import SCRIPT_INVALID, SCRIPT_NOT_FOUND, SCRIPT_UNREADABLE
from remit.orchestrate.setup.reloaded_kit import ENGINE_SOURCE_MISSING
from remit.tool.loader import (
    TOOL_DEFINITION_CHANGED,
    TOOL_FILE_EMPTY,
    TOOL_FILE_NOT_FOUND,
    TOOL_FILE_UNREADABLE,
    TOOL_SOURCE_CHANGED,
    TOOL_SOURCE_MISSING,
)
from tests.e2e.command import SCRIPT, TOOLS, Answer, Remit, remit_in
from tests.e2e.house import calls, says

EXIT_USAGE = 2

TOOL_FILE = """
import asyncio, os, subprocess, time
from remit import tool

@tool(effect="read")
def look(n: int) -> str:
    \"\"\"Look.\"\"\"
    return f"seen {n}"

@tool(effect="read")
def raises() -> str:
    \"\"\"Raise.\"\"\"
    raise ValueError("no such thing\\x1b[2J\\ud800")

@tool(effect="read")
def exits() -> str:
    \"\"\"Try to end the process.\"\"\"
    raise SystemExit(7)

@tool(effect="read", timeout_ms=50)
async def hangs() -> str:
    \"\"\"Never come back.\"\"\"
    await asyncio.Event().wait()
    return ""

@tool(effect="read", timeout_ms=50)
def hangs_in_a_thread() -> str:
    \"\"\"Come back too late.\"\"\"
    time.sleep(2)
    return ""

@tool(effect="read", timeout_ms=1_000, isolate=True)
def hangs_in_a_process() -> str:
    \"\"\"Never come back.\"\"\"
    time.sleep(60)
    return ""

@tool(effect="read")
def prints() -> str:
    \"\"\"Print, in every way there is.\"\"\"
    print("printed {")
    os.write(1, b"written {")
    subprocess.run(["echo", "echoed {"], check=True)
    return "quiet"

@tool(effect="read")
def returns_another_type() -> int:
    \"\"\"Return what was not declared.\"\"\"
    return "one"

@tool(effect="read")
def returns_no_json() -> dict:
    \"\"\"Return what cannot be written.\"\"\"
    return {"thing": object()}

@tool(effect="read")
def returns_10_mb() -> str:
    \"\"\"Return much.\"\"\"
    return "x" * 10_000_000

@tool(effect="read")
def returns_100_mb() -> str:
    \"\"\"Return too much.\"\"\"
    return "x" * 100_000_000

@tool(effect="read")
def returns_no_unicode() -> str:
    \"\"\"Return what was read from a file that is not UTF-8.\"\"\"
    return b"caf\\xe9".decode(errors="surrogateescape") + "\\ud83d"

@tool(effect="write")
def pay(n: int) -> str:
    \"\"\"Pay.\"\"\"
    return f"paid {n}"
"""


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    """The command in a folder whose store holds a run already; on leaving, that one is as it was."""
    with remit_in(tmp_path) as remit:
        remit.write(TOOL_FILE, [calls("look", {"n": 1}), says("Seen.")])
        earlier = remit.run_here()
        assert earlier.exit_code == EXIT_OK, earlier
        before = remit.here("export", earlier.values["run_id"]).out
        yield remit
        assert remit.here("verify", earlier.values["run_id"]).exit_code == EXIT_OK
        # All but the footer, whose signature is the same as well, since Ed25519 knows no chance.
        assert remit.here("export", earlier.values["run_id"]).out == before


def one_call(remit: Remit, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
    """A run in which the model proposes one call, hears of it, and ends in words."""
    remit.write(replies=[calls(name, dict(arguments or {})), says("So be it.")])
    return remit.run_here()


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("nobody", {}, ErrorCode.TOOL_NOT_FOUND),
        ("\x1b[2J", {}, ErrorCode.TOOL_NOT_FOUND),
        ("look", {}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("look", {"n": "one"}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("look", {"n": 1, "deep": True}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
        ("look", {"n": [[[{}]]]}, ErrorCode.CONSTRAINT_SCHEMA_INVALID),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_with_a_code(
    name: str, arguments: dict[str, Any], code: ErrorCode, remit: Remit
) -> None:
    answer = one_call(remit, name, arguments)
    assert answer.exit_code == EXIT_OK, answer
    (made,) = answer.values["tool_calls_made"]
    assert (made["status"], made["result"]) == ("refused", code)
    assert code in remit.here("trace", "last").out


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("raises", ErrorCode.TOOL_EXECUTION_FAILED, "ValueError: no such thing"),
        ("exits", ErrorCode.TOOL_EXECUTION_FAILED, "SystemExit: 7"),
        ("hangs", ErrorCode.TOOL_TIMEOUT, "timeout_ms=50"),
        ("hangs_in_a_thread", ErrorCode.TOOL_TIMEOUT, "timeout_ms=50 and was abandoned"),
        ("hangs_in_a_process", ErrorCode.TOOL_TIMEOUT, "timeout_ms=1000"),
        ("returns_another_type", ErrorCode.TOOL_EXECUTION_FAILED, "not the declared int"),
        ("returns_no_json", ErrorCode.TOOL_EXECUTION_FAILED, "no JSON"),
        ("returns_100_mb", ErrorCode.TOOL_EXECUTION_FAILED, "result_bytes=100000000 exceeds"),
    ],
)
def test_a_tool_that_fails_fails_its_call_with_a_code_and_the_run_goes_on(
    name: str, code: ErrorCode, words: str, remit: Remit
) -> None:
    answer = one_call(remit, name)
    assert (answer.exit_code, answer.values["content"]) == (EXIT_OK, "So be it."), answer
    (made,) = answer.values["tool_calls_made"]
    assert (made["status"], made["code"]) == ("failed", code)
    assert words in made["error"]
    trace = remit.here("trace", "last").out
    assert words in trace
    assert words in remit.here("show", "last").out
    assert trace.replace("\n", "").isprintable(), "what a tool raised reaches the terminal as it is"


def test_a_run_survives_a_result_of_ten_megabytes(remit: Remit) -> None:
    answer = one_call(remit, "returns_10_mb")
    assert (answer.exit_code, answer.values["content"]) == (EXIT_OK, "So be it."), answer
    (made,) = answer.values["tool_calls_made"]
    assert made["status"] == "committed", made
    assert f"<{10_000_000} bytes" in remit.here("trace", "last").out
    assert remit.here("replay", "last").exit_code == EXIT_OK


def test_a_result_that_is_no_unicode_is_kept_as_far_as_it_is(remit: Remit) -> None:
    answer = one_call(remit, "returns_no_unicode")
    (made,) = answer.values["tool_calls_made"]
    assert answer.exit_code == EXIT_OK
    assert (made["status"], made["result"]) == ("committed", "caf??")


def test_what_a_tool_prints_does_not_reach_the_reader_of_the_answer(remit: Remit) -> None:
    remit.write(replies=[calls("prints"), says("Silence.")])
    answer = remit.start_run().answer()
    assert (answer.exit_code, answer.values["content"]) == (EXIT_OK, "Silence.")
    assert len(answer.out.splitlines()) == 1
    for said in ("printed {", "written {", "echoed {"):
        assert said in answer.err


Spoil = Callable[[Path], None]


def missing(path: Path) -> None:
    path.unlink(missing_ok=True)


def folder(path: Path) -> None:
    missing(path)
    path.mkdir()


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 10)


def latin_1(path: Path) -> None:
    path.write_bytes("# café\nx: [café]\n".encode("latin-1"))


def holding(text: str) -> Spoil:
    def spoil(path: Path) -> None:
        path.write_text(text)

    spoil.__name__ = f"holding {text[:20]!r}"
    return spoil


def named(value: object) -> str | None:
    return getattr(value, "__name__", None)


SCRIPTS: list[tuple[Spoil, str]] = [
    (missing, SCRIPT_NOT_FOUND),
    (folder, SCRIPT_UNREADABLE),
    (binary, SCRIPT_UNREADABLE),
    (latin_1, SCRIPT_UNREADABLE),
    (holding("{"), SCRIPT_UNREADABLE),
    (holding("[]"), SCRIPT_INVALID),
    (holding('{"replies": 1}'), SCRIPT_INVALID),
    (holding('{"replies": [{"text": "a", "more": 1}]}'), SCRIPT_INVALID),
    (holding('{"replies": [{"text": "\\ud800"}]}'), SCRIPT_UNREADABLE),
]

TOOL_FILES: list[tuple[Spoil, str]] = [
    (missing, TOOL_FILE_NOT_FOUND),
    (folder, TOOL_FILE_UNREADABLE),
    (binary, TOOL_FILE_UNREADABLE),
    (latin_1, TOOL_FILE_UNREADABLE),
    (holding("def f(:"), TOOL_FILE_UNREADABLE),
    (holding("raise SystemExit(0)"), TOOL_FILE_UNREADABLE),
    (holding("import nothing_of_this_name"), TOOL_FILE_UNREADABLE),
    (holding("x = 1"), TOOL_FILE_EMPTY),
]


@pytest.mark.parametrize(
    ("name", "spoil", "code"),
    [*((SCRIPT, *row) for row in SCRIPTS), *((TOOLS, *row) for row in TOOL_FILES)],
    ids=named,
)
def test_a_script_or_tool_file_that_cannot_be_used_is_refused_before_a_run_begins(
    name: str, spoil: Spoil, code: str, remit: Remit
) -> None:
    spoil(remit.folder / name)
    answer = remit.here(
        "run", "Do it.", "--engine", f"scripted:{remit.folder / SCRIPT}", "--tools", str(remit.folder / TOOLS)
    )
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, code), answer
    assert name in answer.err
    assert len(remit.here("runs", "--json").out.splitlines()) == 1, "a run has begun"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (missing, YamlFault.UNREADABLE),
        (folder, YamlFault.UNREADABLE),
        (binary, YamlFault.UNREADABLE),
        (latin_1, YamlFault.UNREADABLE),
        (holding("nodes: ["), YamlFault.NOT_YAML),
        (holding("[]"), YamlFault.VALUE_INVALID),
        (holding("name: g\nstart: a\nnodes: []\nexits: []\n"), YamlFault.VALUE_INVALID),
    ],
    ids=named,
)
def test_a_graph_file_that_cannot_be_used_is_refused_with_a_code(spoil: Spoil, code: str, remit: Remit) -> None:
    path = remit.folder / "graph.yaml"
    spoil(path)
    for command in ("check", "draw"):
        answer = remit.here("graph", command, str(path))
        assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, code), answer
        assert "graph.yaml" in answer.err


@pytest.mark.parametrize("spoil", [missing, folder, binary, latin_1], ids=named)
def test_a_prompt_file_that_cannot_be_read_is_refused_with_a_code(spoil: Spoil, remit: Remit) -> None:
    path = remit.folder / "prompt.txt"
    spoil(path)
    answer = remit.run_here("--file", str(path))
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, PROMPT_UNREADABLE), answer
    answer = remit.run_here("--schema", str(path))
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, SCHEMA_FILE_UNREADABLE), answer


def test_the_installed_command_refuses_a_prompt_that_is_no_unicode(remit: Remit) -> None:
    (remit.folder / "prompt.txt").write_bytes(b"caf\xe9")
    answer = remit.start_run("--file", "prompt.txt").answer()
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, PROMPT_UNREADABLE)
    answer = remit("run", b"caf\xe9".decode(errors="surrogateescape"), "--engine", f"scripted:{SCRIPT}", "--json")
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, PROMPT_UNREADABLE)


@pytest.mark.parametrize("spoil", [missing, folder, binary, latin_1, holding("[1]"), holding("{")], ids=named)
def test_arguments_that_cannot_be_read_are_refused_and_the_run_still_waits(spoil: Spoil, remit: Remit) -> None:
    assert one_call(remit, "pay", {"n": 1}).exit_code == EXIT_WAITING
    path = remit.folder / "arguments.json"
    spoil(path)
    answer = remit.here("approve", "last", "--args", str(path))
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, ARGUMENTS_UNREADABLE)
    assert remit.here("approve", "last").exit_code == EXIT_OK


def test_arguments_that_do_not_fit_the_tool_are_not_run(remit: Remit) -> None:
    assert one_call(remit, "pay", {"n": 1}).exit_code == EXIT_WAITING
    (remit.folder / "arguments.json").write_text('{"n": "all of it"}')
    answer = remit.here("approve", "last", "--args", str(remit.folder / "arguments.json"), "--json")
    assert answer.exit_code != EXIT_OK, answer
    assert "paid" not in remit.here("trace", "last").out


def waiting_run(remit: Remit) -> str:
    """A run that waits for a person, whose tools lie in a file."""
    answer = one_call(remit, "pay", {"n": 1})
    assert answer.exit_code == EXIT_WAITING
    return str(answer.values["run_id"])


def expect_open(remit: Remit, run_id: str) -> None:
    listed = [json.loads(line) for line in remit.here("runs", "--waiting", "--json").out.splitlines()]
    assert [entry["run_id"] for entry in listed] == [run_id]


def test_a_tool_file_that_changed_since_the_run_began_must_be_accepted_by_a_person(remit: Remit) -> None:
    run_id = waiting_run(remit)
    remit.write(TOOL_FILE.replace("paid {n}", "PAID {n}"))
    for command in ("resume", "approve"):
        answer = remit.here(command, run_id)
        assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, TOOL_SOURCE_CHANGED), answer
        assert TOOLS in answer.err
        expect_open(remit, run_id)
    assert remit("resume", run_id, "--accept-tools", "--by", "erin").exit_code == EXIT_WAITING
    assert remit.here("verify", run_id).exit_code == EXIT_OK
    answer = remit.here("approve", run_id, "--json")
    assert answer.exit_code == EXIT_OK, answer
    assert [made["result"] for made in answer.values["tool_calls_made"]] == ["PAID 1"]
    (accepted,) = asyncio.run(acceptances(remit.home, run_id))
    assert accepted.by == "erin"
    assert {Path(source.place).name for source in accepted.sources} == {TOOLS}


async def acceptances(home: Path, run_id: str) -> list[SourcesAccepted]:
    async with opened_to_read(Settings(home)) as system:
        turns = (await system.archive.history(run_id)).turns
    return [turn.arrival for turn in turns if isinstance(turn.arrival, SourcesAccepted)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, TOOL_SOURCE_MISSING),
        ("x = 1", TOOL_SOURCE_MISSING),
        (TOOL_FILE.replace('@tool(effect="write")', '@tool(effect="none")'), TOOL_DEFINITION_CHANGED),
    ],
    ids=["gone", "emptied", "declares_something_else"],
)
def test_a_tool_that_is_gone_or_declares_something_else_cannot_be_accepted(
    text: str | None, code: str, remit: Remit
) -> None:
    run_id = waiting_run(remit)
    if text is None:
        (remit.folder / TOOLS).unlink()
    else:
        remit.write(text)
    answer = remit.here("resume", run_id, "--accept-tools")
    assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, code), answer
    expect_open(remit, run_id)
    # With the file as it was, the run goes on.
    remit.write(TOOL_FILE)
    assert remit.here("approve", run_id).exit_code == EXIT_OK


def test_a_script_that_is_gone_leaves_its_run_to_be_resumed(remit: Remit) -> None:
    run_id = waiting_run(remit)
    script = (remit.folder / SCRIPT).read_text()
    (remit.folder / SCRIPT).unlink()
    answer = remit.here("approve", run_id)
    assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, ENGINE_SOURCE_MISSING)
    expect_open(remit, run_id)
    (remit.folder / SCRIPT).write_text(script)
    assert remit.here("approve", run_id).exit_code == EXIT_OK
