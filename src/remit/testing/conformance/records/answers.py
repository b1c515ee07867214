"""What a Journal and the Inbox beside it must do together: an entry is answered by one turn, or refused.

A check is a coroutine function. It opens an empty journal and its inbox with the function it is given, uses them, and raises
AssertionError with a sentence when they do not do what is relied on. Run each of ANSWERS_CHECKS against yours, with any test
runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import START, AppendConflict, Barrier, EntrySettled, RunListing
from remit.orchestrate.ports import Inbox, Journal
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import add

# Opens a journal and its inbox, both empty, and closes them afterwards.
OpenAnswers = Callable[[], AbstractAsyncContextManager[tuple[Journal, Inbox]]]
AnswersCheck = Callable[[OpenAnswers], Coroutine[Any, Any, None]]

RIVALS = 8


async def an_entry_is_settled_by_the_turn_that_answers_it(open_answers: OpenAnswers) -> None:
    """Its sender learns that it was heard, and what it led to."""
    async with open_answers() as (journal, inbox):
        await add(journal, "run", b"0", listing=RunListing(1))
        number = await inbox.put("run", b"signal")
        await add(journal, "run", b"1", barrier=Barrier(heard=number, answer="fork"))
        assert await inbox.outcome(number) == ("", "fork"), "an entry that a turn answers is not settled as it says"
        assert list(await inbox.pending(after=0)) == [], "an entry that a turn answers is pending"


async def a_settled_entry_is_answered_by_no_turn(open_answers: OpenAnswers) -> None:
    """Whether it was refused or heard before; the turn is not written, and the run goes on."""
    async with open_answers() as (journal, inbox):
        await add(journal, "run", b"0", listing=RunListing(1))
        refused, heard = await inbox.put("run", b"a"), await inbox.put("run", b"b")
        await inbox.settle(refused, "RUN_ENDED", "no")
        await add(journal, "run", b"1", barrier=Barrier(heard=heard))
        for number in (refused, heard):
            try:
                await add(journal, "run", b"again", barrier=Barrier(heard=number))
            except EntrySettled:
                continue
            raise AssertionError("a turn answers an entry that was settled before")
        await add(journal, "run", b"2")
        turns = list(await journal.read("run"))
        assert turns == [b"0", b"1", b"2"], f"beside entries that were settled before, the turns are {turns}"
        assert await inbox.outcome(refused) == ("RUN_ENDED", "no"), "what was said of an entry first does not stay"


async def a_turn_that_loses_settles_nothing(open_answers: OpenAnswers) -> None:
    """A conflict leaves the entry to the next turn that answers it."""
    async with open_answers() as (journal, inbox):
        await add(journal, "run", b"0", listing=RunListing(1))
        number = await inbox.put("run", b"signal")
        try:
            await journal.append("run", b"late", START, Barrier(heard=number))
        except AppendConflict:
            pass
        else:
            raise AssertionError("a turn was written where its run does not stand")
        assert await inbox.outcome(number) is None, "a turn that was refused settled an entry"
        await add(journal, "run", b"1", barrier=Barrier(heard=number))
        assert await inbox.outcome(number) == ("", ""), "after a conflict an entry cannot be answered"


async def of_those_who_answer_at_once_one_does(open_answers: OpenAnswers) -> None:
    """And of those who refuse and answer at once, the outcome says who was first."""
    async with open_answers() as (journal, inbox):
        await add(journal, "run", b"0", listing=RunListing(1))
        number = await inbox.put("run", b"signal")
        place = (await journal.read("run")).place
        answers = [
            journal.append("run", b"%d" % rival, place, Barrier(heard=number, answer=str(rival)))
            for rival in range(RIVALS)
        ]
        done = await asyncio.gather(*answers, inbox.settle(number, "NO", "no"), return_exceptions=True)
        turns = list(await journal.read("run", after=0))
        outcome = await inbox.outcome(number)
        assert len(turns) <= 1, f"one entry is answered by {len(turns)} turns"
        assert outcome == (("", turns[0].decode()) if turns else ("NO", "no")), (
            f"{turns} were written, told is {outcome}"
        )
        losers = [error for error in done[:-1] if isinstance(error, BaseException)]
        assert len(losers) == RIVALS - len(turns), "a rival that lost was told otherwise"


async def what_was_said_of_an_entry_first_stays(open_answers: OpenAnswers) -> None:
    """Its sender may have been told: a turn has heard it, or it was refused, and nothing said later changes that."""
    async with open_answers() as (journal, inbox):
        await add(journal, "run", b"0", listing=RunListing(1))
        heard, refused = await inbox.put("run", b"a"), await inbox.put("run", b"b")
        await add(journal, "run", b"1", barrier=Barrier(heard=heard, answer="fork"))
        await inbox.settle(refused, "NO", "no")
        for number in (heard, refused):
            await inbox.settle(number, "LATER", "never mind")
            await inbox.settle(number, "", "")
        assert await inbox.outcome(heard) == ("", "fork"), "an entry that a turn has heard was refused afterwards"
        assert await inbox.outcome(refused) == ("NO", "no"), "what was said of a refused entry first does not stay"
        assert list(await inbox.pending(after=0)) == [], "an entry that was settled twice is pending"


ANSWERS_CHECKS: Sequence[AnswersCheck] = in_words(
    an_entry_is_settled_by_the_turn_that_answers_it,
    a_settled_entry_is_answered_by_no_turn,
    a_turn_that_loses_settles_nothing,
    of_those_who_answer_at_once_one_does,
    what_was_said_of_an_entry_first_stays,
)
