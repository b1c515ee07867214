"""The report behind an arrival: what an executor or a person must have said for facts to make this arrival of it.

Rule 1: a report is told again from what the arrival keeps and from the texts it names, so completing it computes every
        fact anew: canonical arguments and their hash, violations, evidence, token bounds.
Rule 2: two things are not kept, and are taken from the record: why arguments had no canonical form, and whether a whole
        number that a violation quotes was spelt 1 or 1.0.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import JsonObject, Text, replace
from remit.core.regex import regex
from remit.core.run.inference import ModelResult
from remit.core.schema.json_schema import MESSAGE_CHARS_MAX, Violation
from remit.core.schema.json_text import parse_json
from remit.core.work.orders import MADE
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facts.order_leases import told_used

# Arrivals that carry proposed calls.
_PROPOSING = (arrivals.ModelAnswered, arrivals.CodeReturned)

# A text in full, wherever it lives.
Read = Callable[[Text], str]

# The violation of arguments that have no canonical form, and a value that has none either.
_NOT_CANONICAL = "canonical"
_UNWRITABLE = float("nan")
# A float without a fraction, as a message quotes it.
_WHOLE_FLOAT = regex(r"(?<![\d.])(-?\d+)\.0(?!\d)")


def report_behind(arrival: Arrival, read: Read) -> Report:
    """The report behind an arrival; most kinds of arrivals are reported as they stand, and completed as such."""
    reported = REPORTED.get(type(arrival))
    return arrival if reported is None else reported(arrival, read)


def with_words_of(recorded: Arrival, completed: Arrival) -> Arrival:
    """The completed arrival, with the words that cannot be computed again as the record has them (Rule 2)."""
    if isinstance(recorded, _PROPOSING) and isinstance(completed, _PROPOSING):
        if len(recorded.calls) != len(completed.calls):
            return completed
        pairs = zip(recorded.calls, completed.calls, strict=True)
        calls = tuple(_reworded(was, now) for was, now in pairs)
        return completed if calls == completed.calls else replace(completed, calls=calls)
    if isinstance(recorded, arrivals.CallProposed) and isinstance(completed, arrivals.CallProposed):
        call = _reworded(recorded.call, completed.call)
        return completed if call == completed.call else replace(completed, call=call)
    if isinstance(recorded, arrivals.ApprovalGiven) and isinstance(completed, arrivals.ApprovalGiven):
        if recorded.modified is None or completed.modified is None:
            return completed
        modified = _reworded(recorded.modified, completed.modified)
        return completed if modified == completed.modified else replace(completed, modified=modified)
    return completed


def _answer(arrival: arrivals.ModelAnswered, read: Read) -> Report:
    calls = tuple(ToolCall(call.call_id, call.tool, _arguments(call, read)) for call in arrival.calls)
    text, reasoning = read(arrival.raw or arrival.text), read(arrival.reasoning)
    result = ModelResult(text, reasoning, calls, arrival.usage, model=arrival.model)
    return reports.ModelSaid(arrival.command_id, result, arrival.offered, exposed=arrival.exposed)


def _result(arrival: arrivals.ToolReturned, read: Read) -> Report:
    result = ToolResult("", "", read(arrival.whole or arrival.content), stop_loop=arrival.stop_loop)
    return reports.ToolSaid(arrival.command_id, result, arrival.refuted, arrival.duration_ms, arrival.is_shared)


def _code(arrival: arrivals.CodeReturned, read: Read) -> Report:
    if arrival.is_filtered:
        calls = (ToolCall(call.call_id, call.tool, _arguments(call, read)) for call in arrival.calls)
        sifted = zip(calls, arrival.calls, strict=True)
        return reports.FilterSaid(
            arrival.command_id, tuple(reports.SiftedCall(call, was.filtered) for call, was in sifted)
        )
    if arrival.calls or arrival.kind == MADE:
        proposed = tuple(ToolCall(call.call_id, call.tool, _arguments(call, read)) for call in arrival.calls)
        return reports.CodeProposed(arrival.command_id, proposed, orders=read(arrival.value))
    return replace(arrival, value=read(arrival.value))


def _approval(arrival: arrivals.ApprovalGiven, read: Read) -> Report:
    return reports.PersonApproved(
        command_id=arrival.command_id,
        by=arrival.by,
        arguments=_changed(arrival, read),
        packet=arrival.packet,
        reason=arrival.reason,
        for_values=arrival.for_values,
        is_awaited=arrival.is_awaited,
        grant=arrival.grant,
    )


def _changed(arrival: arrivals.ApprovalGiven, read: Read) -> JsonObject | None:
    """What a person gave in place of what was shown: the arguments of a call, or orders."""
    if arrival.orders:
        return {"orders": parse_json(read(arrival.orders))}
    return None if arrival.modified is None else _arguments(arrival.modified, read)


# Arrival kind -> the report it was made from.
REPORTED: Mapping[type[Arrival], Callable[[Any, Read], Report]] = MappingProxyType(
    {
        arrivals.ModelAnswered: _answer,
        arrivals.ToolReturned: _result,
        arrivals.ToolFailed: lambda arrival, read: reports.ToolBroke(
            command_id=arrival.command_id,
            code=arrival.code,
            error=arrival.error,
            duration_ms=arrival.duration_ms,
            is_unknown=arrival.is_unknown,
            is_shared=arrival.is_shared,
        ),
        arrivals.ToolReconciled: lambda arrival, read: reports.ToolAccounted(
            arrival.command_id, arrival.happened, read(arrival.whole or arrival.content), arrival.why
        ),
        arrivals.CodeReturned: _code,
        arrivals.ChildEnded: lambda arrival, read: reports.ChildSaid(
            command_id=arrival.command_id,
            ending=arrival.ending,
            text=read(arrival.text),
            spent=arrival.spent,
            error=arrival.error,
            message=arrival.message,
            usage=arrival.usage,
            stood_ms=arrival.stood_ms,
            observed=arrival.observed,
            left=arrival.left,
            denials=arrival.denials,
            refused=arrival.refused,
            orders=told_used(arrival),
        ),
        arrivals.ContextFound: lambda arrival, read: reports.ContextSaid(
            arrival.command_id, read(arrival.text), arrival.relevance_ppm
        ),
        arrivals.ApprovalGiven: _approval,
        arrivals.QuestionAnswered: lambda arrival, read: reports.PersonSaid(
            arrival.by, read(arrival.text), arrival.command_id
        ),
        arrivals.FeedbackGiven: lambda arrival, read: reports.PersonSaid(arrival.by, read(arrival.text)),
        arrivals.CallProposed: lambda arrival, read: reports.HostProposed(
            ToolCall(arrival.call.call_id, arrival.call.tool, _arguments(arrival.call, read))
        ),
        arrivals.TextShown: lambda arrival, read: replace(
            arrival, text=read(arrival.text), orders=read(arrival.orders)
        ),
    }
)


def _arguments(call: ProposedCall, read: Read) -> JsonObject:
    """The arguments of a proposed call as they were before they were written in canonical form."""
    text = read(call.said or call.arguments)
    if not text:
        # They could not be written. Something else that cannot be leads to the same facts, but for the reason.
        is_no_object = all(violation.keyword != _NOT_CANONICAL for violation in call.violations)
        unfit: Any = [] if is_no_object else {"": _UNWRITABLE}
        return unfit  # type: ignore[no-any-return]  # arguments that are no object are what is to be judged
    arguments: JsonObject = json.loads(text, parse_int=_number)
    return arguments


def _number(digits: str) -> int | float:
    """A whole number as it was before: the canonical form of 1e16 has no exponent, and no such integer has one."""
    number = int(digits)
    return number if -INTEGER_MAX <= number <= INTEGER_MAX else float(digits)


def _reworded(was: ProposedCall, now: ProposedCall) -> ProposedCall:
    """A call with the recorded words, if they differ in nothing but what cannot be computed again."""
    if was.violations == now.violations or len(was.violations) != len(now.violations):
        return now
    is_alike = all(map(_are_alike, was.violations, now.violations))
    return replace(now, violations=was.violations) if is_alike else now


def _are_alike(was: Violation, now: Violation) -> bool:
    if (was.path, was.keyword) != (now.path, now.keyword):
        return False
    # Why something could not be written is not known any more; a violation of a schema quotes the value it is about,
    # and one that was cut may have been cut elsewhere.
    is_cut = MESSAGE_CHARS_MAX in (len(was.message), len(now.message))
    return was.keyword == _NOT_CANONICAL or is_cut or _respelt(was.message) == _respelt(now.message)


def _respelt(message: str) -> str:
    """A message with its whole numbers spelt as integers."""
    return _WHOLE_FLOAT.sub(lambda found: found[1] if found[1] != "-0" else "0", message)
