"""A person at the terminal of a run: what the run asks is asked there, and the run goes on with the answer.

Rule 1: no person is asked unless keyboard, answer and remarks are those of a terminal; elsewhere the run waits.
Rule 2: an answer goes the way of `remit approve`, in the name of the person.
Rule 3: what is left open stays open, and the user who left it is told how to answer later.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from remit.adapters.cli.answers.signal_delivery import at_rest, deliver, signal_from
from remit.adapters.cli.chat.keyboard import Keyboard
from remit.adapters.cli.chat.prompt_answers import Person, Preview, PromptAnswer, ask_at_prompt, json_lines
from remit.adapters.cli.event_loop import unheeded
from remit.adapters.cli.screen.colours import Line, remark_line
from remit.adapters.cli.screen.narration import Narrator
from remit.adapters.cli.screen.packet_lines import orders_asked, packet_lines, place_lines, short_lines
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import RemitError
from remit.core.run.approval import Approval
from remit.core.run.contract import SystemResponse

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

# Answers are not remembered.
_NO_HISTORY = Path("/dev/null")


class Attended(NamedTuple):
    """A run at its rest, and the questions that the person has seen and left open."""

    response: SystemResponse
    left: Collection[str] = ()


def is_attended(terminal: Terminal) -> bool:
    """Whether a person is there who sees a question and can answer it."""
    return terminal.is_live and terminal.is_watched and sys.stdin is not None and sys.stdin.isatty()


async def attend(
    terminal: Terminal, system: "System", response: SystemResponse, narrator: Narrator, *, by: str, is_full: bool
) -> Attended:
    """A run once the person at its terminal, if there is one, has answered what it asks or left it open."""
    left: set[str] = set()
    person = _Interruptible(Keyboard(terminal, _NO_HISTORY)) if is_attended(terminal) else None
    while person is not None and response.waiting_for is not None:
        open_now = await system.archive.approvals(response.run_id)
        previews = await previews_of(system, open_now)
        narrator.progress.end()
        said = reply_to(terminal, person, open_now, left, previews, is_full=is_full)
        narrator.progress.begin()
        if said is None:
            break
        try:
            response = await after_answer(system, *said, by=by)
        except RemitError as error:
            # Another person may have answered it meanwhile, or no person may answer it.
            terminal.complain(error)
            left.add(said[0].id)
            response = await system.result(response.run_id)
    return Attended(response, left)


async def previews_of(system: "System", open_now: Sequence[Approval]) -> dict[str, Preview]:
    """How each list of orders that is asked about would read if it were changed."""
    return {one.id: await system.order_preview(one.run_id) for one in open_now if orders_asked(one)}


def reply_to(
    terminal: Terminal,
    person: Person,
    open_now: Sequence[Approval],
    left: set[str],
    previews: Mapping[str, Preview],
    *,
    is_full: bool = False,
) -> tuple[Approval, PromptAnswer] | None:
    """The first open question that a person answers, and how; those that they leave open are added to those left."""

    def say(line: Line) -> None:
        remark_line(terminal, line)

    for asked in [one for one in open_now if one.id not in left]:
        for line in (*place_lines(asked, open_now), *(packet_lines if is_full else short_lines)(asked)):
            say(line)
        if (reply := ask_at_prompt(person, asked, say, previews.get(asked.id, json_lines))) is not None:
            return asked, reply
        left.add(asked.id)
    return None


async def after_answer(system: "System", asked: Approval, reply: PromptAnswer, *, by: str) -> SystemResponse:
    """The run that asked, or the one that started it, at its next rest after an answer."""
    root = await system.archive.root(asked.run_id)
    await deliver(system, signal_from(by, reply.kind, asked.run_id, {**reply.payload, "packet_id": asked.id}))
    await system.result(asked.run_id)
    return await at_rest(system, root)


class _Interruptible:
    """A person whose Ctrl-C leaves a question open; while they think, nothing is driven that it could stop."""

    def __init__(self, person: Person) -> None:
        self._person = person

    def answer(self, question: str, draft: str = "") -> str | None:
        """What they say."""
        with unheeded():
            return self._person.answer(question, draft)
