"""A call that changes something is claimed before it begins; one that was taken back before is certainly not done."""

import asyncio
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit import tool
from remit.core.failure import Ending
from remit.core.run.contract import CallStatus
from remit.core.run.signals import Signal
from remit.orchestrate.loop.claims import Claims
from tests.unit.orchestrate.house import calls, in_memory, request, scripted, signal
from tests.unit.orchestrate.stage import play

VERBS = st.sampled_from(["claim", "revoke"])


@given(st.lists(st.tuples(VERBS, st.sampled_from(["1.1", "1.2"])), max_size=12))
def test_of_what_was_offered_the_first_claim_decides_for_good(asked: list[tuple[str, str]]) -> None:
    claims, first, said = Claims(), dict[str, str](), set[tuple[str, str]]()
    for command_id in ("1.1", "1.2"):
        claims.offer("run", command_id)
    for verb, command_id in asked:
        decided = first.setdefault(command_id, verb)
        # What was revoked stays so however often that is asked; what was claimed is begun by the one who claimed it.
        is_first = (verb, command_id) not in said
        said.add((verb, command_id))
        assert getattr(claims, verb)("run", command_id) is (decided == verb and (is_first or verb == "revoke"))


def test_what_was_not_offered_here_is_never_said_not_to_have_happened() -> None:
    claims = Claims()
    assert not claims.revoke("run", "1.1")
    assert claims.claim("run", "1.1")
    claims.offer("run", "1.1")
    assert not claims.revoke("run", "1.1")


def test_what_has_begun_may_begin_once_more_only_where_it_is_safe_to_repeat() -> None:
    claims = Claims()
    assert claims.claim("run", "1.1")
    assert not claims.claim("run", "1.1")
    assert claims.claim("run", "1.1", is_repeatable=True)
    claims.begun("run", "1.2")
    assert not claims.claim("run", "1.2")


def test_what_is_wanted_again_may_begin() -> None:
    claims = Claims()
    claims.offer("run", "1.1")
    assert claims.revoke("run", "1.1")
    claims.offer("run", "1.1")
    assert claims.claim("run", "1.1")
    claims.forget("run")
    assert not claims.is_revoked("run", "1.1")


@pytest.mark.parametrize("has_begun", [False, True])
def test_of_a_cancelled_call_is_known_whether_it_had_begun(has_begun: bool) -> None:
    reached, asked = asyncio.Event(), list[str]()

    async def available() -> bool:
        if not has_begun:
            reached.set()
            await asyncio.Event().wait()
        return True

    @tool(effect="write", network=False, available=available, asks=["pay"], timeout_ms=30_000)
    async def pay() -> Literal["paid"]:
        """Pay."""
        asked.append("paid")
        reached.set()
        await asyncio.Event().wait()
        return "paid"

    async def story() -> None:
        async with in_memory() as system:
            run_id = (await system.run(request("pay"), scripted(calls("pay"), {"text": "Paid."}, tools=[pay]))).run_id
            (held,) = await system.archive.approvals(run_id)
            approval = asyncio.ensure_future(
                system.signal(signal(Signal.APPROVE, run_id, packet_id=held.id.partition("/")[2]))
            )
            await reached.wait()
            await system.signal(signal(Signal.CANCEL, run_id))
            await approval

            response = await system.result(run_id)
            (made,) = response.tool_calls_made
            assert response.terminal_code is Ending.USER_CANCEL
            assert made.status is (CallStatus.OUTCOME_UNKNOWN if has_begun else CallStatus.FAILED)

    play(story())
    assert asked == ["paid"] * has_begun
