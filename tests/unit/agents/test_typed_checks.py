"""What a type demands beyond its JSON Schema is heard before an answer counts: validators, dates, code of the type's own."""

import asyncio
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, field_validator
from typing_extensions import TypedDict, override

from remit import (
    AgentLoop,
    InferHandler,
    ModelRequest,
    PlanExecutor,
    RedundantLoop,
    RedundantResult,
    RequestRejected,
    SpecializedLoop,
    Step,
    StructuredResponse,
    ToolHandler,
    system_in_memory,
    tool,
    user_message,
)
from remit.core.failure import Ending, RunFailed
from remit.core.record import replace
from remit.core.schema.schema_source import check_of
from tests.doors.desk import Desk, Panel, call


def must_be_even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def even(cls, value: int) -> int:
        return must_be_even(value)


class Odd(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def odd(cls, value: int) -> int:
        if not value % 2:
            raise ValueError("must be odd")
        return value


class Lax(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def any(cls, value: int) -> int:
        return value


class Breaking(BaseModel):
    n: int

    @override
    def model_post_init(self, context: Any, /) -> None:
        if self.n % 2:
            raise RuntimeError("no odd ones")


@dataclass
class Checked:
    n: int

    def __post_init__(self) -> None:
        must_be_even(self.n)


class Keyed(TypedDict):
    n: Annotated[int, AfterValidator(must_be_even)]


class Plain(BaseModel):
    n: int
    names: list[str] = []


class Dated(BaseModel):
    on: date


@tool(effect="write", destructive=True)
def erase(word: str) -> str:
    """Erase a word."""
    return "gone"


@pytest.mark.parametrize("schema", [Even, Breaking, Checked, Keyed])
def test_what_a_type_refuses_is_asked_for_again_in_its_words_and_then_fails(schema: Any) -> None:
    async def story() -> None:
        panel = Panel('{"n": 3}', '{"n": 4}')
        async with SpecializedLoop(panel, schema=schema, system=system_in_memory()) as loop:
            response = await loop.call("An even number.")
        assert (response.terminal_code, response.structured_output, len(panel.asked)) == (Ending.SUCCESS, {"n": 4}, 2)
        assert response.value is not None
        told = str(panel.asked[1].messages[-1].content)
        assert "must be even" in told or "no odd ones" in told
        panel = Panel('{"n": 3}')
        async with SpecializedLoop(panel, schema=schema, system=system_in_memory()) as loop:
            failed = await loop.call("An even number.")
        assert (failed.terminal_code, len(panel.asked)) == (Ending.VALIDATION_FAIL, 3)
        assert failed.error is not None
        assert failed.error.code == "VALIDATION_RULE_FAILED"
        with pytest.raises(RunFailed):
            _ = failed.value

    asyncio.run(story())


def test_a_date_that_is_none_is_asked_for_again() -> None:
    async def story() -> None:
        panel = Panel('{"on": "soon"}', '{"on": "2026-02-01"}')
        async with SpecializedLoop(panel, schema=Dated, system=system_in_memory()) as loop:
            assert (await loop.call("When?")).value.on == date(2026, 2, 1)
        assert len(panel.asked) == 2

    asyncio.run(story())


def test_what_a_type_refuses_has_no_vote() -> None:
    async def story(*said: str) -> RedundantResult[Even]:
        async with RedundantLoop(Panel(*said), schema=Even, system=system_in_memory()) as loop:
            return await loop.call("An even number.")

    result = asyncio.run(story('{"n": 3}', '{"n": 4}', '{"n": 4}'))
    assert (result.value.n, result.failed, result.candidates) == (4, 1, ('{"n": 4}', '{"n": 4}'))
    result = asyncio.run(story('{"n": 3}', '{"n": 3}', '{"n": 4}'))
    assert result.error is not None
    assert (result.error.code, result.content) == ("ORCHESTRATION_NO_CONSENSUS", "")


def test_a_structured_exchange_of_a_conversation_hears_the_type() -> None:
    async def story() -> None:
        panel = Panel('{"n": 3}', '{"n": 4}', '{"n": 3}', '{"n": 6}', "words")
        async with AgentLoop(panel, system=system_in_memory()) as agent:
            assert (await agent.chat_structured("An even number.", Even)).value.n == 4
            assert (await agent.produce("An even number.", Even)).value.n == 6
            assert (await agent.chat("Thanks.")).content == "words"

    asyncio.run(story())


def test_steps_of_plans_hear_the_types_of_their_loops_and_of_their_own() -> None:
    async def story() -> None:
        panel = Panel(*['{"n": 3}', '{"n": 4}'] * 2, '{"n": 3}', '{"n": 6}', '{"n": 6}', '{"n": 3}', '{"n": 8}')
        handlers: dict[str, Any] = {
            "ask": InferHandler(panel),
            "shape": SpecializedLoop(panel, schema=Checked),
            "vote": RedundantLoop(panel, schema=Even),
        }
        request = ModelRequest((user_message("An even number."),), schema=Keyed)  # type: ignore[arg-type]  # a type
        async with PlanExecutor(handlers, system=system_in_memory()) as plans:
            result = await plans.execute(
                [
                    Step("own", "ask", "An even number.", schema=Even),
                    Step("loop", "shape"),
                    Step("votes", "vote"),
                    Step("asked", "ask", request),
                ]
            )
        assert result.error is None
        assert [step.output for step in result.steps] == [{"n": 4}, {"n": 4}, {"n": 6}, {"n": 8}]

    asyncio.run(story())


def test_another_program_goes_on_with_the_type_or_is_refused_and_the_run_stays(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Desk(tmp_path).engine(call("erase", word="a"), {"text": '{"n": 3}'}, {"text": '{"n": 4}'})
        parts: dict[str, Any] = {"tools": [erase], "home": tmp_path / "store", "session_id": "one"}
        async with AgentLoop(engine, **parts) as agent:
            waiting = (await agent.produce("Erase a.", Even)).waiting_for
            assert waiting is not None
        async with AgentLoop(engine, **parts) as other:
            with pytest.raises(RequestRejected) as refused:
                await other.approve(waiting.packet_ids[0], by="bea")
            assert (refused.value.code, "type:Even" in refused.value.message) == ("RUN_PARTS_MISSING", True)
            assert (await other.resume(Even)).waiting_for is not None
            done = await other.approve(waiting.packet_ids[0], by="bea")
        assert (done.error, done.structured_output) == (None, {"n": 4})

    asyncio.run(story())


def test_a_plan_goes_on_elsewhere_with_the_types_of_its_steps(tmp_path: Path) -> None:
    async def story() -> None:
        steps = [Step("erase", "tool", {"word": "a"}, tool="erase"), Step("own", "ask", "A number.", schema=Even)]
        panel = Panel('{"n": 3}', '{"n": 4}')
        parts: dict[str, Any] = {"tool": ToolHandler([erase]), "ask": InferHandler(panel)}
        async with PlanExecutor(parts, home=tmp_path) as plans:
            waiting = (await plans.execute(steps)).response
        assert waiting.waiting_for is not None
        async with PlanExecutor(parts, home=tmp_path) as plans:
            lax = [steps[0], replace(steps[1], schema=Lax)]
            packet = waiting.waiting_for.packet_ids[0]
            for tried in (
                plans.resume(waiting.run_id),
                plans.resume(waiting.run_id, lax),
                plans.approve(packet, by="bea"),
                plans.reject(packet, by="bea"),
            ):
                with pytest.raises(RequestRejected, match=r"RUN_PARTS_MISSING.*type:step:own:Even"):
                    await tried
            await plans.resume(waiting.run_id, steps)
            done = await plans.approve(waiting.waiting_for.packet_ids[0], by="bea")
        assert (done.error, done.output) == (None, {"n": 4})

    asyncio.run(story())


def test_a_loop_called_like_a_step_and_the_step_are_each_heard_by_their_own_type() -> None:
    async def story() -> None:
        panel = Panel('{"n": 3}', '{"n": 4}', '{"n": 4}', '{"n": 3}')
        handlers: dict[str, Any] = {"step:a": SpecializedLoop(panel, schema=Even), "ask": InferHandler(panel)}
        async with PlanExecutor(handlers, system=system_in_memory()) as plans:
            steps = [Step("b", "step:a", "A number."), Step("a", "ask", "A number.", schema=Odd)]
            assert (await plans.execute(steps)).outputs == {"b": {"n": 4}, "a": {"n": 3}}

    asyncio.run(story())


def test_a_value_that_was_checked_is_not_checked_again() -> None:
    seen: set[int] = set()

    class Ticket(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def unique(cls, value: int) -> int:
            if value in seen:
                raise ValueError("taken")
            seen.add(value)
            return value

    class Awaited(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def asked(cls, value: int) -> int:
            return asyncio.run(asyncio.sleep(0, value))

    async def story(schema: Any) -> None:
        system, panel = system_in_memory(), Panel('{"n": 7}')
        async with SpecializedLoop(panel, schema=schema, system=system) as loop:
            assert (await loop.call("x")).value.n == 7
        seen.clear()
        async with AgentLoop(panel, system=system) as agent:
            assert (await agent.chat_structured("x", schema)).value.n == 7
        seen.clear()
        async with RedundantLoop(Panel('{"n": 7}', '{"n": 8}', '{"n": 8}'), schema=schema, n=1, system=system) as vote:
            assert (await vote.call("x")).value.n == 7
        seen.clear()

    for schema in (Ticket, Awaited):
        asyncio.run(story(schema))


def test_an_answered_and_a_resumed_exchange_give_the_value_of_their_type(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Desk(tmp_path).engine(call("erase", word="a"), {"text": '{"n": 3}'}, {"text": '{"n": 4}'})
        parts: dict[str, Any] = {"tools": [erase], "home": tmp_path / "store", "session_id": "one"}
        async with AgentLoop(engine, **parts) as agent:
            waiting = (await agent.produce("Erase a.", Even)).waiting_for
            assert waiting is not None
            approved = await agent.approve(waiting.packet_ids[0], by="bea")
            assert isinstance(approved, StructuredResponse)
            assert approved.value == Even(n=4)
        (tmp_path / "two").mkdir()
        engine = Desk(tmp_path / "two").engine(call("erase", word="a"), {"text": '{"n": 3}'}, {"text": '{"n": 4}'})
        parts["home"] = tmp_path / "other"
        async with AgentLoop(engine, **parts) as agent:
            waiting = (await agent.produce("Erase a.", Even)).waiting_for
            assert waiting is not None
        async with AgentLoop(engine, **parts) as agent:
            assert (await agent.resume(Even)).waiting_for is not None
            done = await agent.approve(waiting.packet_ids[0], by="bea")
            assert isinstance(done, StructuredResponse)
            assert done.value == Even(n=4)
            with pytest.raises(RequestRejected, match="SCHEMA_SOURCE_INVALID"):
                await agent.resume("Even")  # type: ignore[call-overload]  # a text is no type

    asyncio.run(story())


@pytest.mark.parametrize(
    ("schema", "said", "value"),
    [
        (list[Plain], '[{"n": 1}]', [Plain(n=1)]),
        (Plain | None, '{"n": 1}', Plain(n=1)),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (set[int], "[1]", {1}),
        (Literal["a", "b"], '"a"', "a"),
        (Annotated[Plain, "noted"], '{"n": 1}', Plain(n=1)),
    ],
)
def test_every_class_takes_every_type_as_a_schema(schema: Any, said: str, value: object) -> None:
    async def story() -> None:
        system = system_in_memory()
        async with AgentLoop(Panel(said), system=system) as agent:
            assert (await agent.chat_structured("x", schema)).value == value
            assert (await agent.produce("x", schema)).value == value
        async with SpecializedLoop(Panel(said), schema=schema, system=system) as loop:
            assert (await loop.call("x")).value == value

    asyncio.run(story())


@pytest.mark.parametrize(
    "schema", [Annotated[str, Field(pattern="^a")], dict[int, str], set[int], Decimal, list[Even], Even | Plain]
)
def test_what_a_schema_does_not_wholly_say_is_asked_of_the_type(schema: Any) -> None:
    assert check_of(schema) is not None


@pytest.mark.parametrize("schema", [Plain, list[Plain], dict[str, int], {"type": "object"}])
def test_a_type_that_demands_no_more_than_its_schema_is_not_heard(schema: Any) -> None:
    assert check_of(schema) is None


def test_a_check_says_nothing_of_what_the_schema_refuses() -> None:
    check = check_of(Even)
    assert check is not None
    assert (check("no json"), check('{"n": "x"}'), check('{"n": 4}')) == ([], [], [])
    assert check('{"n": 3}') == ["output /n: Value error, must be even"]
