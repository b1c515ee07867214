"""The command that says yes to what a run asks."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.answers.packet_answers import PacketAnswer, PacketName, PacketVersion, give_answer
from remit.adapters.cli.arguments.inputs import arguments_from, object_in_option, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, FullOption, keyboard_user
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.record import JsonObject
from remit.core.run.signals import Signal
from remit.observe.people.packets import GROUP_MARK

# A list of orders is far shorter than this many digits count.
EDIT_DIGITS_MAX = 4


def approve(
    packet: PacketName,
    /,
    *,
    only: Annotated[
        tuple[str, ...], Parameter(help="Of calls held together, those to allow; the rest is refused. Repeatable.")
    ] = (),
    version: PacketVersion = None,
    args: Annotated[Path | None, Parameter(help="A JSON file with arguments to call the tool with instead.")] = None,
    arguments: Annotated[
        str, Parameter(help="Arguments to change, as a JSON text: null removes one, and what is not named stays.")
    ] = "",
    edit: Annotated[
        tuple[str, ...],
        Parameter(help="Of orders, NUMBER=JSON puts another in the place of one, NUMBER= leaves it out. Repeatable."),
    ] = (),
    text: Annotated[str, Parameter(help="The answer to a question that is asked in words.")] = "",
    reason: Annotated[str, Parameter(help="Why; the journal keeps it.")] = "",
    by: ByWhom = "",
    full: FullOption = False,
    common: CommonOptions = COMMON,
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
        raise wrong_usage(f"--only ticks calls that were held together; name them all as {packet[:SHOWN_CHARS_MAX]}+")
    if is_group and (text or changed is not None):
        raise wrong_usage("a text or other arguments are for one call; name it without the +")
    if edit and (is_group or text or changed is not None):
        raise wrong_usage("--edit changes orders that one question lists; give nothing else with it")
    edits = dict(map(_edit_in, edit))
    if len(edits) < len(edit):
        raise wrong_usage("--edit names an order twice; say of each once what becomes of it")
    answer = PacketAnswer(
        kind=Signal.APPROVE,
        name=packet,
        payload=payload,
        by=by or keyboard_user(),
        version=version,
        only=only,
        is_partial=bool(arguments),
        is_full=full,
        edits=edits,
    )
    return give_answer(answer, common, terminal)


def _edit_in(said: str) -> tuple[int, JsonObject | None]:
    """The number of an order and what stands in its place."""
    number, mark, text = said.partition("=")
    if not mark or not number.isascii() or not number.isdecimal() or len(number) > EDIT_DIGITS_MAX:
        raise wrong_usage(
            f"--edit {said[:SHOWN_CHARS_MAX]!r} names no order; write it as 2=JSON, or 2= to leave it out"
        )
    return int(number), object_in_option(text, f"--edit {number}=") if text else None
