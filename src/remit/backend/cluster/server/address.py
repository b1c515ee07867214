"""The address of a store on servers, read strictly: what is wrong is named by its part, with the value and the way out.

Rule 1: what may be a user or a password is never repeated.
"""

from urllib.parse import SplitResult, parse_qsl, urlsplit

from remit.core.clipped import SHOWN_CHARS_MAX, clipped
from remit.core.failure import RequestRejected
from remit.core.record import Record

STORE_ADDRESS_INVALID = "STORE_ADDRESS_INVALID"
SCHEMES = ("nats", "tls")
LEASE = "lease_ms"
DRIVE, BY_WORKERS = "drive", "workers"
# How long a process may be silent before its runs go to others: longer than a server takes to follow a leader that was killed.
LEASE_MS = 10_000
# Shorter ones end while a server follows a leader that was killed; in longer ones no process goes on with a run for too long.
LEASE_MS_MIN, LEASE_MS_MAX = 1_000, 600_000
PORT_MAX = 65_535
# What ends a host, and must be written as %2F and so on before the @.
_RESERVED = "/?#,"


class StoreAddress(Record):
    """Which servers, how long leases last (0 where it is not said), and whether workers drive what is begun."""

    servers: str
    lease_ms: int = 0
    leaves: bool = False


def read_address(address: str) -> StoreAddress:
    """The parts of an address; raises RequestRejected, naming the one that is wrong."""
    _check_users(address)
    servers, _, query = address.partition("?")
    for one in servers.split(","):
        _check_server(one)
    pairs = parse_qsl(query, keep_blank_values=True)
    for name, _ in pairs:
        if name not in (LEASE, DRIVE):
            raise _wrong(f"parameter {clipped(name)}", f"behind the ? stand {LEASE}=N and {DRIVE}={BY_WORKERS}")
        if [one for one, _ in pairs].count(name) > 1:
            raise _wrong(f"parameter {name!r}, which stands there twice", "say it once")
    said = dict(pairs)
    if query and not pairs:
        raise _wrong(f"parameter {clipped(query)}", f"behind the ? stand {LEASE}=N and {DRIVE}={BY_WORKERS}")
    lease, drive = said.get(LEASE), said.get(DRIVE)
    if lease is not None and not (
        lease.isascii() and lease.isdecimal() and len(lease) < 8 and LEASE_MS_MIN <= int(lease) <= LEASE_MS_MAX
    ):
        raise _wrong(f"{LEASE}={clipped(lease)}", f"a lease lasts {LEASE_MS_MIN} to {LEASE_MS_MAX} ms")
    if drive not in (None, BY_WORKERS):
        raise _wrong(f"{DRIVE}={clipped(drive)}", f"say {DRIVE}={BY_WORKERS}, or leave it out")
    return StoreAddress(servers, int(lease or 0), drive == BY_WORKERS)


def _check_users(address: str) -> None:
    """Refuse a user or a password that ends before its @, before anything of it is shown."""
    for part in address.split("://")[1:]:
        before, at, _ = part.rpartition("@")
        if at and any(mark in before.rpartition("@")[2] for mark in _RESERVED) and not _is_list(before):
            raise _wrong("user or password (not shown)", "write / ? # , and @ in them as %2F %3F %23 %2C %40")


def _is_list(before: str) -> bool:
    """Whether what stands before an @ are servers of a list, and behind their last comma a user."""
    return False if "," not in before else not any(mark in before.rpartition(",")[2] for mark in "/?#")


def _check_server(one: str) -> None:
    shown = one.rpartition("@")[2]
    scheme, mark, _ = one.partition("://")
    if not mark:
        raise _wrong(f"server {clipped(shown)}, which has no scheme", "each server of the list is nats://HOST:PORT")
    if scheme not in SCHEMES:
        raise _wrong(f"scheme {clipped(scheme)}", "a store on servers is nats://HOST:PORT or tls://HOST:PORT")
    try:
        parts = urlsplit(one)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _wrong(f"port of {clipped(_place(shown))}", f"a port is a number from 1 to {PORT_MAX}") from None
    if not host or any(sign.isspace() or not sign.isprintable() for sign in host):
        raise _wrong(f"host {clipped(host)}", "name a machine behind the ://, as in nats://HOST:PORT")
    if port == 0:
        raise _wrong("port 0", f"a port is a number from 1 to {PORT_MAX}")
    if rest := _rest(parts):
        raise _wrong(
            f"path {clipped(rest)}", "nothing stands behind the port but ?, whatever a tenant or a stream is called"
        )


def _rest(parts: SplitResult) -> str:
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return ("" if parts.path == "/" else parts.path) + fragment


def _place(shown: str) -> str:
    return shown.partition("://")[2] or shown


def _wrong(what: str, way_out: str) -> RequestRejected:
    message = f"the address of the store has a wrong {what}: {way_out}; an address is nats://HOST:PORT"
    return RequestRejected(STORE_ADDRESS_INVALID, message[: 5 * SHOWN_CHARS_MAX])
