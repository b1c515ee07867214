"""What tenants have left of their quotas, in a pipe, as JSON and at a terminal; and a run that finds nothing left."""

import sys

import pytest
import yaml

from remit.adapters.cli.commands.quotas import _bar, _ink
from remit.adapters.cli.main import main
from remit.adapters.cli.screen.colours import Ink
from remit.core.limits.quota import Period, QuotaStanding
from tests.unit.adapters.desk import Desk, Screen


class Bright(Screen):
    """A terminal that takes every character."""

    encoding = "utf-8"


class Plain(Screen):
    """A terminal that takes no more than ASCII."""

    encoding = "ascii"


def says(output_tokens: int) -> dict[str, object]:
    return {"text": "Done.", "usage": {"prompt_tokens": 5, "output_tokens": output_tokens}}


def allow(desk: Desk, period: str = "day", tenant: str = "*", **caps: int) -> None:
    desk.home.mkdir(exist_ok=True)
    entry = {"tenant": tenant, "period": period, "caps": caps}
    (desk.home / "quotas.yaml").write_text(yaml.safe_dump({"quotas": [entry]}))


def run(desk: Desk, output_tokens: int, *words: str) -> int:
    return desk.say("run", "Hi", "--engine", desk.script(says(output_tokens)), *words).code


def test_a_pipe_gets_the_numbers_and_when_they_renew(desk: Desk) -> None:
    allow(desk, output_tokens=1_000, steps=500)
    run(desk, 12)
    head, titles, tokens, steps = desk.say("quotas").out.splitlines()
    assert head.startswith("(no tenant)  per day, renews 20")
    assert head.endswith(" 00:00:00 UTC")
    assert titles.split() == ["quota", "used", "reserved", "left"]
    assert tokens.split() == ["output_tokens", "1,000", "12", "0", "988"]
    assert steps.split()[:2] == ["steps", "500"]


def test_json_says_the_same_one_object_a_line(desk: Desk) -> None:
    allow(desk, "total", output_tokens=100)
    run(desk, 12)
    assert desk.say("quotas", "--json").rows == [
        {
            "tenant": "",
            "period": "total",
            "dimension": "output_tokens",
            "quota": 100,
            "spent": 12,
            "reserved": 0,
            "left": 88,
            "renews_at_ms": None,
        }
    ]
    assert "in all, never renews" in desk.say("quotas").out


def test_a_run_counts_against_the_tenant_it_names(desk: Desk) -> None:
    allow(desk, "total", tenant="acme", output_tokens=100)
    run(desk, 12)
    run(desk, 30, "--tenant", "acme")
    (row,) = desk.say("quotas", "--tenant", "acme", "--json").rows
    assert (row["tenant"], row["spent"]) == ("acme", 30)


def test_one_tenant_is_shown_alone_also_one_that_has_no_runs_yet(desk: Desk) -> None:
    allow(desk, output_tokens=100)
    run(desk, 12)
    (row,) = desk.say("quotas", "--tenant", "zoe", "--json").rows
    assert (row["tenant"], row["left"]) == ("zoe", 100)


def test_without_quotas_it_is_said_where_they_would_stand(desk: Desk) -> None:
    desk.ended()
    assert desk.say("quotas").out == f"no tenant has a quota; quotas are said in {desk.home / 'quotas.yaml'}\n"
    assert desk.say("quotas", "--tenant", "a\x1b").out.startswith("tenant a\\x1b has no quota; ")
    assert desk.say("quotas", "--json").out == ""


def test_a_run_that_finds_nothing_left_is_refused_like_one_that_budget_stopped(desk: Desk) -> None:
    allow(desk, output_tokens=12)
    assert run(desk, 12) == 0
    said = desk.say("run", "Hi", "--engine", desk.script("Done."), "--json")
    assert (said.code, said.error) == (4, "QUOTA_EXHAUSTED")
    assert said.values["error"]["details"]["spent"] == 12
    assert len(desk.say("runs", "--json").rows) == 1


def test_a_run_that_waits_holds_what_it_may_spend_until_it_ends(desk: Desk) -> None:
    allow(desk, tool_calls=10)
    waits = desk.waiting()
    (row,) = desk.say("quotas", "--json").rows
    assert (row["spent"], row["reserved"], row["left"]) == (0, 10, 0)
    desk.say("reject", waits)
    desk.say("signal", waits, "resume")
    (row,) = desk.say("quotas", "--json").rows
    assert (row["spent"], row["reserved"], row["left"]) == (0, 0, 10)


def test_a_wrong_file_is_refused_with_its_line_before_anything_begins(desk: Desk) -> None:
    allow(desk, "year", output_tokens=12)
    said = desk.say("run", "Hi", "--engine", desk.script("Done."), "--json")
    assert (said.code, said.error) == (1, "FILE_VALUE_INVALID")
    assert "quotas.yaml:4: quotas[0].period must be one of" in said.values["error"]["message"]


@pytest.mark.parametrize(("screen", "bar"), [(Bright(), "█" * 2 + "░" * 18), (Plain(), "#" * 2 + "." * 18)])
def test_a_terminal_with_room_gets_a_bar(desk: Desk, screen: Screen, bar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    allow(desk, output_tokens=100)
    run(desk, 12)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["quotas", "--home", str(desk.home)]) == 0
    assert bar in screen.getvalue()


def test_a_terminal_without_room_gets_the_numbers_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.adapters.cli.commands.quotas.columns_of", lambda terminal: 60)
    screen = Bright()
    allow(desk, output_tokens=100)
    run(desk, 12)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["quotas", "--home", str(desk.home)]) == 0
    assert "░" not in screen.getvalue()
    assert "88" in screen.getvalue()


def at(quota: int, spent: int, reserved: int) -> QuotaStanding:
    left = max(quota - spent - reserved, 0)
    return QuotaStanding("acme", Period.DAY, "steps", quota, spent, reserved, left, 1)


@pytest.mark.parametrize(
    ("standing", "bar", "ink"),
    [
        (at(100, 0, 0), "..........", Ink.GOOD),
        (at(100, 1, 0), "#.........", Ink.GOOD),
        (at(100, 50, 20), "#####++...", Ink.GOOD),
        (at(100, 0, 80), "++++++++..", Ink.WAITS),
        (at(1000, 999, 0), "#########.", Ink.WAITS),
        (at(100, 60, 40), "######++++", Ink.BAD),
        (at(100, 120, 0), "##########", Ink.BAD),
        (at(0, 0, 0), "..........", Ink.BAD),
    ],
)
def test_something_is_never_nothing_and_a_bar_is_full_only_where_nothing_is_left(
    standing: QuotaStanding, bar: str, ink: Ink
) -> None:
    assert (_bar(standing, 10, ("#", "+", ".")), _ink(standing)) == (bar, ink)
