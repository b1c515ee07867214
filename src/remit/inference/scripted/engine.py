"""The scripted engine: deterministic replies from a file or from values. It is shipped for tests, demos and benchmarks.

Rule 1: which reply comes next is told from the conversation alone; see script_position.py.
Rule 2: a delay really waits, and a cancellation really ends it.
Rule 3: a script may propose what was not offered, as a model may; judging it is not the engine's part.
Rule 4: usage that a reply does not name is estimated from bytes, so the same conversation always costs the same.
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject, size_bytes
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.manifest import Source
from remit.core.run.usage import TokenUsage
from remit.inference.engine import EngineFault, StreamChunk, StreamHandler
from remit.inference.scripted.script import (
    CONTEXT_WINDOW_DEFAULT,
    FREE,
    SCRIPTED,
    Script,
    ScriptedReply,
    read_script,
    script_of,
)
from remit.inference.scripted.script_position import Bookmark, Playbook

# What English text comes to with the tokenizers of most models.
BYTES_PER_TOKEN = 4


class ScriptedEngine:
    """Plays a script. `spec` opens the same again, and is empty for one that was made from values."""

    def __init__(
        self,
        replies: Iterable[JsonObject] = (),
        *,
        context_window: int = CONTEXT_WINDOW_DEFAULT,
        price: Price | None = FREE,
        calls_at_once: int = 1,
        script: Script | None = None,
    ) -> None:
        self._script = script or script_of(
            replies, context_window=context_window, price=price, calls_at_once=calls_at_once
        )
        # One for each replica that has replies of its own, and one for all others.
        named = {0, *(reply.replica for reply in self._script.replies)}
        self._playbooks = {replica: Playbook(_for(replica, self._script.replies)) for replica in named}

    @classmethod
    def from_file(cls, path: Path | str) -> "ScriptedEngine":
        """An engine that plays the script in a file."""
        return cls(script=read_script(Path(path)))

    @property
    def source(self) -> Source:
        """Where the script came from, with the digest of the file as it was read."""
        return self._script.source

    @property
    def spec(self) -> str:
        """What opens the same engine again."""
        return f"{SCRIPTED}:{self.source.place}" if self.source.place else ""

    def model_info(self) -> ModelInfo:
        """The model that the script plays."""
        return self._script.info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The reply that follows from the conversation."""
        playbook = self._playbooks.get(request.replica) or self._playbooks[0]
        reply, mark = playbook.reply_to(request.messages, request.attempt)
        if on_chunk is not None:
            await _stream(reply, on_chunk)
        elif reply.delay_ms:
            await asyncio.sleep(reply.delay_ms / 1000)
        if reply.error is not None:
            # A call that was cut off may have cost anything; so says a real vendor, too.
            message = f"the script says so in answer {mark.answers + 1}, attempt {request.attempt}"
            raise EngineFault(reply.error, message, usage=reply.usage or TokenUsage(), was_cut=bool(reply.pieces))
        info = self._script.info
        return ModelResult(
            content=reply.text,
            reasoning=reply.reasoning,
            tool_calls=_named(reply.calls, mark) if reply.calls else (),
            usage=reply.usage or _estimated(reply, mark, request.max_tokens, info.context_window),
            finish_reason=FinishReason.TOOL if reply.calls else FinishReason.STOP,
            model=info.name,
        )


async def _stream(reply: ScriptedReply, on_chunk: StreamHandler) -> None:
    """Send a reply piece by piece, its delay spread over the pieces."""
    chunks = [StreamChunk(reasoning=reply.reasoning)] if reply.reasoning else []
    chunks += [StreamChunk(piece) for piece in reply.pieces]
    pause_s = reply.delay_ms / 1000 / max(len(chunks), 1)
    if pause_s and not chunks:
        await asyncio.sleep(pause_s)
    for chunk in chunks:
        if pause_s:
            await asyncio.sleep(pause_s)
        on_chunk(chunk)


def _named(calls: tuple[ToolCall, ...], mark: Bookmark) -> tuple[ToolCall, ...]:
    """The calls, each with an id that no other of the conversation has."""
    return tuple(
        [
            call if call.id else ToolCall(f"call-{mark.answers + 1}-{number}", call.name, call.arguments)
            for number, call in enumerate(calls, start=1)
        ]
    )


def _estimated(reply: ScriptedReply, mark: Bookmark, tokens_max: int, context_window: int) -> TokenUsage:
    """What a real model would report, roughly. It never generates more than it was allowed to."""
    prompt, output = _tokens(mark.shown_bytes), _tokens(reply.said_bytes)
    reasoning = _tokens(size_bytes(reply.reasoning)) if reply.reasoning else 0
    if tokens_max > 0:
        reasoning = min(reasoning, tokens_max)
        output = min(output, tokens_max - reasoning)
    return TokenUsage(
        prompt_tokens=prompt,
        reasoning_tokens=reasoning,
        output_tokens=output,
        context_tokens=prompt + reasoning + output,
        context_window=context_window,
        duration_ms=reply.delay_ms,
    )


def _tokens(count_bytes: int) -> int:
    return -(-count_bytes // BYTES_PER_TOKEN)


def _for(replica: int, replies: Sequence[ScriptedReply]) -> list[ScriptedReply]:
    """What a replica is told: replies for it come before those for all."""
    own = [reply for reply in replies if replica and reply.replica == replica]
    return [*own, *(reply for reply in replies if not reply.replica)]
