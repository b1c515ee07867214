"""Structured output: what a line, a text and a whole call cost, against reading JSON and validating it, nothing else.

Run it alone: `python -m benchmarks.constrain`.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import FULL, Effort, Figure, Work, compare, together
from benchmarks.tables import table
from remit import SpecializedLoop
from remit.assemble import system_in_memory
from remit.constraint.stack import Demand, constrain
from remit.core.failure import Ending
from remit.core.record import JsonObject
from remit.core.run.contract import SystemResponse
from remit.core.schema.json_schema import compile_schema
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.drafts import constrainer

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
CORPUS = Path(__file__).parent.parent / "tests" / "unit" / "constraint" / "corpus"
# Stands for the value of a text that has none; no text of the corpus means it.
MISSING = "no value was meant"
FLOOR = "json.loads and jsonschema-rs"
ONE_REPAIR = "one repair: a comma behind"
BROKEN = {
    ONE_REPAIR: TEXT[:-1] + ",}",
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
    mended = json.dumps({"text": BROKEN[ONE_REPAIR], "schema": SCHEMA}).encode()

    def floor() -> bool:
        return fits(json.loads(TEXT))

    def of(name: str, work: Work) -> Figure:
        return compare(name, work, FLOOR, floor, operations=1, effort=effort)

    def text(name: str, broken: str) -> Figure:
        assert constrain(broken, demand).value == VALUE, name
        return of(name, lambda: constrain(broken, demand))

    assert stack.line(line)["value"] == stack.line(mended)["value"] == VALUE
    return [
        of("a line with its schema", lambda: stack.line(line)),
        of("a line with one repair", lambda: stack.line(mended)),
        text("a text that fits", TEXT),
        *(text(name, broken) for name, broken in BROKEN.items()),
    ]


def measure_calls(effort: Effort) -> list[Figure]:
    """Whole structured calls in memory, with a scripted engine: one whose answer fits, and one that needs a repair."""
    fits = compile_schema(SCHEMA).fits
    with asyncio.Runner() as runner:
        system = system_in_memory()

        def of(name: str, answer: str) -> Figure:
            loop = SpecializedLoop(ScriptedEngine([{"text": answer}]), schema=SCHEMA, system=system)

            def call() -> SystemResponse:
                return runner.run(loop.call("Who was she?"))

            response = call()
            assert (response.terminal_code, response.structured_output) == (Ending.SUCCESS, VALUE), response
            return compare(name, call, FLOOR, lambda: fits(json.loads(TEXT)), operations=1, effort=effort)

        figures = [of("a structured call that fits", TEXT), of("the same with one repair", BROKEN[ONE_REPAIR])]
        runner.run(system.close())
    return figures


def constrain_in_rounds(effort: Effort) -> list[Figure]:
    """Everything here, measured in rounds."""
    rounds = [[*measure_constrain(effort), *measure_calls(effort)] for _ in range(effort.rounds)]
    return [together(same) for same in zip(*rounds, strict=True)]


@dataclass(frozen=True)
class Rates:
    """What becomes of a corpus of broken texts: a value as it was meant, a refusal, or a value that was not meant."""

    texts: int
    meant: int
    refused: int
    wrong: int


def corpus_rates() -> Rates:
    """The corpus of the tests, read with repairs."""
    lines = [line for file in sorted(CORPUS.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    cases = [json.loads(line) for line in lines]
    results = [(case, constrain(case["text"], Demand(case.get("schema")))) for case in cases]
    values = [
        json.dumps(result.value) == json.dumps(case.get("value", MISSING)) for case, result in results if result.ok
    ]
    return Rates(len(cases), sum(values), len(cases) - len(values), len(values) - sum(values))


def constrain_lines(figures: Sequence[Figure]) -> Iterator[str]:
    """The figures as a table, and what becomes of the corpus."""
    yield "Structured output: a line of `remit constrain`, the constraint stack, and whole calls in memory"
    yield from table(figures)
    rates = corpus_rates()
    yield (
        f"  of {rates.texts} broken texts, {rates.meant} become the value that was meant, {rates.refused} are refused, "
        f"{rates.wrong} become another value"
    )


def main() -> None:
    """Measure, then print."""
    print(*constrain_lines(constrain_in_rounds(FULL)), sep="\n")


if __name__ == "__main__":
    main()
