"""The constraint stack: what a line costs, against reading its JSON and validating the value with nothing around it.

Run it alone: `python -m benchmarks.constrain`.
"""

import json

from benchmarks.measure import FULL, Effort, Figure, compare
from benchmarks.tables import table
from remit.constraint.stack import Demand, constrain
from remit.core.record import JsonObject
from remit.core.schema import compile_schema
from remit.orchestrate.facade import constrainer

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "in_progress", "done"]},
        "address": {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type": "string"}}},
    },
    "required": ["name", "age", "state"],
}
VALUE: JsonObject = {
    "name": "Ada Lovelace",
    "age": 36,
    "tags": ["mathematics", "engines"],
    "state": "in_progress",
    "address": {"street": "St James's Square", "zip": "SW1Y 4JH"},
}
TEXT = json.dumps(VALUE)
FLOOR = "json.loads and jsonschema-rs"
BROKEN = {
    "one repair: a comma behind": TEXT[:-1] + ",}",
    "a fence": f"```json\n{TEXT}\n```",
    "a word in another case": TEXT.replace("in_progress", "In Progress"),
    "a Python dict": repr(VALUE),
    "cut behind a value": TEXT[:-2],
    "prose around": f"Here it is: {TEXT} Anything else?",
}


def measure_constrain(effort: Effort) -> list[Figure]:
    """A line that fits, a text that fits, and texts that are broken in one way each."""
    demand, fits = Demand(SCHEMA), compile_schema(SCHEMA).fits
    stack = constrainer()
    line = json.dumps({"text": TEXT, "schema": SCHEMA}).encode()

    def floor() -> bool:
        return fits(json.loads(TEXT))

    def of(name: str, text: str) -> Figure:
        assert constrain(text, demand).value == VALUE, name
        return compare(name, lambda: constrain(text, demand), FLOOR, floor, operations=1, effort=effort)

    asked = compare("a line with its schema", lambda: stack.line(line), FLOOR, floor, operations=1, effort=effort)
    return [asked, of("a text that fits", TEXT), *(of(name, text) for name, text in BROKEN.items())]


def main() -> None:
    """Measure, then print."""
    print(*table(measure_constrain(FULL)), sep="\n")


if __name__ == "__main__":
    main()
