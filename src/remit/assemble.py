"""The only place that picks concrete parts and wires them, and the only one that reads the environment.

Rule 1: settings are one typed record, read once.
Rule 2: nothing is opened before it is needed, and whoever opens a system closes it.
"""

import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from remit.backend.clock import WallClock
from remit.backend.memory.store import MemoryStore
from remit.core.boundary import Boundary
from remit.core.budget import Budget
from remit.core.contract import SystemRequest
from remit.core.events import Turn
from remit.core.recovery import Recovery
from remit.core.signing import Signer
from remit.inference.engine import Restarted, StreamChunk
from remit.inference.specs import NO_SETTINGS, EngineSettings, open_engine
from remit.kernel.state import RunState, pinned
from remit.orchestrate.facade import Store, System
from remit.orchestrate.kit import Kit, Terms, kit_of
from remit.orchestrate.kits import kit_again
from remit.tool.loading import load_tools
from remit.tool.registry import Registry

if TYPE_CHECKING:
    from remit.backend.embedded.store import EmbeddedStore

HOME_VARIABLE = "REMIT_HOME"
HOME_DEFAULT = ".remit"
# Models are large and the same for every store, so they have one folder for all of a user's.
MODELS_VARIABLE = "REMIT_MODELS"
MODELS_DEFAULT = "~/.local/share/remit/models"
# What others agreed on to ask programs for less colour, see no-color.org.
NO_COLOUR_VARIABLE = "NO_COLOR"
TERMINAL_VARIABLE = "TERM"

# Crockford's alphabet: no letter that reads as a digit, so an id can be read out.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BITS_PER_LETTER = 5
# Forty-five bits of milliseconds last for a thousand years; thirty-five of chance keep two runs of one moment apart.
_TIME_LETTERS, _CHANCE_LETTERS = 9, 7


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept, and what engines need to be opened."""

    home: Path
    engines: EngineSettings = NO_SETTINGS


def settings_of(environment: Mapping[str, str] | None = None, *, home: Path | None = None) -> Settings:
    """The settings that the environment asks for; a home that somebody names wins over it."""
    environment = os.environ if environment is None else environment
    where = home or Path(environment.get(HOME_VARIABLE) or HOME_DEFAULT)
    return Settings(where.absolute(), _engine_settings(environment))


def _engine_settings(environment: Mapping[str, str]) -> EngineSettings:
    return EngineSettings(
        models=Path(environment.get(MODELS_VARIABLE) or MODELS_DEFAULT).expanduser(),
        openai_base_url=environment.get("OPENAI_BASE_URL", ""),
        openai_api_key=environment.get("OPENAI_API_KEY", ""),
    )


def new_run_id() -> str:
    """A new id: ids of later runs sort behind those of earlier ones."""
    chance = secrets.randbits(_CHANCE_LETTERS * _BITS_PER_LETTER)
    return _letters(time.time_ns() // 1_000_000, _TIME_LETTERS) + _letters(chance, _CHANCE_LETTERS)


def _letters(number: int, count: int) -> str:
    return "".join(
        _ALPHABET[(number >> shift) & (len(_ALPHABET) - 1)]
        for shift in range((count - 1) * _BITS_PER_LETTER, -1, -_BITS_PER_LETTER)
    )


class Watcher(Protocol):
    """Is told what happens in the runs that are driven here, while it happens."""

    def turned(self, run_id: str, request: SystemRequest, turn: Turn) -> None:
        """A turn was written."""

    def said(self, run_id: str, text: str) -> None:
        """A model said something more; it is provisional until its turn is written."""

    def restarted(self, run_id: str) -> None:
        """What the model said since the last turn is void; it begins anew."""

    def recovered(self, run_id: str, recovery: Recovery) -> None:
        """A run was taken up again, and so many of its calls made anew."""

    def abandoned(self, run_id: str, tool: str) -> None:
        """The system was closed while a call went on that had been told to stop."""


def watched(kit: Kit, watcher: Watcher) -> Kit:
    """The kit, with somebody who is told what happens."""

    def on_turn(state: RunState, turn: Turn) -> None:
        watcher.turned(state.run_id, pinned(state).request, turn)

    def on_chunk(run_id: str, chunk: StreamChunk | Restarted) -> None:
        if isinstance(chunk, StreamChunk):
            watcher.said(run_id, chunk.text)
        else:
            watcher.restarted(run_id)

    return replace(kit, on_turn=on_turn, on_chunk=on_chunk, on_recovered=watcher.recovered)


def kit_for(engine: str, tools: Sequence[str] = (), *, base: Path, settings: Settings | None = None) -> Kit:
    """The kit that an engine's spec and the places of tools describe; paths in the spec start from `base`."""
    found = open_engine(engine, base=base, settings=(settings or settings_of()).engines)
    return kit_of(found, Registry([tool for place in tools for tool in load_tools(place)]))


def terms_for(boundary: Boundary, budget: Budget) -> Terms:
    """The terms of a run within a boundary, narrowed by a budget."""
    return Terms(boundary, budget)


def system_on(
    store: Store,
    *,
    watcher: Watcher | None = None,
    signer: Callable[[], Signer] | None = None,
    engines: EngineSettings | None = None,
) -> System:
    """A system on a store of the caller's. Whoever watches is told of every run that is taken up again."""
    engines = engines or settings_of().engines

    async def find_kit(state: RunState) -> Kit:
        kit = await kit_again(state, engines)
        return kit if watcher is None else watched(kit, watcher)

    return System(store, clock=WallClock(), find_kit=find_kit, new_id=new_run_id, signer=signer)


def system_in_memory() -> System:
    """A system that forgets everything with its process."""
    return system_on(MemoryStore())


def open_store(settings: Settings) -> "EmbeddedStore":
    """The store in the settings' folder, made if it is not there."""
    from remit.backend.embedded.store import EmbeddedStore

    return EmbeddedStore.open(settings.home)


@asynccontextmanager
async def opened(settings: Settings | None = None, *, watcher: Watcher | None = None) -> AsyncIterator[System]:
    """A system on the store of the settings, which is made if it is not there; closed at the end."""
    settings = settings or settings_of()
    store = open_store(settings)
    system = system_on(store, watcher=watcher, signer=lambda: store.signer, engines=settings.engines)
    async with _closing(system, watcher):
        yield system


def open_again(settings: Settings) -> "EmbeddedStore":
    """The store in the settings' folder; raises StoreUnusable where there is none."""
    from remit.backend.embedded.database import DATABASE
    from remit.backend.embedded.failures import NOT_FOUND, failure

    path = settings.home / DATABASE
    if not path.exists():
        raise failure(NOT_FOUND, path, "no such file")
    return open_store(settings)


@asynccontextmanager
async def reopened(settings: Settings, *, watcher: Watcher | None = None) -> AsyncIterator[System]:
    """A system on a store that is there, closed at the end."""
    store = open_again(settings)
    system = system_on(store, watcher=watcher, signer=lambda: store.signer, engines=settings.engines)
    async with _closing(system, watcher):
        yield system


@asynccontextmanager
async def opened_to_read(settings: Settings | None = None) -> AsyncIterator[System]:
    """A system on a store that is there, in which nothing can be written."""
    from remit.backend.embedded.keys import KEY
    from remit.backend.embedded.store import EmbeddedStore

    settings = settings or settings_of()
    store = EmbeddedStore.open_to_read(settings.home)
    # Reading makes no key where there is none.
    has_key = (settings.home / KEY).exists()
    async with _closing(system_on(store, signer=(lambda: store.signer) if has_key else None)) as system:
        yield system


@asynccontextmanager
async def _closing(system: System, watcher: Watcher | None = None) -> AsyncIterator[System]:
    try:
        yield system
    finally:
        await system.close()
        if watcher is not None:
            for call in system.abandoned:
                watcher.abandoned(call.run_id, call.tool)


def wants_colour(environment: Mapping[str, str] | None = None) -> bool:
    """Whether whoever looks at a terminal wants colours: NO_COLOR and a terminal that calls itself dumb say no."""
    environment = os.environ if environment is None else environment
    return not environment.get(NO_COLOUR_VARIABLE) and environment.get(TERMINAL_VARIABLE) != "dumb"
