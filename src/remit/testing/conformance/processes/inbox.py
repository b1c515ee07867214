"""What every Inbox must do.

A check is a coroutine function. It opens an empty inbox with the function it is given, uses it, and raises
AssertionError with a sentence when it does not do what is relied on. Run each of INBOX_CHECKS against your inbox,
with any test runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import InboxEntry
from remit.orchestrate.ports import Inbox
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import RUN

# Opens an inbox that is empty, and closes it afterwards.
OpenInbox = Callable[[], AbstractAsyncContextManager[Inbox]]
InboxCheck = Callable[[OpenInbox], Coroutine[Any, Any, None]]

RIVALS = 20
# More than one page of any backend holds, and longer than one packet.
MANY = 500
LARGE_BYTES = 1 << 18
EVERY_BYTE = bytes(range(256))


async def an_empty_inbox_holds_nothing(open_inbox: OpenInbox) -> None:
    """Nothing is pending, and nothing was settled."""
    async with open_inbox() as inbox:
        assert list(await inbox.pending(after=0)) == [], "an empty inbox holds entries"
        assert await inbox.outcome(1) is None, "an entry that was never left was settled"


async def what_was_left_is_found_in_order(open_inbox: OpenInbox) -> None:
    """Entries come back exactly, oldest first, under the numbers that were told."""
    async with open_inbox() as inbox:
        left = [("a", EVERY_BYTE), ("b", b""), ("a", b"\x00"), ("ä'; --", b"x"), ("A", b"x"), ("A", b"x")]
        numbers = [await inbox.put(run_id, data) for run_id, data in left]
        expected = [InboxEntry(number, *entry) for number, entry in zip(numbers, left, strict=True)]
        assert list(await inbox.pending(after=0)) == expected, "what was left in the inbox is not what is found"
        assert numbers == sorted(set(numbers)), f"numbers do not grow: {numbers}"
        assert numbers[0] > 0, "an entry is numbered 0, which means none"


async def reading_goes_on_after_a_number(open_inbox: OpenInbox) -> None:
    """A reader that has seen an entry asks for later ones."""
    async with open_inbox() as inbox:
        numbers = [await inbox.put(RUN, b"%d" % position) for position in range(4)]
        found = [entry.number for entry in await inbox.pending(after=numbers[1])]
        assert found == numbers[2:], f"after {numbers[1]}, of {numbers}, {found} are found"
        assert list(await inbox.pending(after=numbers[-1])) == [], "something comes after the last entry"


async def a_settled_entry_is_no_longer_pending(open_inbox: OpenInbox) -> None:
    """It was heard or refused, its sender can learn which, and its number is not given again."""
    async with open_inbox() as inbox:
        heard, refused, waiting = [await inbox.put(RUN, b"%d" % position) for position in range(3)]
        await inbox.settle(heard, "", "")
        await inbox.settle(refused, "RUN_ENDED", "the run has ended")
        found = [entry.number for entry in await inbox.pending(after=0)]
        assert found == [waiting], f"one entry waits, and {found} are pending"
        assert await inbox.outcome(heard) == ("", ""), "an entry that was heard does not say so"
        assert await inbox.outcome(refused) == ("RUN_ENDED", "the run has ended"), "a refusal does not come back"
        assert await inbox.outcome(waiting) is None, "an entry that waits was settled"
        await inbox.settle(waiting, "", "")
        assert await inbox.put(RUN, b"new") > waiting, "the number of a settled entry was given again"


async def an_entry_is_settled_once(open_inbox: OpenInbox) -> None:
    """What was said of it first stays, whatever is said later."""
    async with open_inbox() as inbox:
        heard, refused = await inbox.put(RUN, b"a"), await inbox.put(RUN, b"b")
        await inbox.settle(heard, "", "fork")
        await inbox.settle(refused, "NO", "no")
        await inbox.settle(heard, "NO", "no")
        await inbox.settle(refused, "", "")
        told = [await inbox.outcome(number) for number in (heard, refused)]
        assert told == [("", "fork"), ("NO", "no")], f"what was said of entries first became {told}"


async def what_is_left_may_be_long_and_much(open_inbox: OpenInbox) -> None:
    """Words of people have no page and no line: every entry is found whole, and so is what was said of one."""
    async with open_inbox() as inbox:
        left = [EVERY_BYTE * (LARGE_BYTES // len(EVERY_BYTE)), *(b"%d" % number for number in range(MANY))]
        numbers = [await inbox.put(RUN, data) for data in left]
        found = [entry.data for entry in await inbox.pending(after=0)]
        assert found == left, f"of {len(left)} entries, {len(found)} are found, or not as they were left"
        await inbox.settle(numbers[0], "NO", "no " * MANY)
        assert await inbox.outcome(numbers[0]) == ("NO", "no " * MANY), "a long refusal does not come back whole"


async def many_may_leave_something_at_once(open_inbox: OpenInbox) -> None:
    """Everything that was left at the same time is found, each under a number of its own."""
    async with open_inbox() as inbox:
        numbers = await asyncio.gather(*(inbox.put(RUN, b"%d" % rival) for rival in range(RIVALS)))
        assert len(set(numbers)) == RIVALS, f"{RIVALS} entries share {len(set(numbers))} numbers"
        found = {entry.number: entry.data for entry in await inbox.pending(after=0)}
        expected = {number: b"%d" % rival for rival, number in enumerate(numbers)}
        assert found == expected, f"{RIVALS} entries were left, and {len(found)} are found"


INBOX_CHECKS: Sequence[InboxCheck] = in_words(
    an_empty_inbox_holds_nothing,
    what_was_left_is_found_in_order,
    reading_goes_on_after_a_number,
    a_settled_entry_is_no_longer_pending,
    many_may_leave_something_at_once,
    an_entry_is_settled_once,
    what_is_left_may_be_long_and_much,
)
