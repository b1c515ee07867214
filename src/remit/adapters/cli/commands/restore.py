"""The command for stores whose database was put back: what is in doubt, and how a run goes on all the same.

Rule 1: looking changes nothing. A run goes on only as a fork, for a person who gives a name and a reason.
Rule 2: the exit code is 3 while something is in doubt, for it waits for a person.
"""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.answers.signal_delivery import at_rest
from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, keyboard_user
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.step_lines import answer_with_steps, caught_up
from remit.adapters.cli.screen.terminal import Terminal, plain_values
from remit.core.failure import EXIT_OK, EXIT_WAITING
from remit.observe.proof.findings import RunInDoubt, StoreInDoubt


def restore(
    run: Annotated[str, Parameter(name="RUN", help="The id of a run, the beginning of it, or `last`.")] = "",
    /,
    *,
    every: Annotated[bool, Parameter(name="--all", help="Every run of the store.")] = False,
    accept: Annotated[
        bool, Parameter(help="Accept that turns are missing: a fork of the run goes on, and asks before any change.")
    ] = False,
    why: Annotated[str, Parameter(help="Why that is accepted; the journal keeps it, and the model is told.")] = "",
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say which runs lack turns that were signed, and let a fork of one go on."""
    if every == bool(run):
        raise wrong_usage("give a run, or --all, and not both")
    if accept and every:
        raise wrong_usage("--accept is for one run: what is lost of each is another's doubt")
    if accept and not why.strip():
        raise wrong_usage("--accept takes a reason; say it with --why")
    if accept:
        return _accepted(run, by or keyboard_user(), why, common, terminal)

    async def look() -> StoreInDoubt:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            return await system.archive.doubts((await system.archive.find(run)).run_id if run else "")

    found = in_loop(look())
    if terminal.is_json:
        terminal.values(plain_values(found))
    else:
        for line in _lines(found):
            terminal.line(line)
    return EXIT_WAITING if _is_in_doubt(found) else EXIT_OK


def _accepted(run: str, by: str, why: str, common: CommonOptions, terminal: Terminal) -> int:
    narrator = Narrator(terminal)

    async def go_on() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            run_id = (await system.archive.find(run)).run_id
            heard = await system.restore(run_id, by=by, why=why)
            narrator.run_id = heard.fork_id
            response = await at_rest(system, heard.fork_id)
            teller = await caught_up(system, heard.fork_id, terminal)
            terminal.remark(f"run {run_id} stays as it is, in doubt; run {heard.fork_id} goes on in its place")
            return await answer_with_steps(terminal, system, response, teller, said=narrator.shown)

    return narrated(narrator, go_on())


def _lines(found: StoreInDoubt) -> Iterator[str]:
    for run in found.runs:
        if run.why:
            yield f"run {run.run_id} stands at turn {run.last}; later turns may be missing: {run.why}"
        else:
            missing = f"turns {run.last + 1} to {run.signed} were signed and are missing"
            yield f"run {run.run_id} stands at turn {run.last}; {missing}"
            yield f"    what they did is unknown{_ended(run)}"
        for what in run.may_have_done:
            yield f"    it may have been done: {what}"
        yield f"    go on as a fork that asks before any change: remit restore {run.run_id} --accept --why TEXT"
    for run in found.missing:
        signed = f"{run.signed + 1} turns of it were signed" if run.signed >= 0 else "what it did is unknown"
        yield f"run {run.run_id} is gone, and was not deleted; {signed}{_ended(run)}"
    if found.is_log_lost:
        yield "heads.log is gone or empty, although heads were signed; what else is missing is unknown"
    if found.is_log_damaged:
        yield "lines of heads.log cannot be read; put back a copy of it"
    if not _is_in_doubt(found):
        yield "nothing is in doubt: every turn that was signed is here"


def _is_in_doubt(found: StoreInDoubt) -> bool:
    return bool(found.runs or found.missing or found.is_log_lost or found.is_log_damaged)


def _ended(run: RunInDoubt) -> str:
    return f"; with them the run ended as {run.ending}" if run.ending else ""
