"""The local model: how long it loads, how fast it speaks, and how little it holds up the event loop.

Wall time, since the model computes in threads of its own; run it on a quiet machine. Where the model or its runtime is
not installed, nothing is measured, and the report says why.
"""

import asyncio
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.runs import at_most
from remit.core.failure import RequestRejected
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, assistant_message, user_message
from remit.inference.local.engine import open_local
from remit.inference.local.models import SMOLLM2
from remit.inference.local.server import SLOTS, LoadedModels

TOKENS = 64
TICK_S = 0.001
MILLIS_PER_SECOND = 1_000
KILOBYTES_PER_MEGABYTE = 1_000
LAG_MS_WANTED = 20
CANCEL_MS_WANTED = 1_000

STORY = "Tell me a long story about the sea."
LONG = "The ship was blue, the sea was green and the sky was grey. " * 25
# Longer than anybody waits: some ten seconds of reading on one core.
VERY_LONG = LONG * 4


@dataclass(frozen=True)
class Local:
    """What was measured. A cancel has two figures: until the caller that waited goes on, and until the slot is free."""

    model: str
    load_ms: float
    grown_megabytes: float
    tokens_per_second: float
    read_tokens_per_second: float
    lag_ms: float
    first_exchange_ms: int
    second_exchange_ms: int
    cancel_speaking_ms: tuple[float, float]
    cancel_reading_ms: tuple[float, float]


def measure_local(folder: Path | None = None) -> Local | str:
    """Measure the model that `smollm2` names, or say why not."""
    try:
        bench = Bench(folder)
    except RequestRejected as error:
        return error.message
    return asyncio.run(bench.measure())


class Bench:
    """One engine with a model of its own, loaded while it is measured."""

    def __init__(self, folder: Path | None) -> None:
        self._engine = open_local(SMOLLM2, Path("/"), models=folder, loaded=LoadedModels())

    async def measure(self) -> Local:
        """Everything, one after the other."""
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        first = await self._engine.infer(_asking("Hello.", tokens=1))
        load_ms = _millis_since(began) - first.usage.duration_ms
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        await self._engine.infer(_asking(STORY, tokens=1))
        lag_ms, spoke_s = await self._lag()
        cold, warm, read_rate = await self._exchanges()
        return Local(
            model=self._engine.model_info().name,
            load_ms=load_ms,
            grown_megabytes=grown_kb / KILOBYTES_PER_MEGABYTE,
            tokens_per_second=TOKENS / spoke_s,
            read_tokens_per_second=read_rate,
            lag_ms=lag_ms,
            first_exchange_ms=cold,
            second_exchange_ms=warm,
            cancel_speaking_ms=await self._cancel(STORY, after_s=0.5),
            cancel_reading_ms=await self._cancel(VERY_LONG, after_s=0.5),
        )

    async def _lag(self) -> tuple[float, float]:
        """The worst gap between two ticks of the loop while the model speaks, and how long it spoke. The prompt is known."""
        worst_s = 0.0
        pieces: list[object] = []
        began = time.perf_counter()
        speaking = asyncio.create_task(self._engine.infer(_asking(STORY, tokens=TOKENS), pieces.append))
        last = time.perf_counter()
        while not speaking.done():
            await asyncio.sleep(TICK_S)
            now = time.perf_counter()
            worst_s, last = max(worst_s, now - last), now
        await speaking
        return worst_s * MILLIS_PER_SECOND, time.perf_counter() - began

    async def _exchanges(self) -> tuple[int, int, float]:
        """Milliseconds of a first and a second exchange, and how many tokens a second the first one read."""
        cold = await self._engine.infer(_asking(LONG, tokens=1))
        more = (user_message(LONG), assistant_message(cold.content), user_message("And then?"))
        warm = await self._engine.infer(_asking(*more, tokens=1))
        rate = cold.usage.prompt_tokens * MILLIS_PER_SECOND / max(cold.usage.duration_ms, 1)
        return cold.usage.duration_ms, warm.usage.duration_ms, rate

    async def _cancel(self, text: str, *, after_s: float) -> tuple[float, float]:
        """Cancel calls in all slots: until all who waited go on, and until a slot is free."""
        # Each begins with words of its own, so that none has been read before.
        asked = [_asking(f"{after_s} {number} {text}", tokens=2000) for number in range(SLOTS)]
        calls = [asyncio.create_task(self._engine.infer(request)) for request in asked]
        await asyncio.wait(calls, timeout=after_s)
        began = time.perf_counter()
        for call in calls:
            call.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*calls)
        gone_on_ms = _millis_since(began)
        await self._engine.infer(_asking("Hello.", tokens=1))
        return gone_on_ms, _millis_since(began)


def _asking(*messages: str | Message, tokens: int) -> ModelRequest:
    shown = tuple(user_message(each) if isinstance(each, str) else each for each in messages)
    return ModelRequest(shown, max_tokens=tokens, temperature=0.0)


def _millis_since(began: float) -> float:
    return (time.perf_counter() - began) * MILLIS_PER_SECOND


def local_lines(local: Local | str) -> Iterator[str]:
    """The section of the report."""
    yield "The local model (wall time)"
    if isinstance(local, str):
        yield f"  not measured: {local}"
        return
    yield f"  {local.model}: loaded in {local.load_ms:,.0f} ms, memory grows by {local.grown_megabytes:,.0f} MB"
    yield (
        f"  speaks {local.tokens_per_second:.0f} tokens a second, reads {local.read_tokens_per_second:.0f}; "
        f"a first exchange takes {local.first_exchange_ms:,} ms, the next one {local.second_exchange_ms:,}"
    )
    yield (
        f"  worst lag of the event loop while it speaks {TOKENS} tokens: {local.lag_ms:.1f} ms; "
        f"wanted {LAG_MS_WANTED}: {at_most(local.lag_ms, LAG_MS_WANTED)}"
    )
    for what, (gone_on_ms, free_ms) in (("speaks", local.cancel_speaking_ms), ("reads", local.cancel_reading_ms)):
        yield (
            f"  cancelled in all slots while it {what}: who waited goes on after {gone_on_ms:.1f} ms, the next call has "
            f"its answer after {free_ms:,.0f} ms; wanted {CANCEL_MS_WANTED:,}: {at_most(free_ms, CANCEL_MS_WANTED)}"
        )


def local_values(local: Local | str) -> dict[str, Any]:
    """The same as plain values."""
    return {"not_measured": local} if isinstance(local, str) else asdict(local)


if __name__ == "__main__":
    print("\n".join(local_lines(measure_local())))
