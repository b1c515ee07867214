"""The commands at the users' end of a channel: a terminal, and an address that speaks for users by HTTP."""

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, keyboard_user, person_said
from remit.adapters.cli.event_loop import in_loop, served
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.core.run.lifecycle import Outcome
from remit.observe.plain import printable_line
from remit.wire.message_records import UserMessage, UserResponse
from remit.wire.message_texts import moment
from remit.wire.payloads import delivered, posted

if TYPE_CHECKING:
    from remit.assemble_wire import Broker, ToldCheck

CLI = "cli"
_KEPT_S = 24 * 3_600
# How long nothing may come when there is nothing more to say, while something is not answered.
_LAST_S = 5.0
# With these a loop has said what it had to say, for now.
_LAST_WORDS = frozenset({"result", "error", "prompt", "text"})
_CANCELLED = f":{Outcome.CANCELLED.value}"


def cli(
    *,
    user: Annotated[
        str, Parameter(converter=person_said, help="Who talks; without it the user of the operating system.")
    ] = "",
    channel: Annotated[str, Parameter(help="Which conversation this is; a new one unless said.")] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Talk with loops over NATS: each line is a message, and replies are printed."""
    name, who = channel or uuid4().hex[:12], user or keyboard_user()

    async def talk() -> int:
        from remit.assemble_wire import channel_end

        async with channel_end(common.settings(), CLI, name) as (broker, check):
            terminal.remark(f"channel {name} of {who}: a line is a message, /help lists commands, Ctrl-D leaves")
            waiting = Unanswered()
            printed = asyncio.create_task(_print(broker, check, terminal, waiting))
            try:
                while line := await asyncio.to_thread(sys.stdin.readline):
                    if line.strip():
                        message = _message(line.strip(), name, who)
                        waiting.said(message.message_id)
                        await broker.publish(posted(message), key=message.message_id, keep_s=_KEPT_S)
                if not await waiting.is_over():
                    terminal.remark("not everything has been answered yet; replies are kept for a day")
            finally:
                printed.cancel()
        return EXIT_OK

    return in_loop(talk())


class Unanswered:
    """The messages of one end of a channel that no last word has come for."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._news = asyncio.Event()

    def said(self, message_id: str) -> None:
        """A message was said."""
        self._open.add(message_id)

    def heard(self, reply: UserResponse) -> None:
        """A reply has come: the last word about its message, or a sign that it is worked on."""
        if reply.type in _LAST_WORDS or reply.response_id.endswith(_CANCELLED):
            self._open.discard(reply.in_reply_to)
        self._news.set()

    async def is_over(self) -> bool:
        """Wait until every message was answered, as long as something comes; gives whether all were."""
        while self._open:
            self._news.clear()
            try:
                async with asyncio.timeout(_LAST_S):
                    await self._news.wait()
            except TimeoutError:
                return False
        return True


def _message(line: str, channel: str, user: str) -> UserMessage:
    return UserMessage(
        message_id=uuid4().hex,
        channel_type=CLI,
        channel_id=channel,
        user_id=user,
        content=line,
        thread_id=channel,
        timestamp=moment(time.time_ns() // 1_000_000),
    )


async def _print(broker: "Broker", check: "ToldCheck", terminal: Terminal, waiting: Unanswered) -> None:
    while True:
        for handed in await broker.take():
            await broker.done(handed)
            if code := check.objection(handed):
                terminal.remark(
                    f"{code}: a message under {printable_line(handed.subject)} is left out: {check.explained(code)}"
                )
                continue
            reply = delivered(handed.subject, handed.data, handed.headers)
            if not isinstance(reply, UserResponse):
                continue
            if reply.type == "stream":
                waiting.heard(reply)
                continue
            if terminal.is_json:
                terminal.values({"type": reply.type, "content": reply.content, "in_reply_to": reply.in_reply_to})
            else:
                for line in reply.content.splitlines() or [""]:
                    terminal.line(f"{reply.type}: {printable_line(line)}")
                for action in reply.actions:
                    terminal.line(f"  /{action.signal} {action.id}")
            waiting.heard(reply)


def hook(
    callback: Annotated[str, Parameter(name="URL", help="Where replies are posted, signed.")],
    /,
    *,
    listen: Annotated[
        str, Parameter(help="HOST:PORT that takes messages; 127.0.0.1:8087 unless said.")
    ] = "127.0.0.1:8087",
    key_file: Annotated[
        Path | None, Parameter(help="The file with the key that signs; without it the secret `webhook_key`.")
    ] = None,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Let a program speak for users by HTTP: it posts messages, and is posted replies."""
    host, _, port = listen.rpartition(":")
    if not (host and port.isdecimal()):
        raise wrong_usage(f"--listen {listen[:80]!r} is no HOST:PORT, such as 127.0.0.1:8087")

    async def serve() -> int:
        from remit.assemble_wire import webhook_channel

        settings = common.settings()
        async with webhook_channel(settings, callback, key_file, host=host, port=int(port)) as (channel, heard_at):
            terminal.remark(f"messages are taken at {heard_at}; Ctrl-C ends it")
            await served(channel.run())
        return EXIT_OK

    return in_loop(serve())
