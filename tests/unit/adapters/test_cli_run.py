"""Starting runs and going on with them from the command line."""

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from remit import PlanExecutor, Step
from remit.adapters.cli.commands.run import ModeName, RouterName
from remit.assemble import opened_system, settings_of
from remit.backend.clock import WallClock
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.arrivals import CancelRequested
from remit.core.journal.storage import RunHeld
from remit.core.run.contract import Mode, SystemResponse
from remit.core.run.inference import Routing
from remit.core.run.lineage import derived_id
from remit.orchestrate.facade import System
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.runner import Runner
from tests.unit.adapters.desk import Desk, Screen, calls

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

GRAPH = """
name: short
start: think
nodes:
  think:
    kind: model
    edges: [done]
  done: {kind: terminal, ending: success}
  failed: {kind: terminal, ending: failure}
  cancelled: {kind: terminal, ending: cancellation}
  escalated: {kind: terminal, ending: escalation}
  exhausted: {kind: terminal, ending: exhaustion}
exits:
  failed: failed
  cancelled: cancelled
  escalated: escalated
  exhausted: exhausted
"""
STOPS_ITSELF = '''
import asyncio, os, signal
from remit.tool.declare.decorator import tool


@tool(effect="read")
async def interrupt(number: int) -> str:
    """End the process this runs in."""
    os.kill(os.getpid(), number)
    await asyncio.Event().wait()
    return ""
'''


@pytest.mark.req("1.6")
def test_the_answer_alone_goes_to_stdout_when_nothing_is_streamed(desk: Desk) -> None:
    said = desk.say("run", "Hi", "--engine", desk.script("Hello."))
    assert said == (0, "Hello.\n", "")


@pytest.mark.req("0.12")
def test_a_run_in_json_is_the_response_with_every_field_in_snake_case(desk: Desk) -> None:
    values = desk.say("run", "Hi", "--engine", desk.script("Hello."), "--json").values
    assert set(values) == set(SystemResponse.__struct_fields__)
    assert (values["terminal_code"], values["waiting_for"], values["content"]) == ("SUCCESS", None, "Hello.")


@pytest.mark.req("0.10")
def test_sampling_is_said_on_the_command_line_and_refused_where_it_is_none(desk: Desk) -> None:
    sampling = ("--temperature", "0.5", "--top-p", "0.9", "--max-tokens", "77")
    run_id = desk.say("run", "Hi", "--engine", desk.script("Hello."), *sampling, "--json").values["run_id"]
    hints = desk.say("trace", run_id, "--json").rows[0]["arrival"]["manifest"]["request"]["hints"]
    assert (hints["temperature"], hints["top_p"], hints["max_tokens"]) == (0.5, 0.9, 77)
    refused = desk.say("run", "Hi", "--engine", desk.script("Hello."), "--temperature", "-3")
    assert (refused.code, "REQUEST_HINT_INVALID" in refused.err) == (2, True)


@pytest.mark.req("0.12")
def test_what_the_command_line_says_becomes_the_request(desk: Desk) -> None:
    prompt = desk.file("prompt.txt", "Grüße")
    schema = desk.file("schema.json", '{"type": "object"}')
    run_id = desk.say(
        *("run", "--file", prompt, "--engine", desk.script("{}"), "--schema", schema, "--session", "s1"),
        *("--user", "ann", "--boundary", "customer_support", "--budget", "tool_calls=5,steps=7", "--json"),
    ).values["run_id"]
    started = desk.say("trace", run_id, "--json").rows[0]["arrival"]["manifest"]
    request = started["request"]
    assert request["messages"][0]["content"] == "Grüße"
    assert (request["session_id"], request["user_id"]) == ("s1", "ann")
    assert request["output"]["schema"] == {"type": "object"}
    assert started["boundary"]["name"] == "customer_support"
    assert (started["caps"][2], started["caps"][11]) == (5, 7)


@pytest.mark.req("1.6")
@pytest.mark.parametrize(
    ("options", "wall_clock_ms"),
    [
        ((), 120_000),
        (("--timeout", "3.5"), 3_500),
        (("--timeout", "0"), 600_000),
        (("--boundary", "research_assistant"), 300_000),
        (("--budget", "wall_clock_ms=200000"), 200_000),
    ],
)
def test_a_run_has_two_minutes_unless_the_user_knows_better(
    desk: Desk, options: tuple[str, ...], wall_clock_ms: int
) -> None:
    run_id = desk.say("run", "Hi", "--engine", desk.script("Hello."), *options, "--json").values["run_id"]
    caps = desk.say("trace", run_id, "--json").rows[0]["arrival"]["manifest"]["caps"]
    assert caps[4] == wall_clock_ms


def test_the_modes_of_the_command_line_are_those_of_the_contract() -> None:
    assert get_args(ModeName) == tuple(mode.value for mode in Mode)


def test_the_routers_of_the_command_line_are_those_of_the_manifest() -> None:
    assert get_args(RouterName) == tuple(router.value for router in Routing)


def test_a_run_follows_the_graph_of_a_file_and_the_router_that_is_named(desk: Desk) -> None:
    graph = desk.file("graph.yaml", GRAPH)
    said = desk.say("run", "Hi", "--engine", desk.script("Hello."), "--graph", graph, "--router", "none", "--json")
    assert said.values["terminal_code"] == "SUCCESS"
    manifest = desk.say("trace", "last", "--json").rows[0]["arrival"]["manifest"]
    assert manifest["graph"]["name"] == "short"
    assert manifest["router"] == "none"


def test_a_graph_that_may_not_run_is_refused_before_a_store_is_made(desk: Desk) -> None:
    graph = desk.file("graph.yaml", GRAPH.replace("start: think", "start: nowhere"))
    said = desk.say("run", "Hi", "--engine", desk.script("Hello."), "--graph", graph, "--json")
    assert said.code == 2
    assert "nowhere" in said.values["error"]["message"]
    assert not desk.home.exists()


@pytest.mark.req("0.25")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--engine", ""), "CONFIG_NO_ENGINE"),
        (("--engine", "no_such:thing"), "CONFIG_NO_ENGINE"),
        (("--engine", "SCRIPT", "--mode", "structured"), "CONFIG_SCHEMA_REQUIRED"),
        (("--engine", "SCRIPT", "--grammar", "no/such.gbnf"), "CONFIG_GRAMMAR_NOT_FOUND"),
        (("--engine", "scripted:no/such.yaml"), "SCRIPT_NOT_FOUND"),
        (("--engine", "SCRIPT", "--tools", "no/such.py"), "TOOL_FILE_NOT_FOUND"),
        (("--engine", "SCRIPT", "--graph", "no/such.yaml"), "FILE_UNREADABLE"),
        (("--engine", "SCRIPT", "--rules", "no/such.yaml"), "FILE_UNREADABLE"),
        (("--engine", "SCRIPT", "--session", "\x1b[2J"), "REQUEST_ID_INVALID"),
        (("--engine", "SCRIPT", "--user", "u" * 300), "REQUEST_ID_INVALID"),
    ],
)
def test_a_configuration_that_cannot_run_is_wrong_usage_and_no_store_is_made(
    desk: Desk, options: tuple[str, ...], code: str
) -> None:
    script = desk.script("Hello.")
    said = desk.say("run", "Hi", *(script if word == "SCRIPT" else word for word in options), "--json")
    assert (said.code, said.error) == (2, code)
    assert not desk.home.exists()


def test_a_run_that_asks_a_person_exits_with_3_and_says_how_to_answer(desk: Desk) -> None:
    script = desk.script(calls("write", text="hello"), "Written.")
    said = desk.say("run", "Write hello", "--engine", script, "--tools", desk.tools())
    assert (said.code, said.out) == (3, "")
    assert "waits for a person: CONFIRM_REQUIRED" in said.err
    assert 'write(text="hello") wants to be called' in said.err
    assert "remit approve " in said.err
    assert desk.notes == []


def test_a_run_that_waits_names_its_packets_in_json(desk: Desk) -> None:
    script = desk.script(calls("write", text="hello"), "Written.")
    said = desk.say("run", "Write hello", "--engine", script, "--tools", desk.tools(), "--json")
    waiting = said.values["waiting_for"]
    assert (said.code, waiting["ending"], said.values["terminal_code"]) == (3, "CONFIRM_REQUIRED", None)
    assert waiting["packet_ids"][0].startswith(said.values["run_id"] + "/")


PEOPLE = """
from remit import tool


@tool(effect="read", network=False)
def look_up(member: str) -> str:
    \"\"\"Look a member up.\"\"\"
    return "a tea set"
"""


@pytest.mark.parametrize(
    ("user", "code", "words"),
    [
        ([], 3, ["identity_unknown", "member='7'", "names no user", "--user", "who:member"]),
        (["--user", "ann"], 4, ["identity_mismatch", "member='7'", "'ann'", "--user", "who:member"]),
        (["--user", "7"], 0, []),
    ],
)
def test_a_call_about_a_person_asks_where_nobody_said_who_asks_and_says_what_to_do(
    desk: Desk, user: list[str], code: int, words: list[str]
) -> None:
    tools = desk.file("people.py", PEOPLE)
    script = desk.script(calls("look_up", member="7"), "A tea set.")
    said = desk.say(
        "run", "What did 7 buy?", "--engine", script, "--tools", tools, "--boundary", "customer_support", *user
    )
    assert said.code == code, said.err
    assert not [word for word in words if word not in said.err], said.err


def test_a_check_of_a_boundary_tells_which_arguments_name_a_person(desk: Desk) -> None:
    said = desk.say("boundary", "check", "customer_support", "--tools", desk.file("people.py", PEOPLE))
    assert "names a person by member (who:member): identity_mismatch stops the run, identity_unknown asks" in said.out


def test_a_run_that_is_stopped_by_its_budget_exits_with_4(desk: Desk) -> None:
    script = desk.script(calls("look", place="here"), "Nothing.")
    said = desk.say("run", "Look", "--engine", script, "--tools", desk.tools(), "--budget", "steps=1")
    assert said.code == 4
    assert "ended as BUDGET_EXHAUSTED" in said.err


def test_a_run_whose_model_fails_exits_with_1_and_names_the_error(desk: Desk) -> None:
    error = {"error": "INFERENCE_CONTEXT_EXCEEDED"}
    said = desk.say("run", "Hi", "--engine", desk.script(error))
    assert said.code == 1
    assert "(INFERENCE_CONTEXT_EXCEEDED)" in said.err


def test_what_a_tool_prints_never_reaches_stdout(desk: Desk) -> None:
    script = desk.script(calls("look", place="here"), "Nothing.")
    said = desk.say("run", "Look", "--engine", script, "--tools", desk.tools())
    assert said.out == "Nothing.\n"
    assert "a tool prints to stdout" in said.err


@pytest.mark.req("1.6")
def test_a_person_who_watches_sees_the_answer_once_as_it_comes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    script = desk.script({"text": "One two three.", "chunks": 3})
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert desk.say("run", "Count", "--engine", script).code == 0
    assert screen.getvalue() == "One two three.\n"


def test_turns_are_logged_with_the_ids_of_the_run(desk: Desk) -> None:
    words = ("--session", "s1", "--json", "--log-level", "info", "--log-format", "json")
    said = desk.say("run", "Hi", "--engine", desk.script("Hello."), *words)
    logged = [json.loads(line) for line in said.err.splitlines()]
    turns = [line for line in logged if line["message"].startswith("turn ")]
    assert len(turns) == 2
    assert {line["run_id"] for line in turns} == {said.values["run_id"]}
    assert {line["session_id"] for line in turns} == {"s1"}
    assert all(line["trace_id"] and line["request_id"] for line in turns)


@pytest.mark.parametrize(("number", "exit_code"), [(2, 130), (15, 143)])
def test_an_interrupted_run_says_how_to_go_on_and_can_be_resumed(desk: Desk, number: int, exit_code: int) -> None:
    tools = desk.file("stops.py", STOPS_ITSELF)
    script = desk.script(calls("interrupt", number=number), "Still here.")
    said = desk.say("run", "Stop", "--engine", script, "--tools", tools)
    assert said.code == exit_code
    run_id = said.err.split()[1]
    assert said.err == f"run {run_id} stopped; go on with: remit resume {run_id}\n"
    assert desk.say("show", run_id, "--json").values["response"]["terminal_code"] is None


def test_an_interruption_in_json_is_an_error_that_names_the_run(desk: Desk) -> None:
    tools = desk.file("stops.py", STOPS_ITSELF)
    said = desk.say("run", "Stop", "--engine", desk.script(calls("interrupt", number=2)), "--tools", tools, "--json")
    assert (said.code, said.error) == (130, "INTERRUPTED")
    assert said.values["error"]["details"]["run_id"]


def test_a_run_goes_on_by_name_or_with_all_that_are_open(desk: Desk) -> None:
    run_id = desk.waiting()
    assert desk.say("resume", run_id).code == 3
    desk.ended()
    said = desk.say("resume", "--all", "--json")
    assert (said.code, [row["run_id"] for row in said.rows]) == (3, [run_id])


def test_an_ended_run_that_is_resumed_answers_as_before(desk: Desk) -> None:
    desk.ended("Hello.")
    assert desk.say("resume", "last") == (0, "Hello.\n", "")


@pytest.mark.parametrize("words", [("resume",), ("resume", "last", "--all")])
def test_resume_wants_a_run_or_all_of_them(desk: Desk, words: tuple[str, ...]) -> None:
    said = desk.say(*words, "--json")
    assert (said.code, said.error) == (2, "USAGE")


def test_nothing_but_a_run_makes_a_store(desk: Desk) -> None:
    for words in (("resume", "last"), ("runs",), ("approve", "last"), ("delete", "last"), ("gc",)):
        said = desk.say(*words, "--json")
        assert (said.code, said.error) == (1, "STORE_NOT_FOUND")
    assert not desk.home.exists()


def test_tools_that_changed_are_refused_until_a_person_accepts_them(desk: Desk) -> None:
    run_id = desk.waiting()
    path = desk.tools()
    path.write_text(path.read_text() + "\n# changed\n")
    said = desk.say("approve", run_id, "--json")
    assert (said.code, said.error) == (1, "TOOL_SOURCE_CHANGED")
    assert "remit resume RUN --accept-tools" in said.err
    assert desk.say("resume", run_id, "--accept-tools", "--by", "ann").code == 3
    assert desk.say("resume", run_id, "--accept-tools", "--by", "ben").code == 3
    assert desk.say("approve", run_id).code == 0
    accepted = [row["arrival"] for row in desk.say("trace", run_id, "--json").rows if row["arrival"].get("sources")]
    assert [arrival["by"] for arrival in accepted] == ["ann"]
    assert desk.notes == ["hello"]


def test_one_run_that_cannot_go_on_does_not_keep_the_others(desk: Desk) -> None:
    lost = desk.waiting()
    (desk.folder / "tools.py").unlink()
    tools = desk.file("other.py", TOOLS_OF_ANOTHER_FILE)
    script = desk.script(calls("write", text="x"), "Done.")
    kept = desk.say("run", "Write", "--engine", script, "--tools", tools, "--json").values["run_id"]
    said = desk.say("resume", "--all", "--json")
    assert said.code == 1
    assert said.rows[0]["error"]["details"]["name"] == "look"
    assert said.rows[1]["run_id"] == kept != lost


def test_a_plan_of_functions_is_refused_and_stays_open_while_the_others_go_on(desk: Desk) -> None:
    first = desk.waiting()

    async def plan() -> str:
        working = asyncio.Event()

        async def think(step: Step) -> None:
            working.set()
            await asyncio.Event().wait()

        async with opened_system(settings_of(home=desk.home)) as system:
            task = asyncio.create_task(PlanExecutor({"think": think}, system=system).execute([Step("a", "think", "x")]))
            await working.wait()
            run_id = next(run.run_id for run in await system.archive.runs() if run.run_id != first)
        await asyncio.gather(task, return_exceptions=True)
        return run_id

    run_id = asyncio.run(plan())
    said = desk.say("resume", "--all", "--json")
    assert said.code == 1
    (refused,) = [row["error"] for row in said.rows if row["run_id"] == run_id]
    assert (refused["code"], refused["details"]["missing"]) == ("RUN_PARTS_MISSING", ["code 'step:think'"])
    assert "resume it from the program that started it" in refused["message"]
    assert [row["run_id"] for row in said.rows] == [first, run_id]
    assert desk.say("show", run_id, "--json").values["response"]["terminal_code"] is None


TOOLS_OF_ANOTHER_FILE = '''
from remit.tool.declare.decorator import tool


@tool(effect="write")
def write(text: str) -> str:
    """Write nothing."""
    return text
'''


def test_a_hostile_answer_cannot_move_the_cursor(desk: Desk) -> None:
    said = desk.say("run", "Hi", "--engine", desk.script("\x1b[2Jgone\r\x07 \u202eback\nnext\tline"))
    assert said.out == "\\x1b[2Jgone\\r\\x07 \\u202eback\nnext\tline\n"


def test_a_prompt_may_come_from_stdin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    run_id = desk.say("run", "--file", "-", "--engine", desk.script("Hello."), "--json").values["run_id"]
    manifest = desk.say("trace", run_id, "--json").rows[0]["arrival"]["manifest"]
    assert manifest["request"]["messages"][0]["content"] == "from a pipe"


def test_a_second_exchange_of_a_session_knows_the_first(desk: Desk) -> None:
    script = desk.script("One.", "Two.")
    assert desk.say("run", "First", "--engine", script, "--session", "s1").out == "One.\n"
    assert desk.say("run", "Second", "--engine", script, "--session", "s1").out == "Two.\n"


def test_a_session_with_an_open_exchange_takes_no_other(desk: Desk) -> None:
    script = desk.script(calls("write", text="hello"), "Written.")
    words = ("--engine", script, "--tools", desk.tools(), "--session", "s1")
    assert desk.say("run", "First", *words).code == 3
    said = desk.say("run", "Second", *words, "--json")
    assert (said.code, said.error) == (1, "SESSION_BUSY")


def test_the_home_may_be_said_before_the_command_and_in_the_environment(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from remit.adapters.cli.main import main

    desk.ended()
    assert main(["--home", str(desk.home), "--json", "runs"]) == 0
    assert main([f"--home={desk.home}", "show", "last"]) == 0
    monkeypatch.setenv("REMIT_HOME", str(desk.home))
    assert main(["show", "last"]) == 0
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "elsewhere"))
    assert main(["show", "last"]) == 1


def test_a_user_who_goes_on_with_every_run_is_told_which_one_each_answer_is_of(desk: Desk) -> None:
    runs = [desk.waiting(), desk.waiting()]
    said = desk.say("resume", "--all").err.splitlines()
    heads = [line for line in said if line.endswith(": Write hello")]
    assert heads == [f"run {run_id} ({place} of 2): Write hello" for place, run_id in enumerate(runs, 1)]
    assert said[-1] == "2 open runs: 2 wait"


def test_a_run_that_another_process_drives_is_left_to_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def held(self: System, run_id: str, **_: object) -> None:
        raise RunHeld(run_id)

    desk.waiting()
    monkeypatch.setattr(System, "resume", held)
    said = desk.say("resume", "--all")
    assert (said.code, said.err.splitlines()[-1]) == (0, "1 open run: 1 driven elsewhere")


def test_an_engine_file_that_changed_or_went_is_refused_until_a_person_accepts_it(desk: Desk) -> None:
    run_id = desk.waiting()
    script = next(desk.folder.glob("script*.json"))
    text = script.read_text()
    script.write_text(text.replace("Written.", "It is written."))
    said = desk.say("approve", run_id, "--json")
    assert (said.code, said.error, desk.notes) == (1, "ENGINE_SOURCE_CHANGED", [])
    assert "remit resume RUN --accept-tools" in said.err
    script.unlink()
    for words in (("approve", run_id), ("resume", run_id), ("resume", run_id, "--accept-tools")):
        assert desk.say(*words, "--json").error == "ENGINE_SOURCE_MISSING"
    script.write_text(text.replace("Written.", "It is written."))
    assert desk.say("resume", run_id, "--accept-tools", "--by", "ann").code == 3
    assert desk.say("approve", run_id).out == "It is written.\n"
    accepted = [row["arrival"] for row in desk.say("trace", run_id, "--json").rows if row["arrival"].get("sources")]
    assert [(arrival["by"], arrival["sources"][0]["name"]) for arrival in accepted] == [
        ("ann", "engine:scripted:script1")
    ]
    assert desk.say("replay", run_id).code == 0


def test_an_engine_file_that_declares_another_model_is_never_accepted(desk: Desk) -> None:
    run_id = desk.waiting()
    script = next(desk.folder.glob("script*.json"))
    script.write_text(script.read_text().replace("{", '{"context_window": 1000, ', 1))
    said = desk.say("resume", run_id, "--accept-tools", "--json")
    assert (said.code, said.error) == (1, "ENGINE_DEFINITION_CHANGED")


@pytest.mark.parametrize("words", [("resume", "--all"), ("approve", "last"), ("reject", "last")])
def test_what_a_run_that_ended_left_behind_is_cancelled_by_the_process_that_meets_it(
    desk: Desk, words: tuple[str, ...]
) -> None:
    parent = desk.delegating()

    async def end_without_a_word() -> None:
        clock, store = WallClock(), EmbeddedStore.open(desk.home)
        dead = Runner(journal=store.journal, blobs=store.blobs, clock=clock, dispatch=InProcessDispatch({}, clock))
        await dead.rule_on(await dead.load(parent), CancelRequested("ada"))
        await store.close()

    asyncio.run(end_without_a_word())
    assert desk.say("approvals", "--json").rows == []
    said = desk.say(*words)
    if words[0] == "resume":
        assert (said.code, said.err) == (
            0,
            f"run {derived_id(parent, '1.2')} is cancelled: the run that started it has ended\nno run is open\n",
        )
    else:
        assert (said.code, said.err.startswith("error PARENT_ENDED")) == (1, True)
    assert [row["ending"] for row in desk.say("runs", "--children", "--json").rows] == ["USER_CANCEL"] * 2
    assert desk.notes == []


FAILING = """
from remit import tool

@tool(effect="read")
def stock(item: str) -> int:
    \"\"\"How many there are.\"\"\"
    raise LookupError("no such item")
"""


def test_a_terminal_sees_a_call_that_fails_and_that_the_answer_follows_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, tools = desk.script(calls("stock", item="tea"), "There are 3."), desk.file("failing.py", FAILING)
    screen = Screen()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen)
    said = desk.say("run", "How many?", "--engine", engine, "--tools", tools)
    seen = screen.getvalue() + said.err
    assert said.code == 0
    assert seen.index('stock {"item":"tea"}') < seen.index("failed (TOOL_EXECUTION_FAILED): LookupError: no such item")
    assert "this answer follows a call of stock that did not succeed" in seen
