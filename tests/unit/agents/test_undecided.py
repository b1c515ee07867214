"""What cannot be decided objects: invented links, secrets in results, bare test results, unnamed users, paths outside."""

from dataclasses import dataclass
from typing import Any

import pytest

from remit import AgentLoop, Boundary, SystemResponse, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.limits.profiles import CODING_ASSISTANT, CUSTOMER_SUPPORT, INCIDENT_SRE, RESEARCH_ASSISTANT
from remit.core.record import JsonObject
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.boundaries.tool_findings import boundary_findings
from remit.tool.declare.decorator import Tool

STOPPED = Ending.UNSAFE_DETECTION
INVENTED = "https://example.org/invented-paper"


def call(name: str, **arguments: Any) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def run(
    boundary: Boundary, tools: list[Tool], *replies: JsonObject, prompt: str = "Go.", instructions: str = ""
) -> SystemResponse:
    engine = ScriptedEngine([*replies])
    agent = AgentLoop(engine, tools=tools, boundary=boundary, system_prompt=instructions, system=system_in_memory())
    return agent.chat_sync(prompt)


@tool(effect="read", network=False)
def shelf(about: str) -> dict[str, str]:
    """Look at the shelf."""
    return {"about": about, "see": "https://shelf.example/tides"}


@tool(effect="none")
def add(left: int, right: int) -> int:
    """Add."""
    return left + right


@pytest.mark.req("4.5")
@pytest.mark.parametrize(
    "answer",
    [
        f"See {INVENTED} for the numbers.",
        f"See [the paper]({INVENTED}).",
        f"See <{INVENTED}>.",
        f"[1]: {INVENTED}",
        "See www.example.org/invented-paper.",
        "See doi.org/10.1000/invented.",
    ],
)
@pytest.mark.parametrize(
    ("tools", "replies"),
    [
        ([], []),
        ([add], []),
        ([shelf], []),
        ([add], [call("add", left=1, right=2)]),
        ([shelf], [call("shelf", about="tides")]),
    ],
)
def test_an_invented_link_does_not_stand_whatever_tools_there_are(
    answer: str, tools: list[Tool], replies: list[JsonObject]
) -> None:
    response = run(RESEARCH_ASSISTANT, tools, *replies, {"text": answer}, prompt="What is known about tides?")
    assert response.terminal_code is STOPPED, response
    assert "ungrounded_claim" in str(response.error)


@pytest.mark.parametrize(
    "answer",
    [
        "See https://given.example/x/ for that.",
        "See [it](https://given.example/x).",
        "See given.example/x.",
        "The house is at https://house.example/rules.",
        "The shelf has https://shelf.example/tides.",
        "Use Node.js/Express, file a.py/b and config.io.",
    ],
)
def test_a_link_that_was_shown_stands_however_it_is_spelt(answer: str) -> None:
    response = run(
        RESEARCH_ASSISTANT,
        [shelf],
        call("shelf", about="tides"),
        {"text": answer},
        prompt="What does https://given.example/x say?",
        instructions="Our rules are at https://house.example/rules.",
    )
    assert response.terminal_code is Ending.SUCCESS, response


def alarms(**declared: Any) -> Tool:
    result = declared.pop("result")

    @tool(effect="read", network=False, permissions=["logs.read"], **declared)
    def logs() -> Any:
        """Read the logs."""
        return result

    return logs


@pytest.mark.req("4.5")
@pytest.mark.parametrize(
    "logs",
    [
        alarms(result={"line": "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzzz"}),
        alarms(result={"line": "a dump"}, reads="secret"),
        alarms(result={"alert": True}, flags={"alert": "security_incident"}),
    ],
)
def test_a_secret_or_an_alert_in_a_result_stops_an_incident_before_the_model_answers(logs: Tool) -> None:
    response = run(INCIDENT_SRE, [logs], call("logs"), {"text": "All calm."}, prompt="Read the logs.")
    assert response.terminal_code is STOPPED, response
    assert "security_incident" in str(response.error)


def test_calm_logs_stop_nobody() -> None:
    logs = alarms(result={"alert": False}, flags={"alert": "security_incident"})
    response = run(INCIDENT_SRE, [logs], call("logs"), {"text": "All calm."}, prompt="Read the logs.")
    assert response.terminal_code is Ending.SUCCESS


def written(**declared: Any) -> Tool:
    @tool(
        effect="write",
        control_args={"path": "path"},
        asks=("write",),
        repeat="free",
        **{"category": "file_system", "network": False, **declared},
    )
    def write(path: str) -> dict[str, bool]:
        """Write a file."""
        return {"written": True}

    return write


@dataclass
class Log:
    """What a program wrote."""

    text: str


def suite(result: Any) -> Tool:
    @tool(effect="none", category="sandbox")
    def run_tests() -> Any:
        """Run the tests."""
        return result

    return run_tests


@pytest.mark.req("4.5")
@pytest.mark.parametrize(
    ("result", "stops"),
    [
        ("===== 3 failed, 2 passed =====", True),
        ("all is well", True),
        ({"log": "3 failed"}, True),
        (["3 failed"], True),
        (0, True),
        (False, True),
        ("passed", False),
        (True, False),
        ({"exit_code": 0}, False),
    ],
)
def test_a_test_run_whose_outcome_cannot_be_read_counts_as_failed(result: Any, stops: bool) -> None:
    response = run(
        CODING_ASSISTANT,
        [written(), suite(result)],
        call("write", path="a.py"),
        call("run_tests"),
        {"text": "Done."},
        prompt="Write a.py.",
    )
    assert (response.terminal_code is STOPPED) is stops, response


def test_a_check_of_the_boundary_names_a_test_run_whose_outcome_cannot_be_read() -> None:
    @tool(effect="none", category="sandbox")
    def run_tests() -> str:
        """Run the tests."""
        return "ok"

    @tool(effect="none", category="sandbox")
    def lint() -> dict[str, int]:
        """Lint."""
        return {"exit_code": 0}

    @tool(effect="none", category="sandbox")
    def build() -> Log:
        """Build."""
        return Log("ok")

    tools = [lint.definition, run_tests.definition, build.definition]
    told, untold, logged = boundary_findings(CODING_ASSISTANT, tools).tools
    assert "outcome cannot be read" in logged.why
    assert "outcome cannot be read" in untold.why
    assert "outcome cannot be read" not in told.why


@pytest.mark.req("4.5")
@pytest.mark.parametrize("user", ["", "bob"])
def test_a_call_that_names_a_person_asks_where_nobody_says_who_asks(user: str) -> None:
    called: list[str] = []

    @tool(effect="read", network=False)
    def acc(customerId: str) -> dict[str, str]:  # noqa: N803 - as callers spell it
        """Read an account."""
        called.append(customerId)
        return {"state": "open"}

    engine = ScriptedEngine([call("acc", customerId="bob"), {"text": "It is open."}])
    agent = AgentLoop(engine, tools=[acc], boundary=CUSTOMER_SUPPORT, user_id=user, system=system_in_memory())
    response = agent.chat_sync("How does bob stand?")
    expected = ([], None) if not user else (["bob"], Ending.SUCCESS)
    assert (called, response.terminal_code) == expected, response


def put(**declared: Any) -> Tool:
    @tool(name="put", effect="write", repeat="free", category="file_system", **declared)
    def made(path: str = "", filePath: str = "", dest: str = "", whither: str = "") -> dict[str, bool]:  # noqa: N803
        """Put a file."""
        return {"written": True}

    return made


@pytest.mark.req("4.5")
@pytest.mark.parametrize(
    ("made", "argument", "value", "asks"),
    [
        (put(network=False), "path", "notes/a.txt", False),
        (put(network=True), "path", "notes/a.txt", True),
        (put(), "path", "notes/a.txt", True),
        (put(network=False), "path", "/etc/cron.d/job", True),
        (put(network=False), "path", "../other/a.txt", True),
        (put(network=False), "path", "notes/../../a.txt", True),
        (put(network=False), "filePath", "~/.ssh/config", True),
        (put(network=False), "dest", "C:\\Windows\\a.txt", True),
        (put(network=False), "whither", "/etc/cron.d/job", True),
        (put(network=False), "whither", "notes/a.txt", False),
    ],
)
def test_a_coder_changes_the_workspace_alone_without_a_person(
    made: Tool, argument: str, value: str, asks: bool
) -> None:
    response = run(
        CODING_ASSISTANT, [made], call("put", **{argument: value}), {"text": "Done."}, prompt=f'Put "{value}".'
    )
    assert (response.waiting_for is not None) is asks, response
