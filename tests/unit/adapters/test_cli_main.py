"""The command line itself: help, usage, errors, logs."""

import inspect
import json
import logging
import runpy
import sys
from collections.abc import Coroutine
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pytest

from remit.adapters.cli.main import build_app, main
from remit.adapters.cli.table import CommandEntry, command_entries, help_overview
from tests.unit.adapters.desk import Desk
from tests.unit.adapters.test_cli_terminal import Full


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--json", "--help"]])
def test_help_lists_every_command_and_exits_with_0(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == help_overview() + "\n"
    assert all(f"  {entry.words} " in help_overview() for entry in command_entries())


def test_nothing_at_all_is_wrong_usage_and_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr() == ("", help_overview() + "\n")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["show", "--help"]])
def test_help_that_cannot_be_printed_is_a_failure_without_a_word(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(words) == 1
    monkeypatch.setattr(sys, "stdout", None)
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_the_arguments_of_the_process_are_taken_when_none_are_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["remit", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"remit {version('remit')}\n"


@pytest.mark.parametrize("entry", list(command_entries()), ids=lambda entry: entry.words)
def test_every_command_is_where_the_table_says_and_says_what_the_table_says(
    entry: CommandEntry, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _, function = entry.home.partition(":")
    command = getattr(import_module(f"remit.adapters.cli.{module}"), function)
    assert inspect.getdoc(command) == entry.line
    assert main([*entry.words.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert entry.line.split()[0] in said
    assert "--json" in said
    assert "--home" in said


def test_a_help_flag_behind_two_hyphens_is_a_word_like_any_other(desk: Desk) -> None:
    desk.ended()
    assert main(["show", "--home", str(desk.home), "--", "--help"]) == 1


@pytest.mark.parametrize(
    "words",
    [["nope"], ["run", "--nope"], ["show"], ["show", "a", "b"], ["graph"], ["graph", "nope"], ["run", "--mode", "x"],
     ["--nope", "run"], ["--home"], ["signal", "last", "dance"], ["run", "x", "--timeout", "soon"],
     ["run", "x", "--timeout", "inf"], ["run", "x", "--timeout", "nan"], ["gc", "--older-than", "9999999999999"],
     ["gc", "--older-than", "9" * 5000]],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_a_code(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "USAGE"
    assert main(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("error USAGE: ")) == ("", True)
    assert len(said.err) < 1000


@pytest.mark.parametrize("words", [["run"], ["run", "Hi", "--file", "x"]])
def test_a_run_wants_one_prompt(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "give a prompt" in capsys.readouterr().err


def test_an_error_of_the_house_is_one_line_with_its_code(desk: Desk) -> None:
    said = desk.say("show", "last")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("error STORE_NOT_FOUND: ")
    assert said.err.count("\n") == 1


def break_it(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(work: Coroutine[Any, Any, None]) -> None:
        work.close()
        raise error

    monkeypatch.setattr("remit.adapters.cli.commands.runs.in_loop", broken)


def test_a_fault_of_remit_is_one_line_unless_the_user_asks_for_the_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch, ZeroDivisionError("\x1b[31mred"))
    said = desk.say("runs")
    assert said.code == 1
    assert said.err.startswith("error UNEXPECTED: ZeroDivisionError: \\x1b[31mred; ")
    assert said.err.count("\n") == 1
    said = desk.say("runs", "--json", "--log-level", "debug")
    assert said.error == "UNEXPECTED"
    assert "Traceback" in said.err


def test_an_interrupt_outside_of_the_loop_ends_quietly(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch, KeyboardInterrupt())
    assert desk.say("runs") == (130, "", "")


def test_logging_is_as_before_when_a_command_is_done(desk: Desk) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    desk.say("runs", "--log-level", "debug")
    assert (root.level, list(root.handlers)) == before


def test_the_app_loads_no_command_before_it_is_called() -> None:
    app = build_app()
    assert {name for name in app if not name.startswith("-")} == {entry.words.split()[0] for entry in command_entries()}


def test_the_package_is_the_command_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["remit", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("remit", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (0, f"remit {version('remit')}\n")


@pytest.mark.parametrize("words", [["chat", "--engine", "SCRIPT"], ["constrain"], ["constrain", "--jsonl"]])
def test_a_closed_stdin_is_wrong_usage_and_no_fault(
    words: list[str], desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = desk.script("Hello.")
    monkeypatch.setattr(sys, "stdin", None)
    said = desk.say(*[engine if word == "SCRIPT" else word for word in words])
    assert (said.code, "stdin is closed" in said.err) == (2, True)


@pytest.mark.parametrize(("group", "line"), [("models", "about models."), ("graph", "about graphs.")])
def test_the_help_of_a_group_says_what_its_commands_are_about(
    group: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([group, "--help"]) == 0
    assert line in capsys.readouterr().out


def test_a_word_too_many_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "What", "is"]) == 2
    assert "USAGE: 'is' is one word too many; put quotes around" in capsys.readouterr().err


def test_the_help_fits_a_hundred_columns() -> None:
    assert max(map(len, help_overview().splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aprove", "--help"], 'Unknown command "aprove". Did you mean "approve"? See `remit --help`'),
        (["boundary", "shwo", "-h"], 'Unknown command "shwo". Did you mean "show"? See `remit boundary --help`'),
    ],
)
def test_what_is_no_command_has_no_help_and_the_nearest_is_offered(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err
