"""What a newcomer meets in the first hour, from Python: no question is asked in vain, and nothing is cut in silence."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import remit
from remit import AgentLoop, RequestRejected, ScriptedEngine


class Server(HTTPServer):
    """A server of models that gives one answer to everything, and counts."""

    status, body, calls = 200, b"", 0

    @property
    def engine(self) -> str:
        return f"openai:any?url=http://127.0.0.1:{self.server_port}/v1"


class _Answers(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.calls += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.server.status)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:  # type: ignore[explicit-override]  # noqa: A002
        del format, args


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), _Answers) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, b"", "INFERENCE_MODEL_UNAVAILABLE"),
        (403, b"", "INFERENCE_MODEL_UNAVAILABLE"),
        (404, b"", "INFERENCE_MODEL_UNAVAILABLE"),
        (200, b"<html>Welcome</html>", "INFERENCE_MALFORMED_RESPONSE"),
        (200, b"data: <html>\n\n", "INFERENCE_MALFORMED_RESPONSE"),
    ],
)
def test_what_would_be_answered_the_same_is_not_asked_again(
    server: Server, status: int, body: bytes, code: str, tmp_path: Path
) -> None:
    server.status, server.body = status, body
    response = remit.AgentLoop(server.engine, home=tmp_path).chat_sync("Hello")
    assert response.error is not None
    assert (server.calls, response.error.code) == (1, code)


def test_a_budget_beyond_its_boundary_is_said_in_the_response(tmp_path: Path) -> None:
    engine = ScriptedEngine([{"text": "Hello."}])
    loop = remit.AgentLoop(engine, budget=remit.Budget(tool_calls=5000, steps=3), home=tmp_path)
    assert loop.chat_sync("Hi").warnings == ("tool_calls=5000 is more than the boundary gives; the cap is 50",)
    slow = remit.AgentLoop(engine, budget=remit.Budget(wall_clock_ms=7_200_000), home=tmp_path)
    assert slow.chat_sync("Hi").warnings == (
        "wall_clock_ms=7200000 (2 h) is more than the boundary gives; the cap is wall_clock_ms=600000 (10 min)",
    )
    hinted = remit.AgentLoop(engine, timeout_ms=7_200_000, max_tokens=900_000, home=tmp_path)
    assert hinted.chat_sync("Hi").warnings == (
        "max_tokens=900000 is more than the boundary gives; the cap is 60000",
        "timeout_ms=7200000 (2 h) is more than the boundary gives; the cap is wall_clock_ms=600000 (10 min)",
    )
    allowed = remit.AgentLoop(engine, budget=remit.Budget(tool_calls=50), home=tmp_path)
    assert allowed.chat_sync("Hi").warnings == ()


def test_a_vote_without_voters_is_refused() -> None:
    with pytest.raises(remit.RequestRejected, match="n=0 is not a number of replicas from 1 to 100"):
        remit.RedundantLoop(ScriptedEngine([{"text": "Hello."}]), schema={"type": "string"}, n=0)


def test_a_tool_without_a_docstring_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def stock(item: str) -> int:
        return len(item)

    engine = ScriptedEngine([{"text": "Hello."}])
    remit.AgentLoop(engine, tools=[remit.tool(stock)], home=tmp_path).chat_sync("Hi")
    assert "tool 'stock' has no docstring" in caplog.text
    caplog.clear()
    described = remit.tool(description="How many there are.")(stock)
    remit.AgentLoop(engine, tools=[described], home=tmp_path).chat_sync("Hi")
    assert not caplog.text


def test_every_verb_that_starts_a_run_takes_a_text() -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            kit = remit.kit_of(ScriptedEngine([{"text": "Hello."}]))
            assert (await system.run("Hi", kit)).content == "Hello."
            assert (await system.result(await system.submit("Hi", kit))).content == "Hello."

    asyncio.run(story())


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "anthropic:claude"])
def test_a_key_and_a_package_that_are_missing_are_said_at_once(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(RequestRejected) as refused:
        AgentLoop(spec)
    assert "API_KEY" in refused.value.message
    assert f"'remit[{spec.partition(':')[0]}]'" in refused.value.message
