"""The document of events: every arrival, ruling and command as its class describes it."""

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import get_args

from remit.core.journal import arrivals, commands, proposed_call, rulings
from remit.core.record import Record
from remit.kernel.decide import ANSWERS
from scripts.markdown import code, item, paragraph, table

MODULES: tuple[ModuleType, ...] = (proposed_call, arrivals, rulings, commands)
ARRIVALS: tuple[type[Record], ...] = get_args(arrivals.Arrival)
RULINGS: tuple[type[Record], ...] = get_args(rulings.Ruling)
COMMANDS: tuple[type[Record], ...] = get_args(commands.Command)


def events() -> Iterator[str]:
    """The whole document."""
    yield "# Events"
    yield paragraph(
        "A turn of the journal is one arrival and what was decided about it: rulings and commands. Each record is "
        "written with the name of its kind; a field that holds its default is not written."
    )
    yield "## Which arrival answers which command"
    yield paragraph("An outcome is heard only while the command it names is open and of the kind given here.")
    yield table(
        ("Command", "Answered by"),
        ((linked(kind), ", ".join(map(linked, answers_to(kind))) or "nothing") for kind in COMMANDS),
    )
    families = (("Arrivals", arrivals, ARRIVALS), ("Rulings", rulings, RULINGS), ("Commands", commands, COMMANDS))
    for title, module, kinds in families:
        yield f"## {title}"
        yield from rules_of(module)
        for kind in kinds:
            yield from described(kind)
    yield from parts()


def answers_to(command: type[Record]) -> list[type[Record]]:
    """The arrivals that settle a command of this kind."""
    return [arrival for arrival, answered in ANSWERS.items() if answered is command]


def answered_by(arrival: type[Record]) -> list[type[Record]]:
    """The command that an arrival of this kind settles, if it is an outcome."""
    return [answered for kind, answered in ANSWERS.items() if kind is arrival]


def rules_of(module: ModuleType) -> Iterator[str]:
    """What a module says about itself: its purpose, then its rules as a list."""
    first, _, rules = (inspect.getdoc(module) or "").partition("\n\n")
    yield paragraph(first)
    yield "\n".join(item(*rule.split(":", 1)) for rule in rules.split("Rule ")[1:])


def described(kind: type[Record]) -> Iterator[str]:
    """A record: its name, its docstring, what it answers or is answered by, and its fields."""
    yield f"### {kind.__name__}"
    yield paragraph(inspect.getdoc(kind) or "")
    for command in answered_by(kind):
        yield f"Answers {linked(command)}."
    if kind in COMMANDS:
        yield f"Answered by {' or '.join(map(linked, answers_to(kind))) or 'nothing'}."
    yield table(
        ("Field", "Type", "Default"), ((code(name), code(kept), code(value)) for name, kept, value in fields(kind))
    )


def fields(kind: type[Record]) -> Iterator[tuple[str, str, str]]:
    """Name, type and default of every field, spelled as in the source, where types have their short names."""
    for statement in class_body(kind):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                yield name, ast.unparse(annotation), "" if value is None else ast.unparse(value)


def class_body(kind: type) -> list[ast.stmt]:
    """The statements of a class."""
    [definition] = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    return definition.body


def parts() -> Iterator[str]:
    """What the events hold: records and enums defined beside them, and where the other types live."""
    yield "## What they hold"
    own = [value for module in MODULES for value in vars(module).values() if is_part(value, module)]
    for part in own:
        if issubclass(part, Record):
            yield from described(part)
        elif issubclass(part, Enum):
            yield f"### {part.__name__}"
            yield paragraph(inspect.getdoc(part) or "")
            yield ", ".join(code(member.value) for member in part)
    yield "### Types from elsewhere"
    yield table(("Type", "Home"), ((code(name), code(home)) for name, home in sorted(homes().items())))


def is_part(value: object, module: ModuleType) -> bool:
    """Whether a module defines this class without offering it as an event."""
    return (
        inspect.isclass(value) and value.__module__ == module.__name__ and value not in (*ARRIVALS, *RULINGS, *COMMANDS)
    )


def homes() -> dict[str, str]:
    """The files of the types that fields name and another module defines."""
    found: dict[str, str] = {}
    for module in MODULES:
        tree = ast.parse(inspect.getsource(module))
        spelled = {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.AnnAssign)
            for name in ast.walk(node.annotation)
            if isinstance(name, ast.Name)
        }
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("remit."):
                home = f"{(node.module or '').removeprefix('remit.').replace('.', '/')}.py"
                found.update({alias.name: home for alias in node.names if alias.name in spelled})
    here = {f"{module.__name__.removeprefix('remit.').replace('.', '/')}.py" for module in MODULES}
    return {name: home for name, home in found.items() if home not in here}


def linked(kind: type[Record]) -> str:
    """A kind with a link to where this document describes it."""
    return f"[`{kind.__name__}`](#{kind.__name__.lower()})"
