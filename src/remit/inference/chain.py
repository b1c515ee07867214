"""Chains: engines of which the next is asked when one cannot serve, such as `openai:gpt-4o-mini|ollama:qwen3`.

Rule 1: a run reserves for the chain what the dearest member would cost, and sees what the smallest can see:
        whichever answers, no reservation was too small. An unknown price of one member is unknown of the chain.
Rule 2: the next member is asked only after a failure to serve that cost nothing. A call that broke off, or of which
        something was heard, fails as it is: a second one would not be paid for.
Rule 3: a member that failed rests for a while and is asked last. None is left out: when all rest, all are asked.
Rule 4: the answer carries the name of the member that gave it.
Rule 5: members may be of different kinds, such as a served model and a local one that knows no tools. What each of them
        is asked is then made for it alone, by the caller: `first_served` names the next member.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NoReturn, TypeAlias

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import replace
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.manifest import Source
from remit.inference.endpoint.breaker import FAILURES, Breaker, MonotonicClock
from remit.inference.endpoint.limits import EndpointLimits
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.inference.specs import BAR, engine_source, engine_spec

# A chain of more is a list that was not looked through.
MEMBERS_MAX = 8
# As long as the longest pause between two attempts of a run, so that the next attempt goes to the next member.
REST_S = 30
# The words about each member when none answers.
TOLD_CHARS_MAX = 300

_log = logging.getLogger(__name__)


class Ear:
    """Passes pieces of an answer on, and remembers that there were some."""

    __slots__ = ("has_heard",)

    def __init__(self) -> None:
        self.has_heard = False

    def before(self, handler: StreamHandler | None) -> StreamHandler | None:
        """What a member is to be given in the place of a handler."""
        return None if handler is None else partial(self._hear, handler)

    def _hear(self, handler: StreamHandler, chunk: StreamChunk) -> None:
        self.has_heard = True
        handler(chunk)


# Asks one member, in the way that suits it; a listener does so through the ear.
AskMember: TypeAlias = Callable[[Engine, Ear], Awaitable[ModelResult]]


class ChainEngine:
    """Asks its members in order until one serves. `spec` opens the same chain again."""

    def __init__(self, members: Sequence[Engine], clock: MonotonicClock = time.monotonic) -> None:
        self._info = _together([member.model_info() for member in members])
        self._members = tuple(members)
        self._breakers = tuple(Breaker(EndpointLimits(failures_max=1, pause_s=REST_S), clock) for _ in members)
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
        """The smallest window, the highest price and the longest template of the members, under all of their names."""
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the first member that serves; all of them are asked the same."""
        return await self.first_served(lambda member, ear: member.infer(request, ear.before(on_chunk)))

    async def first_served(self, ask: AskMember) -> ModelResult:
        """Ask the members one after the other; gives the result of the first that serves."""
        faults: list[tuple[str, EngineFault]] = []
        # Sorting keeps the order of equals: those who rest stand behind those who do not.
        for member, breaker in sorted(zip(self._members, self._breakers, strict=True), key=_rests):
            name, ear = member.model_info().name, Ear()
            try:
                result = await ask(member, ear)
            except EngineFault as fault:
                if fault.code not in FAILURES:
                    raise
                breaker.fail()
                if fault.was_cut or fault.usage.total_tokens or ear.has_heard:
                    # Asked again, the chain begins with another member.
                    fault.is_final = False
                    raise
                faults.append((name, fault))
                _log.warning("model %s cannot serve; the next of the chain is asked", name)
                continue
            breaker.succeed()
            return result if result.model else replace(result, model=name)
        raise _nobody(faults)


def _rests(member: tuple[Engine, Breaker]) -> bool:
    return member[1].rests_s() > 0


def _together(infos: Sequence[ModelInfo]) -> ModelInfo:
    """What holds for every member, no matter which answers."""
    name = BAR.join(info.name for info in infos)
    if not 2 <= len(infos) <= MEMBERS_MAX:
        _reject(f"chain {name!r:.120} has {len(infos)} members; it takes from 2 to {MEMBERS_MAX}")
    return ModelInfo(
        name,
        min(info.context_window for info in infos),
        _highest(infos),
        # What is reserved for the words that tell a model how to call is then there, no matter which member is asked.
        calls_by_grammar=any(info.calls_by_grammar for info in infos),
        template_tokens=max(info.template_tokens for info in infos),
        calls_at_once=min(info.calls_at_once for info in infos),
    )


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
    is_final = all(fault.is_final for _, fault in faults)
    soonest_s = min(fault.retry_after_s for _, fault in faults)
    return EngineFault(
        code, f"none of {len(faults)} models can serve: {told}", retry_after_s=soonest_s, is_final=is_final
    )


def _reject(message: str) -> NoReturn:
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
