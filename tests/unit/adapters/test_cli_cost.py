"""`remit cost`: which runs it adds up, what it prints to people and programs, and what it refuses."""

import asyncio
import io
import json
import sqlite3
import sys
from pathlib import Path

import pytest

from remit.adapters.cli.arguments.inputs import DAYS_MAX, USAGE, InputUnusable
from remit.adapters.cli.commands.cost import PRICES_UNREADABLE, since_ms_from
from remit.adapters.cli.main import main
from remit.adapters.cli.screen.cost_table import NAME_CHARS_MAX, SHARE_CHARS, report_lines, report_values
from remit.adapters.cli.screen.terminal import Terminal
from remit.assemble import Settings, opened_system
from remit.backend.embedded.disk.database import DATABASE
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import user_message
from remit.core.schema.strict_yaml import YamlFault
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.cost.cost_report import CostReport, Grouping, Row
from remit.orchestrate.setup.kit import Terms, engine_kit
from tests.unit.adapters.desk import HELPER, TOOLS, Desk, Screen, calls

# Each of these types whole commands; the quick check has the projection itself.
pytestmark = pytest.mark.slow

NOW_MS = 1_800_000_000_000
USAGE_EACH = {"prompt_tokens": 5, "output_tokens": 2}
PRICED = {"input_microusd_per_mtok": 1_000_000, "output_microusd_per_mtok": 2_000_000}
# What one call costs that uses USAGE_EACH at these prices.
CALL_MICROUSD = 9


class Bright(Screen):
    """A terminal that takes every character."""

    encoding = "utf-8"


class Narrow(Screen):
    """A terminal that takes no more than ASCII."""

    encoding = "ascii"


def engine(desk: Desk, *replies: object) -> str:
    """A model with a price, each of whose answers costs the same."""
    spec = desk.script(*replies)
    path = Path(spec.removeprefix("scripted:"))
    script = json.loads(path.read_text())
    path.write_text(json.dumps({"price": PRICED, "replies": [{**r, "usage": USAGE_EACH} for r in script["replies"]]}))
    return spec


def ran(desk: Desk, *replies: object, tools: str = TOOLS) -> str:
    """A run with these answers; gives its id."""
    words = ("run", "Where is it?", "--engine", engine(desk, *replies), "--tools", desk.file("tools.py", tools))
    return str(desk.say(*words, "--json").values["run_id"])


def delegated(desk: Desk) -> str:
    """A run that looked and had another one beneath it answer; gives its id."""
    replies = ({"when": '"task"', "text": "written"}, calls("look", place="x"), calls("helper", task="write"), "Done.")
    return ran(desk, *replies, tools=TOOLS + HELPER.replace('"steps"', '"inference_cost_microusd": 100_000, "steps"'))


def of_tenant(desk: Desk, tenant: str) -> str:
    """A run of a tenant; gives its id."""

    async def submit() -> str:
        async with opened_system(Settings(desk.home)) as system:
            kit = engine_kit(ScriptedEngine([{"text": "Done.", "usage": USAGE_EACH}]))
            request = SystemRequest((user_message("Hi"),), tenant_id=tenant)
            return (await system.run(request, kit, Terms())).run_id

    return asyncio.run(submit())


def test_without_a_name_every_run_is_added_up(desk: Desk) -> None:
    first, second = ran(desk, "Done."), ran(desk, calls("look", place="x"), "Done.")
    said = desk.say("cost", "--json")
    assert said.code == EXIT_OK
    rows = {row["name"]: row for row in said.values["rows"]}
    assert rows[first]["cost_microusd"] == CALL_MICROUSD
    assert rows[second]["cost_microusd"] == 2 * CALL_MICROUSD
    assert rows[second]["used"]["tool_calls"] == 1
    assert tuple(rows[second]["used"]) == FIELDS
    assert said.values["total"]["cost_microusd"] == 3 * CALL_MICROUSD
    assert (said.values["by"], said.values["runs"], said.values["succeeded"]) == ("run", 2, 2)
    assert said.values["cost_per_success_microusd"] == 14
    assert (said.values["rest"], said.values["unread"], said.values["forks"]) == (None, [], 0)


def test_a_row_says_what_the_budget_of_the_run_says(desk: Desk) -> None:
    run_id = delegated(desk)
    (row,) = desk.say("cost", "--json").values["rows"]
    spent = desk.say("show", run_id, "--json").values["explanation"]["spent"]
    counted = {one["dimension"]: one["used"] for one in spent if one["dimension"] != "context_tokens"}
    assert {name: row["used"][name] for name in counted} == counted
    assert row["runs"] == 2


def test_each_run_can_have_a_row_of_its_own(desk: Desk) -> None:
    run_id = delegated(desk)
    rows = {row["name"]: row for row in desk.say("cost", "--by", "each-run", "--json").values["rows"]}
    (child_id,) = rows.keys() - {run_id}
    assert rows[child_id]["cost_microusd"] == CALL_MICROUSD
    assert rows[run_id]["cost_microusd"] == 3 * CALL_MICROUSD


def test_named_runs_alone_are_added_up_each_once(desk: Desk) -> None:
    run_id, other = delegated(desk), ran(desk, "Done.")
    assert [row["name"] for row in desk.say("cost", other, "--json").values["rows"]] == [other]
    assert desk.say("cost", "last", "--json").values["runs"] == 1
    twice = desk.say("cost", run_id, run_id, other, "--json").values
    assert (twice["runs"], twice["total"]["cost_microusd"]) == (2, 5 * CALL_MICROUSD)


def test_a_run_that_is_not_there_is_refused(desk: Desk) -> None:
    ran(desk, "Done.")
    said = desk.say("cost", "nobody", "--json")
    assert (said.code, said.error) == (EXIT_FAILED, "RUN_NOT_FOUND")


def test_money_goes_to_tools_nodes_and_models(desk: Desk) -> None:
    ran(desk, calls("look", place="x"), "Done.")
    tools = {
        row["name"]: row["used"]["tool_calls"] for row in desk.say("cost", "--by", "tool", "--json").values["rows"]
    }
    assert tools == {"": 0, "look": 1}
    nodes = {row["name"]: row["used"]["steps"] for row in desk.say("cost", "--by", "node", "--json").values["rows"]}
    assert nodes == {"prepare": 1, "think": 2, "act": 1, "check": 1}
    models = {row["name"]: row["cost_microusd"] for row in desk.say("cost", "--by", "model", "--json").values["rows"]}
    assert models == {"": 0, "scripted:script1": 2 * CALL_MICROUSD}


def test_tenants_are_told_apart(desk: Desk) -> None:
    acme, globex = of_tenant(desk, "acme"), of_tenant(desk, "globex")
    assert {row["name"] for row in desk.say("cost", "--by", "tenant", "--json").values["rows"]} == {"acme", "globex"}
    assert [row["name"] for row in desk.say("cost", "--tenant", "acme", "--json").values["rows"]] == [acme]
    assert desk.say("cost", globex, "--tenant", "acme", "--json").values["runs"] == 0


def test_prices_are_added_for_what_no_journal_prices(desk: Desk) -> None:
    ran(desk, calls("look", place="x"), "Done.")
    prices = desk.file("prices.json", '{"tool_call_microusd": 1000}')
    assert desk.say("cost", "--prices", prices, "--json").values["total"]["cost_microusd"] == 1000 + 2 * CALL_MICROUSD


@pytest.mark.parametrize(
    ("text", "code"),
    [("gpu: 1", YamlFault.KEY_UNKNOWN), ("gpu_second_microusd: many", YamlFault.VALUE_INVALID)],
)
def test_prices_that_cannot_be_used_are_wrong_usage(desk: Desk, text: str, code: YamlFault) -> None:
    said = desk.say("cost", "--prices", desk.file("prices.yaml", text), "--json")
    assert (said.code, said.error) == (2, code)


@pytest.mark.parametrize("name", ["nowhere.yaml", "null\0byte"])
def test_a_file_of_prices_that_cannot_be_read_is_wrong_usage(desk: Desk, name: str) -> None:
    said = desk.say("cost", "--prices", name, "--json")
    assert (said.code, said.error) == (2, PRICES_UNREADABLE)


def test_only_runs_since_a_moment_are_added_up(desk: Desk) -> None:
    ran(desk, "Done.")
    assert desk.say("cost", "--since", "1h", "--json").values["runs"] == 1
    assert desk.say("cost", "--since", "2200-01-01", "--json").values["runs"] == 0


@pytest.mark.parametrize(
    ("text", "ago_ms"),
    [
        ("30min", 1_800_000),
        ("12h", 43_200_000),
        ("7d", 604_800_000),
        ("2w", 1_209_600_000),
        ("0d", 0),
        ("1 day 6h", 108_000_000),
    ],
)
def test_an_age_counts_back_from_now(text: str, ago_ms: int) -> None:
    assert since_ms_from(text, NOW_MS) == NOW_MS - ago_ms


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00", 3_600_000),
        ("1970-01-01T01:00+01:00", 0),
    ],
)
def test_a_date_is_one_in_utc_unless_it_says_otherwise(text: str, at_ms: int) -> None:
    assert since_ms_from(text, NOW_MS) == at_ms


@pytest.mark.parametrize(
    "text", ["yesterday", "7", "7x", "-7d", "9999999d", f"{DAYS_MAX + 1}d", "2026-02-30", "\x1b[2J"]
)
def test_what_is_neither_an_age_nor_a_date_is_refused(text: str) -> None:
    with pytest.raises(InputUnusable) as refused:
        since_ms_from(text, NOW_MS)
    assert refused.value.code == USAGE
    assert "\x1b" not in refused.value.message


def test_a_limit_below_nothing_is_refused(desk: Desk) -> None:
    assert desk.say("cost", "--limit", "-1").code == 2


def test_people_get_a_table_with_its_total_and_what_a_success_cost(desk: Desk) -> None:
    run_id = ran(desk, calls("look", place="x"), "Done.")
    lines = desk.say("cost").out.splitlines()
    assert lines[0].split() == ["run", "cost", "tokens", "in", "tokens", "out", "tool", "calls", "runs"]
    assert lines[1].split() == [run_id, "$0.000018", "10", "4", "1", "1"]
    assert lines[2].split() == ["total", "$0.000018", "10", "4", "1", "1"]
    assert "steps 5" in lines[4]
    assert lines[5] == "at most at once: context_tokens 5"
    assert lines[6] == "1 of 1 run succeeded; cost per successful run, what failed included: $0.000018"


def test_what_is_beyond_the_limit_is_one_row(desk: Desk) -> None:
    ids = [ran(desk, "Done.") for _ in range(4)]
    lines = desk.say("cost", "--limit", "2").out.splitlines()
    assert lines[3].startswith("and 2 more")
    assert lines[4].startswith("total")
    values = desk.say("cost", "--limit", "2", "--json").values
    assert len(values["rows"]) == 2
    assert (values["rest"]["rows"], values["rest"]["cost_microusd"]) == (2, 2 * CALL_MICROUSD)
    assert {row["name"] for row in desk.say("cost", "--limit", "0", "--json").values["rows"]} == set(ids)
    # One more would take the room of the row that stands for it.
    assert desk.say("cost", "--limit", "3", "--json").values["rest"] is None


def test_a_choice_of_no_run_is_said_in_words(desk: Desk) -> None:
    ran(desk, "Done.")
    said = desk.say("cost", "--tenant", "nobody")
    assert (said.code, said.out) == (EXIT_OK, "no run is chosen by that; `remit runs` lists those there are\n")


def test_a_fork_is_not_charged_for_what_its_origin_paid(desk: Desk) -> None:
    run_id = ran(desk, calls("write", text="x"), "Done.")
    desk.say("signal", run_id, "cancel")
    said = desk.say("signal", run_id, "retry", "--json")
    fork_id = str(said.values["run_id"])
    assert fork_id != run_id
    values = desk.say("cost", "--json").values
    costs = {row["name"]: row["cost_microusd"] for row in values["rows"]}
    assert costs[run_id] == CALL_MICROUSD
    assert values["forks"] == 1
    assert costs[fork_id] == values["total"]["cost_microusd"] - CALL_MICROUSD
    assert "1 run is a fork; what was copied was paid for by the origin" in desk.say("cost").out


def test_a_run_that_cannot_be_read_is_named_and_the_command_fails(desk: Desk) -> None:
    good, bad = ran(desk, "Done."), ran(desk, "Done.")
    with sqlite3.connect(desk.home / DATABASE) as database:
        database.execute(
            "DELETE FROM turns WHERE seq = 0 AND run_no = (SELECT run_no FROM runs WHERE run_id = ?)", (bad,)
        )
    said = desk.say("cost", "--json")
    assert (said.code, said.values["unread"]) == (EXIT_FAILED, [bad])
    assert [row["name"] for row in said.values["rows"]] == [good]
    told = desk.say("cost")
    assert f"run {bad} cannot be read and is not in these sums; `remit verify {bad}` says why" in told.err


def seen(desk: Desk, screen: Screen, *words: object) -> str:
    """What a terminal shows."""
    kept, sys.stdout = sys.stdout, screen
    try:
        assert main([*map(str, words), "--home", str(desk.home)]) == EXIT_OK
    finally:
        sys.stdout = kept
    return screen.getvalue()


def test_a_terminal_shows_how_large_each_share_is(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    ran(desk, calls("look", place="x"), calls("look", place="y"), "Done.")
    ran(desk, "Done.")
    rows = seen(desk, Bright(), "cost").splitlines()[1:3]
    assert [row.count("█") for row in rows] == [15, 5]
    assert "█" not in desk.say("cost").out


REPORT = CostReport(
    Grouping.TOOL,
    (
        Row("\x1b[2J\u202e" + "x" * 100, 1, ((int(Dimension.TOOL_CALLS), 1_234),), 0, 999_999),
        Row("", 2, ((int(Dimension.INPUT_TOKENS), 7), (99, 3)), 61_000, 1),
    ),
    Row("", 2, ((0, 7), (2, 1_234), (4, 1_500), (6, 2), (99, 3)), 61_000, 1_000_000),
    roots=2,
    forks=2,
)


def lines_of(report: CostReport, out: io.StringIO) -> list[str]:
    return ["".join(text for text, _ in line) for line in report_lines(Terminal(out, None), report, 0)]


def test_a_hostile_name_is_shown_as_text_and_cut() -> None:
    lines = lines_of(REPORT, Bright())
    assert lines[1].startswith("\\x1b[2J\\u202e")
    assert lines[1][NAME_CHARS_MAX - 1] == "…"
    assert all(line.isprintable() for line in lines)


def test_what_has_no_name_and_what_was_not_used_are_said_plainly() -> None:
    _, _, nameless, *_ = lines_of(REPORT, Bright())
    assert nameless.startswith("(no tool)")
    assert nameless.split()[2:] == ["$0.000001", "7", "-", "-", "1", "min", "01", "s", "2", "█"]


def test_a_dimension_that_nobody_knows_is_told_by_its_number() -> None:
    lines = lines_of(REPORT, Bright())
    assert "also used: wall_clock 1.5 s, dimension_99 3" in lines
    assert "at most at once: retries 2" in lines
    assert report_values(REPORT, 0)["total"]["used"]["dimension_99"] == 3


def test_forks_are_counted_and_no_success_has_no_cost() -> None:
    lines = lines_of(REPORT, Bright())
    assert lines[-2:] == ["2 runs are forks; what was copied was paid for by the origin", "0 of 2 runs succeeded"]


def test_a_terminal_that_takes_only_ascii_gets_other_marks() -> None:
    assert lines_of(REPORT, Narrow())[1].count("#") == SHARE_CHARS - 1


def test_a_report_on_each_run_by_itself_counts_no_runs_and_says_nothing_that_is_not_so() -> None:
    free = Row("run1", 1)
    lines = lines_of(CostReport(Grouping.EACH_RUN, (free,), free, roots=1, succeeded=1), Bright())
    assert lines == [
        "run     cost  tokens in  tokens out",
        "run1   $0.00          -           -",
        "total  $0.00          -           -",
        "",
        "1 of 1 run succeeded; cost per successful run, what failed included: $0.00",
    ]


def test_a_file_gets_the_numbers_alone() -> None:
    assert not any("█" in line or "#" in line for line in lines_of(REPORT, io.StringIO()))
