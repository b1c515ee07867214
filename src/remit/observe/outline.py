"""The outline of a run: its turns as a tree, from the run to its visits of nodes to what was done at each.

Rule 1: it is read off the turns alone, once from front to back, so a run of any length takes its length.
Rule 2: a step stands where it was ordered, whenever its outcome came.
"""

from collections.abc import Iterable, Iterator

from remit.core.arrivals import (
    ChildEnded,
    ChildSuspended,
    ModelAnswered,
    RunStarted,
    TimerFired,
    ToolOutcomeLost,
)
from remit.core.commands import COMMANDS, Command, SetTimer, StartChild
from remit.core.events import Turn
from remit.core.manifest import Manifest
from remit.core.record import Record, Text, replace
from remit.core.rulings import (
    AddendumNoted,
    CallSettled,
    CheckFailed,
    ChildHeld,
    CommandSettled,
    GroundingViolated,
    NodeEntered,
    OutcomeDoubted,
    QuestionSettled,
    RetryPlanned,
    RunEnded,
    Rung,
    StepFinished,
    ToolCallRefused,
    UsageExceeded,
    ValidatorHeard,
    VoteCounted,
)
from remit.observe.gave import beginning, gave
from remit.observe.places import Places, places_of, vote_words
from remit.observe.steps import (
    CUT_OFF,
    IN_DOUBT,
    Changes,
    Step,
    StepKind,
    outcome_of,
    status_settled,
    step_of,
    told_by_people,
)

# They say how a command stands, and leave it open.
_NO_OUTCOME = (ChildSuspended, ToolOutcomeLost)


class Visit(Record):
    """One stay at a node, and what was done there. `outcome` is what led to it; a run begins at no node."""

    node: str
    outcome: str
    seq: int
    began_ms: int
    duration_ms: int
    steps: tuple[Step, ...]


class Outline(Record):
    """A run as a tree."""

    run_id: str
    request: Text
    boundary: str
    user_id: str
    turns: int
    duration_ms: int
    visits: tuple[Visit, ...]
    ending: str = ""
    error: str = ""
    reason: str = ""
    # How many turns at the beginning are not told.
    left_out: int = 0


def outline(turns: Iterable[Turn], *, last: int = 0) -> Outline:
    """The tree of a run that has started; with `last`, only what the last so many turns had a part in."""
    outliner = _Outliner()
    for turn in turns:
        outliner.take(turn)
    return outliner.told(last)


def steps_in(told: Outline) -> Iterator[Step]:
    """Every step, visit by visit, in the order in which each began."""
    return (step for visit in told.visits for step in visit.steps)


class _Outliner:
    """Takes turns, one after the other, and keeps the tree that they make so far."""

    def __init__(self) -> None:
        self._manifest: Manifest | None = None
        self._places: Places | None = None
        self._began_at_ms = self._now_ms = 0
        self._turn: Turn | None = None
        self._turns = 0
        # The steps by key, which is the command's id where there is one; the keys of each visit, in order.
        self._steps: dict[str, Step] = {}
        self._visits: list[Visit] = [Visit("", "", 0, 0, 0, ())]
        self._keys: list[list[str]] = [[]]
        # How many children each node has declared, which of them are voted on, and what the steps of a plan gave.
        self._declared: dict[str, int] = {}
        self._replicas: list[str] = []
        self._outputs: dict[str, Text] = {}
        # Timers that have not fired.
        self._timers: dict[str, SetTimer] = {}
        self._ended: RunEnded | None = None
        self._ended_ms = 0

    def take(self, turn: Turn) -> None:
        """Add a turn."""
        if isinstance(turn.arrival, RunStarted):
            self._manifest, self._began_at_ms = turn.arrival.manifest, turn.at_ms
            self._places = places_of(turn.arrival.manifest.graph)
        self._turn, self._turns = turn, self._turns + 1
        self._now_ms = turn.at_ms - self._began_at_ms
        self._hear(turn.arrival)
        for decision in turn.decisions:
            self._note(decision)

    def told(self, last: int) -> Outline:
        """The tree, closed where the run has come to."""
        manifest, ended = self._manifest, self._ended
        assert manifest is not None, "the first turn pins the manifest"
        first = max(self._turns - last, 0) if last > 0 else 0
        until_ms = self._now_ms if ended is None else self._ended_ms
        return Outline(
            run_id=manifest.run_id,
            request=manifest.request.messages[-1].content,
            boundary=manifest.boundary.name,
            user_id=manifest.request.user_id,
            turns=self._turns,
            duration_ms=until_ms,
            visits=tuple(self._closed(first, until_ms)),
            ending="" if ended is None else ended.ending.value,
            error="" if ended is None or ended.error is None else ended.error.value,
            reason="" if ended is None else ended.message,
            left_out=first,
        )

    def _closed(self, first: int, until_ms: int) -> Iterator[Visit]:
        """The visits that the turns from `first` on had a part in, each with its steps and as long as it took."""
        left_ms = [visit.began_ms for visit in self._visits[1:]] + [until_ms]
        for visit, keys, left in zip(self._visits, self._keys, left_ms, strict=True):
            steps = tuple(step for key in keys if _is_recent(step := self._steps[key], first))
            if steps or (visit.node and visit.seq >= first):
                # What arrives after the ending stretches nothing.
                yield replace(visit, duration_ms=max(left - visit.began_ms, 0), steps=steps)

    def _hear(self, arrival: object) -> None:
        """What arrived, written to the step that it answers; what people say unasked is a step of its own."""
        key: str = getattr(arrival, "command_id", "")
        if key in self._steps:
            until = {} if isinstance(arrival, _NO_OUTCOME) else self._until(self._steps[key], arrival)
            self._change(key, {**outcome_of(arrival), **until})
        elif isinstance(arrival, TimerFired) and key in self._timers:
            self._remark(StepKind.TIMER, self._timers.pop(key).purpose.value, {"status": "fired"})
        elif (told := told_by_people(arrival)) is not None:
            what, by, words = told
            self._remark(StepKind.SIGNAL, what, {"status": "heard", "by": by, "asked": words})

    def _note(self, decision: object) -> None:
        """What was ruled of a step, or of the run."""
        match decision:
            case NodeEntered():
                self._visits.append(Visit(decision.node, str(decision.outcome), self._seq, self._now_ms, 0, ()))
                self._keys.append([])
            case CommandSettled() | CallSettled():
                self._settle(decision)
            case QuestionSettled() if decision.command_id in self._steps:
                until = self._until(self._steps[decision.command_id], None)
                self._change(decision.command_id, {"status": decision.answer.value, "by": decision.by, **until})
            case OutcomeDoubted():
                self._change(decision.command_id, {"status": IN_DOUBT, "reason": decision.reason})
            case RetryPlanned():
                self._change(decision.command_id, {"status": "failed, tried again", "code": decision.code.value})
            case ChildHeld():
                self._change(decision.command_id, {"status": f"waits for a person, first for {decision.waiting_for}"})
            case ValidatorHeard():
                self._change(decision.command_id, {"name": decision.name, "reason": "; ".join(decision.problems)})
            case RunEnded():
                self._ended, self._ended_ms = decision, self._now_ms
            case _:
                self._begin(decision)

    def _begin(self, decision: object) -> None:
        """What is a step from here on."""
        match decision:
            case ToolCallRefused():
                said = {"code": decision.code, "reason": decision.reason, "asked": self._arguments(decision)}
                self._remark(
                    StepKind.REFUSED, decision.tool, {"status": "refused", "rung": Rung.INTENDED.value, **said}
                )
            case CheckFailed():
                self._remark(StepKind.NOTE, "the answer did not pass", {"reason": "; ".join(decision.problems)})
            case UsageExceeded():
                self._remark(StepKind.NOTE, "more was used than was reserved", {"charged": decision.over})
            case GroundingViolated():
                found = "warned of" if decision.only_warns else "claimed and never observed"
                self._remark(StepKind.NOTE, found, {"reason": "; ".join(decision.claims)})
            case AddendumNoted():
                self._remark(StepKind.NOTE, "after the ending", {"reason": decision.about})
            case StepFinished():
                self._finish(decision)
            case VoteCounted():
                self._count(decision)
            case SetTimer():
                self._timers[decision.id] = decision
            case _ if type(decision) in COMMANDS:
                self._order(decision)  # type: ignore[arg-type]  # the set holds commands

    def _order(self, command: Command) -> None:
        step = step_of(command, self._seq, self._now_ms)
        if step is None:
            return
        if isinstance(command, StartChild) and command.node and self._places is not None:
            number = self._declared[command.node] = self._declared.get(command.node, 0) + 1
            # What a step is fed was told by the step that gave it.
            asked = "" if self._places.step(command.node) else step.asked
            step = replace(step, name=self._places.child(command.node, number), asked=asked)
            self._replicas += [command.id] if self._places.is_voter(command.node) else []
        self._add(command.id, step)

    def _finish(self, finished: StepFinished) -> None:
        """Tell what a step of a plan gave; what its code returned is said there, and not twice."""
        made = self._steps.get(finished.command_id)
        text: Text = self._fed(finished.step) if finished.is_passed_on else "" if made is None else made.answered
        self._outputs[finished.step] = text
        is_code = made is not None and made.kind is StepKind.CODE and not finished.is_passed_on
        if is_code:
            self._change(finished.command_id, {"answered": ""})
        verb = "passed on" if finished.is_passed_on else "gave"
        changes = {
            "status": f"{verb} {gave(finished.kind, text)}",
            "answered": beginning(finished.kind, text) if is_code else "",
        }
        self._remark(StepKind.STEP, finished.step, changes)

    def _fed(self, step: str) -> Text:
        """What a step was fed, which it hands on where it only looked at it."""
        graph = None if self._manifest is None else self._manifest.graph
        feeds = () if graph is None else (node.feed for node in graph.nodes if node.name == step)
        feed = next((feed for feed in feeds if feed is not None), None)
        if feed is None:
            return ""
        return self._outputs.get(feed.source, "") if feed.source else feed.value

    def _count(self, counted: VoteCounted) -> None:
        winner = self._steps.get(counted.winner)
        asked = sum(1 for key in self._replicas if self._steps[key].until_seq >= 0)
        name = vote_words(counted, "one" if winner is None else winner.name, asked)
        self._remark(StepKind.VOTE, name, {})

    def _settle(self, ruling: CommandSettled | CallSettled) -> None:
        step = self._steps.get(ruling.command_id)
        if step is None:
            return
        changes: Changes = {"charged": ruling.charged}
        if step.until_seq < 0:
            cut_ms = self._now_ms - step.began_ms
            changes |= {"status": CUT_OFF, "until_seq": self._seq, "duration_ms": cut_ms}
        if isinstance(ruling, CallSettled):
            status = status_settled(ruling, replace(step, **changes))
            changes |= {"rung": ruling.rung.value, "code": ruling.code or step.code, "status": status}
        self._change(ruling.command_id, changes)

    def _arguments(self, refused: ToolCallRefused) -> Text:
        """The arguments of a call that was refused, as the answer of this turn proposed it."""
        arrival = None if self._turn is None else self._turn.arrival
        calls = arrival.calls if isinstance(arrival, ModelAnswered) else ()
        return next((call.arguments for call in calls if call.call_id == refused.call_id), "")

    @property
    def _seq(self) -> int:
        return self._turns - 1

    def _until(self, step: Step, arrival: object) -> Changes:
        measured_ms: int = getattr(arrival, "duration_ms", 0)
        if not isinstance(arrival, ChildEnded):
            # The models of a child answered in less time than the child took.
            measured_ms = measured_ms or getattr(getattr(arrival, "usage", None), "duration_ms", 0)
        return {"until_seq": self._seq, "duration_ms": measured_ms or self._now_ms - step.began_ms}

    def _change(self, key: str, changes: Changes) -> None:
        if key in self._steps:
            self._steps[key] = replace(self._steps[key], **changes)

    def _add(self, key: str, step: Step) -> None:
        self._steps[key] = step
        self._keys[-1].append(key)

    def _remark(self, kind: StepKind, name: str, changes: Changes) -> None:
        """A step that is over as soon as it is told."""
        told = Step(kind, name, self._seq, self._now_ms, "noted", self._seq, 0)
        self._add(f"{self._seq}:{len(self._keys[-1])}:{len(self._steps)}", replace(told, **changes))


def _is_recent(step: Step, first: int) -> bool:
    """Whether a turn from this one on had a part in a step; one without an outcome is as recent as can be."""
    return step.until_seq < 0 or step.until_seq >= first
