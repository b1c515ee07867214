"""A value of the vault is no name: a call that uses it as one is refused, and nothing of it is written."""

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest

from remit import AgentLoop, System, tool
from remit.assemble import system_in_memory
from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.halt import encode_halt
from remit.core.run.messages import user_message
from remit.core.run.signals import Signal, UserSignal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.kit import Kit
from tests.unit.orchestrate.house import request, scripted

VALUE = "correct-horse-battery-staple"
ENCODED = base64.b64encode(VALUE.encode()).decode()
SECRETS = {"DB": VALUE}


@tool(effect="write", network=False)
def keep(text: str) -> str:
    """Keep a text."""
    return text


def kit() -> Kit:
    return scripted({"tool_calls": [{"name": "keep", "arguments": {"text": "x"}}]}, tools=[keep])


def refused(play: Callable[[System], Awaitable[object]]) -> str:
    """The refusal of what is played, in which the value is not quoted."""

    async def played() -> str:
        with pytest.raises(RequestRejected) as error:
            await play(system_in_memory(SECRETS))
        assert error.value.code == "REQUEST_ID_SECRET"
        assert VALUE not in str(error.value)
        return error.value.message

    return asyncio.run(played())


@pytest.mark.parametrize("name", [VALUE, f"about-{VALUE}-1", ENCODED], ids=["alone", "within", "encoded"])
@pytest.mark.parametrize("field", ["request_id", "session_id", "trace_id", "tenant_id", "user_id"])
def test_an_id_of_a_request_that_holds_a_value_of_the_vault_is_refused(field: str, name: str) -> None:
    async def play(system: System) -> None:
        try:
            await system.run(replace(request(), **{field: name}), kit())
        finally:
            assert await system.archive.runs() == []

    assert refused(play) == (
        f"{field} holds the value of the secret 'DB', and names are kept in clear; give another name, and renew that secret"
    )


def test_a_session_of_an_agent_is_none_either() -> None:
    async def play(system: System) -> None:
        async with AgentLoop(ScriptedEngine([{"text": "Hi."}]), session_id=VALUE, system=system) as agent:
            await agent.chat("Hello.")

    assert refused(play).startswith("session_id holds the value")


def _signal(run_id: str) -> UserSignal:
    return UserSignal("s", Signal.CANCEL, run_id, VALUE)


ACTS: dict[str, Callable[[System, str], Awaitable[object]]] = {
    "signal": lambda system, run_id: system.signal(_signal(run_id)),
    "fork": lambda system, run_id: system.fork(run_id, by=VALUE),
    "restore": lambda system, run_id: system.restore(run_id, by=VALUE, why="lost"),
    "resume": lambda system, run_id: system.resume(run_id, by=VALUE),
    "note": lambda system, run_id: system.note(run_id, VALUE, "key", "1"),
    "acknowledge": lambda system, run_id: system.queues.acknowledge(run_id, VALUE),
    "halt": lambda system, _: system.halt("stop", by=VALUE),
    "halt of it": lambda system, _: system.halt("stop", by="ada", tenant=VALUE),
    "lift": lambda system, _: system.lift(by=VALUE),
}


@pytest.mark.parametrize("act", ACTS)
def test_who_acts_is_called_by_no_value_of_the_vault(act: str) -> None:
    async def play(system: System) -> None:
        asked = await system.run(request(), kit())
        await ACTS[act](system, asked.run_id)

    assert "holds the value of the secret 'DB'" in refused(play)


def test_the_reason_of_a_halt_tells_no_value_of_the_vault() -> None:
    async def play() -> bytes:
        system = system_in_memory(SECRETS)
        return encode_halt((await system.halt(f"it sent {VALUE}", by="ada")).halt)

    written = asyncio.run(play())
    assert VALUE.encode() not in written
    assert b"it sent [secret DB]" in written


def test_other_names_are_as_good_as_ever() -> None:
    async def play() -> str:
        system = system_in_memory(SECRETS)
        asked = SystemRequest((user_message("Hello."),), session_id="correct-horse", user_id="ada")
        return (await system.run(asked, scripted({"text": "Hi."}))).content

    assert asyncio.run(play()) == "Hi."
