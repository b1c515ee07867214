"""The vault: the secrets of a deployment, handed out by name just before a call, and looked for in what comes back.

Rule 1: a call gets a secret only if it holds until the call's own time is over; one that does not is renewed before.
Rule 2: a secret that is not here, or has expired and cannot be renewed, means that nothing was called.
Rule 3: what a renewal gave or raised is not told: only the kind of the error and when the old value expired.
Rule 4: a secret that a model was found to know is compromised and revoked: no call gets it until it is renewed. Where
        revocations are kept, its value stays revoked, in every process and under every name. On mere suspicion nothing
        is revoked.
Rule 5: a value that was replaced is still looked for, since a call that began before may still tell it.
Rule 6: the file of secrets in the store's folder is a TOML table or a JSON object of names. One that others than its owner
        may read or write is refused unread, and what is wrong with it is told by its place, never by its words.
"""

import asyncio
import inspect
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from remit.core.declared_types import refusal
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.regex import regex
from remit.core.regular_file import open_regular
from remit.core.run.person import REQUEST_ID_SECRET
from remit.core.schema.json_text import KeyRepeated, NotJson, parse_json, place_in
from remit.tool.call.outcomes import ToolFault
from remit.tool.call.threads import in_thread
from remit.tool.secrets.revocations import SECRET_REVOKED, Revocations
from remit.tool.secrets.secret import SECRET_INVALID, Credential, Given, Secret, credential_of, written_moment
from remit.tool.secrets.secret_masks import Masker

SECRETS_NOT_PRIVATE = "SECRETS_NOT_PRIVATE"
SECRETS_UNREADABLE = "SECRETS_UNREADABLE"

# No person keeps more secrets by hand; a larger file is not the one that was meant.
FILE_BYTES_MAX = 4 * 1024 * 1024

_OTHERS = 0o077
_PLACE = regex(r"line (\d+)")
# Every text is searched for every one of them, in each of its forms: with so many, a short text takes a millisecond.
SECRETS_MAX = 64
# So many values of one secret are looked for: no call lasts longer than as many renewals.
VALUES_KEPT_MAX = 8
# Where a secret may be put when Python gives none.
VARIABLE_PREFIX = "REMIT_SECRET_"
FILES = ("secrets.toml", "secrets.json")
NOTHING: Mapping[str, Given] = MappingProxyType({})
_NS_PER_MS = 1_000_000


def read_secrets(folder: Path) -> Mapping[str, Any]:
    """The secrets that stand in a folder; none if it holds no such file."""
    present = [folder / name for name in FILES if (folder / name).exists()]
    if len(present) > 1:
        raise _refused(SECRETS_UNREADABLE, folder, f"holds {' and '.join(FILES)}; keep one of them")
    if not present:
        return {}
    found = _parsed(present[0], _private_bytes(present[0]))
    for name, given in found.items():
        credential_of(name, given)
    return found


def _private_bytes(path: Path) -> bytes:
    try:
        # The mode is that of the very file that is read.
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & _OTHERS:
                problem = f"is open to others (mode {stat.S_IMODE(mode):o}); type: chmod 600 {str(path)!r}"
                raise _refused(SECRETS_NOT_PRIVATE, path, problem)
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _refused(SECRETS_UNREADABLE, path, f"cannot be read: {error.strerror}; correct it") from error
    if len(data) > FILE_BYTES_MAX:
        raise _refused(SECRETS_UNREADABLE, path, f"has more than file_bytes_max={FILE_BYTES_MAX}")
    return data


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    import tomllib

    kind = path.suffix[1:].upper()
    try:
        found = tomllib.loads(data.decode()) if path.suffix == ".toml" else parse_json(data)
    except NotJson as error:
        # The error itself may hold words of the file, so it is not kept as the cause.
        problem = "has a key twice" if isinstance(error, KeyRepeated) else f"is no valid {kind}"
        line, _ = place_in(data, error.at)
        raise _refused(SECRETS_UNREADABLE, path, f"{problem} in line {line}; correct it") from None
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        where = f" in line {place.group(1)}" if place else ""
        raise _refused(SECRETS_UNREADABLE, path, f"is no valid {kind}{where}; correct it") from None
    if not isinstance(found, dict):
        raise _refused(SECRETS_UNREADABLE, path, "must be an object that maps names to secrets")
    return found


def _refused(code: str, path: Path, problem: str) -> RequestRejected:
    return RequestRejected(code, f"{str(path)!r} {problem}", {"place": str(path)})


def wall_ms() -> int:
    """The wall clock, which is what moments of expiry are told by."""
    return time.time_ns() // _NS_PER_MS


class Vault:
    """Secrets by name. `inherited` is the environment for processes of tools, where it must differ from this one's."""

    __slots__ = ("_held", "_locks", "_now_ms", "_revocations", "_revoked", "_values", "inherited", "masker")

    def __init__(
        self,
        secrets: Mapping[str, Given] = NOTHING,
        *,
        now_ms: Callable[[], int] = wall_ms,
        inherited: Callable[[], Mapping[str, str]] | None = None,
        revocations: Revocations | None = None,
    ) -> None:
        if not isinstance(secrets, Mapping):
            raise refusal(SECRET_INVALID, "secrets", secrets, Mapping)
        if len(secrets) > SECRETS_MAX:
            raise RequestRejected(SECRET_INVALID, f"secrets={len(secrets)} exceeds secrets_max={SECRETS_MAX}")
        self._held = {name: credential_of(name, given) for name, given in secrets.items()}
        self._revoked: set[str] = set()
        self._locks = {name: Lock() for name in self._held}
        self._values: dict[str, list[str]] = {name: [] for name in self._held}
        self._now_ms = now_ms
        self._revocations = revocations
        self.inherited = inherited
        self.masker = Masker()
        for name, held in self._held.items():
            self._remember(name, held)
        for name in self._held:
            self._look_up(name)

    def _look_up(self, name: str) -> Credential:
        """A secret, which holds no longer where its value was revoked: here before, or by another process."""
        held = self._held[name]
        if self._revocations is None or held.value is None or name in self._revoked:
            return held
        at_ms = self._revocations.revoked_at_ms(held.value.reveal())
        if at_ms is not None:
            self._revoked.add(name)
            self._held[name] = held = Credential(held.value, at_ms, held.refresh)
        return held

    @property
    def revoked(self) -> dict[str, int]:
        """The names of the secrets that were revoked and not renewed since, each with the moment."""
        for name in self._held:
            self._look_up(name)
        return {name: self._held[name].expires_at_ms or 0 for name in sorted(self._revoked)}

    def check_usable(self, tool: str, names: Iterable[str]) -> None:
        """Raise SECRET_REVOKED where a tool could not be called for want of a value that is not revoked."""
        revoked = self.revoked
        for name in names:
            if name in revoked and self._held[name].refresh is None:
                message = (
                    f"the secret {name!r}, which tool {tool!r} is called with, was revoked at "
                    f"{written_moment(revoked[name])} because a model knew it; set another value, and let the old one be "
                    "withdrawn where it is accepted"
                )
                raise RequestRejected(SECRET_REVOKED, message, {"secret": name, "tool": tool})

    def check_name(self, field: str, name: str) -> None:
        """Refuse a name in which a value stands, in whatever form: names are kept in clear."""
        if secret := self.masker.value_in(name):
            message = (
                f"{field} holds the value of the secret {secret!r}, and names are kept in clear; give another name, and renew "
                "that secret"
            )
            raise RequestRejected(REQUEST_ID_SECRET, message, {"field": field, "kind": "vault"})

    @property
    def expiries(self) -> dict[str, int | None]:
        """The names of the secrets, each with the moment it expires at; they say nothing of a value."""
        return {name: held.expires_at_ms for name, held in self._held.items()}

    def has_expired(self, name: str) -> bool:
        """Whether a secret that is here holds no longer."""
        expires_at_ms = self._held[name].expires_at_ms
        return expires_at_ms is not None and expires_at_ms <= self._now_ms()

    def revoke(self, name: str) -> None:
        """Let a secret hold no longer, since one of its values is known where it must not be."""
        if (held := self._held.get(name)) is None:
            return
        at_ms = self._now_ms()
        self._held[name] = Credential(held.value, at_ms, held.refresh)
        self._revoked.add(name)
        if self._revocations is not None:
            for value in self._values[name]:
                self._revocations.record(name, value, at_ms)

    async def fill(self, tool: str, wanted: tuple[tuple[str, str], ...], *, timeout_ms: int) -> dict[str, Secret]:
        """The secrets for the parameters of a call that may take so long, or the fault that there is one missing."""
        return {parameter: await self._lend(tool, name, timeout_ms) for parameter, name in wanted}

    async def _lend(self, tool: str, name: str, timeout_ms: int) -> Secret:
        held = self._held.get(name)
        if held is None:
            way_out = f"set the variable {VARIABLE_PREFIX}{name}, or put it into {FILES[0]} in the store's folder"
            raise _uncalled(tool, f"the secret {name!r} is not here; {way_out}")
        held = self._look_up(name)
        if not _holds(held, self._now_ms() + timeout_ms):
            held = await in_thread(self._renewed, tool, name, timeout_ms)
        assert held.value is not None, "whatever holds has a value"
        return held.value

    def _renewed(self, tool: str, name: str, timeout_ms: int) -> Credential:
        """A credential that lasts for the call, from a thread: the first who needs it renews it, the others wait."""
        with self._locks[name]:
            held = self._held[name]
            if _holds(held, self._now_ms() + timeout_ms):
                return held
            if held.refresh is None:
                raise _uncalled(tool, f"{self._expiry(name, held, timeout_ms)}; put a new one in its place")
            fresh = self._refreshed(tool, name, held)
            self._remember(name, fresh)
            self._held[name] = fresh
            self._revoked.discard(name)
            fresh = self._look_up(name)
            if not _holds(fresh, self._now_ms() + timeout_ms):
                raise _uncalled(tool, f"{self._expiry(name, fresh, timeout_ms)}, though it was just renewed")
            return fresh

    def _refreshed(self, tool: str, name: str, held: Credential) -> Credential:
        assert held.refresh is not None
        try:
            given: Any = held.refresh()
            if inspect.isawaitable(given):
                given = asyncio.run(_awaited(given))
            fresh = credential_of(name, given)
        except RequestRejected as error:
            raise _uncalled(tool, f"the secret {name!r} was not renewed: {error.message}") from None
        except BaseException as error:  # noqa: BLE001  # in a thread nothing else may be raised; it may quote anything
            raise _uncalled(tool, f"the secret {name!r} was not renewed: {type(error).__name__}") from None
        if fresh.value is None:
            raise _uncalled(tool, f"the secret {name!r} was not renewed: refresh gave no value")
        return Credential(fresh.value, fresh.expires_at_ms, fresh.refresh or held.refresh)

    def _expiry(self, name: str, held: Credential, timeout_ms: int) -> str:
        assert held.expires_at_ms is not None, "what never expires always holds"
        moment = written_moment(held.expires_at_ms)
        if name in self._revoked:
            return f"the secret {name!r} was revoked at {moment}, because a model knew it"
        if held.expires_at_ms <= self._now_ms():
            return f"the secret {name!r} expired at {moment}"
        return f"the secret {name!r} expires at {moment}, before a call of timeout_ms={timeout_ms} must have ended"

    def _remember(self, name: str, held: Credential) -> None:
        if held.value is None:
            return
        values = [value for value in self._values[name] if value != held.value.reveal()]
        self._values[name] = [*values[1 - VALUES_KEPT_MAX :], held.value.reveal()]
        self.masker = Masker((key, value) for key, known in self._values.items() for value in known)


async def _awaited(given: Any) -> Any:
    return await given


def _holds(held: Credential, until_ms: int) -> bool:
    if held.value is None:
        return False
    return held.expires_at_ms is None or held.expires_at_ms > until_ms


def _uncalled(tool: str, why: str) -> ToolFault:
    return ToolFault(ErrorCode.TOOL_UNAVAILABLE, f"tool {tool!r} was not called: {why}")


NO_SECRETS = Vault()
