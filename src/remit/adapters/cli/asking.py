"""Asking a person, in the middle of a conversation, what a run asks: what is shown, and what an answer means.

Rule 1: what is shown is what will run: the tool, the exact arguments in full, the reasons, and what a yes allows.
Rule 2: only a word that says so is a yes or a no. Silence, and what nobody understands, leaves the question open.
"""

import json
from collections.abc import Callable, Iterator
from typing import Protocol

from remit.adapters.cli.painting import Ink, Line
from remit.adapters.cli.responses import moment
from remit.adapters.cli.terminal import json_line
from remit.core.codec import read_json
from remit.core.commands import AskPurpose
from remit.core.record import JsonObject, Record
from remit.core.signals import Signal
from remit.core.tools import Effect

# Whoever is not understood three times is asked another day.
TRIES_MAX = 3
SHOWN_CHARS_MAX = 40
REFUSE = "/no"

EFFECTS = {
    Effect.NONE: "changes nothing",
    Effect.READ: "only reads",
    Effect.WRITE: "changes something that can be seen from here",
    Effect.EXTERNAL: "acts on the world outside, and cannot be taken back from here",
}
PROMPTS = {
    AskPurpose.APPROVAL: "allow it? y(es), n(o) WHY, e(dit) or l(ater): ",
    AskPurpose.OUTCOME: "did it happen? y(es), n(o) or l(ater): ",
    AskPurpose.QUESTION: f"your answer ({REFUSE} refuses, nothing leaves it open): ",
}
_YES, _NO, _EDIT, _LATER = ("y", "yes"), ("n", "no"), ("e", "edit"), ("l", "later", "")


class Person(Protocol):
    """Somebody who may be asked."""

    def answer(self, question: str, draft: str = "") -> str | None:
        """What they say, beginning with a draft; None for silence."""


class Asked(Protocol):
    """One open question, as the archive of runs tells it."""

    @property
    def id(self) -> str:
        """Its name, RUN/COMMAND."""

    @property
    def run_id(self) -> str:
        """Who asks."""

    @property
    def purpose(self) -> AskPurpose:
        """What for."""

    @property
    def expires_at_ms(self) -> int:
        """Until when."""

    @property
    def tool(self) -> str:
        """Which tool; empty for a question in words."""

    @property
    def effect(self) -> str:
        """What a call of it does to the world."""

    @property
    def arguments(self) -> JsonObject:
        """With which arguments."""

    @property
    def question(self) -> str:
        """The question in words."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a person is asked."""

    @property
    def releases(self) -> tuple[tuple[str, int], ...]:
        """What a yes allows beyond the budget."""

    @property
    def about(self) -> str:
        """The call that is in doubt."""


class Reply(Record):
    """What a person decided: the signal, and what it says besides the packet it answers."""

    kind: Signal
    payload: JsonObject = {}


class Edit(Record):
    """A yes, but to other arguments."""


class Unclear(Record):
    """Why nobody knows what was meant."""

    why: str


def packet_lines(asked: Asked) -> Iterator[Line]:
    """What a person is shown before they answer."""
    if not asked.tool:
        yield (("  ?? ", Ink.WAITS), (asked.question, Ink.BOLD))
        return
    verb = "was called, and nobody knows whether it happened" if asked.about else "wants to be called"
    yield (("  ?? ", Ink.WAITS), (asked.tool, Ink.NAME), (f" {verb}", Ink.BOLD))
    for name, value in asked.arguments.items():
        yield ((f"     {name} = ", Ink.FAINT), (json_line(value), Ink.PLAIN))
    if asked.effect:
        yield (("     effect: ", Ink.FAINT), (f"{asked.effect}, it {EFFECTS[Effect(asked.effect)]}", Ink.PLAIN))
    for reason in asked.reasons:
        yield (("     why: ", Ink.FAINT), (reason, Ink.PLAIN))
    for dimension, amount in asked.releases:
        yield (("     a yes allows: ", Ink.FAINT), (f"{amount} of {dimension} beyond its cap", Ink.WAITS))
    yield (("     open until: ", Ink.FAINT), (f"{moment(asked.expires_at_ms)}, as {asked.id}", Ink.PLAIN))


def ask(person: Person, asked: Asked, complain: Callable[[str], None]) -> Reply | None:
    """What a person decides about a question; None when they leave it open."""
    for _ in range(TRIES_MAX):
        said = person.answer(PROMPTS[asked.purpose])
        meant = None if said is None else meaning_of(asked.purpose, said)
        if isinstance(meant, Edit):
            meant = _edited(person.answer("arguments: ", json.dumps(asked.arguments)))
        if not isinstance(meant, Unclear):
            return meant
        complain(meant.why)
    return None


def meaning_of(purpose: AskPurpose, said: str) -> Reply | Edit | Unclear | None:
    """What an answer means; None for later."""
    words = said.strip()
    if purpose is AskPurpose.QUESTION:
        if words == REFUSE:
            return Reply(Signal.REJECT)
        return Reply(Signal.APPROVE, {"text": words}) if words else None
    word, _, rest = words.partition(" ")
    word, reason = word.lower().rstrip(",:"), rest.strip()
    if word in _NO:
        return Reply(Signal.REJECT, {"reason": reason} if reason else {})
    if word in _YES and not reason:
        return Reply(Signal.APPROVE)
    if word in _LATER and not reason:
        return None
    if word in _EDIT and not reason and purpose is AskPurpose.APPROVAL:
        return Edit()
    return Unclear(f"{words[:SHOWN_CHARS_MAX]!r} is neither a yes nor a no; nothing was done")


def _edited(said: str | None) -> Reply | Unclear | None:
    """A yes to other arguments; they are judged anew by whoever calls the tool."""
    if said is None or not said.strip():
        return None
    try:
        arguments = read_json(said)
    except (ValueError, RecursionError) as error:
        return Unclear(f"the arguments are no JSON: {error}")
    if not isinstance(arguments, dict):
        return Unclear("the arguments must be a JSON object, such as {}")
    return Reply(Signal.APPROVE, {"arguments": arguments})
