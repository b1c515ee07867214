"""Chains: engines of which the next is asked when one cannot serve, such as `openai:gpt-4o-mini|ollama:qwen3`.

Rule 1: a run reserves for the chain what the dearest member would cost, and sees what the smallest can see: whoever
        answers, no reservation was too small. A price that nobody knows of one member is unknown of the chain.
Rule 2: the next member is asked only after a failure to serve that cost nothing. A call that broke off, or of which
        something was heard, fails as it is: a second one would not be paid for.
Rule 3: a member that failed rests for a while and is asked last. None is left out: when all rest, all are asked.
Rule 4: the answer is signed by who gave it.
Rule 5: members that call tools in different ways make no chain: a request is made for one way.
"""

import logging
import time
from collections.abc import Sequence
from typing import NoReturn

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.manifest import Source
from remit.inference.breaker import FAILURES, Breaker, MonotonicClock
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.inference.limits import Limits
from remit.inference.specs import engine_source, engine_spec

BAR = "|"
# A chain of more is a list that nobody has looked through.
MEMBERS_MAX = 8
# As long as the longest pause between two attempts of a run, so that the next attempt goes to the next member.
REST_S = 30
# What is told of each member when none answers.
TOLD_CHARS_MAX = 300

_log = logging.getLogger(__name__)


class ChainEngine:
    """Asks its members in order until one serves. `spec` opens the same chain again."""

    def __init__(self, members: Sequence[Engine], clock: MonotonicClock = time.monotonic) -> None:
        self._info = _together([member.model_info() for member in members])
        self._members = tuple(members)
        self._breakers = tuple(Breaker(Limits(failures_max=1, pause_s=REST_S), clock) for _ in members)
        self._source = _source(self._info.name, members)

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"ChainEngine({self.spec!r})"

    @property
    def spec(self) -> str:
        """What opens the same chain again; empty when a member cannot be opened again."""
        specs = [engine_spec(member) for member in self._members]
        return BAR.join(specs) if all(specs) else ""

    @property
    def source(self) -> Source | None:
        """The file that a member relies on, if one does."""
        return self._source

    def model_info(self) -> ModelInfo:
        """The smallest window and the highest price of the members, under all of their names."""
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the first member that serves."""
        faults: list[tuple[str, EngineFault]] = []
        ear = None if on_chunk is None else _Ear(on_chunk)
        # Sorting keeps the order of equals: those who rest stand behind those who do not.
        for member, breaker in sorted(zip(self._members, self._breakers, strict=True), key=_rests):
            name = member.model_info().name
            try:
                result = await member.infer(request, ear)
            except EngineFault as fault:
                if fault.code not in FAILURES:
                    raise
                breaker.fail()
                if fault.was_cut or fault.usage.total_tokens or (ear is not None and ear.has_heard):
                    raise
                faults.append((name, fault))
                _log.warning("model %s cannot serve; the next of the chain is asked", name)
                continue
            breaker.succeed()
            return result
        raise _nobody(faults)


class _Ear:
    """Passes pieces on, and remembers that there were some."""

    __slots__ = ("_handler", "has_heard")

    def __init__(self, handler: StreamHandler) -> None:
        self._handler = handler
        self.has_heard = False

    def __call__(self, chunk: StreamChunk) -> None:
        self.has_heard = True
        self._handler(chunk)


def _rests(member: tuple[Engine, Breaker]) -> bool:
    return member[1].rests_s() > 0


def _together(infos: Sequence[ModelInfo]) -> ModelInfo:
    """What is known of all members alike."""
    name = BAR.join(info.name for info in infos)
    if not 2 <= len(infos) <= MEMBERS_MAX:
        _reject(f"chain {name!r:.120} has {len(infos)} members; it takes from 2 to {MEMBERS_MAX}")
    by_grammar = {info.calls_by_grammar: info.name for info in infos}
    if len(by_grammar) > 1:
        _reject(
            f"chain {name!r:.200}: {by_grammar[True]!r} calls tools by a grammar and {by_grammar[False]!r} does not; name "
            "models of one kind, such as a served one for a served one"
        )
    return ModelInfo(name, min(info.context_window for info in infos), _highest(infos), infos[0].calls_by_grammar)


def _highest(infos: Sequence[ModelInfo]) -> Price | None:
    prices = [info.price for info in infos if info.price is not None]
    if len(prices) < len(infos):
        return None
    return Price(
        max(price.input_microusd_per_mtok for price in prices), max(price.output_microusd_per_mtok for price in prices)
    )


def _source(name: str, members: Sequence[Engine]) -> Source | None:
    sources = [source for member in members if (source := engine_source(member)) is not None]
    if len(sources) > 1:
        _reject(f"chain {name!r:.120}: {len(sources)} members rely on a file; a run can watch one, so keep one of them")
    return sources[0] if sources else None


def _nobody(faults: Sequence[tuple[str, EngineFault]]) -> EngineFault:
    told = "; ".join(f"{name}: {fault.message[:TOLD_CHARS_MAX]}" for name, fault in faults)
    codes = {fault.code for _, fault in faults}
    code = codes.pop() if len(codes) == 1 else ErrorCode.INFERENCE_ENGINE_ERROR
    soonest_s = min(fault.retry_after_s for _, fault in faults)
    return EngineFault(code, f"none of {len(faults)} models can serve: {told}", retry_after_s=soonest_s)


def _reject(message: str) -> NoReturn:
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
