"""Laws of tracing: whatever a model proposes and a tool returns, the turn can be written, and judged again to the same."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from remit.core.journal.codec import encode_turn
from remit.core.journal.commands import CallModel
from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition
from remit.core.run.inference import ModelResult
from remit.orchestrate.executors.reports import ModelSaid
from remit.orchestrate.history.replay import AuditVerdict
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.traced import EVIL, PAID, Office, answer, assert_alike, manifest

# The largest turn that a few calls come to, however much they say.
TURN_BYTES_MAX = 64 * 1024

ANY = ToolDefinition("act", "Act.", {"type": "object"}, effect=Effect.EXTERNAL)
SEE = ToolDefinition(
    "see",
    "See.",
    {"type": "object"},
    effect=Effect.READ,
    trust=Trust(fields=(("[].id", "id:file"), ("[].who", "email"))),
)
TEXTS = st.text(max_size=30) | st.sampled_from(
    [EVIL, "$obs0.records[0].id", "$obs1.records[0].who", "Bob", "x" * 3_000]
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)
CALLS = st.lists(
    st.builds(ToolCall, st.sampled_from(["", "x", "y"]), st.sampled_from(["act", "see", "pay", "none"]), JSON),
    max_size=5,
)
FOUND = st.sampled_from(['[{"id": "f-1", "who": "bob@corp.example"}]', "no list", '[{"id": 7}, {"id": "f-2"}]', "[]"])


@settings(max_examples=60, deadline=None)
@given(first=CALLS, second=CALLS, found=FOUND)
def test_whatever_is_proposed_is_written_small_and_judged_again_to_the_same(
    first: list[ToolCall], second: list[ToolCall], found: str
) -> None:
    async def act() -> None:
        office = Office(
            ModelResult("so", tool_calls=tuple(first)),
            ModelResult("so", tool_calls=tuple(second)),
            services={"see": lambda arguments: found, "act": lambda arguments: "done", "pay": lambda arguments: "paid"},
        )
        pay = next(tool for tool in manifest().tools if tool.name == "pay")
        live = await office.begin(manifest(tools=(ANY, SEE, pay)))
        turns = await office.turns()
        assert max(len(encode_turn(turn)) for turn in turns) < TURN_BYTES_MAX
        audited = await office.audited()
        assert audited.verdict is AuditVerdict.SAME, audited.difference
        assert_alike(await office.runner.tracer(live), await office.retraced())

    play(act())


@settings(max_examples=40, deadline=None)
@given(calls=CALLS)
def test_an_answer_that_never_became_a_turn_leaves_the_gate_as_it_was(calls: list[ToolCall]) -> None:
    async def act() -> None:
        office = Office()
        live = await office.runner.start(manifest())
        await office.runner.advance(live, ModelSaid("9.9", ModelResult(tool_calls=tuple(calls))))
        (command,) = [command for command in live.state.commands.open.values() if isinstance(command, CallModel)]
        await office.runner.advance(live, ModelSaid(command.id, answer(PAID)))
        assert await office.found() == ["bound"]

    play(act())
