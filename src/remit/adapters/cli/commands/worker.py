"""The commands that make this process a worker of a cluster, and show what no worker could do."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.export_files import plain_fields
from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, whole_number
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.observe.plain import printable_line

if TYPE_CHECKING:
    from remit.assemble import Settings
    from remit.assemble_workers import Serving
    from remit.core.journal.queued import DeadLetter

Concurrency: TypeAlias = Annotated[
    int, Parameter(converter=whole_number, help="How many at a time: runs, or calls of each model or tool.")
]
Nats: TypeAlias = Annotated[str, Parameter(help="The servers of the cluster, nats://HOST:PORT; else --store says it.")]
Metrics: TypeAlias = Annotated[
    int, Parameter(converter=whole_number, help="The port that serves /metrics, /health and /live; none unless said.")
]
_CONCURRENCY = 8
# How long what comes of an errand is waited for, and how much of it is shown.
_WAIT_S, _SAID_CHARS_MAX = 10, 400
_RUNS = 100


def loop(
    *,
    concurrency: Concurrency = _RUNS,
    nats: Nats = "",
    metrics: Metrics = 0,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Drive runs of a cluster, whose models and tools other workers have."""
    from remit.assemble_workers import loop_worker

    return _served(terminal, loop_worker(_settings(common, nats), _positive(concurrency)), "drives runs", metrics)


def model(
    *,
    engine: Annotated[
        list[str] | None, Parameter(help="Which model to ask, as of `run`. May be said several times.")
    ] = None,
    concurrency: Concurrency = _CONCURRENCY,
    nats: Nats = "",
    metrics: Metrics = 0,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Ask models for the runs of a cluster."""
    from remit.assemble_workers import model_worker

    if not engine:
        raise wrong_usage("a model worker asks the models that it is given; name one with --engine")
    worker = model_worker(_settings(common, nats), engine, _positive(concurrency))
    return _served(terminal, worker, f"asks {', '.join(engine)}", metrics)


def tools(
    *,
    tools: Annotated[
        list[str] | None, Parameter(help="FILE.py, module:NAME or builtin:clock,calculator. May be said several times.")
    ] = None,
    concurrency: Concurrency = _CONCURRENCY,
    nats: Nats = "",
    metrics: Metrics = 0,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Call tools for the runs of a cluster, on their own host with their own secrets."""
    from remit.assemble_workers import tool_worker

    if not tools:
        raise wrong_usage("a tool worker calls the tools that it is given; name some with --tools")
    worker = tool_worker(_settings(common, nats), tools, _positive(concurrency))
    return _served(terminal, worker, f"calls the tools of {', '.join(tools)}", metrics)


def letters(
    *,
    replay: Annotated[
        int | None, Parameter(converter=whole_number, help="Send the errand with this number again.")
    ] = None,
    wait: Annotated[
        int, Parameter(converter=whole_number, help="How many seconds what comes of it is waited for; 10 unless said.")
    ] = _WAIT_S,
    nats: Nats = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List the errands that no worker could do, or send one again."""
    from remit.assemble_workers import dead_letters, replay_letter

    settings = _settings(common, nats)
    if replay is not None:
        if replay < 1:
            raise wrong_usage(
                f"--replay={replay} is no number of a letter; `remit worker letters` lists those there are"
            )
        letter, came, said = in_loop(replay_letter(settings, replay, max(wait, 0)))
        if terminal.is_json:
            terminal.values({**plain_fields(letter), "came": came, "outcome": said})
        else:
            _show(terminal, letter)
            terminal.line(printable_line(said, _SAID_CHARS_MAX))
            terminal.remark(
                "its run hears of that where the call was in doubt; one that has settled it changes nothing"
            )
        return EXIT_OK
    found = in_loop(dead_letters(settings))
    for letter in found:
        _show(terminal, letter)
    if not found and not terminal.is_json:
        terminal.remark("there are no dead letters")
    return EXIT_OK


def _settings(common: CommonOptions, nats: str) -> "Settings":
    return (replace(common, store=nats) if nats else common).settings()


def _positive(concurrency: int) -> int:
    if concurrency < 1:
        raise wrong_usage(f"--concurrency={concurrency} is too few; a worker does one thing at a time at least")
    return concurrency


def _served(terminal: Terminal, worker: "Serving", what: str, port: int) -> int:
    import asyncio

    from remit.assemble_workers import serve

    terminal.remark(f"this worker {what}; SIGTERM lets it finish and leave")
    asyncio.run(serve(worker, port=port))
    return EXIT_OK


def _show(terminal: Terminal, letter: "DeadLetter") -> None:
    if terminal.is_json:
        terminal.values(letter)
        return
    name, lane = letter.name, letter.lane
    where = f"{lane.kind} {lane.name}"
    about = f"run {name.run_id}, command {name.command_id}: " if name.run_id else ""
    terminal.line(f"{letter.number}  {letter.code}  {where}  {about}{letter.why}")
