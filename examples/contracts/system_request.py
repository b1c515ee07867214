"""The boundary contract: a request names its mode, and a response tells what that pattern gives."""

import asyncio

import remit
from remit import (
    ExecutionPlan,
    InferHandler,
    Kit,
    Mode,
    OutputContract,
    ScriptedEngine,
    Step,
    SystemRequest,
    Terms,
    user_message,
)

SCHEMA = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}


async def main() -> None:
    """One request per mode, through the one facade."""
    engine = ScriptedEngine([{"text": '{"mood":"good"}'}])
    kit = Kit({engine.model_info().name: engine}, handlers={"infer": InferHandler(engine)})
    plan = ExecutionPlan((Step("look", "infer", "How is it?", schema=SCHEMA),))
    async with remit.open(memory=True) as system:
        for mode in Mode:
            shaped = mode in (Mode.STRUCTURED, Mode.REDUNDANT)
            output = OutputContract(schema=SCHEMA) if shaped else OutputContract()
            request = SystemRequest((user_message("How is it?"),), mode, request_id=f"r-{mode.value}", output=output)
            response = await system.run(request, kit, Terms(plan=plan if mode is Mode.PLAN else None))
            assert response.request_id == request.request_id
            assert response.error is None
            sure = "" if response.confidence is None else f", {response.confidence:.0%} by {response.confidence_source}"
            print(f"{mode.value}: {response.structured_output or response.content}{sure}")


if __name__ == "__main__":
    asyncio.run(main())
