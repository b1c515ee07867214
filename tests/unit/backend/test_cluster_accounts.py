"""Tenants are accounts of the servers: each key logs in to its own, and nothing of another account exists there."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from remit.assemble import system_on
from remit.backend.cluster.server.connection import check_server, connect
from remit.backend.cluster.server.nats_server import NatsServer
from remit.backend.cluster.store import ClusterStore
from remit.backend.embedded.owner.key_file import FileKey
from remit.core.failure import RequestRejected
from remit.core.journal.signing import Signer, nkey_of
from remit.core.journal.storage import StoreUnusable
from remit.orchestrate.gateway.key_room import ROLES, AccountLimits, KnownKey, account_text
from tests.e2e.command import until
from tests.e2e.house import asking, says, scripted


def known(did: str, role: str, *, tenant: str = "*", is_revoked: bool = False) -> KnownKey:
    return KnownKey(did=did, name="x", may=ROLES[role], tenant=tenant, expires_at_ms=1, is_revoked=is_revoked)


def accounts(*texts: str) -> str:
    return f"accounts {{\n{''.join(texts)}}}\n"


def test_an_account_reserves_nothing_that_was_not_said_so_it_fits_servers_of_any_size(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    root = FileKey(home).signer
    text = account_text("acme", root.did, [])
    assert "jetstream: enabled" in text
    said = account_text("acme", root.did, [], AccountLimits(disk="20G", memory="500M"))
    assert "{ max_file: 20G, max_memory: 500M }" in said
    assert "{ max_memory: 5 }" in account_text("acme", root.did, [], AccountLimits(memory="5"))
    for wrong in ("much", "-1", "0", "5 G", "20G }"):
        with pytest.raises(RequestRejected, match="is no size"):
            account_text("acme", root.did, [], AccountLimits(disk=wrong))

    async def doctor(address: str) -> None:
        store = ClusterStore.open(address, home)
        await store.close()

    def refusal(address: str) -> str:
        """Why a store cannot be opened; empty where it can."""
        try:
            store = ClusterStore.open(address, home)
        except StoreUnusable as error:
            return error.message
        store.let_go()
        return ""

    with NatsServer(tmp_path / "nats", sync="1m", more=accounts(text)) as nats:
        assert refusal(nats.address) == ""
        log, config = tmp_path / "nats" / "server.log", tmp_path / "nats" / "server.conf"
        config.write_text(config.read_text().replace("max_connections: 256", "max_connections: 255"))
        nats.process.send_signal(signal.SIGHUP)
        until(lambda: "Reloaded server configuration" in log.read_text(), "it is read anew")
        assert refusal(nats.address) == ""
        assert "insufficient" not in log.read_text()


def test_an_account_that_was_left_without_jetstream_is_told_where_its_server_says_why() -> None:
    for said in ({"code": 503, "description": "JetStream not enabled for account"}, {}):
        with pytest.raises(StoreUnusable, match=r"Look into the log of the server.*max_file") as refused:
            check_server("nats://h", (2, 15), {"error": said})
        assert "2.15" not in refused.value.message


@pytest.mark.req("3.27")
def test_two_tenants_on_one_server_see_nothing_of_each_other(tmp_path: Path) -> None:
    homes = {tenant: tmp_path / tenant for tenant in ("acme", "beta")}
    roots = {}
    for tenant, home in homes.items():
        home.mkdir()
        roots[tenant] = FileKey(home).signer
    limits = AccountLimits(disk="200M", memory="50M")
    texts = [account_text(tenant, root.did, [], limits) for tenant, root in roots.items()]

    async def run_in(tenant: str, address: str) -> list[str]:
        store = ClusterStore.open(address, homes[tenant])
        system = system_on(store, signer=lambda: store.key.signer)
        try:
            await system.run(asking(f"Hello from {tenant}."), scripted([says("Hi.")]))
            return [run.run_id for run in await system.archive.runs()]
        finally:
            await system.close()

    async def overheard(address: str) -> list[bytes]:
        """What one tenant hears of everything that the other says."""
        client = await connect(address, name="ear", signer=lambda: roots["beta"])
        found: list[bytes] = []

        async def hear(message: Msg) -> None:
            found.append(message.data)

        await client.subscribe(">", cb=hear)
        await client.flush()
        await run_in("acme", address)
        await client.flush()
        await client.close()
        return found

    with NatsServer(tmp_path / "server", sync="1m", more=accounts(*texts)) as server:

        async def story() -> None:
            one = await run_in("acme", server.address)
            other = await run_in("beta", server.address)
            assert len(one) == len(other) == 1
            assert set(one).isdisjoint(other)
            assert await overheard(server.address) == []
            with pytest.raises(StoreUnusable, match="STORE_SHUT_OUT"):
                await connect(server.address, name="stranger", signer=Signer.generate)
            with pytest.raises(StoreUnusable, match="STORE_SHUT_OUT"):
                await connect(server.address, name="nobody")

        asyncio.run(story())


def test_an_agent_sends_what_its_statement_says_and_a_revoked_key_is_let_in_nowhere(tmp_path: Path) -> None:
    root, agent, worker, gone = (Signer.generate() for _ in range(4))
    keys = [
        known(agent.did, "agent"),
        known(worker.did, "tools"),
        known(gone.did, "agent", is_revoked=True),
        known(Signer.generate().did, "agent", tenant="beta"),
    ]
    text = account_text("acme", root.did, keys, AccountLimits(disk="200M", memory="50M"))
    assert text.count("nkey:") == 3
    assert nkey_of(gone.did) not in text
    with NatsServer(tmp_path / "server", sync="1m", more=accounts(text)) as server:

        async def story() -> None:
            refused: asyncio.Queue[Exception] = asyncio.Queue()

            client = await connect(server.address, name="agent", signer=lambda: agent)
            client._error_cb = refused.put
            await client.publish("agent.task.t1", b"{}")
            await client.publish("agent.report.r1", b"{}")
            await client.subscribe("agent.log.>")
            async with asyncio.timeout(10):
                said = " ".join([str(await refused.get()), str(await refused.get())])
            assert "agent.report.r1" in said
            assert "agent.log.>" in said
            with pytest.raises((NatsError, TimeoutError)):
                await client.request("$JS.API.STREAM.MSG.GET.AGENT", json.dumps({"seq": 1}).encode(), timeout=0.2)
            await client.close()
            with pytest.raises(StoreUnusable, match="STORE_SHUT_OUT"):
                await connect(server.address, name="gone", signer=lambda: gone)

        asyncio.run(story())


@pytest.mark.parametrize("role", ["tools", "model"])
def test_who_performs_for_others_purges_nothing_and_speaks_for_nobody(role: str, tmp_path: Path) -> None:
    home, root, worker = tmp_path / "root", FileKey(_made(tmp_path / "root")).signer, Signer.generate()
    text = account_text("acme", root.did, [known(worker.did, role)])
    with NatsServer(tmp_path / "server", sync="1m", more=accounts(text)) as server:

        async def story() -> None:
            store = ClusterStore.open(server.address, home)
            system = system_on(store, signer=lambda: store.key.signer)
            await system.run(asking("Hello."), scripted([says("Hi.")]))
            await store.queue.prepare_words()
            found = await store.link.call(store.link.jet.asked("$JS.API.CONSUMER.NAMES.AGENT"))
            assert {name for name in found["consumers"] if "words" in name} == {"words-agent-due", "words-agent-late"}
            refused: asyncio.Queue[Exception] = asyncio.Queue()
            client = await connect(server.address, name="worker", signer=lambda: worker)
            client._error_cb = refused.put
            denied = (
                "$JS.API.STREAM.PURGE.AGENT",
                "$JS.API.STREAM.PURGE.AGENT_TEXTS",
                "$JS.API.STREAM.MSG.DELETE.AGENT",
                "$JS.API.CONSUMER.DELETE.AGENT.remit-wire",
                "$JS.API.CONSUMER.PAUSE.AGENT.remit-wire",
                "$JS.API.CONSUMER.RESET.AGENT.remit-wire",
                "$JS.API.CONSUMER.RESET.AGENT.lane-tool-x",
                "$JS.API.STREAM.CREATE.MINE",
                *[
                    f"{before}{queue}{behind}"
                    for queue in ("words-agent-due", "words-agent-late", "remit-wire")
                    for before, behind in (
                        ("$JS.API.CONSUMER.MSG.NEXT.AGENT.", ""),
                        ("$JS.API.CONSUMER.DURABLE.CREATE.AGENT.", ""),
                        ("$JS.API.CONSUMER.CREATE.AGENT.", ".agent.x"),
                        ("$JS.ACK.AGENT.", ".1.1.1.1.0"),
                        ("$JS.ACK._.hash.AGENT.", ".1.1.1.1.0"),
                    )
                ],
                "agent.log.halts.=e",
                "agent.complete.x",
                "user.response.cli.x",
                "user.message.cli.x",
                "agent.signal.x",
                "$KV.AGENT_LOOPS.x",
                "$KV.AGENT_KEYS.x",
            )
            for subject in denied:
                await client.publish(subject, b"")
            await client.publish("agent.report.r1", b"{}")
            async with asyncio.timeout(10):
                said = " ".join([str(await refused.get()) for _ in denied])
            assert all(subject.lower() in said.lower() for subject in denied), said
            assert refused.empty()
            # Nor by a header: of what it may publish, nothing empties other subjects or is written under them later.
            for headers in (
                {"Nats-Rollup": "all"},
                {"Nats-Rollup": "sub"},
                {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "user.message.cli.x"},
            ):
                answer = json.loads((await client.request("agent.report.r1", b"{}", timeout=5, headers=headers)).data)
                assert "error" in answer, headers
            await client.close()
            assert len(await system.archive.runs()) == 1
            await system.close()

        asyncio.run(story())


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_tenant_or_a_key_that_cannot_be_one_is_refused() -> None:
    root = Signer.generate()
    with pytest.raises(RequestRejected, match="cannot name an account"):
        account_text("a.b", root.did, [])
    with pytest.raises(RequestRejected, match="spells no key"):
        account_text("acme", "bob", [])
    assert nkey_of("bob") == ""


def test_a_key_that_the_servers_do_not_let_in_is_told_so_and_what_to_do(tmp_path: Path) -> None:
    for name in ("root", "stranger"):
        (tmp_path / name).mkdir()
    root, stranger = FileKey(tmp_path / "root").signer, FileKey(tmp_path / "stranger").signer
    with NatsServer(tmp_path / "nats", sync="1m", more=accounts(account_text("acme", root.did, []))) as nats:
        with pytest.raises(StoreUnusable, match="STORE_SHUT_OUT") as refused:
            ClusterStore.open(nats.address, tmp_path / "stranger")
        assert stranger.did in refused.value.message
        assert "remit keys admit" in refused.value.message
