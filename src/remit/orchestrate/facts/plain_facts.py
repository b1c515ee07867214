"""Facts of reports that need neither a schema nor the gate: texts are made fit and stored, figures are cut.

The state is given to all of them alike; few look at it.
"""

from hashlib import sha256

from remit.core.failure import ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival
from remit.core.record import replace, size_bytes
from remit.core.secrets.seal import SECRET_EXPOSED
from remit.core.work.goal import PPM
from remit.kernel.people.clock_stop import UNTOLD
from remit.kernel.results.notices import MESSAGE_TOKENS_OVERHEAD, failure_bound
from remit.kernel.results.proven_effects import LEFT_MAX
from remit.kernel.state import RunState, pinned
from remit.orchestrate.executors import reports
from remit.orchestrate.facts.answer_evidence import objections_of
from remit.orchestrate.facts.excerpts import secret_flag
from remit.orchestrate.facts.order_leases import said_used
from remit.orchestrate.facts.texts import Kept, clean, cut_figure, cut_usage, name, note, person, stored

# Enough for a model to correct itself, little enough to stand in a turn.
PROBLEMS_MAX = 10
# Ten minutes: a tool that wants to be left alone for longer has told a run to come another day.
RETRY_AFTER_MS_MAX = 600_000


def tool_failed(state: RunState, report: reports.ToolBroke, kept: Kept) -> Arrival:
    """A failure with the flags that its words raise: an error may tell what was read."""
    code, text = ErrorCode(report.code), note(report.error)
    # A host makes its calls itself: no process here could have kept one from being made.
    is_ours = pinned(state).host is None
    is_exposed = report.error.startswith(SECRET_EXPOSED) and not report.is_unknown and is_ours
    return arrivals.ToolFailed(
        command_id=report.command_id,
        code=code,
        error=text,
        evidence=sha256(text.encode()).digest(),
        tokens_bound=failure_bound(code, text),
        duration_ms=cut_figure(report.duration_ms),
        exposed=is_exposed,
        flags=secret_flag(pinned(state).boundary, text),
        is_unknown=report.is_unknown,
        is_shared=report.is_shared,
    )


def child_ended(state: RunState, report: reports.ChildSaid, kept: Kept) -> Arrival:
    """The end of a child run as an arrival."""
    text = clean(report.text) or f"The child run ended as {report.ending} and said nothing."
    return arrivals.ChildEnded(
        command_id=report.command_id,
        ending=report.ending,
        text=stored(text, kept),
        spent=report.spent,
        tokens_bound=size_bytes(text) + MESSAGE_TOKENS_OVERHEAD,
        error=report.error,
        message=note(report.message),
        usage=cut_usage(report.usage),
        problems=objections_of(state, report) if report.orders is None else said_used(report.orders),
        stood_ms=UNTOLD if report.stood_ms == UNTOLD else cut_figure(report.stood_ms),
        observed=tuple((name(tool), cut_figure(times)) for tool, times in report.observed),
        left=tuple([(name(tool), code) for tool, code in report.left[:LEFT_MAX]]),
        denials=report.denials,
        refused=tuple([(name(tool), digest) for tool, digest in report.refused[:LEFT_MAX]]),
    )


def context_found(state: RunState, report: reports.ContextSaid, kept: Kept) -> Arrival:
    """The evidence that was retrieved."""
    text = clean(report.text)
    bound = size_bytes(text) + MESSAGE_TOKENS_OVERHEAD
    relevance_ppm = report.relevance_ppm if type(report.relevance_ppm) is int else -1
    return arrivals.ContextFound(report.command_id, stored(text, kept), bound, max(-1, min(relevance_ppm, PPM)))


def person_spoke(state: RunState, report: reports.PersonSaid, kept: Kept) -> Arrival:
    """The words of a person: the answer to a question, or feedback."""
    text, by = clean(report.text), name(report.by)
    bound = size_bytes(text) + MESSAGE_TOKENS_OVERHEAD
    if report.command_id:
        return arrivals.QuestionAnswered(report.command_id, by, stored(text, kept), bound)
    return arrivals.FeedbackGiven(by, stored(text, kept), bound)


def text_shown(state: RunState, arrival: arrivals.TextShown, kept: Kept) -> Arrival:
    """A text that an agent elsewhere was shown, as an arrival."""
    text = stored(clean(arrival.text), kept) if isinstance(arrival.text, str) else arrival.text
    made = arrival.made
    made = None if made is None else replace(made, call_id=name(made.call_id), tool=name(made.tool))
    orders = stored(arrival.orders, kept) if isinstance(arrival.orders, str) else arrival.orders
    return replace(arrival, tool=name(arrival.tool), text=text, made=made, orders=orders, by=person(arrival.by))


def model_failed(state: RunState, arrival: arrivals.ModelFailed, kept: Kept) -> Arrival:
    """A model call without an answer."""
    retry_after_ms = min(cut_figure(arrival.retry_after_ms), RETRY_AFTER_MS_MAX)
    return replace(
        arrival, message=note(arrival.message), usage=cut_usage(arrival.usage), retry_after_ms=retry_after_ms
    )


def code_returned(state: RunState, arrival: arrivals.CodeReturned, kept: Kept) -> Arrival:
    """The value that code of the user returned, as an arrival."""
    value = stored(clean(arrival.value), kept) if isinstance(arrival.value, str) else arrival.value
    problems = tuple([note(problem) for problem in arrival.problems[:PROBLEMS_MAX]])
    passed, failed = cut_figure(arrival.checks_passed), cut_figure(arrival.checks_failed)
    warnings = tuple([note(warning) for warning in arrival.warnings[:PROBLEMS_MAX]])
    return replace(
        arrival, value=value, problems=problems, checks_passed=passed, checks_failed=failed, warnings=warnings
    )
