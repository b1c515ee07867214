"""Facts: complete a report with what the kernel needs and may not compute.

Rule 1: facts are a pure function of the report and the manifest, so an audit can compute them again.
Rule 2: what cannot be computed is recorded as a violation, never left out.
Rule 3: a long text goes to Blobs before its turn is written; the arrival carries the digest.
Rule 4: a result too long to be shown is kept whole, and the run goes on with its beginning.
Rule 5: the bound on the tokens of a text is its length in bytes and a fixed overhead.
Rule 6: whatever a model, a tool or a person says, the arrival made of it can be written and read back.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from remit.core.failure import ArrivalFault, ErrorCode, IllegalArrival, RequestRejected
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.commands import AskHuman, CallCode, CallTool, Command, ReconcileTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.argument_paths import root_of
from remit.core.limits.tools import ToolCall
from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, JsonObject, Text, replace, size_bytes
from remit.core.run.manifest import Manifest
from remit.core.schema.json_schema import Violation
from remit.core.work.orders import CONFIRM, LIST, LOOK_UP, MADE, orders_json, orders_of
from remit.kernel.authority.call_flags import people_in
from remit.kernel.authority.outside_paths import is_path
from remit.kernel.results.notices import MESSAGE_TOKENS_OVERHEAD, happened_as_told
from remit.kernel.state import RunState, pinned
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report, report_of_broken
from remit.orchestrate.facts.answer_evidence import Read, compared_by, inline, unsupported_in
from remit.orchestrate.facts.excerpts import (
    abridged,
    carries_secret,
    critical_facts,
    flags_in,
    is_looked_into,
    ungrounded_in,
)
from remit.orchestrate.facts.plain_facts import (
    PROBLEMS_MAX,
    child_ended,
    code_returned,
    context_found,
    model_failed,
    person_spoke,
    text_shown,
    tool_failed,
)
from remit.orchestrate.facts.schema_checks import Checks, Mended
from remit.orchestrate.facts.texts import (
    NOTE_CHARS_MAX,
    RESULT_SHOWN_BYTES_MAX,
    Kept,
    clean,
    cut_figure,
    cut_usage,
    encoded_text,
    name,
    note,
    person,
    shortened_result,
    shown_result,
    stored,
    stored_bytes,
    text_reader,
)

if TYPE_CHECKING:
    from remit.orchestrate.facts.gate_trace import Tracer

# More calls in one answer than a model could have meant; each of them costs a judgement and a message.
CALLS_MAX = 128

# How the canonical form of an object begins.
_OBJECT = ord("{")

# A command that is not open is never settled, so this arrival is refused; should it be judged all the same, it proves nothing.
_NOT_OPEN = (Violation("", "command", "the command that this answers was not open"),)

# Arrivals that executors and people report as they stand: which of their fields hold names, and which notes.
SPOKEN: Mapping[type[Arrival], tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        arrivals.CodeFailed: ((), ("error",)),
        arrivals.ContextFailed: ((), ("error",)),
        arrivals.ApprovalRefused: (("by",), ("reason",)),
        arrivals.OutcomeJudged: (("by",), ()),
        arrivals.CancelRequested: (("by",), ("reason",)),
        arrivals.PauseRequested: (("by",), ()),
        arrivals.ResumeRequested: (("by",), ()),
        arrivals.RetryRequested: (("by", "key"), ("reason",)),
        arrivals.RunForked: (("by",), ()),
        arrivals.SessionNoted: (("by", "key"), ()),
        arrivals.SourcesAccepted: (("by",), ()),
        arrivals.RunHalted: (("by", "what"), ("why",)),
        arrivals.RunTaken: ((), ()),
        arrivals.HostFinished: ((), ()),
    }
)


class Facts:
    """Completes reports. Owns the compiled schemas of the tools it has seen."""

    def __init__(self) -> None:
        self._checks = Checks()
        # The gate that follows the run whose report is being completed, where that is traced.
        self._tracer: Tracer | None = None
        self._read: Read = inline
        self._complete: dict[type[Any], Callable[[RunState, Any, Kept], Arrival]] = {
            **dict.fromkeys(SPOKEN, _spoken),
            arrivals.ModelFailed: model_failed,
            arrivals.CodeReturned: self._code_returned,
            arrivals.TextShown: text_shown,
            reports.ModelSaid: self._answered,
            reports.ToolSaid: self._returned,
            reports.ToolBroke: tool_failed,
            reports.ToolAccounted: self._accounted,
            reports.ChildSaid: child_ended,
            reports.CodeProposed: self._code_proposed,
            reports.FilterSaid: self._filtered,
            reports.ContextSaid: context_found,
            reports.PersonApproved: self._approved,
            reports.PersonSaid: person_spoke,
            reports.HostProposed: self._host_proposed,
        }

    def complete(
        self, state: RunState, report: Report, kept: Kept, tracer: "Tracer | None" = None, read: Read = inline
    ) -> Arrival:
        """The arrival in a report; texts too long to be written into a turn are added to `kept`.

        The tracer of a traced run has followed it up to its latest turn; it judges the calls that the report brings. What
        an answer is compared with is read where it lives.

        An arrival that carries facts of its own is taken as it stands: only an executor or a test makes one.
        """
        complete = self._complete.get(type(report))
        if complete is None:
            return report  # type: ignore[return-value]  # the table holds every report that is no arrival
        if state.manifest is None:
            raise IllegalArrival(ArrivalFault.NOT_STARTED, f"{type(report).__name__} for a run that has no turn yet")
        self._tracer, self._read = tracer, read
        try:
            return complete(state, report, kept)
        except (TypeError, AttributeError, ValueError) as error:
            return self._unreadable(state, report, error)

    def _unreadable(self, state: RunState, report: Report, error: Exception) -> Arrival:
        """A report whose fields do not have their types says no more than that its executor broke."""
        command = state.commands.open.get(getattr(report, "command_id", ""))
        why = f"its executor reported a {type(report).__name__} that cannot be read ({type(error).__name__})"
        if command is None:
            raise IllegalArrival(ArrivalFault.UNKNOWN_COMMAND, why) from error
        instead = report_of_broken(command, why)
        complete = self._complete.get(type(instead))
        return instead if complete is None else complete(state, instead, [])  # type: ignore[return-value]

    def _answered(self, state: RunState, report: reports.ModelSaid, kept: Kept) -> Arrival:
        result, usage = report.result, cut_usage(report.result.usage)
        proposed = result.tool_calls
        if len(proposed) > CALLS_MAX:
            message = f"the model proposed {len(proposed)} calls in one answer, calls_max={CALLS_MAX}"
            return arrivals.ModelFailed(report.command_id, ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, usage)
        bound = MESSAGE_TOKENS_OVERHEAD
        text: Text = ""
        reasoning: Text = ""
        raw: Text = ""
        violations: tuple[Violation, ...] = ()
        repairs: tuple[str, ...] = ()
        # An answer with calls mostly has no words, and then there is nothing to mend.
        if result.content or result.reasoning:
            said, thought = clean(result.content or ""), clean(result.reasoning or "")
            fitting, violations, repairs = self._mended(state, said, report)
            bound += max(size_bytes(said), size_bytes(fitting)) + size_bytes(thought)
            text, reasoning = stored(fitting, kept), stored(thought, kept)
            if repairs:
                raw, repairs = stored(said, kept), tuple([note(repair) for repair in repairs])
        calls: tuple[ProposedCall, ...] = ()
        for call in proposed:
            completed, call_bound = self._proposed(state, call, kept, len(calls))
            calls += (completed,)
            bound += call_bound
        model = result.model
        return arrivals.ModelAnswered(
            command_id=report.command_id,
            text=text,
            reasoning=reasoning,
            calls=calls if self._tracer is None else self._traced(state, calls, kept),
            usage=usage,
            tokens_bound=bound,
            violations=violations,
            offered=report.offered,
            repairs=repairs,
            raw=raw,
            model="" if not model or model == state.manifest.models[0].name else name(model),  # type: ignore[union-attr]
            unsupported=self._unsupported(state, report) if text else (),
            ungrounded=() if calls or not text else ungrounded_in(state, clean(result.content or ""), self._tracer),
            exposed=report.exposed,
        )

    def _unsupported(self, state: RunState, report: reports.ModelSaid) -> tuple[str, ...]:
        """Values of the answer that nothing which was observed says, where its task asks for facts."""
        task = compared_by(state, report)
        if task is None:
            return ()
        return unsupported_in(state, task, clean(report.result.content or ""), self._read)

    def _mended(self, state: RunState, said: str, report: reports.ModelSaid) -> Mended:
        """What the model said, held to its shape: beside calls as it stands, and an answer with what could be mended."""
        if not said:
            return Mended("")
        if not report.violations:
            return self._beside_calls(state, said) if report.result.tool_calls else self._held_to_shape(state, said)
        # What its reader found wrong stands as it is, too, and before what the schema finds: it says why.
        found = [replace(each, message=note(each.message)) for each in report.violations[:PROBLEMS_MAX]]
        return Mended(said, (*found, *self._beside_calls(state, said).violations))

    def _proposed(self, state: RunState, call: ToolCall, kept: Kept, place: int = 0) -> tuple[ProposedCall, int]:
        """A call with its facts, and the bound on the tokens of its words."""
        tool, tracer, arguments = state.derived.tools.get(call.name), self._tracer, call.arguments
        tool_name = name(call.name) if tool is None else tool.name
        # A call without an id could not be told from no call at all.
        call_id = name(call.id) or f"call-{place}"
        # The result of the call, whatever it will be, repeats its name and its id.
        bound = 2 * len((tool_name + call_id).encode()) + MESSAGE_TOKENS_OVERHEAD
        try:
            said = canonical = canonical_json(arguments)
            if tracer is not None and (arguments := tracer.resolved(call.arguments, said)) is not call.arguments:
                canonical = canonical_json(arguments)
        except NotCanonical as error:
            return _unfit(call_id, tool_name, "canonical", str(error)), bound
        if canonical[0] != _OBJECT:
            return _unfit(call_id, tool_name, "type", "the arguments are no JSON object"), bound
        digest = sha256(canonical).digest()
        violations = () if tool is None else self._checks.violations_in_arguments(tool.parameters, arguments)
        if len(canonical) <= TEXT_INLINE_BYTES_MAX:
            proposed = ProposedCall(call_id, tool_name, canonical.decode(), digest, violations)
        else:
            text, short = stored_bytes(canonical, digest, kept), ""
            if tool is not None and is_looked_into(state, tool):
                boundary = pinned(state).boundary
                control = [root_of(path) for path, _ in tool.control_args]
                control += [one for one, value in arguments.items() if people_in({one: value}, tool, boundary)]
                control += [one for one in arguments if is_path(one, tool)]
                short = abridged(arguments, boundary.conditions, control)
            proposed = ProposedCall(call_id, tool_name, text, digest, violations, abridged=short)
        boundary = pinned(state).boundary
        if tool is not None and boundary.conditions and carries_secret(boundary, canonical.decode()):
            proposed = replace(proposed, carries_secret=True)
        if arguments is not call.arguments:
            proposed = replace(proposed, said=stored_bytes(said, sha256(said).digest(), kept))
        return proposed, bound + len(canonical)

    def _traced(
        self, state: RunState, calls: tuple[ProposedCall, ...], kept: Kept, *, filters_left: int | None = None
    ) -> tuple[ProposedCall, ...]:
        """Calls with what the gate of provenance finds about them, once every filter has looked at them.

        It comes last, when nothing can go wrong any more: the gate counts what it has judged.
        """
        tracer = self._tracer
        if tracer is None or (len(pinned(state).filters) if filters_left is None else filters_left):
            return calls
        read, seq = text_reader(dict(kept)), state.seq + 1
        return tuple([tracer.traced(call, read, seq=seq, place=place) for place, call in enumerate(calls)])

    def _code_proposed(self, state: RunState, report: reports.CodeProposed, kept: Kept) -> Arrival:
        calls: tuple[ProposedCall, ...] = ()
        bound, proposed = MESSAGE_TOKENS_OVERHEAD, report.calls
        command = state.commands.open.get(report.command_id)
        is_shown = isinstance(command, CallCode) and command.name == LOOK_UP
        if self._tracer is not None and is_shown and not report.orders:
            # Orders that were confirmed before their look-ups may have been changed by who confirmed them.
            proposed = self._tracer.order_reads
        for call in proposed:
            completed, call_bound = self._proposed(state, call, kept, len(calls))
            calls, bound = (*calls, completed), bound + call_bound
        return arrivals.CodeReturned(
            report.command_id,
            value=stored(report.orders, kept) if report.orders else "",
            kind=MADE if report.orders else "",
            calls=self._traced(state, calls, kept),
            tokens_bound=bound if is_shown and proposed else 0,
        )

    def _code_returned(self, state: RunState, arrival: arrivals.CodeReturned, kept: Kept) -> Arrival:
        """What code of the user returned; the list of orders is told by the gate, which knows what was looked up."""
        command = state.commands.open.get(arrival.command_id)
        if self._tracer is not None and isinstance(command, CallCode) and command.name == LIST:
            arrival = replace(arrival, value=self._tracer.listed_orders)
        return code_returned(state, arrival, kept)

    def _host_proposed(self, state: RunState, report: reports.HostProposed, kept: Kept) -> Arrival:
        """A call of an agent elsewhere: one that a person has approved is taken up, any other is for the gate to judge."""
        call, _ = self._proposed(state, report.call, kept)
        waiting = [state.commands.open[command_id] for command_id in state.commands.withheld]
        approved = [one for one in waiting if isinstance(one, CallTool) and one.tool == call.tool]
        exactly = [one.id for one in approved if one.arguments_hash == call.arguments_hash]
        for taken in (*exactly, *[one.id for one in approved if one.instead_of == call.arguments_hash]):
            return arrivals.CallProposed(call, taken)
        return arrivals.CallProposed(self._traced(state, (call,), kept)[0])

    def _filtered(self, state: RunState, report: reports.FilterSaid, kept: Kept) -> Arrival:
        """What a filter made of the proposed calls: it may change and turn away, and neither add nor rename."""
        # By their place: models give several calls one id.
        sifted = (*report.calls, *(None for _ in state.calls.proposed))
        calls: tuple[ProposedCall, ...] = ()
        for before, each in zip(state.calls.proposed, sifted, strict=False):
            call = before
            if each is None or each.call.id != before.call_id:
                call = replace(before, filtered=before.filtered or "a filter left it out")
            elif before.arguments and not before.filtered:  # What could not be written was shown to no filter.
                changed = ToolCall(before.call_id, before.tool, each.call.arguments)
                call, _ = self._proposed(state, changed, kept, len(calls))
                call = replace(call, filtered=note(each.reason)) if each.reason else call
            calls += (call,)
        filters_left = len(pinned(state).filters) - state.calls.filtered - 1
        calls = self._traced(state, calls, kept, filters_left=filters_left)
        return arrivals.CodeReturned(report.command_id, calls=calls, is_filtered=True)

    def _held_to_shape(self, state: RunState, said: str) -> Mended:
        """What the node asked for comes first; where it asked for nothing of its own, the request's contract holds."""
        schema = _schema_here(state)
        if schema is not None and pinned(state).request.output.repair_allowed:
            return self._checks.mended(schema, said)
        return self._beside_calls(state, said)

    def _beside_calls(self, state: RunState, said: str) -> Mended:
        """Words as they stand: beside calls nothing is mended, but should the calls come to nothing, they are an answer."""
        schema = _schema_here(state)
        return Mended(said) if schema is None else Mended(said, self._checks.violations_in_json(schema, said))

    def _output_violations(self, manifest: Manifest, content: str) -> tuple[Violation, ...]:
        schema = manifest.request.output.schema
        return () if schema is None or not content else self._checks.violations_in_json(schema, content)

    def _returned(self, state: RunState, report: reports.ToolSaid, kept: Kept) -> Arrival:
        result, command_id = report.result, report.command_id
        if result.error != "":
            # A tool that reports an error in a result was called, and does not say that nothing happened.
            broke = (command_id, ErrorCode.TOOL_EXECUTION_FAILED, result.error, report.duration_ms)
            return tool_failed(state, reports.ToolBroke(*broke, is_unknown=True), kept)
        if not isinstance(result.content, str):
            # A digest from outside could name a text of another run.
            raise TypeError("a tool returns a text")
        content, is_stopping = encoded_text(result.content), result.stop_loop is True
        evidence, size = sha256(content).digest(), len(content)
        shown: Text
        whole: BlobRef | None = None
        if size <= TEXT_INLINE_BYTES_MAX:
            shown = content.decode()
        elif size <= RESULT_SHOWN_BYTES_MAX or is_stopping:
            shown = stored_bytes(content, evidence, kept)
        else:
            shown, whole, size = shortened_result(content, evidence, kept)
        command, goal = state.commands.open.get(command_id), state.manifest.goal  # type: ignore[union-attr]  # it has begun
        return arrivals.ToolReturned(
            command_id=command_id,
            content=shown,
            evidence=evidence,
            tokens_bound=size + MESSAGE_TOKENS_OVERHEAD,
            violations=self._result_violations(state, command_id, content),
            refuted=note(report.refuted) if report.refuted else "",
            stop_loop=is_stopping,
            duration_ms=cut_figure(report.duration_ms),
            answer_violations=self._output_violations(pinned(state), content.decode()) if is_stopping else (),
            whole=whole,
            critical=() if goal is None else critical_facts(goal, content),
            flags=self._flags(state, command, result.content) if state.derived.flagging else (),
            is_shared=report.is_shared,
        )

    def _flags(self, state: RunState, command: Command | None, content: str) -> tuple[str, ...]:
        if type(command) is not CallTool or command.tool not in state.derived.flagging:
            return ()
        return flags_in(pinned(state), state.derived.tools[command.tool], content)

    def _result_violations(self, state: RunState, command_id: str, content: bytes) -> tuple[Violation, ...]:
        """What is wrong with the result of a call, which may have been settled by now."""
        command, made = state.commands.open.get(command_id), state.calls.made.get(command_id)
        tool = command.tool if type(command) is CallTool else made.tool if made is not None else ""
        if not tool:
            return _NOT_OPEN
        # A call made elsewhere and unallowed may be of a tool that was never declared.
        schema = state.derived.tools[tool].result if tool in state.derived.tools else None
        return self._checks.violations_in_result(schema, content.decode()) if schema else ()

    def _accounted(self, state: RunState, report: reports.ToolAccounted, kept: Kept) -> Arrival:
        content = encoded_text(report.content)
        inquiry = state.commands.open.get(report.command_id)
        about = inquiry.about if isinstance(inquiry, ReconcileTool) else ""
        happened = arrivals.Happened(report.happened)
        if happened is arrivals.Happened.YES and (not content or self._result_violations(state, about, content)):
            content = encoded_text(happened_as_told(report.content))
        evidence = sha256(content).digest()
        shown, whole, size = shown_result(content, evidence, kept)
        bound = size + MESSAGE_TOKENS_OVERHEAD
        return arrivals.ToolReconciled(
            report.command_id, happened, shown, evidence, bound, whole=whole, why=note(report.why)
        )

    def _approved(self, state: RunState, report: reports.PersonApproved, kept: Kept) -> Arrival:
        by, question, modified = person(report.by), state.commands.open.get(report.command_id), None
        orders: Text = ""
        if report.arguments is not None and isinstance(question, AskHuman) and question.question == CONFIRM:
            orders = stored(self._edited(report.arguments), kept)
        elif report.arguments is not None and isinstance(question, AskHuman):
            if question.packet is None:
                message = f"question {report.command_id!r} holds no call whose arguments could be changed"
                raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)
            held = question.packet.call
            modified, _ = self._proposed(state, ToolCall(held.call_id, held.tool, report.arguments), kept)
        elif report.arguments is not None:
            modified = ProposedCall("", "", "", b"", _NOT_OPEN)
        return arrivals.ApprovalGiven(
            command_id=report.command_id,
            by=by,
            modified=modified,
            packet=name(report.packet),
            reason=note(report.reason),
            for_values=report.for_values,
            is_awaited=report.is_awaited,
            orders=orders,
            grant=note(report.grant),
        )

    def _edited(self, said: JsonObject) -> str:
        """The orders as a person wants them; refused where the tools could not carry them out, or nothing was looked up."""
        assert self._tracer is not None, "only a run that is traced asks for a confirmation"
        try:
            return canonical_json(orders_json(self._tracer.with_orders(orders_of(said.get("orders"))).orders)).decode()
        except RequestRejected as error:
            raise IllegalArrival(ArrivalFault.WRONG_PACKET, error.message) from None


def _schema_here(state: RunState) -> JsonObject | None:
    graph = state.derived.graph
    ask = None if graph is None else graph.nodes[state.place.node].ask
    if graph is None or ask is None:
        return pinned(state).request.output.schema
    schema = graph.schemas.get(state.place.node)
    return schema if ask.words else schema or pinned(state).request.output.schema


def _spoken(state: RunState, arrival: Arrival, kept: Kept) -> Arrival:
    """An arrival with its names and notes made fit; most are, and stay as they are."""
    names, notes = SPOKEN[type(arrival)]
    fit = {field: name(getattr(arrival, field)) for field in names}
    fit |= {field: note(getattr(arrival, field)) for field in notes}
    return arrival if all(getattr(arrival, field) == text for field, text in fit.items()) else replace(arrival, **fit)


def _unfit(call_id: str, tool: str, keyword: str, message: str) -> ProposedCall:
    """A call whose arguments cannot be written down, and which can therefore never be made."""
    violation = Violation("", keyword, message[:NOTE_CHARS_MAX])
    return ProposedCall(call_id, tool, "", sha256(tool.encode()).digest(), (violation,))
