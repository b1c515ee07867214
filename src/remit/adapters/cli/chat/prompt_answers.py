"""Asking a person, in the middle of a conversation, what a run asks: what an answer means.

Rule 1: what is shown is what will run: the packet that `remit approvals` shows, no value of it cut; `f` shows the rest.
Rule 2: only a word that says so is a yes or a no. Silence, and what is not understood, leaves the question open.
Rule 3: a yes is to the packet that was shown: it carries its version.
"""

import json
from collections.abc import Callable
from typing import Protocol

from remit.adapters.cli.screen.colours import Ink, Line
from remit.adapters.cli.screen.packet_lines import change_lines, order_change_lines, orders_asked, packet_lines
from remit.core.journal.codec import read_json
from remit.core.record import JsonObject, Record, replace
from remit.core.run.approval import Approval, What
from remit.core.run.signals import Signal

# After three answers that are not understood the question is left open.
TRIES_MAX = 3
SHOWN_CHARS_MAX = 40
REFUSE = "/no"

PROMPTS = {
    What.APPROVAL: "allow it? y(es), n(o) WHY, e(dit), f(ull) or l(ater): ",
    What.OUTCOME: "did it happen? y(es), n(o), f(ull) or l(ater): ",
    What.QUESTION: f"your answer ({REFUSE} refuses, nothing leaves it open): ",
    What.RELEASE: "allow it to spend that? y(es), n(o) WHY, f(ull) or l(ater): ",
    What.REVIEW: "may the answer stand? y(es), n(o) WHY, f(ull) or l(ater): ",
}
ORDERS_PROMPT = "are these wanted? y(es), n(o) WHY, e(dit) or d(rop) and a NUMBER, f(ull) or l(ater): "
_YES, _NO, _EDIT, _FULL, _LATER = ("y", "yes"), ("n", "no"), ("e", "edit"), ("f", "full"), ("l", "later", "")
_DROP = ("d", "drop")


class Person(Protocol):
    """A person who may be asked."""

    def answer(self, question: str, draft: str = "") -> str | None:
        """What they say, beginning with a draft; None for silence."""


class PromptAnswer(Record):
    """What a person decided: the signal, and what it says besides the packet it answers."""

    kind: Signal
    payload: JsonObject = {}


class Edit(Record):
    """A yes, but to other arguments, or with this line of the orders changed or left out."""

    number: int = 0
    is_dropped: bool = False


class Full(Record):
    """Nothing yet: the person wants to see all of it."""


class Unclear(Record):
    """Why it is not clear what was meant."""

    why: str


def ask_at_prompt(person: Person, asked: Approval, say: Callable[[Line], None]) -> PromptAnswer | None:
    """What a person decides about a question; None when they leave it open."""
    for _ in range(TRIES_MAX):
        orders = orders_asked(asked)
        said = person.answer(ORDERS_PROMPT if orders else PROMPTS[asked.purpose])
        meant = None if said is None else meaning_of(asked.purpose, said, orders=len(orders))
        if isinstance(meant, Edit) and meant.number:
            meant = _with_order_changed(person, orders, meant)
            if isinstance(meant, PromptAnswer):
                for line in order_change_lines(orders, meant.payload["arguments"]["orders"]):
                    say(line)
        elif isinstance(meant, Edit):
            meant = _edited(person.answer("arguments: ", json.dumps(asked.arguments)))
            if isinstance(meant, PromptAnswer):
                for line in change_lines(asked, meant.payload["arguments"]):
                    say(line)
        if isinstance(meant, Full):
            for line in packet_lines(asked):
                say(line)
        elif isinstance(meant, Unclear):
            say(((meant.why, Ink.PLAIN),))
        else:
            return None if meant is None else _versioned(meant, asked)
    return None


def _versioned(reply: PromptAnswer, asked: Approval) -> PromptAnswer:
    """The reply, to the packet that was shown and to no other."""
    return replace(reply, payload={**reply.payload, "packet": asked.packet}) if asked.packet else reply


def _with_order_changed(person: Person, orders: list[JsonObject], edit: Edit) -> PromptAnswer | Unclear | None:
    """A yes to the orders, one of which is changed or left out."""
    place = edit.number - 1
    if edit.is_dropped:
        return PromptAnswer(Signal.APPROVE, {"arguments": {"orders": [*orders[:place], *orders[edit.number :]]}})
    meant = _edited(person.answer(f"order {edit.number}: ", json.dumps(orders[place])))
    if not isinstance(meant, PromptAnswer):
        return meant
    changed = [*orders[:place], meant.payload["arguments"], *orders[edit.number :]]
    return PromptAnswer(Signal.APPROVE, {"arguments": {"orders": changed}})


def meaning_of(purpose: What, said: str, *, orders: int = 0) -> PromptAnswer | Edit | Full | Unclear | None:
    """What an answer means; None for later."""
    words = said.strip()
    if purpose is What.QUESTION:
        if words == REFUSE:
            return PromptAnswer(Signal.REJECT)
        return PromptAnswer(Signal.APPROVE, {"text": words}) if words else None
    word, _, rest = words.partition(" ")
    word, reason = word.lower().rstrip(",:"), rest.strip()
    if word in _NO:
        return PromptAnswer(Signal.REJECT, {"reason": reason} if reason else {})
    if word in _YES and not reason:
        return PromptAnswer(Signal.APPROVE)
    if word in _LATER and not reason:
        return None
    if word in _FULL and not reason:
        return Full()
    if word in _EDIT and not reason and purpose is What.APPROVAL:
        return Edit()
    if word in (*_EDIT, *_DROP) and orders and reason.isdecimal() and 0 < int(reason[:9]) <= orders:
        return Edit(int(reason), word in _DROP)
    return Unclear(f"{words[:SHOWN_CHARS_MAX]!r} is neither a yes nor a no; nothing was done")


def _edited(said: str | None) -> PromptAnswer | Unclear | None:
    """A yes to other arguments; they are judged anew before the tool is called."""
    if said is None or not said.strip():
        return None
    try:
        arguments = read_json(said)
    except (ValueError, RecursionError) as error:
        return Unclear(f"the arguments are no JSON: {error}")
    if not isinstance(arguments, dict):
        return Unclear("the arguments must be a JSON object, such as {}")
    return PromptAnswer(Signal.APPROVE, {"arguments": arguments})
