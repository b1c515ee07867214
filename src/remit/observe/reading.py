"""Reading a journal, for every view: what happened in a run, turn by turn and step by step.

Rule 1: it takes turns, one after the other, and nothing else; a watcher of a run and a later reader of its journal read
        the same. A turn takes the time of the turn, so a run of any length takes its length.
Rule 2: a turn is told as facts, in the order of its records: what came back first, then what was ruled and ordered. A fact
        holds its step as it stands then. A step stands where it was ordered, whenever its outcome came.
Rule 3: everything told is plain data; views, bills and logs look at facts, steps and visits, and at no
        arrival, ruling or command.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from remit.core.journal.arrivals import (
    ChildEnded,
    ChildSuspended,
    ModelAnswered,
    ModelFailed,
    RunForked,
    RunStarted,
    TextShown,
    TimerFired,
    ToolOutcomeLost,
    ToolReturned,
)
from remit.core.journal.commands import COMMANDS, Command, SetTimer, StartChild, place_in_journal
from remit.core.journal.rulings import (
    UNALLOWED,
    AddendumNoted,
    ApprovalCounted,
    CallNoted,
    CallSettled,
    CheckFailed,
    ChildHeld,
    ChildReleased,
    CommandSettled,
    CommandsWithheld,
    EffectUnallowed,
    GroundingViolated,
    NodeEntered,
    OutcomeContradicted,
    OutcomeDoubted,
    QuestionSettled,
    RetryPlanned,
    RunEnded,
    Rung,
    RunPaused,
    RunResumed,
    StepFinished,
    StoppedEarly,
    ToolCallRefused,
    UsageExceeded,
    ValidatorHeard,
    VoteCounted,
)
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Charges, Dimension
from remit.core.record import Text, replace
from remit.core.run.manifest import Manifest
from remit.kernel.results.proven_effects import contradicted_by
from remit.kernel.state import RunState, pinned, standing_at
from remit.observe.fact import Fact, FactKind
from remit.observe.node_names import Places, beginning, gave, places_of, vote_words
from remit.observe.steps import (
    CUT_OFF,
    FAILED,
    IN_DOUBT,
    NOT_ALLOWED,
    UNDER_WAY,
    CallName,
    Changes,
    PerformedStep,
    StepKind,
    begun_step,
    checks_passed,
    gauges_of,
    orders_proposed,
    outcome_of,
    status_settled,
    told_by_people,
)

# They say how a command stands, and leave it open.
_NO_OUTCOME = (ChildSuspended, ToolOutcomeLost)
# What an outcome is of whose order was not read; a call of a tool, unless its kind says otherwise.
_KINDS: Mapping[type, StepKind] = MappingProxyType(
    {
        ModelAnswered: StepKind.MODEL,
        ModelFailed: StepKind.MODEL,
        ChildEnded: StepKind.CHILD,
        QuestionSettled: StepKind.QUESTION,
        ApprovalCounted: StepKind.QUESTION,
    }
)
_OfStep: TypeAlias = ApprovalCounted | OutcomeDoubted | RetryPlanned | ChildHeld | ChildReleased
UNREAD = "a call"
NOT_PASSED = "the answer did not pass"


def reading_of(turns: Iterable[Turn]) -> "Reading":
    """The reading of a run from its first turn on."""
    reading = Reading()
    for turn in turns:
        reading.take(turn)
    return reading


class Reading:
    """Takes the turns of one run and keeps what they come to so far."""

    def __init__(self) -> None:
        self.manifest: Manifest | None = None
        self.places: Places | None = None
        self.turns = 0
        self.node = ""
        # The steps by key, which is the command's id where there is one. Every stay at a node, from one at none on, with the
        # keys of what was done there.
        self.steps: dict[str, PerformedStep] = {}
        self.visits: list[tuple[PerformedStep, list[str]]] = [(PerformedStep(StepKind.NODE, "", 0, 0, ""), [])]
        # The steps that are open, and of those the ones whose outcome is unknown.
        self._open: set[str] = set()
        self._doubted: set[str] = set()
        # What is sent when the run is resumed, and not before.
        self._unsent: set[str] = set()
        # How many children each node has declared, which of them are voted on, and what the steps of a plan gave.
        self._declared: dict[str, int] = {}
        self.replicas: list[str] = []
        self.outputs: dict[str, tuple[str, Text]] = {}
        # The orders that proposed calls equal.
        self._orders: dict[CallName, str] = {}
        # Timers that have not fired.
        self._timers: dict[str, SetTimer] = {}
        # Who paused the run, as long as it is paused.
        self.paused_by = ""
        self.counted: VoteCounted | None = None
        self.noted: list[CallNoted] = []
        self.stopped: StoppedEarly | None = None
        self.ended: RunEnded | None = None
        self.ended_at_ms = self.ended_seq = 0
        self.began_at_ms = self.now_ms = 0
        self._turn: Turn | None = None
        self._facts: list[Fact] = []

    @classmethod
    def of(cls, state: RunState) -> "Reading":
        """The reading of a run that is followed from its middle on: it knows what is under way, as if begun now."""
        reading = cls()
        reading._begin_run(pinned(state), state.clock.started_at_ms)
        reading.turns, reading.now_ms = state.seq + 1, state.at_ms - state.clock.started_at_ms
        reading.node = standing_at(state).name if state.place.node >= 0 else ""
        ended = {child.command_id: child.node for child in state.children.ended}
        for command_id in sorted({**ended, **state.commands.open}, key=place_in_journal):
            if (command := state.commands.open.get(command_id)) is not None:
                reading._order(command)
            else:
                reading._number(ended[command_id])
        return reading

    def take(self, turn: Turn) -> list[Fact]:
        """Read a turn; gives the facts that it tells."""
        facts: list[Fact] = []
        self._facts = facts
        self._turn, self.turns = turn, turn.seq + 1
        if isinstance(turn.arrival, RunStarted):
            self._begin_run(turn.arrival.manifest, turn.at_ms)
            self._of_run(FactKind.STARTED, turn.arrival.manifest.run_id)
        self.now_ms = turn.at_ms - self.began_at_ms
        self._orders |= orders_proposed(turn.arrival)
        self._hear(turn.arrival)
        if isinstance(turn.arrival, RunForked):
            self._unsent.update(self._open)
        for decision in turn.decisions:
            self._note(decision)
        return facts

    def gauges(self) -> dict[int, int]:
        """The largest of each gauge that the run reached itself; the one figure that every view tells."""
        largest = {} if self.manifest is None else {int(Dimension.DEPTH): self.manifest.depth}
        for step in self.steps.values():
            for gauge, amount in gauges_of(step, step.charged):
                largest[gauge] = max(largest.get(gauge, 0), amount)
        return largest

    def doubted(self) -> list[PerformedStep]:
        """The calls that are in doubt."""
        return [step for key, step in self.steps.items() if key in self._doubted]

    def _begin_run(self, manifest: Manifest, at_ms: int) -> None:
        self.manifest, self.began_at_ms = manifest, at_ms
        self.places = places_of(manifest.graph)

    def _hear(self, arrival: object) -> None:
        """What arrived, written to the step that it answers; what people say unasked is a step of its own."""
        key: str = getattr(arrival, "command_id", "")
        if isinstance(arrival, TimerFired):
            if key in self._timers:
                self._remark(StepKind.TIMER, self._timers.pop(key).purpose.value, {"status": "fired"})
        elif (told := told_by_people(arrival)) is not None:
            what, by, words = told
            self._remark(StepKind.SIGNAL, what, {"status": "heard", "by": by, "asked": words})
        elif isinstance(arrival, _NO_OUTCOME):
            self._change(key, outcome_of(arrival))
        elif key and (step := self._step(key, arrival)) is not None:
            self._change(key, {**outcome_of(arrival), **self._until(step, arrival)}, FactKind.HEARD)

    def _note(self, decision: object) -> None:
        """Take in a ruling about a step, or about the run."""
        match decision:
            case NodeEntered():
                self._enter(decision)
            case CommandSettled() | CallSettled():
                self._settle(decision)
            case QuestionSettled():
                self._settle_question(decision)
            case ApprovalCounted():
                self._rule(decision, FactKind.COUNTED, {"by": decision.by})
            case OutcomeDoubted():
                self._doubted.add(decision.command_id)
                self._rule(decision, FactKind.DOUBTED, {"status": IN_DOUBT, "reason": decision.reason})
            case RetryPlanned():
                failed = {"status": "failed, tried again", "code": decision.code.value}
                self._rule(decision, FactKind.RETRIED, failed, count=decision.attempt)
            case ChildHeld():
                code = decision.waiting_for.value
                held = {"status": f"waits for a person, first for {code}", "waiting_for": code}
                self._rule(decision, FactKind.HELD, held)
            case ChildReleased():
                self._rule(decision, FactKind.RELEASED, {"status": UNDER_WAY, "waiting_for": ""})
            case ValidatorHeard():
                self._change(decision.command_id, {"name": decision.name, "reason": "; ".join(decision.problems)})
            case _:
                self._note_of_run(decision)

    def _note_of_run(self, decision: object) -> None:
        match decision:
            case RunPaused() | RunResumed():
                kind = FactKind.PAUSED if isinstance(decision, RunPaused) else FactKind.RESUMED
                self._of_run(kind, kind.value, {"by": decision.by})
                self.paused_by = decision.by if kind is FactKind.PAUSED else ""
                if kind is FactKind.RESUMED:
                    self._send()
            case CommandsWithheld():
                self._unsent.update(decision.command_ids)
            case RunEnded():
                assert self._turn is not None, "a turn is read"
                self.ended, self.ended_at_ms, self.ended_seq = decision, self._turn.at_ms, self._seq
                code = "" if decision.error is None else decision.error.value
                self._of_run(FactKind.ENDED, decision.ending.value, {"code": code, "reason": decision.message})
            case CallNoted():
                self.noted.append(decision)
            case OutcomeContradicted():
                told = f"{decision.command_id} was said not to have happened"
                self._remark(StepKind.NOTE, "returned after all", {"reason": told})
            case StoppedEarly():
                self.stopped = self.stopped or decision
            case _:
                self._begin(decision)

    def _send(self) -> None:
        """Tell which children begin only now: a halt withheld them, or the run that this is a copy of had ordered them."""
        for key in [key for key in self.steps if key in self._unsent & self._open]:
            if self.steps[key].kind is StepKind.CHILD:
                self._change(key, {}, FactKind.SENT)
        self._unsent.clear()

    def _begin(self, decision: object) -> None:
        """Begin the step that a decision is, or remark what it says."""
        match decision:
            case ToolCallRefused():
                said = {"code": decision.code, "reason": decision.reason, "asked": self._arguments(decision)}
                refused = {"status": "refused", "rung": Rung.INTENDED.value, "tool": decision.tool}
                self._remark(StepKind.REFUSED, decision.tool, {**refused, **said})
            case EffectUnallowed():
                self._tell_unallowed(decision)
            case CheckFailed():
                self._remark(StepKind.NOTE, NOT_PASSED, {"reason": "; ".join(decision.problems)})
            case UsageExceeded():
                self._remark(StepKind.NOTE, "more was used than was reserved", {"charged": decision.over})
            case GroundingViolated():
                found = "warned of" if decision.only_warns else "claimed and never observed"
                self._remark(StepKind.NOTE, found, {"reason": "; ".join(decision.claims)})
            case AddendumNoted():
                self._remark(StepKind.NOTE, "after the ending", {"reason": decision.about})
                if decision.about in self.steps:
                    self._find_late(decision.about)
                    self._settle_as_reserved(decision.about)
            case StepFinished():
                self._finish(decision)
            case VoteCounted():
                self._count(decision)
            case SetTimer():
                self._timers[decision.id] = decision
            case _ if type(decision) in COMMANDS:
                self._order(decision)  # type: ignore[arg-type]  # the set holds commands

    def _enter(self, entered: NodeEntered) -> None:
        self.node, outcome = entered.node, str(entered.outcome)
        visit = PerformedStep(StepKind.NODE, self.node, self._seq, self.now_ms, outcome, node=self.node)
        self.visits.append((visit, []))
        self._tell(FactKind.ENTERED, visit)

    def _order(self, command: Command) -> None:
        step = begun_step(command, self._seq, self.now_ms, self.node, self._orders)
        if step is None:
            return
        if isinstance(command, StartChild) and command.node and self.places is not None:
            number = self._number(command.node)
            # What a step is fed was told by the step that gave it.
            asked = "" if self.places.step(command.node) else step.asked
            step = replace(step, name=self.places.child(command.node, number), asked=asked, node=command.node)
            self.replicas += [command.id] if self.places.is_voter(command.node) else []
        self._open.add(command.id)
        self._add(command.id, step)
        self._tell(FactKind.BEGUN, step)

    def _number(self, node: str) -> int:
        """Count the children that a node declares; gives the number of the next one, from 1."""
        self._declared[node] = self._declared.get(node, 0) + 1
        return self._declared[node]

    def _tell_unallowed(self, ruling: EffectUnallowed) -> None:
        """Tell of a call that was made without an order: it is begun and settled as soon as it is told."""
        arrival = None if self._turn is None else self._turn.arrival
        said: Changes = {"tool": ruling.tool, "rung": Rung.OBSERVED.value, "code": UNALLOWED, "reason": ruling.reason}
        if isinstance(arrival, TextShown) and arrival.made is not None:
            call = arrival.made
            said |= {"asked": call.arguments, "answered": arrival.text, "content": arrival.text}
            said |= {"call_id": call.call_id, "arguments_hash": call.arguments_hash}
        told = self._at_once(StepKind.TOOL, ruling.tool, NOT_ALLOWED)
        step = replace(told, id=ruling.id, charged=ruling.charged, **said)
        self._add(ruling.id, step)
        self._tell(FactKind.BEGUN, step)
        self._tell(FactKind.SETTLED, step, charged=ruling.charged)

    def _finish(self, finished: StepFinished) -> None:
        """Tell what a step of a plan gave; what its code returned is said there, and not twice."""
        made = self.steps.get(finished.command_id)
        is_passed_on, kind = finished.is_passed_on, finished.kind.value
        text: Text = self._fed(finished.step) if is_passed_on else "" if made is None else made.answered
        self.outputs[finished.step] = kind, text
        is_code = made is not None and made.kind is StepKind.CODE and not is_passed_on
        if is_code:
            self._change(finished.command_id, {"answered": ""})
        status = f"{'passed on' if is_passed_on else 'gave'} {gave(kind, text)}"
        said = {"status": status, "answered": beginning(kind, text) if is_code else ""}
        # Of a result that was too long for a model, as much as it was shown.
        shown = "" if made is None or is_passed_on else made.content or text
        self._remark(StepKind.STEP, finished.step, said)
        count = checks_passed(self._turn.arrival) if is_passed_on and self._turn is not None else 0
        self._facts[-1] = replace(self._facts[-1], gave=shown, value="" if is_passed_on else kind, count=count)

    def _fed(self, step: str) -> Text:
        """What a step was fed, which it hands on where it only looked at it."""
        graph = None if self.manifest is None else self.manifest.graph
        feeds = () if graph is None else (node.feed for node in graph.nodes if node.name == step)
        feed = next((feed for feed in feeds if feed is not None), None)
        if feed is None:
            return ""
        return self.outputs.get(feed.source, ("", ""))[1] if feed.source else feed.value

    def _count(self, counted: VoteCounted) -> None:
        self.counted, winner = counted, self.steps.get(counted.winner)
        asked = sum(1 for key in self.replicas if self.steps[key].until_seq >= 0)
        self._remark(StepKind.VOTE, vote_words(counted, "one" if winner is None else winner.name, asked), {})

    def _settle(self, ruling: CommandSettled | CallSettled) -> None:
        step = self._step(ruling.command_id, ruling)
        if step is None:
            return
        changes: Changes = {"charged": ruling.charged}
        if step.until_seq < 0:
            cut_ms = self.now_ms - step.began_ms
            changes |= {"status": CUT_OFF, "until_seq": self._seq, "duration_ms": cut_ms}
        if isinstance(ruling, CallSettled):
            status = status_settled(ruling, replace(step, **changes))
            changes |= {"rung": ruling.rung.value, "code": ruling.code or step.code, "status": status}
        self._close(ruling.command_id)
        self._change(ruling.command_id, changes, FactKind.SETTLED, charged=ruling.charged)

    def _settle_question(self, settled: QuestionSettled) -> None:
        if (step := self._step(settled.command_id, settled)) is not None:
            answered = {"status": settled.answer.value, "by": settled.by, **self._until(step, None)}
            self._change(settled.command_id, answered)
            self._settle_as_reserved(settled.command_id)

    def _find_late(self, key: str) -> None:
        """What a tool returned after the ending was observed, unless it contradicts itself, and was committed no more."""
        arrival = None if self._turn is None else self._turn.arrival
        if isinstance(arrival, ToolReturned):
            # The result of an agent elsewhere for a call that was settled has no shape to keep.
            code = contradicted_by(arrival) if key in self._open else ""
            said = {"status": FAILED if code else Rung.OBSERVED.value, "code": code}
            self._change(key, {**said, "rung": Rung.OBSERVED.value, "note": "after the end"})

    def _settle_as_reserved(self, key: str) -> None:
        """Settle a step whose ruling names no charge: it is charged what was set aside."""
        if key in self._open:
            self._close(key)
            self._tell(FactKind.SETTLED, self.steps[key], charged=self.steps[key].reserved)

    def _close(self, key: str) -> None:
        self._open.discard(key)
        self._doubted.discard(key)

    def _arguments(self, refused: ToolCallRefused) -> Text:
        """The arguments of a call that was refused, as the answer of this turn proposed it."""
        arrival = None if self._turn is None else self._turn.arrival
        calls = arrival.calls if isinstance(arrival, ModelAnswered) else ()
        return next((call.arguments for call in calls if call.call_id == refused.call_id), "")

    @property
    def _seq(self) -> int:
        return self.turns - 1

    def _step(self, key: str, told: object) -> PerformedStep | None:
        """The step that something is told of; one whose order was not read is known by that alone."""
        if key not in self.steps and self.manifest is None and not isinstance(told, CommandSettled):
            kind = _KINDS.get(type(told), StepKind.TOOL)
            self.steps[key] = PerformedStep(kind, UNREAD, self._seq, self.now_ms, id=key)
            self._open.add(key)
        return self.steps.get(key)

    def _until(self, step: PerformedStep, arrival: object) -> Changes:
        measured_ms: int = getattr(arrival, "duration_ms", 0)
        took_ms = measured_ms
        if not isinstance(arrival, ChildEnded):
            # The models of a child answered in less time than the child took.
            took_ms = measured_ms or getattr(getattr(arrival, "usage", None), "duration_ms", 0)
        until = {"until_seq": self._seq, "duration_ms": took_ms or self.now_ms - step.began_ms}
        return {**until, "measured_ms": measured_ms}

    def _rule(self, ruling: _OfStep, kind: FactKind, changes: Changes, count: int = 0) -> None:
        if self._step(ruling.command_id, ruling) is not None:
            self._change(ruling.command_id, changes, kind, count=count)

    def _change(
        self, key: str, changes: Changes, kind: FactKind | None = None, charged: Charges = (), count: int = 0
    ) -> None:
        if key in self.steps:
            self.steps[key] = step = replace(self.steps[key], **changes)
            if kind is not None:
                self._tell(kind, step, charged, count)

    def _add(self, key: str, step: PerformedStep) -> None:
        self.steps[key] = step
        self.visits[-1][1].append(key)

    def _at_once(self, kind: StepKind, name: str, status: str) -> PerformedStep:
        """A step that is over as soon as it is told."""
        return PerformedStep(
            kind,
            name,
            seq=self._seq,
            began_ms=self.now_ms,
            status=status,
            until_seq=self._seq,
            duration_ms=0,
            node=self.node,
        )

    def _of_run(self, kind: FactKind, name: str, changes: Changes | None = None) -> None:
        told = self._at_once(StepKind.RUN, name, kind.value)
        self._tell(kind, replace(told, **changes or {}))

    def _remark(self, kind: StepKind, name: str, changes: Changes) -> None:
        """A step that is over as soon as it is told."""
        told = self._at_once(kind, name, "noted")
        step = replace(told, **changes)
        self._add(f"{self._seq}:{len(self.steps)}", step)
        self._tell(FactKind.NOTED, step)

    def _tell(self, kind: FactKind, step: PerformedStep, charged: Charges = (), count: int = 0) -> None:
        self._facts.append(Fact(kind, step, self._seq, self.began_at_ms + self.now_ms, charged, count=count))
