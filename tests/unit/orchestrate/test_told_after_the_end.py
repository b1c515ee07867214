"""A guarded conversation that ended before it was known what came of a call: what its agent tells later is added to it."""

from pathlib import Path

import pytest

from remit import CallStatus, Ending
from tests.unit.orchestrate.test_told_later import Host, Operation, play

ERROR: Operation = {"content": "timeout", "error": True}
NOT_DONE: Operation = {"content": "nothing happened", "error": True, "not_done": True}
PAID: Operation = {"content": "receipt 77"}
TWICE = "was said not to have happened and returned after all"


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ((), (PAID,), "was under way when the run ended; it returned after the end"),
        ((), (ERROR, PAID), "was under way when the run ended; it returned after the end"),
        ((), (NOT_DONE, PAID), TWICE),
        ((ERROR,), (PAID,), "was in doubt when the run ended; it returned after the end"),
        ((ERROR,), (ERROR, PAID), "was in doubt when the run ended; it returned after the end"),
        ((ERROR,), (NOT_DONE,), "was in doubt when the run ended; it did not happen, as its tool said after the end"),
        ((ERROR,), (NOT_DONE, PAID), TWICE),
        ((NOT_DONE,), (PAID,), TWICE),
    ],
)
def test_a_result_after_the_end_ends_the_doubt(
    before: tuple[Operation, ...], after: tuple[Operation, ...], told: str, has_id: bool, tmp_path: Path
) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        run_id = host.guard.run_id_of("talk")
        for one in before:
            await host.told(**one)
        ended = await host.ended()
        for one in after:
            assert await host.told(**one | ({} if has_id else {"id": None})) is None
        response = await host.system.result(run_id)
        assert response.terminal_code is ended.terminal_code
        assert any(told in warning for warning in response.warnings), response.warnings
        assert not any("it is unknown" in warning for warning in response.warnings), response.warnings
        (call,) = response.tool_calls_made
        if PAID in after:
            assert ("receipt 77" in str(call.result), call.status, call.code) == (True, CallStatus.OBSERVED, "")
        # What is known is told once.
        if PAID in after:
            assert ((await host.told(**PAID)) or {})["code"] == "GUARD_RUN_UNKNOWN"
        assert not (await host.system.archive.verify(run_id)).findings
        assert (await host.system.archive.replay(run_id)).verdict.value == "same"

    play(scene, tmp_path)


def test_what_the_next_conversation_of_the_name_hears_of_its_own_calls_says_nothing_of_the_one_before(
    tmp_path: Path,
) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        first = host.guard.run_id_of("talk")
        await host.told(**ERROR)
        await host.say("end")
        await host.paid()
        for _ in range(2):
            await host.told(**PAID)
        await host.ended()
        await host.told(**PAID)
        response = await host.system.result(first)
        assert response.terminal_code is Ending.REVIEW_REQUIRED
        assert any("it is unknown" in warning for warning in response.warnings), response.warnings

    play(scene, tmp_path)


def test_what_was_told_twice_of_a_call_is_text_when_it_is_told_once_more(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        for told in (NOT_DONE, PAID, {"content": "receipt 78"}):
            assert await host.told(**told) is None
        (call,) = (await host.ended()).tool_calls_made
        assert call.result == "receipt 77"

    play(scene, tmp_path)


def test_a_result_that_nothing_waits_for_is_not_told_to_begin_a_conversation(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.told(**PAID)
        await host.say("end")
        said = await host.told(**PAID) or {}
        assert said["code"] == "GUARD_RUN_UNKNOWN"
        assert "tell a person" in said["message"]
        assert "start it" not in said["message"]

    play(scene, tmp_path)
