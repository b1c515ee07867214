"""Files, caps and boundaries that a command line names."""

from pathlib import Path

import pytest

from remit.adapters.cli.arguments import inputs
from remit.adapters.cli.arguments.inputs import InputUnusable
from remit.core.limits.budget import Budget


def test_a_prompt_comes_from_the_command_line_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt"
    file.write_bytes(b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe\n")
    assert inputs.prompt_from("Hi", None) == "Hi"
    assert inputs.prompt_from("", file) == "Grüße\n"


@pytest.mark.parametrize("words", ["half \udcff", "\ud800"])
def test_a_prompt_that_is_no_text_is_refused(words: str) -> None:
    with pytest.raises(InputUnusable, match="PROMPT_UNREADABLE"):
        inputs.prompt_from(words, None)


def test_a_file_that_is_no_text_names_the_wrong_byte(tmp_path: Path) -> None:
    file = tmp_path / "prompt"
    file.write_bytes(b"abc\xff")
    with pytest.raises(InputUnusable, match="byte 3 is wrong"):
        inputs.prompt_from("", file)


def test_a_file_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "REQUEST_BYTES_MAX", 3)
    file = tmp_path / "prompt"
    file.write_text("abcd")
    with pytest.raises(InputUnusable, match="file_bytes_max=3"):
        inputs.prompt_from("", file)


@pytest.mark.parametrize("name", ["missing", ".", "nul\x00byte"])
def test_a_file_that_cannot_be_read_is_refused_with_the_code_of_its_use(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputUnusable, match="SCHEMA_FILE_UNREADABLE"):
        inputs.schema_in(tmp_path / name)
    with pytest.raises(InputUnusable, match="CONFIG_GRAMMAR_NOT_FOUND"):
        inputs.grammar_in(tmp_path / name)
    with pytest.raises(InputUnusable, match="ARGUMENTS_UNREADABLE"):
        inputs.arguments_from_file(tmp_path / name)


def test_a_grammar_is_the_text_of_its_file_and_nothing_without_one(tmp_path: Path) -> None:
    file = tmp_path / "grammar"
    file.write_text('root ::= "a"')
    assert inputs.grammar_in(file) == 'root ::= "a"'
    assert (inputs.grammar_in(None), inputs.schema_in(None), inputs.arguments_from_file(None)) == (None, None, None)


@pytest.mark.parametrize("text", ["{", "[]", "3", '"text"', "[" * 100_000])
def test_a_schema_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "schema"
    file.write_text(text)
    with pytest.raises(InputUnusable, match="SCHEMA_FILE_UNREADABLE"):
        inputs.schema_in(file)


def test_a_schema_that_checks_nothing_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "schema"
    file.write_text('{"type": 5}')
    with pytest.raises(InputUnusable, match=r"CONFIG_SCHEMA_INVALID.*/type"):
        inputs.schema_in(file)
    file.write_text('{"type": "object"}')
    assert inputs.schema_in(file) == {"type": "object"}


def test_caps_may_be_joined_by_commas_and_said_several_times() -> None:
    assert inputs.budget_from(["tool_calls=5,steps=0", "depth=1"]) == Budget(tool_calls=5, steps=0, depth=1)
    assert inputs.budget_from([]) == Budget()


@pytest.mark.parametrize(
    "cap",
    ["", "tool_calls", "tool_calls=", "tool_calls=-1", "tool_calls=1.5", "tool_calls=٣", "dance=1", "steps=1,steps=2"],
)
def test_what_is_no_cap_is_refused(cap: str) -> None:
    with pytest.raises(InputUnusable, match="BUDGET_INVALID"):
        inputs.budget_from([cap])


@pytest.mark.parametrize("cap", ["memory_writes=2", "reflection_passes=1", "steps=5,memory_writes=1"])
def test_a_cap_that_nothing_charges_is_wrong_usage(cap: str) -> None:
    with pytest.raises(InputUnusable, match=r"DIMENSION_UNCHARGED.*not built yet"):
        inputs.budget_from([cap])
    assert inputs.budget_from(["memory_writes=0,reflection_passes=0"]).memory_writes == 0


def test_a_boundary_is_known_by_name() -> None:
    assert inputs.boundary_given("standard").name == "standard"
    assert inputs.boundary_given("incident_sre").name == "incident_sre"
    with pytest.raises(InputUnusable, match="customer_support"):
        inputs.boundary_given("nobody")


@pytest.mark.parametrize("digits", [str(inputs.CAP_MAX + 1), "9" * 5000, "0" * 5000 + "9" * 17])
def test_a_cap_beyond_the_limit_is_refused_however_many_digits_it_has(digits: str) -> None:
    with pytest.raises(InputUnusable, match=f"BUDGET_INVALID.*at most {inputs.CAP_MAX}"):
        inputs.budget_from([f"steps={digits}"])


def test_a_cap_may_be_as_large_as_the_limit() -> None:
    assert inputs.budget_from([f"steps=000{inputs.CAP_MAX}"]) == Budget(steps=inputs.CAP_MAX)


def test_a_timeout_is_given_in_seconds_or_with_its_unit() -> None:
    said = ("0", "3.5", "604800", "5min", "1h 30m")
    assert [inputs.timeout_ms_from(text) for text in said] == [0, 3_500, 604_800_000, 300_000, 5_400_000]


@pytest.mark.parametrize("text", ["inf", "nan", "-1", "1e300", "604801", "8d", "0.0001", "soon", "\x1b[2J", "9" * 4000])
def test_a_timeout_that_no_run_could_have_is_wrong_usage(text: str) -> None:
    with pytest.raises(InputUnusable, match=r"USAGE: --timeout .* is no time up to 7 days; write it as") as refused:
        inputs.timeout_ms_from(text)
    assert "\x1b" not in refused.value.message


def test_an_age_is_given_in_days_or_with_its_unit() -> None:
    day_ms = 86_400_000
    assert [inputs.age_ms_from(text) for text in ("0", "30", "30d", "2w", "36h")] == [
        0,
        30 * day_ms,
        30 * day_ms,
        14 * day_ms,
        day_ms * 3 // 2,
    ]


@pytest.mark.parametrize("text", ["-1", "36526", "9" * 4000, "", "old"])
def test_an_age_that_no_run_could_have_is_wrong_usage(text: str) -> None:
    with pytest.raises(InputUnusable, match=r"USAGE: --older-than .{0,80} is no age up to 36525 days"):
        inputs.age_ms_from(text)


@pytest.mark.parametrize("cap", ["wall_clock=0.1ms", "inference_cost=0.0000001usd"])
def test_a_cap_that_is_less_than_can_be_counted_is_refused_and_forbids_nothing(cap: str) -> None:
    with pytest.raises(InputUnusable, match="is no cap"):
        inputs.budget_from([cap])


@pytest.mark.parametrize("cap", ["wall_clock=5min", "wall_clock_ms=5m", "wall_clock_ms=300000"])
def test_the_time_of_a_budget_may_have_its_unit(cap: str) -> None:
    assert inputs.budget_from([cap]) == Budget(wall_clock_ms=300_000)


def test_the_time_of_a_budget_without_a_unit_names_it() -> None:
    with pytest.raises(InputUnusable, match="wall_clock=5min"):
        inputs.budget_from(["wall_clock=5"])


@pytest.mark.parametrize("said", ["", " \n\t"])
def test_a_prompt_that_says_nothing_is_wrong_usage(tmp_path: Path, said: str) -> None:
    file = tmp_path / "prompt"
    file.write_text(said)
    with pytest.raises(InputUnusable, match=r"USAGE: .*prompt' says nothing"):
        inputs.prompt_from("", file)
    with pytest.raises(InputUnusable, match="USAGE"):
        inputs.prompt_from(said, None)


def test_a_stdin_that_is_closed_is_refused_with_the_code_of_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputUnusable, match="PROMPT_UNREADABLE: stdin is closed"):
        inputs.prompt_from("", inputs.STDIN)


@pytest.mark.parametrize("cap", ["inference_cost=0.50usd", "inference_cost=$0.5", "inference_cost_microusd=0.5 USD"])
def test_the_money_of_a_budget_may_have_its_unit(cap: str) -> None:
    assert inputs.budget_from([cap]) == inputs.budget_from(["inference_cost_microusd=500000"])


@pytest.mark.parametrize("cap", ["inference_cost=0.50", "inference_cost=-1usd", "inference_cost=1eur", "steps=1usd"])
def test_money_without_its_unit_or_in_another_place_is_no_cap(cap: str) -> None:
    with pytest.raises(InputUnusable, match=r"inference_cost=0\.50usd|whole number"):
        inputs.budget_from([cap])
