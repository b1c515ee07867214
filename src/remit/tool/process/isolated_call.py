"""An isolated call: a process of its own that can be killed, with everything it started.

Rule 1: the process leads a session and a group of its own; what ends a call is a signal to the whole group.
Rule 2: the group is killed before its leader is awaited, since until then no other process can get its number.
Rule 3: what the tool prints is read all the time, so that it never blocks, and kept up to a limit.
Rule 4: a process that was killed has no outcome, unless it told one before.
Rule 5: it is no sandbox: a tool reads what its user reads, and reaches what its user reaches. `sandbox=True` is one.
Rule 6: secrets go through the pipe of the job; neither the command line nor the environment of the process holds them.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

from remit.core.failure import ErrorCode
from remit.core.raised import raised
from remit.core.record import JsonObject
from remit.core.schema.json_text import parse_with_oddities
from remit.tool.call.arguments import NO_SECRETS_LENT
from remit.tool.call.call_metadata import NO_METADATA
from remit.tool.call.outcomes import ERROR_CHARS_MAX, RESULT_BYTES_MAX, Killed, Performed, ToolFault, last_part
from remit.tool.declare.decorator import Tool
from remit.tool.process.confinement import BOXED, environment_for
from remit.tool.process.framing import LENGTH_BYTES, write_frame
from remit.tool.process.sandbox import box, box_environment
from remit.tool.process.warden import SIGNALLED, prefer
from remit.tool.secrets.secret import Secret
from remit.tool.secrets.vault import NO_SECRETS, Vault

# What a tool prints is kept for the reason of a failure; a screenful or two tells it.
PRINTED_BYTES_MAX = 16 * 1024

# After its result a process may write what it has buffered. What it leaves running longer is killed.
EXIT_GRACE_MS = 1_000

_READ_BYTES = 65_536


class Lent(NamedTuple):
    """The secrets of one call by parameter, and the vault they are from."""

    secrets: Mapping[str, Secret] = NO_SECRETS_LENT
    vault: Vault = NO_SECRETS


NOTHING_LENT = Lent()


class Leash:
    """Ends a process from another thread, whether it has started or not, and never after its number is free again."""

    __slots__ = ("_group", "_is_cut", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._group = 0
        self._is_cut = False

    @property
    def is_cut(self) -> bool:
        """Whether the process was ended, or will be as soon as it starts."""
        return self._is_cut

    def tie(self, group: int) -> None:
        """Hold a process group from now on."""
        with self._lock:
            self._group = group
            if self._is_cut:
                _kill(group)

    def cut(self) -> None:
        """Kill the group."""
        with self._lock:
            self._is_cut = True
            if self._group:
                _kill(self._group)

    def untie(self) -> None:
        """Kill what is left of the group and let go."""
        with self._lock:
            if self._group:
                _kill(self._group)
            self._group = 0


def call_isolated(
    tool: Tool,
    arguments: JsonObject,
    key: str,
    leash: Leash,
    lent: Lent = NOTHING_LENT,
    metadata: Mapping[str, Any] = NO_METADATA,
) -> Performed:
    """Call a tool in a process of its own and wait for what it tells."""
    try:
        job = _job(tool, arguments, key, lent.secrets, metadata)
        process, read_end = _listened_to(tool, leash, lent)
    except Exception as error:
        # No process was told what to call, so nothing was called, whatever it was that went wrong.
        message = f"no process could be started for it: {raised(error)}"
        raise ToolFault(ErrorCode.TOOL_UNAVAILABLE, message) from error
    assert process.stdin is not None
    with os.fdopen(read_end, "rb", buffering=0) as told, process:
        listener = _Listener(process, told.fileno(), tool.limits.output_bytes_max)
        try:
            # The process may be gone already; what it left behind says so better than a broken pipe.
            with contextlib.suppress(BrokenPipeError):
                write_frame(process.stdin.fileno(), job)
            frame = listener.listen()
            if not listener.is_overfull:
                # Its pipe has ended, so it is about to end as well, and to say how.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(EXIT_GRACE_MS / 1000)
        finally:
            leash.untie()
            process.wait()
    if listener.is_overfull:
        limit = f"output_bytes_max={tool.limits.output_bytes_max}"
        message = f"it sent more than {limit} and was ended"
        raise ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, message, is_unknown=True)
    ended = process.returncode
    if tool.sandbox and ended > SIGNALLED:
        ended = SIGNALLED - ended
    return _outcome(frame, ended, listener.printed(lent.vault.masker.masked), leash)


def _listened_to(tool: Tool, leash: Leash, lent: Lent) -> "tuple[subprocess.Popen[bytes], int]":
    """A process that waits to be told what to call, and the end of the pipe at which its result will come."""
    read_end, write_end = os.pipe()
    try:
        return _start(tool, write_end, leash, lent.vault.inherited), read_end
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)


def _start(
    tool: Tool, write_end: int, leash: Leash, inherited: Callable[[], Mapping[str, str]] | None
) -> "subprocess.Popen[bytes]":
    # -P keeps files of the working directory from standing in for modules of the library.
    command = [sys.executable, "-P", "-m", "remit.tool.process.isolated_child", str(write_end)]
    environment = environment_for(tool.environment, os.environ if inherited is None else inherited())
    if tool.sandbox:
        command = [*box(tool), *command, BOXED]
        environment = box_environment(environment)
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and module, and no shell
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(write_end,),
        start_new_session=True,
        env=environment,
        bufsize=0,
    )
    prefer(process.pid)
    leash.tie(process.pid)
    return process


def _job(
    tool: Tool, arguments: JsonObject, key: str, secrets: Mapping[str, Secret], metadata: Mapping[str, Any]
) -> bytes:
    source = {field: getattr(tool.source, field) for field in tool.source.__struct_fields__}
    version = tool.definition.version
    job = {"source": source, "version": version, "arguments": arguments, "key": key, "path": sys.path}
    job["limits"] = tool.limits._asdict()
    job["metadata"] = dict(metadata) if tool.signature.metadata_names else {}
    revealed = {parameter: secret.reveal() for parameter, secret in secrets.items()}
    return json.dumps({**job, "secrets": revealed}).encode()


class _Listener:
    """Reads the three pipes of a process at once."""

    def __init__(self, process: "subprocess.Popen[bytes]", told: int, bytes_max: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._told = told
        self._bytes_left = bytes_max
        self._texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}

    def listen(self) -> bytes:
        """The frame with the result, as far as it came; returns when the process has ended or may be ended."""
        frame = bytearray()
        deadline: float | None = None
        with selectors.DefaultSelector() as selector:
            for pipe in (self._told, *self._texts):
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_READ)
            while deadline is None or monotonic() < deadline:
                ready = selector.select(None if deadline is None else max(deadline - monotonic(), 0))
                for key, _ in ready:
                    part = os.read(key.fd, _READ_BYTES)
                    self._bytes_left -= len(part)
                    if not part:
                        selector.unregister(key.fd)
                    elif key.fd == self._told:
                        frame += part
                    else:
                        self._keep(key.fd, part)
                if self._told not in selector.get_map() or self.is_overfull:
                    break
                if deadline is None and _is_complete(frame):
                    deadline = monotonic() + EXIT_GRACE_MS / 1000
            self._drain(selector)
        return bytes(frame)

    @property
    def is_overfull(self) -> bool:
        """Whether more came than may come."""
        return self._bytes_left < 0

    def printed(self, mask: Callable[[str], str]) -> str:
        """What was printed, errors last. Each is masked for itself, since each may have been cut."""
        texts = [text.decode(errors="replace").strip() for text in self._texts.values() if text.strip()]
        return "\n".join(mask(text) for text in texts)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is there already. A process that still holds the pipes is not waited for."""
        for key, _ in selector.select(0):
            if key.fd in self._texts:
                self._keep(key.fd, os.read(key.fd, _READ_BYTES))

    def _keep(self, pipe: int, part: bytes) -> None:
        self._texts[pipe] += part[: PRINTED_BYTES_MAX - len(self._texts[pipe])]


def _is_complete(frame: bytearray) -> bool:
    return len(frame) >= LENGTH_BYTES and len(frame) - LENGTH_BYTES >= int.from_bytes(frame[:LENGTH_BYTES], "big")


def _outcome(frame: bytes, status: int, printed: str, leash: Leash) -> Performed:
    length = int.from_bytes(frame[:LENGTH_BYTES], "big")
    if len(frame) < LENGTH_BYTES or len(frame) - LENGTH_BYTES != length:
        if leash.is_cut:
            raise Killed
        raise ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, _told_nothing(status, printed), is_unknown=True)
    # Whatever stands there is the word of the tool's process, which may have been written by any code in it.
    match parse_with_oddities(frame[LENGTH_BYTES:].decode()):
        case {"code": str(code), "error": str(error)} as told if code in ErrorCode.__members__.values():
            # A result that does not say that nothing happened leaves it open.
            is_unknown = told.get("is_unknown") is not False
            raise ToolFault(ErrorCode(code), error[:ERROR_CHARS_MAX], is_unknown=is_unknown)
        case {"content": str(content), "refuted": str(refuted), "stop_loop": bool(stops)}:
            if len(content.encode("utf-8", "replace")) <= RESULT_BYTES_MAX:
                return Performed(content, refuted, stops, printed)
    message = "its process told something that is no result"
    raise ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, message, is_unknown=True)


def _told_nothing(status: int, printed: str) -> str:
    how = f"was ended by signal {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
    # Without its end an error text says little.
    last = f"; it printed: {last_part(printed, ERROR_CHARS_MAX // 2)}" if printed else ""
    return f"its process {how} and told no result{last}"


def _kill(group: int) -> None:
    # A group without members left is what was wanted.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
