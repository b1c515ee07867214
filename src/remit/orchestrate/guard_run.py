"""One guarded run: the pipeline of a run of ours, over the calls of somebody else's agent.

Rule 1: checks, counting and folding are the kernel's own, over a RunState made from a real manifest, and the gate follows
        the run as it follows any other. Each operation that changes something is one turn.
Rule 2: a call is completed with its facts, the gate's findings among them, and then every check is asked in its order.
        A call that is refused leaves no trace in the gate.
Rule 3: a call is judged and counted with its handles replaced: what is judged is what will be made.
Rule 4: an approval covers the held bytes once and counts as the call being made. One that fails changes nothing. Whoever
        said no to them is not asked again.
Rule 5: where a result was lost, nobody knows what the model has read: no effect passes without a person any more.
Rule 6: time never goes back. A question that nobody answers in time is a no, or goes to whom the boundary names next.
Rule 7: a run that a condition has stopped makes no call any more.
"""

from dataclasses import dataclass, field
from typing import Any

from remit.core.arrivals import (
    ApprovalGiven,
    ApprovalRefused,
    Arrival,
    CodeReturned,
    ProposedCall,
    Provenance,
    RunStarted,
    TimerFired,
    ToolFailed,
    ToolReturned,
)
from remit.core.codec import NO_HASH
from remit.core.commands import AskHuman, SetTimer
from remit.core.contract import SystemRequest
from remit.core.events import KERNEL_VERSION, Decision, Turn
from remit.core.failure import ErrorCode, IllegalArrival, Refusal, RequestRejected
from remit.core.inference import ModelInfo
from remit.core.manifest import Manifest, make_manifest
from remit.core.messages import user_message
from remit.core.record import BlobRef, JsonObject, Text, replace
from remit.core.rulings import NodeEntered, ToolCallRefused
from remit.core.tools import ToolCall
from remit.kernel.apply import apply
from remit.kernel.authorize import CHECKS, authorize, has_valid_arguments, is_registered, needs_no_approval
from remit.kernel.calls import hold_call, order_call, refuse_call
from remit.kernel.conditions import check_conditions
from remit.kernel.exhaustion import check_exhaustion
from remit.kernel.intake import check_intake
from remit.kernel.rules.human import on_approved, on_refused
from remit.kernel.rules.started import STARTED
from remit.kernel.rules.timer import on_timer
from remit.kernel.rules.tool import on_returned, on_tool_failed
from remit.kernel.state import CallKey, RunState
from remit.kernel.tally import Tally
from remit.kernel.verdicts import ALLOWED, Judgement
from remit.orchestrate.facts import Facts
from remit.orchestrate.guard_boundary import GuardTerms
from remit.orchestrate.guard_fixes import CALL_ID_HELD, RUN_STOPPED
from remit.orchestrate.guard_operations import Asker
from remit.orchestrate.guard_tools import Toolset
from remit.orchestrate.guard_verdicts import allowed, asked, found_json, noted_json, refused
from remit.orchestrate.guard_waiting import Waiting
from remit.orchestrate.patterns.chat import chat_graph
from remit.orchestrate.reports import CodeProposed
from remit.orchestrate.texts import Kept
from remit.orchestrate.tracing import Read, Tracer, reader_of
from remit.provenance.calls import Scope
from remit.provenance.gate import start

CALL_NOT_HELD = "CALL_NOT_HELD"

# The node of the chat graph where calls are judged. The guard stands there from the first turn to the last.
_ACT = "act"
# Who proposes calls is unknown and never asked; a manifest names a model all the same.
_PROPOSER = ModelInfo("guarded")
# What a call must be before it can be another call of the same id.
_FIT = (is_registered, has_valid_arguments)
# No question expires so late.
_NEVER_MS = 2**63
_AT_HAND: Read = reader_of({})


@dataclass(slots=True)
class _Held:
    """A call that waits for a person: its question, the name by which the gate knows it, and how far each yes went."""

    question_id: str
    name: str
    call: ProposedCall
    shown: JsonObject
    scopes: list[Scope] = field(default_factory=list)


class GuardedRun:
    """The state of one guarded run."""

    def __init__(
        self,
        run_id: str,
        prompt: Any,
        tools: Toolset,
        terms: GuardTerms,
        *,
        facts: Facts,
        asker: Asker = Asker(),
        plan: dict[str, int] | None = None,
        at_ms: int = 0,
    ) -> None:
        """Open a run; raises RequestRejected for what no run could be made of, or what its boundary turns away."""
        self._gate = start(prompt, list(tools.declared), terms.authority, plan=plan)
        manifest = make_manifest(
            run_id=run_id,
            request=SystemRequest(
                tuple([user_message(said) for said in self._gate.evidence.prompts]),
                user_id=asker.user,
                tenant_id=asker.tenant,
            ),
            boundary=replace(terms.boundary, authority=terms.authority),
            graph=chat_graph(),
            models=(_PROPOSER,),
            tools=tools.definitions,
            role=asker.role,
        )
        _admit(manifest, at_ms)
        self._facts = facts
        self._state = RunState()
        self._tracer = Tracer(manifest, _AT_HAND, self._gate)
        self._held: dict[str, _Held] = {}
        self._waiting = Waiting()
        self._rejected: dict[CallKey, str] = {}
        self._count = 0
        self._at_ms, self._due_ms = at_ms, _NEVER_MS
        self._stopped = ""
        self._fold(RunStarted(manifest, 0), [NodeEntered(_ACT, STARTED)])

    @property
    def held_ids(self) -> tuple[str, ...]:
        """The calls that wait for a person."""
        return tuple(self._held)

    @property
    def open_count(self) -> int:
        """How many calls and questions have no outcome yet."""
        return len(self._state.open)

    def lose(self) -> None:
        """Note that a result never arrived."""
        self._tracer.is_lost = True

    def pass_time(self, at_ms: int) -> None:
        """Come to a moment, unless it is later already; what was not answered by then is passed on, or a no."""
        self._at_ms = max(self._at_ms, at_ms)
        if self._at_ms < self._due_ms:
            return
        for call_id, held in list(self._held.items()):
            if self._at_ms >= self._question(held).expires_at_ms:
                self._expire(call_id, held)
        self._due_ms = min([self._question(held).expires_at_ms for held in self._held.values()], default=_NEVER_MS)

    def judge(self, call_id: str | None, tool: str, arguments: Any) -> JsonObject:
        """The verdict on one proposed call, as the protocol shows it."""
        call_id = call_id or self._next_id()
        if self._stopped:
            shown = {**found_json(None, self._gate), **refused(RUN_STOPPED, [self._stopped]), "stop": True}
            return {"id": call_id, **shown}
        if (held := self._held.get(call_id)) is not None:
            return {"id": call_id, **self._judge_again(held, tool, arguments)}
        self._tracer.verdict = None
        kept: Kept = []
        arrival = self._complete(ToolCall(call_id, tool, arguments), kept, self._tracer)
        (call,) = arrival.calls
        if (by := self._rejected.get(_key(call))) is not None:
            call = replace(call, provenance=Provenance.REFUSED, reasons=(f"{by} said no to exactly this call",))
            arrival = replace(arrival, calls=(call,))
        tally = Tally(self._state, self._at_ms)
        shown = {**found_json(self._tracer.verdict, self._gate), **self._ruled(tally, call)}
        self._fold(arrival, tally.decisions, reader_of(dict(kept)) if kept else _AT_HAND)
        if shown["decision"] == Judgement.ASK:
            self._keep(call, shown, tally)
        return {"id": call_id, **shown}

    def observe(self, call_id: str | None, tool: str, content: str, evidence: bytes, *, is_error: bool = False) -> None:
        """Take in a result: the gate indexes it, and the calls it answers are settled."""
        text: Text = BlobRef(evidence, len(content)) if content else ""
        answered = self._waiting.answered(call_id, tool)
        for command in answered:
            self._waiting.drop(command)
            tally = Tally(self._state, self._at_ms, command.id)
            arrival: ToolReturned | ToolFailed
            if is_error:
                arrival = ToolFailed(command.id, ErrorCode.TOOL_EXECUTION_FAILED, text, evidence)  # type: ignore[arg-type]
                on_tool_failed(tally, arrival)
            else:
                arrival = ToolReturned(command.id, text, evidence)
                on_returned(tally, arrival)
            read = (lambda said: content if said else "") if len(answered) == 1 else None
            self._fold(arrival, tally.decisions, read)
        if len(answered) != 1:
            # Of several calls that could be meant the gate takes one, and trusts none of its choices.
            self._gate.observe(None if answered and not is_error else "", tool, content)

    def approve(self, call_id: str, by: str, scope: Scope) -> int:
        """Count a yes to a held call; how many more it takes until the call may be made. Raises when it does not count."""
        held = self._held_call(call_id)
        if self._stopped:
            message = f"run {self._state.run_id!r} was stopped: {self._stopped}; end it"
            raise RequestRejected(RUN_STOPPED, message, {"stop": True})
        arrival = ApprovalGiven(held.question_id, by)
        tally = Tally(self._state, self._at_ms, held.question_id)
        try:
            on_approved(tally, arrival)
        except IllegalArrival as error:
            raise RequestRejected(error.code, f"call {call_id!r}: {error.message}") from error
        self._check_made(call_id, tally)
        held.scopes.append(scope)
        packet = self._question(held).packet
        assert packet is not None, "what is held is a call"
        left = packet.approvals_needed - len(held.scopes)
        if not left:
            self._release(call_id, held)
        self._fold(arrival, tally.decisions)
        return left

    def reject(self, call_id: str, by: str) -> None:
        """Turn a held call away, now and whenever it is proposed again."""
        held = self._held_call(call_id)
        arrival = ApprovalRefused(held.question_id, by)
        tally = Tally(self._state, self._at_ms, held.question_id)
        on_refused(tally, arrival)
        self._fold(arrival, tally.decisions)
        self._rejected[_key(held.call)] = by
        del self._held[call_id]

    def _complete(self, proposed: ToolCall, kept: Kept, tracer: Tracer | None) -> CodeReturned:
        arrival = self._facts.complete(self._state, CodeProposed("", proposed), kept, tracer)
        assert isinstance(arrival, CodeReturned), "facts make this of a proposed call"
        return arrival

    def _ruled(self, tally: Tally, call: ProposedCall) -> JsonObject:
        """Order, hold or refuse one call, and say why."""
        # A read on this machine is never traced, so the check that hears a person's no is not among its own.
        verdict = authorize(call, tally, CHECKS if call.provenance is Provenance.REFUSED else None)
        if verdict is ALLOWED:
            order_call(tally, call)
            said = allowed()
        elif verdict.judgement is Judgement.ASK:
            said = self._ask(tally, call, verdict)
        else:
            is_turned_away = call.provenance is Provenance.REFUSED and verdict.code == Refusal.APPROVAL_REJECTED
            refuse_call(tally, call, verdict.code, verdict.reason)
            said = refused(verdict.code, call.reasons[:1] if is_turned_away and call.reasons else [verdict.reason])
            if verdict.code == Refusal.UNSAFE:
                self._stopped = verdict.reason
                said["stop"] = True
        if noted := noted_json(tally.decisions):
            said["noted"] = noted
            said["reasons"] += [one["reason"] for one in noted]
        return said

    def _ask(self, tally: Tally, call: ProposedCall, verdict: Any) -> JsonObject:
        """Ask a person; where nobody may be asked any more, the call is refused, and held at the gate for good."""
        said = asked(call, verdict, needs_no_approval(call, tally), self._tracer.verdict)
        if code := hold_call(tally, call):
            reason = "nobody may be asked any more: human_reviews is spent"
            return refused(code, [*said["reasons"], reason])
        question = next(decision for decision in tally.decisions if isinstance(decision, AskHuman))
        if question.packet is not None and question.packet.approvals_needed > 1:
            said["approvals_needed"] = question.packet.approvals_needed
        return said

    def _judge_again(self, held: _Held, tool: str, arguments: Any) -> JsonObject:
        """What is said of a call whose id names a held one: that it is still held, or that the id is taken."""
        proposed = ToolCall(held.call.call_id, tool, self._tracer.resolved(arguments))
        arrival = self._complete(proposed, [], None)
        (call,) = arrival.calls
        if _key(held.call) == _key(call):
            return held.shown
        tally = Tally(self._state, self._at_ms)
        verdict = authorize(call, tally, _FIT)
        code, reason = verdict.code, verdict.reason
        if verdict is ALLOWED:
            code, reason = CALL_ID_HELD, f"id {call.call_id!r} names another call that is held"
        refuse_call(tally, call, code, reason)
        self._fold(arrival, tally.decisions)
        return {**found_json(None, self._gate), **refused(code, [reason])}

    def _keep(self, call: ProposedCall, shown: JsonObject, tally: Tally) -> None:
        question = next(decision for decision in tally.decisions if isinstance(decision, AskHuman))
        finding = self._tracer.verdict
        assert finding is not None, "nobody is asked about a call that the gate was not shown"
        self._held[call.call_id] = _Held(question.id, finding.call_id, call, shown)
        self._due_ms = min(self._due_ms, question.expires_at_ms)

    def _check_made(self, call_id: str, tally: Tally) -> None:
        """Turn an approval away whose call may not be made any more; a condition that stops has stopped the run."""
        refusals = [decision for decision in tally.decisions if isinstance(decision, ToolCallRefused)]
        for refusal in refusals:
            if refusal.code == Refusal.UNSAFE:
                self._stopped = refusal.reason
            message = f"call {call_id!r} can no longer be made: {refusal.reason}; answer it with approve=false"
            raise RequestRejected(refusal.code, message, {"stop": True} if self._stopped else None)

    def _release(self, call_id: str, held: _Held) -> None:
        """Forget that a call is held, now that it may be made; its values pass from now on if everybody said so."""
        waiting = self._gate.ledger.held(held.name)
        if waiting is not None and all(scope is Scope.VALUE for scope in held.scopes):
            self._gate.evidence.approved |= {(waiting.tool, kind, value) for kind, value in waiting.unbound}
        self._rejected.pop(_key(held.call), None)
        del self._held[call_id]

    def _expire(self, call_id: str, held: _Held) -> None:
        """Take silence for a no, or ask the next one."""
        timers = (one for one in self._state.open.values() if isinstance(one, SetTimer))
        timer = next(one for one in timers if one.about == held.question_id)
        tally = Tally(self._state, self._at_ms, timer.id)
        on_timer(tally, TimerFired(timer.id))
        self._fold(TimerFired(timer.id), tally.decisions)
        passed_on = [decision for decision in tally.decisions if isinstance(decision, AskHuman)]
        if passed_on:
            held.question_id, held.scopes = passed_on[0].id, []
        else:
            del self._held[call_id]

    def _held_call(self, call_id: str) -> _Held:
        held = self._held.get(call_id)
        if held is None:
            known = ", ".join(list(self._held)[:5]) or "none"
            raise RequestRejected(CALL_NOT_HELD, f"call {call_id!r} is not held; answer one of {known}")
        return held

    def _question(self, held: _Held) -> AskHuman:
        question = self._state.open[held.question_id]
        assert isinstance(question, AskHuman)
        return question

    def _next_id(self) -> str:
        """A name for a call that has none, and that no call has which waits for something."""
        while True:
            self._count += 1
            name = f"call-{self._count}"
            if name not in self._waiting and name not in self._held:
                return name

    def _fold(self, arrival: Arrival, decisions: list[Decision], read: Read | None = _AT_HAND) -> None:
        """Make a turn of it and have the gate follow, unless there is nothing for it to read."""
        state = self._state
        turn = Turn(state.seq + 1, self._at_ms, NO_HASH, KERNEL_VERSION, arrival, tuple(decisions))
        apply(state, turn, NO_HASH)
        self._waiting.add(decisions)
        if read is not None:
            self._tracer.follow(turn, read)


def _admit(manifest: Manifest, at_ms: int) -> None:
    """Refuse a boundary that nobody could judge by, and a request that it turns away."""
    if manifest.boundary.conditions:
        check_conditions(manifest.boundary)
    if manifest.boundary.exhaustion:
        check_exhaustion(manifest.boundary)
    check_intake(manifest, at_ms)


def _key(call: ProposedCall) -> CallKey:
    return call.tool, call.arguments_hash
