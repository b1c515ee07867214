"""A queue that is delivered to a webhook, and what the webhook decides."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.clock import WallClock
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RemitError, RequestRejected
from remit.core.journal.arrivals import ApprovalGiven, ApprovalRefused
from remit.core.journal.codec import decode_turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.queue import Delivery
from remit.core.record import JsonObject
from remit.orchestrate.facade import System
from remit.orchestrate.people.draining import (
    ATTEMPTS_MAX,
    BODY_BYTES_MAX,
    PAUSE_MS_MAX,
    POLL_MS,
    SECRET_NAME,
    WEBHOOK_ANSWER_INVALID,
    WEBHOOK_KEY_MISSING,
    WEBHOOK_REFUSED,
    Drain,
    decision_in,
    webhook_key,
)
from remit.orchestrate.people.webhook import WEBHOOK_KEY_INVALID, WEBHOOK_UNREACHABLE
from remit.orchestrate.setup.kit import Terms
from remit.tool.secrets.secret import Secret
from remit.tool.secrets.vault import Vault
from tests.unit.orchestrate.hooked import KEY, Answering, Hook, deciding, hooked, thanks
from tests.unit.orchestrate.house import PATIENCE_S, approval, calls, keep, request, scripted

QUEUE = "operator"


class Patience:
    """A sleeper that never sleeps, and remembers how long it was asked to."""

    def __init__(self) -> None:
        self.paused_s: list[float] = []

    async def pause(self, seconds: float) -> None:
        """Go on at once."""
        self.paused_s.append(seconds)


@asynccontextmanager
async def waiting(*texts: str) -> AsyncIterator[tuple[System, list[str]]]:
    """A system in which runs wait for a person to allow that these texts are kept, and their ids."""
    system = system_on(MemoryStore())
    try:
        async with asyncio.timeout(PATIENCE_S):
            ids = []
            for text in texts:
                kit = scripted(calls("keep", text=text), {"text": "Done."}, tools=[keep])
                ids.append((await system.run(request(), kit)).run_id)
            yield system, ids
    finally:
        await system.close()


def draining(system: System, hook: Hook, patience: Patience | None = None) -> Drain:
    """A drain that delivers the queue there."""
    pause = (patience or Patience()).pause
    return Drain(system, QUEUE, hook.url, KEY, clock=WallClock(), pause=pause)


async def arrived(system: System, run_id: str) -> list[object]:
    """What arrived in a run."""
    return [decode_turn(data).arrival for data in await system.store.journal.read(run_id)]


def delivered(answer: Answering, text: str = "x") -> tuple[Hook, list[Delivery], list[object], Ending | None]:
    """What becomes of one held call that is delivered to a webhook which answers so."""

    async def play(hook: Hook) -> tuple[list[Delivery], list[object], Ending | None]:
        async with waiting(text) as (system, (run_id,)):
            found = [one async for one in draining(system, hook).once()]
            await system.settle()
            return found, await arrived(system, run_id), (await system.result(run_id)).terminal_code

    with hooked(answer) as hook:
        return hook, *asyncio.run(play(hook))


def test_an_item_is_delivered_signed_with_its_packet_and_only_once() -> None:
    async def play(hook: Hook) -> None:
        async with waiting("one", "two") as (system, ids):
            found = [one async for one in draining(system, hook).once()]
            assert [one.is_delivered for one in found] == [True, True]
            assert [one async for one in draining(system, hook).once()] == []
            assert [values["item"]["run_id"] for values in hook.got] == ids
            asked = await system.archive.approval(ids[0])
            first = hook.got[0]
            assert (first["id"], first["queue"], first["format"]) == (asked.id, QUEUE, 1)
            assert (first["packet"], first["asked"]["arguments"]) == (asked.packet, {"text": "one"})
            assert hook.headers[0]["Remit-Item"] == asked.id

    with hooked() as hook:
        asyncio.run(play(hook))
        assert hook.signed == [True, True]


def test_a_yes_with_the_version_that_was_sent_lets_the_run_go_on() -> None:
    _, (delivery,), said, ending = delivered(deciding("approve", reason="fine"))
    assert (delivery.decision, delivery.by, delivery.code) == ("approve", "ann", "")
    assert [one.by for one in said if isinstance(one, ApprovalGiven)] == ["ann"]
    assert ending is Ending.SUCCESS


def test_a_no_refuses_the_call_in_the_name_of_its_sender() -> None:
    _, (delivery,), said, ending = delivered(deciding("reject", reason="not today"))
    assert delivery.decision == "reject"
    assert [(one.by, one.reason) for one in said if isinstance(one, ApprovalRefused)] == [("ann", "not today")]
    assert ending is not Ending.SUCCESS


@pytest.mark.parametrize(
    "answer",
    [
        deciding("approve", packet=""),
        deciding("approve", packet="0" * 64),
        deciding("approve", packet=None),
        deciding("approve", by=""),
        deciding("approve", by=7),
        deciding("approve", by="x" * 300),
        deciding("approve", reason=7),
        deciding("approve", reason="x" * 3000),
        deciding("maybe"),
        deciding(["approve"]),
        lambda values: (200, b'{"decision": "reject", "decision": "approve", "by": "ann"}'),
    ],
)
def test_an_answer_that_may_not_decide_is_told_and_decides_nothing(answer: Answering) -> None:
    _, (delivery,), said, ending = delivered(answer)
    assert (delivery.is_delivered, delivery.code, delivery.decision) == (True, WEBHOOK_ANSWER_INVALID, "")
    assert not any(isinstance(one, ApprovalGiven | ApprovalRefused) for one in said)
    assert ending is None


@pytest.mark.parametrize("said", [b"", b"thanks", b"[]", b'{"ok": true}', b"{" * 5000, b"\xff"])
def test_a_word_of_thanks_decides_nothing(said: bytes) -> None:
    _, (delivery,), _, ending = delivered(lambda values: (200, said))
    assert (delivery.is_delivered, delivery.code, ending) == (True, "", None)
    assert decision_in(said, "v") is None


def test_a_packet_that_is_too_long_is_sent_without_a_version_so_nobody_can_approve_it() -> None:
    hook, (delivery,), _, ending = delivered(deciding("approve"), "x" * BODY_BYTES_MAX)
    assert (delivery.code, ending) == (WEBHOOK_ANSWER_INVALID, None)
    assert (hook.got[0]["packet"], hook.got[0]["asked"]["is_cut"]) == ("", True)
    assert hook.got[0]["asked"]["see"].startswith("remit approvals ")
    assert len(json.dumps(hook.got[0])) < 5000


def test_a_webhook_that_is_busy_is_tried_again_with_longer_and_longer_pauses() -> None:
    statuses, patience = [503, 429, 200], Patience()

    async def play(hook: Hook) -> list[Delivery]:
        async with waiting("x") as (system, _):
            return [one async for one in draining(system, hook, patience).once()]

    with hooked(lambda values: (statuses.pop(0), b"")) as hook:
        (delivery,) = asyncio.run(play(hook))
    assert delivery.is_delivered
    assert patience.paused_s == [0.5, 1.0]
    assert hook.signed == [True] * 3


@pytest.mark.parametrize(("status", "attempts"), [(500, ATTEMPTS_MAX), (403, 1), (302, 1)])
def test_what_was_not_taken_is_told_and_tried_again_another_time(status: int, attempts: int) -> None:
    async def play(hook: Hook) -> None:
        async with waiting("x") as (system, _):
            (delivery,) = [one async for one in draining(system, hook).once()]
            assert (delivery.is_delivered, delivery.status, delivery.code) == (False, status, WEBHOOK_REFUSED)
            assert len(hook.got) == attempts
            assert len([one async for one in draining(system, hook).once()]) == 1

    with hooked(lambda values: (status, b"")) as hook:
        asyncio.run(play(hook))


def test_nobody_there_is_waited_for_once_and_the_others_have_their_turn() -> None:
    patience = Patience()

    async def play() -> list[Delivery]:
        async with waiting("x", "y", "z") as (system, _):
            return [one async for one in draining(system, Hook("http://127.0.0.1:1/"), patience).once()]

    assert [one.code for one in asyncio.run(play())] == [WEBHOOK_UNREACHABLE] * 3
    assert len(patience.paused_s) == ATTEMPTS_MAX - 1


def test_a_decision_about_what_was_answered_meanwhile_is_refused_by_the_run() -> None:
    async def play() -> None:
        async with waiting("x") as (system, (run_id,)):
            loop = asyncio.get_running_loop()

            def answer(values: JsonObject) -> tuple[int, bytes]:
                told = asyncio.run_coroutine_threadsafe(system.signal(approval(values["id"])), loop)
                told.result(PATIENCE_S)
                return deciding("reject")(values)

            with hooked(answer) as hook:
                work = asyncio.ensure_future(draining(system, hook).once().__anext__())
                delivery = await work
            assert delivery.code == "QUESTION_SETTLED"
            await system.settle()
            assert (await system.result(run_id)).terminal_code is Ending.SUCCESS

    asyncio.run(play())


def test_what_was_answered_before_it_was_sent_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(hook: Hook) -> None:
        async with waiting("x") as (system, _):
            (item,) = await system.queues.items(QUEUE)
            await system.signal(approval(item.id))
            await system.settle()

            async def still_there(name: str = "") -> list[object]:
                return [item]

            monkeypatch.setattr(system.queues, "items", still_there)
            (delivery,) = [one async for one in draining(system, hook).once()]
            assert (delivery.is_delivered, "answered meanwhile" in delivery.message, hook.got) == (True, True, [])

    with hooked() as hook:
        asyncio.run(play(hook))


def test_an_answer_without_tls_from_another_machine_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.orchestrate.people.draining.webhook_may_decide", lambda url: False)
    _, (delivery,), _, ending = delivered(deciding("approve"))
    assert (delivery.code, ending) == (WEBHOOK_ANSWER_INVALID, None)
    assert "without TLS" in delivery.message


def test_an_ending_is_delivered_too_and_cannot_be_approved() -> None:
    async def play(hook: Hook) -> None:
        system = system_on(MemoryStore())
        try:
            terms = Terms(Boundary(name="small"), Budget(output_tokens=0))
            run_id = (await system.run(request(), scripted({"text": "x"}), terms)).run_id
            drain = Drain(system, "budget", hook.url, KEY, clock=WallClock())
            (delivery,) = [one async for one in drain.once()]
            assert (delivery.id, delivery.code) == (run_id, WEBHOOK_ANSWER_INVALID)
            assert (hook.got[0]["item"]["what"], hook.got[0]["asked"]) == ("ending", None)
        finally:
            await system.close()

    with hooked(deciding("approve")) as hook:
        asyncio.run(play(hook))


@pytest.mark.parametrize(("answer", "pause_ms"), [(thanks, POLL_MS), (lambda values: (403, b""), PAUSE_MS_MAX)])
def test_a_follower_looks_again_and_later_when_something_failed(answer: Answering, pause_ms: int) -> None:
    patience = Patience()

    async def play(hook: Hook) -> int:
        seen = 0
        async with waiting("x") as (system, _):
            drain = draining(system, hook, patience)
            follower = drain.follow()
            async for _ in follower:
                seen += 1
                if seen == 1:
                    kit = scripted(calls("keep", text="late"), {"text": "Done."}, tools=[keep])
                    await system.run(request(), kit)
                if seen == 2:
                    break
            await follower.aclose()
        return seen

    with hooked(answer) as hook:
        assert asyncio.run(play(hook)) == 2
    assert patience.paused_s == [pause_ms / 1000]


def test_the_key_is_that_of_a_file_or_the_secret_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    assert asyncio.run(webhook_key(Vault(), path)) == KEY
    assert asyncio.run(webhook_key(Vault({SECRET_NAME: Secret("s" * 20)}), None)) == b"s" * 20
    for vault, file, code in (
        (Vault(), None, WEBHOOK_KEY_MISSING),
        (Vault(), tmp_path / "none", WEBHOOK_KEY_MISSING),
        (Vault({SECRET_NAME: Secret("sixteen-bytes-xx"[:8])}), None, WEBHOOK_KEY_INVALID),
    ):
        with pytest.raises(RequestRejected) as refused:
            asyncio.run(webhook_key(vault, file))
        assert refused.value.code == code


def test_an_answer_is_invalid_only_where_it_would_decide() -> None:
    with pytest.raises(RemitError) as refused:
        decision_in(b'{"decision": "approve", "by": "ann", "packet": ""}', "")
    assert refused.value.code == WEBHOOK_ANSWER_INVALID
