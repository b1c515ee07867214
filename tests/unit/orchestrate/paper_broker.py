"""A broker on paper: what is sent to a gateway, and everything that it says, as a client would see it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import remit
from remit import Kit, Registry, ScriptedEngine, System, Terms, tool
from remit.backend.clock import WallClock
from remit.core.journal.signing import Signer
from remit.orchestrate.gateway.clerk import WireWork
from remit.orchestrate.gateway.gateway import Gateway
from remit.orchestrate.gateway.told_mark import ToldMark
from remit.tool.builtin.ask_person import people_tools
from remit.wire.channels import ChannelRules, Permissions
from remit.wire.payloads import HandedMessage, PublishedMessage
from remit.wire.subjects import LOOPS_BUCKET

PATIENCE_S = 20.0
# That of every gateway on paper.
MARK = ToldMark(Signer.generate())
RULES = ChannelRules(
    everywhere=Permissions(approve=("bob", "desk")),
    by_type={"closed": Permissions(view=(), submit_task=("desk",), cancel_own=("desk",), cancel_any=("chief",))},
    groups={"desk": ("dora",), "chief": ("carl",)},
)
AT = "2026-03-13T10:11:12Z"


@tool(effect="write", network=False, verify=lambda arguments, result: arguments["text"] in result)
def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


class PaperBroker:
    """Hands over what it is given, and remembers what it was told."""

    def __init__(self, buckets: dict[tuple[str, str], bytes] | None = None) -> None:
        self.incoming: asyncio.Queue[HandedMessage] = asyncio.Queue()
        self.said: dict[str, tuple[str, dict[str, Any]]] = {}
        self.buckets = {} if buckets is None else buckets
        self.ended: dict[int, str] = {}
        self.dead: dict[int, str] = {}
        self.is_closed = False
        self._count = 0
        self._news = asyncio.Event()

    def send(self, subject: str, value: object, *, tries: int = 1, told: ToldMark | None = None) -> int:
        """Publish something, perhaps as one who tells; gives its place."""
        self._count += 1
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        message = PublishedMessage(subject, {}, data)
        headers = (message if told is None else told.marked(message)).headers
        handed = HandedMessage(subject=subject, data=data, headers=headers, place=self._count, tries=tries)
        self.incoming.put_nowait(handed)
        return self._count

    def task(self, name: str, prompt: str, **more: object) -> int:
        """Publish a task."""
        base = {"task_id": name, "prompt": prompt, "user_id": "ann", "channel_type": "cli", "channel_id": "c1"}
        return self.send(f"agent.task.{name}", {**base, **more})

    def signal(self, loop_id: str, kind: str, **more: object) -> int:
        """Publish a signal."""
        base = {"signal_id": f"s{self._count}", "type": kind, "loop_id": loop_id, "user_id": "ann", "timestamp": AT}
        return self.send(f"agent.signal.{loop_id}", {**base, "channel_type": "cli", "channel_id": "c1", **more})

    def words(self, name: str, content: str, *, channel: str = "chat", **more: object) -> int:
        """Publish a message of a user."""
        base = {"message_id": name, "channel_type": channel, "channel_id": "C1", "user_id": "ann", "content": content}
        return self.send(f"user.message.{channel}.C1", {**base, "timestamp": AT, **more})

    async def until(self, found: Callable[[], Any]) -> Any:
        """What a look gives, once it gives something."""
        async with asyncio.timeout(PATIENCE_S):
            while not (value := found()):
                self._news.clear()
                await self._news.wait()
        return value

    def under(self, subject: str, **wanted: object) -> list[dict[str, Any]]:
        """What was published under subjects that begin so, and says these things."""
        return [
            value
            for name, value in self.said.values()
            if name.startswith(subject) and all(value.get(key) == held for key, held in wanted.items())
        ]

    async def said_under(self, subject: str, **wanted: object) -> dict[str, Any]:
        """The newest of them, once there is one."""
        found: list[dict[str, Any]] = await self.until(lambda: self.under(subject, **wanted))
        return found[-1]

    async def entity(self, loop_id: str, **wanted: object) -> dict[str, Any]:
        """A loop in its bucket, once it says these things."""

        def look() -> dict[str, Any]:
            entry = json.loads(self.buckets.get((LOOPS_BUCKET, loop_id), b"{}"))
            return entry if all(entry.get(key) == held for key, held in wanted.items()) else {}

        found: dict[str, Any] = await self.until(look)
        return found

    # What a gateway asks of it.

    async def take(self) -> list[HandedMessage]:
        return [await self.incoming.get()]

    async def done(self, delivery: HandedMessage) -> None:
        self.ended[delivery.place] = "done"
        self._news.set()

    async def leave(self, delivery: HandedMessage) -> None:
        self.ended[delivery.place] = "left"
        self._news.set()

    async def later(self, delivery: HandedMessage) -> None:
        self.ended[delivery.place] = "later"
        self._news.set()

    async def refuse(self, delivery: HandedMessage, code: str, why: str) -> None:
        self.dead[delivery.place] = code
        self._news.set()

    async def publish(self, message: PublishedMessage, *, key: str, keep_s: int) -> None:
        assert keep_s > 0
        self.said.setdefault(key, (message.subject, json.loads(message.data)))
        self._news.set()

    async def put(self, bucket: str, name: str, data: bytes, *, key: str = "") -> None:
        self.buckets[bucket, name] = data
        self._news.set()

    async def get(self, bucket: str, name: str) -> bytes | None:
        return self.buckets.get((bucket, name))

    async def close(self) -> None:
        self.is_closed = True


def kit_of(*replies: dict[str, Any]) -> Kit:
    """A kit that plays replies."""
    return Kit({"scripted": ScriptedEngine([*replies] or [{"text": "nothing"}])}, Registry([keep, *people_tools()]))


def calls(name: str, **arguments: object) -> dict[str, Any]:
    """A reply that proposes one call."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@asynccontextmanager
async def serving(
    system: System, broker: PaperBroker, *replies: dict[str, Any], work: WireWork | None = None
) -> AsyncIterator[Gateway]:
    """A gateway that speaks for a system."""
    work = work or WireWork(kit_of(*replies), Terms(), rules=RULES)
    gateway = Gateway(system, broker, work, clock=WallClock(), mark=MARK)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.close()


@asynccontextmanager
async def gateway_on_paper(*replies: dict[str, Any]) -> AsyncIterator[PaperBroker]:
    """A broker whose gateway speaks for a system in memory."""
    async with remit.open(memory=True) as system:
        broker = PaperBroker()
        async with serving(system, broker, *replies):
            yield broker
