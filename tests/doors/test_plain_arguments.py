"""What users write in plain texts counts as much as the records: members of enums, specs of engines, files, plain engines."""

import asyncio
import json
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

import remit
from remit import (
    AgentLoop,
    Boundary,
    Goal,
    InferHandler,
    Message,
    ModelInfo,
    ModelPlanner,
    ModelRequest,
    ModelResult,
    Node,
    PlanExecutor,
    Price,
    RequestRejected,
    Step,
    SystemRequest,
    ToolChoice,
    ToolDefinition,
    engine,
    kit_of,
    system_in_memory,
    tool,
    user_message,
)
from remit.run_records import HOMES
from tests.doors.desk import Panel

ASKED = (user_message("How is it?"),)
# What the product makes and users only read.
TOLD = {
    "Approval",
    "CostReport",
    "Event",
    "Fact",
    "Manifest",
    "RunEvent",
    "StructuredResponse",
    "SystemResponse",
    "WaitingFor",
}

# Of the parts of records that have a list of their own, those that callers make.
PARTS = {
    "Ask",
    "Authority",
    "Condition",
    "Criterion",
    "FieldTest",
    "Lookup",
    "RequiredAction",
    "TaskRule",
    "ToolRules",
    "Trust",
}


class Mood(BaseModel):
    mood: str


@tool(effect="read", network=False)
def look(word: str) -> str:
    """Look a word up."""
    return word


def written_by_hand() -> list[tuple[str, str, type[Enum]]]:
    """Every field of a public record that users make and that declares one member of an enum."""
    found = []
    told = TOLD | (set(HOMES) - PARTS)
    for name in set(remit.__all__) - told:
        record = getattr(remit, name)
        if isinstance(record, type) and issubclass(record, msgspec.Struct):
            for field in msgspec.structs.fields(record):
                kinds = [kind for kind in getattr(field.type, "__args__", (field.type,)) if kind is not type(None)]
                if len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], Enum):
                    found.append((name, field.name, kinds[0]))
    return sorted(found, key=str)


@pytest.mark.parametrize(("record", "field", "kind"), written_by_hand())
def test_the_text_of_a_member_is_as_good_as_the_member(record: str, field: str, kind: type[Enum]) -> None:
    member = list(kind)[-1]
    kept = getattr(remit, record)
    needed = {one.name: "a" for one in msgspec.structs.fields(kept) if one.required}
    needed |= {"kind": "model"} if kept is Node else {}
    made = kept(**{**needed, field: str(member.value)})
    assert getattr(made, field) is member


def test_texts_within_a_tuple_are_taken_and_unknown_ones_are_left_to_the_door() -> None:
    boundary = Boundary(approval_effects=("write",), exhaustion=(("steps", "wrap_up"),))  # type: ignore[arg-type]  # a text for a member
    assert (boundary.approval_effects[0].is_mutating, boundary.exhaustion[0][1].name) == (True, "WRAP_UP")
    assert Boundary(mode="lenient").mode == "lenient"  # type: ignore[arg-type]  # refused where it is used
    assert Message("usr", "hi").role == "usr"  # type: ignore[arg-type]  # refused where it is used
    assert Goal("a", task_class="x").task_class == "x"  # type: ignore[arg-type]  # refused where it is used
    assert Node("a", "model").kind.value == "model"  # type: ignore[arg-type]  # a text for a member


@pytest.mark.parametrize("said", ["none", ToolChoice("none")])  # type: ignore[arg-type]  # a text for a member
def test_a_choice_of_tools_may_be_the_text_of_its_mode(said: Any) -> None:
    assert ModelRequest(ASKED, tool_choice=said).tool_choice == ToolChoice("none")  # type: ignore[arg-type]  # a text
    assert SystemRequest(ASKED, tool_choice=said).tool_choice.mode.value == "none"


def sent(request: ModelRequest, *tools: Any) -> ModelRequest:
    """What the model of a step is asked that was given this request."""
    panel = Panel('{"mood":"yes"}' if request.schema is not None else "yes")
    plans = PlanExecutor({"ask": InferHandler(panel, tools=tools)}, system=system_in_memory())
    result = plans.execute_sync([Step("one", "ask", request)])
    assert result.response.error is None
    return panel.asked[-1]


def test_a_step_follows_a_choice_a_type_and_a_grammar_file_of_its_request(tmp_path: Path) -> None:
    assert sent(ModelRequest(ASKED, tool_choice="none"), look).tools == ()  # type: ignore[arg-type]  # a text
    shaped = sent(ModelRequest(ASKED, schema=Mood)).schema  # type: ignore[arg-type]  # a type that stands for one
    assert shaped == Mood.model_json_schema()
    (tmp_path / "yes.gbnf").write_text('root ::= "yes" | "no"\n')
    assert "root ::=" in sent(ModelRequest(ASKED, grammar=str(tmp_path / "yes.gbnf"))).grammar
    with pytest.raises(RequestRejected, match="CONFIG_GRAMMAR_NOT_FOUND"):
        sent(ModelRequest(ASKED, grammar=str(tmp_path / "none.gbnf")))
    with pytest.raises(RequestRejected, match="must be one of auto, required, none, function, not 'seldom'"):
        sent(ModelRequest(ASKED, tool_choice="seldom"))  # type: ignore[arg-type]  # no mode


PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}}


@pytest.mark.parametrize(
    "named", [look, ToolDefinition("look", "", {}), ToolDefinition("look", "Look a word up.", PARAMETERS)]
)
def test_a_step_is_offered_the_tool_that_a_definition_made_by_hand_names(named: Any) -> None:
    assert sent(ModelRequest(ASKED, tools=(named,)), look).tools == (look.definition,)


@pytest.mark.parametrize(
    ("differs", "field"),
    [
        (ToolDefinition("look", "Look it up elsewhere.", PARAMETERS), "description"),
        (ToolDefinition("look", "", {"type": "object", "properties": {"page": {"type": "integer"}}}), "parameters"),
        (ToolDefinition("look", "", PARAMETERS, timeout_ms=7), "timeout_ms"),
    ],
)
def test_a_definition_that_says_something_else_than_the_tool_is_refused_and_says_what(
    differs: ToolDefinition, field: str
) -> None:
    with pytest.raises(RequestRejected, match=f"{field} of tool 'look' is not its handler's; leave it out"):
        sent(ModelRequest(ASKED, tools=(differs,)), look)


class Plain:
    """A model as the smallest program writes it: the request in, the answer out."""

    def model_info(self) -> ModelInfo:
        """A model that costs nothing."""
        return ModelInfo("plain", 8_192, Price(0, 0))


class Waiting(Plain):
    async def infer(self, request: ModelRequest) -> ModelResult:
        return ModelResult("hello")


class Blocking(Plain):
    def infer(self, request: ModelRequest) -> ModelResult:
        return ModelResult("hello")


class Delegating(Plain):
    def infer(self, request: ModelRequest, on_chunk: Any = None) -> Any:
        return ModelResult("hello")


@pytest.mark.parametrize("model", [Waiting(), Blocking(), Delegating()])
def test_an_engine_may_take_the_request_alone_and_need_not_be_async(model: Any) -> None:
    heard: list[str] = []
    agent = AgentLoop(model, system=system_in_memory(), stream=lambda chunk: heard.append(getattr(chunk, "text", "")))
    assert agent.chat_sync("hi").content == "hello"
    assert "".join(heard) == ("" if isinstance(model, Delegating) else "hello")


def test_every_class_that_takes_an_engine_takes_its_spec(tmp_path: Path) -> None:
    plan = {"rationale": "so", "steps": [{"name": "loud", "type": "shout", "input": "ab"}]}
    script = tmp_path / "plan.json"
    script.write_text(json.dumps({"replies": [{"text": json.dumps(plan)}]}))
    planner = ModelPlanner(f"scripted:{script}")
    with pytest.raises(RequestRejected, match="CONFIG_NO_ENGINE"):
        planner.engine.model_info()
    plans = PlanExecutor({"shout": lambda step: step.input.upper()}, planner=planner, system=system_in_memory())
    assert plans.execute_sync(prompt="be loud").output == "AB"

    async def story() -> str:
        kit = kit_of(f"scripted:{script}")
        assert list(kit.engines) == [engine(f"scripted:{script}").model_info().name]
        return (await system_in_memory().run(SystemRequest(ASKED), kit)).content

    assert "loud" in asyncio.run(story())
