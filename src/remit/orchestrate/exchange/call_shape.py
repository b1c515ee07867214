"""The shape of a call: what a model is asked, made to suit it, and what its answer comes to.

Rule 1: an engine with tools of its own gets them; a router shortlists only where there are too many to choose from.
Rule 2: an engine that calls by grammar never gets tools. While the user's words ask for a tool that was not called yet, it
        is told how to call and held to the grammar of that call; otherwise it answers in words.
Rule 3: what a node asks for comes before what the request asks for.
Rule 4: no grammar reaches an engine unchecked, and no answer that had to follow one leaves here unchecked. What breaks it
        is told to the model where its answer is checked next; where nothing checks it, the call has failed.
Rule 5: the same history and manifest give the same request.
Rule 6: a provider that demands strict mode gets the schema as it wants it, and its answer is brought back. Where strict
        mode cannot say what a schema says, the schema is sent as it is; the answer is validated in either case.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from remit.constraint.grammar.lark import in_lark
from remit.constraint.grammar.matching import Fit, read_with
from remit.constraint.grammar.notation import GRAMMAR_UNCHECKABLE, check_grammar
from remit.constraint.grammar.shapes import grammar_of_calls, grammar_of_calls_or_words, grammar_of_schema
from remit.constraint.spoken_calls import (
    EXAMPLES,
    call_hint,
    call_or_words_hint,
    read_call,
    with_answer_demanded,
    with_results_told,
)
from remit.constraint.strict_mode import StrictMode
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.codec import read_json, to_json
from remit.core.limits.tools import ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import Record, replace
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult
from remit.core.run.manifest import OUTPUT_TOKENS_DEFAULT
from remit.core.run.messages import Message, Role, system_message, user_message
from remit.core.schema.json_schema import GRAMMAR, LENGTH, Violation
from remit.core.work.graph import Ask, Graph, NodeKind, NodeOutcome, Sees
from remit.inference.answers.text_calls import written_in
from remit.inference.engine import AnyEngine, EngineFault, strict_judge
from remit.kernel.state import RunState, pinned
from remit.orchestrate.executors.errands import Occasion
from remit.rerank.router import Router

# Among more tools than this, models choose worse and prompts grow by pages; a router picks as many as these.
TOOLS_OFFERED_MAX = 20
# A small model that has to choose by itself is lost among more; where a router is missing, the first of them are offered.
TOOLS_BY_GRAMMAR_MAX = 8


# A small model without a limit goes on until it has none left, in circles. A page of words, and a
# paragraph about the result of a tool, are enough; a caller that wants more says how much.
WORDS_TOKENS_MAX = 512
TOLD_TOKENS_MAX = 128


class Hearing(StrEnum):
    """What may be streamed of an answer: all of it, nothing, or all unless it turns out to be a call."""

    ALL = "all"
    NOTHING = "nothing"
    WORDS = "words"


class Shaped(Record):
    """A request as its engine gets it, and how its answer is to be read.

    `calls` are the tools whose call the text may be; `offered` are those that a router chose; `grammar` is the caller's,
    in the notation in which it is sent; `strict` is how the schema was changed.
    """

    request: ModelRequest
    calls: tuple[ToolDefinition, ...] = ()
    offered: tuple[str, ...] = ()
    hearing: Hearing = Hearing.ALL
    grammar: str = ""
    strict: StrictMode | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the answer counts as it stands."""
        return not self.calls and not self.grammar and self.strict is None


class Unfit(NamedTuple):
    """An answer that does not have the shape it had to have."""

    code: ErrorCode
    problem: str


class ShapeBreach(NamedTuple):
    """An answer that breaks the shape it had to have, and where; told so, its model may mend it."""

    result: ModelResult
    violation: Violation
    code: ErrorCode


class Circumstances(NamedTuple):
    """What shaping goes by, beside the request: the model, the router if there is one, and the occasion."""

    info: ModelInfo
    router: Router | None
    occasion: Occasion


def check_shapes(grammar: str, graph: Graph) -> None:
    """Refuse a grammar at the door that no engine should be given: the request's own, or one that a node asks for."""
    if grammar:
        check_grammar(grammar)
    for node in graph.nodes:
        if node.ask is None or not node.ask.grammar:
            continue
        try:
            check_grammar(node.ask.grammar)
        except RequestRejected as refused:
            message = f"node {node.name!r} of graph {graph.name!r} asks for a grammar: {refused.message}"
            raise RequestRejected(refused.code, message, {**refused.details, "node": node.name}) from refused


def shaped_request(request: ModelRequest, state: RunState) -> tuple[ModelRequest, Ask | None]:
    """The request as the node asks it, and what the node asks for."""
    graph = state.derived.graph
    if state.talk.is_wrapping:
        # Last words are words: there is nothing left to call a tool with.
        request = replace(request, tools=(), tool_choice=ToolChoice())
    ask = None if graph is None else graph.nodes[state.place.node].ask
    if graph is None or ask is None:
        return request, None
    tools, choice = request.tools, request.tool_choice
    if ask.tools is not None:
        tools = tuple([tool for tool in tools if tool.name in ask.tools])
    if ask.must_call:
        choice = ToolChoice(ToolChoiceMode.REQUIRED)
        if len(tools) == 1:
            choice = ToolChoice(ToolChoiceMode.FUNCTION, tools[0].name)
    # What is not offered here cannot be demanded here.
    if not tools or (choice.function_name and choice.function_name not in [tool.name for tool in tools]):
        choice = ToolChoice()
    schema, grammar = request.schema, request.grammar
    if ask.words or ask.schema or ask.grammar:
        schema, grammar = graph.schemas.get(state.place.node), ask.grammar
    messages = shown_at(request.messages, began_at(state), ask)
    changed = replace(request, messages=messages, tools=tools, tool_choice=choice, schema=schema, grammar=grammar)
    return changed, ask


def occasion_of(
    request: ModelRequest, said_so_far: tuple[Message, ...], began: int, ask: Ask | None = None
) -> Occasion:
    """The occasion of a call, `began` messages before the first one of its run. A node may show its model less than that."""
    said = [message.content for message in said_so_far[:began] if message.role is Role.USER]
    words = said[-1] if said else ""
    assert isinstance(words, str), "an engine never sees a digest"
    if ask is not None and ask.must_call:
        return Occasion(f"{ask.instruction}\n{words}", must_call=True)
    called = sorted({call.name for message in said_so_far[began:] for call in message.tool_calls})
    demanded = request.tool_choice.mode in (ToolChoiceMode.REQUIRED, ToolChoiceMode.FUNCTION)
    return Occasion(words, tuple(called), must_call=demanded and not called)


def shaped(request: ModelRequest, given: Circumstances) -> Shaped:
    """The request as this engine is to get it. It may take long; raises RequestRejected for a grammar that is none."""
    if request.grammar:
        check_grammar(request.grammar)
    if not given.info.calls_by_grammar:
        return _narrowed(request, given)
    has_results = any(message.role is Role.TOOL for message in request.messages)
    told = with_results_told(request.messages) if has_results else request.messages
    bare = replace(request, messages=told, tools=(), tool_choice=ToolChoice())
    offered = _wanted(request.tools, given)
    if offered:
        return _calling(bare, offered, given)
    if has_results and request.schema is None and not request.grammar and request.messages[-1].role is Role.TOOL:
        # What a result says is told again, not invented.
        bare = _likeliest(_limited(replace(bare, messages=with_answer_demanded(told)), TOLD_TOKENS_MAX))
    return _speaking(bare)


def is_plain(request: ModelRequest, info: ModelInfo) -> bool:
    """Whether a request can go to its engine as it stands, which most do."""
    return not info.calls_by_grammar and not request.grammar and len(request.tools) <= TOOLS_OFFERED_MAX


def strictly(shape: Shaped, engine: AnyEngine) -> Shaped:
    """The shape with its schema as the engine's provider demands it, where it does and where it can be said."""
    schema, takes = shape.request.schema, strict_judge(engine)
    if schema is None or shape.request.grammar or takes is None:
        return shape
    try:
        strict = StrictMode(schema)
    except RequestRejected:
        return shape
    if not takes(strict.schema):
        return shape
    return replace(shape, request=replace(shape.request, schema=strict.schema), strict=strict)


def _narrowed(request: ModelRequest, given: Circumstances) -> Shaped:
    """For engines with native tool calls: all tools or, if these are too many, the best-ranked and those already called."""
    if given.router is None or len(request.tools) <= TOOLS_OFFERED_MAX:
        return Shaped(request, grammar=request.grammar)
    best = [each.tool for each in given.router.ranked(given.occasion.words, request.tools)[:TOOLS_OFFERED_MAX]]
    chosen = {*given.occasion.called, *best}
    tools = tuple([tool for tool in request.tools if tool.name in chosen])
    names = tuple([tool.name for tool in tools])
    return Shaped(replace(request, tools=tools), offered=names, grammar=request.grammar)


def _wanted(tools: Sequence[ToolDefinition], given: Circumstances) -> tuple[ToolDefinition, ...]:
    """The tools that an engine without any is held to call now; none when it is to answer."""
    if given.occasion.must_call and len(tools) == 1:
        return tuple(tools)
    if given.router is None:
        # It is not known what the words ask for; once something was called, the answer is due.
        return tuple(tools[:TOOLS_BY_GRAMMAR_MAX]) if not given.occasion.called else ()
    words, called = given.occasion.words, given.occasion.called
    names = [each.tool for each in given.router.shortlist(words, tools) if each.tool not in called]
    if not names and given.occasion.must_call:
        names = [each.tool for each in given.router.ranked(words, tools)]
    return tuple([tool for tool in tools if tool.name in names[:1]])


def _calling(request: ModelRequest, tools: tuple[ToolDefinition, ...], given: Circumstances) -> Shaped:
    is_sure = given.occasion.must_call or given.router is not None
    hint = call_hint(tools) if is_sure else call_or_words_hint(tools)
    grammar = grammar_of_calls(tools) if is_sure else grammar_of_calls_or_words(tools)
    return Shaped(
        _likeliest(replace(request, messages=_hinted(request.messages, hint), schema=None, grammar=grammar)),
        tools,
        () if given.router is None else tuple([tool.name for tool in tools]),
        Hearing.NOTHING if is_sure else Hearing.WORDS,
    )


def _speaking(request: ModelRequest) -> Shaped:
    """An answer in words, or in the shape that was asked for."""
    if request.schema is None and not request.grammar:
        return Shaped(_limited(request, WORDS_TOKENS_MAX))
    request = _likeliest(request)
    if request.grammar or request.schema is None:
        grammar = in_lark(request.grammar)
        return Shaped(replace(request, grammar=grammar), grammar=grammar)
    try:
        return Shaped(replace(request, grammar=grammar_of_schema(request.schema)))
    except RequestRejected as refused:
        if refused.code == GRAMMAR_UNCHECKABLE:
            raise
        # An engine would make the same grammar of it, and some of those end the process. The answer is validated anyway.
        return Shaped(replace(request, schema=None))


def _limited(request: ModelRequest, tokens_max: int) -> ModelRequest:
    """The request with a limit of our own, where it has only the default one."""
    return replace(request, max_tokens=tokens_max) if request.max_tokens == OUTPUT_TOKENS_DEFAULT else request


def _likeliest(request: ModelRequest) -> ModelRequest:
    """What fills a shape is copied and chosen, not invented: the likeliest token is right, unless it was tried before."""
    if request.temperature is not None or request.attempt > 1:
        return request
    return replace(request, temperature=0.0)


def _hinted(messages: tuple[Message, ...], hint: str) -> tuple[Message, ...]:
    """The conversation behind the hint and its examples. Some templates take one system message, and only as the first."""
    if messages and messages[0].role is Role.SYSTEM:
        return (system_message(f"{messages[0].content}\n\n{hint}"), *EXAMPLES, *messages[1:])
    return (system_message(hint), *EXAMPLES, *messages)


def read_answer(shape: Shaped, result: ModelResult, messages_count: int) -> ModelResult | ShapeBreach | Unfit:
    """The answer as it counts: its text made a call where it is one, or what is wrong with it."""
    if result.tool_calls or not result.content:
        return result
    if shape.calls:
        return _as_call(shape, result, messages_count)
    if shape.strict is not None:
        return _restored(shape.strict, result)
    return _by_grammar(shape, result) if shape.grammar else result


def _by_grammar(shape: Shaped, result: ModelResult) -> ModelResult | ShapeBreach | Unfit:
    reading = read_with(shape.grammar, result.content)
    match reading.fit:
        case Fit.FITS:
            return result
        case Fit.UNDECIDED:
            # No check calls it wrong, and its model would not know what to mend.
            problem = f"it is unknown whether the answer keeps its grammar: {reading.problem}"
            return Unfit(ErrorCode.CONSTRAINT_GRAMMAR_REJECTED, problem)
    ended = _was_cut(shape, result) if reading.fit is Fit.CUT else ""
    problem = f"the answer breaks its grammar: {reading.problem}{ended}"
    return ShapeBreach(result, Violation("", GRAMMAR, problem), ErrorCode.CONSTRAINT_GRAMMAR_REJECTED)


def read_cut(shape: Shaped, fault: EngineFault, model: str) -> ShapeBreach | None:
    """What there is of an answer that was cut before its shape was complete; None where there is nothing to mend."""
    if not fault.said or shape.calls:
        return None
    limit = f" of {shape.request.max_tokens} tokens" if shape.request.max_tokens else ""
    problem = f"the answer reached its limit{limit} and was cut before it was complete; answer again, and shorter"
    result = ModelResult(fault.said, usage=fault.usage, model=model)
    return ShapeBreach(result, Violation("", LENGTH, problem), fault.code)


def is_checked(state: RunState) -> bool:
    """Whether an answer of the present node is checked next, wherever it leads."""
    graph = state.derived.graph
    if graph is None:
        return False
    choice = graph.choices[state.place.node].get(NodeOutcome.ANSWERED)
    if choice is None:
        ways = [graph.sure[state.place.node][NodeOutcome.ANSWERED]]
    else:
        ways = [choice.otherwise, *(target for _, _, target in choice.tried)]
    return all(graph.nodes[way].kind is NodeKind.VALIDATE for way in ways)


def _as_call(shape: Shaped, result: ModelResult, messages_count: int) -> ModelResult | Unfit:
    found = read_call(result.content, shape.calls, messages_before=messages_count)
    if found.code is not None:
        return Unfit(found.code, f"the model was to call a tool: {found.problem}{_was_cut(shape, result)}")
    if found.call is None:
        if shape.hearing is Hearing.WORDS:
            return _as_written(shape, result, messages_count)
        return Unfit(ErrorCode.CONSTRAINT_JSON_INVALID, "the model was to call a tool and answered in words")
    return replace(result, content="", tool_calls=(found.call,), finish_reason=FinishReason.TOOL)


def _as_written(shape: Shaped, result: ModelResult, messages_count: int) -> ModelResult:
    """Words, unless the model wrote its calls in a notation of its own and said nothing else."""
    written = written_in(result.content, [tool.name for tool in shape.calls])
    if written.words or not written.calls:
        return result
    calls = [
        ToolCall(f"call-{messages_count + 1}-{number}", call.name, call.arguments)
        for number, call in enumerate(written.calls, start=1)
    ]
    return replace(result, content="", tool_calls=tuple(calls), finish_reason=FinishReason.TOOL)


def _restored(strict: StrictMode, result: ModelResult) -> ModelResult:
    """The answer as the schema had it before it was made strict. One that is no JSON is left to validation."""
    try:
        value = read_json(result.content)
        restored = strict.restored(value)
    except (ValueError, RecursionError):
        return result
    return result if restored == value else replace(result, content=to_json(restored))


def _was_cut(shape: Shaped, result: ModelResult) -> str:
    limit = shape.request.max_tokens
    return f"; it was cut at max_tokens={limit}" if 0 < limit <= result.usage.completion_tokens else ""


def began_at(state: RunState) -> int:
    """How many messages stand before what was said in this run. Evidence stands among those of the request, as one more."""
    return len(pinned(state).request.messages) + bool(state.talk.ephemeral)


def shown_at(messages: tuple[Message, ...], began: int, ask: Ask) -> tuple[Message, ...]:
    """What a node shows its model of a conversation that had `began` messages before the run said anything."""
    shown = _seen(messages, messages[began:], ask.sees)
    return (*shown, user_message(ask.instruction)) if ask.instruction else shown


def _seen(messages: tuple[Message, ...], tail: tuple[Message, ...], sees: Sees) -> tuple[Message, ...]:
    match sees:
        case Sees.EVERYTHING:
            return messages
        case Sees.REQUEST:
            return messages[: len(messages) - len(tail)]
        case Sees.RESULTS:
            return (*messages[: len(messages) - len(tail)], *_latest_result(tail))
        case Sees.USER:
            return tuple([message for message in messages[: len(messages) - len(tail)] if message.role is Role.USER])


def _latest_result(tail: Iterable[Message]) -> tuple[Message, ...]:
    """The last result of a tool, behind the call that it answers: without that, no vendor takes it."""
    behind = list(tail)
    result = next((message for message in reversed(behind) if message.role is Role.TOOL), None)
    if result is None:
        return ()
    for message in reversed(behind):
        for call in message.tool_calls:
            if call.id == result.tool_call_id:
                return (replace(message, tool_calls=(call,)), result)
    return (result,)
