"""The command that says no to what a run asks."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.answers.packet_answers import PacketAnswer, PacketName, PacketVersion, give_answer
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, keyboard_user
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.run.signals import Signal


def reject(
    packet: PacketName,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why not; the model is told.")] = "",
    version: PacketVersion = None,
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say no to what a run asks; nothing is loaded, and the run rests unless driven."""
    payload = {"reason": reason} if reason else {}
    return give_answer(PacketAnswer(Signal.REJECT, packet, payload, by or keyboard_user(), version), common, terminal)
