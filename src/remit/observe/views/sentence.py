"""A run in one sentence, as the doctrine wants it: allowed, chose, called, spent, updated, ended because.

Rule 1: it says nothing that the explanation does not hold.
Rule 2: it is one printable line, wherever the words in it come from.
"""

from collections.abc import Sequence
from itertools import zip_longest

from remit.core.limits.verification import OBSERVED_ONLY
from remit.core.work.goal import Task, TaskSource
from remit.observe.cost.like_runs import Need, Stopped
from remit.observe.figures import measured
from remit.observe.node_names import percent
from remit.observe.plain import by_whom, printable_line
from remit.observe.steps import CUT_OFF, FAILED, LOST, UNDER_WAY
from remit.observe.views.explain import Allowed, Called, ExplainedObservation, Explanation, Question, RunStanding, Spent
from remit.observe.views.plans_and_votes import FINISHED, NOT_BEGUN, ReplicaTold, StepTold, VoteTold

# A sentence names so many things of a kind and counts the rest.
NAMED_MAX = 8
NAME_CHARS_MAX = 60
REASON_CHARS_MAX = 300
PATH_NODES_MAX = 12


def sentence(explained: Explanation) -> str:
    """The doctrine's one sentence: allowed, chose, called, spent, updated from verified observations, ended because."""
    parts = (
        f"The agent {_said_allowed(explained.allowed)}",
        *([f"had {said_task(explained.task)}"] if explained.task is not None else []),
        f"chose the path {_said_path(explained.path)}",
        *([_said_steps(explained.steps)] if explained.steps else []),
        *([_said_vote(explained.vote)] if explained.vote is not None else []),
        _said_calls(explained.calls),
        *([_said_orders(explained.orders)] if explained.orders else []),
        _said_spent(explained.spent),
        _said_observations(explained.observations),
        *([f"was stopped early, since {said_stopped(explained.stopped)}"] if explained.stopped is not None else []),
        *([_said_noted(explained.noted)] if explained.noted else []),
        *([f"needs {said_needs(explained.needs)}"] if explained.needs else []),
        *([f"was warned of ({_listed_warnings(explained.warnings)})"] if explained.warnings else []),
        f"and {_said_standing(explained.standing, explained.uncommitted, explained.unverified)}",
    )
    return f"{', '.join(parts)}."


def _said_allowed(allowed: Allowed) -> str:
    said = f"was allowed to call {_names(allowed.tools) if allowed.tools else 'no tool'}"
    notes = [f"tier {allowed.tier} of at most {allowed.tier_max}, {allowed.tier_title}"]
    if allowed.approval_tools:
        notes.append(f"{_names(allowed.approval_tools)} only with a person's approval")
    return f"{said} under the boundary {_name(allowed.boundary)} ({'; '.join(notes)})"


def said_task(task: Task) -> str:
    """What kind of task a run is, and who says so."""
    said = f"a task of class {task.task_class}"
    match task.said_by:
        case TaskSource.CALLER:
            return f"{said} (as its caller says)"
        case TaskSource.BOUNDARY:
            return f"{said} (by the boundary's rule {_name(task.why)})"
        case TaskSource.INFERRED:
            return f"{said} (inferred from {printable_line(task.why, NAME_CHARS_MAX)!r}; it only warns)"


def _listed_warnings(warnings: tuple[str, ...]) -> str:
    return "; ".join(printable_line(warning, REASON_CHARS_MAX) for warning in warnings[:NAMED_MAX])


def _said_noted(noted: tuple[tuple[str, str, str], ...]) -> str:
    said = [f"{_name(tool)}: {_name(code)}, {printable_line(why, REASON_CHARS_MAX)}" for tool, code, why in noted]
    return f"would have been stopped {_times(len(noted))} by a boundary that only audits ({_listed(said)})"


def _said_path(path: tuple[str, ...]) -> str:
    if not path:
        return "of no step"
    shown = [_name(node) for node in path]
    if len(shown) > PATH_NODES_MAX:
        half = PATH_NODES_MAX // 2
        shown = [*shown[:half], f"({len(shown) - 2 * half} more)", *shown[-half:]]
    return " > ".join(shown)


_STANDS = {NOT_BEGUN: "was not begun", UNDER_WAY: "is under way", CUT_OFF: "was cut off", FAILED: "failed"}


def _said_steps(steps: tuple[StepTold, ...]) -> str:
    done = [_name(step.name) for step in steps if step.status == FINISHED]
    notes = [f"{_name(step.name)} sent back {_times(step.sent_back)}" for step in steps if step.sent_back]
    notes += [f"{_name(step.name)} {_STANDS[step.status]}" for step in steps if step.status in _STANDS]
    said = "finished no step" if not done else f"finished {len(done)} of {len(steps)} steps"
    details = [*([_listed(done)] if done else []), *([_listed(notes)] if notes else [])]
    return f"{said} ({'; '.join(details)})" if details else said


def _said_vote(vote: VoteTold) -> str:
    asked = len(vote.replicas)
    lost = [_said_replica(one) for one in vote.replicas if one.status in (FAILED, LOST)]
    said = f"asked {asked} of {vote.wanted} replicas" if asked != vote.wanted else f"asked {asked} replicas"
    if lost:
        said += f" ({_listed(lost)})"
    if not vote.winner:
        return f"{said} and counted no winner"
    return (
        f"{said}, of which {vote.votes} agreed ({percent(vote.confidence_ppm)}) with the winner, replica {vote.winner}"
    )


def _said_replica(replica: ReplicaTold) -> str:
    why = f": {_name(replica.code)}" if replica.code else ""
    return f"replica {replica.number} {'was lost' if replica.status == LOST else replica.status}{why}"


def _said_calls(calls: tuple[Called, ...]) -> str:
    made = [call for call in calls if call.made]
    refused = [call for call in calls if call.refused]
    said = f"called {_listed([_said_call(call) for call in made])}" if made else "called no tool"
    if refused:
        said += f" ({_listed([_said_refusal(call) for call in refused])})"
    return said


def _said_call(call: Called) -> str:
    said = f"{_name(call.tool)} {_times(call.made)}"
    unlike = (
        (call.failed, "failed"),
        (call.unverified, "not verified"),
        (call.in_doubt, "outcome unknown"),
        (call.late, "returned after the end"),
        (call.under_way, "under way"),
    )
    notes = [f"{count} {word}" for count, word in unlike if count]
    return f"{said} [{', '.join(notes)}]" if notes else said


def _said_refusal(call: Called) -> str:
    codes = ", ".join(code for code, _ in call.refusals)
    return f"{_name(call.tool)} was refused {_times(call.refused)}: {_name(codes)}"


def _said_orders(orders: tuple[tuple[str, str], ...]) -> str:
    said = [f"{printable_line(order, REASON_CHARS_MAX)} ({_name(tool)})" for tool, order in orders]
    return f"acted on {_listed(said)}"


def _said_spent(spent: tuple[Spent, ...]) -> str:
    if not spent:
        return "spent nothing"
    return f"spent {_listed([_said_used(entry) for entry in spent], len(spent))}"


def _said_used(entry: Spent) -> str:
    (what, used), (_, cap) = (
        measured(entry.dimension, entry.used),
        measured(entry.dimension, entry.cap - entry.released),
    )
    said = f"{used} of {cap} {what}"
    return f"{said} [{measured(entry.dimension, entry.released)[1]} released]" if entry.released else said


def _said_observations(observations: tuple[ExplainedObservation, ...]) -> str:
    if not observations:
        return "updated no state, since nothing was observed and verified"
    verified = [observation for observation in observations if observation.verifier != OBSERVED_ONLY]
    seen = [observation for observation in observations if observation.verifier == OBSERVED_ONLY]
    kinds = ((verified, "verified "), (seen, "unchecked " if verified else ""))
    return f"updated its state from {' and '.join(_said_seen(some, word) for some, word in kinds if some)}"


def _said_seen(observations: Sequence[ExplainedObservation], word: str) -> str:
    tools = _names(tuple(dict.fromkeys(observation.tool for observation in observations)))
    count = len(observations)
    return f"{count} {word}observation{'s' * (count > 1)} ({tools})"


def said_stopped(stopped: Stopped) -> str:
    """Why a run was stopped before its budget was spent, and what that saved."""
    saved = [" ".join(reversed(measured(dimension, amount))) for dimension, amount in stopped.saved]
    (what, left), (_, needed) = measured(stopped.dimension, stopped.left), measured(stopped.dimension, stopped.needed)
    told = f"{left} {what} were left and at least {needed} needed"
    # What the run would have spent is unknown; it cannot have been more than what was left.
    return f"{told}, which saved at most {_listed(saved, len(saved))}" if saved else told


def said_needs(needs: tuple[Need, ...]) -> str:
    """What an open run still needs, from the least to the most that runs like it needed."""
    every = [_span(need) for need in needs]
    return f"{_listed(every, len(every))} more, as runs like it did"


def _span(need: Need) -> str:
    (what, most), (_, least) = measured(need.dimension, need.most), measured(need.dimension, need.least)
    return f"{most} {what}" if least == most else f"{least} to {most} {what}"


def _said_standing(standing: RunStanding, uncommitted: tuple[str, ...], unverified: tuple[str, ...] = ()) -> str:
    kinds = ((uncommitted, "uncommitted"), (unverified, "unverified"))
    said = [f"{_names(tools)} {word}" for tools, word in kinds if tools]
    left = f", leaving {' and '.join(said)}" if said else ""
    if standing.status == "ended":
        named = standing.code if not standing.error else f"{standing.code} ({standing.error})"
        because = (
            printable_line(standing.reason, REASON_CHARS_MAX).rstrip(".") or f"the condition {standing.code} was met"
        )
        return f"ended as {named} because {because}{left}"
    if standing.status == "waiting":
        if standing.paused and not standing.questions:
            return f"has not ended: it waits at {_name(standing.node)} for {_said_paused(standing)}"
        asked = [_said_question(question) for question in standing.questions]
        asked += [f"what child run {_name(child)} asks" for child in standing.children]
        return (
            f"has not ended: it waits at {_name(standing.node)} under {standing.code} for an answer to {_listed(asked)}"
        )
    if standing.status == "halted":
        why = printable_line(standing.reason, REASON_CHARS_MAX).rstrip(".")
        halted = f"{printable_line(standing.error, NAME_CHARS_MAX)} was halted by {_name(standing.by)}: {why}"
        return f"has not ended: it stands still at {_name(standing.node)} because {halted}"
    if standing.status == "paused":
        return f"has not ended: it is paused at {_name(standing.node)}{by_whom(standing.by)}"
    return f"has not ended: it is under way at {_name(standing.node) or 'its start'}"


def _said_paused(standing: RunStanding) -> str:
    """The runs that a person has to resume, and those beside them that ask something."""
    held = [f"child run {_name(child)}" for child in standing.children if child not in standing.paused]
    paused = zip_longest(standing.paused, standing.paused_by, fillvalue="")
    said = [f"run {_name(child)}, which is paused{by_whom(by)}" for child, by in paused]
    return _listed([*said, *held])


def _said_question(question: Question) -> str:
    about = f" about {_name(question.tool)}" if question.tool else ""
    return f"packet {_name(question.packet_id)}{about}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _name(text: str) -> str:
    return printable_line(text, NAME_CHARS_MAX)


def _names(names: tuple[str, ...]) -> str:
    return _listed([_name(name) for name in names])


def _listed(items: Sequence[str], limit: int = NAMED_MAX) -> str:
    """Items as a sentence lists them; beyond the limit they are counted."""
    shown = list(items) if len(items) <= limit else [*items[:limit], f"{len(items) - limit} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
