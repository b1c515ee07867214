"""One guarded run: the pipeline of a run of ours, over the calls of somebody else's agent.

Rule 1: checks, counting and folding are the kernel's own, and the gate follows the run as it follows any other.
Rule 2: a call is completed with its facts, the gate's findings among them, and then every check is asked in its order.
        A call that is refused leaves no trace in the gate.
Rule 3: a call is judged and counted with its handles replaced: what is judged is what will be made.
Rule 4: an approval covers the held bytes once and counts as the call being made. One that fails changes nothing. Whoever
        said no to them is not asked again.
Rule 5: where a result was lost, nobody knows what the model has read: no effect passes without a person any more.
Rule 6: a question that nobody answers in time is a no, or goes to whom the boundary names next.
Rule 7: a run that a condition has stopped makes no call any more.
"""

from typing import Any

from remit.core.arrivals import (
    ApprovalGiven,
    ApprovalRefused,
    CodeReturned,
    ProposedCall,
    Provenance,
    TimerFired,
    ToolFailed,
    ToolReturned,
)
from remit.core.commands import AskHuman, CallTool, SetTimer
from remit.core.failure import Ending, ErrorCode, IllegalArrival, Refusal, RequestRejected
from remit.core.record import BlobRef, JsonObject, replace
from remit.core.rulings import ToolCallRefused
from remit.core.tools import ToolCall
from remit.kernel.authorize import CHECKS, authorize, has_valid_arguments, is_registered, needs_no_approval
from remit.kernel.calls import hold_call, order_call, refuse_call
from remit.kernel.rules.human import on_approved, on_refused
from remit.kernel.rules.timer import on_timer
from remit.kernel.rules.tool import on_returned, settle_failed
from remit.kernel.state import CallKey, pinned
from remit.kernel.tally import Tally
from remit.kernel.verdicts import ALLOWED, Judgement, Verdict, ask
from remit.orchestrate.excerpts import flags_in, secret_flag
from remit.orchestrate.facts import Facts
from remit.orchestrate.guard_boundary import GuardTerms
from remit.orchestrate.guard_fixes import CALL_ID_HELD, RUN_STOPPED
from remit.orchestrate.guard_held import Held, HeldCalls
from remit.orchestrate.guard_operations import Asker
from remit.orchestrate.guard_tools import Toolset
from remit.orchestrate.guard_turns import AT_HAND, Turns, manifest_of
from remit.orchestrate.guard_verdicts import allowed, asked, found_json, noted_json, refused
from remit.orchestrate.reports import CodeProposed, PersonApproved
from remit.orchestrate.texts import Kept, note
from remit.orchestrate.tracing import Tracer, reader_of
from remit.provenance.calls import Scope
from remit.provenance.gate import start

# What a call must be before it can be another call of the same id.
_FIT = (is_registered, has_valid_arguments)


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
        asker: Asker,
        at_ms: int,
        plan: dict[str, int] | None = None,
        read: tuple[str, ...] = (),
    ) -> None:
        """Open a run; raises RequestRejected for what no run could be made of, or what its boundary turns away."""
        self._gate = start(
            prompt,
            list(tools.declared),
            terms.authority,
            plan=plan,
            read=read,
            trusted_hosts=terms.boundary.trusted_hosts,
        )
        self._turns = Turns(manifest_of(run_id, self._gate, tools, terms, asker), self._gate, at_ms)
        self._tracer = self._turns.tracer
        self._facts = facts
        self._rejected: dict[CallKey, str] = {}
        self._count = 0
        self._stopped = ""
        self.held = HeldCalls()

    @property
    def open_count(self) -> int:
        """How many calls and questions have no outcome yet."""
        return len(self._turns.state.open)

    def lose(self) -> None:
        """Note that a result never arrived."""
        self._tracer.is_lost = True

    def pass_time(self, at_ms: int) -> None:
        """Come to a moment, unless it is later already; what nobody answered by then is passed on, or a no."""
        for call_id in self.held.due(self._turns.pass_time(at_ms)):
            self._expire(call_id, self.held.of(call_id))

    def judge(self, call_id: str | None, tool: str, arguments: Any) -> JsonObject:
        """The verdict on one proposed call, as the protocol shows it."""
        call_id = call_id or self._next_id()
        if self._stopped:
            shown = {**found_json(None, self._gate), **refused(RUN_STOPPED, [self._stopped]), "stop": True}
            return {"id": call_id, **shown}
        if (held := self.held.get(call_id)) is not None:
            return {"id": call_id, **self._judge_again(held, tool, arguments)}
        self._tracer.verdict = None
        kept: Kept = []
        arrival = self._completed(ToolCall(call_id, tool, arguments), kept, self._tracer)
        (call,) = arrival.calls
        if (by := self._rejected.get(_key(call))) is not None:
            call = replace(call, provenance=Provenance.REFUSED, reasons=(f"{by} said no to exactly this call",))
            arrival = replace(arrival, calls=(call,))
        tally = self._turns.tally()
        shown = {**found_json(self._tracer.verdict, self._gate), **self._ruled(tally, call)}
        self._turns.fold(arrival, tally.decisions, reader_of(dict(kept)) if kept else AT_HAND)
        if shown["decision"] == Judgement.ASK:
            self._keep(call_id, shown, tally)
        return {"id": call_id, **shown}

    def observe(self, call_id: str | None, tool: str, content: str, evidence: bytes) -> None:
        """Take in a result: the gate indexes it, and the calls it answers are settled."""
        answered = self._turns.waiting.answered(call_id, tool)
        for command in answered:
            flags = flags_in(pinned(self._turns.state), self._turns.state.tools[command.tool], content)
            arrival = ToolReturned(command.id, BlobRef(evidence, len(content)), evidence, flags=flags)
            tally = self._turns.tally(command.id)
            on_returned(tally, arrival)
            self._stop_if_unsafe(tally)
            self._settle(command, arrival, tally, content if len(answered) == 1 else None)
        if len(answered) != 1:
            # Of several calls that could be meant the gate takes one and trusts no choice of it; of none, it is text.
            self._gate.observe(None if answered else "", tool, content)

    def observe_error(self, call_id: str | None, tool: str, content: str, evidence: bytes, *, not_done: bool) -> None:
        """Take in what a tool said that failed: text, whatever it looks like.

        Unless the host says that nothing was done, nobody knows what a failed call has changed.
        """
        answered = self._turns.waiting.answered(call_id, tool)
        for command in answered:
            flags = secret_flag(pinned(self._turns.state).boundary, content)
            failed = ToolFailed(command.id, ErrorCode.TOOL_EXECUTION_FAILED, note(content), evidence, flags=flags)
            arrival = failed if not_done else replace(failed, is_unknown=True)
            tally = self._turns.tally(command.id)
            settle_failed(tally, command, arrival)
            self._stop_if_unsafe(tally)
            self._settle(command, arrival, tally, content if len(answered) == 1 else None)
        if len(answered) != 1:
            self._gate.observe("", tool, content)

    def approve(self, call_id: str, by: str, scope: Scope) -> int:
        """Count a yes to a held call; how many more it takes until the call may be made. Raises when it does not count."""
        held = self.held.of(call_id)
        if self._stopped:
            message = f"call {call_id!r} cannot be approved, since the run was stopped: {self._stopped}; end the run"
            raise RequestRejected(RUN_STOPPED, message, {"stop": True})
        arrival = self._facts.complete(self._turns.state, PersonApproved(held.question.id, by), [])
        assert isinstance(arrival, ApprovalGiven), "facts make this of a yes"
        tally = self._turns.tally(held.question.id)
        try:
            on_approved(tally, arrival)
        except IllegalArrival as error:
            raise RequestRejected(error.code, f"call {call_id!r}: {error.message}") from error
        self._check_made(call_id, tally)
        held.scopes.append(scope)
        left = held.packet.approvals_needed - len(held.scopes)
        if not left:
            self._release(call_id, held)
        self._turns.fold(arrival, tally.decisions)
        return left

    def reject(self, call_id: str, by: str) -> None:
        """Turn a held call away, now and whenever it is proposed again."""
        held = self.held.of(call_id)
        arrival = self._facts.complete(self._turns.state, ApprovalRefused(held.question.id, by), [])
        assert isinstance(arrival, ApprovalRefused), "facts leave a no as it is"
        tally = self._turns.tally(held.question.id)
        on_refused(tally, arrival)
        self._turns.fold(arrival, tally.decisions)
        self._rejected[_key(held.call)] = arrival.by
        self.held.drop(call_id)

    def _completed(self, proposed: ToolCall, kept: Kept, tracer: Tracer | None) -> CodeReturned:
        arrival = self._facts.complete(self._turns.state, CodeProposed("", proposed), kept, tracer)
        assert isinstance(arrival, CodeReturned), "facts make this of a proposed call"
        return arrival

    def _ruled(self, tally: Tally, call: ProposedCall) -> JsonObject:
        """Order, hold or refuse one call, and say why."""
        # A read on this machine is never traced, so the check that hears a person's no is not among its own.
        verdict = authorize(call, tally, CHECKS if call.provenance is Provenance.REFUSED else None)
        left_open = self._left_open(call)
        if verdict is ALLOWED and left_open:
            verdict = ask(left_open)
        if verdict is ALLOWED:
            order_call(tally, call)
            said = allowed()
        elif verdict.judgement is Judgement.ASK:
            said = self._asked(tally, call, verdict)
            if left_open and left_open not in said["reasons"]:
                said["reasons"].append(left_open)
        else:
            said = self._refused(tally, call, verdict)
        if noted := noted_json(tally.decisions):
            said["noted"] = noted
            said["reasons"] += [one["reason"] for one in noted]
        return said

    def _left_open(self, call: ProposedCall) -> str:
        """That an earlier call like this may have happened, where its tool may not simply be called again; else nothing."""
        state = self._turns.state
        if _key(call) not in state.unknown or state.tools[call.tool].idempotent:
            return ""
        return f"an earlier call of {call.tool} with these arguments failed, and nobody knows what it has done"

    def _asked(self, tally: Tally, call: ProposedCall, verdict: Verdict) -> JsonObject:
        """Ask a person; where nobody may be asked any more, the call is refused, and held at the gate for good."""
        said = asked(call, verdict, needs_no_approval(call, tally), self._tracer.verdict)
        if code := hold_call(tally, call):
            return refused(code, [*said["reasons"], "nobody may be asked any more: human_reviews is spent"])
        return said

    def _refused(self, tally: Tally, call: ProposedCall, verdict: Verdict) -> JsonObject:
        refuse_call(tally, call, verdict.code, verdict.reason)
        if verdict.code == Refusal.UNSAFE:
            self._stopped = verdict.reason
            return {**refused(verdict.code, [verdict.reason]), "stop": True}
        is_a_no = verdict.code == Refusal.APPROVAL_REJECTED and call.reasons
        return refused(verdict.code, call.reasons[:1] if is_a_no else [verdict.reason])

    def _judge_again(self, held: Held, tool: str, arguments: Any) -> JsonObject:
        """What is said of a call whose id names a held one: that it is still held, or that the id is taken."""
        proposed = ToolCall(held.call.call_id, tool, self._tracer.resolved(arguments))
        arrival = self._completed(proposed, [], None)
        (call,) = arrival.calls
        if _key(held.call) == _key(call):
            return held.shown
        tally = self._turns.tally()
        verdict = authorize(call, tally, _FIT)
        code, reason = verdict.code, verdict.reason
        if verdict is ALLOWED:
            code, reason = CALL_ID_HELD, f"id {call.call_id!r} names another call that is held"
        refuse_call(tally, call, code, reason)
        self._turns.fold(arrival, tally.decisions)
        return {**found_json(None, self._gate), **refused(code, [reason])}

    def _keep(self, call_id: str, shown: JsonObject, tally: Tally) -> None:
        question = next(decision for decision in tally.decisions if isinstance(decision, AskHuman))
        finding = self._tracer.verdict
        assert finding is not None, "nobody is asked about a call that the gate was not shown"
        held = Held(question, finding.call_id, shown)
        if held.packet.approvals_needed > 1:
            shown["approvals_needed"] = held.packet.approvals_needed
        self.held.add(call_id, held)

    def _settle(self, command: CallTool, arrival: ToolReturned | ToolFailed, tally: Tally, content: str | None) -> None:
        """Fold the outcome of a call; the gate hears of it if it is certain which call brought the content."""
        self._turns.waiting.drop(command)
        turn = self._turns.fold_unseen(arrival, tally.decisions)
        if content is not None:
            self._tracer.follow(turn, lambda _: content)

    def _stop_if_unsafe(self, tally: Tally) -> None:
        """Judge no further call where an observation has met a condition that stops the run."""
        if tally.ending is Ending.UNSAFE_DETECTION:
            self._stopped = tally.message

    def _check_made(self, call_id: str, tally: Tally) -> None:
        """Turn an approval away whose call may not be made any more; a condition that stops has stopped the run."""
        for refusal in [decision for decision in tally.decisions if isinstance(decision, ToolCallRefused)]:
            if refusal.code == Refusal.UNSAFE:
                self._stopped = refusal.reason
            message = f"call {call_id!r} can no longer be made: {refusal.reason}; answer it with approve=false"
            raise RequestRejected(refusal.code, message, {"stop": True} if self._stopped else None)

    def _release(self, call_id: str, held: Held) -> None:
        """Forget that a call is held, now that it may be made; its values pass from now on if everybody said so."""
        waiting = self._gate.ledger.held(held.name)
        if waiting is not None and all(scope is Scope.VALUE for scope in held.scopes):
            self._gate.evidence.approved |= {(waiting.tool, kind, value) for kind, value in waiting.unbound}
        self._rejected.pop(_key(held.call), None)
        self.held.drop(call_id)

    def _expire(self, call_id: str, held: Held) -> None:
        """Take silence for a no, or ask the next one."""
        timers = [one for one in self._turns.state.open.values() if isinstance(one, SetTimer)]
        arrival = TimerFired(next(timer.id for timer in timers if timer.about == held.question.id))
        tally = self._turns.tally(arrival.command_id)
        on_timer(tally, arrival)
        self._turns.fold(arrival, tally.decisions)
        self.held.drop(call_id)
        for question in [decision for decision in tally.decisions if isinstance(decision, AskHuman)]:
            self.held.add(call_id, Held(question, held.name, held.shown))

    def _next_id(self) -> str:
        """A name for a call that has none, and that no call has which waits for something."""
        while True:
            self._count += 1
            name = f"call-{self._count}"
            if name not in self._turns.waiting and name not in self.held:
                return name


def _key(call: ProposedCall) -> CallKey:
    return call.tool, call.arguments_hash
