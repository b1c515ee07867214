"""Answers to packets: what a person says to the calls that a run holds, told to the run in the person's name.

Rule 1: the driver of a run hears the answer; a run without a driver is driven here, to its next rest. A no loads
        nothing: a run without a driver hears it and rests.
Rule 2: an answer names who gave it, and the version of the packet that it is an answer to.
Rule 3: what is approved together is shown first; what is not ticked is refused, after what is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.answers.signal_delivery import at_rest, deliver, signal_from
from remit.adapters.cli.arguments.options import CommonOptions
from remit.adapters.cli.screen.colours import remark_line
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.packet_lines import (
    change_lines,
    listed_lines,
    order_change_lines,
    orders_asked,
    ticked_lines,
)
from remit.adapters.cli.screen.step_lines import answer_with_steps, caught_up
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import ArrivalFault, RequestRejected
from remit.core.record import JsonObject, Record, replace
from remit.core.run.approval import Approval, What
from remit.core.run.signals import PACKET_MARK, PACKET_UNKNOWN, Signal
from remit.core.work.orders import ORDERS_INVALID
from remit.observe.people.packets import GROUP_MARK, VERSION_CHARS_MIN, asked_version, names_version

if TYPE_CHECKING:
    from remit.orchestrate.facade import System


PacketName: TypeAlias = Annotated[
    str,
    Parameter(
        name="ID",
        help="What `remit approvals` lists: RUN/COMMAND, or RUN where it asks one thing; with a + all held together.",
    ),
]


PacketVersion: TypeAlias = Annotated[
    str | None, Parameter(name="--packet", help="The version of the packet that was looked at; any other is refused.")
]


# What the model is told of a call that was held with others and not ticked.
UNTICKED = "it is not among the calls that were approved"


class PacketAnswer(Record):
    """What a person answers, to which packet, and which of its calls are ticked."""

    kind: Signal
    name: str
    payload: JsonObject
    by: str
    version: str | None = None
    only: tuple[str, ...] = ()
    # Whether the arguments are those to change, and not all of them.
    is_partial: bool = False
    # Whether what is shown is shown in full.
    is_full: bool = False
    # Of orders, by their number, those to change; None leaves one out.
    edits: Mapping[int, JsonObject | None] = {}


def give_answer(answer: PacketAnswer, common: CommonOptions, terminal: Terminal) -> int:
    """Tell a run what a person answers to its packet, wait until it rests, and return the exit code."""
    narrator = Narrator(terminal)

    async def tell() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            packet = await system.archive.packet(answer.name)
            _expect_version(packet, answer.version)
            said = _whole(answer, packet[0])
            ticked, others = _ticked(packet, answer.only)
            _show(terminal, packet, ticked, said, system.covered)
            if answer.edits and not terminal.is_json:
                listed = (await system.order_preview(packet[0].run_id))(said.payload["arguments"]["orders"])
                for line in listed_lines(listed):
                    remark_line(terminal, line)
            narrator.run_id = await system.archive.root(packet[0].run_id)
            teller = await caught_up(system, narrator.run_id, terminal)
            narrator.teller = None if terminal.is_json else teller
            for asked in ticked:
                await _say(system, terminal, asked, said)
            for asked in others:
                await _say(system, terminal, asked, replace(answer, kind=Signal.REJECT, payload={"reason": UNTICKED}))
            if answer.kind is Signal.APPROVE and not terminal.is_json:
                await _offer(system, terminal, ticked)
            response = await at_rest(system, narrator.run_id)
            return await answer_with_steps(
                terminal, system, response, teller, said=narrator.shown, is_full=answer.is_full
            )

    return narrated(narrator, tell())


async def _offer(system: "System", terminal: Terminal, approved: Sequence[Approval]) -> None:
    """Offer a standing grant for a call that was approved before, exactly as it is now."""
    for asked in [one for one in approved if one.purpose is What.APPROVAL and one.approvals_needed == 1]:
        if before := await system.grants.same_before(asked.id):
            terminal.remark(
                f"the same call was approved before ({before}); to be asked no more: "
                f"remit grants give --like {asked.id} --times 10 --until 30d"
            )


def _whole(answer: PacketAnswer, asked: Approval) -> PacketAnswer:
    """The answer with all arguments of the call, where it names only those to change."""
    if answer.edits:
        return replace(answer, payload={**answer.payload, "arguments": {"orders": _edited_orders(answer, asked)}})
    if not answer.is_partial:
        return answer
    merged = {**asked.arguments, **answer.payload["arguments"]}
    whole = {
        name: value for name, value in merged.items() if value is not None or name not in answer.payload["arguments"]
    }
    return replace(answer, payload={**answer.payload, "arguments": whole})


def _edited_orders(answer: PacketAnswer, asked: Approval) -> list[JsonObject]:
    """The orders that a person is asked about, as they want them."""
    orders = dict[int, JsonObject | None](enumerate(orders_asked(asked), 1))
    if unknown := [number for number in answer.edits if number not in orders]:
        message = f"--edit {unknown[0]}: {asked.id} lists {len(orders)} orders; name one of them by its number"
        raise RequestRejected(ORDERS_INVALID, message, {"order": unknown[0]})
    return [order for order in (orders | dict(answer.edits)).values() if order is not None]


async def _say(system: "System", terminal: Terminal, asked: Approval, answer: PacketAnswer) -> None:
    payload: JsonObject = {**answer.payload, "packet_id": asked.id}
    if asked.packet:
        payload["packet"] = asked.packet
    heard = await deliver(system, signal_from(answer.by, answer.kind, asked.run_id, payload))
    if heard.rests_because:
        terminal.remark(f"run {asked.run_id} heard the no and rests: {heard.rests_because}")
    await system.result(asked.run_id)


def _expect_version(packet: Sequence[Approval], named: str | None) -> None:
    """Refuse an answer to a packet that is not, or no longer, the one that waits."""
    if named is None:
        return
    version = asked_version(packet)
    if named != version and not names_version(version, named):
        message = (
            f"{packet[0].id} is packet {version or '(none)'} and {named[:SHOWN_CHARS_MAX]!r} was looked at; look at it anew"
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
            message = f"--only {name[:SHOWN_CHARS_MAX]!r} is none of {', '.join(asked.id for asked in packet)}"
            raise RequestRejected(PACKET_UNKNOWN, message, {"packet_id": name[:SHOWN_CHARS_MAX]})
    ticked = {names[name].id for name in only}
    return [one for one in packet if one.id in ticked], [one for one in packet if one.id not in ticked]


def _show(
    terminal: Terminal,
    packet: Sequence[Approval],
    ticked: Sequence[Approval],
    answer: PacketAnswer,
    cover: Callable[[str], str],
) -> None:
    """Show what is answered together, or what other arguments change, before anything is said to the run."""
    if terminal.is_json:
        return
    lines = list(ticked_lines(packet, ticked, is_full=answer.is_full)) if answer.name.endswith(GROUP_MARK) else []
    if orders := orders_asked(packet[0]):
        lines += order_change_lines(orders, answer.payload.get("arguments", {}).get("orders", orders), cover)
    elif answer.payload.get("arguments") is not None:
        lines += change_lines(packet[0], answer.payload["arguments"], cover)
    for line in lines:
        remark_line(terminal, line)
