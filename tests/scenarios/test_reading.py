"""A scenario file that could be misread is refused, with its name, its line, the key and what would be right."""

import asyncio
from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from tests.scenarios.hours import START_MS, Hours, in_no_time
from tests.scenarios.props import Call
from tests.scenarios.scenario import read_scenario, scenario_of

GOOD = """\
title: A title
shows: {code: SUCCESS}
story: A story.
given:
  boundary: standard
  tools:
    - {name: look, effect: read, parameters: {page: integer, word?: string}, returns: text}
  user: Hello
  model:
    - calls: [{look: {page: 1}}]
    - text: Done
when:
  - approve: {by: ada}
then:
  ends: SUCCESS
  calls_made: [look]
"""


def test_a_file_that_says_everything_is_read() -> None:
    scenario = scenario_of(GOOD, "a.yaml")
    assert (scenario.title, scenario.given.user, scenario.then.calls_made) == (
        "A title",
        "Hello",
        (Call("look", None),),
    )
    assert scenario.given.model[0] == {"tool_calls": [{"name": "look", "arguments": {"page": 1}}]}
    assert scenario.given.tools[0].definition.parameters["required"] == ["page"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("title: A title", "titel: A title", "a.yaml:1: the file has the unknown key 'titel'; did you mean 'title'?"),
        ("story: A story.\n", "", "a.yaml: story is missing"),
        ("story: A story.", "story: 5", "a.yaml:3: story must be a text, not 5; put it in quotes"),
        ("{code: SUCCESS}", "{code: SUCCES}", "a.yaml:2: shows.code is 'SUCCES'; use one of SUCCESS, PARTIAL_SUCCESS"),
        ("{code: SUCCESS}", "{profile: procurement}", "a.yaml:2: shows names a profile or a dimension alone"),
        ("{code: SUCCESS}", "{}", "a.yaml:2: shows is empty"),
        ("boundary: standard", "boundary: lax", "a.yaml:5: given.boundary: boundary 'lax' is unknown"),
        ("boundary: standard", "boundary: {name: x, rigths: 1}", "a.yaml:5: given.boundary: "),
        ("  user: Hello\n", "", "given.user is missing"),
        ("  user: Hello", "  user: Hello\n  budget: {tool_cals: 3}", "given.budget has the unknown key 'tool_cals'"),
        ("  user: Hello", "  user: Hello\n  budget: {tool_calls: x}", "given.budget: Expected `int | null`"),
        ("  user: Hello", "  user: Hello\n  replicas: -1", "given.replicas must be a whole number from 0 on, not -1"),
        ("  user: Hello", "  user: Hello\n  goal: {statement: x, criteria: [{nam: y}]}", "unknown key 'nam'"),
        ("effect: read", "effekt: read", "given.tools[0] has the unknown key 'effekt'; did you mean 'effect'?"),
        ("effect: read", "effect: reads", "given.tools[0]: Invalid enum value 'reads'"),
        ("effect: read", "effect: read, destructive: true", "given.tools[0]: tool 'look': destructive, yet its effect"),
        ("  user: Hello", "    - {name: look}\n  user: Hello", "a.yaml:8: two tools are called 'look'; rename one"),
        ("text: Done", "error: TIRED", "given.model: the script: replies[1].error is 'TIRED'; use one of INFERENCE_"),
        ("page: integer", "page: int", "given.tools[0].parameters.page is 'int'; use one of string, integer"),
        ("returns: text", "fails: BADLY", "given.tools[0].fails is 'BADLY'; use one of TOOL_UNAVAILABLE"),
        ("returns: text", "returns: [{fails: BADLY}]", "given.tools[0].returns[0].fails is 'BADLY'"),
        ("calls: [{look: {page: 1}}]", "calls: [{look: {}, see: {}}]", "must be one tool with its arguments"),
        ("calls: [{look: {page: 1}}]", "call: x", "given.model[0] has the unknown key 'call'"),
        ("approve: {by: ada}", "aprove: {by: ada}", "a.yaml:13: when[0] has the unknown key 'aprove'"),
        ("approve: {by: ada}", "approve: {}", "when[0].approve lacks 'by'"),
        ("approve: {by: ada}", "silence: {by: ada}", "when[0].silence has the unknown key 'by'"),
        ("approve: {by: ada}", "approve: {by: ada}\n    reject: {by: ben}", "when[0] must be one act"),
        ("  ends: SUCCESS\n", "", "then says how it comes out: one of ends, waits, turned_away"),
        ("  ends: SUCCESS", "  ends: SUCCESS\n  waits: TIMEOUT", "then says how it comes out"),
        ("  ends: SUCCESS", "  ends: WELL", "then.ends is 'WELL'; use one of"),
        ("calls_made: [look]", "calls_made: [{look: 5}]", "then.calls_made[0].look must be a mapping, not 5"),
        ("  calls_made: [look]\n", "", "then.calls_made is missing; [] says that nothing was done"),
        ("  ends: SUCCESS", '  ends: SUCCESS\n  says: "("', "which is no regular expression"),
        ("  ends: SUCCESS", "  ends: SUCCESS\n  escalates: {severity: dire}", "then.escalates.severity is 'dire'"),
        ("  ends: SUCCESS", "  ends: SUCCESS\n  refused: [{tol: look}]", "then.refused[0] has the unknown key 'tol'"),
    ],
)
def test_a_file_that_could_be_misread_is_refused(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    with pytest.raises(RequestRejected) as refused:
        scenario_of(GOOD.replace(old, new), "a.yaml")
    assert complaint in refused.value.message
    assert refused.value.message.startswith("a.yaml")


def test_an_empty_model_is_refused() -> None:
    text = GOOD.replace("    - calls: [{look: {page: 1}}]\n    - text: Done\n", "    []\n")
    with pytest.raises(RequestRejected, match=r"given\.model is empty"):
        scenario_of(text, "a.yaml")


def test_a_file_is_named_in_full_where_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("title: [", encoding="utf-8")
    with pytest.raises(RequestRejected, match=r"bad\.yaml"):
        read_scenario(path)


def test_hours_pass_without_anybody_waiting_for_them() -> None:
    hours = Hours()
    in_no_time(asyncio.sleep(7200), hours)
    assert hours.now_ms() - START_MS == 7_200_000


def test_a_wait_for_nothing_is_an_error_and_no_hang() -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="will never come"):
        in_no_time(forever(), Hours())
