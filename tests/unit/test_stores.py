"""Which store is opened: a folder, or servers that an address names."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from remit import stores
from remit.assemble import examine, halts_of, local_server, reopened_store, settings_of, settings_of_place
from remit.backend.clock import WallClock
from remit.backend.cluster.store import ClusterStore
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RequestRejected
from remit.core.journal.storage import RunEntry, RunListing, StoreUnusable
from remit.core.run.halt import HaltScope
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.ports import Store
from remit.testing.conformance.sample_turns import add
from tests.nats_server import clear

TRUSTED = settings_of({}).trusted


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("nats://h", True),
        ("tls://h:1", True),
        ("natsh", False),
        ("http://h", True),
        (Path("nats://h"), False),
        (None, False),
    ],
)
def test_an_address_is_told_from_a_folder(said: object, expected: bool) -> None:
    assert stores.is_address(said) is expected


def test_what_the_caller_says_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment = {"REMIT_STORE": "nats://there", "REMIT_HOME": str(tmp_path)}
    assert settings_of(environment).store == "nats://there"
    assert settings_of(environment, store="nats://here").store == "nats://here"
    assert settings_of(environment, home=tmp_path / "other").store == ""
    monkeypatch.setenv("REMIT_STORE", "nats://there")
    assert settings_of_place(None).store == "nats://there"
    assert settings_of_place("nats://here").store == "nats://here"
    folder = settings_of_place(tmp_path)
    assert (folder.home, folder.store) == (tmp_path, "")


@pytest.mark.parametrize("address", ["nats://", "nats://h?lease_ms=999", "nats://h?lease_ms=x", "nats://h?other=1"])
def test_an_address_that_is_none_is_refused_with_how_to_say_it(address: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match=r"STORE_ADDRESS_INVALID.*nats://HOST:PORT"):
        stores.store_at(address, tmp_path, trusted=TRUSTED)


class Missing:
    """Finds no module of this name where the store of a cluster is imported."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name == "remit.backend.cluster.store":
            raise ModuleNotFoundError(name=self._name)


@pytest.mark.parametrize("name", ["nats", "nats.aio"])
def test_without_the_client_of_nats_its_extra_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "remit.backend.cluster.store")
    monkeypatch.setattr("sys.meta_path", [Missing(name), *sys.meta_path])
    with pytest.raises(RequestRejected, match=r"STORE_EXTRA_MISSING.*pip install 'remit\[nats\]'"):
        stores.open_to_read("nats://h", tmp_path, trusted=TRUSTED)


def test_another_module_that_is_missing_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "remit.backend.cluster.store")
    monkeypatch.setattr("sys.meta_path", [Missing("zlib"), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError):
        stores.open_to_read("nats://h", tmp_path, trusted=TRUSTED)


def test_a_cluster_is_opened_to_write_to_read_and_to_be_looked_at(tmp_path: Path) -> None:
    address = clear()

    async def scene() -> None:
        settings = settings_of({"XDG_CONFIG_HOME": str(tmp_path / "config")}, home=tmp_path / "home", store=address)
        for store in (
            reopened_store(settings),
            stores.open_to_read(f"{address}?lease_ms=2000", tmp_path / "home", trusted=TRUSTED),
        ):
            assert isinstance(store, ClusterStore)
            assert list(await store.catalogue.entries()) == []
            await store.close()
        assert {"store", "store.nodes"} <= {check.name for check in await examine(settings)}

    asyncio.run(scene())


def test_what_is_halted_on_a_cluster_is_known_without_an_event_loop(tmp_path: Path) -> None:
    address = clear()
    settings = settings_of({}, home=tmp_path, store=address)

    async def halt() -> None:
        store = stores.store_at(address, tmp_path, trusted=TRUSTED)
        await Halts(store.halts, WallClock()).write(HaltScope(), by="ann", why="a test")
        await store.close()

    with halts_of(settings) as standing:
        assert not standing().halts
        asyncio.run(halt())
        assert standing().halts


def test_a_folder_is_opened_as_before(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(StoreUnusable, match="STORE_NOT_FOUND"):
        stores.expect_there("", home)
    with stores.standing_halts("", home, WallClock(), trusted=TRUSTED) as standing:
        assert not standing().halts
        store = stores.store_at("", home, trusted=TRUSTED)
        assert isinstance(store, EmbeddedStore)
        assert not standing().halts
    stores.expect_there("", home)
    stores.expect_there("nats://h", home)
    asyncio.run(store.close())
    assert isinstance(stores.open_to_read("", home, trusted=TRUSTED), EmbeddedStore)


def test_a_server_of_this_machine_keeps_its_streams_in_the_folder(tmp_path: Path) -> None:
    settings = settings_of({}, home=tmp_path / "home")
    for count in (1, 2):
        with local_server(settings, -1) as address:
            store = stores.store_at(address, settings.home, trusted=TRUSTED)
            asyncio.run(add(store.journal, f"run{count}", b"0", listing=RunListing(1)))
            assert len(asyncio.run(_entries(store))) == count
            asyncio.run(store.close())


async def _entries(store: Store) -> Sequence[RunEntry]:
    return await store.catalogue.entries()
