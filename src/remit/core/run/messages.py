"""Messages: the unit of a conversation, and which fields belong to which role.

Rule 1: system and user messages carry content and nothing else; an assistant's carries content, reasoning or tool
        calls; a tool's carries content, the id of the call it answers and the tool's name.
Rule 2: the constructors below build only right combinations; `check_message` judges what came from elsewhere.
Rule 3: on the wire a thought may be called `reasoning` or `reasoning_content`; the latter wins.
"""

from enum import StrEnum

import msgspec

from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolCall, check_call
from remit.core.record import Record, Text

MESSAGE_INVALID = "MESSAGE_INVALID"


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


_ROLES = frozenset(Role)
# Made with every turn, so not looked up with every turn.
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL


class Message(Record):
    """One utterance of a conversation."""

    role: Role
    content: Text = ""
    reasoning: Text = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Take the text of a role for it."""
        if type(self.role) is str and self.role in _ROLES:
            msgspec.structs.force_setattr(self, "role", Role(self.role))


def system_message(text: Text) -> Message:
    """A message of the operator to the model."""
    return Message(Role.SYSTEM, text)


def user_message(text: Text) -> Message:
    """A message of the user to the model."""
    return Message(Role.USER, text)


def assistant_message(text: Text, tool_calls: tuple[ToolCall, ...] = (), reasoning: Text = "") -> Message:
    """What the model said, wished to have called, and thought."""
    return Message(_ASSISTANT, text, reasoning, tool_calls)


def tool_message(call_id: str, name: str, content: Text) -> Message:
    """The result of a tool as a message to the model."""
    return Message(_TOOL, content, "", (), call_id, name)


# The fields each role may set, and those it may not leave empty; an assistant's own rule is in `check_message`.
ALLOWED_FIELDS: dict[Role, tuple[str, ...]] = {
    Role.SYSTEM: ("content",),
    Role.USER: ("content",),
    Role.ASSISTANT: ("content", "reasoning", "tool_calls"),
    Role.TOOL: ("content", "tool_call_id", "name"),
}
NEEDED_FIELDS: dict[Role, tuple[str, ...]] = {
    Role.SYSTEM: ("content",),
    Role.USER: ("content",),
    Role.ASSISTANT: (),
    Role.TOOL: ("content", "tool_call_id", "name"),
}
OPTIONAL_FIELDS = ("content", "reasoning", "tool_calls", "tool_call_id", "name")


def check_message(message: Message) -> None:
    """Refuse a message whose fields do not fit its role."""
    # A plain text that equals a role would pass every comparison.
    if type(message.role) is not Role:
        raise RequestRejected(
            MESSAGE_INVALID, f"role must be a Role, one of {', '.join(Role)}, not {str(message.role)[:80]!r}"
        )
    role = message.role.value
    filled = {field for field in OPTIONAL_FIELDS if getattr(message, field)}
    surplus = [field for field in OPTIONAL_FIELDS if field in filled and field not in ALLOWED_FIELDS[message.role]]
    if surplus:
        raise RequestRejected(
            MESSAGE_INVALID, f"a message of role {role!r} has no {surplus[0]}; remove it", {"fields": surplus}
        )
    missing = [field for field in NEEDED_FIELDS[message.role] if field not in filled]
    if missing:
        raise RequestRejected(
            MESSAGE_INVALID, f"a message of role {role!r} needs a {missing[0]}, which is empty", {"fields": missing}
        )
    if not filled:
        raise RequestRejected(MESSAGE_INVALID, "an assistant message needs content, reasoning or tool_calls")
    for call in message.tool_calls:
        check_call(call)
