"""The archive: runs that were written down, to be found, shown, proven and carried elsewhere.

Rule 1: reading never writes and never drives; it works beside the holder of a run, and on a store that is read-only.
Rule 2: a run is named by its id, by the beginning of it where that is unique, or as `last`.
Rule 3: what a person is asked to approve is shown in full: arguments that were too long for a turn are fetched.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from remit.core.declared_arguments import checks_arguments
from remit.core.failure import ENDINGS, Ending, InvariantBroken, RemitError, RequestRejected
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn
from remit.core.journal.signing import Signer
from remit.core.journal.storage import RunEntry, SignedHead
from remit.core.page import check_limit, page_of
from remit.core.record import Text, replace
from remit.core.run.approval import Approval
from remit.core.run.halt import HALTED, HALTS, HaltScope
from remit.core.run.manifest import Source
from remit.core.run.run_events import expect_unreadable
from remit.core.run.signals import PACKET_AMBIGUOUS, PACKET_MARK, never_asked
from remit.kernel.results.proven_effects import cut_off_beneath
from remit.kernel.state import RunState, loop_state, pinned, waiting_for
from remit.observe.fact import is_failed_call
from remit.observe.linked_turns import History, fold, read_history
from remit.observe.people.packets import GROUP_MARK, grouped, too_late
from remit.observe.proof.export import export_lines
from remit.observe.proof.findings import Fault, Finding, StoreInDoubt, Verification
from remit.observe.proof.verify import nothing_of, verifications_of, verify_halts, verify_run
from remit.observe.reading import Reading, reading_of
from remit.observe.views.calls_made import children_of
from remit.observe.views.explain import DoneBeneath, Told, done_by, explain
from remit.observe.views.late_outcomes import NOTHING_BELOW
from remit.observe.views.outline import loop_states
from remit.orchestrate.errand_ports import GuardedLog
from remit.orchestrate.executors.human import approvals_told
from remit.orchestrate.history.custody import RUN_MISSING, Custody, why_absent
from remit.orchestrate.history.repair import doubts
from remit.orchestrate.history.replay import Audit, audit, kept_texts
from remit.orchestrate.loop.child_runs import (
    doubts_below,
    halted_beneath,
    held_now,
    orphan_above,
    paused_beneath,
    run_beneath,
)
from remit.orchestrate.loop.durability import ill_listed
from remit.orchestrate.loop.halt_switch import has_met
from remit.orchestrate.ports import ReadableStore
from remit.orchestrate.setup.reloaded_kit import changed_sources

RUN_AMBIGUOUS = "RUN_AMBIGUOUS"
EXPORT_UNSIGNED = "EXPORT_UNSIGNED"

LAST = "last"
# As many candidates as fit a line.
SHOWN_MAX = 4
_NAME_CHARS_MAX = 80


class Glimpse(NamedTuple):
    """The role of a run, the loop state it stands in, and what was asked; all empty where it cannot be read."""

    role: str = ""
    loop: str = ""
    asked: Text = ""


@checks_arguments("limit")
class Archive:
    """Reads the runs of a store. With its key, it may also sign what leaves the store."""

    def __init__(
        self, shelf: ReadableStore, signer: Callable[[], Signer] | None = None, custody: Custody | None = None
    ) -> None:
        self._shelf, self._custody, self._signer = shelf, custody, signer

    @property
    def has_key(self) -> bool:
        """Whether this store's own key is there: without it, it is unknown which signer to trust."""
        return self._signer is not None

    async def find(self, name: str) -> RunEntry:
        """The run of this name; raises RequestRejected when there is none, or more than one."""
        catalogue = self._shelf.catalogue
        if (entry := await catalogue.entry(name)) is not None:
            return entry
        if name == LAST:
            found = [*await catalogue.entries(parent_id="", limit=1)]
        else:
            # A run comes before those that came from it, whose ids may begin with its own.
            begun = sorted(await catalogue.entries(begins=name) if name else (), key=lambda entry: len(entry.run_id))
            found = [e for e in begun if begun[0].run_id not in e.listing.lineage]
        if not found:
            raise await self.absent(name)
        if len(found) > 1:
            raise _ambiguous(RUN_AMBIGUOUS, "runs begin with", name, [entry.run_id for entry in found])
        return found[0]

    async def _expect(self, run_id: str) -> None:
        if await self._shelf.catalogue.entry(run_id) is None:
            raise await self.absent(run_id)

    async def absent(self, name: str) -> RequestRejected:
        """Why a run is not there: it was never started, it was deleted, it is not listed, or it was taken out of the store."""
        return await why_absent(self._shelf.log, name)

    async def runs(
        self,
        *,
        open_only: bool = False,
        waiting_only: bool = False,
        with_children: bool = False,
        before: str = "",
        limit: int = 0,
    ) -> list[RunEntry]:
        """The runs, newest first; `limit` 0 means all of them.

        `before` is the last run of the page before; raises RequestRejected where it is not there any more.
        """
        catalogue = self._shelf.catalogue
        check_limit(limit)
        if before:
            await self._expect(before)
        listed: list[RunEntry] = []
        while True:
            left = limit - len(listed) if limit else 0
            found = await catalogue.entries(
                parent_id=None if with_children else "",
                open_only=open_only,
                waiting_only=waiting_only,
                before=before,
                limit=left,
            )
            now = [await self._as_it_waits(entry) for entry in found]
            listed += [entry for entry in now if entry.waiting_for or not waiting_only]
            # Runs of a page may wait for no person any more; then more of them are looked at.
            if len(listed) == limit or not left or len(found) < left:
                return listed
            before = found[-1].run_id

    async def _as_it_waits(self, entry: RunEntry) -> RunEntry:
        """The entry of a waiting run with what is asked now: the catalogue knows only the first question of each child."""
        if not entry.waiting_for or not await self._shelf.catalogue.entries(parent_id=entry.run_id, limit=1):
            return entry
        state = await self._read(entry.run_id)
        return entry if state is None else _listed_as(entry, state)

    async def _read(self, run_id: str) -> RunState | None:
        """How a run stands, its children's questions included; None where it cannot be read."""
        try:
            return await self._stands(await self.history(run_id))
        except RemitError as error:
            expect_unreadable(error)
            return None

    async def _beneath(self, state: RunState) -> DoneBeneath:
        """What the runs beneath one did, as far as they can be read."""
        found, untold = DoneBeneath(), set(cut_off_beneath(state))
        for command_id in children_of(state):
            try:
                if (child := await run_beneath(state, command_id, self._read)) is None:
                    continue
                reading = reading_of((await self.history(child.run_id)).turns)
                has_told = child.run_id not in untold
                found = found.with_more(done_by(child, reading, await self._beneath(child), has_told=has_told))
            except RemitError as error:
                expect_unreadable(error)
        return found

    async def _alone(self, run_id: str) -> RunState | None:
        """How a run stands by itself: with nothing done where it has no turn, None where it cannot be read."""
        data = await self._shelf.journal.read(run_id)
        try:
            return fold(read_history(run_id, data)) if data else RunState()
        except RemitError:
            return None

    async def _stands(self, history: History) -> RunState:
        """Fold a run and look at its children: it waits for what they ask now, and stands still for what halts them."""
        state = fold(history)
        if state.children.waiting and state.end.ending is None:
            halt = await halted_beneath(state, self._alone)
            state.children.waiting = await held_now(state, self._alone)
            if halt is not None and waiting_for(state) is None:
                state.place.halted = halt
        return state

    async def root(self, run_id: str) -> str:
        """The run above this one that is no child."""
        entry = await self.find(run_id)
        while entry.listing.parent_id:
            entry = await self.find(entry.listing.parent_id)
        return entry.run_id

    async def family(self, run_id: str) -> list[str]:
        """A run and every run beneath it, the deepest first; raises RequestRejected where there is no such run."""
        await self._expect(run_id)
        return await self._family(run_id)

    async def _family(self, run_id: str) -> list[str]:
        found = [run_id]
        for known in found:
            found.extend(child.run_id for child in await self._shelf.catalogue.entries(parent_id=known))
        return found[::-1]

    async def history(self, run_id: str) -> History:
        """The turns of a run, every link of which holds; raises InvariantBroken when one does not."""
        data = await self._turns(run_id)
        if not data:
            message = f"run {run_id} is listed and has no turn: they were taken out of the store; put back a backup"
            raise InvariantBroken(RUN_MISSING, message, {"run_id": run_id})
        return read_history(run_id, data)

    async def _turns(self, run_id: str) -> Sequence[bytes]:
        if not (data := await self._shelf.journal.read(run_id)):
            await self._expect(run_id)
        return data

    async def told(self, run_id: str) -> Told:
        """A run, explained, with its turns."""
        entry = await self.find(run_id)
        history = await self.history(entry.run_id)
        state = await self._stands(history)
        reading, manifest = Reading(), pinned(state)
        facts = [fact for turn in history.turns for fact in reading.take(turn)]
        went, stands = loop_states(manifest, facts), loop_state(state)
        loop = went if went[-1:] == (stands,) else (*went, stands)
        below = NOTHING_BELOW if state.end.ending is None else await doubts_below(state, self._read)
        explained = explain(state, reading, below, await self._beneath(state))
        if state.children.waiting and (paused := await paused_beneath(state, self._read)):
            by = tuple([reading_of((await self.history(name)).turns).paused_by for name in paused])
            explained = replace(explained, standing=replace(explained.standing, paused=paused, paused_by=by))
        failed = tuple([fact.step for fact in facts if is_failed_call(fact)])
        return Told(
            entry=_listed_as(entry, state),
            turns=history.turns,
            manifest=manifest,
            reading=reading,
            explanation=explained,
            loop=loop,
            failed=failed,
        )

    async def approvals(self, run_id: str = "", *, before: str = "", limit: int = 0) -> list[Approval]:
        """The questions to people, newest run first: of one run and those beneath it, or of all; `limit` 0 means all of them.

        `before` is the last question of the page before; raises RequestRejected where it is not asked any more.
        What a run asks whose parent has ended, or of which turns are missing, is left out: no answer to it is taken.
        """
        check_limit(limit)
        catalogue, found, place = self._shelf.catalogue, list[Approval](), ""
        if run_id:
            asked = await self._asked_by(await self._asking(run_id))
            return page_of(asked, lambda approval: approval.id, before, limit)
        if before:
            place = before.rpartition(PACKET_MARK)[0]
            last = await catalogue.entry(place)
            asked = await self._asked_by([] if last is None or not last.waiting_for else [last])
            found = page_of(asked, lambda approval: approval.id, before, 0)
        # Of a page no more runs are read than it takes; some ask several things, and some nothing that may be answered.
        while not limit or len(found) < limit:
            asking = [*await catalogue.entries(waiting_only=True, before=place, limit=limit)]
            found += await self._asked_by(asking)
            if not limit or len(asking) < limit:
                break
            place = asking[-1].run_id
        return found[:limit] if limit else found

    async def _asking(self, run_id: str) -> list[RunEntry]:
        """The runs that ask people something: a run and those beneath it."""
        family = set(await self.family(run_id))
        return [entry for entry in await self._shelf.catalogue.entries(waiting_only=True) if entry.run_id in family]

    async def _asked_by(self, asking: Iterable[RunEntry]) -> list[Approval]:
        """What these runs ask that may be answered."""
        answerable = [entry for entry in asking if await orphan_above(self._shelf.catalogue, entry) is None]
        whole = [entry for entry in answerable if not await self.in_doubt(entry)]
        return [approval for entry in whole for approval in await self._approvals_of(entry.run_id)]

    async def in_doubt(self, entry: RunEntry) -> str:
        """Why a run is not gone on with: turns of it are missing, or may be; empty where it is whole."""
        shelf, last = self._shelf, entry.turns - 1
        custody = Custody(shelf.journal, shelf.catalogue, shelf.log)
        if (head := await custody.beyond(entry.run_id, last)) is not None:
            return f"turn {head.seq} of it was signed and is missing"
        return await custody.log_doubt(entry.run_id, last)

    async def approval(self, name: str) -> Approval:
        """The question of this name: RUN/COMMAND, or just RUN where it asks only one."""
        run, mark, command_id = name.rpartition(PACKET_MARK)
        entry = await self.find(run if mark else name)
        # Those of a run whose parent has ended too: a person who answers one is told why that is not heard.
        open_now = [one for asks in await self._asking(entry.run_id) for one in await self._approvals_of(asks.run_id)]
        wanted = f"{entry.run_id}{PACKET_MARK}{command_id}"
        found = [approval for approval in open_now if not mark or approval.id == wanted]
        if not found:
            await self._expect_listed(entry.run_id)
            if (late := await self.settled(entry.run_id, command_id if mark else "")) is not None:
                raise late
            raise never_asked(entry.run_id, command_id if mark else "")
        if len(found) > 1:
            raise _ambiguous(PACKET_AMBIGUOUS, "questions are open in", name, [approval.id for approval in found])
        return found[0]

    async def _expect_listed(self, run_id: str) -> None:
        """Raise INDEX_DIFFERS where the list says something else of a run, or of one beneath it, than its turns do."""
        for name in await self._family(run_id):
            entry, data = await self._shelf.catalogue.entry(name), await self._turns(name)
            with suppress(InvariantBroken):  # One that cannot be read tells nothing.
                if entry is not None and (message := ill_listed(entry, data)):
                    raise RequestRejected(Fault.INDEX_DIFFERS.value, message, {"run_id": name})

    async def settled(self, run_id: str, command_id: str = "") -> RequestRejected | None:
        """What became of a question that a run asks no more, in words; None where there was none.

        Where none is named, of the last one that the run, or one beneath it, asked.
        """
        for name in [run_id] if command_id else await self._family(run_id):
            with suppress(InvariantBroken, RequestRejected):  # One that cannot be read, or is not there, tells nothing.
                if (late := too_late(name, (await self.history(name)).turns, command_id)) is not None:
                    return late
        return None

    async def packet(self, name: str) -> list[Approval]:
        """The questions under a name: one, or with a + behind it all that were asked together with it.

        RUN+ stands for all that a run asks, where that was asked together.
        """
        bare = name.removesuffix(GROUP_MARK)
        if bare == name:
            return [await self.approval(name)]
        run, mark, command_id = bare.rpartition(PACKET_MARK)
        run_id = (await self.find(run if mark else bare)).run_id
        wanted = f"{run_id}{PACKET_MARK}{command_id}"
        packets = grouped(await self.approvals(run_id))
        found = [one for one in packets if not mark or wanted in (one[0].group, *(asked.id for asked in one))]
        # Where there is none, or more than one, the question that is named says what is wrong.
        return found[0] if len(found) == 1 else [await self.approval(bare)]

    async def changed_sources(self, run_id: str) -> tuple[Source, ...]:
        """The code of a run whose files are no longer what they were, each with the digest it has now.

        Raises SourceFault where what has become of it cannot be accepted: it is gone, or declares something else; and
        RequestRejected where no key that this user accepts vouches for what the run names.
        """
        history = await self.history(run_id)
        if self._custody is not None:
            await self._custody.expect_vouched(run_id)
        return changed_sources(fold(history))

    async def glimpse(self, entry: RunEntry) -> Glimpse:
        """What a list tells of a run besides its entry; nothing of one that cannot be read."""
        try:
            history = await self.history(entry.run_id)
            began = history.turns[0].arrival
            assert isinstance(began, RunStarted), "a run that can be read begins with its start"
            ending = Ending(entry.ending) if entry.ending in set(Ending) else None
            role, said = began.manifest.role.value, began.manifest.request.messages[-1].content
            if ending is not None:
                return Glimpse(role, ENDINGS[ending].loop_state.value, said)
            state = await self._stands(history)
        except RemitError as error:
            expect_unreadable(error)
            return Glimpse()
        # The index calls it open and its turns end it: no state is shown rather than a wrong one.
        is_misled = state.end.ending is not None and not entry.ending
        return Glimpse(role, "" if is_misled else loop_state(state).value, said)

    async def verify(self, run_id: str, signer: str | None = None) -> Verification:
        """Whether a run is as it was written. Trusted is the key that is named, else those that are accepted here."""
        shelf = self._shelf
        entry = await shelf.catalogue.entry(run_id)
        data, heads, logged = await self._vouched(run_id)
        texts = await kept_texts(shelf.blobs, _readable(data))
        found = verify_run(
            run_id, data, heads=heads, logged=logged, signer=signer or self._accepted(), blob_of=texts.get
        )
        if isinstance(shelf.log, GuardedLog) and (message := await shelf.log.refused(run_id)):
            found = replace(found, findings=(*found.findings, Finding(Fault.ENTRIES_REFUSED, message)))
        if found.ok and entry is not None and (message := ill_listed(entry, data)):
            found = replace(found, findings=(*found.findings, Finding(Fault.INDEX_DIFFERS, message)))
        return found

    async def verify_halts(self, signer: str | None = None) -> tuple[str, ...]:
        """What is wrong with the journal of halts; nothing where it is as it was written."""
        return verify_halts(*await self._vouched(HALTS), signer or self._accepted())

    def _accepted(self) -> frozenset[str] | None:
        """The store's own key, and those of other machines of its deployment; None where it has none."""
        others = frozenset[str]() if self._custody is None else self._custody.accepted()
        return None if self._signer is None else others | {self._signer().did}

    async def has_met(self, scope: HaltScope) -> bool:
        """Whether a run of this store had what a halt is about."""
        return await has_met(scope, self._shelf.journal, self._shelf.catalogue)

    async def verify_all(self, signer: str | None = None) -> AsyncIterator[Verification]:
        """Verify every run, the runs that only the log of heads remembers, and the log itself (under no name)."""
        for entry in await self._shelf.catalogue.entries():
            yield await self.verify(entry.run_id, signer)
        if wrong := await self.verify_halts(signer):
            found = tuple(Finding(Fault.HALTS_ALTERED, f"the journal of halts: {one}") for one in wrong)
            yield nothing_of(HALTS, *found)
        for verification in verifications_of(await self._shelf.log.losses()):
            yield verification

    async def doubts(self, run_id: str = "") -> StoreInDoubt:
        """The doubts that missing signed turns leave: of one run, or of all."""
        return await doubts(self._shelf.journal, self._shelf.catalogue, self._shelf.log, run_id)

    async def replay(self, run_id: str) -> Audit:
        """A run, decided again turn by turn, with no model and no tool."""
        data = await self._turns(run_id)
        return audit(data, (await kept_texts(self._shelf.blobs, _readable(data))).get)

    async def export(self, run_id: str) -> Iterator[bytes]:
        """A run as the lines of a file, signed at its end; raises RequestRejected where there is none."""
        await self._expect(run_id)
        if self._signer is None:
            message = f"run {run_id} cannot be exported: this store has no key to sign with"
            raise RequestRejected(EXPORT_UNSIGNED, message, {"run_id": run_id})
        shelf, signer = self._shelf, self._signer()
        data, heads, logged = await self._vouched(run_id)
        return export_lines(
            run_id,
            data,
            heads=heads,
            logged=logged,
            blob_of=(await kept_texts(shelf.blobs, _readable(data))).get,
            signer=signer.did,
            sign=signer.sign,
        )

    async def _vouched(self, run_id: str) -> tuple[Sequence[bytes], list[SignedHead], list[SignedHead]]:
        """The turns of a run, or the entries of halts, with the heads that are kept and those in the log.

        All heads from before the turns were read, and of later ones those of these turns: the head of a turn that is written
        meanwhile looks like a loss to none.
        """
        kept, log = self._shelf.catalogue.heads, self._shelf.log.heads
        before = [*await kept(run_id), *await log(run_id)]
        data = self._shelf.halts.since(0) if run_id == HALTS else await self._turns(run_id)
        kept_now, logged_now = await kept(run_id), await log(run_id)
        kept_heads, logged = (
            [head for head in now if head.seq < len(data) or head in before] for now in (kept_now, logged_now)
        )
        return data, kept_heads, logged

    async def _approvals_of(self, run_id: str) -> list[Approval]:
        history = await self.history(run_id)
        return await approvals_told(fold(history), history.turns, self._text)

    async def _text(self, text: Text) -> str:
        return text if isinstance(text, str) else (await self._shelf.blobs.get(text.digest)).decode()


def _listed_as(entry: RunEntry, state: RunState) -> RunEntry:
    """The entry of a run with the end that its turns tell, or the code of what it and its children ask now."""
    ending = "" if state.end.ending is None else state.end.ending.value
    if ending == entry.ending and entry.waiting_for in ("", HALTED):
        return entry
    code = waiting_for(state)
    halted = HALTED if state.place.halted is not None and not ending else ""
    return replace(entry, ending=ending, waiting_for=halted if code is None else code.value)


def _ambiguous(code: str, what: str, name: str, candidates: Sequence[str]) -> RequestRejected:
    shown = ", ".join(candidates[:SHOWN_MAX]) + (", ..." if len(candidates) > SHOWN_MAX else "")
    message = f"{len(candidates)} {what} {name[:_NAME_CHARS_MAX]!r}: {shown}; say which"
    return RequestRejected(code, message, {"candidates": list(candidates[:SHOWN_MAX])})


def _readable(data: Iterable[bytes]) -> Iterator[bytes]:
    """The turns that can be read; verifying or replaying finds the others."""
    for stored in data:
        try:
            decode_turn(stored)
        except InvariantBroken:
            continue
        yield stored
