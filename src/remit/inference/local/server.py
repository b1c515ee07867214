"""Loaded models: each is in memory once for all engines and runs of a process, and has a few slots to answer in.

Rule 1: a model is loaded when it is first asked, in a thread, and by one of those who wait; the others wait with it.
Rule 2: a slot has a thread of its own, so that no call waits inside the server, where it could not be cancelled.
Rule 3: the server's listener is a socket in a private folder that is gone once the model is loaded: no process can reach it.
Rule 4: a server that cannot be started is an EngineFault, and is started anew for the next call.
Rule 5: a process that was forked off has no threads of its parent: it loads its models anew, and never ends a server,
        which would wait for those threads without end.
Rule 6: a slot has one call at a time; the call that takes one gives it back. A conversation goes on in the slot that
        remembers it, if that is free. Another takes the one that was used longest ago, because the server would rather take
        the slot of a conversation with the same instructions. A wrong choice costs time, never an answer.
"""

import ctypes
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakSet

from remit.core.failure import ErrorCode
from remit.core.record import JsonObject
from remit.inference.engine import EngineFault

# All conversations of a program may begin with the same instructions; the second message tells them apart.
SHARED_MIN = 2
# Two conversations keep their place side by side; more would share the same cores and take a window of memory each.
SLOTS = 2
# What a long conversation takes beside the 2,048 tokens of output that patterns ask for; a small model keeps 190 MB for it.
WINDOW_MAX = 8192
# The server rounds a window to multiples of so many tokens.
WINDOW_STEP = 256
# How much of a prompt is read between two looks at whether the call was cancelled: a fifth of a second on one core. Twice
# as much is read a tenth faster, and holds a slot twice as long after a cancel.
BATCH_TOKENS = 32
# So many models stay in memory; a process that asks more of them loads the one again that was asked longest ago.
LOADED_MAX = 4
# The name of a socket has at most 104 bytes on some systems, and ours takes some; where the folder for temporary files has
# a longer name than this, the system's own is used.
TEMPORARY_BYTES_MAX = 64
SYSTEM_TEMPORARY = "/tmp"  # noqa: S108  # the folder made in it is private
# Tells when a model is being loaded and when it is there, at the level INFO; a program may show it.
_log = logging.getLogger(__name__)
# Hears an event of the server; True ends the call.
Hear: TypeAlias = Callable[[Any], bool]
# Asks a server that runs in this process, and returns when the call has ended.
AskModel: TypeAlias = Callable[[JsonObject, Hear], Any]
# All that there are, so that a forked process finds them.
_everybodys: "WeakSet[LoadedModels]" = WeakSet()
# Set in a process that was forked off one with a model: the runtime counts on threads that are gone, so none of its
# servers can be ended there.
_inherited = Event()


class Slots:
    """The slots of one model; as many threads as there are slots take them."""

    def __init__(self, count: int) -> None:
        self._lock = Lock()
        # Of the free ones, the one that was used longest ago comes first.
        self._free: dict[int, Sequence[JsonObject]] = dict.fromkeys(range(count), ())

    def take(self, turns: Sequence[JsonObject]) -> int:
        """The best free slot for a conversation."""
        with self._lock:
            assert self._free, "there are as many slots as threads that take them"
            shared, slot = max((_shared(turns, kept), slot) for slot, kept in self._free.items())
            if shared < SHARED_MIN:
                slot = next(iter(self._free))
            del self._free[slot]
            return slot

    def give_back(self, slot: int, turns: Sequence[JsonObject]) -> None:
        """The slot is free again, and remembers the conversation."""
        with self._lock:
            self._free[slot] = turns


def _shared(turns: Sequence[JsonObject], kept: Sequence[JsonObject]) -> int:
    """With how many equal messages two conversations begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(turns, kept, strict=False)))


class ModelFile(NamedTuple):
    """The file of a model as it was found; one that has changed since is another model."""

    path: Path
    size_bytes: int
    changed_at_ns: int
    window: int


class LoadedModel:
    """A model, loaded once, with a thread for each of its slots."""

    def __init__(self, file: ModelFile, start: Callable[[ModelFile], AskModel]) -> None:
        self._file = file
        self._start = start
        self._ask: AskModel | None = None
        self._loading = Lock()
        self._slots = Slots(SLOTS)
        self.threads = ThreadPoolExecutor(SLOTS, thread_name_prefix=f"remit-{file.path.stem}")

    def ask(self, body: JsonObject, hear: Hear) -> None:
        """Ask the model, in one of its threads; `hear` is called there with every event, and ends the call with True."""
        ask_server = self._ready()
        turns = body["messages"]
        slot = self._slots.take(turns)
        try:
            ask_server({**body, "id_slot": slot}, hear)
        except RuntimeError as error:
            message = f"the local model could not be asked: {error!s:.300}"
            raise EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, message) from error
        finally:
            self._slots.give_back(slot, turns)

    def disown(self) -> bool:
        """After a fork, in the child: never let the server be ended. Says whether there was one."""
        if self._ask is None:
            return False
        # One reference more, which is never given back.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._ask))
        return True

    def _ready(self) -> AskModel:
        with self._loading:
            if self._ask is None:
                _log.info("loading model %s", self._file.path.name)
                began_s = time.monotonic()
                try:
                    self._ask = self._start(self._file)
                except (ImportError, OSError, RuntimeError) as error:
                    message = f"the model in {str(self._file.path)!r} cannot be loaded: {error!s:.200}"
                    raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, message) from error
                if _inherited.is_set():
                    self.disown()
                _log.info("loaded model %s in %.1f s", self._file.path.name, time.monotonic() - began_s)
            return self._ask


def _after_fork() -> None:
    """In the child: forget what was inherited, and end without the runtime's own cleaning, which would wait for threads."""
    inherited = [models.forget_inherited() for models in list(_everybodys)]
    if any(inherited):
        _inherited.set()
        libc = ctypes.CDLL(None)
        # Where the system has it: the last thing that the process does, with the status that it ends with.
        if hasattr(libc, "on_exit"):
            libc.on_exit(libc["_exit"], None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class LoadedModels:
    """The models that a process has in memory."""

    def __init__(self) -> None:
        self._models: dict[ModelFile, LoadedModel] = {}
        self._lock = Lock()
        _everybodys.add(self)

    def forget_inherited(self) -> bool:
        """After a fork, in the child: what the parent has loaded cannot be asked here. Says whether there was any."""
        inherited = [model.disown() for model in self._models.values()]
        self._models, self._lock = {}, Lock()
        return any(inherited)

    def of(self, path: Path, window: int) -> LoadedModel:
        """The model of a file. It is the same for all who ask, for as long as the file is what it was."""
        try:
            found = path.stat()
        except OSError as error:
            message = f"the model's file {str(path)!r} is gone: {error.strerror}; put it back, or name another one"
            raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, message) from error
        file = ModelFile(path, found.st_size, found.st_mtime_ns, window)
        with self._lock:
            # Taken out and put back, so that the model that was asked last is the last to go.
            model = self._models.pop(file, None) or LoadedModel(file, start_server)
            self._models[file] = model
            if len(self._models) > LOADED_MAX:
                # Calls that are under way keep it in memory until they have ended.
                del self._models[next(iter(self._models))]
        return model


def window_of(context_length: int) -> int:
    """How many tokens one conversation may have, for a model that was trained on so many."""
    return max(min(context_length or WINDOW_MAX, WINDOW_MAX) // WINDOW_STEP, 1) * WINDOW_STEP


def threads_of(cores: int) -> int:
    """How many threads compute: all cores but one. With none left for others, all of them would be waiting."""
    return max(cores - 1, 1)


def start_server(file: ModelFile) -> AskModel:
    """Load a model into a server of this process that no other process can reach, and return what asks it."""
    import xllamacpp  # type: ignore[import-untyped]  # it ships no types

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(file.path)
    # The server divides what it is given among its slots.
    parameters.n_ctx, parameters.n_parallel = file.window * SLOTS, SLOTS
    parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads_of(_cores())
    # It keeps quiet: standard output and error belong to the program.
    parameters.verbosity = -1
    # The last message of an assistant is answered, not continued.
    parameters.prefill_assistant = False
    # Conversations are kept in the slots alone; the server would set gigabytes aside for those that lost theirs.
    parameters.cache_ram_mib = 0
    parameters.fit_params = parameters.warmup = parameters.ui = parameters.endpoint_slots = False
    parameters.endpoint_metrics = True
    parameters.n_threads_http = 1
    parameters.api_keys = [secrets.token_hex(32)]
    with tempfile.TemporaryDirectory(prefix="remit-", dir=_socket_folder()) as private:
        parameters.hostnames = [f"{private}/model.sock"]
        server = xllamacpp.Server(parameters)
    # It answers once its loop runs. One that is dropped before would be waited for without end.
    server.handle_metrics()
    ask: AskModel = server.handle_chat_completions
    return ask


def _socket_folder() -> str | None:
    """Where the private folder is made: the usual place, unless a socket's name would not fit there."""
    return None if len(os.fsencode(tempfile.gettempdir())) <= TEMPORARY_BYTES_MAX else SYSTEM_TEMPORARY


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
