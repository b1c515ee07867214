"""Explaining a run: what it was allowed, which path it took, what it called, spent and learned, and why it ended.

Rule 1: every part is read off the turns and the state they add up to; nothing is guessed.
Rule 2: an open run is explained too: where it stands and what it waits for.
Rule 3: the records hold texts as they were said; observe/views/sentence.py makes them fit to print.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from remit.core.failure import ENDINGS, Ending, ErrorCode
from remit.core.journal.commands import AskHuman, StartChild
from remit.core.journal.rulings import UNVERIFIED, Rung
from remit.core.journal.storage import RunEntry
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import BoundaryMode
from remit.core.limits.budget import FIELDS, GAUGES, Dimension
from remit.core.limits.tier import TIERS
from remit.core.limits.tools import MUTATING, ToolDefinition
from remit.core.record import Record
from remit.core.run.contract import CallStatus, ToolCallMade
from remit.core.run.halt import HALTED
from remit.core.run.lifecycle import LoopState
from remit.core.run.manifest import Manifest
from remit.core.run.signals import packet_id
from remit.core.work.goal import Task
from remit.core.work.graph import NodeKind
from remit.kernel.authority.boundary_checks import needs_a_person
from remit.kernel.authority.graph_tier import tier_of
from remit.kernel.people.outdated import reasons_shown
from remit.kernel.results.proven_effects import tools_uncommitted, tools_unverified
from remit.kernel.results.tasks import task_of
from remit.kernel.state import RunState, pinned, questions, standing_at, waiting_for
from remit.observe.cost.charges import totalled
from remit.observe.cost.like_runs import Need, Stopped, early_stop, needs_of
from remit.observe.figures import readable
from remit.observe.reading import Reading
from remit.observe.steps import CANCEL, FAILED, LOST, PerformedStep, StepKind
from remit.observe.views.calls_made import calls_made, unallowed
from remit.observe.views.execution import selected_tools, why_ended
from remit.observe.views.late_outcomes import NOTHING_BELOW, EffectsBeneath, in_doubt
from remit.observe.views.plans_and_votes import ChildTold, StepTold, VoteTold, children_told, steps_told, vote_told


class Allowed(Record):
    """What the run was allowed: boundary, tools, and what needs a person first."""

    boundary: str
    boundary_version: str
    tools: tuple[str, ...]
    permissions: tuple[str, ...]
    approval_effects: tuple[str, ...]
    approval_tools: tuple[str, ...]
    # The tier of autonomy that the graph has, and the highest that the boundary allows.
    tier: int
    tier_title: str
    tier_max: int


class Called(Record):
    """What became of the calls of one tool. `refusals` are the codes and how often each was given."""

    tool: str
    made: int = 0
    committed: int = 0
    failed: int = 0
    in_doubt: int = 0
    under_way: int = 0
    refused: int = 0
    refusals: tuple[tuple[str, int], ...] = ()
    # Those that returned and that nothing could have refused.
    unverified: int = 0
    # Those that returned after the ending.
    late: int = 0


class Spent(Record):
    """What was used of one dimension, what is reserved, and the cap with what people released, which is told apart.

    What an ended run holds for calls in doubt counts as used, and `in_doubt` says how much that is.
    """

    dimension: str
    used: int
    cap: int
    reserved: int = 0
    released: int = 0
    in_doubt: int = 0


class ExplainedObservation(Record):
    """An observation that became task state: which call, settled by which turn, what verified it, its evidence.

    Of a read that nothing checks, the verifier is `observed`: it was seen, and is not called verified.
    """

    tool: str
    command_id: str
    seq: int
    verifier: str
    evidence: str
    # The run beneath that observed it; empty where it was this one.
    run_id: str = ""


class Question(Record):
    """What a person is asked: the packet to answer, why, and until when."""

    packet_id: str
    code: str
    tool: str
    reasons: tuple[str, ...]
    expires_at_ms: int


class RunStanding(Record):
    """How the run ended, or how it stands: `status` is ended, waiting, halted, paused or open.

    `receives` has authority next. `by` cancelled, paused or halted it. A halt of dispatch says why, and in `error` what is
    halted.
    """

    status: str
    code: str = ""
    error: str = ""
    reason: str = ""
    by: str = ""
    node: str = ""
    receives: str = ""
    questions: tuple[Question, ...] = ()
    # Child runs that wait for a person on this run's behalf.
    children: tuple[str, ...] = ()
    # Runs beneath it that rest until they are resumed, and who paused each.
    paused: tuple[str, ...] = ()
    paused_by: tuple[str, ...] = ()


class Explanation(Record):
    """A run, answered for."""

    run_id: str
    allowed: Allowed
    path: tuple[str, ...]
    models: tuple[str, ...]
    calls: tuple[Called, ...]
    spent: tuple[Spent, ...]
    observations: tuple[ExplainedObservation, ...]
    uncommitted: tuple[str, ...]
    standing: RunStanding
    turns: int
    addenda: int = 0
    # Of a plan, its steps; of a run with a vote, what that came to; and the runs beneath, by what they are to this one.
    steps: tuple[StepTold, ...] = ()
    vote: VoteTold | None = None
    children: tuple[ChildTold, ...] = ()
    # Why it was stopped before its budget was spent; and what an open run still needs, as runs like it did.
    stopped: Stopped | None = None
    # What a boundary that only audits would have refused or held: tool, code or judgement, and why.
    noted: tuple[tuple[str, str, str], ...] = ()
    needs: tuple[Need, ...] = ()
    # What kind of task it is and who says so; and what its caller is warned of, where it ended all the same.
    task: Task | None = None
    warnings: tuple[str, ...] = ()
    # Tools that changed something as far as is known, and that nothing could verify.
    unverified: tuple[str, ...] = ()
    # The orders that calls carried out: the tool, and which order it was.
    orders: tuple[tuple[str, str], ...] = ()


class Told(Record):
    """A run and everything it says about itself."""

    entry: RunEntry
    turns: tuple[Turn, ...]
    manifest: Manifest
    reading: Reading
    explanation: Explanation
    # The loop states it went through, the last of which is where it stands.
    loop: tuple[LoopState, ...] = ()
    # The calls of tools that failed, each as it stood then.
    failed: tuple[PerformedStep, ...] = ()


class DoneBeneath(NamedTuple):
    """What the runs beneath one did: their calls, the largest of each gauge that one of them reached, what they observed.

    `uncommitted` is what those left that tell the run nothing: they are under way, or were cut off with it.
    """

    calls: Sequence[ToolCallMade] = ()
    gauges: Mapping[int, int] = MappingProxyType({})
    observations: tuple[ExplainedObservation, ...] = ()
    uncommitted: tuple[str, ...] = ()

    def with_more(self, other: "DoneBeneath") -> "DoneBeneath":
        """With what others did."""
        largest = totalled([tuple(self.gauges.items()), tuple(other.gauges.items())])
        return DoneBeneath(
            (*self.calls, *other.calls),
            largest,
            (*self.observations, *other.observations),
            (*self.uncommitted, *other.uncommitted),
        )


def done_by(state: RunState, reading: Reading, beneath: DoneBeneath, *, has_told: bool) -> DoneBeneath:
    """What a run beneath another did, with those beneath it; one that has told the other how it ended left nothing else."""
    own = DoneBeneath(calls_made(state), reading.gauges(), _observed(state, state.run_id), tools_uncommitted(state))
    done = own.with_more(beneath)
    return done._replace(uncommitted=()) if has_told else done


def _observed(state: RunState, run_id: str) -> tuple[ExplainedObservation, ...]:
    return tuple(
        ExplainedObservation(
            trace.tool,
            command_id,
            seq=trace.seq,
            verifier=trace.verifier,
            evidence=trace.evidence.hex(),
            run_id=run_id,
        )
        for command_id, trace in state.calls.made.items()
        if trace.rung is Rung.COMMITTED
    )


def explain(
    state: RunState,
    reading: Reading,
    below: EffectsBeneath = NOTHING_BELOW,
    beneath: DoneBeneath = DoneBeneath(),  # noqa: B008 - a record that nothing changes
) -> Explanation:
    """What can be said of a run that has started; the reading is of the turns that add up to the state.

    `below` is what runs beneath it left in doubt, and `beneath` what they did.
    """
    gauges = beneath.with_more(DoneBeneath((), reading.gauges())).gauges
    manifest = pinned(state)
    steps, vote = steps_told(reading), vote_told(reading)
    until_ms = state.at_ms if state.end.ending is None else reading.ended_at_ms
    calls = _calls((*calls_made(state), *beneath.calls))
    return Explanation(
        run_id=state.run_id,
        allowed=_allowed(state),
        path=tuple([entered.name for entered, _ in reading.visits[1:]]),
        models=tuple(model.name for model in manifest.models),
        calls=calls,
        spent=tuple([one for one in spent_of(state, until_ms, gauges) if one.used or one.reserved]),
        observations=(*_observed(state, ""), *beneath.observations),
        uncommitted=tuple(dict.fromkeys([*tools_uncommitted(state), *beneath.uncommitted])),
        standing=_standing(state, reading, steps, vote),
        turns=reading.turns,
        addenda=state.end.addenda,
        steps=steps,
        vote=vote,
        children=children_told(reading),
        stopped=early_stop(reading.stopped),
        noted=tuple([(note.tool, note.code or note.judgement, note.reason) for note in reading.noted]),
        needs=needs_of(state),
        task=task_of(manifest),
        warnings=(*state.result.warnings, *in_doubt(state, below), *unallowed(state)),
        # Of a child that is gone, what it left is told by its parent alone.
        unverified=tuple(dict.fromkeys([*[call.tool for call in calls if call.unverified], *tools_unverified(state)])),
        orders=tuple([(step.name, step.order) for step in reading.steps.values() if step.order]),
    )


def _allowed(state: RunState) -> Allowed:
    manifest = pinned(state)
    boundary = manifest.boundary
    tools = selected_tools(state)
    tier = tier_of(manifest.graph, manifest.tools, boundary)
    return Allowed(
        boundary=boundary.name,
        boundary_version=manifest.versions.boundary,
        tools=tools,
        permissions=boundary.permissions,
        approval_effects=tuple(effect.value for effect in boundary.approval_effects),
        approval_tools=tuple(name for name in tools if _is_asked_about(state, state.derived.tools[name])),
        tier=tier.value,
        tier_title=TIERS[tier].title,
        tier_max=boundary.tier_max,
    )


def _is_asked_about(state: RunState, tool: ToolDefinition) -> bool:
    """Whether every call of a tool is a person's to allow: untraced, every change is."""
    manifest = pinned(state)
    if manifest.boundary.mode is BoundaryMode.AUDIT:
        return False
    is_frozen = not manifest.caps[Dimension.SIDE_EFFECTS]
    is_untraced_change = tool.effect in MUTATING and (is_frozen or manifest.boundary.authority is None)
    return is_untraced_change or bool(needs_a_person(tool, manifest.boundary))


def _calls(made: Sequence[ToolCallMade]) -> tuple[Called, ...]:
    """The calls per tool, in the order in which each tool was first called, then those that were only refused."""
    by_tool: dict[str, list[ToolCallMade]] = {}
    for call in sorted(made, key=lambda call: call.status is CallStatus.REFUSED):
        by_tool.setdefault(call.name, []).append(call)
    return tuple([_called(tool, own) for tool, own in by_tool.items()])


def _called(tool: str, own: Sequence[ToolCallMade]) -> Called:
    fates = Counter(call.status for call in own)
    codes = Counter(call.code for call in own if call.status is CallStatus.REFUSED)
    return Called(
        tool,
        made=len(own) - fates[CallStatus.REFUSED],
        committed=fates[CallStatus.COMMITTED],
        failed=fates[CallStatus.FAILED],
        in_doubt=fates[CallStatus.OUTCOME_UNKNOWN],
        under_way=fates[CallStatus.ATTEMPTED],
        refused=fates[CallStatus.REFUSED],
        refusals=tuple(codes.items()),
        unverified=sum(call.code == UNVERIFIED and not call.is_late for call in own),
        late=sum(call.is_late and not call.code for call in own),
    )


def spent_of(state: RunState, until_ms: int, gauges: Mapping[int, int]) -> list[Spent]:
    """What was used of every dimension, of the gauges the largest that the run reached.

    The clock of a run stands still for people, and stops for good when it ends. What an ended run still holds belongs to
    calls in doubt, whose cost is unknown: it counts as used, as it does for the quota.
    """
    none = [0] * len(FIELDS)
    reserved, doubted = (state.reserved, none) if state.end.ending is None else (none, state.reserved)
    used = [
        gauges.get(dimension, 0) if dimension in GAUGES else amount + doubted[dimension]
        for dimension, amount in enumerate(state.used)
    ]
    stood_ms = state.clock.stood_ms + (state.at_ms - state.clock.standing_since_ms if state.clock.is_standing else 0)
    used[Dimension.WALL_CLOCK_MS] = until_ms - state.clock.started_at_ms - stood_ms
    caps = state.spending.caps
    released = [cap - given for cap, given in zip(caps, pinned(state).caps, strict=True)]
    return [Spent(*row) for row in zip(FIELDS, used, caps, reserved, released, doubted, strict=True)]


def _standing(state: RunState, reading: Reading, steps: Sequence[StepTold], vote: VoteTold | None) -> RunStanding:
    node = standing_at(state).name if state.place.node >= 0 else ""
    if state.end.ending is not None:
        row = ENDINGS[state.end.ending]
        return RunStanding(
            status="ended",
            code=state.end.ending.value,
            error="" if state.end.error is None else state.end.error.value,
            reason=_reason(state, state.end.ending, steps, vote),
            by=_cancelled_by(reading) if state.end.ending is Ending.USER_CANCEL else "",
            node=node,
            receives=_receiver(reading) or row.receives,
        )
    if (halt := state.place.halted) is not None:
        return RunStanding(status="halted", code=HALTED, error=halt.what, reason=halt.why, by=halt.by, node=node)
    asked = tuple(_question(state, question) for question in questions(state))
    if (code := waiting_for(state)) is not None:
        held = (state.commands.open[command_id] for command_id in state.children.waiting)
        return RunStanding(
            status="waiting",
            code=code.value,
            node=node,
            receives=ENDINGS[code].receives,
            questions=asked,
            children=tuple(command.run_id for command in held if isinstance(command, StartChild)),
        )
    if state.place.paused:
        return RunStanding("paused", by=reading.paused_by, node=node)
    return RunStanding("open", node=node)


def _receiver(reading: Reading) -> str:
    """Whom the ending hands authority to, and how grave it is; empty where it hands nothing on."""
    escalation = None if reading.ended is None else reading.ended.escalation
    if escalation is None:
        return ""
    return f"the queue {escalation.queue} ({escalation.trigger.replace('_', ' ')}, severity {escalation.severity})"


# Why a run ended, where its ending says everything there is to say.
_REASONS: dict[Ending, str] = {
    Ending.SUCCESS: "it answered and no effect was left uncommitted; nothing checked the answer",
    Ending.USER_CANCEL: "it was cancelled",
    Ending.TIMEOUT: "its time was up",
}


# What stands before a message that names no subject of its own.
_WHAT: dict[ErrorCode, str] = {
    ErrorCode.ORCHESTRATION_NO_CONSENSUS: "there was no consensus",
    ErrorCode.ORCHESTRATION_PLAN_FAILED: "no plan could be made",
    ErrorCode.ORCHESTRATION_STEP_MISMATCH: "a step cannot work on what it was given",
}


def _reason(state: RunState, ending: Ending, steps: Sequence[StepTold], vote: VoteTold | None) -> str:
    """Why a run ended; of a plan, the step that it came to grief at is named."""
    message = readable(why_ended(state)) or _REASONS.get(ending, "")
    if ending is Ending.SUCCESS and _has_checked_answer(state):
        message = "it answered, every check passed and no effect was left uncommitted"
    if state.end.error is not None and (what := _WHAT.get(state.end.error)) is not None:
        return f"{what}: {message}"
    if state.end.error is not None and _has_no_answer(vote):
        return f"no replica answered: {message}"
    failed = next((step.name for step in steps if step.status == FAILED), "")
    if not failed or message.startswith(f"step {failed}"):
        return message
    return f"step {failed} failed: {message}" if message else f"step {failed} failed"


def _has_checked_answer(state: RunState) -> bool:
    """Whether anything could have turned the answer away: its shape, its goal, a validator or a judge."""
    manifest = pinned(state)
    has_validator = any(node.kind is NodeKind.VALIDATE and node.code for node in manifest.graph.nodes)
    return has_validator or manifest.goal is not None or manifest.request.output.schema is not None


def _has_no_answer(vote: VoteTold | None) -> bool:
    return vote is not None and all(one.status in (FAILED, LOST) for one in vote.replicas)


def _cancelled_by(reading: Reading) -> str:
    told = (step.by for step in reading.steps.values() if step.kind is StepKind.SIGNAL and step.name == CANCEL)
    return next(told, "")


def _question(state: RunState, asked: AskHuman) -> Question:
    tool = "" if asked.packet is None else asked.packet.call.tool
    reasons = (asked.question,) if asked.packet is None else reasons_shown(state, asked)
    return Question(packet_id(state.run_id, asked.id), asked.ending.value, tool, reasons, asked.expires_at_ms)
