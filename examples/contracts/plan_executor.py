"""Typed steps in an order: each works on what the step before it gave, unless it has an input of its own."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from remit import (
    ContextBuilder,
    Document,
    DocumentIndex,
    ExecutionPlan,
    InferHandler,
    PlanExecutor,
    RerankCandidate,
    RerankHandler,
    RerankInput,
    RetrieveHandler,
    ScoreMaker,
    ScriptedEngine,
    Step,
    StepType,
    ValidateHandler,
)

QUERY = "How do interfaces work in Go?"
STEP_SUMMARIZE = "summarize"


@dataclass
class Scored:
    """What a reranker elsewhere works with: a text, its score and where it is from."""

    content: str
    score: float
    source: str
    metadata: dict[str, Any]


class Reranker:
    """A reranker that knows nothing of plans: the longest first, two of them."""

    def rerank(self, query: str, found: list[Scored]) -> list[Scored]:
        """Those that remain, best first."""
        return sorted((replace(one, score=float(len(one.content))) for one in found), key=lambda one: -one.score)[:2]


class RerankAdapter:
    """Satisfies CandidateReranker: it converts the candidates of a plan for the reranker, and what remains back."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    async def rerank(self, asked: RerankInput) -> list[RerankCandidate]:
        """The candidates that remain, best first."""
        found = [Scored(str(one.content), one.score, one.source, dict(one.metadata)) for one in asked.candidates]
        kept = self._reranker.rerank(asked.query, found)
        return [RerankCandidate(one.content, one.source, one.score, ScoreMaker.RERANK, one.metadata) for one in kept]


def check(output: str) -> str | None:
    """What is wrong with an answer; nothing where it may pass."""
    return f"output too short: {len(output)} chars" if len(output) < 10 else None


def summarize(step: Step) -> Step:
    """A step of your own: at most 40 characters."""
    if not isinstance(step.input, str):
        raise TypeError(f"summarize: expected text, got {type(step.input).__name__}")
    summary = step.input.strip()
    return step.with_output(f"{summary[:40]}..." if len(summary) > 40 else summary)


async def main() -> None:
    """The pipeline, the same with a check, with a step of your own, and what a plan leaves that fails."""
    index = DocumentIndex()
    index.add(
        [
            Document("go.md", "Interfaces in Go are satisfied implicitly."),
            Document("rust.md", "Traits, not interfaces, in Rust."),
        ]
    )
    engine = ScriptedEngine([{"text": "A type that has the methods satisfies the interface [1]."}])
    retrieve, infer = RetrieveHandler(ContextBuilder(index)), InferHandler(engine)

    plan = ExecutionPlan(
        (
            Step("retrieve", StepType.RETRIEVE, QUERY),
            Step("rerank", StepType.RERANK),  # works on what was retrieved
            Step("infer", StepType.INFER),  # works on what was reranked
        )
    )
    async with PlanExecutor(
        {StepType.RETRIEVE: retrieve, StepType.RERANK: RerankHandler(RerankAdapter(Reranker())), StepType.INFER: infer}
    ) as executor:
        results = await executor.execute(plan)
    print(f"retrieved: {[one.source for one in results.steps[0].output.candidates]}")
    print(f"reranked: {[one.source for one in results.steps[1].output.candidates]}")
    print(f"inferred: {results.steps[2].output}")

    checked = [Step("retrieve", "retrieve", QUERY), Step("infer", "infer"), Step("validate", "validate")]
    async with PlanExecutor({"retrieve": retrieve, "infer": infer, "validate": ValidateHandler(check)}) as executor:
        print(f"validated: {(await executor.execute(checked)).response.terminal_code}")

    own = [Step("infer", "infer", "Explain."), Step("short", STEP_SUMMARIZE)]
    async with PlanExecutor({"infer": infer, STEP_SUMMARIZE: summarize}) as executor:
        print(f"summarized: {(await executor.execute(own)).output}")

    async with PlanExecutor(
        {"infer": InferHandler(ScriptedEngine([{"text": "No."}])), "validate": ValidateHandler(check)}
    ) as executor:
        failed = await executor.execute([Step("infer", "infer", "Explain."), Step("validate", "validate")])
    assert failed.response.error is not None
    print(f"failed: {failed.response.error.message}; finished: {list(failed.outputs)}")


if __name__ == "__main__":
    asyncio.run(main())
