"""Flags, identities and purchases: what a run knows of its calls and observations by what tools declare.

Rule 1: nothing here rests on what a model says of a call; it rests on declarations of tools and boundaries, and on results.
Rule 2: what a test run came to counts once the run has changed something; the latest one decides.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import Rung
from remit.core.limits.argument_paths import values_at
from remit.core.limits.boundary import Boundary
from remit.core.limits.flags import OUTCOME_FIELDS, TESTS_FAILED, flag_named, is_test_run
from remit.core.limits.tools import ToolCategory, ToolDefinition
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.schema.json_text import scalars
from remit.core.schema.opened_schema import opened_schema
from remit.kernel.tally import Tally

# Flags that an outcome raises, and those that it lowers.
Flags: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
NO_FLAGS: Flags = ((), ())
# Types of results that have no fields.
_BARE = ("string", "integer", "number", "array", "null")
_WHO = "who:"
# How arguments call what names a person: by itself, or with one of these behind it.
_ENDS = ("", "id", "uid", "key", "no", "number", "ref")
_SIGNS = regex(r"[^a-z0-9]")
_DEPTH_MAX = 16


def may_flag(tool: ToolDefinition, boundary: Boundary) -> bool:
    """Whether an outcome of a tool may raise or lower a flag: by what it declares, by its name, or by a condition."""
    return bool(tool.flags or tool.trust.fields or boundary.conditions) or infers_tests(tool)


def declares_tests(tool: ToolDefinition) -> bool:
    """Whether a tool says which field of its result tells that tests failed, or is called as one that runs them."""
    return any(flag_named(spec) == TESTS_FAILED for _, spec in tool.flags) or infers_tests(tool)


def infers_tests(tool: ToolDefinition) -> bool:
    """Whether a tool of the sandbox is called as one that runs tests and does not declare how they tell."""
    return not tool.flags and is_test_run(tool.name, is_sandboxed=tool.category is ToolCategory.SANDBOX)


def is_unreadable(tool: ToolDefinition) -> bool:
    """Whether a tool that is taken for a test run promises no result by which its outcome could be told."""
    if not infers_tests(tool):
        return False
    fields, kind = tool.result.get("properties"), tool.result.get("type")
    if fields:
        return OUTCOME_FIELDS.isdisjoint(fields)
    return not tool.result or kind in _BARE


def settled_flags(tally: Tally, tool: ToolDefinition, raised: tuple[str, ...]) -> Flags:
    """The flags that an outcome raises, and those that it lowers."""
    if not declares_tests(tool):
        return raised, ()
    others = tuple(flag for flag in raised if flag != TESTS_FAILED)
    if TESTS_FAILED not in raised:
        return others, (TESTS_FAILED,)
    has_changed = any(trace.mutating and trace.rung is not Rung.INTENDED for trace in tally.state.calls.made.values())
    return ((*others, TESTS_FAILED) if has_changed else others), ()


def flags_now(tally: Tally) -> list[str]:
    """The flags that are up, those of this turn included."""
    lowered = set(tally.lowered)
    return sorted({*tally.state.calls.flags, *tally.raised} - lowered)


def concerns_of(tool: ToolDefinition, boundary: Boundary) -> list[str]:
    """What calls of a tool are about, as the tool or the boundary declares it."""
    return sorted({*tool.concerns, *(name for name, tools in boundary.concerns if tool.name in tools)})


class PersonNamed(NamedTuple):
    """A value of an argument that says whom a call is about: where it stands, and by which kind it is known."""

    path: str
    value: str
    kind: str


def people_in(arguments: Any, tool: ToolDefinition, boundary: Boundary) -> list[str]:
    """Whom a call is about: values of arguments that are declared as such people, or that are called so."""
    return [person.value for person in persons_in(arguments, tool, boundary)]


def persons_in(arguments: Any, tool: ToolDefinition, boundary: Boundary) -> list[PersonNamed]:
    """Whom a call is about, each person with the argument that says it."""
    declared = {path: kind for path, kind in tool.control_args if kind in boundary.identities}
    called = {kind.removeprefix(_WHO) + end: kind for kind in boundary.identities for end in _ENDS}
    found = [(path, value, kind) for path, kind in declared.items() for value in values_at(arguments, path)]
    for name, value in arguments.items():
        if name not in declared:
            found += [(name, one, kind) for one, kind in _called(name, value, called)]
    return [PersonNamed(path, str(value), kind) for path, one, kind in found for value in scalars(one)]


def people_arguments(tool: ToolDefinition, boundary: Boundary) -> list[PersonNamed]:
    """The arguments of a tool that say whom its calls are about, each with a made-up value."""
    return persons_in(_sampled_arguments(tool), tool, boundary)


def names_people(tool: ToolDefinition, boundary: Boundary) -> bool:
    """Whether calls of a tool, or its results, may say which person they are about."""
    is_told = any(kind in boundary.identities for _, kind in (*tool.trust.fields, *tool.control_args))
    return is_told or bool(people_in(_sampled_arguments(tool), tool, boundary))


def _sampled_arguments(tool: ToolDefinition) -> JsonObject:
    # Records stand behind references where a tool takes them as such.
    schema = opened_schema(tool.parameters) if "$defs" in tool.parameters else tool.parameters
    properties = schema.get("properties", {})
    return {name: _sampled(schema) for name, schema in properties.items()} if isinstance(properties, dict) else {}


def _sampled(schema: Any) -> Any:
    inner = schema.get("properties") if isinstance(schema, dict) else None
    return {name: _sampled(one) for name, one in inner.items()} if isinstance(inner, dict) and inner else "-"


def _called(name: str, value: Any, called: Mapping[str, str], depth: int = 0) -> Iterator[tuple[Any, str]]:
    plain = _SIGNS.sub("", name.lower())
    if isinstance(value, dict) and depth < _DEPTH_MAX:
        for key, inner in value.items():
            # A record that is called after a person is them by its own id; any other key speaks for itself.
            own = plain + _SIGNS.sub("", str(key).lower())
            yield from _called(own if own in called else str(key), inner, called, depth + 1)
    elif isinstance(value, list) and depth < _DEPTH_MAX:
        for inner in value:
            yield from _called(name, inner, called, depth + 1)
    elif plain in called:
        yield value, called[plain]


def purchased_so_far(tally: Tally) -> int:
    """The sum of the purchases that were issued, those of this turn included."""
    # What a resume sends was issued before, and is counted.
    new = (call for call in tally.issued if isinstance(call, CallTool) and call.id not in tally.state.commands.open)
    return tally.state.effects.purchased + sum(call.amount for call in new)
