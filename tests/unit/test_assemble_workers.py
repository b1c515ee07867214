"""Workers as processes have them: assembled from settings, served until they are told to end, with figures to look at."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from remit import assemble_workers
from remit.assemble import Settings, kit_for, opened_system, settings_of
from remit.backend.cluster.server.nats_server import NatsServer
from remit.backend.cluster.work import errand_queue
from remit.core.failure import EXIT_OK, Ending, RequestRejected
from remit.core.journal.queued import ErrandName, Lane
from remit.observe.worker_figures import WorkerFigures, serve_figures
from tests.e2e.command import Remit
from tests.e2e.house import asking, calls, says
from tests.nats_server import clear, free_ports, opened

TOOLS = """
from remit import tool

@tool(effect="read", network=False)
def look() -> int:
    \"\"\"Look.\"\"\"
    return 3
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(errand_queue, "PULL_S", 0.2)
    monkeypatch.chdir(tmp_path)
    Remit(tmp_path).write(TOOLS, [calls("look"), says("Three.")])
    return settings_of(home=tmp_path / "home", store=clear())


def engine(folder: Path) -> str:
    """The spec of the model that the script plays."""
    (script,) = folder.glob("*.json")
    return f"scripted:{script}"


async def asked_at(port: int, path: str) -> str:
    """What is answered on a port of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    found = (await reader.read()).decode()
    writer.close()
    return found


def test_one_worker_of_each_kind_does_a_whole_run_and_leaves_when_it_is_told_to(
    settings: Settings, tmp_path: Path
) -> None:
    (tools,) = tmp_path.glob("*.py")

    async def story() -> None:
        (port,) = free_ports(1)
        workers = [
            await asyncio.to_thread(assemble_workers.loop_worker, settings, 4),
            await asyncio.to_thread(assemble_workers.model_worker, settings, [engine(tmp_path)], 1),
            await asyncio.to_thread(assemble_workers.tool_worker, settings, [str(tools)], 1),
        ]
        served = [asyncio.ensure_future(one.serve()) for one in workers[:2]]
        last = asyncio.ensure_future(assemble_workers.serve(workers[2], port=port))
        address = f"{settings.store}?drive=workers"
        async with opened_system(settings_of(home=settings.home, store=address)) as system:
            kit = kit_for(engine(tmp_path), [str(tools)], base=tmp_path)
            response = await system.run(asking("How many?"), kit)
            assert (response.terminal_code, response.content) == (Ending.SUCCESS, "Three.")
        assert 'remit_worker_done{came="done",kind="tool"} 1.0' in await asked_at(port, "/metrics")
        assert "ok" in await asked_at(port, "/health")
        assert "404" in await asked_at(port, "/else")
        assert workers[0].figures().done == {"taken": 1}
        os.kill(os.getpid(), signal.SIGTERM)
        await last
        for one in workers[:2]:
            await one.leave()
        await asyncio.gather(*served)

    asyncio.run(story())


async def ready() -> bool:
    return True


def test_a_worker_is_not_well_while_no_server_answers_it(tmp_path: Path) -> None:
    async def story() -> None:
        port, server_port = free_ports(2)
        with NatsServer(tmp_path / "nats", port=server_port, sync="1m") as nats:
            there = settings_of(home=tmp_path / "home", store=nats.address)
            worker = await asyncio.to_thread(assemble_workers.loop_worker, there, 1)
            served = asyncio.ensure_future(worker.serve())
            async with serve_figures(port, worker.figures, worker.is_ready):
                assert "200" in await asked_at(port, "/health")
                nats.stop()
                assert "503" in await asked_at(port, "/health")
                assert "200" in await asked_at(port, "/live")
                nats.start()
                async with asyncio.timeout(30):
                    while True:
                        if "200" in await asked_at(port, "/health"):
                            break
            await worker.leave()
            await served

    asyncio.run(story())


def test_who_asks_nothing_of_a_worker_is_told_nothing_and_breaks_nothing() -> None:
    async def story() -> None:
        (port,) = free_ports(1)
        async with serve_figures(port, lambda: WorkerFigures("loop", 0, {}), ready):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            assert "404" in await asked_at(port, "")

    asyncio.run(story())


def test_workers_need_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as refused:
        assemble_workers.loop_worker(settings_of(home=tmp_path), 1)
    assert refused.value.code == assemble_workers.WORKER_STORE_LOCAL


def test_the_command_makes_this_process_a_worker(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave_at_once(worker: assemble_workers.Serving, *, port: int = 0) -> None:
        await worker.leave()
        await worker.serve()

    monkeypatch.setattr(assemble_workers, "serve", leave_at_once)
    remit, where = Remit(tmp_path), ("--nats", settings.store)
    (tools,) = tmp_path.glob("*.py")
    assert remit.here("worker", "loop", *where).exit_code == EXIT_OK
    assert remit.here("worker", "model", "--engine", engine(tmp_path), *where).exit_code == EXIT_OK
    assert remit.here("worker", "tools", "--tools", str(tools), *where).exit_code == EXIT_OK
    for wrong in (("model",), ("tools",), ("loop", "--concurrency", "0")):
        assert remit.here("worker", *wrong, *where).error_code == "USAGE"


def test_the_command_shows_dead_letters_and_sends_them_again(settings: Settings, tmp_path: Path) -> None:
    remit, where = Remit(tmp_path), ("--nats", settings.store)
    remit.home = settings.home
    assert "no dead letters" in remit.here("worker", "letters", *where).err

    async def buried() -> None:
        store = await asyncio.to_thread(opened, settings.home)
        lane = Lane("tool", "look", "v")
        await store.queue.letters.keep(ErrandName("run", "1.1"), lane, b"", "ERRAND_POISON", "it kills")
        await store.queue.letters.keep(ErrandName("", "", 0), lane, b"", "ERRAND_MISADDRESSED", "it names nothing")
        await store.close()

    asyncio.run(buried())
    listed = remit.here("worker", "letters", *where)
    assert "ERRAND_POISON  tool look  run run, command 1.1: it kills" in listed.out
    first, second = (line.split()[0] for line in listed.out.splitlines())
    assert remit.here("worker", "letters", "--replay", second, *where).error_code == "LETTER_EMPTY"
    sent = remit.here("worker", "letters", "--replay", first, "--wait", "0", "--json", *where).values
    assert (sent["name"]["attempt"], sent["came"]) == (2, "")
    assert "no worker has performed it so far" in sent["outcome"]
    assert len(remit.here("worker", "letters", "--json", *where).out.splitlines()) == 1


def test_workers_of_this_machine_end_with_the_work_of_the_process_that_started_them(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Obstinate:
        """A process that only dies when it is killed."""

        def __init__(self, words: list[str], **_: object) -> None:
            started.append(words)
            self.is_killed = False

        def terminate(self) -> None:
            """It hears nothing."""

        def kill(self) -> None:
            self.is_killed = True

        def wait(self, timeout: float = 0) -> None:
            if not self.is_killed:
                raise subprocess.TimeoutExpired("worker", timeout)

    monkeypatch.setattr(subprocess, "Popen", Obstinate)
    with assemble_workers.local_workers(settings, "local", ["tools.py"]):
        assert [words[words.index("worker") + 1] for words in started] == ["loop", "model", "tools"]
