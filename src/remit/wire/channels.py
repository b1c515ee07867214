"""Channels: what a message of a user means. It becomes a task, a signal, a look at loops, or a refusal.

Rule 1: what a message means follows from the message, the permissions of its sender and the loops that exist for its
        tenant; nothing else. The process that carries it out does so in the name of the sender.
Rule 2: a loop of another user does not exist for a sender, except for what their permissions say of any loop.
Rule 3: what begins with a slash is a command and never reaches a model; two slashes say one to the model.
Rule 4: a reply to a loop that has ended continues it; to one that asks in words it is the answer; to one that goes on it
        is feedback. Words are never a yes to a call.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias

from remit.core.failure import RequestRejected
from remit.core.journal.commands import AskPurpose
from remit.core.record import Record
from remit.core.run.lifecycle import LoopState
from remit.core.run.person import is_among, is_same_person
from remit.core.run.principal import Principal, Scope
from remit.core.run.signals import Signal, packet_id
from remit.kernel.state import RunState, loop_state, pinned, questions
from remit.wire.inbound import attached, route_of
from remit.wire.message_records import TaskMessage, UserMessage, WireSignal
from remit.wire.payloads import checked_record

CHANNEL_NOT_PERMITTED = "CHANNEL_NOT_PERMITTED"
CHANNEL_LOOP_UNKNOWN = "CHANNEL_LOOP_UNKNOWN"
CHANNEL_LOOP_UNCLEAR = "CHANNEL_LOOP_UNCLEAR"
CHANNEL_COMMAND_UNKNOWN = "CHANNEL_COMMAND_UNKNOWN"

EVERYBODY = "*"
COMMAND_MARK = "/"


class Permission(StrEnum):
    """What a user of a channel may do."""

    VIEW = "view"
    SUBMIT = "submit_task"
    CANCEL_OWN = "cancel_own"
    CANCEL_ANY = "cancel_any"
    APPROVE = "approve"


class Permissions(Record, kw_only=True):
    """Who may do what: names of users or of their groups, or * for every user of the channel."""

    view: tuple[str, ...] = (EVERYBODY,)
    submit_task: tuple[str, ...] = (EVERYBODY,)
    cancel_own: tuple[str, ...] = (EVERYBODY,)
    cancel_any: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()


class ChannelRules(Record, kw_only=True):
    """Who may do what in which type of channel, and to which groups users belong."""

    everywhere: Permissions = Permissions()
    by_type: dict[str, Permissions] = {}
    groups: dict[str, tuple[str, ...]] = {}

    def permissions_in(self, channel_type: str) -> Permissions:
        """The permissions in a type of channel."""
        return self.by_type.get(channel_type, self.everywhere)

    def groups_of(self, user_id: str) -> tuple[str, ...]:
        """The groups that name a user."""
        return tuple([name for name, members in self.groups.items() if is_among(user_id, members)])


class LoopCard(Record, kw_only=True):
    """What a channel knows of a loop: whose it is, where its replies go, how it stands and what it asks."""

    loop_id: str
    session_id: str = ""
    user_id: str = ""
    channel_type: str = ""
    channel_id: str = ""
    thread_id: str = ""
    state: str = LoopState.EXPLORING.value
    began_at_ms: int = 0
    # The packets that it waits for, and those of them that are answered in words.
    pending: tuple[str, ...] = ()
    worded: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the loop has ended."""
        return LoopState(self.state).is_terminal


class Submit(Record, kw_only=True):
    """Start a loop, or the next exchange of one: the task, its thread, and the session that it continues."""

    task: TaskMessage
    message_id: str
    thread_id: str = ""
    session_id: str = ""


class Tell(Record, kw_only=True):
    """Send a signal to a loop. `is_in_words` says that it answers in words what the sender's own loop asks."""

    signal: WireSignal
    is_in_words: bool = False


class Show(Record, kw_only=True):
    """Tell the sender of these loops."""

    loops: tuple[LoopCard, ...]


class Explain(Record, kw_only=True):
    """Tell the sender which commands there are."""

    lines: tuple[str, ...]


Meaning: TypeAlias = Submit | Tell | Show | Explain


class CommandRow(Record, kw_only=True):
    """A command of a channel: what it takes, which permission it needs, and what it does."""

    takes: str
    does: str
    permission: Permission | None = None
    signal: Signal | None = None


COMMANDS: dict[str, CommandRow] = {
    "help": CommandRow(takes="", does="lists the commands"),
    "loops": CommandRow(takes="", does="lists your loops that go on", permission=Permission.VIEW),
    "status": CommandRow(takes="[loop]", does="says how a loop stands", permission=Permission.VIEW),
    "cancel": CommandRow(
        takes="[loop] [reason]", does="cancels a loop", permission=Permission.CANCEL_OWN, signal=Signal.CANCEL
    ),
    "pause": CommandRow(
        takes="[loop] [reason]", does="pauses a loop", permission=Permission.CANCEL_OWN, signal=Signal.PAUSE
    ),
    "resume": CommandRow(
        takes="[loop]", does="lets a paused loop go on", permission=Permission.CANCEL_OWN, signal=Signal.RESUME
    ),
    "retry": CommandRow(
        takes="[loop] [reason]",
        does="tries a failed loop again",
        permission=Permission.SUBMIT,
        signal=Signal.RETRY,
    ),
    "feedback": CommandRow(
        takes="[loop] words",
        does="tells a loop something before its next step",
        permission=Permission.SUBMIT,
        signal=Signal.FEEDBACK,
    ),
    "approve": CommandRow(
        takes="[loop or packet]",
        does="says yes to what a loop asks",
        permission=Permission.APPROVE,
        signal=Signal.APPROVE,
    ),
    "reject": CommandRow(
        takes="[loop or packet] [reason]",
        does="says no to what a loop asks",
        permission=Permission.APPROVE,
        signal=Signal.REJECT,
    ),
}
_SCOPES: dict[Permission, Scope] = {
    Permission.VIEW: Scope.READ,
    Permission.SUBMIT: Scope.START,
    Permission.CANCEL_OWN: Scope.SIGNAL,
    Permission.CANCEL_ANY: Scope.SIGNAL,
    Permission.APPROVE: Scope.APPROVE,
}


def may_do(permissions: Permissions, permission: Permission, user_id: str, groups: Iterable[str] = ()) -> bool:
    """Whether a user has a permission, by name, by a group or because every user has it."""
    allowed: tuple[str, ...] = getattr(permissions, permission.value)
    return EVERYBODY in allowed or is_among(user_id, allowed) or any(group in allowed for group in groups)


def principal_of(
    permissions: Permissions,
    message: UserMessage,
    meaning: "Meaning",
    *,
    tenant_id: str,
    groups: Iterable[str] = (),
) -> Principal:
    """The sender of a message as the house knows them: their permissions as scopes, and the channel that they use.

    An answer in words to what the sender's own loop asks takes no right to approve: the run takes words for a yes to nothing.
    """
    scopes = scopes_of(permissions, message.user_id, groups)
    if isinstance(meaning, Tell) and meaning.is_in_words:
        scopes = tuple(dict.fromkeys((*scopes, Scope.APPROVE)))
    return Principal(tenant_id, message.user_id, scopes, channel=message.channel_type)


def scopes_of(permissions: Permissions, user_id: str, groups: Iterable[str] = ()) -> tuple[str, ...]:
    """The permissions of a user as scopes."""
    named = tuple(groups)
    held = [_SCOPES[permission] for permission in Permission if may_do(permissions, permission, user_id, named)]
    return tuple(dict.fromkeys(held))


def permit(permissions: Permissions, kind: Signal, loop: LoopCard, user_id: str, groups: Sequence[str] = ()) -> None:
    """Refuse a signal of a user to a loop that does not exist for them, or that they may not send.

    Who may approve reaches any loop, as who may cancel any does; whatever else is said to a loop is said by its own user.
    """
    needed = next(row.permission for row in COMMANDS.values() if row.signal is kind)
    assert needed is not None, "every signal takes a permission"
    reaching = Permission.CANCEL_ANY if needed is Permission.CANCEL_OWN else needed
    is_own = is_same_person(loop.user_id, user_id)
    if may_do(permissions, reaching, user_id, groups) and (is_own or reaching is not Permission.SUBMIT):
        return
    if not is_own:
        raise no_loop(loop.loop_id, user_id)
    if not may_do(permissions, needed, user_id, groups):
        raise lacks(user_id, needed)


def card_of(state: RunState) -> LoopCard:
    """What a channel knows of a run."""
    manifest = pinned(state)
    route = route_of(manifest.request)
    asked = tuple(questions(state))
    return LoopCard(
        loop_id=state.run_id,
        session_id=manifest.request.session_id,
        user_id=manifest.request.user_id,
        channel_type=route.channel_type,
        channel_id=route.channel_id,
        thread_id=route.thread_id,
        state=loop_state(state).value,
        began_at_ms=state.clock.started_at_ms,
        pending=tuple([packet_id(state.run_id, question.id) for question in asked]),
        worded=tuple([packet_id(state.run_id, ask.id) for ask in asked if ask.purpose is AskPurpose.QUESTION]),
    )


class ChannelDesk(Record, kw_only=True):
    """Where messages of a channel are read: who may do what, the loops of the tenant, and what a new task begins with."""

    permissions: Permissions = Permissions()
    loops: tuple[LoopCard, ...] = ()
    role: str = "general"
    model: str = ""

    def meaning_of(self, message: UserMessage, groups: Sequence[str] = ()) -> Meaning:
        """What a message means; raises RequestRejected with a code where its sender may not, or it is not clear."""
        checked_record(message)
        text = message.content
        if text.startswith(COMMAND_MARK) and not text.startswith(COMMAND_MARK * 2):
            return self._command(message, groups)
        return self._said(message, text.removeprefix(COMMAND_MARK) if text.startswith(COMMAND_MARK) else text, groups)

    def _said(self, message: UserMessage, text: str, groups: Sequence[str]) -> Meaning:
        """What plain words mean: a task, its next exchange, an answer or feedback."""
        self._expect(message, Permission.SUBMIT, groups)
        loop = self._replied_to(message)
        if loop is not None and not loop.is_over:
            if not loop.pending:
                return Tell(signal=_signal(message, Signal.FEEDBACK, loop.loop_id, {"text": text}))
            if loop.pending == loop.worded and len(loop.pending) == 1:
                answer = {"packet_id": loop.pending[0], "text": text}
                return Tell(signal=_signal(message, Signal.APPROVE, loop.loop_id, answer), is_in_words=True)
            asks = f"loop {loop.loop_id} waits for {', '.join(loop.pending)}, which words do not answer"
            raise RequestRejected(CHANNEL_LOOP_UNCLEAR, f"{asks}; use {COMMAND_MARK}approve or {COMMAND_MARK}reject")
        task = TaskMessage(
            loop_id="" if loop is None else loop.loop_id,
            task_id=message.message_id,
            role=self.role,
            model=self.model,
            prompt=(text.strip() and text) or "Look at what is attached.",
            channel_type=message.channel_type,
            channel_id=message.channel_id,
            user_id=message.user_id,
            context=attached(message.attachments),
            context_request_id=message.context_request_id,
            metadata=dict(message.metadata),
        )
        session_id = "" if loop is None else loop.session_id
        return Submit(
            task=checked_record(task), message_id=message.message_id, thread_id=message.thread_id, session_id=session_id
        )

    def _command(self, message: UserMessage, groups: Sequence[str]) -> Meaning:
        name, _, rest = message.content.removeprefix(COMMAND_MARK).strip().partition(" ")
        row = COMMANDS.get(name.lower())
        if row is None:
            known = ", ".join(f"{COMMAND_MARK}{command}" for command in COMMANDS)
            said = (
                f"{COMMAND_MARK}{name[:80]} is no command; there are {known}. Write {COMMAND_MARK * 2} to say a slash"
            )
            raise RequestRejected(CHANNEL_COMMAND_UNKNOWN, said)
        if row.permission is None:
            return Explain(
                lines=tuple(
                    [f"{COMMAND_MARK}{key} {row.takes}".strip() + f": {row.does}" for key, row in COMMANDS.items()]
                )
            )
        # Who may cancel any loop may cancel their own.
        if row.permission is not Permission.CANCEL_OWN or not self._has(message, Permission.CANCEL_ANY, groups):
            self._expect(message, row.permission, groups)
        if row.signal is None:
            return self._shown(message, name.lower(), rest.strip(), groups)
        loop, packet, words = self._target(message, row, rest.strip(), groups)
        payload = {"packet_id": packet} if packet else {}
        if words:
            payload |= {"text" if row.signal is Signal.FEEDBACK else "reason": words}
        return Tell(signal=_signal(message, row.signal, loop.loop_id, payload))

    def _shown(self, message: UserMessage, name: str, rest: str, groups: Sequence[str]) -> Show:
        if name == "loops":
            own = [loop for loop in self.loops if is_same_person(loop.user_id, message.user_id) and not loop.is_over]
            return Show(loops=tuple(sorted(own, key=lambda loop: loop.began_at_ms)))
        loop = self._named(rest, message, Permission.VIEW, groups) if rest else self._latest(message, ())
        return Show(loops=(loop,))

    def _target(
        self, message: UserMessage, row: CommandRow, rest: str, groups: Sequence[str]
    ) -> tuple[LoopCard, str, str]:
        """The loop that a command means, the packet where one is named, and the words that are left."""
        first, _, words = rest.partition(" ")
        for loop in self.loops:
            is_packet = first in loop.pending
            if is_packet or (first and first == loop.loop_id):
                found = self._named(loop.loop_id, message, row.permission, groups)
                return found, first if is_packet else "", words.strip()
        own = self._latest(message, () if row.signal is Signal.RETRY else tuple(LoopState))
        return own, "", rest

    def _named(
        self, loop_id: str, message: UserMessage, permission: Permission | None, groups: Sequence[str]
    ) -> LoopCard:
        """A loop by its id, where it exists for the sender."""
        loop = next((loop for loop in self.loops if loop.loop_id == loop_id), None)
        if loop is not None and (
            is_same_person(loop.user_id, message.user_id) or self._reaches_any(message, permission, groups)
        ):
            return loop
        raise no_loop(loop_id, message.user_id)

    def _reaches_any(self, message: UserMessage, permission: Permission | None, groups: Sequence[str]) -> bool:
        """Whether a permission reaches beyond the sender's own loops: to view and to approve does, to cancel any does."""
        if permission is Permission.CANCEL_OWN:
            return self._has(message, Permission.CANCEL_ANY, groups)
        return permission in (Permission.VIEW, Permission.APPROVE) and self._has(message, permission, groups)

    def _replied_to(self, message: UserMessage) -> LoopCard | None:
        """The loop that a message continues: the one it names, or the sender's newest in the same thread."""
        if message.reply_to:
            return self._named(message.reply_to, message, None, ())
        if not message.thread_id:
            return None
        return max(self._own_here(message), key=lambda loop: loop.began_at_ms, default=None)

    def _latest(self, message: UserMessage, open_states: Sequence[LoopState]) -> LoopCard:
        """The sender's newest loop in this channel, of those that go on where states are given."""
        found = [loop for loop in self._own_here(message) if not open_states or not loop.is_over]
        if not found:
            message_text = (
                f"{message.user_id[:80]!r} has no such loop in this channel; name one, {COMMAND_MARK}loops lists them"
            )
            raise RequestRejected(CHANNEL_LOOP_UNKNOWN, message_text)
        return max(found, key=lambda loop: loop.began_at_ms)

    def _own_here(self, message: UserMessage) -> list[LoopCard]:
        here = (message.channel_type, message.channel_id, message.thread_id)
        return [
            loop
            for loop in self.loops
            if is_same_person(loop.user_id, message.user_id)
            and (loop.channel_type, loop.channel_id, loop.thread_id) == here
        ]

    def _has(self, message: UserMessage, permission: Permission, groups: Sequence[str]) -> bool:
        return may_do(self.permissions, permission, message.user_id, groups)

    def _expect(self, message: UserMessage, permission: Permission, groups: Sequence[str]) -> None:
        if not self._has(message, permission, groups):
            raise lacks(message.user_id, permission)


def _signal(message: UserMessage, kind: Signal, loop_id: str, payload: dict[str, str]) -> WireSignal:
    return WireSignal(
        signal_id=message.message_id,
        type=kind.value,
        loop_id=loop_id,
        user_id=message.user_id,
        channel_type=message.channel_type,
        channel_id=message.channel_id,
        payload=payload or None,
        timestamp=message.timestamp,
    )


def no_loop(loop_id: str, user_id: str) -> RequestRejected:
    """The refusal of a loop that does not exist for a user."""
    return RequestRejected(CHANNEL_LOOP_UNKNOWN, f"there is no loop {loop_id[:80]!r} for {user_id[:80]!r}")


def lacks(user_id: str, permission: Permission) -> RequestRejected:
    """The refusal of what a user may not do."""
    said = f"{user_id[:80]!r} lacks the permission {permission.value}; ask who runs the channel for it"
    return RequestRejected(CHANNEL_NOT_PERMITTED, said, {"permission": permission.value})
