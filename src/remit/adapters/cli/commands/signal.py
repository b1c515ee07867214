"""The command that tells a run something: the driver of the run hears it, or the run is driven here to its next rest."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.answers.signal_delivery import at_rest, deliver, signal_from
from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, RunName, keyboard_user
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.step_lines import answer_with_steps, caught_up
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.core.record import JsonObject
from remit.core.run.signals import Signal

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

SignalName: TypeAlias = Literal["cancel", "pause", "resume", "feedback", "retry"]


# Where the text of a signal goes; the others take none.
_TEXT_KEYS: dict[Signal, str] = {Signal.CANCEL: "reason", Signal.FEEDBACK: "text", Signal.RETRY: "reason"}


# After these a run goes on, and their sender waits for its next rest.
_DRIVING = (Signal.RESUME, Signal.RETRY)


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
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Tell a run to cancel, pause, resume or retry, or give it feedback."""
    told = Signal(kind)
    if text and reason:
        raise wrong_usage("TEXT and --reason say the same; give one of them")
    text = text or reason
    if text and told not in _TEXT_KEYS:
        raise wrong_usage(f"{kind} takes no text; only {', '.join(_TEXT_KEYS)} do")
    payload: JsonObject = {_TEXT_KEYS[told]: text} if text else {}
    narrator = Narrator(terminal)

    async def tell() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            run_id = (await system.archive.find(run)).run_id
            if told is Signal.RESUME and not terminal.is_json:
                narrator.teller = await caught_up(system, run_id, terminal)
            heard = await deliver(system, signal_from(by or keyboard_user(), told, run_id, payload))
            narrator.run_id = heard.fork_id or run_id
            if told in _DRIVING:
                response = await at_rest(system, narrator.run_id)
                # A fork begins before there is a listener to it; what it came to is read off its turns.
                teller = await caught_up(system, narrator.run_id, terminal)
                return await answer_with_steps(terminal, system, response, teller, said=narrator.shown)
            if terminal.is_json:
                terminal.values({"run_id": run_id, "signal": told.value})
            else:
                terminal.line(f"run {run_id} heard: {told.value}")
                await _tell_of_parent(terminal, system, run_id)
            return EXIT_OK

    return narrated(narrator, tell())


async def _tell_of_parent(terminal: Terminal, system: "System", run_id: str) -> None:
    """Say how a run goes on whose child was ended, where no process drives it: to cancel loads no tools and asks no model."""
    child = await system.archive.find(run_id)
    parent_id = child.listing.parent_id
    if child.ending and parent_id and await system.is_left(parent_id, is_quiet=True):
        parent = (await system.archive.told(parent_id)).entry
        if not parent.ending and not parent.waiting_for:
            terminal.remark(
                f"run {parent_id} waited for it, and no process drives that; go on with: remit resume {parent_id}"
            )
