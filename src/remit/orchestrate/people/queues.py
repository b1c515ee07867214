"""The queues of a store and their file: what each holds, whether it may hold more, and who has taken note of what.

Rule 1: what a queue holds is read off the journals whenever it is asked for; nothing is counted beside them.
Rule 2: a queue that is full lets no question in but what is grave: the others wait outside, their runs stay suspended,
        and the first of them enters as soon as there is room. An approval that comes before that is refused with a code;
        a no is heard at any time.
Rule 3: an ending is acknowledged once, by a person with a name. That is a receipt of the store and no turn of the run:
        a journal is closed with its ending, and whether people have seen it changes nothing in it.
Rule 4: a queue that names who answers it hears no other person, whether they say yes, say no or take note.
Rule 5: a queue has its room for each tenant by itself, and a principal finds what is of its tenant.
Rule 6: a run that cannot be read does not stop the others; `remit verify` tells what is wrong with it.
Rule 7: an unknown key of the file is refused with the nearest one that is known. Without a file no queue has a limit.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from remit.core.declared_arguments import checks_arguments
from remit.core.failure import Ending, InvariantBroken, RequestRejected
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import AskHuman
from remit.core.journal.storage import RunEntry
from remit.core.limits.escalation import TRIGGER_OF
from remit.core.limits.queue import QueueLimits, Receipt, ReceiptKind, check_limits
from remit.core.page import page_of
from remit.core.record import replace
from remit.core.regular_file import open_regular
from remit.core.run.person import check_person, is_among, look_alike
from remit.core.run.principal import LOCAL, Principal, Scope, expect_scope, person_for
from remit.core.run.signals import Signal, UserSignal, packet_id, packet_named
from remit.core.schema.strict_yaml import (
    ValuePath,
    YamlDocument,
    YamlFault,
    block_in,
    list_in,
    read_yaml,
    spelled_place,
    value_in_error,
)
from remit.kernel.state import RunState, pinned
from remit.observe.linked_turns import fold, read_history
from remit.observe.logs import run_fields
from remit.observe.people.queue_items import (
    QueueItem,
    QueueShown,
    aged,
    ended_by,
    escalation_asked,
    item_ended,
    items_asked,
    queue_overview,
)
from remit.observe.views.late_outcomes import NOTHING_FOUND, FoundOutcome, found_since
from remit.orchestrate.history.custody import why_absent
from remit.orchestrate.loop.child_runs import doubts_below, orphan_above
from remit.orchestrate.ports import Clock, ReadableStore
from remit.tool.secrets.vault import NO_SECRETS

_FILE_KEYS = ("queues",)
_KINDS = {"name": str, "load_max": int, "age_ms_max": int, "webhook": str}
_PEOPLE = "answered_by"


def read_queues(path: Path) -> tuple[QueueLimits, ...]:
    """The queues that a file names; raises RequestRejected where it cannot be meant."""
    document = read_yaml(path, open_regular)
    block = block_in(document, document.value, _FILE_KEYS, ())
    listed = list_in(document, block.get("queues", []), ("queues",))
    limits = [_queue(document, value, ("queues", position)) for position, value in enumerate(listed)]
    try:
        return check_limits(limits)
    except RequestRejected as error:
        raise RequestRejected(error.code, f"{path}: {error.message}", error.details) from None


def _queue(document: YamlDocument, value: object, place: ValuePath) -> QueueLimits:
    said = block_in(document, value, (*_KINDS, _PEOPLE), place)
    if "name" not in said:
        document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)} has no name; give it one", place)
    for key, kind in _KINDS.items():
        if key in said and type(said[key]) is not kind:
            wanted = "a whole number" if kind is int else "a text"
            message = f"{spelled_place((*place, key))} must be {wanted}, not {value_in_error(said[key])}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, key))
    people = list_in(document, said.get(_PEOPLE, []), (*place, _PEOPLE))
    for number, name in enumerate(people):
        if type(name) is not str:
            at = (*place, _PEOPLE, number)
            document.reject(
                YamlFault.VALUE_INVALID, f"{spelled_place(at)} must be a name, not {value_in_error(name)}", at
            )
    return QueueLimits(**{**said, _PEOPLE: tuple(people)})


NOTHING_HANDED_ON = "NOTHING_HANDED_ON"
QUEUE_FULL = "QUEUE_FULL"
QUEUE_FOREIGN = "QUEUE_FOREIGN"

# The ending of a run is among its last turns; few things arrive after it.
_LAST_TURNS = 16
# An ending that hands nothing on need not be looked at; one by a cancel or a deadline does where it left a call in doubt.
_HANDING_ON = frozenset(ending.value for ending in (*TRIGGER_OF, Ending.TIMEOUT, Ending.USER_CANCEL))

_log = logging.getLogger(__name__)


@checks_arguments("limit")
class Queues:
    """Reads the queues of a store."""

    def __init__(
        self,
        shelf: ReadableStore,
        clock: Clock,
        limits: Iterable[QueueLimits] = (),
        check_name: Callable[[str, str], None] = NO_SECRETS.check_name,
        principal: Principal = LOCAL,
        behind: ReadableStore | None = None,
    ) -> None:
        self.limits = check_limits(limits)
        self._shelf = shelf
        self._clock = clock
        # Refuses a name that is a secret.
        self._check_name = check_name
        self._principal = principal
        # The same shelf, for verbs that take another scope than reading.
        self._behind = behind or shelf

    def acting_for(self, principal: Principal, shelf: ReadableStore, behind: ReadableStore) -> "Queues":
        """The queues for a principal, who finds there what is on this shelf; `behind` asks for no scope to read."""
        return Queues(
            shelf, self._clock, limits=self.limits, check_name=self._check_name, principal=principal, behind=behind
        )

    def limits_of(self, name: str) -> QueueLimits:
        """The limits of a queue; none where none are set."""
        return next((one for one in self.limits if one.name == name), QueueLimits(name))

    async def items(
        self, name: str = "", *, tenant_id: str | None = None, after: str = "", limit: int = 0
    ) -> list[QueueItem]:
        """The items of a queue, or of all, as people should look at them; of one tenant, or of all.

        A page of `limit` items begins behind the item `after`; raises RequestRejected where that is gone.
        """
        every = [*await self._asked(tenant_id), *await self._ended(tenant_id)]
        found = [item for item in every if not name or item.queue == name]
        return page_of(aged(found, self.limits, self._clock.now_ms()), lambda item: item.id, after, limit)

    async def overview(self) -> list[QueueShown]:
        """Every queue at a glance."""
        return queue_overview(await self.items(), self.limits)

    async def acknowledge(self, run_id: str, by: str) -> Receipt:
        """Take note of the ending of a run, which leaves its queue; gives the receipt, another person's if they were first.

        Raises RequestRejected where the run is not there, has not ended, or its ending hands nothing on.
        """
        expect_scope(self._principal, Scope.APPROVE, "acknowledging")
        by = person_for(self._principal, by)
        self._check_name("by", check_person(by))
        entry, behind = await self._behind.catalogue.entry(run_id), Queues(self._behind, self._clock, self.limits)
        if entry is None:
            raise await why_absent(self._behind.log, run_id)
        item = await behind._ending(entry) if entry.ending else None
        if item is None:
            how = f"ended as {entry.ending}" if entry.ending else "is open"
            message = f"run {run_id} {how}, which hands nothing on; `remit queues` lists what waits for people"
            raise RequestRejected(NOTHING_HANDED_ON, message, {"run_id": run_id})
        self._check_person(item.queue, by)
        receipt = Receipt(ReceiptKind.ACKNOWLEDGED, item.id, run_id, by, self._clock.now_ms())
        await self._behind.receipts.keep(receipt)
        kept = await self._behind.receipts.kept(ReceiptKind.ACKNOWLEDGED)
        return next(one for one in kept if one.item == item.id)

    async def check_answer(self, state: RunState, signal: UserSignal) -> None:
        """Refuse an answer by a person whom the queue of the question does not name, and a yes to one that waits outside."""
        if not self.limits or signal.type not in (Signal.APPROVE, Signal.REJECT):
            return
        command_id = packet_named(str(signal.payload["packet_id"]), signal.run_id)
        question = state.commands.open.get(command_id)
        if not isinstance(question, AskHuman):
            return  # Who answers nothing is told so by the run.
        queue = escalation_asked(question).queue
        self._check_person(queue, signal.user_id)
        if signal.type is Signal.APPROVE and self.limits_of(queue).load_max:
            await self._check_inside(queue, packet_id(state.run_id, command_id), pinned(state).request.tenant_id)

    def _check_person(self, queue: str, by: str) -> None:
        people = self.limits_of(queue).answered_by
        if not people or is_among(by, people):
            return
        alike = f"; it can be read for {other!r}" if (other := look_alike(by, people)) else ""
        message = f"queue {queue} is answered by {', '.join(people)}, and not by {by!r}{alike}"
        raise RequestRejected(QUEUE_FOREIGN, message, {"queue": queue, "by": by})

    async def _check_inside(self, queue: str, item_id: str, tenant_id: str) -> None:
        items = await self.items(queue, tenant_id=tenant_id)
        asked = next((item for item in items if item.id == item_id), None)
        if asked is None or not asked.is_outside:
            return
        inside = [item.id for item in items if not item.is_outside]
        message = (
            f"{item_id} waits outside queue {queue}, which holds {len(inside)} items of "
            f"load_max={self.limits_of(queue).load_max}; answer what is inside first, such as {inside[0]}"
        )
        raise RequestRejected(QUEUE_FULL, message, {"queue": queue, "packet_id": item_id})

    async def _asked(self, tenant_id: str | None) -> list[QueueItem]:
        found: list[QueueItem] = []
        for entry in await self._shelf.catalogue.entries(tenant_id=tenant_id, waiting_only=True):
            # An answer to a run whose parent has ended is not heard.
            if await orphan_above(self._shelf.catalogue, entry) is None:
                items = await self._questions(entry.run_id)
                found += [replace(item, tenant_id=entry.listing.tenant_id) for item in items]
        return found

    async def _questions(self, run_id: str) -> list[QueueItem]:
        try:
            history = read_history(run_id, await self._shelf.journal.read(run_id))
            return items_asked(fold(history), history.turns)
        except InvariantBroken as error:
            _log.warning("what a run asks cannot be read: %s", error, extra=run_fields(run_id))
            return []

    async def _ended(self, tenant_id: str | None) -> list[QueueItem]:
        seen = {one.item for one in await self._shelf.receipts.kept(ReceiptKind.ACKNOWLEDGED)}
        entries = await self._shelf.catalogue.entries(tenant_id=tenant_id)
        candidates = [entry for entry in entries if entry.ending in _HANDING_ON and entry.run_id not in seen]
        found = [await self._ending(entry) for entry in candidates]
        return [item for item in found if item is not None]

    async def _ending(self, entry: RunEntry) -> QueueItem | None:
        # Of a long run only the end is read.
        for after in dict.fromkeys((max(-1, entry.turns - 1 - _LAST_TURNS), -1)):
            try:
                turns = [decode_turn(data) for data in await self._shelf.journal.read(entry.run_id, after=after)]
            except InvariantBroken as error:
                _log.warning("how a run ended cannot be read: %s", error, extra=run_fields(entry.run_id))
                return None
            if (ended := ended_by(turns)) is not None:
                found = await self._found(entry.run_id) if ended[0].doubted else NOTHING_FOUND
                item = item_ended(entry.run_id, turns, is_child=bool(entry.listing.parent_id), found=found)
                return None if item is None else replace(item, tenant_id=entry.listing.tenant_id)
        return None

    async def _found(self, run_id: str) -> Mapping[str, FoundOutcome]:
        """What was found out after its ending of effects that a run left in doubt: its own, and those of runs beneath it."""
        state = await self._read(run_id)
        if state is None:
            return NOTHING_FOUND
        return {**found_since(state), **(await doubts_below(state, self._read)).found}

    async def _read(self, run_id: str) -> RunState | None:
        try:
            return fold(read_history(run_id, await self._shelf.journal.read(run_id)))
        except InvariantBroken as error:
            _log.warning("what became of a run's calls cannot be read: %s", error, extra=run_fields(run_id))
            return None
