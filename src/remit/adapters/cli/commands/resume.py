"""The command that goes on with a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.answers.attendance import attend
from remit.adapters.cli.answers.signal_delivery import at_rest, deliver, signal_from
from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, FullOption, keyboard_user
from remit.adapters.cli.commands.runs import asked_in
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.step_lines import RunTeller, answer_with_steps, caught_up
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_STOPPED, EXIT_WAITING, RemitError
from remit.core.journal.storage import RunHeld
from remit.core.run.contract import SystemResponse
from remit.core.run.signals import Signal
from remit.observe.watcher import metered

if TYPE_CHECKING:
    from remit.orchestrate.facade import System


# Of several runs, the one that went worst decides.
_WORST_FIRST = (EXIT_FAILED, EXIT_STOPPED, EXIT_WAITING, EXIT_OK)


def resume(
    run: Annotated[str, Parameter(name="RUN", help="The id of a run, the beginning of it, or `last`.")] = "",
    /,
    *,
    every: Annotated[bool, Parameter(name="--all", help="Every run that is open and has no driver.")] = False,
    accept_tools: Annotated[
        bool,
        Parameter(
            help="Go on although files of tools, engines, rules, a plan or a voter have changed; the run keeps who said so."
        ),
    ] = False,
    by: ByWhom = "",
    full: FullOption = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Go on with a run after a crash, an answer or a stop."""
    if every == bool(run):
        raise wrong_usage("give a run, or --all, and not both")
    narrator = Narrator(terminal, teller=None if terminal.is_json else RunTeller(terminal))
    accepts = (by or keyboard_user()) if accept_tools else ""

    async def play() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            if every:
                return await _resume_all(system, terminal, narrator, accepts)
            narrator.run_id = (await system.archive.find(run)).run_id
            resumed, teller = await _resume(system, terminal, narrator, accepts)
            if (await system.state_of(narrator.run_id)).place.paused:
                # A user who names a run wants it to go on; it may have been paused by a no, which loads nothing.
                await deliver(system, signal_from(by or keyboard_user(), Signal.RESUME, narrator.run_id, {}))
                resumed = await at_rest(system, narrator.run_id)
            response, left = await attend(terminal, system, resumed, narrator, by=by or keyboard_user(), is_full=full)
            return await answer_with_steps(
                terminal, system, response, teller, said=narrator.shown, is_full=full, seen=left
            )

    return narrated(narrator, play())


async def _resume_all(system: "System", terminal: Terminal, narrator: Narrator, accepts: str) -> int:
    """Go on with one run after the other. One that fails does not keep the others from going on."""
    codes: list[int] = []
    for run_id in await system.end_orphans():
        terminal.remark(f"run {run_id} is cancelled: the run that started it has ended")
    entries = await system.archive.runs(open_only=True)
    for place, entry in enumerate(reversed(entries), 1):
        asked = await asked_in(system, entry.run_id, (await system.archive.glimpse(entry)).asked)
        terminal.remark(f"run {entry.run_id} ({place} of {len(entries)}): {asked}")
        narrator.run_id = entry.run_id
        try:
            response, teller = await _resume(system, terminal, narrator, accepts)
        except RunHeld:
            terminal.remark(f"run {entry.run_id} is driven by another process")
        except RemitError as error:
            _complain(terminal, entry.run_id, error)
            codes.append(EXIT_FAILED)
        else:
            codes.append(await answer_with_steps(terminal, system, response, teller))
    terminal.remark(_summary(len(entries), codes))
    return next((code for code in _WORST_FIRST if code in codes), EXIT_OK)


def _complain(terminal: Terminal, run_id: str, error: RemitError) -> None:
    """Say why a run did not go on; programs are told which."""
    if terminal.is_json:
        told = {"code": str(error.code), "message": error.message, "details": error.details}
        terminal.values({"run_id": run_id, "error": told})
    else:
        terminal.complain(error)


def _summary(count: int, codes: Sequence[int]) -> str:
    """What became of all of them, in figures."""
    if not count:
        return "no run is open"
    words = {EXIT_OK: "succeeded", EXIT_WAITING: "wait", EXIT_STOPPED: "were stopped", EXIT_FAILED: "failed"}
    said = [f"{codes.count(code)} {word}" for code, word in words.items() if code in codes]
    if elsewhere := count - len(codes):
        said.append(f"{elsewhere} driven elsewhere")
    return f"{count} open run{'' if count == 1 else 's'}: {', '.join(said)}"


async def _resume(
    system: "System", terminal: Terminal, narrator: Narrator, accepts: str
) -> tuple[SystemResponse, RunTeller]:
    """A run at its next rest, and who told of it; changed code is accepted in the name that is given."""
    run_id = narrator.run_id
    # Until its next turn, this is where it stands.
    narrator.measured(run_id, metered(await system.state_of(run_id)))
    teller = await caught_up(system, run_id, terminal)
    if narrator.teller is not None:
        narrator.teller = teller
    changed = await system.archive.changed_sources(run_id) if accepts else ()
    response = await system.resume(run_id, accepted=changed, by=accepts)
    # The parent of a child that has ended goes on by itself, and leaving now would stop it.
    await system.settle()
    narrator.tell_recovery()
    return response, teller
