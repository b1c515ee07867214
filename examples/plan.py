"""A plan over a small library: find, put in order, answer, check, and file the answer once a person allows it.

The model is scripted, so this runs anywhere and always says the same. With a real one, give another engine.

    python examples/plan.py
"""

import asyncio
import tempfile
from pathlib import Path

from remit import (
    ContextBuilder,
    Document,
    DocumentIndex,
    InferHandler,
    PlanExecutor,
    PlanPolicy,
    PlanResult,
    RerankHandler,
    RetrieveHandler,
    ScriptedEngine,
    Step,
    ToolHandler,
    ValidateHandler,
    rerank,
    tool,
)

DOCUMENTS = [
    Document("kettle.md", "Descale the kettle every month with a spoon of citric acid in a full kettle of water."),
    Document("teapot.md", "Rinse the teapot with hot water alone; soap stays in the clay."),
    Document("returns.md", "A tea set that arrived broken is replaced within thirty days."),
]

ANSWERS = [
    # The first answer has no source, so the check sends it back; what it objects to is the last thing the model reads.
    {"when": "cites no source", "text": "Every month, with citric acid [1]."},
    {"text": "Every month."},
]

PLAN = [
    Step("find", "retrieve"),
    Step("order", "rerank"),
    Step("answer", "infer", instruction="Answer in one sentence and cite your source."),
    Step("cited", "validate", retries=1),
    Step("note", "note"),
    Step("file", "tool", tool="file_note"),
]


NOTES: dict[str, str] = {}


def is_filed(arguments: dict[str, str], result: str) -> bool:
    """Whether the note stands where it was to be filed."""
    return NOTES.get(arguments["title"]) == arguments["text"]


@tool(effect="write", idempotent=True, verify=is_filed)
def file_note(title: str, text: str) -> str:
    """File a note."""
    NOTES[title] = text
    return f"filed {title!r}: {text}"


def note(step: Step) -> dict[str, str]:
    """A step of our own: what the tool is to be called with."""
    return {"title": "kettle", "text": step.input}


def cites_a_source(text: str) -> str | None:
    """What is wrong with an answer, if anything is."""
    return None if "[" in text else "the answer cites no source; name it by its number"


def show(result: PlanResult) -> None:
    """Every step that was finished, and how the plan stands."""
    for step in result.steps:
        shown = [one.source for one in step.output.candidates] if step.type in ("retrieve", "rerank") else step.output
        print(f"{step.name:>8}: {shown}")
    print(f"  stands: {result.response.terminal_code or 'waits for a person'}")


async def main(home: Path) -> None:
    """Run the plan until it waits for a person, allow what it asks, and let it finish."""
    with DocumentIndex() as index:
        index.add(DOCUMENTS)
        plans = PlanExecutor(
            {
                "retrieve": RetrieveHandler(ContextBuilder(index)),
                "rerank": RerankHandler(rerank),
                "infer": InferHandler(ScriptedEngine(ANSWERS)),
                "validate": ValidateHandler(cites_a_source),
                "note": note,
                "tool": ToolHandler([file_note]),
            },
            policy=PlanPolicy(max_steps=10, timeout_per_step_ms=30_000),
            home=home,
        )
        asked = await plans.execute(PLAN, prompt="How often is the kettle descaled with hot water?")
        show(asked)
        assert asked.response.waiting_for is not None, "nothing is written without being allowed to"
        done = await plans.approve(asked.response.waiting_for.packet_ids[0], by="ada")
        print(f"  output: {done.output}")
        print(f"  stands: {done.response.terminal_code}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
