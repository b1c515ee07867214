"""The command line itself: find the command, run it, and turn whatever happens into lines and an exit code.

Rule 1: asking for help or for the version loads nothing of the house.
Rule 2: every error of the house is one line with its code; a traceback is shown only where the log was asked for.
Rule 3: the help of a command is read off the command: its words, its docstring, its parameters; it loads nothing that paints.
Rule 4: exit codes are 0 for success, 1 for an error, 2 for wrong usage, 3 while a person is waited for, 4 for a run that
        was refused or stopped by policy or budget, and 128 and more for a command that a signal ended.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from remit.adapters.cli.table import PROGRAM, command_entries, help_overview
from remit.core.raised import raised

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError
    from cyclopts.argument import Argument

    from remit.adapters.cli.arguments.options import CommonOptions
    from remit.adapters.cli.screen.terminal import Terminal


EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_STOPPED = 0, 1, 2, 4
# The command was interrupted before or after its event loop.
EXIT_INTERRUPTED = 130
UNEXPECTED = "UNEXPECTED"
HELP = ("--help", "-h")
VERSION = "--version"

# Options that may stand before the command, and whether each takes a value.
_GLOBAL = {"--home": True, "--store": True, "--log-level": True, "--log-format": True, "--json": False}
_SHOWN_CHARS_MAX = 500
# How wide the help of a command is, and how far its lines are set in.
HELP_CHARS_MAX = 110
_INDENT = "  "
_TEXT_AT = 6
# What the command line can do about an error of the house, which knows no command line.
_WAYS_OUT = dict.fromkeys(
    (f"{what}_SOURCE_CHANGED" for what in ("TOOL", "ENGINE", "PLAN", "VOTER", "RULES")),
    "`remit resume RUN --accept-tools` accepts the change, in your name",
)

# What is refused at the door for want of budget, or because dispatch is halted, ends like a run that was stopped for it.
_REFUSED = frozenset({"QUOTA_EXHAUSTED", "HALTED"})

# From this level on the log holds tracebacks, too.
_TRACEBACKS_FROM = "debug"

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what a command line says; gives the exit code."""
    tokens = _command_first(list(sys.argv[1:] if argv is None else argv))
    if not tokens:
        return _told(sys.stderr, help_overview(), EXIT_USAGE)
    if tokens[0] in HELP:
        return _told(sys.stdout, help_overview(), EXIT_OK)
    if tokens[0] == VERSION:
        from remit import __version__

        return _told(sys.stdout, f"{PROGRAM} {__version__}", EXIT_OK)
    try:
        return _obey(tokens)
    except KeyboardInterrupt:
        # Outside of an event loop nothing is under way that would have to be ended.
        return EXIT_INTERRUPTED


def build_app() -> "App":
    """The commands; of those that stand alone or behind another, none is loaded yet."""
    from cyclopts import App, Parameter

    app = App(
        name=PROGRAM,
        version_flags=(),
        # A flag has no opposite, and what happens without an option stands in its line.
        default_parameter=Parameter(negative=(), show_default=False),
        result_action="return_value",
    )
    groups: dict[str, App] = {}
    families = {entry.words.rpartition(" ")[0] for entry in command_entries()}
    for entry in command_entries():
        *group, name = entry.words.split()
        if entry.words in families:
            # A command that others stand behind: whatever is none of their names is for itself.
            groups[name] = App(name=name, version_flags=())
            groups[name].default(_loaded(entry.home))
            app.command(groups[name])
            continue
        home = app
        for word in group:
            if word not in groups:
                groups[word] = App(name=word, version_flags=(), help=f"Commands about {_plural(word)}.")
                app.command(groups[word])
            home = groups[word]
        home.command(f"remit.adapters.cli.{entry.home}", name=name)
    return app


def _plural(word: str) -> str:
    return f"{word.removesuffix('y')}ies" if word.endswith("y") else f"{word.removesuffix('s')}s"


def _loaded(home: str) -> Callable[..., int]:
    """The function behind a command, where the table says it is."""
    module, _, name = home.partition(":")
    found: Callable[..., int] = getattr(import_module(f"remit.adapters.cli.{module}"), name)
    return found


def _told(stream: TextIO | None, text: str, code: int) -> int:
    """Print a text of our own; gives the exit code, which is another when it cannot be printed."""
    try:
        if stream is not None:
            stream.write(text + "\n")
            stream.flush()
    except OSError:
        # Otherwise the interpreter would try again at its end, and complain.
        sys.stdout = None  # As Python itself has it when there is no stdout.
        return EXIT_FAILED
    return code


def _command_first(tokens: list[str]) -> list[str]:
    """The command line with the options that stand before the command behind it."""
    place = 0
    while place < len(tokens) and (name := tokens[place].partition("=")[0]) in _GLOBAL:
        place += 2 if _GLOBAL[name] and "=" not in tokens[place] else 1
    return [*tokens[place : place + 1], *tokens[:place], *tokens[place + 1 :]]


def _obey(tokens: list[str]) -> int:
    from cyclopts import CycloptsError

    from remit.adapters.cli.arguments.options import COMMON
    from remit.adapters.cli.screen.terminal import Terminal, own_stdout

    app = build_app()
    words = tokens[: tokens.index("--")] if "--" in tokens else tokens
    if any(word in HELP for word in words):
        asked = [word for word in words if word not in HELP]
        if not _is_unknown(app, asked):
            return _told(sys.stdout, command_help(app, asked, PROGRAM), EXIT_OK)
        # What is no command has no help, and is told like a command line that names it.
        tokens = words = asked
    with own_stdout() as out:
        terminal = Terminal(out, sys.stderr, is_json="--json" in words)
        try:
            command, bound, injected = app.parse_args(tokens, exit_on_error=False, print_error=False)
        except CycloptsError as error:
            return _misused(terminal, _complaint(error, tokens[0]), _command_in(app, words))
        if "terminal" not in injected:
            return _misused(terminal, f"{' '.join(words)} needs a command behind it", _command_in(app, words))
        common = bound.arguments.get("common", COMMON)
        terminal.is_json = common.json
        bound.arguments["terminal"] = terminal
        with _logging(common):
            return _answered(terminal, partial(command, *bound.args, **bound.kwargs))


def _is_unknown(app: "App", words: Sequence[str]) -> bool:
    """Whether a word stands where a command should stand, and is none."""
    _, apps, rest = app.parse_commands(list(words))
    return apps[-1].default_command is None and any(not word.startswith("-") for word in rest[:1])


def _complaint(error: "CycloptsError", first: str) -> str:
    """What is wrong with a command line, in as few words as it takes."""
    if first.startswith("-"):
        return f"{first[:_SHOWN_CHARS_MAX]} has no command behind it, or is no option"
    from cyclopts.exceptions import UnusedCliTokensError

    # The help lists the commands in full; here they would be cut.
    said = str(error).partition(" Available commands:")[0]
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        said = f"{error.unused_tokens[0]!r} is one word too many; put quotes around a text of several words"
    return said.rstrip(".")[:_SHOWN_CHARS_MAX]


def _command_in(app: "App", words: Sequence[str]) -> str:
    """As much of a command line as names a command, or a group of them."""
    chain, _, _ = app.parse_commands(list(words))
    return " ".join([PROGRAM, *(word for word in chain if not word.startswith("-"))])


def _misused(terminal: "Terminal", message: str, command: str) -> int:
    from remit.adapters.cli.arguments.inputs import wrong_usage

    joint = " See" if message.endswith("?") else "; see"
    terminal.complain(wrong_usage(f"{message}{joint} `{command} --help`"))
    return EXIT_USAGE


def _answered(terminal: "Terminal", command: Callable[[], int]) -> int:
    """What a command comes to; whatever it raises becomes a line and an exit code."""
    from remit.adapters.cli.arguments.inputs import InputUnusable
    from remit.adapters.cli.event_loop import Interrupted
    from remit.core.failure import InvariantBroken, RemitError

    try:
        return command()
    except Interrupted as stop:
        if terminal.is_json:
            terminal.complain(stop)
        else:
            terminal.remark(stop.message)
        return stop.exit_code
    except InputUnusable as error:
        # A file of code that broke while it was loaded is wrong usage, too, and its author wants to see where.
        _log.debug("the command cannot be obeyed", exc_info=error)
        terminal.complain(error)
        return EXIT_USAGE
    except RemitError as error:
        _log.debug("the command failed", exc_info=error)
        terminal.complain(error)
        if str(error.code) in _WAYS_OUT:
            terminal.remark(_WAYS_OUT[str(error.code)])
        return EXIT_STOPPED if str(error.code) in _REFUSED else EXIT_FAILED
    except Exception as error:  # noqa: BLE001  # the user of a command line gets a line, not a traceback
        _log.debug("the command broke", exc_info=error)
        what = raised(error)
        message = f"{what[:_SHOWN_CHARS_MAX]}; this is a fault of remit, and --log-level debug logs where it happened"
        terminal.complain(InvariantBroken(UNEXPECTED, message))
        return EXIT_FAILED


@contextmanager
def _logging(common: "CommonOptions") -> Iterator[None]:
    """Logs to stderr for as long as the command takes."""
    from remit.observe.logs import JsonFormatter, TextFormatter

    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    if common.log_level != _TRACEBACKS_FROM:
        handler.addFilter(_without_traceback)
    handler.setFormatter(JsonFormatter() if common.log_format == "json" else TextFormatter())
    before = root.level
    root.addHandler(handler)
    root.setLevel(common.log_level.upper())
    try:
        yield
    finally:
        root.setLevel(before)
        root.removeHandler(handler)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Let every record pass, without the place in the code where it was raised."""
    record.exc_info = record.exc_text = None
    return True


def command_help(app: "App", words: Sequence[str], program: str) -> str:
    """What `remit COMMAND --help` prints; of a group of commands, its commands."""
    chain, apps, _ = app.parse_commands(list(words))
    command = apps[-1]
    name = " ".join([program, *chain])
    if command.default_command is None:
        return "\n".join(_group(name, command))
    taken = [argument for argument in command.assemble_argument_collection() if argument.show]
    places = [argument for argument in taken if argument.index is not None]
    options = [argument for argument in taken if argument.index is None]
    usage = " ".join(argument.name if argument.required else f"[{argument.name}]" for argument in places)
    lines = [f"Usage: {name} {usage} [OPTIONS]".replace("  ", " "), "", command.help, ""]
    if places:
        lines += ["Arguments:", *_listed(places), ""]
    lines += ["Options:", *_listed(options)]
    if behind := list(_commands(command)):
        lines += ["", "Commands:", *behind]
    return "\n".join(lines)


def _group(name: str, group: "App") -> Iterator[str]:
    yield f"Usage: {name} COMMAND [OPTIONS]"
    yield from ("", group.help, "", "Commands:")
    yield from _commands(group)


def _commands(group: "App") -> Iterator[str]:
    """The commands behind a word, each with its line."""
    for word in group:
        if not word.startswith("-"):
            yield f"{_INDENT}{word:<10}{group[word].help}"


def _listed(arguments: Sequence["Argument"]) -> Iterator[str]:
    from textwrap import wrap

    for argument in arguments:
        yield f"{_INDENT}{argument.name}{_value(argument)}"
        text = argument.parameter.help or ""
        yield from (f"{' ' * _TEXT_AT}{line}" for line in wrap(text, HELP_CHARS_MAX - _TEXT_AT))


def _value(argument: "Argument") -> str:
    """What an option takes: one of its choices, a number, a file, a text, or nothing."""
    if argument.index is not None or argument.token_count()[0] == 0:
        return ""
    if choices := argument.get_choices():
        return f" {'|'.join(choices)}"
    hint = str(argument.hint)
    for mark, word in (("Path", "PATH"), ("float", "NUMBER"), ("int", "NUMBER")):
        if mark in hint:
            return f" {word}"
    return " TEXT"
