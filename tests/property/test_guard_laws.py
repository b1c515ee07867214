"""Laws of the guard: whatever lines arrive, it answers and goes on; and it allows nothing that the gate alone would not."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.agents.guard_in_memory import GuardInMemory
from remit.core.record import JsonObject
from remit.orchestrate.guard.guard import GUARD_RUN_BROKEN
from remit.orchestrate.guard.host_tools import KEYS
from remit.provenance.gate import start
from tests.depth import examples
from tests.unit.provenance.office import EVIL, TOOLS

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

PROMPTS = ("Write to bob@corp.example that all is well.", "Delete all files and mail Ann Lee the largest.", "")
NAMES = st.sampled_from([str(tool["name"]) for tool in TOOLS] + ["", "no_such_tool"])
RUNS = st.sampled_from(["a", "b", 3, ""])
IDS = st.sampled_from(["1", "2", 2, "call-1", None])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([EVIL, "bob@corp.example", "$obs0.records[0].id", "\ud800", 2**70]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "recipients": st.lists(st.sampled_from(["bob@corp.example", EVIL]), max_size=2),
        "to": JSON,
        "subject": st.text(max_size=20),
        "body": st.text(max_size=20) | JSON,
        "file_id": st.sampled_from(["13", "66", 13]),
        "query": st.text(max_size=10),
    },
)

RUN_ID = re.compile(r"\b[0-9a-z]{16}\b")


def operation(op: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"op": st.just(op), "run": RUNS, **fields})


TOOL = st.fixed_dictionaries(
    {"name": NAMES | JSON}, optional=dict.fromkeys((*sorted(KEYS - {"name"}), "surprise"), JSON)
)
STARTS = operation("start", prompt=st.sampled_from(PROMPTS), tools=st.just(TOOLS))
OPERATIONS = st.one_of(
    STARTS,
    operation("start", prompt=JSON, tools=st.lists(TOOL, max_size=3) | JSON, boundary=JSON),
    operation("call", id=IDS, tool=NAMES, args=ARGUMENTS),
    operation("call", id=IDS, tool=NAMES | JSON, args=JSON),
    operation("result", id=IDS, tool=NAMES, content=JSON),
    operation("answer", id=IDS, approve=st.booleans(), by=st.sampled_from(["ann", ""])),
    operation("end"),
    st.dictionaries(st.sampled_from(["op", "run", "id", "tool", "args", "approve"]), JSON, max_size=4),
)
LINES = st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode())


def is_answer(op: Any, answer: JsonObject | None) -> bool:
    """Whether an answer is one that the protocol has for an operation."""
    if answer is None:
        return bool(op == "result")
    if answer.get("ok") is False:
        return bool(answer["code"] and answer["message"]) and answer["code"] != GUARD_RUN_BROKEN
    return answer == {"ok": True} or (op == "call" and answer["decision"] in ("allow", "ask", "refuse"))


@settings(max_examples=examples(200))
@given(st.lists(OPERATIONS, max_size=12))
def test_every_operation_is_answered_as_the_protocol_says_and_no_run_breaks(operations: list[JsonObject]) -> None:
    guard = GuardInMemory()
    assert guard.answer({"op": "start", "run": "a", "prompt": PROMPTS[0], "tools": TOOLS}) == {"ok": True}
    for one in operations:
        answer = guard.answer(one)
        assert is_answer(one.get("op"), answer), (one, answer)
        json.dumps(answer)


@given(st.lists(LINES | OPERATIONS.map(lambda one: json.dumps(one).encode()), max_size=8))
def test_no_line_stops_the_guard_and_the_next_one_is_judged(lines: list[bytes]) -> None:
    guard = GuardInMemory()
    for line in lines:
        answer = guard.line(line)
        assert answer is None or "ok" in answer or "decision" in answer
    assert guard.line(b'{"op":"start","run":"fresh","prompt":"","tools":[]}') == {"ok": True}
    assert guard.line(b'{"op":"end","run":"fresh"}') == {"ok": True}


@given(st.lists(OPERATIONS, max_size=10))
def test_the_same_operations_are_answered_the_same_way_twice(operations: list[JsonObject]) -> None:
    once, again = GuardInMemory(), GuardInMemory()
    first, second = ([guard.answer(one) for one in operations] for guard in (once, again))
    # Messages name the run by its id, which is new for each conversation.
    assert RUN_ID.sub("RUN", json.dumps(first)) == RUN_ID.sub("RUN", json.dumps(second))


@given(
    st.sampled_from(PROMPTS),
    st.lists(st.tuples(NAMES.filter(bool), ARGUMENTS, st.booleans(), JSON), max_size=8),
)
def test_what_the_guard_allows_the_gate_alone_allows(
    prompt: str, calls: list[tuple[str, JsonObject, bool, Any]]
) -> None:
    guard, gate = GuardInMemory(), start(prompt, TOOLS)
    assert guard.answer({"op": "start", "run": "r", "prompt": prompt, "tools": TOOLS}) == {"ok": True}
    for number, (tool, arguments, is_reported, content) in enumerate(calls):
        identity: JsonObject = {"run": "r", "id": str(number), "tool": tool}
        answer = guard.answer({"op": "call", **identity, "args": arguments})
        assert answer is not None
        if answer["decision"] == "refuse" and answer["code"] != "UNDECLARED":
            continue  # The kernel objected first, and the gate was not asked.
        verdict = gate.verdict_on(str(number), tool, arguments)
        assert answer["decision"] == verdict.decision
        if is_reported and verdict.is_allowed:
            text = json.dumps(content)
            guard.answer({"op": "result", **identity, "content": text})
            gate.observe(str(number), tool, text)
