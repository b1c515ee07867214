"""What no run could be started with is refused when the loop is made, and providers may give a text or one message."""

from collections.abc import Callable
from typing import Any

import pytest

from remit import (
    AgentLoop,
    InferHandler,
    Kit,
    ModelInfo,
    PlanExecutor,
    Price,
    RedundantLoop,
    RequestRejected,
    SpecializedLoop,
    ToolHandler,
    kit_of,
    system_in_memory,
    user_message,
)
from remit.core.failure import ErrorCode
from remit.core.limits.tools import TOOL_INVALID
from tests.doors.desk import MOOD, Panel

LOOPS: dict[str, Callable[..., Any]] = {
    "chat": AgentLoop,
    "shaped": lambda engine, **given: SpecializedLoop(engine, **{"schema": MOOD, **given}),
    "vote": lambda engine, **given: RedundantLoop(engine, **{"schema": MOOD, **given}),
}
WRONG: list[dict[str, Any]] = [
    {"grammar": "root ::= x"},
    {"grammar": "missing.gbnf"},
    {"context_provider": lambda query: []},
    {"context_provider": object()},
    {"context_provider": 5},
    {"boundary": "nosuch"},
]


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("given", WRONG, ids=lambda given: "-".join(map(str, *given.items()))[:30])
def test_what_no_run_could_be_started_with_is_refused_when_a_loop_is_made(kind: str, given: dict[str, Any]) -> None:
    with pytest.raises(RequestRejected):
        LOOPS[kind](Panel("hi"), **given)


@pytest.mark.parametrize("kind", ["shaped", "vote"])
@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"type": "object", "properties": {"a": {"minimum": "x"}}}])
def test_a_schema_that_nothing_could_be_checked_with_is_refused_when_a_loop_is_made(kind: str, schema: Any) -> None:
    with pytest.raises(RequestRejected):
        LOOPS[kind](Panel("hi"), schema=schema)


class Provider:
    """Gives whatever it was made with."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def build(self, query: str) -> Any:
        """What it was made with."""
        return self.given


@pytest.mark.parametrize(
    "given", ["Ada is on duty.", user_message("Ada is on duty."), [user_message("Ada is on duty.")]]
)
def test_a_provider_gives_messages_one_message_or_a_text(given: Any) -> None:
    panel = Panel("Ada")
    AgentLoop(panel, context_provider=Provider(given), system=system_in_memory()).chat_sync("Who is on duty?")
    assert any("Ada is on duty." in str(message.content) for message in panel.asked[0].messages)


class Says(Panel):
    """A model that tells whatever it was made with of itself."""

    def __init__(self, told: Any) -> None:
        super().__init__("hi")
        self.told = told

    def model_info(self) -> ModelInfo:  # type: ignore[explicit-override]
        """What it was made with."""
        info: ModelInfo = self.told
        return info


ODD: Any = ModelInfo
TAKES_ENGINE: dict[str, Callable[[Any], Any]] = {
    **LOOPS,
    "plan": lambda engine: PlanExecutor({"infer": InferHandler(engine)}),
    "kit": kit_of,
    "judge": lambda engine: AgentLoop(Panel("hi"), downgrade=engine),
}


@pytest.mark.req("2.1")
@pytest.mark.parametrize("kind", TAKES_ENGINE)
@pytest.mark.parametrize(
    ("told", "words"),
    [
        (ODD(5, 100), "name=5 cannot be used; it takes str"),
        (ODD(None), "name=None cannot be used; it takes str"),
        (ODD(" "), "name=' ' is none"),
        (ODD("m\ud800"), "is none; give the model a name"),
        (ODD("m", "8k"), "context_window='8k' cannot be used; it takes int"),
        (ODD("m", 8.5), "context_window=8.5"),
        (ODD("m", True), "context_window=True"),
        (ODD("m", 2**70), "context_window="),
        (ODD("m", price=ODD("p")), "it takes Price or None"),
        (ODD("m", price=Price(ODD("p"), 1)), "it takes int"),
        (ODD("m", -1), "context_window=-1 is outside 0 to"),
        (ODD("m", price=5), "price=5 cannot be used; it takes Price or None"),
        (ODD("m", price=Price(-1, 1)), "input_microusd_per_mtok=-1 is outside 0 to"),
        (ODD("m", calls_at_once=0), "calls_at_once=0 is outside 1 to"),
        (ODD("m", template_tokens=-1), "template_tokens=-1 is outside 0 to"),
    ],
)
def test_what_an_engine_tells_of_its_model_is_looked_at_when_the_loop_is_made(kind: str, told: Any, words: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        TAKES_ENGINE[kind](Says(told))
    assert (refused.value.code, words in refused.value.message) == (ErrorCode.CONFIG_NO_ENGINE, True)


def test_a_window_that_is_not_known_is_no_fault() -> None:
    assert AgentLoop(Says(ModelInfo("m")), system=system_in_memory()).chat_sync("Hello").content == "hi"


TAKES_TOOLS: dict[str, Callable[[Any], Any]] = {
    "chat": lambda tools: AgentLoop(Panel("hi"), tools=tools),
    "shaped": lambda tools: SpecializedLoop(Panel("hi"), schema=MOOD, tools=tools),
    "handler": ToolHandler,
    "infer": lambda tools: InferHandler(Panel("hi"), tools=tools),
    "kit": lambda tools: kit_of(Panel("hi"), tools),
}


@pytest.mark.parametrize("kind", TAKES_TOOLS)
@pytest.mark.parametrize("given", [None, "look", 5, object(), [], {}])
def test_what_is_no_tool_is_refused_with_one_code_wherever_tools_are_taken(kind: str, given: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        TAKES_TOOLS[kind]([given])
    assert refused.value.code == TOOL_INVALID


@pytest.mark.parametrize("field", ["engines", "tools", "code", "handlers", "filters", "step_filters", "router"])
@pytest.mark.parametrize("given", [5, "x", [], object])
def test_a_kit_is_made_of_parts_that_a_run_can_be_started_with(field: str, given: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        Kit(**{"engines": {"panel": Panel("hi")}, field: given})
    assert field in refused.value.message


@pytest.mark.parametrize("given", [5, None, Panel, object(), Says(ODD(5))])
def test_a_kit_takes_engines_that_can_be_asked_and_filters_that_can_be_called(given: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        Kit({"panel": given})
    assert refused.value.code == ErrorCode.CONFIG_NO_ENGINE
    look: Any = 5 if callable(given) else given
    with pytest.raises(RequestRejected, match="is no function"):
        Kit({"panel": Panel("hi")}, filters={"a": look})
