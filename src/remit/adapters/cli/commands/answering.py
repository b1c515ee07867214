"""The commands with which people answer runs, and tell them something.

Rule 1: whoever drives a run hears of it there; without a driver the run is driven here, to its next rest. A no loads
        nothing: without a driver the run hears it and rests.
Rule 2: an answer names who gave it, and the version of the packet that it is an answer to.
Rule 3: what is approved together is shown first; what is not ticked is refused, after what is.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.inputs import arguments_from, wrong_usage
from remit.adapters.cli.options import COMMON, ByWhom, Common, RunName, os_user
from remit.adapters.cli.screen.colours import print_lines
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.packet_lines import asked_lines, change_lines, ticked_lines
from remit.adapters.cli.screen.step_lines import caught_up, conclude
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.tell_run import at_rest, deliver, signal_from
from remit.core.failure import EXIT_OK, ArrivalFault, RequestRejected
from remit.core.record import JsonObject, Record, replace
from remit.core.run.signals import PACKET_MARK, PACKET_UNKNOWN, Signal
from remit.observe.people.packets import GROUP_MARK, VERSION_CHARS_MIN, Approval, grouped, is_named, version_of

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

SignalName: TypeAlias = Literal["cancel", "pause", "resume", "feedback", "retry"]
PacketName: TypeAlias = Annotated[
    str,
    Parameter(
        name="ID",
        help="What `remit approvals` lists: RUN/COMMAND, or RUN where it asks one thing; with a + all held together.",
    ),
]
PacketVersion: TypeAlias = Annotated[
    str, Parameter(name="--packet", help="The version of the packet that was looked at; any other is refused.")
]

# Where the text of a signal goes; the others take none.
_TEXT_KEYS: dict[Signal, str] = {Signal.CANCEL: "reason", Signal.FEEDBACK: "text", Signal.RETRY: "reason"}
# After these a run goes on, and whoever sent one waits for its next rest.
_DRIVING = (Signal.RESUME, Signal.RETRY)
_SHOWN_CHARS_MAX = 80
# What the model is told of a call that was held with others and not ticked.
UNTICKED = "it is not among the calls that were approved"


def approvals(
    packet: Annotated[
        str, Parameter(name="ID", help="Only this question, or with a + all held together, in full.")
    ] = "",
    /,
    *,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List what runs ask people."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            asked = await (system.archive.packet(packet) if packet else system.archive.approvals())
            for entry in await system.archive.runs(waiting_only=True, with_children=True):
                if doubt := await system.archive.in_doubt(entry):
                    terminal.remark(f"run {entry.run_id} hears no answer: {doubt}; see `remit restore {entry.run_id}`")
            items = [] if packet and not system.queues.limits else await system.queues.items()
            outside = {item.id for item in items if item.is_outside}
            people = {one.name: one.answered_by for one in system.queues.limits}
            asked = [replace(one, is_outside=one.id in outside, answered_by=people.get(one.queue, ())) for one in asked]
        left = [item for item in items if (item.doubted or item.found) and not packet]
        if terminal.is_json:
            for row in (*asked, *left):
                terminal.values(row)
            return
        for together in grouped(asked):
            lines = asked_lines(together, value_chars_max=0) if packet else asked_lines(together)
            print_lines(terminal, lines)
        if not asked:
            terminal.remark("nobody is asked anything")
        for item in left:
            terminal.remark(
                f"run {item.run_id} {item.summary}; see `remit show {item.run_id}`, and take note of it with "
                f"`remit queues ack {item.run_id}`"
            )

    in_loop(look())
    return EXIT_OK


def approve(
    packet: PacketName,
    /,
    *,
    only: Annotated[
        tuple[str, ...], Parameter(help="Of calls held together, those to allow; the rest is refused. Repeatable.")
    ] = (),
    version: PacketVersion = "",
    args: Annotated[Path | None, Parameter(help="A JSON file with arguments to call the tool with instead.")] = None,
    arguments: Annotated[
        str, Parameter(help="Arguments to change, as a JSON text: null removes one, and what is not named stays.")
    ] = "",
    text: Annotated[str, Parameter(help="The answer to a question that is asked in words.")] = "",
    reason: Annotated[str, Parameter(help="Why; the journal keeps it.")] = "",
    by: ByWhom = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say yes to what a run asks, and let it go on."""
    payload: JsonObject = {"text": text} if text else {}
    if reason:
        payload["reason"] = reason
    if (changed := arguments_from(args, arguments)) is not None:
        payload["arguments"] = changed
    is_group = packet.endswith(GROUP_MARK)
    if only and not is_group:
        raise wrong_usage(f"--only ticks calls that were held together; name them all as {packet[:_SHOWN_CHARS_MAX]}+")
    if is_group and (text or changed is not None):
        raise wrong_usage("a text or other arguments are for one call; name it without the +")
    answer = _Answer(Signal.APPROVE, packet, payload, by or os_user(), version, only, bool(arguments))
    return _answer(answer, common, terminal)


def reject(
    packet: PacketName,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why not; the model is told.")] = "",
    version: PacketVersion = "",
    by: ByWhom = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say no to what a run asks; nothing is loaded, and the run rests unless driven."""
    payload = {"reason": reason} if reason else {}
    return _answer(_Answer(Signal.REJECT, packet, payload, by or os_user(), version), common, terminal)


def signal(
    run: RunName,
    kind: Annotated[SignalName, Parameter(name="SIGNAL", help="What the run is told.")],
    text: Annotated[str, Parameter(name="TEXT", help="The feedback, or why a run is cancelled or tried again.")] = "",
    /,
    *,
    reason: Annotated[
        str, Parameter(name=("--reason", "--why"), help="The same; a run that succeeded is tried again only with one.")
    ] = "",
    by: ByWhom = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Tell a run to cancel, pause, resume or retry, or give it feedback."""
    told = Signal(kind)
    if text and reason:
        raise wrong_usage("TEXT and --reason say the same; give one of them")
    text = text or reason
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
            heard = await deliver(system, signal_from(by or os_user(), told, run_id, payload))
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


class _Answer(Record):
    """What somebody answers, to which packet, and which of its calls they ticked."""

    kind: Signal
    name: str
    payload: JsonObject
    by: str
    version: str = ""
    only: tuple[str, ...] = ()
    # Whether the arguments are those to change, and not all of them.
    is_partial: bool = False


def _whole(answer: _Answer, asked: Approval) -> _Answer:
    """The answer with all arguments of the call, where it names only those to change."""
    if not answer.is_partial:
        return answer
    merged = {**asked.arguments, **answer.payload["arguments"]}
    whole = {
        name: value for name, value in merged.items() if value is not None or name not in answer.payload["arguments"]
    }
    return replace(answer, payload={**answer.payload, "arguments": whole})


def _answer(answer: _Answer, common: Common, terminal: Terminal) -> int:
    narrator = Narrator(terminal)

    async def tell() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            packet = await system.archive.packet(answer.name)
            _expect_version(packet, answer.version)
            said = _whole(answer, packet[0])
            ticked, others = _ticked(packet, answer.only)
            _show(terminal, packet, ticked, said, system.covered)
            narrator.run_id = await system.archive.root(packet[0].run_id)
            teller = await caught_up(system, narrator.run_id)
            narrator.teller = None if terminal.is_json else teller
            for asked in ticked:
                await _say(system, terminal, asked, said)
            for asked in others:
                await _say(system, terminal, asked, replace(answer, kind=Signal.REJECT, payload={"reason": UNTICKED}))
            response = await at_rest(system, narrator.run_id)
            return await conclude(terminal, system, response, teller, said=narrator.shown)

    return narrated(narrator, tell())


async def _say(system: "System", terminal: Terminal, asked: Approval, answer: _Answer) -> None:
    payload: JsonObject = {**answer.payload, "packet_id": asked.id}
    if asked.packet:
        payload["packet"] = asked.packet
    heard = await deliver(system, signal_from(answer.by, answer.kind, asked.run_id, payload))
    if heard.rests_because:
        terminal.remark(f"run {asked.run_id} heard the no and rests: {heard.rests_because}")
    await system.result(asked.run_id)


def _expect_version(packet: Sequence[Approval], named: str) -> None:
    """Refuse an answer to a packet that is not, or no longer, the one that waits."""
    if named and not is_named(version := version_of(packet), named):
        message = (
            f"{packet[0].id} is packet {version or '(none)'} and {named[:_SHOWN_CHARS_MAX]!r} was looked at; look at it anew"
            f" with `remit approvals {packet[0].id}`, and name at least {VERSION_CHARS_MIN} digits of its version"
        )
        raise RequestRejected(ArrivalFault.PACKET_CHANGED, message, {"packet": version})


def _ticked(packet: Sequence[Approval], only: Sequence[str]) -> tuple[list[Approval], list[Approval]]:
    """The calls that are answered so, and those that are refused because they were not ticked."""
    if not only:
        return list(packet), []
    names = {asked.id: asked for asked in packet} | {asked.id.rpartition(PACKET_MARK)[2]: asked for asked in packet}
    for name in only:
        if name not in names:
            message = f"--only {name[:_SHOWN_CHARS_MAX]!r} is none of {', '.join(asked.id for asked in packet)}"
            raise RequestRejected(PACKET_UNKNOWN, message, {"packet_id": name[:_SHOWN_CHARS_MAX]})
    ticked = {names[name].id for name in only}
    return [one for one in packet if one.id in ticked], [one for one in packet if one.id not in ticked]


def _show(
    terminal: Terminal,
    packet: Sequence[Approval],
    ticked: Sequence[Approval],
    answer: _Answer,
    cover: Callable[[str], str],
) -> None:
    """Show what is answered together, or what other arguments change, before anything is said to the run."""
    if terminal.is_json:
        return
    lines = list(ticked_lines(packet, ticked)) if answer.name.endswith(GROUP_MARK) else []
    if answer.payload.get("arguments") is not None:
        lines += change_lines(packet[0], answer.payload["arguments"], cover)
    for line in lines:
        terminal.remark("".join(text for text, _ in line))
