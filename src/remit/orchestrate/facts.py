"""Facts: complete a report with what the kernel needs and may not compute.

Rule 1: facts are a pure function of the report and the manifest, so an audit can compute them again.
Rule 2: what cannot be computed is recorded as a violation, never left out.
Rule 3: a long text goes to Blobs before its turn is written; the arrival carries the digest.
Rule 4: the bound on the tokens of a text is its length in bytes and a fixed overhead.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from remit.core import arrivals
from remit.core.arrivals import Arrival, ProposedCall, RunStarted
from remit.core.canonical import NotCanonical, canonical_json
from remit.core.codec import read_json
from remit.core.commands import AskHuman
from remit.core.failure import ArrivalFault, ErrorCode, IllegalArrival
from remit.core.manifest import Manifest
from remit.core.messages import Message
from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, JsonObject, Text, replace
from remit.core.schema import Checker, Violation, compile_schema
from remit.core.tools import ToolCall, ToolDefinition
from remit.kernel.state import RunState, pinned
from remit.kernel.words import MESSAGE_TOKENS_OVERHEAD, failure_bound
from remit.orchestrate import reports
from remit.orchestrate.reports import Report

# The longest error text of a tool that is kept: enough for a stack of causes, too little to flood a context.
ERROR_CHARS_MAX = 2000
# The largest UTF-8 length of one character: texts shorter than this many characters are inline without measuring.
_BYTES_PER_CHAR_MAX = 4
_INLINE_CHARS = TEXT_INLINE_BYTES_MAX // _BYTES_PER_CHAR_MAX

# Texts on their way to Blobs: digest and bytes.
Kept = list[tuple[bytes, bytes]]


class Facts:
    """Completes reports. Owns the compiled schemas of the tools it has seen."""

    def __init__(self) -> None:
        self._checkers: dict[str, Checker] = {}
        self._complete: dict[type[Any], Callable[[RunState, Any, Kept], Arrival]] = {
            reports.ModelSaid: self._answered,
            reports.ToolSaid: self._returned,
            reports.ToolBroke: self._broke,
            reports.ToolAccounted: self._accounted,
            reports.ChildSaid: self._child,
            reports.ContextSaid: self._context,
            reports.PersonApproved: self._approved,
            reports.PersonSaid: self._said,
        }

    def complete(self, state: RunState, report: Report, kept: Kept) -> Arrival:
        """The arrival in a report; texts too long to be written into a turn are added to `kept`."""
        complete = self._complete.get(type(report))
        return report if complete is None else complete(state, report, kept)  # type: ignore[return-value]

    def started(self, manifest: Manifest, kept: Kept) -> RunStarted:
        """The first arrival of a run: its manifest, with bounds of what every model call will carry."""
        messages = tuple(_stored(message, kept) for message in manifest.request.messages)
        bound = sum(_message_bound(message) for message in messages)
        offer = sum(_offer_bound(tool) for tool in manifest.tools)
        pinned_manifest = replace(manifest, request=replace(manifest.request, messages=messages))
        return RunStarted(pinned_manifest, bound, offer)

    def _answered(self, state: RunState, report: reports.ModelSaid, kept: Kept) -> Arrival:
        result = report.result
        content, reasoning = clean(result.content), clean(result.reasoning)
        calls = tuple([self._proposed(state, call, kept) for call in result.tool_calls]) if result.tool_calls else ()
        bound = size_bytes(content) + size_bytes(reasoning) + MESSAGE_TOKENS_OVERHEAD
        for call in calls:
            bound += len(call.tool) + MESSAGE_TOKENS_OVERHEAD + _size_of(call.arguments)
        violations = () if calls else self._output_violations(pinned(state), content)
        return arrivals.ModelAnswered(
            report.command_id, stored(content, kept), stored(reasoning, kept), calls, result.usage, bound, violations
        )

    def _proposed(self, state: RunState, call: ToolCall, kept: Kept) -> ProposedCall:
        name, call_id = clean(call.name), clean(call.id)
        try:
            canonical = canonical_json(call.arguments)
        except NotCanonical as error:
            violation = Violation("", "canonical", str(error))
            return ProposedCall(call_id, name, "", sha256(name.encode()).digest(), (violation,))
        tool = state.tools.get(name)
        checker = self._checker(tool.version, tool.parameters) if tool is not None else None
        violations = () if checker is None or checker.is_valid(call.arguments) else checker.violations(call.arguments)
        text = stored(canonical.decode(), kept)
        return ProposedCall(call_id, name, text, sha256(canonical).digest(), violations)

    def _output_violations(self, manifest: Manifest, content: str) -> tuple[Violation, ...]:
        schema = manifest.request.output.schema
        if schema is None or not content:
            return ()
        try:
            value = read_json(content)
        except ValueError as error:
            return (Violation("", "json", str(error)[:200]),)
        return self._checker(f"output:{manifest.run_id}", schema).violations(value)

    def _returned(self, state: RunState, report: reports.ToolSaid, kept: Kept) -> Arrival:
        result = report.result
        if result.is_error:
            return _failed(report.command_id, ErrorCode.TOOL_EXECUTION_FAILED, result.error, report.duration_ms)
        tool = state.tools[_tool_of(state, report.command_id)]
        content = clean(result.content) if isinstance(result.content, str) else ""
        return arrivals.ToolReturned(
            report.command_id,
            stored(content, kept),
            sha256(content.encode()).digest(),
            size_bytes(content) + MESSAGE_TOKENS_OVERHEAD,
            self._result_violations(tool, content),
            clean(report.refuted)[:ERROR_CHARS_MAX],
            result.stop_loop,
            report.duration_ms,
        )

    def _result_violations(self, tool: ToolDefinition, content: str) -> tuple[Violation, ...]:
        if not tool.result:
            return ()
        try:
            value = read_json(content)
        except ValueError:
            value = content  # A tool may return plain text, which is a JSON string to its schema.
        checker = self._checker(f"result:{tool.version}", tool.result)
        return () if checker.is_valid(value) else checker.violations(value)

    def _broke(self, state: RunState, report: reports.ToolBroke, kept: Kept) -> Arrival:
        return _failed(report.command_id, report.code, report.error, report.duration_ms)

    def _accounted(self, state: RunState, report: reports.ToolAccounted, kept: Kept) -> Arrival:
        content = clean(report.content)
        command_id = getattr(state.open.get(report.command_id), "about", "")
        happened = report.happened is arrivals.Happened.YES
        tool = state.tools[_tool_of(state, command_id)] if happened and command_id in state.open else None
        return arrivals.ToolReconciled(
            report.command_id,
            report.happened,
            stored(content, kept),
            sha256(content.encode()).digest(),
            size_bytes(content) + MESSAGE_TOKENS_OVERHEAD,
            () if tool is None else self._result_violations(tool, content),
        )

    def _child(self, state: RunState, report: reports.ChildSaid, kept: Kept) -> Arrival:
        text = clean(report.text) or f"The child run ended as {report.ending} and said nothing."
        bound = size_bytes(text) + MESSAGE_TOKENS_OVERHEAD
        return arrivals.ChildEnded(report.command_id, report.ending, stored(text, kept), report.spent, bound)

    def _context(self, state: RunState, report: reports.ContextSaid, kept: Kept) -> Arrival:
        text = clean(report.text)
        return arrivals.ContextFound(report.command_id, stored(text, kept), size_bytes(text) + MESSAGE_TOKENS_OVERHEAD)

    def _approved(self, state: RunState, report: reports.PersonApproved, kept: Kept) -> Arrival:
        modified = None
        if report.arguments is not None:
            question = state.open.get(report.command_id)
            if not isinstance(question, AskHuman) or question.packet is None:
                message = f"question {report.command_id!r} holds no call whose arguments could be changed"
                raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)
            held = question.packet.call
            modified = self._proposed(state, ToolCall(held.call_id, held.tool, report.arguments), kept)
        return arrivals.ApprovalGiven(report.command_id, clean(report.by), modified)

    def _said(self, state: RunState, report: reports.PersonSaid, kept: Kept) -> Arrival:
        text, by = clean(report.text), clean(report.by)
        bound = size_bytes(text) + MESSAGE_TOKENS_OVERHEAD
        if report.command_id:
            return arrivals.QuestionAnswered(report.command_id, by, stored(text, kept), bound)
        return arrivals.FeedbackGiven(by, stored(text, kept), bound)

    def _checker(self, key: str, schema: JsonObject) -> Checker:
        checker = self._checkers.get(key)
        if checker is None:
            checker = self._checkers[key] = compile_schema(schema)
        return checker


def clean(text: str) -> str:
    """The text as valid Unicode: half a surrogate pair becomes a question mark, so that every text can be written."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def size_bytes(text: str) -> int:
    """The length of a clean text in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode())


def stored(text: str, kept: Kept) -> Text:
    """The text itself, or a reference to it when it is too long to be written into a turn."""
    if len(text) <= _INLINE_CHARS:
        return text
    data = text.encode()
    if len(data) <= TEXT_INLINE_BYTES_MAX:
        return text
    digest = sha256(data).digest()
    kept.append((digest, data))
    return BlobRef(digest, len(data))


def _stored(message: Message, kept: Kept) -> Message:
    if isinstance(message.content, str) and len(message.content) > _INLINE_CHARS:
        return replace(message, content=stored(clean(message.content), kept))
    return message


def _size_of(text: Text) -> int:
    return size_bytes(text) if isinstance(text, str) else text.size_bytes


def _message_bound(message: Message) -> int:
    calls = sum(len(call.name) + len(canonical_json(call.arguments)) for call in message.tool_calls)
    return _size_of(message.content) + _size_of(message.reasoning) + calls + MESSAGE_TOKENS_OVERHEAD


def _offer_bound(tool: ToolDefinition) -> int:
    described = size_bytes(clean(tool.name)) + size_bytes(clean(tool.description))
    return described + len(canonical_json(tool.parameters)) + MESSAGE_TOKENS_OVERHEAD


def _tool_of(state: RunState, command_id: str) -> str:
    command = state.open.get(command_id)
    name = getattr(command, "tool", "")
    if name not in state.tools:
        raise IllegalArrival(ArrivalFault.DUPLICATE, f"tool call {command_id!r} of run {state.run_id} is not open")
    return name


def _failed(command_id: str, code: ErrorCode, error: str, duration_ms: int) -> arrivals.ToolFailed:
    text = clean(error)[:ERROR_CHARS_MAX]
    evidence = sha256(text.encode()).digest()
    return arrivals.ToolFailed(command_id, code, text, evidence, failure_bound(code, text), duration_ms)
