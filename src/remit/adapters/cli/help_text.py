"""The help of one command, in plain lines.

Rule 1: everything in it is read off the command itself: its words, its docstring, its parameters.
Rule 2: it is printed as it stands, in any terminal, and loads nothing that paints.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument

LINE_CHARS_MAX = 110
_INDENT = "  "
_TEXT_AT = 6


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
    for argument in arguments:
        yield f"{_INDENT}{argument.name}{_value(argument)}"
        text = argument.parameter.help or ""
        yield from (f"{' ' * _TEXT_AT}{line}" for line in wrap(text, LINE_CHARS_MAX - _TEXT_AT))


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
