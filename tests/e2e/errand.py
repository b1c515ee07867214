"""The run that is crashed: reads, a slow tool, parallel calls, three kinds of writes with approvals, and a child.

The world outside the store is one file that only grows. A tool writes there that it was asked, then what it did; so what
happened can be counted, whichever process was killed.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from remit.core.limits.tools import Effect, ToolCall, tool_version
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Message, Role, user_message
from remit.core.run.usage import TokenUsage
from remit.inference.engine import StreamHandler
from remit.kernel.results.notices import NOT_HAPPENED
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry

RUN = "errand"
TASK = "Refund order 42 and tell the customer."
ANSWER = "Order 42 is refunded and the customer knows."
CHILD_ANSWER = "The audit is noted."

# What the parent and its child do, step by step; the calls of one step are proposed in one answer.
PLAN: Sequence[Sequence[tuple[str, JsonObject]]] = (
    (("look", {"n": 1}), ("look_slowly", {"n": 2}), ("look_in_a_thread", {"n": 3})),
    (("put", {"n": 4}), ("pay", {"n": 5}), ("look_slowly", {"n": 6})),
    (("delegate", {"task": "audit"}),),
    (("mail", {"n": 7}),),
)
CHILD_PLAN: Sequence[Sequence[tuple[str, JsonObject]]] = ((("look", {"n": 8}),), (("put", {"n": 9}),))

LEASE = (
    ("input_tokens", 100_000),
    ("output_tokens", 8_000),
    ("tool_calls", 6),
    ("inference_cost_microusd", 200_000),
    ("steps", 20),
    ("human_reviews", 6),
)
# A slow tool takes long enough for everything else of its answer to come back first.
SLOW_S = 0.02
# What it saw is longer than a turn holds, and is kept beside it.
LONG_TIMES = 1_000

MUTATING = ("put", "pay", "mail")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger: a tool was asked to do something under a key, or did it."""

    what: str
    tool: str
    key: str
    n: int


class Ledger:
    """What happened in the world."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, tool: str, key: str, n: int) -> None:
        """Write a line; it is there even if the process is killed at once."""
        line = json.dumps({"what": what, "tool": tool, "key": key, "n": n}).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            assert os.write(descriptor, line) == len(line)
        finally:
            os.close(descriptor)

    def entries(self) -> list[Entry]:
        """Everything noted so far."""
        if not self.path.exists():
            return []
        return [Entry(**json.loads(line)) for line in self.path.read_text().splitlines()]

    def did(self, key: str) -> bool:
        """Whether the effect under a key has happened."""
        return any(entry.what == "effect" and entry.key == key for entry in self.entries())

    def effects(self) -> Counter[tuple[str, int]]:
        """How often each thing was done."""
        return Counter((entry.tool, entry.n) for entry in self.entries() if entry.what == "effect")

    def attempts(self, tool: str) -> Counter[str]:
        """How often a tool was asked, by key."""
        return Counter(entry.key for entry in self.entries() if entry.what == "attempt" and entry.tool == tool)


class CarefulModel:
    """Follows the plan, and proposes again what it was told has not happened. It keeps nothing between calls."""

    def model_info(self) -> ModelInfo:
        """A free model."""
        return ModelInfo("careful", 100_000, Price(0, 0))

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The calls that are left of the first step that is not done, or the answer."""
        is_child = TASK not in str(request.messages[0].content)
        answers = sum(message.role is Role.ASSISTANT for message in request.messages)
        for step in CHILD_PLAN if is_child else PLAN:
            left = [call for call in step if not _is_done(request.messages, *call)]
            if left:
                calls = tuple(ToolCall(f"{answers}-{place}", *call) for place, call in enumerate(left))
                return ModelResult(tool_calls=calls, usage=TokenUsage(10, 0, 10), finish_reason=FinishReason.TOOL)
        return ModelResult(CHILD_ANSWER if is_child else ANSWER, usage=TokenUsage(10, 0, 10))


def _is_done(messages: Sequence[Message], tool: str, arguments: JsonObject) -> bool:
    asked = {
        call.id
        for message in messages
        for call in message.tool_calls
        if (call.name, call.arguments) == (tool, arguments)
    }
    return any(
        message.tool_call_id in asked and NOT_HAPPENED not in str(message.content)
        for message in messages
        if message.role is Role.TOOL
    )


def request() -> SystemRequest:
    """What the user wants."""
    return SystemRequest(messages=(user_message(TASK),), request_id="request", trace_id="0" * 32)


def kit(ledger: Ledger, on_effect: Callable[[str], None], *, slow_s: float = SLOW_S) -> Kit:
    """The model and the tools, all of which write into the ledger; `on_effect` is called after each effect, with its key."""
    reads = _reads(ledger, on_effect, slow_s)
    return engine_kit(CarefulModel(), Registry((*reads, *_writes(ledger, on_effect), _delegate())))


def _reads(ledger: Ledger, on_effect: Callable[[str], None], slow_s: float) -> tuple[Tool, ...]:
    def read(name: str, n: int) -> str:
        ledger.note("read", name, "", n)
        on_effect("")
        return f"seen {n}"

    @tool(effect="read")
    async def look(n: int) -> str:
        """Look something up."""
        return read("look", n)

    @tool(effect="read")
    async def look_slowly(n: int) -> str:
        """Look something up that takes a while."""
        await asyncio.sleep(slow_s)
        return read("look_slowly", n) * LONG_TIMES

    @tool(effect="read")
    def look_in_a_thread(n: int) -> str:
        """Look something up with a function that blocks."""
        return read("look_in_a_thread", n)

    return look, look_slowly, look_in_a_thread


def _writes(ledger: Ledger, on_effect: Callable[[str], None]) -> tuple[Tool, ...]:
    def do(name: str, key: str, n: int) -> str:
        ledger.note("attempt", name, key, n)
        # A service that knows its keys does nothing twice; the others do as they are told.
        if name != "put" or not ledger.did(key):
            ledger.note("effect", name, key, n)
        on_effect(key)
        return f"done {n}"

    def account(key: str, arguments: JsonObject) -> str | bool:
        return f"done {arguments['n']}" if ledger.did(key) else False

    def is_done(arguments: JsonObject, result: str) -> bool:
        return result == f"done {arguments['n']}"

    @tool(effect="write", idempotent=True, verify=is_done)
    async def put(n: int, idempotency_key: str) -> str:
        """Put a value; the same key puts it once."""
        return do("put", idempotency_key, n)

    @tool(effect="external", verify=is_done, reconcile=account)
    async def pay(n: int, idempotency_key: str) -> str:
        """Pay a person, and keep accounts."""
        return do("pay", idempotency_key, n)

    @tool(effect="external", verify=is_done)
    def mail(n: int, idempotency_key: str) -> str:
        """Send a mail, which cannot be asked about later."""
        return do("mail", idempotency_key, n)

    return put, pay, mail


def _delegate() -> Tool:
    @tool(effect="read")
    def delegate(task: str) -> str:
        """Have a part of the work done by a run of its own."""
        return task

    definition = replace(delegate.definition, effect=Effect.READ, delegates=True, lease=LEASE, version="")
    definition = replace(definition, version=tool_version(definition))
    return Tool(delegate.function, definition, delegate.signature, delegate.source)


def faults_of(ledger: Ledger, crashes: int) -> list[str]:
    """What is wrong with the world after the run has ended well and its process was killed this often."""
    wanted = Counter((name, n["n"]) for step in (*PLAN, *CHILD_PLAN) for name, n in step if name in MUTATING)
    found = []
    if ledger.effects() != wanted:
        found.append(f"effects {dict(ledger.effects())} instead of {dict(wanted)}")
    for name, times_max in (("put", 1 + crashes), ("pay", 1), ("mail", 1)):
        found += [
            f"{name} was asked {times} times under key {key}"
            for key, times in ledger.attempts(name).items()
            if times > times_max
        ]
    return found
