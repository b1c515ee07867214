"""A model node: what is asked of the model, and what follows when it answers or fails.

Rule 1: a call is issued only when its worst case fits every dimension; the output is cut to what is left.
Rule 2: an answer proposes; nothing in it is a fact.
Rule 3: an answer with a secret of the house ends the run: the model knows what it may not have been told.
Rule 4: a failure worth trying again is tried again after a pause, as often in a row as the budget allows. A server
        that asked to be left alone is left alone for as long; where that goes beyond the run's deadline, nothing is tried again.
"""

from collections.abc import Mapping
from types import MappingProxyType

from remit.core.failure import ERRORS, Ending, ErrorCode
from remit.core.failure_families import Retryable
from remit.core.journal.arrivals import ModelAnswered, ModelFailed
from remit.core.journal.commands import CallModel, SetTimer, TimerPurpose
from remit.core.journal.rulings import RetryPlanned
from remit.core.limits.budget import Charges, Dimension
from remit.core.run.manifest import MODEL_TIMEOUT_MS, OUTPUT_TOKENS_DEFAULT
from remit.core.secrets.seal import SECRET_EXPOSED
from remit.core.work.graph import Node, NodeOutcome
from remit.kernel.budget.backoff import backoff_ms
from remit.kernel.budget.exhaustion import compress, is_kept_back, is_under_pressure, relieve
from remit.kernel.budget.spend import at_least, lacking, model_charges, settle_command, usage_charges
from remit.kernel.budget.wall_clock import deadline_at_ms
from remit.kernel.results.endings import head_for
from remit.kernel.tally import Tally

# Looking a member up in its enum costs as much as a comparison; these two are needed every turn.
_ANSWERED, _CALLED_TOOLS = NodeOutcome.ANSWERED, NodeOutcome.CALLED_TOOLS
_OUTPUT = int(Dimension.OUTPUT_TOKENS)
_CONTEXT = int(Dimension.CONTEXT_TOKENS)
_RETRIES = int(Dimension.RETRIES)

# How a run ends when a failure of the model cannot be recovered.
ENDING_OF: Mapping[ErrorCode, Ending] = MappingProxyType(
    {
        ErrorCode.INFERENCE_ENGINE_ERROR: Ending.UNAVAILABLE_DEP,
        ErrorCode.INFERENCE_MODEL_UNAVAILABLE: Ending.UNAVAILABLE_DEP,
        ErrorCode.INFERENCE_CONTEXT_EXCEEDED: Ending.IMPOSSIBLE,
        ErrorCode.INFERENCE_MALFORMED_RESPONSE: Ending.REPEATED_FAILURE,
        ErrorCode.CONSTRAINT_GRAMMAR_REJECTED: Ending.VALIDATION_FAIL,
        ErrorCode.CONSTRAINT_JSON_INVALID: Ending.VALIDATION_FAIL,
        ErrorCode.CONSTRAINT_SCHEMA_INVALID: Ending.VALIDATION_FAIL,
    }
)


def enter_model(tally: Tally, node: Node, attempt: int = 1) -> str | None:
    """Ask the model with the context as it stands: reserve the worst case, or name the outcome that stops the run."""
    state, manifest = tally.state, tally.manifest
    exhaustion = manifest.boundary.exhaustion
    model = manifest.models[state.talk.model_index + tally.downgrades if exhaustion else state.talk.model_index]
    input_tokens = tally.context_tokens + state.talk.pending_tokens + state.talk.offer_tokens
    wanted = manifest.request.hints.max_tokens
    if (ask := node.ask) is not None:
        input_tokens += tally.graph.instruction_tokens[tally.node]
        wanted = ask.max_tokens or wanted
    if exhaustion and is_under_pressure(tally, input_tokens) and compress(tally):
        return enter_model(tally, node, attempt)
    # Of a gauge nothing is ever spent: what is left of it is its cap, with what was released in this turn.
    if input_tokens > tally.left[_CONTEXT]:
        return _relieve(tally, node, attempt, Dimension.CONTEXT_TOKENS, input_tokens)
    max_tokens, tokens_left = wanted or OUTPUT_TOKENS_DEFAULT, tally.left[_OUTPUT]
    kept_back: Charges | None = ()
    if exhaustion and is_kept_back(manifest.boundary):
        last_words = manifest.boundary.wrap_up_tokens
        if tally.is_wrapping:
            max_tokens = min(max_tokens, last_words)
        else:
            tokens_left -= last_words
            kept_back = model_charges(model, input_tokens, last_words, is_money_capped=manifest.is_money_capped)
    if max_tokens > tokens_left:
        max_tokens = tokens_left
    if max_tokens <= 0:
        return _relieve(tally, node, attempt, Dimension.OUTPUT_TOKENS, 1, kept_back)
    charges = model_charges(model, input_tokens, max_tokens, is_money_capped=manifest.is_money_capped)
    if charges is None or kept_back is None:
        message = f"the price of model {model.name} is unknown and inference_cost_microusd is capped; give it a price"
        return head_for(tally, Ending.BUDGET_EXHAUSTED, message=message)
    if (dimension := lacking(tally, _sum(charges, kept_back) if kept_back else charges)) is not None:
        return _relieve(tally, node, attempt, dimension, dict(charges)[dimension], kept_back)
    messages_count = tally.messages_count + len(state.talk.pending)
    tally.issue(CallModel(tally.next_id(), model.name, messages_count, max_tokens, MODEL_TIMEOUT_MS, charges, attempt))
    return None


def _relieve(
    tally: Tally, node: Node, attempt: int, dimension: Dimension, wanted: int, kept_back: Charges | None = ()
) -> str | None:
    """Do what the boundary says when a dimension is spent, and ask the model again if that helped."""
    kept = dict(kept_back or ()).get(int(dimension), 0)
    return relieve(tally, dimension, wanted, lambda: enter_model(tally, node, attempt), kept)


def _sum(charges: Charges, others: Charges) -> Charges:
    amounts = dict(charges)
    for dimension, amount in others:
        amounts[dimension] = amounts.get(dimension, 0) + amount
    return tuple(amounts.items())


def on_answered(tally: Tally, arrival: ModelAnswered) -> str | None:
    """Settle the call and say whether the model answered or wants tools."""
    state, calls, text = tally.state, arrival.calls, arrival.text
    command: CallModel = state.commands.open[arrival.command_id]  # type: ignore[assignment]  # weigh() has looked
    tally.answers += 1
    tally.filtered = 0
    charged = usage_charges(tally.manifest.models[state.talk.model_index], arrival.usage, command)
    tally.proposed, tally.is_unjudged = calls, len(calls) > 0
    if text:
        tally.answer, tally.answer_violations = text, arrival.violations
        if arrival.unsupported or state.result.unsupported:
            tally.unsupported = arrival.unsupported
        if arrival.ungrounded or state.result.ungrounded:
            tally.ungrounded = arrival.ungrounded
    if calls or text:
        tally.messages_count += 1
        tally.context_tokens += arrival.tokens_bound
    if (outcome := settle_command(tally, command, charged)) is not None:
        return outcome
    if arrival.exposed:
        return head_for(tally, Ending.UNSAFE_DETECTION, message=_exposed(command, arrival.exposed))
    if state.talk.is_wrapping:
        return head_for(
            tally, Ending.BUDGET_EXHAUSTED, message="the budget was spent; the answer is the run's last words"
        )
    if calls:
        return _CALLED_TOOLS
    if text:
        return _ANSWERED
    return _try_again(tally, command, ErrorCode.INFERENCE_MALFORMED_RESPONSE, "the model said nothing")


def _exposed(command: CallModel, secret: str) -> str:
    why = f"model {command.model} said the secret {secret!r}, which no model is shown"
    return f"{SECRET_EXPOSED}: {why}; renew that secret, and find out who told it"


def on_model_failed(tally: Tally, arrival: ModelFailed) -> str | None:
    """Settle the call; try again or give up."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallModel)
    tally.last_error = arrival.code
    if (outcome := settle_command(tally, command, _charges_of_failure(tally, arrival, command))) is not None:
        return outcome
    if arrival.is_final:
        return head_for(tally, ENDING_OF.get(arrival.code, Ending.UNAVAILABLE_DEP), arrival.code, arrival.message)
    return _try_again(tally, command, arrival.code, arrival.message, arrival.retry_after_ms)


def _charges_of_failure(tally: Tally, arrival: ModelFailed, command: CallModel) -> Charges:
    """A call that was cut off may have cost all it reserved; one that never got through cost nothing."""
    if not arrival.was_cut and not arrival.usage.total_tokens:
        return ()
    reported = usage_charges(tally.manifest.models[tally.state.talk.model_index], arrival.usage, command)
    return at_least(command.reserved, reported) if arrival.was_cut else reported


def _try_again(tally: Tally, command: CallModel, code: ErrorCode, message: str, retry_after_ms: int = 0) -> str | None:
    retries_max = tally.state.spending.caps[_RETRIES]
    is_late = retry_after_ms > 0 and tally.at_ms + retry_after_ms >= deadline_at_ms(tally)
    if ERRORS[code].retryable is not Retryable.YES or command.attempt > retries_max or is_late:
        ending = ENDING_OF.get(code, Ending.UNAVAILABLE_DEP)
        told = message or f"{code} in attempt {command.attempt} of {retries_max + 1}"
        return head_for(tally, ending, code, f"{told}; the run's deadline comes first" if is_late else told)
    tally.last_error = code
    tally.rule(RetryPlanned(command.id, command.attempt + 1, code))
    pause_ms = max(backoff_ms(tally.state.run_id, command.id, command.attempt), retry_after_ms)
    tally.issue(SetTimer(tally.next_id(), tally.at_ms + pause_ms, TimerPurpose.RETRY, command.id))
    return None
