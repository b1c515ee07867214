"""Asking a person, in the middle of a conversation, what a run asks: what an answer means.

Rule 1: what is shown is what will run: the packet that `remit approvals` shows, no value of it cut; `f` shows the rest.
Rule 2: only a word that says so is a yes or a no. Silence, and what is not understood, leaves the question open.
Rule 3: a yes is to the packet that was shown: it carries its version.
Rule 4: a change of a list of orders is no yes: the list is shown again as it would be, and may be changed further.
"""

import json
from collections.abc import Callable
from typing import Protocol, TypeAlias

from remit.adapters.cli.screen.colours import Ink, Line
from remit.adapters.cli.screen.packet_lines import (
    change_lines,
    listed_lines,
    order_change_lines,
    orders_asked,
    packet_lines,
)
from remit.adapters.cli.screen.terminal import json_line
from remit.core.failure import RequestRejected
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
ORDERS_PROMPT = "are these wanted? y(es), n(o) WHY, e(dit) or d(rop) and NUMBERS, f(ull) or l(ater): "
# A person who changes more than that often writes the list anew, with --edit or from Python.
CHANGES_MAX = 200
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
    """A yes, but to other arguments; or these lines of the orders are to be changed or left out, and no yes yet."""

    numbers: tuple[int, ...] = ()
    is_dropped: bool = False


class Changed(Record):
    """The orders as a person wants them so far, and how they would read; no yes yet."""

    orders: list[JsonObject]
    listed: str


class Full(Record):
    """Nothing yet: the person wants to see all of it."""


class Unclear(Record):
    """Why it is not clear what was meant."""

    why: str


# How a list of orders reads; raises RequestRejected for one that cannot be.
Preview: TypeAlias = Callable[[list[JsonObject]], str]


def json_lines(orders: list[JsonObject]) -> str:
    """A list of orders as it was written, where it is unknown what its look-ups have found."""
    return "\n".join(f"{number}. {json_line(order)}" for number, order in enumerate(orders, 1))


def ask_at_prompt(
    person: Person, asked: Approval, say: Callable[[Line], None], preview: Preview = json_lines
) -> PromptAnswer | None:
    """What a person decides about a question; None when they leave it open. `preview` reads a list of orders out."""
    if orders_asked(asked):
        return _ask_about_orders(person, asked, say, preview)
    for _ in range(TRIES_MAX):
        said = person.answer(PROMPTS[asked.purpose])
        meant = None if said is None else meaning_of(asked.purpose, said)
        if isinstance(meant, Edit):
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


def _ask_about_orders(
    person: Person, asked: Approval, say: Callable[[Line], None], preview: Preview
) -> PromptAnswer | None:
    """What a person decides about a list of orders, once they have changed it as they want it."""
    before = orders = orders_asked(asked)
    tries = TRIES_MAX
    for _ in range(CHANGES_MAX):
        said = person.answer(ORDERS_PROMPT)
        heard = None if said is None else meaning_of(asked.purpose, said, orders=len(orders))
        meant = _changed(person, orders, heard, preview) if isinstance(heard, Edit) else heard
        if isinstance(meant, Changed):
            orders = meant.orders
            for line in (*order_change_lines(before, orders), *listed_lines(meant.listed)):
                say(line)
        elif isinstance(meant, Full):
            for line in packet_lines(asked) if orders == before else listed_lines(preview(orders)):
                say(line)
        elif isinstance(meant, Unclear):
            say(((meant.why, Ink.PLAIN),))
            tries -= 1
            if not tries:
                return None
        elif meant is None:
            return None
        else:
            is_other = meant.kind is Signal.APPROVE and orders != before
            reply = replace(meant, payload={"arguments": {"orders": orders}}) if is_other else meant
            return _versioned(reply, asked)
    return None


def _versioned(reply: PromptAnswer, asked: Approval) -> PromptAnswer:
    """The reply, to the packet that was shown and to no other."""
    return replace(reply, payload={**reply.payload, "packet": asked.packet}) if asked.packet else reply


def _changed(person: Person, orders: list[JsonObject], edit: Edit, preview: Preview) -> Changed | Unclear:
    """The orders with some lines changed or left out, as they would read; why not, where they could not be orders."""
    changed: dict[int, JsonObject | None] = dict(enumerate(orders, 1))
    for number in edit.numbers:
        if edit.is_dropped:
            changed[number] = None
            continue
        said = person.answer(f"order {number}: ", json.dumps(changed[number]))
        meant = _edited(said, f"order {number}")
        if isinstance(meant, PromptAnswer):
            changed[number] = meant.payload["arguments"]
        else:
            return meant or Unclear(f"order {number} stays as it is")
    left = [order for order in changed.values() if order is not None]
    try:
        return Changed(left, preview(left))
    except RequestRejected as error:
        return Unclear(f"{error.message}; the list stays as it was")


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
    if word in (*_EDIT, *_DROP) and orders and (numbers := _numbers_in(reason, orders)):
        return Edit(numbers, word in _DROP)
    return Unclear(f"{words[:SHOWN_CHARS_MAX]!r} is neither a yes nor a no; nothing was done")


def _numbers_in(text: str, orders: int) -> tuple[int, ...]:
    """The orders that a text names by their numbers, each once; none where one of them is no number of an order."""
    parts = text.replace(",", " ").split()
    if not all(part.isascii() and part.isdecimal() and 0 < int(part[:9]) <= orders for part in parts):
        return ()
    return tuple(dict.fromkeys(map(int, parts)))


def _edited(said: str | None, what: str = "the arguments") -> PromptAnswer | Unclear | None:
    """A yes to other arguments; they are judged anew before the tool is called."""
    if said is None or not said.strip():
        return None
    try:
        arguments = read_json(said)
    except (ValueError, RecursionError) as error:
        return Unclear(f"{what}: no JSON: {error}")
    if not isinstance(arguments, dict):
        return Unclear(f"{what}: must be a JSON object, such as {{}}")
    return PromptAnswer(Signal.APPROVE, {"arguments": arguments})
