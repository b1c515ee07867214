"""Runs as the gateway tells of them: folded from their turns, and folded further as these are written.

Rule 1: turns are read once, in order, each linked to the one before. A run that cannot be read is told of no more.
Rule 2: what was not needed for long is forgotten and folded again; memory holds a fixed number of runs.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from remit.core.journal.turn import Turn
from remit.core.record import Text
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.linked_turns import linked_turns
from remit.observe.reading import Reading
from remit.orchestrate.ports import Turns
from remit.wire.call_events import TextOf

T = TypeVar("T")

# The loops that move within a minute on a busy deployment; a state has some tens of kilobytes.
LOOPS_KEPT_MAX = 256


class FoldedLoop:
    """One run: its state and what was read of it so far."""

    def __init__(self, run_id: str, fetch: Callable[[Text], Awaitable[str]]) -> None:
        self.run_id, self.state, self.reading = run_id, RunState(), Reading()
        # The loop state that its user was told last.
        self.told_state = ""
        # Turns that were read and are not told yet.
        self.ahead: Sequence[bytes] = ()
        self._fetch = fetch
        self._texts: dict[Text, str] = {}

    def folded(self, data: Sequence[bytes]) -> Iterator[Turn]:
        """Fold stored turns, giving each when the state is that after it; raises InvariantBroken where they do not follow."""
        state = self.state
        for step in linked_turns(self.run_id, data, after=state.seq, head=state.head):
            apply(state, step.turn, step.link)
            self.reading.take(step.turn)
            yield step.turn

    async def with_texts(self, make: Callable[[TextOf], T]) -> T:
        """Make something of the run with texts, after every long text that it asks for was read in full."""
        wanted: list[Text] = []

        def noted(text: Text) -> str:
            if isinstance(text, str):
                return text
            if text not in self._texts:
                wanted.append(text)
            return self._texts.get(text, "…")

        made = make(noted)
        if not wanted:
            return made
        for text in wanted:
            self._texts[text] = await self._fetch(text)
        return make(noted)


class FoldedLoops:
    """The runs that were told of lately."""

    def __init__(self, journal: Turns, fetch: Callable[[Text], Awaitable[str]], kept_max: int = LOOPS_KEPT_MAX) -> None:
        self._journal, self._fetch, self._kept_max = journal, fetch, kept_max
        self._kept: OrderedDict[str, FoldedLoop] = OrderedDict()

    async def upto(self, run_id: str, seq: int) -> tuple[FoldedLoop, Sequence[bytes]]:
        """A run as it was folded last, and its turns beyond that up to a number, for the caller to fold."""
        loop = self._kept.pop(run_id, None) or FoldedLoop(run_id, self._fetch)
        self._kept[run_id] = loop
        if len(self._kept) > self._kept_max:
            self._kept.popitem(last=False)
        # A turn that was folded before is told no more.
        count = max(seq - loop.state.seq, 0)
        if len(loop.ahead) < count:
            loop.ahead = await self._journal.read(run_id, after=loop.state.seq)
        due, loop.ahead = loop.ahead[:count], loop.ahead[count:]
        return loop, due

    async def whole(self, run_id: str) -> FoldedLoop:
        """A run with all of its turns, beside what is kept of it."""
        loop = FoldedLoop(run_id, self._fetch)
        for _ in loop.folded(await self._journal.read(run_id)):
            pass
        return loop

    def at_hand(self, run_id: str) -> FoldedLoop | None:
        """A run as it was folded last, if it is remembered."""
        return self._kept.get(run_id)

    def forget(self, run_id: str) -> None:
        """Fold a run anew when it is next needed."""
        self._kept.pop(run_id, None)
