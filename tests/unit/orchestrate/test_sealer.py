"""Secrets in real runs on a store: the model has handles, tools have values, and what is written has neither."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from remit.assemble import system_in_memory
from remit.backend.memory.seals import MemorySeals
from remit.backend.redacted_turns import MARK
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import Happened, ModelFailed
from remit.core.limits.profiles import KNOWN
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, SystemRequest, SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.core.run.signals import Signal
from remit.core.secrets.secret_search import HANDLE
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.executors.reports import (
    CodeProposed,
    ContextSaid,
    ModelSaid,
    Report,
    ToolAccounted,
    ToolBroke,
    ToolSaid,
)
from remit.orchestrate.facts.sealer import OF_TOOLS, SECRET_GONE, Sealer, SecretGone, is_lost, masked, received
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from remit.tool.secrets.vault import NO_SECRETS, Vault
from tests.e2e.house import answer, asking, calls, house, says, scripted
from tests.planted import Planted, as_base64
from tests.text_files import bytes_below

TOKEN = Planted(3).all()["github"][0]
PASSWORD = Planted(3).all()["postgres"][1]


class Parrot:
    """An engine that calls a tool with the first handle it was shown, and then says what it was shown."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shown: list[str] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        words = " ".join(str(message.content) for message in request.messages)
        self.shown.append(words)
        handle = HANDLE.search(words)
        if handle is not None and not any(message.role == "tool" for message in request.messages):
            return ModelResult(tool_calls=(ToolCall("1", self.name, {"token": f"Bearer {handle[0]}"}),))
        return ModelResult(content=words)

    def model_info(self) -> ModelInfo:
        return ScriptedEngine([says("")]).model_info()


def receiving(got: list[str]) -> Tool:
    @tool(effect="read")
    def call(token: str) -> str:
        """Call with a token."""
        got.append(token)
        return f"used {token} once"

    return call


def test_a_model_sees_a_handle_and_the_tool_gets_the_value(tmp_path: Path) -> None:
    got: list[str] = []
    parrot = Parrot("call")
    kit = engine_kit(parrot, Registry([receiving(got)]))

    async def story() -> SystemResponse:
        async with house(tmp_path / "store", kit) as system:
            return await system.run(asking(f"Use {TOKEN} please."), kit)

    done = asyncio.run(story())
    assert got == [f"Bearer {TOKEN}"]
    assert TOKEN not in "".join(parrot.shown) + str(done)
    # The user's text, the call and the result name it alike.
    assert len(set(HANDLE.findall(done.content))) == 1
    assert done.terminal_code is Ending.SUCCESS
    assert TOKEN.encode() not in bytes_below(tmp_path / "store")


def test_another_process_fills_in_what_was_sealed_before(tmp_path: Path) -> None:
    got: list[str] = []

    @tool(effect="external")
    def send(token: str) -> str:
        """Send a token."""
        got.append(token)
        return "sent"

    kit = engine_kit(Parrot("send"), Registry([send]))

    async def ask() -> str:
        async with house(tmp_path / "store", kit) as system:
            return (await system.run(asking(f"Use {TOKEN} please."), kit)).run_id

    async def go_on(run_id: str) -> SystemResponse:
        async with house(tmp_path / "store", kit) as system:
            return await answer(system, Signal.APPROVE, await system.result(run_id))

    run_id = asyncio.run(ask())
    assert got == []
    asyncio.run(go_on(run_id))
    assert got == [f"Bearer {TOKEN}"]


def test_a_handle_whose_value_is_gone_is_never_sent(tmp_path: Path) -> None:
    got: list[str] = []
    forged = "secret:github_token#0123456789ab"
    kit = scripted([calls("call", {"token": forged}), says("Done.")], receiving(got))

    async def story() -> SystemResponse:
        async with house(tmp_path / "store", kit) as system:
            return await system.run(asking("Do it."), kit)

    done = asyncio.run(story())
    assert got == []
    assert SECRET_GONE in str(done.tool_calls_made)
    assert "ask the user to give it again" in str(done.tool_calls_made)


def test_the_next_run_of_a_session_knows_what_was_said_before(tmp_path: Path) -> None:
    got: list[str] = []
    kit = engine_kit(Parrot("call"), Registry([receiving(got)]))

    async def story() -> None:
        async with house(tmp_path / "store", scripted([says("Noted.")])) as system:
            await system.run(asking(f"The password is {PASSWORD}.", "talk"), scripted([says("Noted.")]))
        async with house(tmp_path / "store", kit) as system:
            await system.run(asking(f"Use it; I repeat, {PASSWORD}", "talk"), kit)

    asyncio.run(story())
    assert got == [f"Bearer {PASSWORD}"]
    # Without a telling name it is found because it is known.
    assert PASSWORD.encode() not in bytes_below(tmp_path / "store")


def test_the_name_of_an_argument_says_that_its_value_is_a_secret(tmp_path: Path) -> None:
    got: list[str] = []

    @tool(effect="read")
    def login(user: str, password: str) -> str:
        """Log in."""
        got.append(password)
        return f"{user} is in"

    kit = scripted([calls("login", {"user": "ann", "password": "correcthorse"}), says("Done.")], login)

    async def story() -> None:
        async with house(tmp_path / "store", kit) as system:
            await system.run(asking("Log in."), kit)

    asyncio.run(story())
    assert got == ["correcthorse"]
    assert b"correcthorse" not in bytes_below(tmp_path / "store")


def test_those_who_listen_to_a_stream_hear_no_secret(tmp_path: Path) -> None:
    heard: list[str] = []

    def listen(run_id: str, chunk: object) -> None:
        heard.append(getattr(chunk, "text", ""))

    plain = scripted(
        [{"text": f"It is {TOKEN} now.", "chunks": ["It is ", TOKEN[:5], TOKEN[5:20], TOKEN[20:], " now."]}]
    )

    async def story() -> None:
        async with house(tmp_path / "store", plain) as system:
            await system.run(asking("Say it."), plain, listener=Listener(on_chunk=listen))

    asyncio.run(story())
    assert TOKEN[8:] not in "".join(heard)
    assert "".join(heard).startswith("It is ")
    assert "".join(heard).endswith(" now.")


def test_what_is_sealed_goes_with_its_run(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path / "store", scripted([says("Noted.")])) as system:
            done = await system.run(asking(f"Keep {TOKEN}."), scripted([says("Noted.")]))
            assert list((tmp_path / "store" / "sealed").iterdir())
            await system.store.retention.delete(done.run_id)
            assert not list((tmp_path / "store" / "sealed").iterdir())

    asyncio.run(story())


@pytest.mark.parametrize(
    "text", ["Summarise the report for ann@example.com by 12:30.", "Refund order 4711-22 of 12.50 EUR"]
)
def test_a_request_without_a_secret_stays_as_it_is(tmp_path: Path, text: str) -> None:
    async def story() -> AsyncIterator[str]:
        async with house(tmp_path / "store", scripted([says(text)])) as system:
            done = await system.run(
                SystemRequest(messages=(user_message(text),), metadata={"a": text}), scripted([says(text)])
            )
            yield done.content
            yield str((await system.state_of(done.run_id)).manifest)

    async def collected() -> list[str]:
        return [said async for said in story()]

    content, manifest = asyncio.run(collected())
    assert content == text
    assert text in manifest
    assert not (tmp_path / "store" / "sealed").exists()


@pytest.mark.parametrize("value", [TOKEN, "QX7-4481-ZEBRA"], ids=["a secret by its shape", "one by its name alone"])
def test_what_the_user_wrote_binds_whether_it_was_sealed_or_not(tmp_path: Path, value: str) -> None:
    got: list[str] = []

    @tool(effect="external", control_args={"to": "email", "token": "id:token"}, asks=["rotate"], network=True)
    def rotate(to: str, token: str) -> str:
        """Rotate a token."""
        got.append(token)
        return f"told {to}"

    class Rotating:
        async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
            words = " ".join(str(message.content) for message in request.messages)
            if any(message.role == "tool" for message in request.messages):
                return ModelResult(content="Done.")
            handle = HANDLE.search(words)
            arguments = {"to": "ann@corp.example", "token": handle[0] if handle else value}
            return ModelResult(tool_calls=(ToolCall("1", "rotate", arguments),))

        def model_info(self) -> ModelInfo:
            return Parrot("").model_info()

    kit = engine_kit(Rotating(), Registry([rotate]))

    async def story() -> SystemResponse:
        async with house(tmp_path / "store", kit) as system:
            request = asking(f"Rotate {value} for ann@corp.example.")
            return await system.run(request, kit, Terms(KNOWN["guarded"]))

    done = asyncio.run(story())
    assert done.waiting_for is None
    assert got == [value]


def test_digits_that_follow_a_handle_are_not_a_part_of_it(tmp_path: Path) -> None:
    sealer = Sealer(MemorySeals())
    handle = sealer.text("run", (), TOKEN)
    assert sealer.filled("run", {"a": [f"{handle}00ff", 7]}) == {"a": [f"{TOKEN}00ff", 7]}
    with pytest.raises(SecretGone):
        sealer.filled("other", handle)


def test_options_and_plans_are_sealed_and_filled_where_they_are_used(tmp_path: Path) -> None:
    seen: list[object] = []

    class Listening:
        async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
            seen.append(request.options)
            return ModelResult(content="Done.")

        def model_info(self) -> ModelInfo:
            return Parrot("").model_info()

    kit = engine_kit(Listening())

    async def story() -> None:
        async with house(tmp_path / "store", kit) as system:
            hints = ExecutionHints(options={"headers": {"Authorization": f"Bearer {TOKEN}"}})
            await system.run(SystemRequest(messages=(user_message("Hello."),), hints=hints), kit)

    asyncio.run(story())
    assert seen == [{"headers": {"Authorization": f"Bearer {TOKEN}"}}]
    assert TOKEN.encode() not in bytes_below(tmp_path / "store")


WORD = "HuShhaUYjJ"
MIXED = "Hq6jLw9PzCd2"
BASIC = "Basic " + as_base64("bob:" + WORD)


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": ["psql", "--password", WORD]},
        {"argv": ["login", "--token", MIXED]},
        {"argv": ["x", "--api-key", MIXED]},
        {"argv": ["curl", "-u", f"bob:{MIXED}"]},
        {"argv": ["sshpass", "-p", MIXED, "ssh", "host"]},
        {"argv": ["mysql", f"-p{MIXED}"]},
        {"argv": ["-p", MIXED, "--password=" + MIXED]},
        {"name": "password", "value": WORD},
        {"key": "DB_PASSWORD", "val": WORD},
        {"env": [{"name": "API_TOKEN", "value": MIXED}]},
        {"password": ["x", WORD]},
        {"password": {"value": WORD, "kind": "plain"}},
        {"headers": {"Cookie": f"sid={MIXED}"}},
        {"headers": [["Authorization", BASIC]]},
        {"headers": {"Authorization": BASIC}},
        {"cookies": {"sid": MIXED}},
        {"auth": MIXED},
        {"dbPass": MIXED, "n": 1},
        {"contraseña": WORD},
    ],
)
def test_a_value_beside_its_name_is_sealed_in_a_structure_and_given_back(arguments: dict[str, object]) -> None:
    sealer = Sealer(MemorySeals())
    live = Live("r1", RunState(run_id="r1"))
    said = ModelSaid("c1", ModelResult(tool_calls=(ToolCall("1", "call", arguments),)))
    sealed = sealer.report(live, said)
    assert isinstance(sealed, ModelSaid)
    written = str(sealed)
    assert not any(value in written for value in (WORD, MIXED, BASIC.removeprefix("Basic ")))
    assert sealer.filled(live.run_id, sealed.result.tool_calls[0].arguments) == arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": ["git", "--author", "ann2024bell", "HEAD"]},
        {"words": ["password", "reset"]},
        {"words": ["two", "words"]},
        {"properties": {"password": {"type": "string", "title": "Passwort"}}},
        {"name": "colour", "value": WORD},
        {"numbers": [1, 2], "password": None, "token": 12},
        {"argv": ["run", "--token", "-v"]},
    ],
)
def test_what_only_looks_alike_stays_in_a_structure(arguments: dict[str, object]) -> None:
    said = ModelSaid("c1", ModelResult(tool_calls=(ToolCall("1", "call", arguments),)))
    assert Sealer(MemorySeals()).report(Live("r1", RunState(run_id="r1")), said) is said


def test_a_run_waits_for_a_value_that_was_kept_and_is_not_there(tmp_path: Path) -> None:
    store, aside = tmp_path / "store", tmp_path / "aside"
    got: list[str] = []

    @tool(effect="external")
    def call(token: str) -> str:
        """Call with a token."""
        got.append(token)
        return "done"

    kit = scripted([calls("call", {"token": TOKEN}), says("Done.")], call)

    async def ask() -> SystemResponse:
        async with house(store, kit) as system:
            return await system.run(asking("Do it."), kit)

    async def approved() -> SystemResponse:
        async with house(store, kit) as system:
            return await answer(system, Signal.APPROVE, await system.result(asked.run_id))

    async def go_on() -> SystemResponse:
        async with house(store, kit) as system:
            return await system.resume(asked.run_id, kit=kit)

    asked = asyncio.run(ask())
    assert asked.waiting_for is not None
    (store / "sealed").rename(aside)
    stands = asyncio.run(approved())
    assert got == []
    assert stands.terminal_code is None
    assert stands.halted is not None
    assert stands.halted.what == "tool 'call'"
    assert stands.halted.why.startswith(f"{SECRET_GONE}: the value of secret:")
    again = asyncio.run(go_on())
    assert (again.terminal_code, again.halted) == (None, stands.halted)
    aside.rename(store / "sealed")
    done = asyncio.run(go_on())
    assert got == [TOKEN]
    assert done.terminal_code is Ending.SUCCESS or done.terminal_code is Ending.PARTIAL_SUCCESS


def test_a_value_of_the_vault_that_a_user_tells_reaches_the_tool_and_no_model() -> None:
    got: list[str] = []
    parrot, passphrase = Parrot("call"), "correct-horse-battery-staple"
    kit = engine_kit(parrot, Registry([receiving(got)]))

    async def story() -> SystemResponse:
        system = system_in_memory({"DB": passphrase})
        return await system.run(asking(f"Use {passphrase} please."), kit)

    done = asyncio.run(story())
    assert got == [f"Bearer {passphrase}"]
    assert passphrase not in "".join(parrot.shown) + str(done)
    assert done.terminal_code is Ending.SUCCESS


@pytest.mark.parametrize(("handle", "is_awaited"), [("secret:key#0123456789ab", True), (MARK, False)])
def test_nobody_waits_for_what_was_redacted(handle: str, is_awaited: bool) -> None:
    assert is_lost(handle) is is_awaited
    sealer, said = Sealer(MemorySeals()), ModelSaid("c1", ModelResult(f"use {handle}"))
    heard = sealer.report(Live("r1", RunState(run_id="r1")), said)
    # One that was not given out is made up, and no caller waits for it either.
    assert isinstance(heard, ModelSaid)
    assert heard.result.content == (f"use {MARK}" if handle == MARK else "use secret:unknown#0123456789ab")
    assert not is_lost(heard.result.content.removeprefix("use "))


VALUE = "token-0123456789"
VAULT = Vault({"TOKEN": VALUE})

OF_A_TOOL: list[tuple[Report, Report]] = [
    (
        ToolSaid(
            "1.1", ToolResult("call", "send", VALUE, metadata={VALUE: [f"a {VALUE}", 1, None]}), f"not {VALUE}", 3
        ),
        ToolSaid(
            "1.1",
            ToolResult("call", "send", "[secret TOKEN]", metadata={"[secret TOKEN]": ["a [secret TOKEN]", 1, None]}),
            "not [secret TOKEN]",
            3,
        ),
    ),
    (
        ToolBroke("1.1", ErrorCode.TOOL_TIMEOUT, f"for {VALUE}!"),
        ToolBroke("1.1", ErrorCode.TOOL_TIMEOUT, "for [secret TOKEN]!"),
    ),
    (ToolAccounted("1.1", Happened.YES, VALUE), ToolAccounted("1.1", Happened.YES, "[secret TOKEN]")),
]


def said(text: str, **arguments: Any) -> ModelSaid:
    return ModelSaid("1.1", ModelResult(content=text, tool_calls=(ToolCall("c", "send", arguments),)))


@pytest.mark.parametrize(("report", "clean"), OF_A_TOOL)
def test_every_text_of_a_report_is_redacted(report: Report, clean: Report) -> None:
    assert masked(report, VAULT) == clean


@pytest.mark.parametrize(("report", "clean"), OF_A_TOOL)
def test_a_report_of_a_tool_was_redacted_by_its_executor(report: Report, clean: Report) -> None:
    assert isinstance(report, OF_TOOLS)
    assert received(report, VAULT) is report
    assert received(clean, VAULT) is clean


def test_what_a_model_said_is_marked_as_exposed() -> None:
    mark = "[exposed secret TOKEN]"
    marked = said(f"it is {mark}", to=[mark])
    assert received(said(f"it is {VALUE}", to=[VALUE]), VAULT) == replace(marked, exposed="TOKEN")
    # One that stands only in the arguments of a call is told of that call.
    assert received(said("here", to=[VALUE]), VAULT) == said("here", to=[mark])


@pytest.mark.parametrize(
    ("report", "clean"),
    [
        (ContextSaid("1.1", f"found {VALUE}."), ContextSaid("1.1", "found [secret TOKEN].")),
        (
            ModelFailed("1.1", ErrorCode.INFERENCE_ENGINE_ERROR, VALUE),
            ModelFailed("1.1", ErrorCode.INFERENCE_ENGINE_ERROR, "[secret TOKEN]"),
        ),
        (
            CodeProposed("1.1", (ToolCall("c", "send", {"a": VALUE}),)),
            CodeProposed("1.1", (ToolCall("c", "send", {"a": "[secret TOKEN]"}),)),
        ),
    ],
)
def test_reports_of_other_executors_are_redacted_where_they_are_received(report: Report, clean: Report) -> None:
    assert received(report, VAULT) == clean


def test_without_secrets_a_report_is_handed_on_as_it_is() -> None:
    report = said(VALUE)
    assert received(report, NO_SECRETS) is report
    assert received(ContextSaid("1.1", "nothing"), VAULT) == ContextSaid("1.1", "nothing")


def test_a_text_that_was_plain_is_looked_at_again_once_its_value_is_known_or_many_others_came() -> None:
    sealer, live = Sealer(MemorySeals()), Live("r1", RunState(run_id="r1"))
    for text in ("hunter2hunter2", *[f"an id {number}" for number in range(70)]):
        assert sealer.report(live, said := ModelSaid("c1", ModelResult(text))) is said
    sealer.report(live, ModelSaid("c1", ModelResult("password: hunter2hunter2")))
    assert HANDLE.search(str(sealer.report(live, ModelSaid("c1", ModelResult("hunter2hunter2")))))
    odd = ModelSaid("c1", None)  # type: ignore[arg-type]  # an engine may return anything
    assert sealer.report(live, odd) is odd


def test_the_names_of_members_are_looked_at_where_their_values_are_no_texts() -> None:
    sealer, live = Sealer(MemorySeals()), Live("r1", RunState(run_id="r1"))
    plain = said("", n=1, share=0.5)
    assert sealer.report(live, plain) is plain
    sealed = sealer.report(live, said("", **{TOKEN: 1}))
    assert TOKEN not in str(sealed)
    assert HANDLE.search(str(sealed))
