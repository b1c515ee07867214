"""A planner makes a plan of a request, and the executor only executes it; a policy says what a plan may be."""

import asyncio

from remit import ExecutionPlan, ModelPlanner, PlanExecutor, PlanPolicy, PlanTrace, ScriptedEngine, Step, SystemRequest


def shout(step: Step) -> str:
    """Loudly."""
    return str(step.input).upper()


class KeywordPlanner:
    """As many steps as the request has words."""

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """One step for each word."""
        words = str(request.messages[-1].content).split()
        steps = tuple(Step(f"word {number}", "shout", word) for number, word in enumerate(words, 1))
        return ExecutionPlan(steps, PlanTrace("keywords", f"{len(words)} words were said"))


MADE = '{"rationale": "shouting is enough", "steps": [{"name": "loud", "type": "shout"}]}'


async def main() -> None:
    """A plan that is made, one that a model makes, and one that the policy forbids."""
    policy = PlanPolicy(max_steps=2, allowed_step_types=("shout",), require_linear=True, timeout_per_step_ms=5_000)
    async with PlanExecutor({"shout": shout}, planner=KeywordPlanner(), policy=policy) as executor:
        made = await executor.execute(prompt="good morning")
        assert made.trace is not None
        print(f"{made.trace.planner_id}: {made.trace.rationale}; {list(made.outputs.values())}")
        refused = (await executor.execute(prompt="a very good morning")).response
        assert refused.error is not None
        print(f"{refused.terminal_code}: {refused.error.message.partition(':')[0]}")
    async with PlanExecutor({"shout": shout}, planner=ModelPlanner(ScriptedEngine([{"text": MADE}]))) as executor:
        made = await executor.execute(prompt="good evening")
    assert made.trace is not None
    print(f"{made.trace.planner_id}: {made.trace.rationale}; {made.output}")


if __name__ == "__main__":
    asyncio.run(main())
