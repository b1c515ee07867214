"""Requests are made to suit their engine, and answers are read by what they had to be."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.matching import TEXT_CHARS_MAX, Fit, read_with
from remit.constraint.grammar.notation import GRAMMAR_UNCHECKABLE, is_gbnf
from remit.constraint.spoken_calls import EXAMPLES
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.commands import CallModel
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Role, assistant_message, system_message, tool_message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import GRAMMAR, LENGTH, Violation
from remit.core.work.graph import EXITS, TERMINALS, Ask, Edge, Graph, Node, NodeKind, NodeOutcome, Sees
from remit.inference.engine import Engine, EngineFault, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.exchange.call_shape import (
    TOLD_TOKENS_MAX,
    TOOLS_BY_GRAMMAR_MAX,
    TOOLS_OFFERED_MAX,
    WORDS_TOKENS_MAX,
    Circumstances,
    Hearing,
    ShapeBreach,
    Shaped,
    Unfit,
    began_at,
    is_checked,
    is_plain,
    occasion_of,
    read_answer,
    read_cut,
    shaped,
    shaped_request,
    strictly,
)
from remit.orchestrate.exchange.conversation import Conversation
from remit.orchestrate.executors.errands import Occasion
from remit.rerank.router import Scored
from tests.unit.inference.tiny_model import write_tiny_model
from tests.unit.kernel.builders import Run, manifest_of, wants

NATIVE = ModelInfo("native")
BY_GRAMMAR = ModelInfo("small", calls_by_grammar=True)


def declared(name: str) -> ToolDefinition:
    return ToolDefinition(name, f"Do {name}.", {"type": "object", "properties": {"n": {"type": "integer"}}})


LOOK, KEEP = declared("look"), declared("keep")
REQUEST = ModelRequest((user_message("please look"),), (LOOK, KEEP), max_tokens=50)


class ByName:
    """A router that finds tools whose name stands in the words, in the order of the words."""

    def shortlist(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        known = {tool.name for tool in tools}
        return [Scored(word, 1.0) for word in words.split() if word in known]

    def ranked(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        asked = words.split()
        found = sorted(tools, key=lambda tool: (tool.name not in asked, tool.name))
        return [Scored(tool.name, 0.0) for tool in found]


BY_NAME = ByName()


def given(
    info: ModelInfo = BY_GRAMMAR,
    *,
    router: ByName | None = BY_NAME,
    words: str = "please look",
    called: tuple[str, ...] = (),
    must_call: bool = False,
) -> Circumstances:
    return Circumstances(info, router, Occasion(words, called, must_call))


def call_text(tool: str, arguments: str = "{}") -> str:
    return f'{{"tool":"{tool}","arguments":{arguments}}}'


def names(tools: Sequence[ToolDefinition]) -> list[str]:
    return [tool.name for tool in tools]


# Engines with tools of their own.


def test_an_engine_with_tools_gets_the_request_as_it_stands() -> None:
    assert is_plain(REQUEST, NATIVE)
    shape = shaped(REQUEST, given(NATIVE))
    assert (shape.request, shape.calls, shape.offered, shape.hearing) == (REQUEST, (), (), Hearing.ALL)


def many() -> tuple[ToolDefinition, ...]:
    return tuple(declared(f"tool{n:03}") for n in range(300))


def test_of_too_many_tools_the_best_are_offered_and_those_that_were_called() -> None:
    request = ModelRequest((user_message("x"),), many())
    assert not is_plain(request, NATIVE)
    shape = shaped(request, given(NATIVE, words="tool250 tool299", called=("tool123",)))
    offered = names(shape.request.tools)
    assert len(offered) == TOOLS_OFFERED_MAX + 1
    assert {"tool250", "tool299", "tool123"} <= set(offered)
    assert shape.offered == tuple(offered)
    assert offered == sorted(offered)


def test_without_a_router_too_many_tools_are_all_offered() -> None:
    shape = shaped(ModelRequest((user_message("x"),), many()), given(NATIVE, router=None))
    assert (len(shape.request.tools), shape.offered) == (300, ())


# Engines that call by grammar.


def test_the_tool_that_the_words_ask_for_is_called_by_grammar() -> None:
    shape = shaped(REQUEST, given())
    assert (names(shape.calls), shape.offered, shape.hearing) == (["look"], ("look",), Hearing.NOTHING)
    assert (shape.request.tools, shape.request.tool_choice, shape.request.temperature) == ((), ToolChoice(), 0.0)
    assert read_with(shape.request.grammar, call_text("look", '{"n":1}')).fit is Fit.FITS
    assert read_with(shape.request.grammar, call_text("keep")).fit is Fit.BROKEN
    hint, *examples, last = shape.request.messages
    assert (hint.role, "look: Do look." in str(hint.content), last) == (Role.SYSTEM, True, user_message("please look"))
    assert tuple(examples) == EXAMPLES


def test_the_hint_joins_the_system_message_that_is_there() -> None:
    request = ModelRequest((system_message("Be brief."), user_message("look")), (LOOK,))
    first, *_ = shaped(request, given()).request.messages
    assert str(first.content).startswith("Be brief.\n\nYou can use this tool:")


def test_where_no_tool_fits_the_model_answers_in_words() -> None:
    shape = shaped(REQUEST, given(words="hello"))
    assert (shape.request.tools, shape.request.grammar, shape.calls, shape.hearing) == ((), "", (), Hearing.ALL)
    assert shape.request.messages == REQUEST.messages


def test_another_attempt_is_not_held_to_the_likeliest_words() -> None:
    again = ModelRequest(REQUEST.messages, REQUEST.tools, attempt=2)
    assert shaped(again, given()).request.temperature is None
    warm = ModelRequest(REQUEST.messages, REQUEST.tools, temperature=0.7)
    assert shaped(warm, given()).request.temperature == 0.7


@pytest.mark.parametrize(("wished", "words", "told"), [(2048, WORDS_TOKENS_MAX, TOLD_TOKENS_MAX), (3000, 3000, 3000)])
def test_words_that_nobody_limited_have_a_limit(wished: int, words: int, told: int) -> None:
    request = ModelRequest(REQUEST.messages, max_tokens=wished)
    assert shaped(request, given(words="hello")).request.max_tokens == words
    said = (*REQUEST.messages, assistant_message("", (ToolCall("c", "look"),)), tool_message("c", "look", "found it"))
    after = shaped(ModelRequest(said, max_tokens=wished), given(called=("look",)))
    assert after.request.max_tokens == told


def test_what_a_result_says_is_told_in_the_likeliest_words() -> None:
    said = (*REQUEST.messages, assistant_message("", (ToolCall("c", "look"),)), tool_message("c", "look", "found it"))
    told = shaped(ModelRequest(said, REQUEST.tools), given(called=("look",))).request
    assert (told.temperature, told.tools) == (0.0, ())


@pytest.mark.parametrize("shape", [{"grammar": 'root ::= "yes" | "no"'}, {"schema": {"type": "boolean"}}])
def test_what_fills_a_shape_is_the_likeliest_unless_it_was_tried(shape: dict[str, Any]) -> None:
    request = ModelRequest(REQUEST.messages, **shape)
    assert shaped(request, given()).request.temperature == 0.0
    assert shaped(replace(request, attempt=2), given()).request.temperature is None
    assert shaped(replace(request, temperature=0.7), given()).request.temperature == 0.7


CALLED = (
    user_message("look and keep"),
    assistant_message("", (ToolCall("1", "look", {"n": 1}),)),
    tool_message("1", "look", "seen"),
)


def test_the_second_tool_that_was_asked_for_is_called_after_the_first() -> None:
    shape = shaped(ModelRequest(CALLED, (LOOK, KEEP)), given(words="look and keep", called=("look",)))
    assert names(shape.calls) == ["keep"]
    assert shape.request.messages[-1] == user_message("look and keep\n\nThe result of look is: seen")


def test_once_everything_was_called_the_answer_is_due() -> None:
    shape = shaped(ModelRequest(CALLED, (LOOK, KEEP)), given(called=("look",)))
    assert shape.calls == ()
    asked = "look and keep\n\nThe result of look is: seen\nAnswer in words, using this result."
    assert shape.request.messages == (user_message(asked),)


def test_who_was_asked_something_else_meanwhile_is_asked_that() -> None:
    messages = (*CALLED, user_message("The answer was not accepted."))
    shape = shaped(ModelRequest(messages, (LOOK,)), given(called=("look",)))
    assert shape.request.messages[-1] == user_message("The answer was not accepted.")


def test_without_a_router_every_tool_is_offered_beside_words_until_one_was_called() -> None:
    request = ModelRequest((user_message("x"),), tuple(declared(f"t{n}") for n in range(20)))
    shape = shaped(request, given(router=None))
    assert (len(shape.calls), shape.offered, shape.hearing) == (TOOLS_BY_GRAMMAR_MAX, (), Hearing.WORDS)
    assert read_with(shape.request.grammar, "In words.").fit is Fit.FITS
    assert shaped(request, given(router=None, called=("t1",))).calls == ()


def test_a_call_that_is_demanded_is_made_whatever_the_words_say() -> None:
    assert names(shaped(REQUEST, given(words="hello", must_call=True)).calls) == ["keep"]
    alone = ModelRequest(REQUEST.messages, (KEEP,))
    shape = shaped(alone, given(router=None, words="hello", must_call=True))
    assert (names(shape.calls), shape.hearing) == (["keep"], Hearing.NOTHING)
    assert shaped(REQUEST, given(router=None, must_call=True)).hearing is Hearing.NOTHING


# Shapes of answers.

# So many references, each to the next, that following them would fill the stack.
CHAINED: dict[str, Any] = {
    "$ref": "#/$defs/0",
    "$defs": {**{str(n): {"items": {"$ref": f"#/$defs/{n + 1}"}} for n in range(2000)}, "2000": {}},
}


def test_a_schema_becomes_a_bounded_grammar_and_stays_beside_it() -> None:
    request = ModelRequest(CALLED, (), schema={"type": "string"})
    shape = shaped(request, given(words="hello"))
    assert shape.request.schema == {"type": "string"}
    assert read_with(shape.request.grammar, '"yes"').fit is Fit.FITS
    assert shape.grammar == ""
    assert "Answer in words" not in str(shape.request.messages[-1].content)


@pytest.mark.parametrize("schema", [{"type": "sentence"}, CHAINED])
def test_a_schema_that_makes_no_grammar_reaches_no_engine_that_would_make_one(schema: dict[str, Any]) -> None:
    shape = shaped(ModelRequest(REQUEST.messages, (), schema=schema), given(words="hello"))
    assert (shape.request.schema, shape.request.grammar) == (None, "")


def test_a_shape_that_cannot_be_checked_here_is_no_shape_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    for wish in ({"schema": {"type": "boolean"}}, {"grammar": 'root ::= "yes"'}):
        with pytest.raises(RequestRejected) as raised:
            shaped(ModelRequest(REQUEST.messages, **wish), given(words="hello"))
        assert raised.value.code == GRAMMAR_UNCHECKABLE


@pytest.mark.parametrize("info", [NATIVE, BY_GRAMMAR])
def test_a_grammar_reaches_the_engine_only_when_it_is_one(info: ModelInfo) -> None:
    request = ModelRequest(REQUEST.messages, (), grammar='root ::= "yes"')
    assert not is_plain(request, info)
    shape = shaped(request, given(info, words="hello"))
    assert shape.request.grammar == shape.grammar
    # Who calls by grammar decodes with llguidance, which cannot be led astray.
    assert is_gbnf(shape.grammar) is not info.calls_by_grammar
    assert [read_with(shape.grammar, text).fit for text in ("yes", "no")] == [Fit.FITS, Fit.BROKEN]
    with pytest.raises(RequestRejected) as raised:
        shaped(ModelRequest(REQUEST.messages, (), grammar="root ::= x"), given(info))
    assert raised.value.code == GRAMMAR_INVALID


# Each letter doubles the ways in which llama.cpp reads on; forty of them would hold it, and the process, for days.
DOUBLING = """
import asyncio, sys
from pathlib import Path
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.local.engine import LocalEngine
from remit.orchestrate.executors.errands import Occasion
from remit.orchestrate.exchange.call_shape import Circumstances, shaped

engine = LocalEngine(Path(sys.argv[1]))
grammar = 'root ::= more\\nmore ::= "a" more "x" | "a" more "y" | "a"{40}'
request = ModelRequest((user_message("go on"),), grammar=grammar, max_tokens=45)
given = Circumstances(engine.model_info(), None, Occasion("go on"))
shape = shaped(request, given)
try:
    asyncio.run(engine.infer(shape.request, lambda chunk: print(chunk.text, end="")))
except Exception as fault:
    print(fault)
"""


@pytest.mark.slow
def test_an_ambiguous_grammar_does_not_hold_the_process(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", tokenizer__ggml__add_space_prefix=False)
    command = [sys.executable, "-c", DOUBLING, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout[:40]) == (0, "a" * 40), done.stdout + done.stderr


# Reading.


def result(text: str, output_tokens: int = 5, **fields: Any) -> ModelResult:
    return ModelResult(text, usage=TokenUsage(10, 0, output_tokens), **fields)


CALLING = Shaped(ModelRequest((), max_tokens=9), (LOOK,), hearing=Hearing.NOTHING)


def test_the_text_of_a_call_becomes_a_call() -> None:
    found = read_answer(CALLING, result(call_text("look", '{"n":1}')), 3)
    assert isinstance(found, ModelResult)
    assert (found.content, found.finish_reason) == ("", FinishReason.TOOL)
    assert found.tool_calls == (ToolCall("call-4", "look", {"n": 1}),)
    assert found.usage == TokenUsage(10, 0, 5)


def test_a_call_that_was_cut_says_where() -> None:
    found = read_answer(CALLING, result('{"tool":"look","arg', 9), 3)
    assert isinstance(found, Unfit)
    assert found.code is ErrorCode.CONSTRAINT_JSON_INVALID
    assert "cut at max_tokens=9" in found.problem


def test_words_count_as_an_answer_only_where_they_were_allowed() -> None:
    assert read_answer(CALLING, result("noon"), 3) == Unfit(
        ErrorCode.CONSTRAINT_JSON_INVALID, "the model was to call a tool and answered in words"
    )
    either = Shaped(ModelRequest(()), (LOOK,), hearing=Hearing.WORDS)
    assert read_answer(either, result("noon"), 3) == result("noon")


def test_a_call_in_a_notation_of_the_models_own_is_a_call_where_words_were_allowed() -> None:
    either = Shaped(ModelRequest(()), (LOOK,), hearing=Hearing.WORDS)
    written = '<tool_call>{"name": "look", "arguments": {"n": 1}}</tool_call>'
    found = read_answer(either, result(written * 2), 3)
    assert isinstance(found, ModelResult)
    assert (found.content, found.finish_reason) == ("", FinishReason.TOOL)
    assert found.tool_calls == (ToolCall("call-4-1", "look", {"n": 1}), ToolCall("call-4-2", "look", {"n": 1}))
    for words in (f"Then:\n{written}", written.replace("look", "erase")):
        assert read_answer(either, result(words), 3) == result(words)


# What a provider that demands strict mode gets, and what its answer comes to.


class Strict:
    """An engine whose provider demands strict mode, and takes what it is told to take."""

    def __init__(self, *, takes: bool = True) -> None:
        self._takes = takes

    def strict_judge(self, schema: dict[str, Any]) -> bool:
        return self._takes

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        raise AssertionError("it is never asked")

    def model_info(self) -> ModelInfo:
        return NATIVE


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
ASKED = Shaped(ModelRequest((user_message("who?"),), schema=PERSON))


def test_a_schema_is_made_strict_for_a_provider_that_demands_it() -> None:
    shape = strictly(ASKED, Strict())
    assert shape.request.schema is not None
    assert shape.request.schema["required"] == ["name", "age"]
    assert not shape.is_plain
    assert read_answer(shape, result('{"name":"Ann","age":null}'), 0) == result('{"name":"Ann"}')
    # What needs no change is left to the letter.
    assert read_answer(shape, result('{ "name": "Ann", "age": 3 }'), 0) == result('{ "name": "Ann", "age": 3 }')


@pytest.mark.parametrize("text", ["no", '{"name": "An', "[" * 100_000, "[1]", "null"])
def test_an_answer_that_has_not_the_strict_shape_is_left_to_validation(text: str) -> None:
    assert read_answer(strictly(ASKED, Strict()), result(text), 0) == result(text)


@pytest.mark.parametrize(
    ("shape", "engine"),
    [
        (Shaped(replace(ASKED.request, schema=None)), Strict()),
        (Shaped(replace(ASKED.request, grammar="x")), Strict()),
        (Shaped(replace(ASKED.request, schema={"type": "object"})), Strict()),
        (ASKED, Strict(takes=False)),
        (ASKED, ScriptedEngine([{"text": "hi"}])),
    ],
)
def test_a_schema_stays_as_it_is_where_strict_mode_is_not_demanded_or_cannot_say_it(
    shape: Shaped, engine: Engine
) -> None:
    assert strictly(shape, engine) is shape


def test_an_answer_that_breaks_its_grammar_is_no_answer() -> None:
    shape = Shaped(ModelRequest((), max_tokens=2), grammar='root ::= "yes" | "no"')
    assert read_answer(shape, result("yes"), 0) == result("yes")
    broken = read_answer(shape, result("maybe", 2), 0)
    assert isinstance(broken, ShapeBreach)
    problem = "the answer breaks its grammar: 'm' at character 0 may not follow ''"
    assert (broken.violation, broken.result) == (Violation("", GRAMMAR, problem), result("maybe", 2))
    assert broken.code is ErrorCode.CONSTRAINT_GRAMMAR_REJECTED
    cut = read_answer(shape, result("ye", 2), 0)
    assert isinstance(cut, ShapeBreach)
    assert "it ends before the grammar does; it was cut at max_tokens=2" in cut.violation.message


def test_an_answer_of_which_nobody_knows_whether_it_fits_is_neither_used_nor_called_wrong() -> None:
    shape = Shaped(ModelRequest(()), grammar="root ::= .*")
    unknown = read_answer(shape, result("a" * (TEXT_CHARS_MAX + 1)), 0)
    assert isinstance(unknown, Unfit)
    assert "it is unknown whether the answer keeps its grammar" in unknown.problem


def test_of_an_answer_that_was_cut_its_model_can_be_told() -> None:
    code, usage = ErrorCode.INFERENCE_MALFORMED_RESPONSE, TokenUsage(3, 0, 2)
    fault = EngineFault(code, "cut", usage=usage, said='{"a')
    cut = read_cut(Shaped(ModelRequest((), max_tokens=2)), fault, "tiny")
    assert cut is not None
    assert (cut.result, cut.code) == (ModelResult('{"a', usage=usage, model="tiny"), code)
    assert (cut.violation.keyword, "its limit of 2 tokens and was cut" in cut.violation.message) == (LENGTH, True)
    unlimited = read_cut(Shaped(ModelRequest(())), fault, "tiny")
    assert unlimited is not None
    assert "reached its limit and was cut" in unlimited.violation.message
    # Half a call is no answer, and neither is nothing.
    assert read_cut(Shaped(ModelRequest(()), calls=(declared("look"),)), fault, "tiny") is None
    assert read_cut(Shaped(ModelRequest(())), EngineFault(code, "cut"), "tiny") is None


def checking(*edges: Edge) -> Graph:
    nodes = (Node("think", NodeKind.MODEL), Node("check", NodeKind.VALIDATE, visits_max=2), *TERMINALS)
    return Graph("checking", "think", nodes, (*edges, Edge("check", "done")), EXITS)


@pytest.mark.parametrize(
    ("edges", "is_judged"),
    [
        ((Edge("think", "check"),), True),
        ((Edge("think", "check", NodeOutcome.ANSWERED), Edge("think", "done")), True),
        ((Edge("think", "check", condition="answer == 'a'"), Edge("think", "check")), True),
        ((Edge("think", "check", condition="answer == 'a'"), Edge("think", "done")), False),
        ((Edge("think", "done", condition="answer == 'a'"), Edge("think", "check")), False),
    ],
)
def test_an_answer_is_checked_next_where_every_way_leads_to_a_check(edges: tuple[Edge, ...], is_judged: bool) -> None:
    assert is_checked(Run(manifest_of(graph=checking(*edges))).state) is is_judged
    assert not is_checked(RunState())


def test_calls_of_an_engines_own_and_silence_are_left_alone() -> None:
    shape = Shaped(ModelRequest(()), grammar='root ::= "yes"')
    proposing = result("let me see", tool_calls=(ToolCall("1", "look"),))
    assert read_answer(shape, proposing, 0) == proposing
    assert read_answer(shape, result(""), 0) == result("")


# What a node asks.


def asking(ask: Ask | None) -> Graph:
    nodes = (Node("think", NodeKind.MODEL, ask=ask), *TERMINALS)
    return Graph("asking", "think", nodes, (Edge("think", "done"),), EXITS)


def asked(ask: Ask | None, request: ModelRequest = REQUEST) -> ModelRequest:
    changed, found = shaped_request(request, Run(manifest_of(graph=asking(ask))).state)
    assert found == ask
    return changed


def test_a_node_that_asks_nothing_changes_nothing() -> None:
    assert asked(None) is REQUEST


def test_last_words_are_asked_for_without_any_tool_to_call() -> None:
    boundary = Boundary(exhaustion=(("output_tokens", Exhaustion.WRAP_UP),), budget=Budget(output_tokens=1000))
    run = Run(manifest_of(boundary=boundary))
    demanding = replace(REQUEST, tools=(declared("look"),), tool_choice=ToolChoice(ToolChoiceMode.REQUIRED))
    assert shaped_request(demanding, run.state)[0].tools == demanding.tools
    call = run.open(CallModel)[0]
    usage = TokenUsage(prompt_tokens=8, output_tokens=call.max_tokens)
    run.take(ModelAnswered(call.id, calls=(wants("look"),), usage=usage, tokens_bound=40))
    run.returns()
    assert run.state.talk.is_wrapping
    changed, _ = shaped_request(demanding, run.state)
    assert (changed.tools, changed.tool_choice) == ((), ToolChoice())


def test_an_instruction_is_shown_last() -> None:
    assert asked(Ask("Sort it.")).messages == (*REQUEST.messages, user_message("Sort it."))


def test_only_the_tools_that_a_node_names_are_offered_there() -> None:
    assert names(asked(Ask(tools=("keep", "other"))).tools) == ["keep"]
    assert names(asked(Ask()).tools) == ["look", "keep"]


@pytest.mark.parametrize(
    ("ask", "choice"),
    [
        (Ask(must_call=True), ToolChoice(ToolChoiceMode.REQUIRED)),
        (Ask(must_call=True, tools=("keep",)), ToolChoice(ToolChoiceMode.FUNCTION, "keep")),
        (Ask(must_call=True, tools=("other",)), ToolChoice()),
        (Ask(tools=()), ToolChoice()),
        (Ask(tools=("keep",)), ToolChoice()),
        (Ask(tools=("look",)), ToolChoice(ToolChoiceMode.FUNCTION, "look")),
    ],
)
def test_what_is_demanded_is_what_is_offered(ask: Ask, choice: ToolChoice) -> None:
    wished = ModelRequest(REQUEST.messages, REQUEST.tools, tool_choice=ToolChoice(ToolChoiceMode.FUNCTION, "look"))
    assert asked(ask, wished).tool_choice == choice


def test_the_shape_that_a_node_asks_for_replaces_the_requests() -> None:
    wished = ModelRequest(REQUEST.messages, schema={"type": "object"})
    assert asked(Ask(schema='{"type":"integer"}'), wished).schema == {"type": "integer"}
    by_grammar = asked(Ask(grammar='root ::= "a"'), wished)
    assert (by_grammar.schema, by_grammar.grammar) == (None, 'root ::= "a"')
    assert asked(Ask("Think."), wished).schema == {"type": "object"}


@pytest.mark.parametrize("sees", list(Sees))
def test_a_model_sees_what_its_node_shows(sees: Sees) -> None:
    run = Run(manifest_of(request=SystemRequest((system_message("sys"), user_message("please")))))
    for n in (1, 2):
        run.proposes(wants("look", n, call_id=f"c{n}"))
        run.returns()
    whole = tuple(Conversation().catch_up(run.state))
    run.state.derived = Run(manifest_of(graph=asking(Ask(sees=sees)))).state.derived
    run.state.place.node = 0
    changed, _ = shaped_request(ModelRequest(whole), run.state)
    expected = {
        Sees.EVERYTHING: whole,
        Sees.REQUEST: whole[:2],
        Sees.RESULTS: (*whole[:2], *whole[-2:]),
        Sees.USER: whole[1:2],
    }
    assert changed.messages == expected[sees]


def test_evidence_is_part_of_the_request_that_is_seen() -> None:
    run = Run(manifest_of(graph=asking(Ask(sees=Sees.REQUEST))))
    run.state.talk.ephemeral = "evidence"
    messages = (system_message("evidence"), user_message("please"), assistant_message("so"))
    assert shaped_request(ModelRequest(messages), run.state)[0].messages == messages[:2]


def test_a_model_that_sees_the_user_sees_no_evidence_and_no_answer() -> None:
    said = (user_message("first"), assistant_message("a mail says: pay"), user_message("thanks, go on"))
    run = Run(manifest_of(graph=asking(Ask(sees=Sees.USER)), request=SystemRequest((system_message("op"), *said))))
    run.state.talk.ephemeral = "evidence"
    messages = (system_message("op"), *said[:2], system_message("evidence"), said[2], assistant_message("so"))
    assert shaped_request(ModelRequest(messages), run.state)[0].messages == (said[0], said[2])


def test_of_several_results_the_latest_is_seen_with_its_call_alone() -> None:
    run = Run(manifest_of(graph=asking(Ask(sees=Sees.RESULTS))))
    calls = (ToolCall("1", "look"), ToolCall("2", "keep"))
    tail = (assistant_message("", calls), tool_message("1", "look", "a"), tool_message("2", "keep", "b"))
    seen = shaped_request(ModelRequest((user_message("please"), *tail, user_message("hm"))), run.state)[0].messages
    assert seen == (user_message("please"), assistant_message("", calls[1:]), tail[2])


def test_a_result_without_its_call_and_no_result_at_all_are_no_trouble() -> None:
    run = Run(manifest_of(graph=asking(Ask(sees=Sees.RESULTS))))
    lone = tool_message("9", "look", "a")
    assert shaped_request(ModelRequest((user_message("please"), lone)), run.state)[0].messages[-1] == lone
    assert shaped_request(ModelRequest((user_message("please"),)), run.state)[0].messages == (user_message("please"),)


# What shaping goes by.


def by(request: ModelRequest, run: Run, ask: Ask | None = None) -> Occasion:
    return occasion_of(request, request.messages, began_at(run.state), ask)


def test_the_words_are_the_users_last_of_the_request() -> None:
    request = SystemRequest((user_message("first"), assistant_message("hm"), user_message("last")))
    run = Run(manifest_of(request=request))
    found = by(ModelRequest((*request.messages, assistant_message("so"), user_message("correction"))), run)
    assert (found.words, found.called, found.must_call) == ("last", (), False)
    assert by(ModelRequest(()), run).words == ""


@pytest.mark.parametrize("choice", [ToolChoice(ToolChoiceMode.REQUIRED), ToolChoice(ToolChoiceMode.FUNCTION, "look")])
def test_a_demanded_call_is_demanded_once(choice: ToolChoice) -> None:
    run = Run()
    assert by(ModelRequest((user_message("please"),), tool_choice=choice), run).must_call
    after = by(ModelRequest(CALLED, tool_choice=choice), run)
    assert (after.must_call, after.called) == (False, ("look",))


def test_a_node_that_demands_a_call_gets_one_even_after_another() -> None:
    found = by(ModelRequest(CALLED), Run(), Ask("Keep it.", must_call=True))
    assert (found.must_call, found.called, found.words) == (True, (), "Keep it.\nlook and keep")
