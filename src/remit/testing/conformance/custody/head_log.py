"""What every HeadLog must say of what was signed, together with the Journal that is given the heads.

A check is a coroutine function. It opens an empty journal and its log with the function it is given, uses them, and raises
AssertionError with a sentence when they do not do what is relied on. Run each of HEAD_LOG_CHECKS against yours, with any test
runner. How a journal comes to lack turns that the log knows is played with heads of turns that were never written. That the log
survives what the journal does not can only be seen with a disk of your own.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import START, AppendConflict, Barrier, Losses, RunListing, SignedHead, Warrant
from remit.core.record import replace
from remit.orchestrate.ports import HeadLog, Journal
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN, add

# Opens a journal that is empty, with its log, and closes them afterwards.
OpenHeadLog = Callable[[], AbstractAsyncContextManager[tuple[Journal, HeadLog]]]
HeadLogCheck = Callable[[OpenHeadLog], Coroutine[Any, Any, None]]

# Ids that would mean something else in a line, a pattern or a path.
ODD_IDS = ("a", "A", "a.b", "a b", 'a"b', "a\\b", "a\nb", "a/b", "ä", "{", "a" * 200)


async def an_unknown_run_was_never_signed(open_log: OpenHeadLog) -> None:
    """A run that was never started is not in the log, and is no error."""
    async with open_log() as (_, log):
        assert await log.last("unknown") is None, "a run that was never started has a last head in the log"
        assert list(await log.heads("unknown")) == [], "a run that was never started has heads in the log"
        assert await log.deletion("unknown") is None, "a run that was never started was deleted"
        assert not await log.doubt("unknown", -1), "the log is in doubt where no run was started"
        assert await log.losses() == Losses(), "something is missing where no run was started"


async def a_head_is_logged_before_its_turn_is_told_of(open_log: OpenHeadLog) -> None:
    """Once an append with a barrier returns, the log has the heads of the run up to there, in their order and as they were."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        await add(journal, RUN, b"0", None, RunListing(1), Warrant(head=_head(signer, RUN, 0)))
        await add(journal, RUN, b"1")
        for seq, ending in ((2, ""), (3, "SUCCESS")):
            head = _head(signer, RUN, seq, ending)
            await add(journal, RUN, b"%d" % seq, Barrier(ending), None, Warrant(head=head))
            assert await log.last(RUN) == head, f"turn {seq} was told of, and its head is not the last in the log"
        expected = [_head(signer, RUN, 0), _head(signer, RUN, 2), _head(signer, RUN, 3, "SUCCESS")]
        found = list(await log.heads(RUN))
        assert found == expected, f"of three heads are logged {found}"


async def what_is_whole_is_in_no_doubt(open_log: OpenHeadLog) -> None:
    """A journal that has every turn which was signed lacks nothing, also where its last turns are not signed."""
    async with open_log() as (journal, log):
        await _write(journal, Signer.generate(), RUN, 3)
        await add(journal, RUN, b"unsigned")
        await add(journal, "unsigned", b"0", Barrier("SUCCESS"), RunListing(1))
        assert not await log.doubt(RUN, 3), "the log is in doubt about a run of which nothing is missing"
        lost = await log.losses()
        assert lost == Losses(), f"nothing is missing, and the log says {lost}"


async def runs_are_logged_apart(open_log: OpenHeadLog) -> None:
    """However alike their ids are."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        for number, run_id in enumerate(ODD_IDS):
            await _write(journal, signer, run_id, number + 1)
        for number, run_id in enumerate(ODD_IDS):
            found = [(head.run_id, head.seq) for head in await log.heads(run_id)]
            assert found == [(run_id, seq) for seq in range(number + 1)], f"of run {run_id!r} are logged {found}"
        lost = await log.losses()
        assert lost == Losses(), f"nothing is missing, and the log says {lost}"


async def a_refused_turn_is_not_logged(open_log: OpenHeadLog) -> None:
    """A head without its turn would vouch for what was never done."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        await add(journal, RUN, b"0", Barrier(), RunListing(1))
        try:
            await journal.append(RUN, b"0", START, Barrier(), None, Warrant(head=_head(signer, RUN, 0)))
        except AppendConflict:
            pass
        else:
            raise AssertionError("a run was begun twice")
        assert list(await log.heads(RUN)) == [], "the head of a refused turn was logged"


async def heads_come_in_the_order_of_their_turns(open_log: OpenHeadLog) -> None:
    """Two who wrote turns of one run may have logged them the other way round."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        first, second = Warrant(head=_head(signer, RUN, 1)), Warrant(head=_head(signer, RUN, 0))
        await add(journal, RUN, b"0", Barrier(), RunListing(1), first)
        await add(journal, RUN, b"1", Barrier(), None, second)
        found = [head.seq for head in await log.heads(RUN)]
        assert found == [0, 1], f"the heads of two turns come as {found}"
        last = await log.last(RUN)
        assert last is not None, "a run that was signed has no last head"
        assert last.seq == 1, f"the last head is that of turn {last.seq}, although turn 1 was signed"


async def only_what_was_signed_is_the_last(open_log: OpenHeadLog) -> None:
    """A head that is not as it was signed vouches for nothing; it stands in the log, and leaves the run in doubt."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        await _write(journal, signer, RUN, 1)
        forged = replace(_head(signer, RUN, 1), signature=bytes(64))
        await add(journal, RUN, b"1", Barrier(), None, Warrant(head=forged))
        assert await log.last(RUN) == _head(signer, RUN, 0), "the last head is one that was never signed"
        assert list(await log.heads(RUN)) == [_head(signer, RUN, 0), forged], "a head was left out of the log"
        assert await log.doubt(RUN, 1), "a head of the run is not as it was signed, and the log is in no doubt"


async def what_was_signed_and_is_gone_is_lost(open_log: OpenHeadLog) -> None:
    """Runs of which later turns were signed are behind, and runs of which nothing is here are missing; no others."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        await _write(journal, signer, "whole", 2)
        await add(journal, "behind", b"0", Barrier(), RunListing(1), Warrant(head=_head(signer, "behind", 5)))
        await add(journal, OTHER, b"0", Barrier(), RunListing(1), Warrant(head=_head(signer, "gone", 3)))
        await add(journal, "ended", b"0", Barrier("SUCCESS"), RunListing(1), Warrant(head=_head(signer, "ended", 4)))
        lost = await log.losses()
        expected = (["behind", "ended"], ("gone",))
        assert (sorted(lost.behind), lost.missing) == expected, (
            f"runs behind and ended lack turns, run gone is missing, and lost is {lost}"
        )
        last = await log.last("gone")
        assert last == _head(signer, "gone", 3), f"of a run that is gone the last head was that of turn 3, not {last}"


async def what_nobody_signed_is_not_lost(open_log: OpenHeadLog) -> None:
    """Lines that are added to a log without the key make no run go missing."""
    async with open_log() as (journal, log):
        signer = Signer.generate()
        for run_id, names, seq in ((RUN, RUN, 5), (OTHER, "gone", 3)):
            forged = replace(_head(signer, names, seq), signature=bytes(64))
            await add(journal, run_id, b"0", Barrier(), RunListing(1), Warrant(head=forged))
        lost = await log.losses()
        assert lost == Losses(), f"no head was signed for what is not here, and lost is {lost}"


HEAD_LOG_CHECKS: Sequence[HeadLogCheck] = in_words(
    an_unknown_run_was_never_signed,
    a_head_is_logged_before_its_turn_is_told_of,
    what_is_whole_is_in_no_doubt,
    runs_are_logged_apart,
    a_refused_turn_is_not_logged,
    heads_come_in_the_order_of_their_turns,
    only_what_was_signed_is_the_last,
    what_was_signed_and_is_gone_is_lost,
    what_nobody_signed_is_not_lost,
)


def _head(signer: Signer, run_id: str, seq: int, ending: str = "") -> SignedHead:
    """The head of a turn that holds its number."""
    return sign_head(signer, run_id=run_id, seq=seq, head=hash_turn(b"%d" % seq), ending=ending)


async def _write(journal: Journal, signer: Signer, run_id: str, turns: int) -> None:
    """A run of so many turns, all signed."""
    for seq in range(turns):
        head = Warrant(head=_head(signer, run_id, seq))
        await add(journal, run_id, b"%d" % seq, Barrier(), None if seq else RunListing(1), head)
