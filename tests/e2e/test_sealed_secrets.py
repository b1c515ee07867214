"""Secrets that no vault knows: forty shapes and more, in every place of a run, plain and encoded, are in no byte written."""

import asyncio
import io
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK, EXIT_WAITING
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import system_message, user_message
from remit.core.run.signals import Signal
from remit.observe.logs import TextFormatter
from remit.tool.declare.decorator import tool
from tests.e2e.command import remit_in
from tests.e2e.house import calls, house, says, scripted, tell
from tests.planted import ENCODINGS, Planted

CANARY = "a canary that is no secret"


def planted(seed: int) -> dict[str, tuple[str, str]]:
    """By name: a text with a secret, and the secret."""
    found = Planted(seed).all()
    assert len(found) >= 40
    return found


def leaks(store: Path, words: str, encode: Callable[[str], str], seed: int) -> list[str]:
    """What was planted and stands in a file of the store or in the words."""
    files = [path for path in store.rglob("*") if path.is_file()]
    data = b"\0".join(path.read_bytes() for path in files) + words.encode()
    assert CANARY.encode() in data, "a search would find one"
    whole = planted(seed)
    escaped = {name: json.dumps(value)[1:-1] for name, (_, value) in whole.items()}
    return [
        name
        for name, (text, value) in whole.items()
        if any(form.encode() in data for form in (value, escaped[name], encode(text), encode(value)))
    ]


def told(store: Path, run_id: str) -> str:
    """Everything the commands say about a run."""
    with remit_in(store.parent) as remit:
        asked = [("show", run_id, "--json"), ("trace", run_id, "--json"), ("explain", run_id), ("export", run_id)]
        answers = [remit(*words) for words in (*asked, ("approvals",), ("queues", "--json"), ("verify", run_id))]
        return "\n".join(said.out + said.err for said in answers)


PLACES = ("prompt", "arguments", "result", "error", "answer", "reasoning", "note", "reason")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_planted_secret_is_in_no_byte_that_is_written(tmp_path: Path, encoding: str) -> None:
    asyncio.run(plant_and_look(tmp_path, encoding))


async def plant_and_look(tmp_path: Path, encoding: str) -> None:
    encode, store = ENCODINGS[encoding], tmp_path / ".remit"
    secrets = {place: [encode(text) for text, _ in planted(seed).values()] for seed, place in enumerate(PLACES)}
    got: list[list[str]] = []

    @tool(effect="read")
    def look(texts: list[str]) -> str:
        """Look at texts."""
        got.append(texts)
        return "\n".join(secrets["result"])

    @tool(effect="read")
    def fail(part: int) -> str:
        """Fail with a part of the texts."""
        raise ValueError(" | ".join(secrets["error"][part::20]))

    @tool(effect="external")
    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    kit = scripted(
        [
            calls("look", {"texts": secrets["arguments"]}),
            {"tool_calls": [{"name": "fail", "arguments": {"part": part}} for part in range(20)]},
            calls("send", {"to": "ann"}),
            {"text": "\n".join(secrets["answer"]), "reasoning": "\n".join(secrets["reasoning"])},
        ],
        look,
        fail,
        send,
    )
    request = SystemRequest(
        messages=(system_message(CANARY), user_message("\n".join(secrets["prompt"]))), session_id="talk"
    )
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(TextFormatter())
    logging.getLogger("remit").addHandler(handler)
    try:
        async with house(store, kit) as system:
            asked = await system.run(request, kit)
            for part in (0, 1):
                await tell(system, Signal.FEEDBACK, asked.run_id, {"text": "\n".join(secrets["note"][part::2])})
            await system.note(asked.run_id, "ann", "said", json.dumps("\n".join(secrets["note"][:10])))
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            reason = "\n".join(secrets["reason"][:20])
            await tell(system, Signal.APPROVE, asked.run_id, {"packet_id": packet, "reason": reason})
            await system.settle()
            done = await system.result(asked.run_id)
    finally:
        logging.getLogger("remit").removeHandler(handler)
    words = log.getvalue() + str(done) + await asyncio.to_thread(told, store, asked.run_id)
    for seed, place in enumerate(PLACES):
        assert leaks(store, words, encode, seed) == [], place
    # The tool itself got every value as the model gave it.
    assert got == [secrets["arguments"]]


@pytest.mark.parametrize("option", ["--session", "--tenant", "--user"])
def test_a_name_that_is_a_secret_is_refused_and_written_nowhere(tmp_path: Path, option: str) -> None:
    token = planted(5)["github"][1]
    with remit_in(tmp_path) as remit:
        remit.write("", [says("Done.")])
        refused = remit.run_here(option, token)
        assert refused.exit_code != EXIT_OK
        assert "REQUEST_ID_SECRET" in refused.out + refused.err
        assert token not in refused.out + refused.err
        assert not any(token.encode() in path.read_bytes() for path in remit.home.rglob("*") if path.is_file())


TAKES = """
from pathlib import Path
from remit import tool

@tool(effect="external")
def send(token: str) -> str:
    \"\"\"Send a token.\"\"\"
    Path(__file__).with_name("sent.txt").write_text(token)
    return "sent"
"""


def test_a_run_without_its_sealed_values_waits_and_goes_on_when_they_are_back(tmp_path: Path) -> None:
    token = planted(5)["github"][1]
    with remit_in(tmp_path) as remit:
        remit.write(TAKES, [calls("send", {"token": token}), says("Done.")])
        asked = remit.run_here()
        assert asked.exit_code == EXIT_WAITING, asked
        (packet,) = asked.values["waiting_for"]["packet_ids"]
        (remit.home / "sealed").rename(tmp_path / "aside")
        stands = remit.here("approve", packet, "--json")
        assert stands.exit_code == EXIT_WAITING, stands
        assert "SECRET_GONE" in stands.out
        assert "sealed" in stands.out
        assert remit.here("resume", asked.values["run_id"], "--json").exit_code == EXIT_WAITING
        assert not (remit.folder / "sent.txt").exists()
        (tmp_path / "aside").rename(remit.home / "sealed")
        remit.here("resume", asked.values["run_id"], "--json")
        assert (remit.folder / "sent.txt").read_text() == token
