"""What becomes of a proposed call: issued, held for a person, refused; and later settled.

Rule 1: only an authorized call is issued, with a key minted here, since providers repeat their call ids.
Rule 2: every proposed effect is unproven until its observation is committed.
"""

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, Packet
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    ARGUMENTS_INVALID,
    OUTCOME_UNKNOWN,
    UNVERIFIED,
    Answer,
    CallSettled,
    Rung,
    ToolCallRefused,
)
from remit.core.limits.budget import Charges, Dimension
from remit.core.limits.escalation import Trigger, trigger_of_call
from remit.core.limits.purchases import amount_in, tells_amount
from remit.core.limits.tools import MUTATING, ToolDefinition, may_change
from remit.core.schema.json_text import kept_value
from remit.kernel.authority.authorize import lifted_by_a_person, reasons_to_ask
from remit.kernel.authority.call_flags import NO_FLAGS, Flags
from remit.kernel.authority.earlier_attempts import attempts_at
from remit.kernel.budget.backoff import cooled_at_ms
from remit.kernel.budget.spend import lacking, settle_command
from remit.kernel.children import start_delegate
from remit.kernel.people.questions import REVIEW, open_question, settle_question
from remit.kernel.results.notices import refusal_bound
from remit.kernel.results.proven_effects import made_good
from remit.kernel.state import CallKey, RunState, inquiries, pinned
from remit.kernel.tally import Tally
from remit.kernel.traces import longer

# Refusals of calls that were malformed.
INVALID = frozenset({ErrorCode.CONSTRAINT_SCHEMA_INVALID, ErrorCode.TOOL_NOT_FOUND})

_COMMITTED = Rung.COMMITTED
# What the approver of a call is shown of the budget: what it could cost.
_SHOWN = frozenset(
    map(
        int,
        (Dimension.TOOL_CALLS, Dimension.EXTERNAL_API_CALLS, Dimension.INFERENCE_COST_MICROUSD, Dimension.SIDE_EFFECTS),
    )
)
_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
# Four eyes belong to two people.
_PAIR = 2
# The gate's word for a value that more than one record could have supplied.
RECORD_AMBIGUOUS = "RECORD_AMBIGUOUS"
# Of a question that a model asks, as much is shown as a person reads before answering.
QUESTION_CHARS_MAX = 500
OPTIONS_MAX = 10


def issue_call(tally: Tally, call: ProposedCall, approved_by: str = "", instead_of: bytes = b"") -> None:
    """Order an authorized call, with a key of our own; what it reserves is promised from here on.

    Of a tool that asks a person the question is issued in its place, or the call refused when no person may be asked any
    more; of one that delegates, the child.
    """
    state, name, arguments_hash = tally.state, call.tool, call.arguments_hash
    tool = state.derived.tools[name]
    if tool.asks_under is not None:
        _ask_for_the_model(tally, call, tool.asks_under)
        return
    tally.repeats += ((name, arguments_hash),)
    if tool.delegates:
        start_delegate(tally, call)
        return
    mutating = tool.effect in MUTATING
    has_failed = state.counts.failures_in_a_row or tally.failures_in_a_row
    not_before_ms = cooled_at_ms(tally, tool) if has_failed and not approved_by else 0
    if mutating:
        tally.note_effect(name, arguments_hash, Rung.ATTEMPTED)
    command_id, timeout_ms, rules = tally.next_id(), tool.timeout_ms, tally.graph.nodes[tally.node].rules
    if rules is not None and timeout_ms > rules.timeout_ms:
        timeout_ms = rules.timeout_ms
    tally.issue(
        # Without names, which take half as long again for the most frequent command.
        CallTool(
            command_id,
            call.call_id,
            name,
            tool.version,
            call.arguments,
            arguments_hash,
            key_of_failed_attempt(state, tool, arguments_hash) or f"{state.run_id}:{command_id}",
            timeout_ms,
            state.derived.charges[name],
            mutating,
            approved_by,
            not_before_ms,
            _spent_by(call, tool) if mutating and tool.control_args else 0,
            instead_of,
        )
    )


def _spent_by(call: ProposedCall, tool: ToolDefinition) -> int:
    """What is counted as spent once a call is made, as far as its tool declares it."""
    if not tells_amount(tool):
        return 0
    text = call.arguments if isinstance(call.arguments, str) else call.abridged
    return max(amount_in(kept_value(text) if text else {}, tool), 0)


def key_of_failed_attempt(state: RunState, tool: ToolDefinition, arguments_hash: bytes) -> str:
    """The key of an attempt at exactly this that failed within; a tool that takes keys does nothing twice under one.

    It may be that of an earlier run, as long as this one has not done it.
    """
    if not tool.idempotent:
        return ""
    key = (tool.name, arguments_hash)
    if kept := state.effects.unknown.get(key) or state.effects.denied.get(key, ""):
        return kept
    tried = [one.key for one in pinned(state).earlier if one.key and (one.tool, one.arguments_hash) == key]
    return "" if not tried or _has_done(state, key) else tried[0]


def _has_done(state: RunState, key: CallKey) -> bool:
    """Whether exactly this was done in this run, as far as is known."""
    same = [trace for trace in state.calls.made.values() if (trace.tool, trace.arguments_hash) == key]
    return any(trace.rung is _COMMITTED or trace.code == UNVERIFIED for trace in same)


def failed_as(code: str) -> str:
    """As which failure of its tool a settled call is counted."""
    return ErrorCode.TOOL_EXECUTION_FAILED if code == OUTCOME_UNKNOWN else code


def _ask_for_the_model(tally: Tally, call: ProposedCall, ending: Ending) -> None:
    """Ask a person what the model wants to know. The answer will be the result of the call, and is charged like one."""
    if lacking(tally, REVIEW) is not None:
        reason = f"nobody may be asked any more: human_reviews_max={tally.state.spending.caps[Dimension.HUMAN_REVIEWS]} is spent"
        refuse_call(tally, call, Refusal.BUDGET_EXHAUSTED, reason)
        return
    tally.repeats += ((call.tool, call.arguments_hash),)
    question, options = question_in(call)
    open_question(tally, AskPurpose.QUESTION, ending, question=question, options=options, call=call)


def hold_call(tally: Tally, call: ProposedCall) -> str:
    """Ask a person about a call; refuse it when no review is left. Returns the refusal's code, if it is one.

    Calls that are held in one turn are one packet, and one review.
    """
    if not tally.group and lacking(tally, REVIEW) is not None:
        reason = f"{call.tool} needs a person and human_reviews_max={tally.state.spending.caps[Dimension.HUMAN_REVIEWS]} is spent"
        refuse_call(tally, call, Refusal.BUDGET_EXHAUSTED, reason)
        return Refusal.BUDGET_EXHAUSTED
    tool, packet = tally.state.derived.tools[call.tool], call_packet(tally, call)
    is_ambiguous = call.objection == RECORD_AMBIGUOUS
    ending = Ending.AMBIGUOUS_INTENT if is_ambiguous else Ending.CONFIRM_REQUIRED
    trigger = Trigger.AMBIGUOUS_GOAL if is_ambiguous else _trigger(tool, packet.releases)
    question_id = open_question(tally, AskPurpose.APPROVAL, ending, packet=packet, trigger=trigger, group=tally.group)
    tally.group = tally.group or question_id
    if tool.effect.is_mutating:
        tally.note_effect(call.tool, call.arguments_hash, Ending.CONFIRM_REQUIRED)
    return ""


def call_packet(tally: Tally, call: ProposedCall) -> Packet:
    """What a person is shown of a call who is asked about it now."""
    state, manifest = tally.state, tally.manifest
    tool = state.derived.tools[call.tool]
    return Packet(
        call=call,
        tool_version=tool.version,
        boundary_version=manifest.versions.boundary,
        reasons=(*reasons_to_ask(call, tally), *attempts_at(state, call)),
        # A person may let one call through where the budget has no room for it; the packet says that this is what they do.
        releases=lifted_by_a_person(call, tally),
        source=code_digest(state, call.tool),
        left=tuple((d, amount) for d, amount in enumerate(tally.left) if d in _SHOWN),
        blast_radius=tool.blast_radius,
        rollback=tool.rollback,
        approvals_needed=_PAIR if tool.category in manifest.boundary.four_eyes and tool.effect.is_mutating else 1,
    )


def _trigger(tool: ToolDefinition, releases: Charges) -> Trigger:
    """Why a person is asked: for what the call does, or, where it does nothing, for what it would cost."""
    is_for_budget = any(dimension != _SIDE_EFFECTS for dimension, _ in releases)
    return Trigger.BUDGET_LIMIT if is_for_budget and not tool.effect.is_mutating else trigger_of_call(tool)


def refuse_call(
    tally: Tally, call: ProposedCall, code: str, reason: str, *, unreleased: str = "", is_a_no: bool = False
) -> None:
    """Refuse a call and tell the model why; `unreleased` says which budget was not released for it, and ends the run."""
    tool = tally.state.derived.tools.get(call.tool)
    # What an unknown tool would have done counts as the worst; a call that is repaired later makes it good.
    mutating = tool is None or may_change(tool)
    bound = refusal_bound(code, reason)
    tally.last_error = code
    if unreleased:
        tally.unreleased = unreleased
    tally.rule(
        ToolCallRefused(
            call_id=call.call_id,
            tool=call.tool,
            code=code,
            reason=reason,
            arguments_hash=call.arguments_hash,
            mutating=mutating,
            tokens_bound=bound,
            unreleased=unreleased,
            is_a_no=is_a_no,
            is_denial=code == Refusal.CONDITION_HELD,
        )
    )
    tally.say(bound)
    if mutating and not _is_unverified(tally, (call.tool, call.arguments_hash)):
        tally.note_effect(call.tool, call.arguments_hash, refused_as(tally.state, call.tool, code))


def refused_as(state: RunState, tool: str, code: str) -> str:
    """Under which code the effect of a refused call is counted."""
    if tool not in state.derived.tools:
        return ErrorCode.TOOL_NOT_FOUND
    return ARGUMENTS_INVALID if code == ErrorCode.CONSTRAINT_SCHEMA_INVALID else code


def _is_unverified(tally: Tally, key: CallKey) -> bool:
    """Whether exactly this happened already, as far as is known; a wish for it again changes nothing."""
    return (tally.uncommitted.get(key) or tally.state.effects.uncommitted.get(key)) == UNVERIFIED


def settle_call(
    tally: Tally,
    command: CallTool,
    rung: Rung,
    code: str = "",
    evidence: bytes = b"",
    verifier: str = "",
    *,
    flags: Flags = NO_FLAGS,
) -> None:
    """Give a call its outcome. It is charged in full, whatever came of it; only COMMITTED proves its effect.

    An effect that nothing verifies is no failure, and no proof either.
    """
    # It is charged exactly what it reserved, so what the run holds does not change; only the node waits no more.
    tally.blocking -= 1
    if rung is _COMMITTED:
        tally.committed += (command.tool,)
        for tool, digest in made_good(tally.state, command) if tally.state.effects.uncommitted else ():
            tally.note_effect(tool, digest, None)
        if tally.state.counts.failures_in_a_row:
            tally.fail(command.tool, None)
    elif code == UNVERIFIED:
        verifier = ""
        tally.fail(command.tool, None)
    else:
        verifier, tally.last_error = "", code
        streak = tally.state.counts.failures_in_a_row.get(command.tool)
        tally.fail(command.tool, longer(streak, failed_as(code), tally.state.counts.iterations))
    if command.mutating:
        tally.note_effect(command.tool, command.arguments_hash, code)
        drop_inquiry(tally, command.id)
    if flags == NO_FLAGS:
        tally.decisions.append(CallSettled(command.id, rung, command.reserved, verifier, evidence, code))
        return
    tally.raised, tally.lowered = flags
    tally.decisions.append(CallSettled(command.id, rung, command.reserved, verifier, evidence, code, *flags))


def code_digest(state: RunState, tool: str) -> str:
    """The digest of the code that a call of this tool would run, as far as it was written down."""
    source = state.sources.get(tool)
    return "" if source is None else source.digest


def question_in(call: ProposedCall) -> tuple[str, tuple[str, ...]]:
    """What a call of a tool that asks wants to know, and what it offers to choose from."""
    text = call.arguments if isinstance(call.arguments, str) else call.abridged
    said = kept_value(text) if text else {}
    question, options = said.get("question", ""), said.get("options", ())
    offered = [str(option)[:QUESTION_CHARS_MAX] for option in options] if isinstance(options, list) else []
    return str(question)[:QUESTION_CHARS_MAX] or text[:QUESTION_CHARS_MAX], tuple(offered[:OPTIONS_MAX])


def drop_inquiry(tally: Tally, command_id: str) -> None:
    """Withdraw whatever was asked about a call in doubt, now that its outcome is known."""
    for inquiry in inquiries(tally.state, command_id):
        if inquiry.id == tally.answering:
            continue
        if isinstance(inquiry, AskHuman):
            settle_question(tally, inquiry, Answer.WITHDRAWN)
        else:
            settle_command(tally, inquiry, ())
