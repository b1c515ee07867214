"""Decided calls: which of the proposed calls of a run each decision is about, whatever ids the model gave them.

Rule 1: models repeat their ids, within an answer and across answers. A call is known by its place: the kernel decides on
        the calls of an answer one after the other, so of those that look alike the first undecided one is meant.
Rule 2: once a call is held, it is known by its question; once it is ordered, by its command. What follows the settling of
        a question in the same turn is about the call that was held.
Rule 3: a call that the gate did not judge has no name, and a decision about it is about nothing here.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival
from remit.core.journal.commands import AskHuman, CallTool, ReconcileTool, StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import FallbackChosen, QuestionSettled, ToolCallRefused
from remit.core.journal.turn import Decision

About: TypeAlias = CallTool | StartChild | AskHuman | ToolCallRefused


class Proposed(NamedTuple):
    """A call as decisions speak of it, and its name here; empty where the gate did not judge it."""

    call_id: str
    tool: str
    arguments_hash: bytes
    name: str


class Ordered(NamedTuple):
    """What performs a command: the name of its call, and the tool whose knowledge its result is."""

    name: str = ""
    tool: str = ""


NOBODY = Ordered()


class Proposals:
    """The calls of one run that wait for a decision, for a person, or for a result."""

    def __init__(self) -> None:
        self._undecided: list[Proposed] = []
        self._asked: dict[str, Proposed] = {}
        self._ordered: dict[str, Ordered] = {}

    def bring(self, calls: Iterable[ProposedCall], names: Iterable[str]) -> None:
        """Take in the calls of an answer with their names; what was undecided before is over."""
        self._undecided = [
            Proposed(call.call_id, call.tool, call.arguments_hash, name)
            for call, name in zip(calls, names, strict=True)
        ]

    def decided(self, decisions: Iterable[Decision]) -> Iterator[tuple[About, str]]:
        """Each decision about a call that has a name, in order, with that name."""
        answered: Proposed | None = None
        for decision in decisions:
            if isinstance(decision, QuestionSettled):
                answered = self._asked.pop(decision.command_id, None)
            elif isinstance(decision, FallbackChosen):
                answered = self._again(decision)
            elif isinstance(decision, ReconcileTool):
                self._ordered[decision.id] = self.ordered(decision.about)
            elif isinstance(decision, AskHuman) and decision.packet is not None and decision.packet.about:
                self._ordered[decision.id] = self.ordered(decision.packet.about)
            elif (about := _about_a_call(decision)) is not None:
                found = answered if answered is not None and _is_alike(answered, about) else self._next(about)
                answered = None if found is answered else answered
                if found is not None and found.name:
                    self._note(about, found)
                    yield about, found.name

    def asked(self, question_id: str) -> str:
        """The name of the call that a question holds; empty where it holds none."""
        found = self._asked.get(question_id)
        return "" if found is None else found.name

    def change(self, question_id: str, name: str) -> None:
        """Know the call that a question holds by another name from now on, because its arguments are others."""
        self._asked[question_id] = self._asked[question_id]._replace(name=name)

    def order(self, command_id: str, ordered: Ordered) -> None:
        """Note what performs a command."""
        self._ordered[command_id] = ordered

    def ordered(self, command_id: str) -> Ordered:
        """The name of the call that a command performs, and its tool."""
        return self._ordered.get(command_id, NOBODY)

    def _note(self, decision: About, found: Proposed) -> None:
        if isinstance(decision, AskHuman) and decision.packet is not None:
            self._asked[decision.id] = found
        elif not isinstance(decision, ToolCallRefused):
            self._ordered[decision.id] = Ordered(found.name, decision.tool)

    def _next(self, decision: About) -> Proposed | None:
        """The first undecided call that looks like the one a decision is about."""
        for place, waiting in enumerate(self._undecided):
            if _is_alike(waiting, decision) and _hash_of(decision) in (b"", waiting.arguments_hash):
                return self._undecided.pop(place)
        return None

    def _again(self, fallback: FallbackChosen) -> Proposed | None:
        """The call of a command that another tool is to perform, as that tool's call."""
        was = self._ordered.get(fallback.command_id)
        return None if was is None else Proposed("", fallback.tool, b"", was.name)


def _about_a_call(decision: Decision) -> About | None:
    """The decision, if it concerns a call: a question does if it holds one or was asked by one, not if it is about an outcome."""
    if isinstance(decision, CallTool | StartChild | ToolCallRefused):
        return decision
    if not isinstance(decision, AskHuman):
        return None
    is_about = bool(decision.call_id) if decision.packet is None else not decision.packet.about
    return decision if is_about else None


def _is_alike(waiting: Proposed, decision: About) -> bool:
    call = decision.packet.call if isinstance(decision, AskHuman) and decision.packet is not None else decision
    return waiting.tool == call.tool and waiting.call_id in ("", call.call_id)


def _hash_of(decision: About) -> bytes:
    """The hash of the arguments, as far as the decision tells it."""
    if isinstance(decision, AskHuman):
        return b"" if decision.packet is None else decision.packet.call.arguments_hash
    return decision.arguments_hash


def calls_in(arrival: Arrival) -> tuple[ProposedCall, ...] | None:
    """The calls that an arrival proposes; None for one that proposes nothing."""
    if isinstance(arrival, arrivals.ModelAnswered | arrivals.CodeReturned) and arrival.calls:
        return arrival.calls
    if isinstance(arrival, arrivals.CallProposed) and not arrival.takes:
        return (arrival.call,)
    return None
