"""What a user's type checker must know of remit: this file is read by type checkers and never run."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_type

from pydantic import BaseModel

from remit import (
    AgentLoop,
    InferHandler,
    Kit,
    ModelInfo,
    ModelPlanner,
    ModelRequest,
    ModelResult,
    PlanExecutor,
    RedundantLoop,
    ScriptedEngine,
    SpecializedLoop,
    StructuredResponse,
    SystemResponse,
    tool,
)


class Model(BaseModel):
    """A pydantic model."""

    item: str


@dataclass
class Plain:
    """A dataclass."""

    item: str


class Keys(TypedDict):
    """A typed dict."""

    item: str


SCHEMA: dict[str, Any] = {"type": "object"}


@tool
def stock(item: str, *, fast: bool = False) -> int:
    """How many there are."""
    return len(item) if fast else 0


@tool(effect="read", network=False)
async def look_up(number: int) -> str:
    """Look an order up."""
    return str(number)


def plain(number: int) -> str:
    """A function without a declaration."""
    return str(number)


async def tools_keep_their_signatures() -> None:
    assert_type(stock("lamp", fast=True), int)
    assert_type(await look_up(3), str)
    several = [stock, look_up, plain]
    AgentLoop("local", tools=several)
    SpecializedLoop("local", schema=Model, tools=[stock, plain])


class PlainEngine:
    """An engine that does not stream, and is called in a thread."""

    def infer(self, request: ModelRequest) -> ModelResult:
        """Answer."""
        return ModelResult(str(len(request.messages)))

    def model_info(self) -> ModelInfo:
        """What it is."""
        return ModelInfo("plain", 4_096)


class QuietEngine:
    """The same, asked as a coroutine."""

    async def infer(self, request: ModelRequest) -> ModelResult:
        """Answer."""
        return ModelResult("quiet")

    def model_info(self) -> ModelInfo:
        """What it is."""
        return ModelInfo("quiet", 4_096)


async def engines_need_not_stream() -> None:
    plain, engine = PlainEngine(), QuietEngine()
    Kit({"plain": plain, "quiet": engine})
    for made in (AgentLoop(plain), SpecializedLoop(plain, schema=Model), RedundantLoop(plain, schema=Plain)):
        PlanExecutor({"infer": InferHandler(plain), "made": made}, planner=ModelPlanner(plain))
    AgentLoop(engine, judge=plain, downgrade=plain)
    SpecializedLoop(engine, schema=Model, judge=plain)
    RedundantLoop(engine, schema=Plain)
    PlanExecutor({"infer": InferHandler(engine), "chat": AgentLoop(engine)}, planner=ModelPlanner(engine))


async def what_raises_for_an_error_keeps_its_type() -> None:
    loop = SpecializedLoop(PlainEngine(), schema=Model)
    assert_type((await loop.call("hi")).raise_for_error().value, Model)
    assert_type((await AgentLoop("local").chat("hi")).raise_for_error(), SystemResponse)
    assert_type((await RedundantLoop("local", schema=Plain).call("hi")).raise_for_error().value, Plain)
    assert_type((await PlanExecutor({}).execute([])).raise_for_error().output, Any)


async def results_are_typed() -> None:
    engine = ScriptedEngine([])
    agent = AgentLoop(engine)
    assert_type(await agent.chat("hi"), SystemResponse)
    assert_type(await agent.chat_structured("hi", schema=Model), StructuredResponse[Model])
    assert_type((await agent.produce("hi", Plain)).value, Plain)
    assert_type((await agent.chat_structured("hi", SCHEMA)).value, Any)
    loop = SpecializedLoop(engine, schema=Model)
    assert_type(loop, SpecializedLoop[Model])
    assert_type((await loop.call("hi")).value, Model)
    assert_type((await (await loop.start("hi")).result()).value, Model)
    assert_type((await loop.approve("run/1.2", by="ada")).value.item, str)
    assert_type(SpecializedLoop(engine, schema=Keys).call_sync("hi").value["item"], str)
    assert_type(SpecializedLoop(engine, schema=list[int]).call_sync("hi").value, list[int])
    vote = await RedundantLoop(engine, schema=Plain).call("hi")
    assert_type(vote.value, Plain)
    assert_type(vote.response.value, Plain)
    stream = loop.stream("hi")
    assert_type([piece.text async for piece in stream], list[str])
    assert_type((await stream).value, Model)
    untyped = SpecializedLoop(engine, schema=SCHEMA)
    assert_type((await untyped.call("hi")).value, Any)


async def types_that_are_no_classes_are_schemas() -> None:
    agent = AgentLoop("local")
    either: int | None = (await agent.produce("hi", int | None)).value
    assert_type((await agent.chat_structured("hi", Literal["a", "b"])).value, Any)
    assert_type((await SpecializedLoop("local", schema=Literal["a", "b"]).call("hi")).value, Any)
    voted: list[Plain] | str = (await RedundantLoop("local", schema=list[Plain] | str).call("hi")).value
    assert either or voted


async def an_answer_to_what_was_asked_is_typed() -> None:
    agent = AgentLoop("local")
    assert_type(await agent.approve("run/1.2", by="ada"), SystemResponse)
    assert_type((await agent.approve("run/1.2", by="ada", schema=Model)).value, Model)
    assert_type((await agent.reject("run/1.2", by="ada", schema=Plain)).value, Plain)
    assert_type((await agent.resume(Model)).value, Model)
