"""Every scenario file comes out as it says, and together the files show every row of every table."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from remit.core.journal.commands import AskHuman
from remit.core.journal.rulings import RunEnded, ToolCallRefused
from remit.core.limits.boundary import Boundary
from remit.core.limits.profiles import PROFILES
from tests.scenarios.__main__ import main
from tests.scenarios.places import PLACES, PlaceKind, ValuePath
from tests.scenarios.props import Call
from tests.scenarios.report import coverage_lines, happened, story_lines
from tests.scenarios.runner import FOLDER, complaints, missing, named, scenario_at, scenario_files, verdict
from tests.scenarios.scenario import Act, Said, Scenario
from tests.scenarios.stage import play

ROWS = {
    PlaceKind.CODE: 17,
    PlaceKind.ROW: 11,
    PlaceKind.CONTROL: 7,
    PlaceKind.CATEGORY: 10,
    PlaceKind.CHECK: 9,
    PlaceKind.CELL: 30,
}
# Whatever it would stop, the condition on exposed secrets has stopped before.
SHADOWED: dict[str, list[str]] = {}
PLAIN = scenario_at(FOLDER / "codes/success.yaml")
HELD = scenario_at(FOLDER / "profiles/customer_support/tools.yaml")


@pytest.mark.req("4.4", "4.5", "4.28", "4.34", "4.36", "4.37")
@pytest.mark.parametrize("path", scenario_files(), ids=named)
def test_a_scenario_comes_out_as_its_file_says(path: Path) -> None:
    played, wrong = verdict(path)
    assert not wrong, "\n".join(story_lines(played, wrong))


def test_the_tables_have_as_many_rows_as_the_doctrine() -> None:
    assert Counter(place.kind for place in PLACES) == ROWS


@pytest.mark.req("4.2", "4.4", "4.28", "4.34", "4.36", "4.37")
def test_every_row_of_every_table_is_shown_by_a_file() -> None:
    assert missing(scenario_at(path) for path in scenario_files()) == []


@pytest.mark.req("4.5")
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_condition_of_a_profile_decides_in_a_scenario(profile: Boundary) -> None:
    played = [verdict(path)[0] for path in scenario_files()]
    reasons = [one.reason for play in played for one in play.decisions(ToolCallRefused)]
    reasons += [
        reason for play in played for one in play.decisions(AskHuman) if one.packet for reason in one.packet.reasons
    ]
    reasons += [one.message for play in played for one in play.decisions(RunEnded)]
    undecided = [
        one.name for one in profile.conditions if not any(f"condition {one.name}:" in reason for reason in reasons)
    ]
    assert undecided == SHADOWED.get(profile.name, [])


def test_a_place_that_no_file_shows_is_missing() -> None:
    shown = [place for place in PLACES if place.kind is not PlaceKind.CONTROL]
    assert [place.kind for place in missing([replace(PLAIN, shows=tuple(shown))])] == [PlaceKind.CONTROL] * 7


@pytest.mark.parametrize("place", [place for place in PLACES if place not in PLAIN.shows], ids=str)
def test_a_file_cannot_claim_what_it_does_not_reach(place: ValuePath) -> None:
    wrong = complaints(play(replace(PLAIN, shows=(place,))))
    assert len(wrong) == 1
    assert wrong[0].startswith(f"shows {place}: ")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ends": None, "waits": "CONFIRM_REQUIRED"}, "waits CONFIRM_REQUIRED, and it ends SUCCESS"),
        ({"ends": "TIMEOUT"}, "ends TIMEOUT, and it ends SUCCESS"),
        ({"turned_away": "GRAPH_REFUSED"}, "turned away: expected 'GRAPH_REFUSED', was ''"),
        ({"error": "TOOL_TIMEOUT"}, "expected the error TOOL_TIMEOUT, and it is None"),
        ({"calls_made": ()}, "calls_made: expected none, executed were refund {'order': '42', 'amount': 40}"),
        (
            {"calls_made": (Call("refund", None), Call("refund", None))},
            "expected refund, refund, executed were refund {",
        ),
        (
            {"calls_made": (Call("refund", {"order": "42", "amount": 9}),)},
            "expected refund {'order': '42', 'amount': 9}",
        ),
        ({"escalates": {"queue": "sre"}}, "escalates: expected {'queue': 'sre'}, handed on were"),
        ({"refused": (Said("refund", "UNSAFE"),)}, "refused: expected refund UNSAFE (), was nothing"),
        ({"asked": ()}, "asked: expected nothing, was refund CONFIRM_REQUIRED"),
        ({"asked": (Said("refund", "CONFIRM_REQUIRED", "the moon"),)}, "asked: expected refund CONFIRM_REQUIRED (the"),
        ({"says": "millions"}, "says: 'millions' is in none of"),
    ],
)
def test_what_comes_out_otherwise_is_complained_about(change: dict[str, object], complaint: str) -> None:
    scenario = replace(HELD, then=replace(HELD.then, **change))  # type: ignore[arg-type]  # one field each
    wrong = complaints(play(scenario))
    assert len(wrong) == 1
    assert complaint in wrong[0]


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (Act("approve", by="ben"), "ben wants to approve, and nobody is asked"),
        (Act("silence"), "nobody wants to silence, and nobody is asked"),
        (Act("reject", by="ben", tool="refund"), "ben wants to reject, and nobody is asked about refund"),
    ],
)
def test_a_person_who_comes_when_no_call_waits_is_complained_about(act: Act, complaint: str) -> None:
    assert complaints(play(replace(HELD, when=(*HELD.when, act))))[0] == complaint


def test_an_answer_that_the_run_does_not_take_is_complained_about() -> None:
    changed = replace(HELD.when[0], arguments={"order": 42})
    wrong = complaints(play(replace(HELD, when=(changed,))))
    assert "ada wanted to approve and was turned away with WRONG_PACKET" in wrong[0]


def test_an_answer_that_should_have_been_turned_away_is_complained_about() -> None:
    changed = replace(HELD.when[0], turned_away="ALREADY_APPROVED")
    assert complaints(play(replace(HELD, when=(changed,)))) == ["ada wanted to approve and was heard"]


def test_the_same_scenario_is_played_the_same_way_twice() -> None:
    first, again = ([turn.decisions for turn in play(HELD).turns] for _ in range(2))
    assert first == again


def test_the_report_tells_a_story_in_plain_sentences() -> None:
    told = "\n".join(happened(play(HELD)))
    assert 'Customer-7 asked, under the boundary customer_support: "Refund 40 euros for order 42."' in told
    assert 'The model proposed refund (amount 40, order "42").' in told
    assert "(queue procurement, severity high, by human_approval), as CONFIRM_REQUIRED" in told
    assert "Ada approved it" in told
    assert "The tool refund was called, as ada had approved." in told
    assert "The run ended as SUCCESS." in told


def test_the_report_tells_what_a_person_changed() -> None:
    changed = scenario_at(FOLDER / "profiles/incident_sre/tools.yaml")
    told = "\n".join(happened(play(changed)))
    assert 'The operator changed the call to move_traffic (percent 20, region "west").' in told


def test_the_report_says_what_was_not_so() -> None:
    played = play(HELD)
    assert "  ! NOT SO: it rained" in story_lines(played, ["it rained"])


def test_the_report_shows_hostile_text_as_data() -> None:
    replies = ({"text": "\x1b[2Jowned"},)
    scenario = replace(PLAIN, given=replace(PLAIN.given, model=replies))
    told = "\n".join(story_lines(play(scenario), []))
    assert "\x1b" not in told
    assert "owned" in told


def test_the_table_names_the_files_of_each_row_and_the_rows_without_one() -> None:
    lines = coverage_lines([PLAIN])
    assert any(line.split() == ["SUCCESS", "codes/success"] for line in lines)
    assert sum("NO FILE SHOWS THIS" in line for line in lines) == len(PLACES) - len(PLAIN.shows)


def test_the_command_prints_the_scenarios_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["codes/success"]) == 0
    printed = capsys.readouterr().out
    assert PLAIN.title in printed
    assert HELD.title not in printed
    assert "Runtime controls: 7 of 7 shown" in printed


def test_the_command_can_print_the_tables_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tables"]) == 0
    assert PLAIN.title not in capsys.readouterr().out


def test_the_command_ends_with_one_when_a_file_is_not_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> tuple[object, list[str]]:
        return play(PLAIN), ["it rained"]

    monkeypatch.setattr("tests.scenarios.__main__.verdict", broken)
    assert main(["codes/success"]) == 1
    assert "1 scenarios did not come out as their files say." in capsys.readouterr().out


def test_every_title_and_every_story_is_its_own() -> None:
    scenarios: list[Scenario] = [scenario_at(path) for path in scenario_files()]
    for texts in ([one.title for one in scenarios], [one.story for one in scenarios]):
        assert [text for text, times in Counter(texts).items() if times > 1] == []
