"""Laws of lists of orders: what no tool could carry out is refused, what is shown hides nothing, and each order is done once."""

import asyncio
import string
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import remit
from remit import AgentLoop, PlanExecutor, RequestRejected, ScriptedEngine, Step, tool
from remit.core.failure import RequestRejected as Rejected
from remit.core.work.orders import ORDERS_INVALID, orders_of
from remit.provenance.declarations import declarations_of
from remit.provenance.order_book import OrderBook
from remit.provenance.order_checks import check_orders
from tests.unit.orchestrate.test_guarding import Talk

# An effect of each domain with its argument and a read of it: what it is called, and what it is asked for.
DOMAINS = (
    ("merge_branch", "branch", "find_branch", "query"),
    ("refund_invoice", "invoice", "list_invoices", "customer"),
    ("discharge", "patient", "search_patients", "ward"),
    ("cancel_trip", "trip", "look_up_trip", "traveller"),
    ("archive_channel", "channel", "read_channels", "topic"),
    ("drop_table", "table", "show_tables", "schema"),
)
WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=8)


def tools_of(domain: tuple[str, str, str, str]) -> list[dict[str, Any]]:
    act, argument, find, query = domain
    said = {
        "type": "object",
        "properties": {argument: {"type": "string"}, "count": {"type": "integer"}, "body": {"type": "string"}},
    }
    asked = {"type": "object", "properties": {query: {"type": "string"}}, "required": [query]}
    none = {"type": "object", "properties": {}}
    fields = {"[].id": "id:thing", "[].name": "label"}
    return [
        {
            "name": act,
            "effect": "external",
            "payload_args": ["body"],
            "parameters": {**said, "required": [argument]},
            "result": {"id": "id:done"},
        },
        {"name": find, "effect": "read", "network": False, "parameters": asked, "result": fields},
        {"name": "list_all", "effect": "read", "network": False, "parameters": none, "result": fields},
    ]


def looked_up(tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"lookup": {"tool": tool_name, "arguments": arguments, "field": "id"}}


def wrong(domain: tuple[str, str, str, str], word: str) -> dict[str, list[dict[str, Any]]]:
    """Lists that no tool could carry out, by what is wrong with them."""
    act, argument, find, query = domain
    good = {"tool": act, "args": {argument: word}}

    def args(**more: Any) -> list[dict[str, Any]]:
        return [{"tool": act, "args": {argument: word, **more}}]

    return {
        "a number for a text": [{"tool": act, "args": {argument: 5}}],
        "a text for a number": args(count="many"),
        "a list for a text": [{"tool": act, "args": {argument: [word]}}],
        "a missing argument": [{"tool": act, "args": {"count": 1}}],
        "a missing argument of one way": [{"either": [good, {"tool": act}]}],
        "a look-up within a value": [{"tool": act, "args": {argument: {"value": looked_up(find, {query: word})}}}],
        "a look-up within a look-up": [
            {"tool": act, "args": {argument: looked_up(find, {query: looked_up("list_all", {})})}}
        ],
        "an argument that the look-up lacks": [
            {"tool": act, "args": {argument: looked_up(find, {query: word, "sort": "up"})}}
        ],
        "an argument of a look-up without any": [
            {"tool": act, "args": {argument: looked_up("list_all", {query: word})}}
        ],
        "a look-up without its argument": [{"tool": act, "args": {argument: looked_up(find, {})}}],
        "a look-up of another type": [{"tool": act, "args": {argument: looked_up(find, {query: 7})}}],
        "a text from an unknown tool": [{**good, "text": {"body": {"free": ["nope"]}}}],
        "a slot that nothing fills": [
            {**good, "text": {"body": {"template": "Dear {name} {title}", "slots": {"name": word}}}}
        ],
        "a template without slots": [{**good, "text": {"body": {"template": "Dear {name}"}}}],
        "a text for a number in words": [{**good, "text": {"count": "many"}}],
        "a field that the earlier order lacks": [
            good,
            {"tool": act, "args": {argument: {"order": {"number": 1, "field": "sum"}}}},
        ],
        "an argument that is not there": args(nothing=1),
        "a tool that is not there": [{"tool": "nope", "args": {}}],
    }


@pytest.mark.parametrize("domain", DOMAINS)
@given(WORDS)
def test_what_no_tool_could_carry_out_is_no_list(domain: tuple[str, str, str, str], word: str) -> None:
    tools = declarations_of(tools_of(domain))
    for what, orders in wrong(domain, word).items():
        with pytest.raises(Rejected) as refused:
            check_orders(orders_of(orders), tools)
        assert refused.value.code == ORDERS_INVALID, what
        assert refused.value.message.startswith(f"order {len(orders)}: "), what


@pytest.mark.parametrize("domain", DOMAINS)
@given(WORDS, st.integers(0, 99))
def test_what_a_tool_can_carry_out_is_a_list(domain: tuple[str, str, str, str], word: str, count: int) -> None:
    act, argument, find, query = domain
    template = {"template": "Dear {name}", "slots": {"name": looked_up(find, {query: word})}}
    orders: list[Any] = [
        {"tool": act, "args": {argument: word, "count": count}, "text": {"body": word}},
        {"tool": act, "args": {argument: looked_up(find, {query: word})}, "text": {"body": {"free": [find]}}},
        {"tool": act, "args": {argument: {"order": {"number": 1, "field": "id"}}}, "text": {"body": template}},
        {
            "either": [
                {"tool": act, "args": {argument: word}},
                {"tool": act, "args": {argument: looked_up("list_all", {})}},
            ]
        },
    ]
    tools = declarations_of(tools_of(domain))
    check_orders(orders_of(orders), tools)
    # A slot that is not filled says why, and one that is says from where.
    line = OrderBook(orders_of(orders), tools, is_confirmed=False).lines()[5]
    assert line.endswith(f'(name NOT KNOWN: {find} was not read yet: {find} {{"{query}":"{word}"}}.id)')
    filled = OrderBook(
        orders_of([{**orders[0], "text": {"body": {"template": "Dear {name}", "slots": {"name": word}}}}]),
        tools,
        is_confirmed=True,
    )
    assert filled.lines()[1] == f"   body: 'Dear {word}' (name given)"


HIDING = st.sampled_from("\u202e\u2066\u200b\u200d\u00ad\u034f\u3164\ufeff\u2028\U000e0101\x1b")


@given(st.sampled_from(DOMAINS), WORDS, HIDING, WORDS)
def test_a_list_shows_every_sign_that_hides_or_turns_text(
    domain: tuple[str, str, str, str], before: str, sign: str, after: str
) -> None:
    act, argument, find, query = domain
    odd = before + sign + after
    template = {"template": f"{odd} {{name}}", "slots": {"name": looked_up(find, {query: odd})}}
    orders: list[dict[str, Any]] = [
        {"tool": act, "args": {argument: odd}, "text": {"body": odd}, "if": odd},
        {"tool": act, "args": {argument: looked_up(find, {query: odd})}, "text": {"body": template}},
    ]
    lines = OrderBook(orders_of(orders), declarations_of(tools_of(domain)), is_confirmed=False).lines()
    assert len(lines) == 4
    assert sign not in "".join(lines)
    assert "f\u00fcr Zo\u00eb" in "".join(
        OrderBook(
            orders_of([{"tool": act, "args": {argument: "f\u00fcr Zo\u00eb"}}]),
            declarations_of(tools_of(domain)),
            is_confirmed=False,
        ).lines()
    )


@given(st.integers(2, 5), st.data())
def test_a_call_is_told_the_order_that_it_equals_and_no_other(count: int, data: st.DataObject) -> None:
    domain = data.draw(st.sampled_from(DOMAINS))
    orders = [{"tool": domain[0], "args": {domain[1]: f"t-{number}"}} for number in range(1, count + 1)]
    book = OrderBook(orders_of(orders), declarations_of(tools_of(domain)), is_confirmed=True)
    closed = data.draw(st.sets(st.integers(1, count)))
    wanted = data.draw(st.integers(1, count))
    found = book.match(domain[0], {domain[1]: f"t-{wanted}"}, closed, has_unlisted=False)
    assert found.number == (0 if wanted in closed else wanted)
    if wanted in closed:
        assert found.why.startswith(f"order {wanted} is used up")
    other = book.match(domain[0], {domain[1]: "t-0"}, closed, has_unlisted=False)
    assert "is used up" not in other.why.replace("every order", "") or len(closed) == count


def acting(done: list[str]) -> Any:
    @tool(effect="external", control_args={"thing": "id:thing"}, verify=lambda arguments, result: True)
    def settle(thing: str) -> str:
        """Settle a thing."""
        done.append(thing)
        return "ok"

    return settle


async def planned(things: list[str], orders: list[dict[str, Any]]) -> tuple[list[str], Any]:
    """What a plan does whose every step does one thing."""
    done: list[str] = []
    marks = [f"mark-{place}x" for place in range(len(things))]
    script: list[Any] = []
    for mark, thing in zip(marks, things, strict=True):
        script += [
            {"when": mark, "tool_calls": [{"name": "settle", "arguments": {"thing": thing}}]},
            {"when": "ok", "text": "Done."},
        ]
    with TemporaryDirectory() as home:
        return await _executed(home, marks, script, orders, done)


async def _executed(
    home: str, marks: list[str], script: list[Any], orders: list[dict[str, Any]], done: list[str]
) -> tuple[list[str], Any]:
    loop = AgentLoop(ScriptedEngine([*script, {"text": "Done."}]), tools=[acting(done)])
    async with remit.open(home) as system, PlanExecutor({"a": loop}, boundary="guarded", system=system) as plan:
        steps = [Step(f"s{place}", "a", mark) for place, mark in enumerate(marks)]
        said = await plan.execute(steps, prompt="Go.", orders=orders)
    return done, said.response


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(["t-1", "t-2", "t-3"]), min_size=1, max_size=3))
def test_orders_of_one_tool_are_done_over_the_steps_of_a_plan_each_once(things: list[str]) -> None:
    orders = [{"tool": "settle", "args": {"thing": thing}} for thing in things]
    done, response = asyncio.run(planned(things, orders))
    assert done == things
    assert response.waiting_for is None


@settings(max_examples=8, deadline=None)
@given(st.permutations(["t-1", "t-2", "t-3"]))
def test_what_a_step_has_done_no_later_step_does_again(things: list[str]) -> None:
    done, response = asyncio.run(
        planned([things[0], things[0]], [{"tool": "settle", "args": {"thing": one}} for one in things])
    )
    assert done == [things[0]]
    assert response.waiting_for is not None


ORDER = [{"tool": "delete_file", "args": {"file_id": "f1"}}]
FOREIGN = {
    "a read": lambda talk: (
        talk.call("find_files", "l", name="plan"),
        talk.result("find_files", [{"id": "f1", "filename": "x", "note": ""}], "l"),
    ),
    "an effect": lambda talk: (
        talk.call("send_mail", "m", to="bob@corp.example", body="Hi"),
        talk.say("answer", id="m", approve=True, by="ann"),
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("confirms", [{}, {"approve": True, "by": "ann"}])
def test_a_list_that_comes_after_foreign_text_or_an_effect_is_refused(what: str, confirms: dict[str, Any]) -> None:
    talk = Talk("Go.", boundary={"authority": {"stands_for": "approval"}}, user="bob")
    FOREIGN[what](talk)
    said = talk.say("orders", orders=ORDER, **confirms)
    assert said["code"] == "GUARD_ORDERS_LATE"
    assert "too late" in said["message"]
    assert talk.say("orders")["list"] == []
    assert talk.call("delete_file", "d", file_id="f1")["decision"] == "ask"


def test_a_list_at_the_door_is_checked_as_well(tmp_path: Path) -> None:
    async def ask() -> None:
        tools, engine = [acting([])], ScriptedEngine([{"text": "x"}])
        async with (
            remit.open(tmp_path) as system,
            AgentLoop(engine, tools=tools, boundary="guarded", system=system) as agent,
        ):
            await agent.chat("Go.", orders=[{"tool": "settle", "args": {"thing": 5}}])

    with pytest.raises(RequestRejected, match="a value that settle takes"):
        asyncio.run(ask())
