"""The examples of the documents run, so that they cannot rot."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import get_args

import pytest

import remit
import remit.testing
from remit.core.journal.arrivals import Arrival
from remit.core.journal.turn import Decision
from remit.orchestrate.executors.errands import Errand
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.people.queues import Queues
from tests import warm
from tests.tidy.source import PACKAGE, ROOT, sources

# The README's own asks the real model; tests/e2e/test_readme.py plays it.
DOCUMENTS = (
    "CONTRIBUTING.md",
    "docs/agents.md",
    "docs/approvals.md",
    "docs/builtin-tools.md",
    "docs/choosing-a-boundary.md",
    "docs/concepts.md",
    "docs/from-langgraph.md",
    "docs/from-pydantic-ai.md",
    "docs/graphs.md",
    "docs/principals.md",
    "docs/retrieval.md",
    "docs/system.md",
    "docs/testing.md",
    "docs/tools.md",
    "docs/trace.md",
    "docs/validation.md",
    "docs/writing-an-engine.md",
)

BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# What pytest answers when everything passed, and when there was nothing to run but the import itself.
PASSED, NOTHING_TO_RUN = 0, 5


def blocks(text: str, language: str) -> list[str]:
    return [found["text"] for found in BLOCK.finditer(text) if found["language"] == language]


def commands(text: str) -> list[list[str]]:
    """The commands of the shell blocks, one per line, without what is said about them."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    return [command.split() for line in lines if (command := line.partition("#")[0].strip())]


def played(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run all Python blocks of a document as one module, its tests included."""
    module = folder / "test_examples.py"
    module.write_text("\n\n".join(blocks(text, "python")), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(module)]
    # Plugins of this project are no part of the examples, and loading them takes longer than running those.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return warm.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_python_example_of_a_document_runs(document: str, tmp_path: Path) -> None:
    done = played((ROOT / document).read_text(encoding="utf-8"), tmp_path)
    assert done.returncode in (PASSED, NOTHING_TO_RUN), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_of_a_document_runs(document: str) -> None:
    for program, *arguments in commands((ROOT / document).read_text(encoding="utf-8")):
        assert program == "python"
        done = warm.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_guide_to_testing_has_examples_and_the_one_for_contributors_commands() -> None:
    guide, contributing = ((ROOT / path).read_text(encoding="utf-8") for path in ("docs/testing.md", "CONTRIBUTING.md"))
    assert len(blocks(guide, "python")) >= 5
    assert len(commands(contributing)) >= 3


@pytest.mark.parametrize("example", ["import no_such_module", "def test_a(): assert False"])
@pytest.mark.slow
def test_an_example_that_does_not_run_is_found(example: str, tmp_path: Path) -> None:
    assert played(f"```python\n{example}\n```\n", tmp_path).returncode not in (PASSED, NOTHING_TO_RUN)


def test_blocks_are_told_apart_by_their_language() -> None:
    text = "```python\na = 1\n```\n\nthen\n\n```sh\npython -m this  # quietly\n# nothing\n```\n```yaml\nb: 2\n```\n"
    assert blocks(text, "python") == ["a = 1\n"]
    assert commands(text) == [["python", "-m", "this"]]


# Says on stderr which step of the event loop worked for more than 100 ms: by the time of its own thread, since the clock on
# the wall tells how busy the machine is.
MEASURED = """
import asyncio, runpy, sys, threading, time

whole = asyncio.Handle._run


def measured(handle):
    begun = time.thread_time()
    whole(handle)
    if (worked := time.thread_time() - begun) > 0.1 and threading.current_thread() is threading.main_thread():
        print(f"a step of the loop worked {worked:.3f} s: {handle!r:.200}", file=sys.stderr)


asyncio.Handle._run = measured
runpy.run_path("program.py", run_name="__main__")
"""


def scripts() -> list[str]:
    """The programs of docs/system.md and of the README, which asks a scripted model here."""
    told = [blocks((ROOT / path).read_text(encoding="utf-8"), "python") for path in ("docs/system.md", "README.md")]
    (first, second, *_), readme = told[0], "\n\n".join(told[1])
    scripted = 'ScriptedEngine([{"tool_calls": [{"name": "stock", "arguments": {"item": "lamp"}}]}, {"text": "3"}])'
    readme = readme.replace('AgentLoop("local"', f"AgentLoop({scripted}")
    left = """
import asyncio


async def leave() -> None:
    await agent.chat("Once more.")


asyncio.run(leave())
"""
    # The same agent inside a loop that ends without anybody closing anything.
    return [
        first,
        second,
        readme.replace("import AgentLoop, Budget, tool", "import AgentLoop, Budget, ScriptedEngine, tool") + left,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_a_program_of_a_document_needs_remit_alone_and_leaves_nothing_on_stderr(number: int, tmp_path: Path) -> None:
    program = scripts()[number]
    imported = re.findall(r"^(?:from|import) (remit[\w.]*)", program, re.MULTILINE)
    assert set(imported) == {"remit"}, imported
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", MEASURED]
    home = {"REMIT_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **home}, capture_output=True, text=True, check=False
    )
    # How long a step took by the clock on the wall says how busy the machine is; what it worked is measured above.
    said = [line for line in done.stderr.splitlines() if not re.fullmatch(r"Executing <.*> took [\d.]+ seconds", line)]
    assert (done.returncode, said) == (0, []), done.stdout


ALONE = [
    pytest.param(text, id=f"{name}-{number}")
    for name in ("agents.md", "patterns.md", "system.md")
    for number, text in enumerate(blocks((ROOT / "docs" / name).read_text(encoding="utf-8"), "python"))
]


@pytest.mark.slow
@pytest.mark.parametrize("text", ALONE)
def test_a_block_that_a_user_copies_out_of_a_guide_runs_alone(text: str, tmp_path: Path) -> None:
    home = {"REMIT_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    done = warm.run(
        [sys.executable, "program.py"], cwd=tmp_path, env={**os.environ, **home}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_document_and_no_example_imports_from_inside_the_house() -> None:
    inside = re.compile(r"^ *(?:from|import) remit\.(?!testing import\b)[\w.]+", re.MULTILINE)
    texts = {path: path.read_text(encoding="utf-8") for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]}
    programs = {path: "\n".join(blocks(text, "python")) for path, text in texts.items()}
    programs |= {path: path.read_text(encoding="utf-8") for path in ROOT.glob("examples/*.py")}
    assert {path.name: found for path, text in programs.items() if (found := inside.findall(text))} == {}


# Pages that name what is no part of Python's public names: kinds of turns as JSON writes them, and messages of other programs.
OF_OTHER_THINGS = ("api.md", "events.md", "requirements.md", "limits.md")
IN_BACKTICKS = re.compile(r"`([A-Z]\w*|[a-z_]\w*(?=\())[^`\n]*`")


def members_of(kind: object) -> set[str]:
    return {name for one in getattr(kind, "__mro__", ()) for name in vars(one)}


def names_that_cannot_be_imported(text: str, defined: Collection[str], public: Collection[str]) -> set[str]:
    """The classes and functions of the house that a page names in its prose, and that no program can import."""
    prose = BLOCK.sub("", text)
    return {name for name in IN_BACKTICKS.findall(prose) if name in defined and name not in public}


@pytest.mark.slow
def test_whatever_a_document_names_comes_from_the_front_door() -> None:
    # Shapes of the wire are what others send, whatever they are written in.
    top = [node for file in sources(PACKAGE) if file.room not in ("testing", "wire") for node in file.tree.body]
    defined = {node.name for node in top if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    # Words of a graph, a message or a method that a class of the house happens to be called by, too.
    kinds = {kind.__name__ for union in (Arrival, Decision, Errand) for kind in get_args(union)}
    public = {*remit.__all__, *remit.testing.__all__, "Literal", "Tool", "Result", "reconcile", *kinds}
    public |= {member for name in remit.__all__ for member in members_of(getattr(remit, name))}
    public |= {member for kind in (Archive, Queues) for member in members_of(kind)}
    pages = [path for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md"] if path.name not in OF_OTHER_THINGS]
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages}
    found = {name: names_that_cannot_be_imported(text, defined, public) for name, text in texts.items()}
    assert {name: lacking for name, lacking in found.items() if lacking} == {}


def test_a_name_that_no_program_can_import_is_found() -> None:
    text = "`Inner` and `inner(x)` of `outer(y)`.\n```python\n`Hidden`\n```\n`inner` and `Outer`."
    assert names_that_cannot_be_imported(text, {"Inner", "inner", "Hidden", "Outer"}, {"Outer"}) == {"Inner", "inner"}
