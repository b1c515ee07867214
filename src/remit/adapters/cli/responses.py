"""A response as the command line gives it: lines for people, one object for programs, an exit code for scripts.

Rule 1: an answer that was accepted goes to stdout, everything else that there is to say to stderr. What the model of a
        run said that failed may claim what never happened, and is not passed off as an answer.
Rule 2: the exit code is that of the table of endings; whoever waits for a person, or was paused by one, exits with 3.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from remit.adapters.cli.terminal import Terminal, json_line, printable
from remit.core.commands import AskPurpose
from remit.core.contract import SystemResponse
from remit.core.failure import ANSWERED, ENDINGS, EXIT_OK, EXIT_WAITING
from remit.observe.plain import plain

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

PAUSED = "paused"
# Longer than any line that a person writes; more on one line is a text that somebody made to be long.
LINE_CHARS_MAX = 4_096

# How to answer, by what was asked: a question in words is answered in words, one about a lost call by what became of it.
WAYS_TO_ANSWER = {
    AskPurpose.APPROVAL: "answer with: remit approve {id}  or: remit reject {id}",
    AskPurpose.OUTCOME: "if it happened: remit approve {id}  if it did not: remit reject {id}",
    AskPurpose.QUESTION: "answer with: remit approve {id} --text WORDS  or: remit reject {id}",
}


async def give(terminal: Terminal, system: "System", response: SystemResponse, *, said: str = "") -> int:
    """Answer with a response and return its exit code. What was `said` while it was made is not said again."""
    status = await _status(system, response)
    if terminal.is_json:
        terminal.values(response)
    else:
        if response.terminal_code in ANSWERED and response.content and response.content != said:
            terminal.text(response.content)
        _remark_on(terminal, response, status, said)
        if response.waiting_for is not None:
            for line in await question_lines(system, response.run_id):
                terminal.remark(line)
    return exit_code_of(response, status)


def exit_code_of(response: SystemResponse, status: str = "") -> int:
    """What a script may conclude."""
    if response.terminal_code is not None:
        return ENDINGS[response.terminal_code].exit_code_when_ended
    return EXIT_WAITING if response.waiting_for is not None or status == PAUSED else EXIT_OK


async def question_lines(system: "System", run_id: str = "") -> list[str]:
    """What runs ask people, and how to answer."""
    lines: list[str] = []
    for asked in await system.archive.approvals(run_id):
        what = f"{printable(asked.tool)} {json_line(asked.arguments)}" if asked.tool else printable(asked.question)
        # Whoever approves sees all of it, on as many lines as it takes.
        first, *more = _folded(f"{asked.id}  {what}")
        lines += [first, *(f"    {line}" for line in more)]
        facts = [asked.ending.value, *(f"effect {asked.effect}" for _ in asked.effect[:1]), *asked.reasons]
        facts += [f"allows {amount} of {name} beyond its cap" for name, amount in asked.releases]
        lines += [f"    {line}" for line in _folded(f"{'; '.join(facts)}; open until {moment(asked.expires_at_ms)}")]
        lines.append(f"    {WAYS_TO_ANSWER[asked.purpose].format(id=asked.id)}")
    return lines


def _folded(line: str) -> list[str]:
    """A line as lines that are not too long for a terminal to hold."""
    return [line[start : start + LINE_CHARS_MAX] for start in range(0, len(line), LINE_CHARS_MAX)]


def moment(at_ms: int) -> str:
    """A time, for people."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


async def _status(system: "System", response: SystemResponse) -> str:
    """How a run stands that has neither ended nor asks anybody anything."""
    if response.terminal_code is not None or response.waiting_for is not None:
        return ""
    return (await system.archive.told(response.run_id)).explanation.standing.status


def _remark_on(terminal: Terminal, response: SystemResponse, status: str, said: str = "") -> None:
    run = f"run {response.run_id}"
    if response.error is not None:
        terminal.remark(f"{run} ended as {response.terminal_code} ({response.error.code}): {response.error.message}")
        if response.content and response.content == said:
            terminal.remark("not accepted as an answer, although it was said")
        elif response.content:
            rest = "" if len(response.content) <= LINE_CHARS_MAX else f"; all of it: remit show {response.run_id}"
            terminal.remark(f"not accepted as an answer: {plain(response.content, LINE_CHARS_MAX)}{rest}")
    for warning in response.warnings:
        terminal.remark(f"{run} ended as {response.terminal_code}: {warning}")
    if response.waiting_for is not None:
        terminal.remark(f"{run} waits for a person: {response.waiting_for.ending}")
    elif status == PAUSED:
        terminal.remark(f"{run} is paused; release it with: remit signal {response.run_id} resume")
    elif status:
        terminal.remark(f"{run} goes on in another process")
