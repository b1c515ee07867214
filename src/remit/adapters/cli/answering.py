"""The commands with which people answer runs, and tell them something.

Rule 1: whoever drives a run hears of it there; without a driver the run is driven here, to its next rest.
Rule 2: an answer names who gave it.
"""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.inputs import arguments_in, wrong_usage
from remit.adapters.cli.looping import in_loop
from remit.adapters.cli.narrating import Narrator, narrated
from remit.adapters.cli.options import COMMON, ByWhom, Common, RunName, os_user
from remit.adapters.cli.responses import question_lines
from remit.adapters.cli.stepping import caught_up, conclude
from remit.adapters.cli.telling import at_rest, signal_from
from remit.adapters.cli.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.core.record import JsonObject
from remit.core.signals import Signal

SignalName: TypeAlias = Literal["cancel", "pause", "resume", "feedback", "retry"]
PacketName: TypeAlias = Annotated[
    str, Parameter(name="ID", help="What `remit approvals` lists, RUN/COMMAND; just RUN where it asks only one thing.")
]

# Where the text of a signal goes; the others take none.
_TEXT_KEYS: dict[Signal, str] = {Signal.CANCEL: "reason", Signal.FEEDBACK: "text"}
# After these a run goes on, and whoever sent one waits for its next rest.
_DRIVING = (Signal.RESUME, Signal.RETRY)


def approvals(*, common: Common = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """List what runs ask people."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            if terminal.is_json:
                for asked in await system.archive.approvals():
                    terminal.values(asked)
                return
            lines = await question_lines(system)
            for line in lines:
                terminal.line(line)
            if not lines:
                terminal.remark("nobody is asked anything")

    in_loop(look())
    return EXIT_OK


def approve(
    packet: PacketName,
    /,
    *,
    args: Annotated[Path | None, Parameter(help="A JSON file with arguments to call the tool with instead.")] = None,
    text: Annotated[str, Parameter(help="The answer to a question that is asked in words.")] = "",
    by: ByWhom = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say yes to what a run asks, and let it go on."""
    payload: JsonObject = {"text": text} if text else {}
    if (arguments := arguments_in(args)) is not None:
        payload["arguments"] = arguments
    return _answer(Signal.APPROVE, packet, payload, by, common, terminal)


def reject(
    packet: PacketName,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why not; the model is told.")] = "",
    by: ByWhom = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say no to what a run asks, and let it go on."""
    return _answer(Signal.REJECT, packet, {"reason": reason} if reason else {}, by, common, terminal)


def signal(
    run: RunName,
    kind: Annotated[SignalName, Parameter(name="SIGNAL", help="What the run is told.")],
    text: Annotated[str, Parameter(name="TEXT", help="The feedback, or why a run is cancelled.")] = "",
    /,
    *,
    by: ByWhom = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Tell a run to cancel, pause, resume or retry, or give it feedback."""
    told = Signal(kind)
    if text and told not in _TEXT_KEYS:
        raise wrong_usage(f"{kind} takes no text; only {' and '.join(_TEXT_KEYS)} do")
    payload: JsonObject = {_TEXT_KEYS[told]: text} if text else {}
    narrator = Narrator(terminal)

    async def tell() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            run_id = (await system.archive.find(run)).run_id
            if told is Signal.RESUME and not terminal.is_json:
                narrator.teller = await caught_up(system, run_id)
            heard = await system.signal(signal_from(by or os_user(), told, run_id, payload))
            narrator.run_id = heard.fork_id or run_id
            if told in _DRIVING:
                response = await at_rest(system, narrator.run_id)
                # A fork begins before anybody can listen to it; what it came to is read off its turns.
                teller = await caught_up(system, narrator.run_id)
                return await conclude(terminal, system, response, teller, said=narrator.shown)
            if terminal.is_json:
                terminal.values({"run_id": run_id, "signal": told.value})
            else:
                terminal.line(f"run {run_id} heard: {told.value}")
            return EXIT_OK

    return narrated(narrator, tell())


def _answer(kind: Signal, packet: str, payload: JsonObject, by: str, common: Common, terminal: Terminal) -> int:
    narrator = Narrator(terminal)

    async def answer() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            asked = await system.archive.approval(packet)
            narrator.run_id = await system.archive.root(asked.run_id)
            teller = await caught_up(system, narrator.run_id)
            narrator.teller = None if terminal.is_json else teller
            heard = await system.signal(
                signal_from(by or os_user(), kind, asked.run_id, {**payload, "packet_id": asked.id})
            )
            if heard.rests_because:
                terminal.remark(f"run {asked.run_id} heard the no and cannot go on: {heard.rests_because}")
                terminal.remark(f"mend that, then: remit signal {asked.run_id} resume")
            await system.result(asked.run_id)
            response = await at_rest(system, narrator.run_id)
            return await conclude(terminal, system, response, teller, said=narrator.shown)

    return narrated(narrator, answer())
