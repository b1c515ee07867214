"""One guarded run: the kernel's checks and the gate of provenance over the calls of somebody else's agent.

Rule 1: the checks, the counting and the folding are the kernel's own, over a RunState made from a real manifest; each
        operation that changes something is one turn.
Rule 2: the order is that of a run: registered, valid, within the boundary and the budget, no repeat, then provenance,
        then approval. Of two objections the stricter speaks: refuse before ask before allow.
Rule 3: a call is judged and counted with its handles replaced: what is judged is what will be made.
Rule 4: an approval covers the held bytes once and counts as the call being made; whoever said no to them is not asked again.
Rule 5: where a result was lost, nobody knows what the model has read: no effect passes without a person any more.
"""

from dataclasses import dataclass
from typing import Any

from remit.core.arrivals import (
    ApprovalGiven,
    ApprovalRefused,
    Arrival,
    CodeReturned,
    ProposedCall,
    Provenance,
    RunStarted,
    ToolReturned,
)
from remit.core.codec import NO_HASH
from remit.core.commands import AskHuman
from remit.core.contract import SystemRequest
from remit.core.events import KERNEL_VERSION, Turn
from remit.core.failure import Ending, ErrorCode, Refusal, RequestRejected
from remit.core.inference import ModelInfo
from remit.core.manifest import make_manifest
from remit.core.messages import user_message
from remit.core.record import JsonObject, replace
from remit.core.rulings import Answer, NodeEntered, Rung
from remit.core.tools import ToolCall
from remit.kernel.apply import apply
from remit.kernel.asking import settle_question
from remit.kernel.authorize import FIRM_CHECKS, authorize, lifted_by_a_person, needs_no_approval
from remit.kernel.calls import hold_call, order_call, refuse_call, settle_call
from remit.kernel.rules.started import STARTED
from remit.kernel.state import CallKey, RunState
from remit.kernel.tally import Tally
from remit.kernel.verdicts import ALLOWED
from remit.orchestrate.facts import Facts
from remit.orchestrate.guard_boundary import GuardTerms
from remit.orchestrate.guard_tools import Toolset
from remit.orchestrate.guard_waiting import Waiting
from remit.orchestrate.patterns.chat import chat_graph
from remit.orchestrate.reports import CodeProposed
from remit.provenance.calls import Scope
from remit.provenance.gate import start
from remit.provenance.handles import resolve
from remit.provenance.verdicts import Decision, verdict_json

CALL_ID_HELD = "CALL_ID_HELD"
CALL_NOT_HELD = "CALL_NOT_HELD"
RESULT_LOST = "RESULT_LOST"

# The node of the chat graph where calls are judged. The guard stands there from the first turn to the last.
_ACT = "act"
# Who proposes calls is unknown and never asked; a manifest names a model all the same.
_PROPOSER = ModelInfo("guarded")
# The guard has no clock, so every turn has the same moment.
_AT_MS = 0

_ASK = "approve the call, or leave it"
FIXES: dict[str, str] = {
    ErrorCode.TOOL_NOT_FOUND: "declare the tool when the run starts, or call one that is declared",
    ErrorCode.CONSTRAINT_SCHEMA_INVALID: "repair the arguments so that they fit the tool's parameters",
    Refusal.PERMISSION_DENIED: "give the boundary the tool or the permission, or do without",
    Refusal.BUDGET_EXHAUSTED: "start a run with a larger cap, or end this one",
    Refusal.REPEATED_CALL: "use the result that is there, or change the arguments",
    Refusal.APPROVAL_REJECTED: "propose something else; a person said no to exactly this call",
    Ending.CONFIRM_REQUIRED: _ASK,
    RESULT_LOST: f"{_ASK}; to go on unattended, start a new run and report its results",
    CALL_ID_HELD: "give each call an id of its own, or answer the one that is held",
}


@dataclass(frozen=True, slots=True)
class _Held:
    """A call that waits for a person. `is_counted` says that the gate counts it as made already."""

    question_id: str
    call: ProposedCall
    shown: JsonObject
    is_counted: bool


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
        plan: dict[str, int] | None = None,
    ) -> None:
        """Open a run; raises RequestRejected for what no run could be made of."""
        self._gate = start(prompt, list(tools.declared), terms.authority, plan=plan)
        manifest = make_manifest(
            run_id=run_id,
            request=SystemRequest(tuple([user_message(said) for said in self._gate.evidence.prompts])),
            boundary=terms.boundary,
            graph=chat_graph(),
            models=(_PROPOSER,),
            tools=tools.definitions,
        )
        self._facts = facts
        self._state = RunState()
        self._held: dict[str, _Held] = {}
        self._waiting = Waiting()
        self._rejected: dict[CallKey, str] = {}
        self._count = 0
        self.is_lost = False
        self._fold(RunStarted(manifest, 0), [NodeEntered(_ACT, STARTED)])

    @property
    def held_ids(self) -> tuple[str, ...]:
        """The calls that wait for a person."""
        return tuple(self._held)

    @property
    def open_count(self) -> int:
        """How many calls and questions have no outcome yet."""
        return len(self._state.open)

    def judge(self, call_id: str | None, tool: str, arguments: Any) -> JsonObject:
        """The verdict on one proposed call, as the protocol shows it."""
        call_id = call_id or self._next_id()
        proposed = ToolCall(call_id, tool, self._resolved(arguments))
        arrival = self._facts.complete(self._state, CodeProposed("", proposed), [])
        assert isinstance(arrival, CodeReturned), "facts make this of a proposed call"
        (call,) = arrival.calls
        held = self._held.get(call_id)
        if held is not None and _key(held.call) == _key(call):
            return held.shown
        tally = Tally(self._state, _AT_MS)
        shown = self._ruled(tally, call, arguments, is_id_held=held is not None)
        self._fold(arrival, tally.decisions)
        if shown["decision"] == Decision.ASK:
            self._keep(call, shown, tally)
        return {"id": call_id, **shown}

    def observe(self, call_id: str | None, tool: str, content: Any, evidence: bytes) -> None:
        """Take in a result: the gate indexes it, and the calls it answers are settled."""
        for command in self._waiting.answered(call_id, tool):
            tally = Tally(self._state, _AT_MS, command.id)
            verifier = self._state.tools[tool].verifier
            settle_call(tally, command, Rung.COMMITTED, verifier=verifier, evidence=evidence)
            self._fold(ToolReturned(command.id, "", evidence), tally.decisions)
            self._waiting.drop(command)
        self._gate.observe(call_id, tool, content)

    def approve(self, call_id: str, by: str, scope: Scope) -> None:
        """Let a held call be made, if every check that no person may overrule still agrees; nothing changes otherwise."""
        held = self._held_call(call_id)
        tally = Tally(self._state, _AT_MS, held.question_id)
        verdict = authorize(held.call, tally, FIRM_CHECKS)
        if verdict is not ALLOWED:
            message = f"call {call_id!r} can no longer be made: {verdict.reason}; answer it with approve=false"
            raise RequestRejected(verdict.code, message)
        self._count_as_made(call_id, held, by, scope)
        settle_question(tally, self._question(held), Answer.APPROVED, by=by, is_released=True)
        order_call(tally, held.call, approved_by=by)
        self._fold(ApprovalGiven(held.question_id, by), tally.decisions)
        self._rejected.pop(_key(held.call), None)
        del self._held[call_id]

    def reject(self, call_id: str, by: str) -> None:
        """Turn a held call away, now and whenever it is proposed again."""
        held = self._held_call(call_id)
        tally = Tally(self._state, _AT_MS, held.question_id)
        self._gate.answer(call_id, False, by)  # noqa: FBT003  # the gate's own signature
        settle_question(tally, self._question(held), Answer.REJECTED, by=by)
        refuse_call(tally, held.call, Refusal.APPROVAL_REJECTED, f"rejected by {by}")
        self._fold(ApprovalRefused(held.question_id, by), tally.decisions)
        self._rejected[_key(held.call)] = by
        del self._held[call_id]

    def _ruled(self, tally: Tally, call: ProposedCall, arguments: Any, *, is_id_held: bool) -> JsonObject:
        """Order, hold or refuse one call, and say why."""
        verdict = authorize(call, tally, FIRM_CHECKS)
        if verdict is not ALLOWED:
            return self._refused(tally, call, verdict.code, verdict.reason)
        if is_id_held:
            return self._refused(tally, call, CALL_ID_HELD, f"id {call.call_id!r} names another call that is held")
        if (by := self._rejected.get(_key(call))) is not None:
            return self._refused(tally, call, Refusal.APPROVAL_REJECTED, f"{by} said no to exactly this call")
        said = self._gate.judge(call.call_id, call.tool, arguments)
        shown = verdict_json(said)
        if said.decision is Decision.REFUSE:
            refuse_call(tally, call, shown["code"], "; ".join(said.reasons))
        elif said.decision is Decision.ASK:
            if (demand := needs_no_approval(call, tally)) is not ALLOWED:
                shown["reasons"].append(demand.reason)
            shown = self._hold(tally, call, shown)
        elif (objection := self._own_objection(tally, call)) is not None:
            code, reason = objection
            self._hold_at_gate(call)
            asking = {"decision": Decision.ASK.value, "code": str(code), "reasons": [reason], "fix": FIXES[code]}
            shown = self._hold(tally, call, {**shown, **asking})
        else:
            order_call(tally, call)
        return shown

    def _own_objection(self, tally: Tally, call: ProposedCall) -> tuple[str, str] | None:
        """Why a person is asked about a call that the gate lets through, with its code."""
        if self.is_lost and self._gate.tools[call.tool].is_checked:
            return RESULT_LOST, "a result of this run never arrived, so nobody knows what was read"
        verdict = authorize(replace(call, provenance=Provenance.BOUND), tally)
        if verdict is not ALLOWED:
            return Ending.CONFIRM_REQUIRED, verdict.reason
        if lifted_by_a_person(call, tally):
            return Ending.CONFIRM_REQUIRED, f"side_effects_max=0 leaves the effect of {call.tool} to a person"
        return None

    def _refused(self, tally: Tally, call: ProposedCall, code: str, reason: str) -> JsonObject:
        refuse_call(tally, call, code, reason)
        return {
            "decision": Decision.REFUSE.value,
            "code": str(code),
            "reasons": [reason],
            "args": [],
            "labels": list(self._gate.evidence.labels),
            "rules": self._gate.rules,
            "fix": FIXES.get(code, ""),
        }

    def _hold(self, tally: Tally, call: ProposedCall, shown: JsonObject) -> JsonObject:
        """Ask a person; where nobody may be asked any more, the call is refused, and held at the gate for good."""
        if not (code := hold_call(tally, call)):
            return shown
        reason = "nobody may be asked any more: human_reviews is spent"
        refusal = {"decision": Decision.REFUSE.value, "code": str(code), "fix": FIXES[code]}
        return {**shown, **refusal, "reasons": [*shown["reasons"], reason]}

    def _hold_at_gate(self, call: ProposedCall) -> None:
        """Make the gate hold what it has let through, because somebody else objects."""
        ledger, tool = self._gate.ledger, self._gate.tools[call.tool]
        made = ledger.open.pop(call.call_id)
        ledger.hold(made, trips=self._gate.authority.tripwire and tool.is_checked)

    def _keep(self, call: ProposedCall, shown: JsonObject, tally: Tally) -> None:
        question = next(decision for decision in tally.decisions if isinstance(decision, AskHuman))
        is_counted = shown["code"] in (Ending.CONFIRM_REQUIRED, RESULT_LOST)
        self._held[call.call_id] = _Held(question.id, call, {"id": call.call_id, **shown}, is_counted)

    def _count_as_made(self, call_id: str, held: _Held, by: str, scope: Scope) -> None:
        """Spend the approval at once, so that a second call on the same target is a repetition from now on."""
        ledger = self._gate.ledger
        waiting = ledger.held(call_id)
        assert waiting is not None, "what the kernel holds, the gate holds"
        self._gate.answer(call_id, True, by, scope)  # noqa: FBT003  # the gate's own signature
        is_spent = bool(ledger.spend_approval(waiting))
        if is_spent and not held.is_counted and self._gate.tools[waiting.tool].effect.is_mutating:
            ledger.uses_of(waiting.tool).add(waiting.targets)

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

    def _resolved(self, arguments: Any) -> Any:
        if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
            return arguments
        resolved, _ = resolve(arguments, self._gate.evidence.index)
        return resolved

    def _next_id(self) -> str:
        """A name for a call that has none, and that no call has which waits for something."""
        while True:
            self._count += 1
            name = f"call-{self._count}"
            if name not in self._waiting and name not in self._held:
                return name

    def _fold(self, arrival: Arrival, decisions: list[Any]) -> None:
        state = self._state
        apply(state, Turn(state.seq + 1, _AT_MS, NO_HASH, KERNEL_VERSION, arrival, tuple(decisions)), NO_HASH)
        self._waiting.add(decisions)


def _key(call: ProposedCall) -> CallKey:
    return call.tool, call.arguments_hash
