"""What every HaltLog must do.

A check is a coroutine function. It opens an empty log of halts with the function it is given, uses it, and raises
AssertionError with a sentence when it does not do what is relied on. Run each of HALTS_CHECKS against yours, with any test
runner.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import AppendConflict
from remit.core.run.halt import HALTS
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


HALTS_CHECKS: Sequence[HaltsCheck] = in_words(
    an_empty_log_halts_nothing,
    entries_come_back_in_order,
    an_entry_is_written_once,
    the_last_signed_entry_is_known,
)
