"""The web server of the examples: a run is submitted, followed, shown and answered, and a kill in the middle loses nothing."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.command import until
from tests.tidy.source import ROOT

SCRIPT = {
    "replies": [
        {"tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "42"}}]},
        {"tool_calls": [{"name": "refund", "arguments": {"order_id": "42", "cents": 12900, "reason": "damaged"}}]},
        {"text": "The money is on its way.", "delay_ms": 3000, "chunks": 3},
    ]
}
PATIENCE_S = 60


def a_free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(folder: Path, port: int) -> Iterator[httpx.Client]:
    """A client of the server, which is killed in whatever it does when the block is left."""
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    names = {"REMIT_HOME": "home", "XDG_CONFIG_HOME": "config", "SUPPORT_LEDGER": "ledger.sqlite"}
    environment = {**os.environ, **{name: str(folder / value) for name, value in names.items()}}
    environment |= {"PORT": str(port), "DESK_ENGINE": f"scripted:{folder / 'script.json'}"}
    with (folder / "server.log").open("ab") as log:
        program = [sys.executable, str(ROOT / "examples" / "web_server.py")]
        server = subprocess.Popen(program, env=environment, stdout=log, stderr=log)
    try:
        # A transport with retries waits for the port to be listened at.
        transport = httpx.HTTPTransport(retries=12)
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", transport=transport, timeout=PATIENCE_S, trust_env=False
        ) as client:
            yield client
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def followed(client: httpx.Client, run: str, last: int = -1) -> list[tuple[str, dict[str, Any]]]:
    """The events of a run until it rests."""
    with client.stream("GET", f"/runs/{run}/events", headers={"Last-Event-ID": str(last)}) as answer:
        blocks = "".join(answer.iter_text()).strip().split("\n\n")
    lines = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [(block["event"], json.loads(block["data"])) for block in lines]


@pytest.mark.slow
def test_a_run_is_submitted_followed_and_answered_over_http_and_goes_on_after_its_server_was_killed(
    tmp_path: Path,
) -> None:
    port = a_free_port()
    with served(tmp_path, port) as client:
        assert "Support desk" in client.get("/").text
        run = client.post("/runs", json={"text": "Refund order 42, it arrived broken."}).json()["run"]
        assert followed(client, run)[-1] == ("rests", {"stands": "CONFIRM_REQUIRED", "content": ""})
        (asked,) = client.get("/approvals").json()
        assert (asked["tool"], asked["arguments"]["cents"]) == ("refund", 12900)
        assert {"order_id", "cents"} <= {value["path"].strip("/").partition(".")[0] for value in asked["origins"]}
        assert all(value["value"] for value in asked["origins"])
        answer = {"decision": "approve", "by": "staff"}
        unknown = client.post(f"/approvals/{asked['id']}", json={**answer, "decision": "cancel", "packet": "0"})
        assert (unknown.status_code, unknown.json()["code"]) == (409, "DECISION_UNKNOWN")
        assert client.get("/runs/nosuchrun").status_code == 404
        lost = client.get(f"/runs/{run}/events", headers={"Last-Event-ID": "99999"})
        assert (lost.status_code, lost.json()["code"]) == (409, "CURSOR_INVALID")
        for version in ("0" * 64, ""):
            other = client.post(f"/approvals/{asked['id']}", json={**answer, "packet": version})
            assert (other.status_code, other.json()["code"]) == (409, "PACKET_CHANGED")
        own = client.post(f"/approvals/{asked['id']}", json={**answer, "by": "customer", "packet": asked["packet"]})
        assert own.json()["code"] == "SELF_APPROVAL"
        assert client.post(f"/approvals/{asked['id']}", json={**answer, "packet": asked["packet"]}).is_success
        with client.stream("GET", f"/runs/{run}/events") as answer_stream:
            # The money is paid, and the model says the rest.
            assert any("said" in line for line in answer_stream.iter_lines())
        assert client.get(f"/runs/{run}").json() == {"stands": "running"}
    with served(tmp_path, port) as client:
        *steps, last = followed(client, run)
        assert last == ("rests", {"stands": "SUCCESS", "content": "The money is on its way."})
        assert [step for step in steps if step[1]["what"] == "RunStarted"] == steps[:1]
        assert followed(client, run, last=4)[:-1] == [step for step in steps if step[1]["what"] != "said"][5:]
        assert client.get("/approvals").json() == []
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as ledger:
        assert ledger.execute("SELECT order_id, cents FROM refunds").fetchall() == [("42", 12900)]
    assert (tmp_path / "server.log").read_text() == ""


@pytest.mark.slow
def test_a_no_to_what_a_killed_server_had_asked_ends_the_run_as_it_would_have_there(tmp_path: Path) -> None:
    port = a_free_port()
    with served(tmp_path, port) as client:
        run = client.post("/runs", json={"text": "Refund order 42, it arrived broken."}).json()["run"]
        assert followed(client, run)[-1] == ("rests", {"stands": "CONFIRM_REQUIRED", "content": ""})
        (asked,) = client.get("/approvals").json()
    with served(tmp_path, port) as client:
        answer = {"decision": "reject", "by": "staff", "packet": asked["packet"]}
        assert client.post(f"/approvals/{asked['id']}", json=answer).is_success
        until(lambda: client.get(f"/runs/{run}").json()["stands"] == "PERMISSION_DENIED", "the run ends with the no")


def test_a_body_that_is_no_answer_is_a_4xx_whatever_stands_in_it(tmp_path: Path) -> None:
    with served(tmp_path, a_free_port()) as client:
        body = '{"decision": "approve", "packet": NaN, "by": "x"}'
        answer = client.post("/approvals/r1/2.0", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "REQUEST_MALFORMED")
    assert "packet" in answer.json()["message"]
