"""What every HaltLog must do.

A check is a coroutine function. It opens an empty log of halts with the function it is given, uses it, and raises
AssertionError with a sentence when it does not do what is relied on. Run each of HALTS_CHECKS against yours, with any test
runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import AppendConflict
from remit.core.limits.grant import Grant, GrantDeed, GrantEntry
from remit.core.run.halt import HALTS, HaltStanding
from remit.core.work.orders import Order
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.ports import HaltLog
from remit.testing.conformance.in_words import in_words

# Opens a log of halts that is empty, and closes it afterwards.
OpenHalts = Callable[[], AbstractAsyncContextManager[HaltLog]]
HaltsCheck = Callable[[OpenHalts], Coroutine[Any, Any, None]]


async def an_empty_log_halts_nothing(open_halts: OpenHalts) -> None:
    """There is no entry, and none was signed."""
    async with open_halts() as halts:
        assert list(halts.since(0)) == [], "a log that was never written has entries"
        assert halts.signed() == (0, b""), "an entry was signed that was never written"


async def entries_come_back_in_order(open_halts: OpenHalts) -> None:
    """A question before a command is answered as the log reads."""
    async with open_halts() as halts:
        entries = [b"first", b"\x00\xff", b"third"]
        for number, entry in enumerate(entries):
            await halts.append(entry, after=number)
            assert list(halts.news(number)) == [entry], "an entry that was written is no news"
        for number in range(4):
            assert list(halts.since(number)) == entries[number:], f"after entry {number} other entries come"
            assert list(halts.news(number)) == entries[number:], f"the news after entry {number} are others"


async def an_entry_is_written_once(open_halts: OpenHalts) -> None:
    """The second writer is told so, and a gap is refused."""
    async with open_halts() as halts:
        await halts.append(b"first", after=0)
        for number in (0, 2):
            try:
                await halts.append(b"late", after=number)
            except AppendConflict:
                continue
            raise AssertionError(f"an entry was written after {number}, where one stands")
        assert list(halts.since(0)) == [b"first"], "an entry that was refused is there"


async def the_last_signed_entry_is_known(open_halts: OpenHalts) -> None:
    """By its number and its hash; an entry without a head says nothing."""
    signer = Signer.generate()
    async with open_halts() as halts:
        for number in range(2):
            head = sign_head(signer, run_id=HALTS, seq=number, head=hash_turn(b"entry"), ending="")
            await halts.append(b"entry", after=number, head=head)
            assert halts.signed() == (number + 1, head.head), "the last entry that was signed is another one"


async def a_grant_is_drawn_no_more_often_than_it_says(open_halts: OpenHalts) -> None:
    """However many draw from it at once, each deciding by what it has seen, and again where another was faster."""
    async with open_halts() as log:
        places = [Halts(log, _Standstill()) for _ in range(4)]
        grant = Grant(Order(tool="pay"), until_ms=2, times_max=3)
        await places[0].decide(lambda _: GrantEntry(GrantDeed.GIVEN, grant=grant), by="ada")

        def draw(question: str) -> Callable[[HaltStanding], GrantEntry | None]:
            def decided(standing: HaltStanding) -> GrantEntry | None:
                found = standing.grants["g1"]
                if found.why_not(0, 1) or question in dict(found.draws):
                    return None
                return GrantEntry(GrantDeed.DRAWN, "g1", packet_id=question)

            return decided

        # Each question is looked at by two of them, as after a crash.
        asked = [(place, f"run/{number}") for number in range(5) for place in (places[number % 4], places[-1])]
        await asyncio.gather(*(place.decide(draw(question), by="run") for place, question in asked))
        for place in places:
            await place.refresh()
            drawn = [name for name, _ in place.standing.grants["g1"].draws]
            assert len(drawn) == len(set(drawn)) == grant.times_max, f"a grant of 3 times was drawn from as {drawn}"


class _Standstill:
    """A clock that stands."""

    def now_ms(self) -> int:
        return 1


HALTS_CHECKS: Sequence[HaltsCheck] = in_words(
    an_empty_log_halts_nothing,
    entries_come_back_in_order,
    an_entry_is_written_once,
    the_last_signed_entry_is_known,
    a_grant_is_drawn_no_more_often_than_it_says,
)
