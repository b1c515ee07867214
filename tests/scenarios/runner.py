"""The runner: reads every scenario file, plays it, and says what did not come out as the file says.

Rule 1: a scenario holds when what happened is what the file says and everything it shows is proved by the journal.
Rule 2: the tools that ran are exactly those that the file names, in that order; so are the refusals.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from remit.core.failure import Ending
from remit.core.journal.commands import AskHuman
from remit.core.journal.rulings import RunEnded, ToolCallRefused
from tests.scenarios.evidence import escalations, tool_asked_about, unproved
from tests.scenarios.places import PLACES, ValuePath
from tests.scenarios.props import Call
from tests.scenarios.scenario import Said, Scenario, read_scenario
from tests.scenarios.stage import RUN, Played, play

FOLDER = Path(__file__).parent


def scenario_files() -> list[Path]:
    """Every scenario file, in the order of their names."""
    return sorted(FOLDER.rglob("*.yaml"))


def named(path: Path) -> str:
    """The name of a file as a reader finds it below tests/scenarios."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@cache
def scenario_at(path: Path) -> Scenario:
    """The scenario of a file, read once."""
    return read_scenario(path, name=named(path))


def missing(scenarios: Iterable[Scenario]) -> list[ValuePath]:
    """The places that no scenario names."""
    reached = {place for scenario in scenarios for place in scenario.shows}
    return [place for place in PLACES if place not in reached]


def complaints(played: Played) -> list[str]:
    """What did not come out as the file says; nothing when the scenario holds."""
    found = [*played.unwanted, *_came_out(played), *_calls(played), *_handed_on(played)]
    refused = [Said(one.tool, one.code, one.reason) for one in played.decisions(ToolCallRefused)]
    found += _compared("refused", played.scenario.then.refused, refused)
    if played.scenario.then.asked is not None:
        asked = [Said(tool_asked_about(one), one.ending, _reasons(one)) for one in played.decisions(AskHuman)]
        found += _compared("asked", played.scenario.then.asked, asked)
    return [*found, *_words(played), *unproved(played)]


@cache
def verdict(path: Path) -> tuple[Played, list[str]]:
    """A file, played once, and what is wrong with it."""
    played = play(scenario_at(path))
    return played, complaints(played)


def _came_out(played: Played) -> list[str]:
    then, response = played.scenario.then, played.response
    if played.turned_away is not None or then.turned_away:
        code = "" if played.turned_away is None else played.turned_away.code
        return [] if code == then.turned_away else [f"turned away: expected {then.turned_away!r}, was {code!r}"]
    assert response is not None, "a run that was begun has a response"
    waits = None if response.waiting_for is None else response.waiting_for.ending
    found = []
    if (response.terminal_code, waits) != (then.ends, then.waits):
        expected, was = _standing(then.ends, then.waits), _standing(response.terminal_code, waits)
        found.append(f"expected that the run {expected}, and it {was}")
    if then.error and (response.error is None or response.error.code != then.error):
        found.append(f"expected the error {then.error}, and it is {response.error and response.error.code}")
    return found


def _standing(ends: Ending | None, waits: Ending | None) -> str:
    return f"ends {ends}" if ends is not None else f"waits {waits}" if waits is not None else "neither ends nor waits"


def _calls(played: Played) -> list[str]:
    """One complaint where other calls were made; a call without arguments in the file fits any."""
    expected, made = played.scenario.then.calls_made, played.executed
    is_same = len(expected) == len(made) and all(
        one.tool == other.tool and one.arguments in (None, other.arguments)
        for one, other in zip(expected, made, strict=True)
    )
    return [] if is_same else [f"calls_made: expected {_said_calls(expected)}, executed were {_said_calls(made)}"]


def _said_calls(calls: Sequence[Call]) -> str:
    return ", ".join(one.tool + ("" if one.arguments is None else f" {one.arguments}") for one in calls) or "none"


def _handed_on(played: Played) -> list[str]:
    expected = played.scenario.then.escalates
    if not expected:
        return []
    handed_on = [{key: str(getattr(one, key)) for key in expected} for one in escalations(played)]
    return [] if expected in handed_on else [f"escalates: expected {expected}, handed on were {handed_on}"]


def _compared(what: str, expected: Sequence[Said], found: Sequence[Said]) -> list[str]:
    """One complaint where two lists differ; the reason of a file is a pattern, and an empty one fits any."""
    is_same = len(expected) == len(found) and all(
        (one.tool, one.code) == (other.tool, other.code) and re.search(one.because, other.because)
        for one, other in zip(expected, found, strict=True)
    )
    return [] if is_same else [f"{what}: expected {_listed(expected)}, was {_listed(found)}"]


def _listed(said: Sequence[Said]) -> str:
    return "; ".join(f"{one.tool} {one.code} ({one.because})" for one in said) or "nothing"


def _reasons(question: AskHuman) -> str:
    return question.question if question.packet is None else "; ".join(question.packet.reasons)


def _words(played: Played) -> list[str]:
    pattern = played.scenario.then.says
    if not pattern:
        return []
    said = [] if played.response is None else [played.response.content]
    said += [one.message for turn in played.runs.get(RUN, []) for one in turn.decisions if isinstance(one, RunEnded)]
    said += [] if played.turned_away is None else [played.turned_away.message]
    return [] if any(re.search(pattern, text) for text in said) else [f"says: {pattern!r} is in none of {said}"]
