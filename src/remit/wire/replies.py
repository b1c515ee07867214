"""Replies that users are told in their channel: the six types of responses, made from what a run says.

Rule 1: a reply goes to the channel, the user and the thread that the task came from, and nowhere else.
Rule 2: a reply has the same id when it is made twice, so that a channel shows it once.
Rule 3: text from models and tools is data in a reply: it stands in content and blocks, never in a label or an id.
"""

from collections.abc import Sequence

from remit.core.failure import ENDINGS, RemitError
from remit.core.journal.codec import to_json
from remit.core.record import Record, replace
from remit.core.run.approval import Approval, What
from remit.core.run.contract import SystemRequest, SystemResponse
from remit.core.run.lifecycle import Outcome
from remit.core.run.principal import Principal
from remit.core.run.signals import Signal
from remit.wire.inbound import route_of
from remit.wire.message_records import ResponseAction, ResponseBlock, UserMessage, UserResponse
from remit.wire.message_rules import ResponseType
from remit.wire.message_texts import fitting, moment
from remit.wire.payloads import checked_record, said_in
from remit.wire.subjects import SubjectFamily


class Destination(Record, kw_only=True):
    """Where replies to a user go: the channel, the thread within it, and what they answer."""

    channel_type: str
    channel_id: str
    user_id: str = ""
    thread_id: str = ""
    in_reply_to: str = ""


def destination_of(request: SystemRequest, run_id: str, principal: Principal | None = None) -> Destination | None:
    """Where replies of a run go that acts for a principal; None for a run that came by no channel.

    A request of another door may say anything in its metadata, so a route counts only in the channel of its principal. The
    process that opened the store may name any.
    """
    route = route_of(request)
    is_theirs = principal is None or principal.channel == route.channel_type
    if not (route.channel_type and route.channel_id and is_theirs):
        return None
    return Destination(
        channel_type=route.channel_type,
        channel_id=route.channel_id,
        user_id=request.user_id,
        thread_id=route.thread_id,
        in_reply_to=route.message_id or run_id,
    )


def sender_of(message: UserMessage) -> Destination:
    """Where replies to a message go."""
    return Destination(
        channel_type=message.channel_type,
        channel_id=message.channel_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        in_reply_to=message.message_id,
    )


# What a sender calls a message of theirs, by what it is sent under.
_NAMED_BY = {SubjectFamily.TASK: "task_id", SubjectFamily.SIGNAL: "signal_id", SubjectFamily.USER_MESSAGE: "message_id"}


def sender_named(subject: str, data: bytes, *, otherwise: str) -> Destination | None:
    """Where the sender is told of a message that is not in order, as far as it says so; None where it names no channel.

    It is called `otherwise` where it says no name of its own.
    """
    family = next((one for one in _NAMED_BY if subject.startswith(f"{one.value}.")), None)
    if family is None:
        return None
    body = said_in(data)
    fields = ("channel_type", "channel_id", "user_id", "thread_id", _NAMED_BY[family])
    said = {name: held for name in fields if isinstance(held := body.get(name), str)}
    if not (said.get("channel_type") and said.get("channel_id")):
        return None
    return Destination(
        channel_type=said["channel_type"],
        channel_id=said["channel_id"],
        user_id=said.get("user_id", ""),
        thread_id=said.get("thread_id", ""),
        in_reply_to=said.get(_NAMED_BY[family]) or otherwise,
    )


def reply(
    to: Destination,
    kind: ResponseType,
    content: str,
    *,
    response_id: str,
    at_ms: int,
    blocks: Sequence[ResponseBlock] = (),
    actions: Sequence[ResponseAction] = (),
) -> UserResponse:
    """A reply of any type."""
    response = UserResponse(
        response_id=response_id,
        channel_type=to.channel_type,
        channel_id=to.channel_id,
        user_id=to.user_id,
        in_reply_to=to.in_reply_to,
        thread_id=to.thread_id,
        type=kind.value,
        content=fitting(content),
        blocks=tuple([replace(block, content=fitting(block.content)) for block in blocks]),
        actions=tuple(actions),
        timestamp=moment(at_ms),
    )
    return checked_record(response)


def reply_of(response: SystemResponse, to: Destination, *, at_ms: int) -> UserResponse:
    """What a user is told of a run that rests: its result, why it failed, that it was cancelled, or what it asks."""
    run_id, code = response.run_id, response.terminal_code
    if code is None:
        if response.waiting_for is not None and response.waiting_for.packets:
            return question_response(response.waiting_for.packets[0], to, at_ms=at_ms)
        waits = "nothing" if response.waiting_for is None else response.waiting_for.ending.value
        content = f"loop {run_id} has not ended; it waits for {waits}"
        return reply(to, ResponseType.STATUS, content, response_id=f"{run_id}:status:{waits}", at_ms=at_ms)
    outcome = ENDINGS[code].outcome
    response_id = f"{run_id}:{outcome.value}"
    if outcome is Outcome.SUCCESS:
        return reply(
            to, ResponseType.RESULT, response.content, response_id=response_id, at_ms=at_ms, blocks=_blocks(response)
        )
    why = code.value if response.error is None else f"{response.error.code}: {response.error.message}"
    kind = ResponseType.STATUS if outcome is Outcome.CANCELLED else ResponseType.ERROR
    partly = [ResponseBlock(type="text", content=response.content)] if response.content else []
    return reply(to, kind, why, response_id=response_id, at_ms=at_ms, blocks=partly)


def question_response(approval: Approval, to: Destination, *, at_ms: int) -> UserResponse:
    """What a user is asked: a yes or a no where a call or a release waits, words where a question does."""
    is_worded, reasons = approval.purpose is What.QUESTION, "; ".join(approval.reasons)
    wanted = f"May {approval.tool} be called? {reasons}".strip() if approval.tool else reasons
    content = approval.question or wanted or f"{approval.run_id} waits for {approval.ending.value}"
    texts = [ResponseBlock(type="text", content=text) for text in (approval.answer, *approval.options) if text]
    if approval.tool and not is_worded:
        texts.append(ResponseBlock(type="code", content=to_json(approval.arguments), lang="json"))
    return reply(
        to,
        ResponseType.PROMPT,
        content,
        response_id=f"{approval.id}:prompt",
        at_ms=at_ms,
        blocks=texts,
        actions=() if is_worded else (_yes(approval), _no(approval)),
    )


def streamed(text: str, to: Destination, *, run_id: str, seq: int, number: int, at_ms: int) -> UserResponse:
    """A piece of an answer while a model says it; it is provisional until the result comes."""
    return reply(to, ResponseType.STREAM, text, response_id=f"{run_id}:{seq}:{number}", at_ms=at_ms)


def progressed(content: str, to: Destination, *, run_id: str, seq: int, at_ms: int) -> UserResponse:
    """Where a run stands, while it goes on."""
    blocks = [ResponseBlock(type="progress", content=content)]
    return reply(to, ResponseType.STATUS, content, response_id=f"{run_id}:{seq}:status", at_ms=at_ms, blocks=blocks)


def refusal_response(error: RemitError, to: Destination, *, at_ms: int) -> UserResponse:
    """The response to a user whose wish was refused, with its code."""
    return reply(to, ResponseType.ERROR, str(error), response_id=f"{to.in_reply_to}:{error.code}", at_ms=at_ms)


def _blocks(response: SystemResponse) -> list[ResponseBlock]:
    blocks = []
    if response.structured_output is not None:
        blocks.append(ResponseBlock(type="code", content=to_json(response.structured_output), lang="json"))
    return blocks + [ResponseBlock(type="text", content=warning) for warning in response.warnings]


def _yes(approval: Approval) -> ResponseAction:
    return ResponseAction(id=approval.id, type="button", label="Approve", signal=Signal.APPROVE.value, style="primary")


def _no(approval: Approval) -> ResponseAction:
    return ResponseAction(id=approval.id, type="button", label="Reject", signal=Signal.REJECT.value, style="danger")
