"""What a session keeps is written one entry after the other, in whichever event loop its program is."""

import asyncio

from remit.orchestrate.exchange.sessions import SessionState
from tests.unit.orchestrate.stage import play


class Book:
    """Takes entries, slowly, and counts how many are being written at once."""

    def __init__(self) -> None:
        self.writing = self.writing_max = 0
        self.written: list[tuple[str, str]] = []

    async def keep(self, key: str, text: str) -> None:
        """Write an entry; the first takes longest."""
        self.writing += 1
        self.writing_max = max(self.writing_max, self.writing)
        for _ in range(5 - len(self.written) % 5):
            await asyncio.sleep(0)
        self.written.append((key, text))
        self.writing -= 1


def test_entries_are_written_one_after_the_other_and_the_last_is_what_is_read() -> None:
    book = Book()
    state = SessionState(book.keep)

    async def scene() -> None:
        await asyncio.gather(*[state.set("key", number) for number in range(5)])

    play(scene())
    assert book.writing_max == 1
    assert book.written == [("key", str(number)) for number in range(5)]
    assert state.items() == {"key": 4}


def test_entries_can_be_written_in_one_loop_after_another() -> None:
    book = Book()
    state = SessionState(book.keep)

    async def scene() -> None:
        await asyncio.gather(*[state.set("key", number) for number in range(3)])

    play(scene())
    play(scene())
    assert (book.writing_max, len(book.written)) == (1, 6)
