"""A model is loaded once for all who ask it, when it is first asked, into a server that no other process can reach."""

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.record import JsonObject
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import assistant_message, user_message
from remit.inference.engine import EngineFault
from remit.inference.local import server
from remit.inference.local.request import body_of
from remit.inference.local.server import (
    LOADED_MAX,
    SLOTS,
    WINDOW_MAX,
    AskModel,
    LoadedModel,
    LoadedModels,
    ModelFile,
    Slots,
    start_server,
    threads_of,
    window_of,
)
from tests.unit.inference.tiny_model import WINDOW, write_tiny_model

HELLO = body_of(ModelRequest((user_message("hello"),), max_tokens=3))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


def file_of(path: Path) -> ModelFile:
    return ModelFile(path, path.stat().st_size, path.stat().st_mtime_ns, WINDOW)


def heard_from(model: LoadedModel, body: dict[str, Any] = HELLO) -> list[Any]:
    events: list[Any] = []

    def hear(event: Any) -> bool:
        events.append(event)
        return False

    model.ask(body, hear)
    return events


def test_a_model_is_loaded_when_it_is_first_asked_and_then_stays(tiny: Path, caplog: pytest.LogCaptureFixture) -> None:
    started: list[ModelFile] = []

    def start(file: ModelFile) -> AskModel:
        started.append(file)
        return start_server(file)

    model = LoadedModel(file_of(tiny), start)
    assert started == []
    with caplog.at_level(logging.INFO, server.__name__):
        heard_from(model)
        heard_from(model)
    assert started == [file_of(tiny)]
    assert [record.getMessage()[:26] for record in caplog.records] == [
        "loading model tiny.gguf",
        "loaded model tiny.gguf in ",
    ]


def test_those_who_ask_at_the_same_time_wait_for_one_loading(tiny: Path) -> None:
    started: list[ModelFile] = []

    def start(file: ModelFile) -> AskModel:
        started.append(file)
        return start_server(file)

    model = LoadedModel(file_of(tiny), start)
    answers = list(model.threads.map(lambda _: heard_from(model), range(4)))
    assert len(started) == 1
    assert all("usage" in answer[-1] for answer in answers)


def test_the_same_file_is_the_same_model_and_a_changed_one_is_another(tiny: Path) -> None:
    models = LoadedModels()
    first = models.of(tiny, WINDOW)
    assert models.of(tiny, WINDOW) is first
    write_tiny_model(tiny, general__name="Changed")
    assert models.of(tiny, WINDOW) is not first


def test_the_model_that_was_asked_longest_ago_is_the_first_to_go(tmp_path: Path) -> None:
    paths = [write_tiny_model(tmp_path / f"{number}.gguf") for number in range(LOADED_MAX + 1)]
    models = LoadedModels()
    kept, gone, *_ = [models.of(path, WINDOW) for path in paths[:LOADED_MAX]]
    assert models.of(paths[0], WINDOW) is kept
    models.of(paths[LOADED_MAX], WINDOW)
    assert models.of(paths[0], WINDOW) is kept
    assert models.of(paths[1], WINDOW) is not gone


def test_a_file_that_is_gone_is_a_model_that_is_not_available(tiny: Path) -> None:
    tiny.unlink()
    with pytest.raises(EngineFault) as caught:
        LoadedModels().of(tiny, WINDOW)
    assert caught.value.code is ErrorCode.INFERENCE_MODEL_UNAVAILABLE
    assert str(tiny) in caught.value.message


def test_a_file_that_cannot_be_loaded_is_a_model_that_is_not_available(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\xff" * 64)
    model = LoadedModels().of(broken, WINDOW)
    for _ in range(2):
        with pytest.raises(EngineFault) as caught:
            heard_from(model)
        assert caught.value.code is ErrorCode.INFERENCE_MODEL_UNAVAILABLE
        assert str(broken) in caught.value.message


def test_a_loading_that_failed_is_tried_again_with_the_next_call(tiny: Path) -> None:
    troubles: list[Exception] = [OSError("no space left"), ImportError("no such library")]

    def start(file: ModelFile) -> AskModel:
        if troubles:
            raise troubles.pop(0)
        return start_server(file)

    model = LoadedModel(file_of(tiny), start)
    for said in ("no space left", "no such library"):
        with pytest.raises(EngineFault, match=said) as caught:
            heard_from(model)
        assert caught.value.code is ErrorCode.INFERENCE_MODEL_UNAVAILABLE
    assert heard_from(model)


def test_what_the_server_cannot_even_read_is_an_engine_error(tiny: Path) -> None:
    with pytest.raises(EngineFault) as caught:
        heard_from(LoadedModels().of(tiny, WINDOW), {**HELLO, "messages": [{"role": "user", "content": "\ud800"}]})
    assert caught.value.code is ErrorCode.INFERENCE_ENGINE_ERROR


def test_nobody_can_reach_the_server_and_it_leaves_nothing_behind(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = Path("/tmp") / f"remit-test-{os.getpid()}"
    temporary.mkdir()
    try:
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        ask = start_server(file_of(tiny))
        # The system's own list of sockets.
        [listener] = [line for line in Path("/proc/net/unix").read_text().splitlines() if str(temporary) in line]
        assert list(temporary.iterdir()) == []
        with socket.socket(socket.AF_UNIX) as knocking, pytest.raises(FileNotFoundError):
            knocking.connect(listener.split()[-1])
        del ask
    finally:
        temporary.rmdir()


def test_a_temporary_folder_with_a_long_name_is_no_obstacle(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    heard_from(LoadedModel(file_of(tiny), start_server))
    assert list(deep.iterdir()) == []


# What a child does that was forked off with a model in memory.
FORKING = """
import os, sys
from pathlib import Path
from remit.inference.local.server import LoadedModels
from tests.unit.inference.test_local_server import heard_from

models, path = LoadedModels(), Path(sys.argv[1])
heard_from(models.of(path, 512))
child = os.fork()
if child == 0:
    if sys.argv[2] == "asks":
        assert "usage" in heard_from(models.of(path, 512))[-1]
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
heard_from(models.of(path, 512))
print("both ended")
"""


@pytest.mark.parametrize("does", ["asks", "leaves"])
def test_a_process_that_is_forked_off_loads_its_own_and_ends(tiny: Path, does: str) -> None:
    command = [sys.executable, "-c", FORKING, str(tiny), does]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "both ended\n"), done.stderr


def test_who_has_loaded_nothing_has_nothing_to_forget(tiny: Path) -> None:
    models = LoadedModels()
    first = models.of(tiny, WINDOW)
    assert not models.forget_inherited()
    assert models.of(tiny, WINDOW) is not first


def test_the_server_keeps_quiet(tiny: Path, capfd: pytest.CaptureFixture[str]) -> None:
    heard_from(LoadedModels().of(tiny, WINDOW))
    assert capfd.readouterr() == ("", "")


def test_every_slot_has_the_whole_window(tiny: Path) -> None:
    # Each letter is a token: a conversation that fills the window in any slot, and one that does not fit any.
    fits = body_of(ModelRequest((user_message("x" * (WINDOW - 40)),), max_tokens=1))
    model = LoadedModels().of(tiny, WINDOW)
    answers = list(model.threads.map(lambda _: heard_from(model, fits), range(SLOTS)))
    assert all("usage" in answer[-1] for answer in answers)
    too_long = body_of(ModelRequest((user_message("x" * WINDOW),)))
    [refusal] = heard_from(model, too_long)
    assert refusal["error"]["n_ctx"] == WINDOW


def test_the_next_exchange_of_a_conversation_reads_only_what_is_new(tiny: Path) -> None:
    model = LoadedModels().of(tiny, WINDOW)
    first = (user_message("x" * 100),)
    then = (*first, assistant_message("y" * 10), user_message("z" * 20))
    cold, warm, elsewhere = [
        heard_from(model, body_of(ModelRequest(messages, max_tokens=1)))[-1]["timings"]
        for messages in (first, then, (user_message("other"),))
    ]
    assert cold["cache_n"] == 0
    assert warm["cache_n"] >= 100
    assert warm["prompt_n"] < 100
    assert elsewhere["cache_n"] == 0
    # The other conversation took the other slot, and this one goes on where it was.
    assert heard_from(model, body_of(ModelRequest(then, max_tokens=1)))[-1]["timings"]["prompt_n"] == 1


@pytest.mark.parametrize(
    ("context_length", "window"),
    [(0, WINDOW_MAX), (131_072, WINDOW_MAX), (8192, 8192), (2048, 2048), (2000, 1792), (1, 256)],
)
def test_a_window_is_what_the_model_was_trained_on_up_to_a_limit(context_length: int, window: int) -> None:
    assert window_of(context_length) == window


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (8, 7)])
def test_one_core_is_left_to_others(cores: int, threads: int) -> None:
    assert threads_of(cores) == threads


def conversation(*texts: str) -> list[JsonObject]:
    return [{"role": "system", "content": "Be brief."}, *({"role": "user", "content": text} for text in texts)]


def visited(slots: Slots, *texts: str) -> int:
    """The slot in which a conversation is asked."""
    turns = conversation(*texts)
    slot = slots.take(turns)
    slots.give_back(slot, turns)
    return slot


def test_a_conversation_goes_on_in_the_slot_that_remembers_it() -> None:
    slots = Slots(2)
    first, second = visited(slots, "a"), visited(slots, "b")
    assert first != second
    assert visited(slots, "a", "more") == first
    assert visited(slots, "b", "more") == second
    assert visited(slots, "b", "something else") == second


def test_a_new_conversation_takes_the_slot_that_was_used_longest_ago() -> None:
    slots = Slots(2)
    first, second = visited(slots, "a"), visited(slots, "b")
    assert visited(slots, "a", "more") == first
    assert visited(slots, "c") == second


def test_the_same_instructions_alone_do_not_make_it_the_same_conversation() -> None:
    slots = Slots(2)
    assert visited(slots, "a") != visited(slots, "b")


def test_of_two_that_remember_it_the_one_that_remembers_more_is_taken() -> None:
    slots = Slots(2)
    short, long = conversation("a"), conversation("a", "b", "c")
    one, other = slots.take(short), slots.take(long)
    slots.give_back(other, long)
    slots.give_back(one, short)
    assert visited(slots, "a", "b", "c", "d") == other


def test_a_conversation_whose_slot_is_taken_gets_another() -> None:
    slots = Slots(2)
    slot = visited(slots, "a")
    assert slots.take(conversation("a")) == slot
    assert slots.take(conversation("a")) != slot


def test_a_conversation_without_messages_has_a_slot() -> None:
    slots = Slots(1)
    assert slots.take([]) == 0
