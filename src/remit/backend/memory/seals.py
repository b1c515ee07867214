"""The sealed values of a store in memory, by their handles."""

import secrets

from remit.core.secrets.seal import reference_to

_KEY_BYTES = 32


class MemorySeals:
    """The values behind handles; nothing of them is written, so nothing is encrypted."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._values: dict[str, dict[str, str]] = {}

    def seal(self, scope: str, kind: str, value: str) -> str:
        """Keep a value for a scope and give its handle."""
        handle = reference_to(self._key, kind, value)
        self._values.setdefault(scope, {})[handle] = value
        return handle

    def values(self, scope: str) -> dict[str, str]:
        """The values of a scope by their handles."""
        return self._values.get(scope, {})

    def adopt(self, scope: str, other: str) -> None:
        """Keep for a scope what is kept for another."""
        self._values[scope] = self.values(scope) | self.values(other)

    def forget(self, scope: str) -> None:
        """Keep nothing of a scope any more."""
        self._values.pop(scope, None)
