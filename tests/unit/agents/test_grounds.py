"""What grounds an answer by what a call was given and returned: no error, and of an account one that names it."""

from typing import Any

import pytest

from remit import AgentLoop, SystemResponse, tool
from remit.core.failure import Ending
from remit.core.limits.tools import ToolCategory
from remit.core.record import JsonObject
from remit.core.work.goal import GROUNDS, Goal, TaskClass
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.declare.decorator import Tool
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import approval, calls, in_memory, request
from tests.unit.orchestrate.stage import play

LONG = "x" * 20_000


def looking(result: Any, category: str | None) -> Tool:
    @tool(name="look", effect="read", category=category)
    def look(what: str = "", deep: dict[str, Any] | None = None, sure: bool = True) -> Any:
        """Look something up."""
        return result

    return look


def asked(
    tools: list[Tool],
    *replies: JsonObject,
    goal: Goal,
    words: str = "How does account 4711 of Ada stand?",
    user: str = "",
) -> SystemResponse:
    async def story() -> SystemResponse:
        async with in_memory() as system:
            engine = ScriptedEngine([*replies, *({"text": "It is fine."},) * 3])
            return await AgentLoop(engine, tools=tools, system=system, goal=goal, user_id=user).chat(words)

    return play(story())


ACCOUNT = Goal("tell", task_class=TaskClass.ACCOUNT_STATUS)
CASES: list[tuple[JsonObject, Any, str, bool]] = [
    ({}, "12:30", "", False),
    ({}, {"temperature": 7}, "", False),
    ({"what": "Oslo"}, {"temperature": 7}, "", False),
    ({"sure": True}, {"temperature": 7, "sunny": True, "rain": None}, "", False),
    ({"what": "4711"}, {"state": "fine"}, "", True),
    ({"what": "ada"}, {"state": "fine"}, "", True),
    ({"deep": {"of": ["Ada"]}}, "fine", "", True),
    ({}, {"account": "4711", "state": "fine"}, "", True),
    ({}, [{"owner": "u-9"}], "u-9", True),
    ({}, [{"owner": "u-8"}], "u-9", False),
    ({}, LONG, "", True),
    ({}, "Your account is fine", "", False),
    ({}, {"open": "9 to 17", "note": "your account is fine"}, "", False),
    ({"what": "account"}, {"state": "fine"}, "", False),
    ({}, [{"owner": "Ada", "state": "fine"}], "", True),
    ({}, {"accountName": "ada"}, "", True),
    ({"what": "select * from accounts where name = 'Ada'"}, [["fine"]], "", True),
    ({"what": "select * from accounts where name = 'Bob'"}, [["fine"]], "", False),
    ({"what": "/accounts/4711/state"}, "fine", "", True),
    ({"what": "/account/bob"}, "fine", "", False),
]
# Every category that can tell of an account.
CATEGORIES = [None, *sorted(GROUNDS[TaskClass.ACCOUNT_STATUS])]


@pytest.mark.req("4.35")
@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize(("arguments", "result", "user", "grounds"), CASES)
@pytest.mark.slow
def test_a_look_up_tells_of_an_account_where_it_names_it(
    arguments: JsonObject, result: Any, user: str, grounds: bool, category: str | None
) -> None:
    said = asked([looking(result, category)], calls("look", **arguments), goal=ACCOUNT, user=user)
    assert (said.terminal_code is Ending.SUCCESS) is grounds, said


def test_where_the_caller_names_the_grounds_only_a_call_without_arguments_need_not_name_the_account() -> None:
    named = Goal("tell", task_class=TaskClass.ACCOUNT_STATUS, grounds=(ToolCategory.LIVE_API,))
    assert asked([looking("fine", "live_api")], calls("look"), goal=named).terminal_code is Ending.SUCCESS
    of_bob = asked([looking("fine", "live_api")], *(calls("look", what="bob"),) * 2, goal=named)
    assert of_bob.terminal_code is Ending.VALIDATION_FAIL


STATES = {"kim": "suspended", "zed": "active", "17": "closed"}


@tool(effect="read", category="database")
def account(user: str, part: str = "") -> dict[str, str]:
    """How an account stands."""
    return {"user": user, "status": STATES[user]}


@tool(effect="read", category="database")
def number_of(customer: str) -> str:
    """The number of an account."""
    return "17"


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("looked_up", "answer", "ending"),
    [
        ([calls("account", user="zed")], "Account kim is active.", Ending.VALIDATION_FAIL),
        ([calls("account", user="zed", part="account kim")], "Account kim is active.", Ending.VALIDATION_FAIL),
        ([calls("account", user="kim")], "Account kim is suspended.", Ending.SUCCESS),
        # The record of another supports nothing.
        (
            [calls("account", user="kim"), calls("account", user="zed")],
            "Account kim is active.",
            Ending.VALIDATION_FAIL,
        ),
        ([calls("number_of", customer="kim"), calls("account", user="17")], "Account kim is closed.", Ending.SUCCESS),
        ([calls("account", user="17")], "Account kim is closed.", Ending.VALIDATION_FAIL),
    ],
)
def test_the_record_of_another_account_tells_nothing(looked_up: list[JsonObject], answer: str, ending: Ending) -> None:
    said = asked(
        [account, number_of], *looked_up, *({"text": answer},) * 4, goal=ACCOUNT, words="How does account kim stand?"
    )
    assert said.terminal_code is ending, said


@tool(effect="none", asks_under="MISSING_INFO")
def ask(question: str) -> str:
    """Ask the user."""
    return ""


def test_what_a_person_answers_to_the_model_names_the_account_too() -> None:
    async def story() -> SystemResponse:
        replies = (calls("ask", question="whose?"), calls("account", user="kim"), {"text": "Account kim is suspended."})
        kit = engine_kit(ScriptedEngine(replies), Registry([account, ask]))
        async with in_memory() as system:
            waiting = await system.run(request("How does my account stand?"), kit, Terms(goal=ACCOUNT))
            assert waiting.waiting_for is not None
            packet = waiting.waiting_for.packet_ids[0]
            await system.signal(approval(packet, text="that of kim"), kit=kit)
            await system.settle()
            return await system.result(waiting.run_id)

    assert play(story()).terminal_code is Ending.SUCCESS


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("result", "grounds"),
    [
        ({"error": "no such account"}, False),
        ({"errors": ["gone"], "data": None}, False),
        ({"error": None, "state": "fine"}, True),
        ({"error": "", "errors": [], "state": "fine"}, True),
        (["error"], True),
    ],
)
@pytest.mark.parametrize("task", [TaskClass.ACCOUNT_STATUS, TaskClass.CURRENT_FACT, TaskClass.TOOL_RESULT])
def test_a_result_that_is_an_error_grounds_nothing(task: TaskClass, result: Any, grounds: bool) -> None:
    said = asked([looking(result, "database")], calls("look", what="4711"), goal=Goal("tell", task_class=task))
    assert (said.terminal_code is Ending.SUCCESS) is grounds, said
