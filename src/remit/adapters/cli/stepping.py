"""What becomes of the steps of a plan and of the replicas of a vote, told as it happens.

Rule 1: a step is told when it begins and when it has given something, a line each; the rest is in `remit show`.
Rule 2: names and outputs are data. They are shortened here and escaped where they are written.
Rule 3: of any other run nothing is told.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from remit.adapters.cli.amounts import duration
from remit.adapters.cli.calls import ASKED, REASON_CHARS_MAX, REFUSED, RESULT_CHARS_MAX, RETURNED, short
from remit.adapters.cli.painting import Ink, Line
from remit.adapters.cli.responses import give
from remit.adapters.cli.terminal import Terminal
from remit.core.arrivals import ChildEnded, ChildLost, CodeFailed, CodeReturned, RunStarted, ToolFailed, ToolReturned
from remit.core.commands import StartChild
from remit.core.contract import ConfidenceSource, SystemResponse
from remit.core.events import Decision, Turn
from remit.core.failure import ANSWERED
from remit.core.graph import Graph
from remit.core.record import Text
from remit.core.rulings import CheckFailed, NodeEntered, StepFinished, ToolCallRefused, VoteCounted
from remit.core.values import ValueKind
from remit.observe.gave import beginning, gave
from remit.observe.places import Places, percent, places_of
from remit.observe.plain import plain

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

# As long as a name may be and still leave room for what the step gave.
NAME_CHARS_MAX = 40
_PPM = 1_000_000


class WorkTeller:
    """Tells one run: it remembers which steps there are, when each began, and which replica a command asks."""

    def __init__(self) -> None:
        self.finished: list[str] = []
        self._places: Places | None = None
        # The node that begins each step: a step that calls a tool has another one before its own.
        self._entrances: dict[str, str] = {}
        self._replicas = 0
        self._asked: dict[str, int] = {}
        self._failed = 0
        self._vote: VoteCounted | None = None
        self._step, self._since_ms = "", 0

    @staticmethod
    def tells(graph: Graph) -> bool:
        """Whether there is anything to tell of a run that follows this graph."""
        return bool(places_of(graph).steps or places_of(graph).ballots)

    def catch_up(self, turns: Iterable[Turn]) -> None:
        """Learn what has been told to somebody else already."""
        for turn in turns:
            for _ in self.lines(turn):
                pass

    def lines(self, turn: Turn) -> Iterator[Line]:
        """What a turn says about steps and replicas: first what came back, then what begins."""
        if isinstance(turn.arrival, RunStarted) and self.tells(turn.arrival.manifest.graph):
            self._read(turn.arrival.manifest.graph)
        if self._places is not None:
            yield from self._outcome(turn)
            for decision in turn.decisions:
                yield from self._decided(decision, turn)

    def _read(self, graph: Graph) -> None:
        self._places = places = places_of(graph)
        first: dict[str, str] = {}
        for node in graph.nodes:
            if step := places.step(node.name):
                first.setdefault(step, node.name)
        self._entrances = {node: step for step, node in first.items()}
        self._replicas = sum(ballot.replicas for ballot in places.ballots)

    def _outcome(self, turn: Turn) -> Iterator[Line]:
        """What came back without giving a step its output, or from a replica."""
        match turn.arrival:
            case ChildEnded(command_id=command_id, ending=ending, error=error, message=message):
                is_replica = bool(self._replicas)
                name = self._replica(command_id) if is_replica else self._step
                if ending not in ANSWERED:
                    self._failed += is_replica
                    yield _line(REFUSED, name, f"ended as {error or ending}: {plain(message, REASON_CHARS_MAX)}")
                elif is_replica:
                    yield _line(RETURNED, name, _begins(turn.arrival.text), Ink.GOOD)
            case ChildLost(command_id=command_id):
                self._failed += bool(self._replicas)
                yield _line(REFUSED, self._replica(command_id) if self._replicas else self._step, "was lost")
            case CodeFailed(error=error, code=code) | ToolFailed(error=error, code=code):
                name = "the vote" if self._replicas else self._step
                yield _line(REFUSED, name, f"failed ({code}): {plain(error, REASON_CHARS_MAX)}")
            case _:
                return

    def _decided(self, decision: Decision, turn: Turn) -> Iterator[Line]:
        match decision:
            case StepFinished(step=step):
                self.finished = [*(name for name in self.finished if name != step), step]
                took_ms = turn.at_ms - self._since_ms
                took = f"{duration(took_ms)}  " if took_ms else ""
                yield _line(RETURNED, step, took + _gave(decision, turn), Ink.GOOD)
            case CheckFailed(problems=problems):
                why = plain("; ".join(problems), REASON_CHARS_MAX)
                yield _line(REFUSED, self._step, f"sends it back: {why}")
            case ToolCallRefused(code=code, reason=reason):
                yield _line(REFUSED, self._step, f"refused ({code}): {plain(reason, REASON_CHARS_MAX)}")
            case NodeEntered(node=node) if node in self._entrances:
                yield self._begun(self._entrances[node], turn.at_ms)
            case StartChild(id=command_id) if self._replicas:
                self._asked.setdefault(command_id, len(self._asked) + 1)
                yield _line(ASKED, self._replica(command_id), "")
            case VoteCounted():
                self._vote = decision
            case _:
                return

    def _begun(self, step: str, at_ms: int) -> Line:
        self._step, self._since_ms = step, at_ms
        assert self._places is not None, "a step belongs to a plan that was read"
        steps, kind = self._places.steps, plain(self._places.type_of(step), NAME_CHARS_MAX)
        return _line(ASKED, step, f"({kind}, {steps.index(step) + 1} of {len(steps)})")

    def _replica(self, command_id: str) -> str:
        return f"replica {self._asked.get(command_id, 0)} of {self._replicas}"

    def conclusion(self, response: SystemResponse) -> str:
        """What is said of a whole run at its end: how a vote came out, or how far a plan got that failed."""
        if self._entrances and response.error is not None:
            names = ", ".join(plain(name, NAME_CHARS_MAX) for name in self.finished) or "none"
            count = f"{len(self.finished)} of {len(self._entrances)} steps"
            return f"{count} were finished: {names}; what they gave: remit show {response.run_id}"
        if response.confidence is None or response.confidence_source is not ConfidenceSource.VOTING:
            return ""
        surely = f"confidence {percent(round(response.confidence * _PPM))}"
        if self._vote is None:
            return surely
        # How many failed is among the warnings of the response.
        parts = [f"{self._vote.votes} of {self._vote.answered} agree"]
        if left := self._replicas - self._vote.answered - self._failed:
            parts.append(f"{left} not asked")
        return ", ".join([*parts, surely])


async def caught_up(system: "System", run_id: str) -> WorkTeller:
    """Somebody who tells of a run from here on, and knows what was told of it before."""
    teller, manifest = WorkTeller(), (await system.state_of(run_id)).manifest
    if manifest is not None and WorkTeller.tells(manifest.graph):
        teller.catch_up((await system.archive.history(run_id)).turns)
    return teller


async def conclude(
    terminal: Terminal, system: "System", response: SystemResponse, teller: WorkTeller, *, said: str = ""
) -> int:
    """Answer with a response, and say of a plan or a vote what it came to; gives the exit code."""
    code = await give(terminal, system, response, said=said)
    if not terminal.is_json and (conclusion := teller.conclusion(response)):
        terminal.remark(conclusion)
    return code


def _line(mark: str, name: str, what: str, ink: Ink = Ink.BAD) -> Line:
    shown = Ink.PLAIN if mark == ASKED else ink
    return ((mark, shown), (plain(name, NAME_CHARS_MAX), Ink.NAME), (f" {what}" if what else "", Ink.FAINT))


def _gave(finished: StepFinished, turn: Turn) -> str:
    """What a step gave, in short."""
    if finished.is_passed_on:
        checks = turn.arrival.checks_passed if isinstance(turn.arrival, CodeReturned) else 0
        return f"passed {checks} check{'s' if checks > 1 else ''}" if checks else "passed"
    match turn.arrival:
        case CodeReturned(value=text) | ChildEnded(text=text) | ToolReturned(content=text):
            return _shown(finished.kind, text)
    return "done"


def _shown(kind: ValueKind, text: Text) -> str:
    """A value, or of evidence how much it is and how it begins."""
    if kind not in (ValueKind.CANDIDATES, ValueKind.MESSAGES):
        return _begins(text)
    begins = _begins(beginning(kind, text))
    return f"{gave(kind, text)}: {begins}" if begins else gave(kind, text)


def _begins(text: Text) -> str:
    """The beginning of a text on one line; whoever reads it there does not miss the breaks between its lines."""
    if isinstance(text, str):
        text = " ".join(text[: RESULT_CHARS_MAX * 2].split())
    return short(text, RESULT_CHARS_MAX)
