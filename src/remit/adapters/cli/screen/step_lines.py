"""What becomes of the steps of a plan and of the replicas of a vote, told as it happens.

Rule 1: a step is told when it begins and when it has given something, a line each; the rest is in `remit show`.
Rule 2: names and outputs are data. They are shortened here and escaped where they are written.
Rule 3: of any other run the calls are told, at a terminal.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from remit.adapters.cli.screen.call_lines import (
    ASKED,
    REASON_CHARS_MAX,
    REFUSED,
    RESULT_CHARS_MAX,
    RETURNED,
    CallTeller,
    short,
)
from remit.adapters.cli.screen.colours import Ink, Line
from remit.adapters.cli.screen.response_lines import give
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.journal.turn import Turn
from remit.core.record import Text
from remit.core.run.contract import ConfidenceSource, SystemResponse
from remit.core.work.goal import PPM
from remit.core.work.graph import Graph
from remit.core.work.values import ValueKind
from remit.observe.fact import Fact, FactKind
from remit.observe.figures import duration
from remit.observe.node_names import Places, beginning, gave, percent, places_of
from remit.observe.plain import printable_line
from remit.observe.reading import NOT_PASSED, Reading
from remit.observe.steps import ANSWERED_STATUS, FAILED, LOST, PerformedStep, StepKind

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

# As long as a name may be and still leave room for what the step gave.
NAME_CHARS_MAX = 40


class WorkTeller:
    """Tells one run: it remembers when the step began at which the run stands, and which are finished."""

    def __init__(self) -> None:
        self.finished: list[str] = []
        self._reading = Reading()
        # The node that begins each step: a step that calls a tool has another one before its own.
        self._entrances: dict[str, str] = {}
        self._replicas = 0
        self._failed = 0
        self._step, self._since_ms = "", 0

    @property
    def has_work(self) -> bool:
        """Whether the run has steps or replicas."""
        return bool(self._entrances or self._replicas)

    @staticmethod
    def tells(graph: Graph) -> bool:
        """Whether there is anything to tell of a run that follows this graph."""
        return bool(places_of(graph).steps or places_of(graph).ballots)

    def lines(self, turn: Turn) -> Iterator[Line]:
        """What a turn says about steps and replicas: first what came back, then what begins."""
        facts = self._reading.take(turn)
        places, manifest = self._reading.places, self._reading.manifest
        if places is None or manifest is None or not (places.steps or places.ballots):
            return
        if not self._entrances and not self._replicas:
            self._read(manifest.graph, places)
        for fact in facts:
            yield from self._told(fact, places)

    def _read(self, graph: Graph, places: Places) -> None:
        first: dict[str, str] = {}
        for node in graph.nodes:
            if step := places.step(node.name):
                first.setdefault(step, node.name)
        self._entrances = {node: step for step, node in first.items()}
        self._replicas = sum(ballot.replicas for ballot in places.ballots)

    def _told(self, fact: Fact, places: Places) -> Iterator[Line]:
        step = fact.step
        match fact.kind, step.kind:
            case FactKind.HEARD, StepKind.CHILD:
                yield from self._ended(step, is_replica=places.is_voter(step.node))
            case FactKind.HEARD, StepKind.CODE | StepKind.TOOL | StepKind.INQUIRY if step.status == FAILED:
                name = "the vote" if self._replicas else self._step
                yield _line(REFUSED, name, f"failed ({step.code}): {printable_line(step.reason, REASON_CHARS_MAX)}")
            case FactKind.NOTED, StepKind.STEP:
                self.finished = [*(name for name in self.finished if name != step.name), step.name]
                took_ms = fact.at_ms - self._since_ms
                took = f"{duration(took_ms)}  " if took_ms else ""
                yield _line(RETURNED, step.name, took + _gave(fact), Ink.GOOD)
            case FactKind.NOTED, StepKind.NOTE if step.name == NOT_PASSED:
                yield _line(REFUSED, self._step, f"sends it back: {printable_line(step.reason, REASON_CHARS_MAX)}")
            case FactKind.NOTED, StepKind.REFUSED:
                tool = printable_line(step.name, NAME_CHARS_MAX)
                why = f"{tool} was refused ({step.code}): {printable_line(step.reason, REASON_CHARS_MAX)}"
                yield _line(REFUSED, self._step, why)
            case FactKind.ENTERED, _ if step.name in self._entrances:
                yield self._begun(self._entrances[step.name], fact.at_ms, places)
            case FactKind.BEGUN, StepKind.CHILD if places.is_voter(step.node):
                yield _line(ASKED, self._replica(step), "")

    def _ended(self, step: PerformedStep, *, is_replica: bool) -> Iterator[Line]:
        """Count a child that failed and give its line: of a replica, or of one that did not give a step its output."""
        name = self._replica(step) if is_replica else self._step or step.name
        if step.status != ANSWERED_STATUS:
            self._failed += is_replica
            why = f"ended as {step.code}: {printable_line(step.reason, REASON_CHARS_MAX)}"
            yield _line(REFUSED, name, "was lost" if step.status == LOST else why)
        elif is_replica:
            yield _line(RETURNED, name, _begins(step.answered), Ink.GOOD)

    def _begun(self, step: str, at_ms: int, places: Places) -> Line:
        self._step, self._since_ms = step, at_ms
        steps, kind = places.steps, printable_line(places.type_of(step), NAME_CHARS_MAX)
        return _line(ASKED, step, f"({kind}, {steps.index(step) + 1} of {len(steps)})")

    def _replica(self, step: PerformedStep) -> str:
        return f"{step.name} of {self._replicas}"

    def conclusion(self, response: SystemResponse) -> str:
        """What is said of a whole run at its end: how a vote came out, or how far a plan got that failed."""
        if self._entrances and response.error is not None:
            names = ", ".join(printable_line(name, NAME_CHARS_MAX) for name in self.finished) or "none"
            count = f"{len(self.finished)} of {len(self._entrances)} steps"
            return f"{count} were finished: {names}; what they gave: remit show {response.run_id}"
        if response.confidence is None or response.confidence_source is not ConfidenceSource.VOTING:
            return ""
        surely = f"confidence {percent(round(response.confidence * PPM))}"
        if (vote := self._reading.counted) is None:
            return surely
        # How many failed is among the warnings of the response.
        parts = [f"{vote.votes} of {vote.answered} agree"]
        if left := self._replicas - vote.answered - self._failed:
            parts.append(f"{left} not asked")
        return ", ".join([*parts, surely])


class RunTeller:
    """Tells the steps of a plan or the replicas of a vote; at a terminal, of any other run its calls, as a chat does."""

    def __init__(self, terminal: Terminal) -> None:
        self._work, self._calls = WorkTeller(), CallTeller()
        self._is_live = terminal.is_live

    def lines(self, turn: Turn) -> Iterator[Line]:
        """The lines of a turn, for a person who watches the run."""
        steps, calls = list(self._work.lines(turn)), list(self._calls.lines(turn)) if self._is_live else []
        yield from steps if self._work.has_work else calls

    def catch_up(self, turns: Iterable[Turn]) -> None:
        """Learn what was told before."""
        for turn in turns:
            for _ in self.lines(turn):
                pass

    def conclusion(self, response: SystemResponse) -> str:
        """What is said of a whole plan or vote at its end."""
        return self._work.conclusion(response)


async def caught_up(system: "System", run_id: str, terminal: Terminal) -> RunTeller:
    """A teller of a run from here on that knows what was told of it before."""
    teller, manifest = RunTeller(terminal), (await system.state_of(run_id)).manifest
    if manifest is not None and (terminal.is_live or WorkTeller.tells(manifest.graph)):
        teller.catch_up((await system.archive.history(run_id)).turns)
    return teller


async def answer_with_steps(
    terminal: Terminal,
    system: "System",
    response: SystemResponse,
    teller: RunTeller,
    *,
    said: str = "",
    is_full: bool = False,
    seen: Collection[str] = (),
) -> int:
    """Answer with a response, and say of a plan or a vote what it came to; gives the exit code."""
    code = await give(terminal, system, response, said=said, is_full=is_full, seen=seen)
    if not terminal.is_json and (conclusion := teller.conclusion(response)):
        terminal.remark(conclusion)
    return code


def _line(mark: str, name: str, what: str, ink: Ink = Ink.BAD) -> Line:
    shown = Ink.PLAIN if mark == ASKED else ink
    return ((mark, shown), (printable_line(name, NAME_CHARS_MAX), Ink.NAME), (f" {what}" if what else "", Ink.FAINT))


def _gave(fact: Fact) -> str:
    """What a step gave, in short."""
    if not fact.value:
        return f"passed {fact.count} check{'s' if fact.count > 1 else ''}" if fact.count else "passed"
    return _shown(ValueKind(fact.value), fact.gave)


def _shown(kind: ValueKind, text: Text) -> str:
    """A value, or of evidence how much it is and how it begins."""
    if kind not in (ValueKind.CANDIDATES, ValueKind.MESSAGES):
        return _begins(text)
    begins = _begins(beginning(kind, text))
    return f"{gave(kind, text)}: {begins}" if begins else gave(kind, text)


def _begins(text: Text) -> str:
    """The beginning of a text on one line; its breaks between lines are left out."""
    if isinstance(text, str):
        text = " ".join(text[: RESULT_CHARS_MAX * 2].split())
    return short(text, RESULT_CHARS_MAX)
