"""Excerpts: what the kernel is shown of texts that live elsewhere, and that nothing can be hidden from it by padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.journal.codec import read_json
from remit.core.journal.commands import CallModel
from remit.core.journal.rulings import ToolCallRefused
from remit.core.limits.boundary import Boundary, Condition, Then
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition
from remit.core.record import TEXT_INLINE_BYTES_MAX, JsonObject
from remit.core.run.inference import ModelResult
from remit.kernel.authority.conditions import parse_condition
from remit.kernel.graph.expressions import condition_holds
from remit.orchestrate.executors.reports import ModelSaid
from remit.orchestrate.facts.excerpts import ABRIDGED_BYTES_MAX, abridged
from remit.orchestrate.facts.facts import Facts
from tests.unit.kernel.builders import Run, manifest_of

LONG = "x" * (ABRIDGED_BYTES_MAX + 1)
REGULATED = Condition("regulated", '"regulated" in args && args.regulated == true', Then.STOP)
# Long and short, so that nothing else finds a place behind it.
PADDING: JsonObject = {f"pad{n:03}": "x" * (200 if n < 5 else 1) for n in range(100)}
OPEN = ToolDefinition("open", "takes anything", {"type": "object"}, effect=Effect.READ)


def test_the_short_arguments_stand_in_the_turn_and_the_long_ones_do_not() -> None:
    assert read_json(abridged({"body": LONG, "to": "ada", "n": 3})) == {"to": "ada", "n": 3}


def test_a_long_argument_that_a_condition_names_is_there_and_says_nothing() -> None:
    named = (Condition("c", 'args.body == "x" || args["sub-ject"] == "y"'),)
    assert read_json(abridged({"body": LONG, "sub-ject": LONG, "other": LONG}, named)) == {
        "body": None,
        "sub-ject": None,
    }


def test_what_a_condition_names_comes_before_whatever_was_put_in_front_of_it() -> None:
    kept = abridged({**PADDING, "regulated": True}, (REGULATED,))
    assert read_json(kept)["regulated"] is True
    assert len(kept.encode()) < 2 * TEXT_INLINE_BYTES_MAX


def test_what_steers_a_tool_and_whom_a_call_is_about_are_kept_before_whatever_pads_it() -> None:
    kept = read_json(abridged({**PADDING, "user_id": "eve" * 9, "to": "bob" * 9}, control=("to",)))
    assert (kept["user_id"], kept["to"]) == ("eve" * 9, "bob" * 9)


def test_where_nothing_is_named_the_shortest_come_first() -> None:
    crowd: JsonObject = {f"long{n}": "x" * 200 for n in range(9)}
    assert read_json(abridged({**crowd, "n": 1}))["n"] == 1


@pytest.mark.parametrize("padding", [{}, PADDING, {"note": "x" * 5_000}])
def test_no_padding_leads_past_a_condition(padding: JsonObject) -> None:
    run = Run(manifest_of(tools=(OPEN,), boundary=Boundary(conditions=(REGULATED,))))
    call = ToolCall("call", "open", {**padding, "regulated": True})
    command_id = run.open(CallModel)[0].id
    run.take(Facts().complete(run.state, ModelSaid(command_id, ModelResult("", tool_calls=(call,))), []))
    assert run.last(ToolCallRefused).code == "UNSAFE"


CONDITIONS = (
    '"flag" in args && args.flag == true',
    'args.flag == "x"',
    "args.flag > 3",
    'args.flag.startsWith("x")',
    'args.flag != "abc"',
    '"flag" in args && size(args.flag) > 2',
)
values = st.booleans() | st.integers(-5, 5) | st.sampled_from(["x", "xx", "abc", LONG, LONG * 9]) | st.lists(st.text())


@given(st.sampled_from(CONDITIONS), values, st.integers(0, 12))
def test_a_condition_that_holds_of_the_whole_arguments_never_lets_the_abridged_ones_pass(
    when: str, value: object, padding: int
) -> None:
    arguments: JsonObject = {**{f"p{n}": "y" * 250 for n in range(padding)}, "flag": value}
    program, shown = parse_condition(when), read_json(abridged(arguments, (Condition("c", when),)))
    if condition_holds(program, {"args": arguments}) is not False:
        assert condition_holds(program, {"args": shown}) is not False
