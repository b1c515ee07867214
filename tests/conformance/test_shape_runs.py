"""Whole runs on servers that are busy, break a grammar, cut an answer, or take shapes in a dialect of their own."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.assemble import system_in_memory
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import ModelAnswered, ModelFailed
from remit.core.journal.commands import SetTimer, TimerPurpose
from remit.core.journal.turn import Turn
from remit.core.record import JsonObject
from remit.core.run.contract import ExecutionHints, Mode, OutputContract, SystemRequest, SystemResponse
from remit.core.run.messages import user_message
from remit.inference.specs import EngineSettings, open_engine
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.setup.kit import Kit
from remit.tool.registry import Registry
from tests.conformance.chat_server import Call, ChatServer, Peer, Play, serving

ANYTHING = OutputContract()
VERDICT = 'root ::= "yes: " [a-z]+ | "no"'
NUMBERS = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}},
    "required": ["numbers"],
    "additionalProperties": False,
}


class Played(NamedTuple):
    """A run: how it ended, its turns, and the server that it asked."""

    response: SystemResponse
    turns: list[Turn]
    server: ChatServer

    @property
    def code(self) -> str:
        return "" if self.response.error is None else self.response.error.code

    def all(self, kind: type[Any]) -> list[Any]:
        return [turn.arrival for turn in self.turns if isinstance(turn.arrival, kind)]

    def pauses_ms(self) -> list[int]:
        """How long the run meant to wait before each retry."""
        return [
            command.due_at_ms - turn.at_ms
            for turn in self.turns
            for command in turn.decisions
            if isinstance(command, SetTimer) and command.purpose is TimerPurpose.RETRY
        ]

    def shown(self, number: int) -> str:
        """The last thing that the server was told with one of its calls."""
        return str(self.server.calls[number].body["messages"][-1]["content"])


def play(
    scene: Play,
    spec: str,
    *,
    output: OutputContract = ANYTHING,
    options: JsonObject | None = None,
    tools: Sequence[Any] = (),
    timeout_ms: int = 0,
) -> Played:
    """A whole run on an engine in front of a server; `{url}` stands for its url."""

    async def scenario() -> Played:
        turns: list[Turn] = []

        def keep(state: RunState, turn: Turn) -> None:
            turns.append(turn)

        async with serving(scene) as server:
            engine = open_engine(spec.replace("{url}", server.url), base=Path("/"), settings=EngineSettings())
            system = system_in_memory()
            hints = ExecutionHints(max_tokens=60, timeout_ms=timeout_ms, options=options or {})
            mode = Mode.CHAT if output.schema is None or tools else Mode.STRUCTURED
            request = SystemRequest((user_message("Is it?"),), mode=mode, output=output, hints=hints)
            try:
                kit = Kit({engine.model_info().name: engine}, Registry(tools))
                return Played(await system.run(request, kit, listener=Listener(keep)), turns, server)
            finally:
                await system.close()

    return asyncio.run(scenario())


def saying(*texts: str, reason: str = "stop") -> Play:
    """Says one text after the other, and the last one for ever."""
    said = iter(range(10_000))

    async def scene(call: Call, peer: Peer) -> None:
        await peer.says(texts[min(next(said), len(texts) - 1)], reason=reason)

    return scene


# Servers that ask to be left alone.


@pytest.mark.slow
def test_a_server_that_asks_for_a_pause_gets_it_without_any_limit_in_the_spec() -> None:
    async def busy(call: Call, peer: Peer) -> None:
        if len(busy_calls) == 0:
            busy_calls.append(call)
            await peer.status(429, {"error": {"message": "slow down"}}, retry_after="2")
        else:
            await peer.says("Yes.")

    busy_calls: list[Call] = []
    run = play(busy, "openai:tiny?url={url}")
    assert (run.response.terminal_code, len(run.server.calls)) == (Ending.SUCCESS, 2)
    assert ([failed.retry_after_ms for failed in run.all(ModelFailed)], run.pauses_ms()) == ([2000], [2000])


@pytest.mark.slow
def test_no_retry_is_burnt_while_a_breaker_leaves_the_model_alone() -> None:
    async def down(call: Call, peer: Peer) -> None:
        if len(seen) == 0:
            seen.append(call)
            await peer.status(500, {"error": {"message": "down"}})
        else:
            await peer.says("Yes.")

    seen: list[Call] = []
    run = play(down, "openai:tiny?url={url}&breaker=1/2")
    # The second attempt is refused by the breaker, and the third one waits until it may probe.
    assert (run.response.terminal_code, len(run.server.calls)) == (Ending.SUCCESS, 2)
    assert ([failed.retry_after_ms for failed in run.all(ModelFailed)], run.pauses_ms()[1]) == ([0, 2000], 2000)


def test_a_pause_that_outlasts_the_run_ends_it_at_once_with_what_the_server_said() -> None:
    async def busy(call: Call, peer: Peer) -> None:
        await peer.status(429, {"error": {"message": "slow down"}}, retry_after="500")

    run = play(busy, "openai:tiny?url={url}", timeout_ms=60_000)
    assert (run.response.terminal_code, len(run.server.calls), run.pauses_ms()) == (Ending.UNAVAILABLE_DEP, 1, [])
    error = run.response.error
    assert error is not None
    assert (error.code, "deadline comes first" in error.message) == (ErrorCode.INFERENCE_ENGINE_ERROR, True)


# Grammars that are read afterwards.


@pytest.mark.parametrize("spec", ["openai:tiny?url={url}", "vllm:tiny?url={url}", "ollama:tiny?url={url}"])
def test_what_breaks_a_grammar_is_told_to_the_model_which_mends_it(spec: str) -> None:
    run = play(saying("yes: it is", "yes: itis"), spec, output=OutputContract(grammar=VERDICT))
    assert (run.response.terminal_code, run.response.content) == (Ending.SUCCESS, "yes: itis")
    assert "' ' at character 7 may not follow 'yes: it'" in run.shown(1)
    first = run.all(ModelAnswered)[0]
    assert (first.text, [violation.keyword for violation in first.violations]) == ("yes: it is", ["grammar"])
    assert run.all(ModelFailed) == []


@pytest.mark.parametrize(
    "schema", [None, {"type": "integer"}], ids=["chat with a grammar", "structured with schema and grammar"]
)
@pytest.mark.parametrize("text", ["52", "no"])
def test_a_model_that_never_keeps_to_its_grammar_is_asked_three_times(text: str, schema: JsonObject | None) -> None:
    output = OutputContract(schema=schema, grammar='root ::= "4" [0-9]')
    run = play(saying(text), "ollama:tiny?url={url}", output=output)
    assert (run.response.terminal_code, len(run.server.calls)) == (Ending.VALIDATION_FAIL, 3)
    assert run.code == ErrorCode.CONSTRAINT_GRAMMAR_REJECTED
    assert [answer.text for answer in run.all(ModelAnswered)] == [text, text, text]


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_contract_without_repair_makes_a_broken_grammar_and_a_cut_answer_final(reason: str) -> None:
    output = OutputContract(grammar='root ::= "4" [0-9]', repair_allowed=False)
    run = play(saying("52", reason=reason), "ollama:tiny?url={url}", output=output)
    assert (run.response.terminal_code, len(run.server.calls)) == (Ending.VALIDATION_FAIL, 1)


# Answers that were cut.


def test_a_structured_answer_that_was_cut_is_asked_for_again_and_told_to_be_shorter() -> None:
    calls: list[Call] = []

    async def scene(call: Call, peer: Peer) -> None:
        calls.append(call)
        cut = len(calls) == 1
        await peer.says('{"numbers": [1, 2' if cut else '{"numbers": [1]}', reason="length" if cut else "stop")

    run = play(scene, "openai:tiny?url={url}", output=OutputContract(schema=NUMBERS))
    assert (run.response.terminal_code, run.response.content) == (Ending.SUCCESS, '{"numbers": [1]}')
    assert "limit of 60 tokens and was cut" in run.shown(1)
    assert "shorter" in run.shown(1)
    # The beginning is kept as it came: what is closed for it would be a value that was not meant.
    first = run.all(ModelAnswered)[0]
    assert (first.text, first.repairs, first.violations[0].keyword) == ('{"numbers": [1, 2', (), "length")


@pytest.mark.parametrize(
    "output", [OutputContract(schema=NUMBERS), OutputContract(grammar='root ::= "[" [0-9, ]* "]"')]
)
def test_an_answer_that_is_always_cut_is_asked_for_three_times_and_keeps_its_code(output: OutputContract) -> None:
    run = play(saying("[1, 2, 3", reason="length"), "vllm:tiny?url={url}", output=output)
    assert (run.response.terminal_code, len(run.server.calls)) == (Ending.VALIDATION_FAIL, 3)
    assert run.code == ErrorCode.INFERENCE_MALFORMED_RESPONSE
    assert run.response.structured_output is None


# Dialects of shapes.


@pytest.mark.parametrize(
    ("spec", "sent"),
    [
        ("openai:tiny?url={url}", {}),
        ("vllm:tiny?url={url}", {"chat_template_kwargs": {"enable_thinking": False, "lang": "de"}}),
        ("vllm:tiny?url={url}&breaker=5", {"chat_template_kwargs": {"enable_thinking": False, "lang": "de"}}),
        ("ollama:tiny?url={url}", {"reasoning_effort": "none"}),
    ],
)
def test_a_structured_call_does_not_think_where_its_server_can_be_told(spec: str, sent: JsonObject) -> None:
    output = OutputContract(schema=NUMBERS)
    options = {"chat_template_kwargs": {"enable_thinking": True, "lang": "de"}} if "vllm" in spec else {}
    run = play(saying('{"numbers":[1]}'), spec, output=output, options=options)
    body = run.server.calls[0].body
    told = {name: body[name] for name in ("chat_template_kwargs", "reasoning_effort") if name in body}
    assert (run.response.terminal_code, told) == (Ending.SUCCESS, sent)
