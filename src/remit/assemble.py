"""The only place that picks concrete parts and wires them, and the only one that reads the environment.

Rule 1: settings are one typed record, read once.
Rule 2: nothing is opened before it is needed, and whoever opens a system closes it.
"""

import os
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from remit.backend.clock import WallClock
from remit.backend.memory.store import MemoryStore
from remit.orchestrate.facade import Store, System
from remit.orchestrate.kits import kit_again

if TYPE_CHECKING:
    from remit.backend.embedded.store import EmbeddedStore

HOME_VARIABLE = "REMIT_HOME"
HOME_DEFAULT = ".remit"

# Crockford's alphabet: no letter that reads as a digit, so an id can be read out.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BITS_PER_LETTER = 5
# Forty-five bits of milliseconds last for a thousand years; thirty-five of chance keep two runs of one moment apart.
_TIME_LETTERS, _CHANCE_LETTERS = 9, 7


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept."""

    home: Path


def settings_of(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings that the environment asks for."""
    environment = os.environ if environment is None else environment
    return Settings(Path(environment.get(HOME_VARIABLE) or HOME_DEFAULT).absolute())


def new_run_id() -> str:
    """A new id: ids of later runs sort behind those of earlier ones."""
    chance = secrets.randbits(_CHANCE_LETTERS * _BITS_PER_LETTER)
    return _letters(time.time_ns() // 1_000_000, _TIME_LETTERS) + _letters(chance, _CHANCE_LETTERS)


def _letters(number: int, count: int) -> str:
    return "".join(
        _ALPHABET[(number >> shift) & (len(_ALPHABET) - 1)]
        for shift in range((count - 1) * _BITS_PER_LETTER, -1, -_BITS_PER_LETTER)
    )


def system_on(store: Store) -> System:
    """A system on a store of the caller's."""
    return System(store, clock=WallClock(), find_kit=kit_again, new_id=new_run_id)


def system_in_memory() -> System:
    """A system that forgets everything with its process."""
    return system_on(MemoryStore())


def open_store(settings: Settings) -> "EmbeddedStore":
    """The store in the settings' folder, made if it is not there."""
    from remit.backend.embedded.store import EmbeddedStore

    return EmbeddedStore.open(settings.home)


@asynccontextmanager
async def opened(settings: Settings | None = None) -> AsyncIterator[System]:
    """A system on the store of the settings, closed at the end."""
    system = system_on(open_store(settings or settings_of()))
    try:
        yield system
    finally:
        await system.close()
