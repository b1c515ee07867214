"""Left out: an argument that a call does not give is a choice too. Without "for user 4242" it would fall on everybody.

Rule 1: where the clause that orders a tool gives a value for an argument, the call gives it, or a person is asked: a number
        or a name beside the argument's noun, a choice, a switch.
Rule 2: a call that says nothing and gives none of the arguments that could narrow it falls on everything, which is to be
        said: all, every.
"""

from collections.abc import Iterator, Sequence

from remit.core.record import JsonObject
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.grounds import Evidence
from remit.provenance.kinds import UNSAYING, is_target
from remit.provenance.vocabulary import name_stems


def optional_of(declaration: Declaration) -> tuple[tuple[str, JsonObject], ...]:
    """The arguments that a call may leave out and that steer it, with their schemas."""
    properties, required = declaration.parameters.get("properties"), declaration.parameters.get("required")
    needed = {*(required if isinstance(required, (list, tuple)) else ()), *declaration.payload_args}
    found = properties.items() if isinstance(properties, dict) else ()
    return tuple((name, schema) for name, schema in found if name not in needed and isinstance(schema, dict))


def left_out(
    optional: Sequence[tuple[str, JsonObject]], given: Sequence[Argument], declaration: Declaration, evidence: Evidence
) -> Iterator[str]:
    """The arguments that a call leaves out although the words give them, or although without any it has no bounds."""
    said = {one.path.partition("[")[0].partition(".")[0] for one in given if one.bound_by != "default"}
    kinds = dict(declaration.control_args)
    missing = [(name, schema) for name, schema in optional if name not in said]
    for name, schema in missing:
        if _is_given(name, schema, declaration.name, evidence):
            yield name
    if not said and not declaration.payload_args and not evidence.plan.universals_of(declaration.name):
        yield from (name for name, _ in missing if is_target(kinds.get(name, "enum")))


def _is_given(name: str, schema: JsonObject, tool: str, evidence: Evidence) -> bool:
    ordering, choices, stems = evidence.ordering, schema.get("enum"), name_stems(name)
    if schema.get("type") == "boolean":
        return bool(stems) and ordering.switch(tool, stems) is not None
    if isinstance(choices, (list, tuple)) and any(
        isinstance(one, str) and one != schema.get("default") and ordering.choice(tool, one, choices) for one in choices
    ):
        return True
    return ordering.calls_something(tool, stems - UNSAYING)
