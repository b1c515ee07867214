"""The checks of halts, of seals and of answers find what is wrong with them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.store import MemoryStore
from remit.core.journal.signing import Signer
from remit.core.journal.storage import Derived, SignedHead
from remit.core.record import replace
from remit.testing.conformance.custody.seals import SEALS_CHECKS
from remit.testing.conformance.custody.signing_key import KEY_CHECKS
from remit.testing.conformance.processes.halts import HALTS_CHECKS
from remit.testing.conformance.records.answers import ANSWERS_CHECKS
from remit.testing.conformance.records.index import INDEX_CHECKS, KEPT_INDEX_CHECKS


class BadHalts(MemoryHalts):
    """A log of halts with one flaw."""

    def __init__(self, flaw: str) -> None:
        super().__init__()
        self._flaw = flaw

    def news(self, number: int) -> Sequence[bytes]:  # type: ignore[explicit-override]
        news = list(super().news(number))
        match self._flaw:
            case "tells nobody":
                return ()
            case "tells the first alone":
                return news[:1]
            case "tells the last alone":
                return news[-1:]
            case "tells the last first":
                return news[::-1]
        return news

    def since(self, number: int) -> Sequence[bytes]:  # type: ignore[explicit-override]
        return [b"halt", *self._entries] if self._flaw == "halts at once" else super().since(number)

    async def append(self, data: bytes, *, after: int, head: SignedHead | None = None) -> None:  # type: ignore[explicit-override]
        if self._flaw == "never objects":
            after = len(self._entries)
        await super().append(data, after=after, head=None if self._flaw == "forgets heads" else head)


class BadSeals(MemorySeals):
    """Seals with one flaw."""

    def __init__(self, flaw: str) -> None:
        super().__init__()
        self._flaw = flaw

    def seal(self, scope: str, kind: str, value: str) -> str:  # type: ignore[explicit-override]
        handle = super().seal("" if self._flaw == "one scope" else scope, kind, value)
        if self._flaw in ("shows values", "gives many handles"):
            handle = f"{handle}{value if self._flaw == 'shows values' else len(self._values[scope])}"
            self._values[scope][handle] = value
        return handle

    def values(self, scope: str) -> dict[str, str]:  # type: ignore[explicit-override]
        return super().values("" if self._flaw == "one scope" else scope)

    def forget(self, scope: str) -> None:  # type: ignore[explicit-override]
        if self._flaw != "forgets nothing":
            super().forget(scope)


class BadInbox(MemoryInbox):
    """An inbox with one flaw, as a journal settles its entries."""

    def __init__(self, flaw: str) -> None:
        super().__init__()
        self._flaw = flaw

    def hear(self, run_id: str, number: int, answer: str) -> None:  # type: ignore[explicit-override]
        match self._flaw:
            case "settles nothing":
                return
            case "hears again":
                self._outcomes.setdefault(number, ("", answer))
            case "says no more":
                super().hear(run_id, number, "")
            case _:
                super().hear(run_id, number, answer)

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:  # type: ignore[explicit-override]
        if self._flaw == "changes its mind":
            self._outcomes.pop(number, None)
        await super().settle(number, code, message, token=token)


class HastyJournal(MemoryJournal):
    """A journal that settles entries before it looks whether it can write."""

    async def append(self, run_id: str, data: bytes, after: int, *along: Any, **named: Any) -> int:  # type: ignore[explicit-override]
        barrier = along[0] if along else named.get("barrier")
        if barrier is not None and barrier.heard and after != len(await self.read(run_id)) - 1:
            assert self._inbox is not None
            self._inbox.hear(run_id, barrier.heard, barrier.answer)
        return await super().append(run_id, data, after, *along, **named)


class BadIndex(MemoryStore):
    """A store whose index has one flaw."""

    def __init__(self, flaw: str) -> None:
        super().__init__()
        self.index = self  # type: ignore[assignment]  # the methods below
        self._flaw = flaw

    async def names(self) -> Sequence[str]:
        found = await self.journal.names()
        return sorted(found) if self._flaw == "sorts" else found

    async def sum_up(self) -> None:
        await self.journal.sum_up()

    async def strike(self) -> Sequence[str]:
        return await self.journal.strike()

    async def renew(self, runs: Sequence[Derived]) -> Sequence[str]:
        match self._flaw:
            case "renews nothing":
                return []
            case "looks at nothing":
                runs = [replace(run, turns=len(self.journal.turns_of(run.run_id))) for run in runs]
            case "overwrites refusals":
                for number, answer in runs[0].heard:
                    self.inbox._outcomes[number] = ("", answer)
            case "hears nothing":
                runs = [replace(run, heard=()) for run in runs]
            case "forgets lineages":
                runs = [replace(run, listing=replace(run.listing, lineage=())) for run in runs]
        return await self.journal.renew(runs)


class BadKey:
    """A key with one flaw."""

    def __init__(self, flaw: str) -> None:
        self.is_made = flaw != "is never there"
        self._is_new_each_time = flaw == "is new each time"
        self._signer = Signer.generate()

    @property
    def signer(self) -> Signer:
        return Signer.generate() if self._is_new_each_time else self._signer


def failed(checks: Iterable[Callable[[Any], Any]], made: Callable[[], Any]) -> set[str]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield made()

    names = set()
    for check in checks:
        try:
            asyncio.run(check(opened))
        except AssertionError:
            names.add(check.__name__)
    return names


def answers(flaw: str) -> tuple[MemoryJournal, MemoryInbox]:
    inbox = BadInbox(flaw)
    return (HastyJournal if flaw == "settles first" else MemoryJournal)(inbox=inbox), inbox


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("halts at once", "an_empty_log_halts_nothing"),
        ("tells nobody", "entries_come_back_in_order"),
        ("tells the first alone", "entries_come_back_in_order"),
        ("tells the last alone", "entries_come_back_in_order"),
        ("tells the last first", "entries_come_back_in_order"),
        ("never objects", "an_entry_is_written_once"),
        ("forgets heads", "the_last_signed_entry_is_known"),
    ],
)
def test_a_log_of_halts_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed(HALTS_CHECKS, lambda: BadHalts(flaw))


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("shows values", "a_value_comes_back_by_its_handle"),
        ("gives many handles", "a_value_has_one_handle"),
        ("one scope", "scopes_are_kept_apart"),
        ("forgets nothing", "what_is_forgotten_is_gone"),
    ],
)
def test_seals_with_a_flaw_fail_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed(SEALS_CHECKS, lambda: BadSeals(flaw))


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("says no more", "an_entry_is_settled_by_the_turn_that_answers_it"),
        ("settles nothing", "an_entry_is_settled_by_the_turn_that_answers_it"),
        ("hears again", "a_settled_entry_is_answered_by_no_turn"),
        ("settles first", "a_turn_that_loses_settles_nothing"),
        ("changes its mind", "what_was_said_of_an_entry_first_stays"),
        ("settles nothing", "of_those_who_answer_at_once_one_does"),
    ],
)
def test_a_store_that_answers_wrongly_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed(ANSWERS_CHECKS, lambda: answers(flaw))


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("sorts", "every_journal_is_named"),
        ("renews nothing", "a_run_is_listed_as_its_turns_tell"),
        ("forgets lineages", "a_run_is_listed_as_its_turns_tell"),
        ("overwrites refusals", "whom_a_run_heard_is_told_so"),
        ("looks at nothing", "a_run_that_has_gone_on_is_left_as_it_is"),
        ("hears nothing", "a_verdict_that_was_lost_is_told_anew"),
    ],
)
def test_an_index_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed((*INDEX_CHECKS, *KEPT_INDEX_CHECKS), lambda: BadIndex(flaw))


@pytest.mark.parametrize(
    ("flaw", "check"),
    [("is new each time", "a_key_signs_and_stays_the_same"), ("is never there", "a_key_that_was_used_is_made")],
)
def test_a_key_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed(KEY_CHECKS, lambda: BadKey(flaw))


def test_what_has_no_flaw_passes_every_check() -> None:
    assert failed((*INDEX_CHECKS, *KEPT_INDEX_CHECKS), lambda: BadIndex("")) == set()
    assert failed(KEY_CHECKS, lambda: BadKey("")) == set()
    assert failed(HALTS_CHECKS, lambda: BadHalts("")) == set()
    assert failed(SEALS_CHECKS, lambda: BadSeals("")) == set()
    assert failed(ANSWERS_CHECKS, lambda: answers("")) == set()
