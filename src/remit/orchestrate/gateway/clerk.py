"""Carries out what comes by the wire: tasks start loops or continue them, messages mean something, signals are passed on.

Rule 1: whatever is done is done for the sender, as a principal of the gateway's tenant, with the scopes that the channel's
        permissions give; the run itself judges everything else.
Rule 2: a task that comes twice starts one loop; a signal that comes twice is heard once. Another task under an id that its
        sender has used before is refused, and answered.
Rule 3: the depth of a loop follows from the loop above it, which is its user's own.
Rule 4: what a sender may know of loops is read when it is asked for, from the journal: an answer is never held against a
        card that is out of date.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from pathlib import Path

from remit.core.failure import RequestRejected
from remit.core.record import Record, replace
from remit.core.regular_file import open_regular
from remit.core.run.approval import What
from remit.core.run.person import is_same_person
from remit.core.run.principal import Principal
from remit.core.run.signals import PACKET_MARK
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
from remit.orchestrate.facade import System
from remit.orchestrate.gateway.folded_loops import FoldedLoops
from remit.orchestrate.setup.kit import STANDARD_TERMS, Kit, Terms
from remit.wire.channels import (
    ChannelDesk,
    ChannelRules,
    Explain,
    LoopCard,
    Permission,
    Permissions,
    Show,
    Submit,
    Tell,
    card_of,
    lacks,
    may_do,
    no_loop,
    permit,
    principal_of,
    scopes_of,
)
from remit.wire.inbound import (
    WIRE_LOOP_UNKNOWN,
    PrebuiltContext,
    TaskOrder,
    is_same_task,
    session_of_task,
    signal_of,
    start_of_task,
)
from remit.wire.message_records import SignalMessage, TaskMessage, UserMessage, UserResponse, WireSignal
from remit.wire.message_rules import ResponseType
from remit.wire.payloads import WIRE_RULE_BROKEN
from remit.wire.projections import loop_depth
from remit.wire.replies import Destination, reply, sender_of

WIRE_MODEL_UNKNOWN = "WIRE_MODEL_UNKNOWN"
WIRE_ID_TAKEN = "WIRE_ID_TAKEN"

# Who speaks where a task or a signal names no user: any client that the broker let in.
ANYBODY = "nats"
# The loops that users of a busy deployment talk with within a day.
CARDS_MAX = 10_000
# How many of the newest runs are known to a gateway that begins.
RECENT_MAX = 200

# The keys of a file that says who may do what.
_PERMISSIONS, _CHANNELS, _GROUPS = "permissions", "channels", "groups"


@dataclass(frozen=True, slots=True)
class WireWork:
    """What tasks of the wire are done with: for which tenant, with which tools and models, on which terms, for whom."""

    kit: Kit
    terms: Terms = STANDARD_TERMS
    tenant_id: str = "default"
    rules: ChannelRules = field(default_factory=ChannelRules)
    # Permissions that tools of these runs may need, besides what the channels give.
    scopes: tuple[str, ...] = ()


class Clerk:
    """Carries out messages of one tenant, one after the other."""

    def __init__(self, system: System, loops: FoldedLoops, work: WireWork) -> None:
        self._system, self._loops, self._work = system, loops, work
        self._cards: OrderedDict[str, LoopCard] = OrderedDict()

    async def look(self) -> None:
        """Know the loops that go on, and the newest of the others."""
        archive = self._system.archive
        recent = {entry.run_id for entry in await archive.runs(limit=RECENT_MAX)}
        recent |= {entry.run_id for entry in await archive.runs(open_only=True)}
        for run_id in sorted(recent):
            self.learn((await self._loops.whole(run_id)).state)

    def learn(self, state: RunState) -> None:
        """Note how a run stands; one of another tenant, or beneath another run, is none that users talk with."""
        manifest = pinned(state)
        if manifest.request.tenant_id == self._work.tenant_id and manifest.parent is None:
            self._cards.pop(state.run_id, None)
            self._cards[state.run_id] = card_of(state)
            if len(self._cards) > CARDS_MAX:
                self._cards.popitem(last=False)

    async def carry_out(self, message: Record, *, at_ms: int) -> UserResponse | None:
        """Do what a message says; gives what its sender is told at once. Raises RequestRejected with a code."""
        if isinstance(message, TaskMessage):
            await self._start(message)
        elif isinstance(message, WireSignal | SignalMessage):
            await self._signal(message)
        elif isinstance(message, UserMessage):
            return await self._hear(message, at_ms)
        return None

    async def _start(self, task: TaskMessage) -> None:
        user_id = task.user_id or ANYBODY
        rules = self._work.rules
        permissions, groups = rules.permissions_in(task.channel_type), rules.groups_of(user_id)
        if not may_do(permissions, Permission.SUBMIT, user_id, groups):
            raise lacks(user_id, Permission.SUBMIT)
        if task.parent_loop_id:
            task = await self._beneath(task, user_id)
        session_id = ""
        if task.loop_id:
            card = await self._card(task.loop_id)
            if card is None or not is_same_person(card.user_id, user_id):
                message = f"loop {task.loop_id[:80]!r} is not known here; leave loop_id out to begin a new one"
                raise RequestRejected(WIRE_LOOP_UNKNOWN, message, {"loop_id": task.loop_id[:80]})
            session_id = card.session_id
        scopes = scopes_of(permissions, user_id, groups)
        principal = self._principal(user_id, scopes, task.channel_type)
        await self._submit(start_of_task(task, session_id=session_id), principal)

    async def _beneath(self, task: TaskMessage, user_id: str) -> TaskMessage:
        """A task as deep as its parent says, and no deeper than that may go."""
        card = await self._card(task.parent_loop_id)
        if card is None or not is_same_person(card.user_id or ANYBODY, user_id):
            message = f"parent loop {task.parent_loop_id[:80]!r} is not known here; leave parent_loop_id out to begin a new one"
            raise RequestRejected(WIRE_LOOP_UNKNOWN, message, {"loop_id": task.parent_loop_id[:80]})
        above = loop_depth((await self._loops.whole(task.parent_loop_id)).state)
        depth, most = max(task.depth, above.depth + 1), min(task.max_depth or above.most, above.most)
        if depth > most:
            message = f"a loop beneath {task.parent_loop_id[:80]!r} has depth={depth}, which exceeds max_depth={most}"
            raise RequestRejected(WIRE_RULE_BROKEN, message, {"loop_id": task.parent_loop_id[:80]})
        return replace(task, depth=depth, max_depth=most)

    async def _submit(self, order: TaskOrder, principal: Principal) -> None:
        work, request = self._work, order.request
        if await self._is_started(order):
            return
        depth, own = order.budget.depth, work.terms.budget.depth
        if depth is not None:
            depth = depth if own is None else min(depth, own)
        budget = replace(work.terms.budget, depth=own if depth is None else depth)
        terms = with_fields(work.terms, role=order.role, budget=budget)
        run_id = await self._system.acting_for(principal).submit(request, self._kit_for(order), terms)
        self.learn((await self._loops.whole(run_id)).state)

    async def _is_started(self, order: TaskOrder) -> bool:
        """Whether the loop of a task was begun when it came before; raises where its id began another."""
        request = order.request
        session = await self._system.store.catalogue.session(request.session_id, tenant_id=self._work.tenant_id)
        # A session that a task begins has it first; one that it continues, among its latest.
        for entry in session[-1:] if order.continues else session[:1]:
            started = pinned((await self._loops.whole(entry.run_id)).state).request
            if started.request_id != request.request_id:
                continue
            if not is_same_task(request, started):
                name = request.request_id[:80]
                message = (
                    f"id {name!r} began loop {entry.run_id}, which was asked something else; send another id for this"
                )
                raise RequestRejected(WIRE_ID_TAKEN, message, {"loop_id": entry.run_id})
            return True
        return False

    def _kit_for(self, order: TaskOrder) -> Kit:
        kit = self._work.kit
        context = kit.context if order.context is None else PrebuiltContext(order.context)
        if order.model and order.model not in kit.engines:
            known = ", ".join(kit.engines)
            message = f"model {order.model[:80]!r} is none of this worker's: {known}; name one of them, or none"
            raise RequestRejected(WIRE_MODEL_UNKNOWN, message, {"model": order.model[:80]})
        engines = kit.engines
        if order.model:
            engines = {order.model: engines[order.model], **engines}
        return with_fields(kit, engines=engines, context=context)

    async def _signal(self, said: WireSignal | SignalMessage) -> None:
        sender = said.user_id if isinstance(said, WireSignal) else ANYBODY
        channel = said.channel_type if isinstance(said, WireSignal) else ""
        rules, groups = self._work.rules, self._work.rules.groups_of(sender)
        permissions = rules.permissions_in(channel)
        card = await self._expected(said.loop_id, sender)
        signal = signal_of(said, sender=sender, pending=card.pending)
        permit(permissions, signal.type, card, sender, groups)
        packet = str(signal.payload.get("packet_id", ""))
        asking = packet.rpartition(PACKET_MARK)[0]
        scopes = scopes_of(permissions, sender, groups)
        acting = self._system.acting_for(self._principal(sender, scopes, channel))
        await acting.signal(replace(signal, run_id=asking or said.loop_id), kit=self._work.kit)

    async def _hear(self, message: UserMessage, at_ms: int) -> UserResponse | None:
        rules = self._work.rules
        permissions, groups = rules.permissions_in(message.channel_type), rules.groups_of(message.user_id)
        await self._refresh(message)
        model = next(iter(self._work.kit.engines), "")
        desk = ChannelDesk(
            permissions=permissions,
            loops=tuple(self._cards.values()),
            role=self._work.terms.role.value,
            model=model,
        )
        meaning = desk.meaning_of(message, groups)
        principal = principal_of(permissions, message, meaning, tenant_id=self._work.tenant_id, groups=groups)
        principal = replace(principal, scopes=(*principal.scopes, *self._work.scopes))
        if isinstance(meaning, Submit):
            own = f"{message.channel_type}/{message.channel_id}/{message.message_id}"
            order = start_of_task(
                meaning.task,
                session_id=meaning.session_id or session_of_task(own, message.user_id),
                thread_id=meaning.thread_id,
                message_id=meaning.message_id,
            )
            await self._submit(order, principal)
            return None
        if isinstance(meaning, Tell):
            card = await self._expected(meaning.signal.loop_id, message.user_id)
            signal = signal_of(meaning.signal, sender=message.user_id, pending=card.pending)
            asking = str(signal.payload.get("packet_id", "")).rpartition(PACKET_MARK)[0]
            heard = replace(signal, run_id=asking or signal.run_id)
            await self._system.acting_for(principal).signal(heard, kit=self._work.kit)
            return None
        said = "\n".join(meaning.lines if isinstance(meaning, Explain) else _lines(meaning))
        key = f"{message.message_id}:text"
        return reply(sender_of(message), ResponseType.TEXT, said, response_id=key, at_ms=at_ms)

    async def _refresh(self, message: UserMessage) -> None:
        """Read the loops that a message may be about: those that it names, and the sender's own that go on here."""
        words = message.content.split()[:2] if message.content.startswith("/") else []
        for name in {message.reply_to, *words[1:]} - {""}:
            await self._card(name.rpartition(PACKET_MARK)[0] or name)
        here = (message.channel_type, message.channel_id)
        for card in tuple(self._cards.values()):
            is_own = is_same_person(card.user_id, message.user_id) and (card.channel_type, card.channel_id) == here
            if is_own and not card.is_over:
                await self._card(card.loop_id)

    async def _expected(self, loop_id: str, user_id: str) -> LoopCard:
        card = await self._card(loop_id)
        if card is None:
            raise no_loop(loop_id, user_id)
        return card

    async def _card(self, run_id: str) -> LoopCard | None:
        """The loop of a run, or of the run above it, as it stands now, with everything that is asked beneath it."""
        entry = await self._system.store.catalogue.entry(run_id)
        if entry is None or entry.listing.tenant_id != self._work.tenant_id:
            return None
        root = next(iter(entry.listing.lineage), run_id)
        self.learn((await self._loops.whole(root)).state)
        card = self._cards.get(root)
        if card is None or card.is_over:
            return card
        asked = await self._system.archive.approvals(root)
        worded = tuple([one.id for one in asked if one.purpose is What.QUESTION])
        self._cards[root] = card = replace(card, pending=tuple([one.id for one in asked]), worded=worded)
        return card

    def _principal(self, user_id: str, scopes: Sequence[str], channel: str) -> Principal:
        return Principal(self._work.tenant_id, user_id, (*scopes, *self._work.scopes), channel=channel)


def destination_for(message: Record) -> Destination | None:
    """Where the sender of a message is answered; None where it says no channel."""
    if isinstance(message, UserMessage):
        return sender_of(message)
    if isinstance(message, TaskMessage | WireSignal) and message.channel_type and message.channel_id:
        name = message.task_id if isinstance(message, TaskMessage) else message.signal_id or message.loop_id
        return Destination(
            channel_type=message.channel_type, channel_id=message.channel_id, user_id=message.user_id, in_reply_to=name
        )
    return None


def _lines(shown: Show) -> list[str]:
    if not shown.loops:
        return ["no loop of yours goes on"]
    return [
        f"{loop.loop_id} {loop.state}" + (f", asks {', '.join(loop.pending)}" if loop.pending else "")
        for loop in shown.loops
    ]


def read_channels(path: Path) -> ChannelRules:
    """Who may do what in which channel, from a file with `permissions` for all, `channels` for types of them, and `groups`.

    Raises RequestRejected, naming the line, where it cannot be meant.
    """
    document = read_yaml(path, open_regular)
    block = block_in(document, document.value, (_PERMISSIONS, _CHANNELS, _GROUPS), ())
    everywhere = _permissions(document, block.get(_PERMISSIONS, {}), (_PERMISSIONS,), Permissions())
    channels = block_in(document, block.get(_CHANNELS, {}), (), (_CHANNELS,))
    groups = block_in(document, block.get(_GROUPS, {}), (), (_GROUPS,))
    return ChannelRules(
        everywhere=everywhere,
        by_type={name: _permissions(document, said, (_CHANNELS, name), everywhere) for name, said in channels.items()},
        groups={name: _names(document, said, (_GROUPS, name)) for name, said in groups.items()},
    )


def _permissions(document: YamlDocument, value: object, place: ValuePath, otherwise: Permissions) -> Permissions:
    said = block_in(document, value, tuple(Permission), place)
    held = {one.value: getattr(otherwise, one.value) for one in Permission}
    return Permissions(**held | {key: _names(document, names, (*place, key)) for key, names in said.items()})


def _names(document: YamlDocument, value: object, place: ValuePath) -> tuple[str, ...]:
    listed = list_in(document, value, place)
    for number, name in enumerate(listed):
        if type(name) is not str:
            message = f"{spelled_place((*place, number))} must be a name, not {value_in_error(name)}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, number))
    return tuple(listed)
