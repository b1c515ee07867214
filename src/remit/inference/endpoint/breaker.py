"""Breakers: a model that fails several times in a row is left alone for a while.

Rule 1: while it is left alone, calls fail at once and are told when it will be tried again. They cost nothing.
Rule 2: then one call probes whether it is back; the others fail until that is known. A probe that fails begins a new pause.
Rule 3: only failures to serve count. An unreadable answer, or a conversation too long, shows that a server is there.
Rule 4: a breaker decides whether a server is called, never what is made of its answer.
"""

import time
from collections.abc import Callable
from math import ceil
from threading import Lock
from typing import TypeAlias

from remit.core.failure import ErrorCode
from remit.inference.endpoint.limits import EndpointLimits
from remit.inference.engine import EngineFault

FAILURES = frozenset({ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR})

# Seconds that only go forward.
MonotonicClock: TypeAlias = Callable[[], float]


class Breaker:
    """Whether a model may be asked: not for a while after several failures in a row, and then by one call first."""

    def __init__(self, limits: EndpointLimits, clock: MonotonicClock = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._closed_until_s = 0.0
        self._is_probed = False

    def rests_s(self) -> float:
        """How long the model is still left alone; 0 when it may be asked."""
        if self._failures < self._limits.failures_max:
            return 0.0
        return max(0.0, self._closed_until_s - self._clock())

    def check(self, name: str) -> None:
        """Fail a call at once while the model is left alone."""
        if rests_s := self.rests_s():
            raise self._refusal(name, f"it is tried again in {ceil(rests_s)} s", rests_s)

    def admit(self, name: str) -> None:
        """Let a call pass, or fail it at once; a call that passes says what came of it."""
        self.check(name)
        with self._lock:
            if self._failures < self._limits.failures_max:
                return
            if self._is_probed:
                raise self._refusal(name, "one call is finding out whether it is back", 0.0)
            self._is_probed = True

    def succeed(self) -> None:
        """The server was there."""
        with self._lock:
            self._failures, self._is_probed = 0, False

    def fail(self) -> None:
        """The server did not serve."""
        with self._lock:
            self._failures, self._is_probed = self._failures + 1, False
            self._closed_until_s = self._clock() + self._limits.pause_s

    def forget(self) -> None:
        """Drop a probe without an outcome: whether the server would have served is unknown."""
        with self._lock:
            self._is_probed = False

    def _refusal(self, name: str, again: str, again_s: float) -> EngineFault:
        return unavailable(f"model {name!r} failed {self._failures} times in a row and is left alone; {again}", again_s)


def unavailable(message: str, again_s: float) -> EngineFault:
    """The fault of a call that was not made, and may be in so many seconds."""
    return EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, message, retry_after_s=ceil(again_s))
