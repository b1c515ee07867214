"""The command line inside the process of the tests: which options a command has is found out once.

A process parses one command and ends; tests parse thousands, and finding the options of a command takes longer than most
commands do. Every parsing gets copies, so that nothing is left of the one before. pydantic is out of sight, as it is for a
process that parses: nothing has imported it by then.
"""

from collections.abc import Callable
from copy import copy
from types import SimpleNamespace
from typing import Any

from cyclopts import App
from cyclopts.argument import Argument, ArgumentCollection, _argument

_found: dict[Callable[..., Any], ArgumentCollection] = {}
_find = App.assemble_argument_collection


def find_once() -> None:
    """Have the options of each command found once in this process."""
    App.assemble_argument_collection = _assembled  # type: ignore[method-assign, assignment]
    _argument.sys = SimpleNamespace(modules={})  # type: ignore[attr-defined, assignment]


def _assembled(app: App, **how: Any) -> ArgumentCollection:
    command = app.default_command
    if command is None or any(how.values()):
        return _find(app, **how)
    if command not in _found:
        _found[command] = _find(app)
    return _copied(_found[command], {})


def _copied(found: ArgumentCollection, copies: dict[int, Argument]) -> ArgumentCollection:
    """The same arguments without anything that was parsed for them; one that stands at two places stays one."""
    for argument in found:
        if id(argument) not in copies:
            copies[id(argument)] = new = copy(argument)
            new.tokens = []
            new.children = _copied(argument.children, copies)
    return ArgumentCollection(copies[id(argument)] for argument in found)  # type: ignore[no-untyped-call]
