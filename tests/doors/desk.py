"""What tests at the doors share: a model that follows a script, and the loops that users make."""

import json
from pathlib import Path
from typing import Any

from remit import AgentLoop, RedundantLoop, SpecializedLoop, SystemResponse
from remit.core.failure import ErrorCode
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.inference.engine import EngineFault, StreamHandler

MOOD = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply of the model that proposes one call."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


class Panel:
    """A model of the user's own that says another thing each time it is asked; an error code is a failure."""

    def __init__(self, *replies: str) -> None:
        self.replies = replies
        self.asked: list[ModelRequest] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What the panel says next; its last reply repeats."""
        self.asked.append(request)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if reply in ErrorCode.__members__:
            raise EngineFault(ErrorCode(reply), "the panel failed")
        return ModelResult(reply)

    def model_info(self) -> ModelInfo:
        """A model that costs nothing."""
        return ModelInfo("panel", 8_192, Price(0, 0))


class Desk:
    """A folder with scripts of a model, and the store of the runs that follow them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def engine(self, *replies: dict[str, Any]) -> str:
        """The spec of a model that says this, in this order; the last reply repeats."""
        path = self.folder / f"script{len(list(self.folder.glob('script*')))}.json"
        path.write_text(json.dumps({"replies": replies}))
        return f"scripted:{path}"

    def chat(self, *replies: dict[str, Any], **terms: Any) -> SystemResponse:
        """What a conversation comes to when the model says this."""
        agent = AgentLoop(self.engine(*replies), home=self.folder / "store", **terms)
        return agent.chat_sync("How many lamps are there?")

    def shaped(self, *replies: dict[str, Any], schema: Any = MOOD, **terms: Any) -> SystemResponse:
        """What a structured answer comes to when the model says this."""
        loop = SpecializedLoop(self.engine(*replies), schema=schema, home=self.folder / "store", **terms)
        return loop.call_sync("What is the mood?")

    def voted(self, *replies: str, **terms: Any) -> SystemResponse:
        """What a vote of three comes to when the replicas say this, one after the other."""
        loop = RedundantLoop(Panel(*replies), schema=MOOD, home=self.folder / "store", **terms)
        return loop.call_sync("What is the mood?").response
