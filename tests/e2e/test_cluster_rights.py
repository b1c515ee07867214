"""What a key may not do on a cluster is refused before anything is written or removed, and a run that was taken out is named."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit.backend.cluster.server.connection import connect, server_answer
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING
from tests.e2e.command import Answer, Remit, until
from tests.e2e.house import calls, says
from tests.e2e.test_cluster_doors import LONG, TOOLS, said
from tests.nats_server import clear, server


class Deployment:
    """An owner with two runs on a cluster, and a worker whose key was admitted for tools."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.owner, self.store = folder, Remit(folder), clear()
        self.worker = ("--home", str(folder / "worker"), "--store", self.store)
        self.owner.write(TOOLS, [says(LONG)])
        self.ended = self.at_owner(*self.owner._run()).values["run_id"]
        self.owner.write(TOOLS, [calls("note", {"text": "x"}), says("Noted.")])
        begun = self.at_owner(*self.owner._run())
        assert begun.exit_code == EXIT_WAITING
        self.waits, self.packet = begun.values["run_id"], begun.values["waiting_for"]["packet_ids"][0]
        self.export = str(folder / "run.jsonl")
        assert self.at_owner("export", self.waits, "--output", self.export).exit_code == EXIT_OK
        dids = [
            said("keys", "--home", str(home), "--json").values["did"] for home in (self.owner.home, folder / "worker")
        ]
        monkeypatch.setenv("REMIT_TRUST", " ".join([os.environ["REMIT_TRUST"], *dids]))
        self.did = dids[1]
        assert self.at_owner("keys", "admit", self.did, "--role", "tools").exit_code == EXIT_OK

    def at_owner(self, *words: str) -> Answer:
        return self.owner.here(*words, "--store", self.store)

    def at_worker(self, *words: str) -> Answer:
        return said(*words, *self.worker)

    def filled(self, words: str) -> list[str]:
        return words.format(**vars(self)).split()


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return Deployment(tmp_path, monkeypatch)


def on_server(ask: Callable[[Callable[..., Any]], Any]) -> Any:
    """What a client of the server finds or does there."""

    async def story() -> Any:
        client = await connect(server().address, name="test")
        try:
            return await ask(lambda subject, question=None: server_answer(client, f"$JS.API.{subject}", question))
        finally:
            await client.close()

    return asyncio.run(story())


def standing() -> object:
    """All that stands on the server, but for who is alive."""

    async def look(ask: Callable[..., Any]) -> object:
        found = {}
        for name in ("AGENT", "AGENT_TEXTS", "KV_AGENT_KEYS"):
            state = (await ask(f"STREAM.INFO.{name}", {"subjects_filter": ">"}))["state"]
            found[name] = state["last_seq"], state["messages"], state.get("subjects")
        return found

    return on_server(look)


WRITES = (
    "delete {ended}",
    "delete {waits}",
    "gc --older-than 0",
    "redact {ended} --pattern any --why x",
    "halt --why x",
    "halt --tool note --why x",
    "approve {packet}",
    "reject {packet}",
    "signal {waits} cancel",
    "signal {waits} feedback hello",
    "signal {ended} retry --why x",
    "resume {waits}",
    "fork {ended} --at 0",
    "grants give --like {packet} --times 2 --until 1d",
    "run hello --engine scripted:{folder}/script.json",
    "worker loop",
    "worker model --engine scripted:{folder}/script.json",
)


@pytest.mark.parametrize("words", WRITES)
def test_what_a_key_was_not_admitted_for_is_refused_before_anything_is_written(words: str, house: Deployment) -> None:
    before = standing()
    refused = house.at_worker(*house.filled(words))
    assert refused.error_code == "CAPABILITY_LACKING", refused
    assert refused.exit_code == EXIT_FAILED
    assert refused.out == ""
    assert standing() == before
    assert house.at_owner("verify", "--all").exit_code == EXIT_OK
    assert house.at_owner("approve", house.packet, "--json").values["terminal_code"] == "SUCCESS"


def test_a_key_that_was_admitted_admits_nobody_in_the_place_of_its_deployment(house: Deployment) -> None:
    before = standing()
    for words in (("keys", "admit", house.did, "--role", "loop"), ("keys", "revoke", house.did, "--why", "x")):
        refused = house.at_worker(*words)
        if words[1] == "admit":
            assert refused.error_code == "KEYS_NOT_ROOT", refused
            assert standing() == before
    # Everybody may give up a key of their own.
    assert house.at_worker("run", "hello", "--engine", "local").error_code == "SIGNER_REVOKED"


def test_what_a_run_needs_for_its_import_is_refused_as_well(house: Deployment) -> None:
    assert house.at_owner("delete", house.waits).exit_code == EXIT_OK
    before = standing()
    refused = house.at_worker("import", house.export, "--json")
    assert refused.error_code == "CAPABILITY_LACKING", refused
    assert standing() == before


def test_a_tool_worker_whose_statement_is_over_says_so_and_ends(house: Deployment) -> None:
    tools = ("worker", "tools", "--tools", str(house.folder / "tools.py"))
    assert house.at_owner("keys", "admit", house.did, "--role", "model").exit_code == EXIT_OK
    refused = house.at_worker(*tools)
    assert (refused.exit_code, refused.error_code) == (EXIT_FAILED, "CAPABILITY_LACKING"), refused


def test_each_part_works_with_a_key_that_was_admitted_for_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, store = Remit(tmp_path), clear()
    owner.write(TOOLS, [calls("note", {"text": "x"}), says("Noted.")])
    script, tools = f"scripted:{tmp_path}/script.json", str(tmp_path / "tools.py")
    parts = {"loop": (), "model": ("--engine", script), "tools": ("--tools", tools)}
    homes = {part: tmp_path / part for part in parts}
    dids = {part: said("keys", "--home", str(home), "--json").values["did"] for part, home in homes.items()}
    own = owner.here("keys", "--json").values["did"]
    monkeypatch.setenv("REMIT_TRUST", " ".join([os.environ["REMIT_TRUST"], own, *dids.values()]))
    for part, did in dids.items():
        assert owner.here("keys", "admit", did, "--role", part, "--store", store).exit_code == EXIT_OK
    started = []
    for part, words in parts.items():
        worker = Remit(tmp_path)
        worker.home = homes[part]
        started.append(worker.start("worker", part, *words, "--nats", f"{store}?lease_ms=2000"))
    try:
        begun = owner.here(*owner._run(), "--store", f"{store}?drive=workers")
        assert begun.exit_code == EXIT_WAITING, begun
        packet = begun.values["waiting_for"]["packet_ids"][0]
        assert owner.here("approve", packet, "--store", f"{store}?drive=workers").exit_code == EXIT_OK
        until(lambda: "SUCCESS" in owner.here("verify", "last", "--store", store).out, "the workers have ended it")
        assert (tmp_path / "notes").read_text() == "x\n"
    finally:
        for one in started:
            one.process.terminate()
        ended = [one.answer() for one in started]
    assert [one.exit_code for one in ended] == [EXIT_OK] * 3, ended
    assert owner.here("verify", "--all", "--store", store).exit_code == EXIT_OK
    looked = owner.here("doctor", "--json", "--store", store)
    assert "STORE_ENTRIES_REFUSED" not in looked.out


def purged(pattern: str) -> None:
    async def purge(ask: Callable[..., Any]) -> None:
        found = await ask("STREAM.PURGE.AGENT", {"filter": pattern})
        assert found["purged"] > 0

    on_server(purge)


def test_a_run_that_was_purged_is_named_by_whatever_is_left_of_it(house: Deployment) -> None:
    session = house.at_owner(*house.owner._run(), "--session", "s1").values["run_id"]
    for words, code in ((("verify", "--all"), EXIT_OK), (("restore", "--all"), EXIT_OK), (("doctor",), EXIT_OK)):
        assert house.at_owner(*words).exit_code == code
    # A client of the server that may purge does so, without a word.
    purged(f"agent.log.run.{session}")
    verified = house.at_owner("verify", "--all")
    assert (verified.exit_code, f"{session}: RUN_GONE" in verified.out) == (EXIT_FAILED, True), verified
    doubt = house.at_owner("restore", "--all")
    assert (doubt.exit_code, f"run {session} is gone, and was not deleted" in doubt.out) == (EXIT_WAITING, True), doubt
    looked = house.at_owner("doctor", "--json")
    assert looked.exit_code == EXIT_FAILED
    problems = [one["seen"] for one in looked.values["checks"] if one["code"] == "STORE_BEHIND_ITS_LOG"]
    assert [session in one for one in problems] == [True], json.dumps(problems)
    assert house.at_owner("show", session).error_code == "RUN_MISSING"
    # One that its owner deletes is named by that word, and missed by no process.
    assert house.at_owner("delete", house.ended).exit_code == EXIT_OK
    assert house.ended not in house.at_owner("verify", "--all").out
