"""A response as the command line gives it: lines for people, one object for programs, an exit code for scripts.

Rule 1: an answer that was accepted goes to stdout, everything else that there is to say to stderr. What the model of a
        run said that failed may claim what never happened, and is not passed off as an answer.
Rule 2: the exit code is that of the table of endings; a run that waits for a person, was paused or was halted
        by one, or that no process drives, exits with 3.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from remit.adapters.cli.screen.colours import Line, remark_line
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import ANSWERED, ENDINGS, EXIT_OK, EXIT_WAITING
from remit.core.run.contract import CallStatus, SystemResponse
from remit.observe.people.packets import grouped
from remit.observe.plain import by_whom, printable_line

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

# How a run stands that rests although no person paused it, and that no process drives.
PAUSED, OPEN, LEFT = "paused", "open", "left"
# The same of conversations of agents elsewhere: a guard has them open, or none has.
GUARDED, UNGUARDED = "guarded", "unguarded"
_STANDS = {
    PAUSED: "is paused{by}; go on with: remit resume {run_id}",
    LEFT: "is driven by no process; go on with: remit resume {run_id}",
    OPEN: "goes on in another process",
    GUARDED: "goes on when its agent, which another process guards, makes its next call",
    UNGUARDED: (
        "rests, and no `remit guard` has it open: it goes on when its agent starts the conversation there again; to end it without "
        "its agent: remit signal {run_id} cancel"
    ),
}
NOBODY: Mapping[str, str] = MappingProxyType({})
# Longer than any line that a person writes; more on one line is a text that was made to be long.
LINE_CHARS_MAX = 4_096


async def give(
    terminal: Terminal,
    system: "System",
    response: SystemResponse,
    *,
    said: str = "",
    is_full: bool = False,
    seen: Collection[str] = (),
) -> int:
    """Answer with a response and return its exit code. What was `said` while it was made is not said again.

    What it asks is shown, in full or in four lines; of questions that were `seen` only how to answer them.
    """
    status, by = await _status(system, response), await _paused_by(system, response)
    if terminal.is_json:
        terminal.values(response)
    else:
        if response.terminal_code in ANSWERED and response.content and response.content != said:
            terminal.text(response.content)
        _remark_on(terminal, response, status, by, said)
        if response.waiting_for is not None:
            for line in await question_lines(system, response.run_id, is_full=is_full, seen=seen):
                remark_line(terminal, line)
    return exit_code_of(response, status)


def exit_code_of(response: SystemResponse, status: str = "") -> int:
    """What a script may conclude."""
    if response.terminal_code is not None:
        return ENDINGS[response.terminal_code].exit_code_when_ended
    is_resting = response.waiting_for is not None or response.halted is not None or status in (PAUSED, LEFT, UNGUARDED)
    return EXIT_WAITING if is_resting else EXIT_OK


async def question_lines(
    system: "System", run_id: str = "", *, is_full: bool = False, seen: Collection[str] = ()
) -> list[Line]:
    """What runs ask people, and how to answer."""
    # Only where a person is asked something; a packet tells times as this room does.
    from remit.adapters.cli.screen.packet_lines import asked_lines, way_lines

    packets = grouped(await system.archive.approvals(run_id))
    return [
        line
        for packet in packets
        for line in (
            way_lines(packet) if all(one.id in seen for one in packet) else asked_lines(packet, is_full=is_full)
        )
    ]


def time_text(at_ms: int) -> str:
    """A time, for people."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


async def _paused_by(system: "System", response: SystemResponse) -> dict[str, str]:
    """Who paused a run, or each of those beneath it that hold it up."""
    if response.terminal_code is not None or (response.waiting_for is not None and not response.waiting_for.paused):
        return {}
    standing = (await system.archive.told(response.run_id)).explanation.standing
    own = {response.run_id: standing.by} if standing.status == PAUSED else {}
    return own | dict(zip(standing.paused, standing.paused_by, strict=True))


async def _status(system: "System", response: SystemResponse) -> str:
    """How a run stands that has neither ended nor asks a person anything: that it is paused, or who goes on with it."""
    if response.terminal_code is not None or response.waiting_for is not None or response.halted is not None:
        return ""
    run_id = response.run_id
    status = (await system.archive.told(run_id)).explanation.standing.status
    if status != OPEN:
        return status
    is_left, is_guarded = await system.is_left(run_id, is_quiet=True), await system.is_guarded(run_id)
    if is_guarded:
        return UNGUARDED if is_left else GUARDED
    return LEFT if is_left else OPEN


def _failed_tools(response: SystemResponse) -> str:
    """The tools whose last calls failed or were refused; empty where all did in the end what they should."""
    last = {call.name: call.status for call in response.tool_calls_made}
    return ", ".join(name for name, status in last.items() if status in (CallStatus.FAILED, CallStatus.REFUSED))


def _remark_on(
    terminal: Terminal, response: SystemResponse, status: str, by: Mapping[str, str] = NOBODY, said: str = ""
) -> None:
    run = f"run {response.run_id}"
    if response.error is not None:
        code = "" if response.error.code == response.terminal_code else f" ({response.error.code})"
        terminal.remark(f"{run} ended as {response.terminal_code}{code}: {response.error.message}")
        if response.content and response.content == said:
            terminal.remark("what the model said last is not accepted as an answer")
        elif response.content:
            rest = "" if len(response.content) <= LINE_CHARS_MAX else f"; all of it: remit show {response.run_id}"
            terminal.remark(f"not accepted as an answer: {printable_line(response.content, LINE_CHARS_MAX)}{rest}")
    if terminal.is_live and response.error is None and response.content and (failed := _failed_tools(response)):
        terminal.remark(f"this answer follows a call of {printable_line(failed, LINE_CHARS_MAX)} that did not succeed")
    for warning in response.warnings:
        ended = "" if response.terminal_code is None else f" ended as {response.terminal_code}"
        terminal.remark(f"{run}{ended}: {warning}")
    if (halt := response.halted) is not None:
        terminal.remark(
            f"{run} stands still: {printable_line(halt.what, LINE_CHARS_MAX)} is halted by {printable_line(halt.by, LINE_CHARS_MAX)}: "
            f"{printable_line(halt.why, LINE_CHARS_MAX)}; once that is lifted: remit resume {response.run_id}"
        )
    elif (waiting := response.waiting_for) is not None:
        if waiting.packet_ids or not waiting.paused:
            terminal.remark(f"{run} waits for a person: {waiting.ending}; all of it: remit approvals --full")
        for paused in waiting.paused:
            who = by_whom(by.get(paused, ""))
            terminal.remark(f"{run} waits for run {paused}, which is paused{who}; go on with: remit resume {paused}")
    elif status:
        terminal.remark(
            f"{run} {_STANDS[status].format(run_id=response.run_id, by=by_whom(by.get(response.run_id, '')))}"
        )
