"""What stops a run under a risk profile, by what tools declare and return; the model reports nothing of itself."""

from typing import Any

import pytest

from remit import AgentLoop, Boundary, SystemResponse, tool
from remit.agents.guard_in_memory import GuardInMemory
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.limits.profiles import CODING_ASSISTANT, CUSTOMER_SUPPORT, PROCUREMENT, RESEARCH_ASSISTANT
from remit.core.record import JsonObject, replace
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.boundaries.boundary_file import boundary_of
from remit.tool.declare.decorator import Tool

STOPPED = Ending.UNSAFE_DETECTION


def call(name: str, **arguments: Any) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def run(
    boundary: Boundary, tools: list[Tool], *replies: JsonObject, prompt: str = "Go.", user: str = ""
) -> SystemResponse:
    engine = ScriptedEngine([*replies, {"text": "Done."}])
    agent = AgentLoop(engine, tools=tools, boundary=boundary, user_id=user, system=system_in_memory())
    return agent.chat_sync(prompt)


def change(done: list[str]) -> Tool:
    @tool(
        effect="write",
        network=False,
        control_args={"path": "path"},
        asks=("write",),
        repeat="free",
        category="file_system",
    )
    def write(path: str) -> dict[str, bool]:
        """Write a file."""
        done.append(path)
        return {"written": True}

    return write


OUTCOMES: list[tuple[dict[str, str], Any]] = [
    ({"exit_code": "tests_failed"}, {"exit_code": 1}),
    ({"report.failed": "tests_failed"}, {"report": {"failed": 3}}),
    ({"ok": "!tests_failed"}, {"ok": False}),
    ({"[].status": "tests_failed=red|broken"}, [{"status": "green"}, {"status": "Broken"}]),
    ({"exit_code": "tests_failed"}, {"code": 0}),
    ({"exit_code": "tests_failed"}, "3 failed"),
]


@pytest.mark.req("4.5")
@pytest.mark.parametrize(("flags", "result"), OUTCOMES)
def test_failing_tests_after_a_change_stop_a_coder_however_they_tell(flags: dict[str, str], result: Any) -> None:
    done: list[str] = []

    @tool(effect="none", flags=flags)
    def suite() -> Any:
        """Run the suite."""
        return result

    response = run(
        CODING_ASSISTANT, [change(done), suite], call("write", path="a.py"), call("suite"), prompt="Write a.py."
    )
    assert (done, response.terminal_code) == (["a.py"], STOPPED)


@pytest.mark.parametrize("is_changed", [True, False])
def test_tests_that_pass_and_tests_before_any_change_stop_nobody(is_changed: bool) -> None:
    @tool(effect="none", flags={"exit_code": "tests_failed"})
    def suite() -> dict[str, int]:
        """Run the suite."""
        return {"exit_code": 0 if is_changed else 1}

    replies = [call("write", path="a.py"), call("suite")] if is_changed else [call("suite")]
    assert run(CODING_ASSISTANT, [change([]), suite], *replies, prompt="Write a.py.").terminal_code is not STOPPED


def test_a_run_that_fails_its_tests_after_a_change_never_succeeds_in_any_boundary() -> None:
    @tool(effect="none", flags={"exit_code": "tests_failed"})
    def suite() -> dict[str, int]:
        """Run the suite."""
        return {"exit_code": 1}

    open_ = replace(CODING_ASSISTANT, name="open", conditions=())
    response = run(open_, [change([]), suite], call("write", path="a.py"), call("suite"), prompt="Write a.py.")
    assert response.terminal_code is not Ending.SUCCESS


@pytest.mark.parametrize("name", ["user_id", "userId", "customer_id", "customerID", "customer", "member_no", "client"])
def test_a_call_about_another_person_is_stopped_however_the_argument_is_called(name: str) -> None:
    seen: list[Any] = []
    said: dict[str, Any] = {"effect": "read", "network": False}
    source = f"def read_account({name}: str) -> str:\n    'Read.'\n    seen.append({name})\n    return 'x'\n"
    scope: dict[str, Any] = {"seen": seen}
    exec(source, scope)  # a name that is chosen here
    reads = tool(**said)(scope["read_account"])
    response = run(CUSTOMER_SUPPORT, [reads], call("read_account", **{name: "c-9"}), user="c-7")
    assert (seen, response.terminal_code) == ([], STOPPED)
    own = run(CUSTOMER_SUPPORT, [reads], call("read_account", **{name: "c-7"}), user="c-7")
    assert (seen, own.terminal_code) == (["c-7"], Ending.SUCCESS)


@pytest.mark.parametrize(
    ("kind", "amount", "stops"),
    [
        ("money", 1_000_000, False),
        ("money", 1_000_001, True),
        ("money:major", 10_000.01, True),
        ("money:major", "9999.99", False),
        ("money", "many", True),
        ("number", 5, True),
    ],
)
def test_a_purchase_is_held_to_the_limit_of_the_boundary(kind: str, amount: Any, stops: bool) -> None:
    @tool(effect="external", category="payment", control_args={"total": kind})
    def order(total: Any) -> str:
        """Order."""
        return "ordered"

    response = run(PROCUREMENT, [order], call("order", total=amount), user="buyer")
    assert (response.terminal_code is STOPPED, response.waiting_for is None) == (stops, stops)


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=correct-horse",
        "export AWS_SECRET_ACCESS_KEY = 'wJalrXUtnFEMI'",
        "ghp_" + "a1" * 20,
        "-----BEGIN RSA PRIVATE KEY-----",
        '{"text": "A=1\\nAPI_KEY=\\"abcdefgh\\""}',
    ],
)
@pytest.mark.parametrize("where", ["read", "carried"])
def test_what_looks_like_a_secret_does_not_leave(text: str, where: str) -> None:
    sent: list[str] = []

    @tool(effect="read", network=False)
    def show(path: str) -> str:
        """Show a file."""
        return text

    @tool(effect="external", control_args={"text": "text"})
    def post(text: str) -> str:
        """Post."""
        sent.append(text)
        return "posted"

    replies = [call("show", path=".env"), call("post", text="hello")] if where == "read" else [call("post", text=text)]
    assert run(CODING_ASSISTANT, [show, post], *replies).terminal_code is STOPPED
    assert sent == []


@pytest.mark.parametrize(
    "text", ["the token: str parameter", "PASSWORD=$VAULT", "API_KEY=<yours>", "a hash 9f8e7d6c5b4a"]
)
def test_what_only_speaks_of_secrets_stops_nobody(text: str) -> None:
    @tool(effect="read", network=False)
    def show(path: str) -> str:
        """Show a file."""
        return text

    @tool(effect="external")
    def post(text: str) -> str:
        """Post."""
        return "posted"

    response = run(CODING_ASSISTANT, [show, post], call("show", path="a.py"), call("post", text="hello"))
    assert response.waiting_for is not None


@pytest.mark.parametrize(
    ("answer", "stops"),
    [
        ("See https://other.example/page.", True),
        ("See https://news.example/today.", False),
        ("See https://given.example/x.", False),
        ("Nothing was verified.", False),
    ],
)
def test_a_link_that_nobody_has_shown_does_not_stand_in_an_answer(answer: str, stops: bool) -> None:
    @tool(effect="read", network=True, reads="public")
    def news(url: str) -> str:
        """Read the news."""
        return "Rain. https://news.example/today"

    engine = ScriptedEngine([call("news", url="https://given.example/x"), {"text": answer}])
    agent = AgentLoop(engine, tools=[news], boundary=RESEARCH_ASSISTANT, system=system_in_memory())
    response = agent.chat_sync("Read https://given.example/x for me.")
    assert (response.terminal_code is STOPPED) is stops


@pytest.mark.parametrize(
    ("answer", "stops"),
    [
        ("I checked: it is verified.", True),
        ("I have not verified it.", False),
        ("According to the register, yes.", True),
    ],
)
def test_an_answer_that_says_it_was_checked_needs_something_that_was_looked_up(
    answer: str,
    stops: bool,
) -> None:
    engine = ScriptedEngine([{"text": answer}])
    agent = AgentLoop(engine, boundary=RESEARCH_ASSISTANT, system=system_in_memory())
    assert (agent.chat_sync("Is Acme solvent?").terminal_code is STOPPED) is stops


def test_a_boundary_names_what_tools_are_about_and_conditions_of_its_own() -> None:
    own = boundary_of(
        {
            "name": "own",
            "tools": {"concerns": {"hazard": ["look"]}, "purchase_max": "none"},
            "observations": {"identities": ["who:patient"]},
            "conditions": [
                {"name": "hazard", "when": '"hazard" in concerns', "then": "stop"},
                {"name": "late", "when": '"late" in flags', "then": "stop", "at": "observation"},
            ],
        }
    )

    @tool(effect="read", network=False, flags={"days": "late>=30"})
    def look(order: str) -> dict[str, int]:
        """Look."""
        return {"days": 31}

    @tool(effect="read", network=False, flags={"days": "late>=30"})
    def peek(order: str) -> dict[str, int]:
        """Peek."""
        return {"days": 31}

    assert run(own, [look], call("look", order="1")).terminal_code is STOPPED
    assert run(own, [peek], call("peek", order="1")).terminal_code is STOPPED


def test_the_guard_stops_a_run_at_an_observation_too() -> None:
    guard = GuardInMemory()
    look = {
        "name": "look",
        "effect": "read",
        "network": False,
        "flags": {"topic": "regulated=credit"},
        "concerns": ["desk"],
        "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
    }
    boundary = {"name": "own", "extends": "customer_support"}
    guard.answer({"op": "start", "run": "r", "prompt": "Hello.", "tools": [look], "boundary": boundary, "user": "c-7"})
    asks = {"op": "call", "run": "r", "tool": "look", "args": {"question": "x"}}
    assert (guard.answer({**asks, "id": "a"}) or {})["decision"] == "allow"
    guard.answer({"op": "result", "run": "r", "id": "a", "tool": "look", "content": '{"topic": "credit"}'})
    assert (guard.answer({**asks, "id": "b"}) or {})["stop"] is True
