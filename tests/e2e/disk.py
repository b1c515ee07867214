"""A disk as a power loss leaves it, rebuilt from what strace saw a process do to its files.

Rule 1: data survives for sure once an fsync or fdatasync of its file, begun after it was written, has returned.
Rule 2: a name survives for sure once an fsync of its folder, begun after the name was made or removed, has returned.
Rule 3: of everything else anything may survive: nothing, all of it, or (by a seed) any of the writes, some of them torn,
        and any number of the first changes of a folder.
Rule 4: shared memory is no file: SQLite makes it anew.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from random import Random
from typing import NamedTuple

TRACED = (
    "open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,truncate,ftruncate,fallocate,rename,renameat,renameat2,"
    "link,linkat,unlink,unlinkat,mkdir,mkdirat,fsync,fdatasync,copy_file_range,sendfile"
)
# What strace needs to be told so that nothing is cut short, and every text is plain hexadecimal.
STRACE = (
    "strace",
    "--follow-forks",
    "--decode-fds=path",
    "--strings-in-hex=all",
    "-s",
    "33554432",
    "-e",
    f"trace={TRACED}",
)

SECTOR_BYTES = 512
_SHARED_MEMORY = "-shm"
_GONE = " (deleted)"

_WHOLE = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)(?P<rest>.*)$")
_BEGUN = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*?),? <unfinished \.\.\.>$")
_RESUMED = re.compile(
    r"^(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)\) += (?P<result>-?\d+)(?P<rest>.*)$"
)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_DESCRIPTOR = re.compile(r"^\d+<((?:\\x[0-9a-f]{2})*)>")
_OPENED = re.compile(r"^<((?:\\x[0-9a-f]{2})*)>")
_NUMBER = re.compile(r", (\d+)$")


class Call(NamedTuple):
    """One system call. What it says of files is plain: texts, the path behind its descriptor, its last number."""

    name: str
    texts: tuple[bytes, ...]
    descriptor: str
    flags: str
    number: int
    opened: str
    result: int


class Phase(Enum):
    """A call begins, and later it returns; between the two others may be made."""

    BEGINS = auto()
    RETURNS = auto()


def read_trace(lines: Sequence[str]) -> Iterator[tuple[Phase, int, Call]]:
    """What happened, in order: each call when it begins and when it returns, under a number of its own."""
    outcomes = _outcomes(lines)
    waiting: dict[str, int] = {}
    for number, line in enumerate(lines):
        if found := _RESUMED.match(line):
            begun = waiting.pop(found["pid"])
            yield Phase.RETURNS, begun, outcomes[begun]
        elif number in outcomes:
            yield Phase.BEGINS, number, outcomes[number]
            if _WHOLE.match(line):
                yield Phase.RETURNS, number, outcomes[number]
            else:
                waiting[line.split()[0]] = number


def _outcomes(lines: Sequence[str]) -> dict[int, Call]:
    """Every call that returned, under the number of the line it begins on."""
    calls: dict[int, Call] = {}
    begun: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        if found := _BEGUN.match(line):
            begun[found["pid"]] = number, found["arguments"]
        elif found := _RESUMED.match(line):
            first, arguments = begun.pop(found["pid"])
            calls[first] = _call(found["name"], arguments + found["arguments"], int(found["result"]), found["rest"])
        elif found := _WHOLE.match(line):
            calls[number] = _call(found["name"], found["arguments"], int(found["result"]), found["rest"])
    return calls


def _call(name: str, arguments: str, result: int, rest: str) -> Call:
    texts = _TEXT.findall(arguments)
    assert not any(cut for _, cut in texts), f"strace cut a text of {name} short"
    descriptor, opened, number = _DESCRIPTOR.match(arguments), _OPENED.match(rest), _NUMBER.search(arguments)
    return Call(
        name,
        tuple(_bytes(text) for text, _ in texts),
        _bytes(descriptor[1]).decode() if descriptor else "",
        arguments,
        int(number[1]) if number else -1,
        _bytes(opened[1]).decode() if opened else "",
        result,
    )


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class Write(NamedTuple):
    """Bytes at a place of a file; without bytes, the place is its new end."""

    offset: int
    data: bytes | None


@dataclass(eq=False, slots=True)
class File:
    """What was done to a file, and how many of the first of it are on the disk."""

    writes: list[Write] = field(default_factory=list)
    synced: int = 0
    size: int = 0
    # Whether a writer to it waits until it is on the disk.
    is_synchronous: bool = False


class Naming(NamedTuple):
    """A folder got a name for something, or lost one."""

    name: str
    what: "File | Folder | None"


@dataclass(eq=False, slots=True)
class Folder:
    """What was done to a folder, and how many of the first of it are on the disk."""

    namings: list[Naming] = field(default_factory=list)
    synced: int = 0


class Survival(NamedTuple):
    """What the disk kept although it was not synced."""

    writes: Callable[[Sequence[Write]], Sequence[Write]]
    namings: Callable[[Sequence[Naming]], Sequence[Naming]]


NOTHING = Survival(lambda writes: (), lambda namings: ())
EVERYTHING = Survival(lambda writes: writes, lambda namings: namings)


def by_chance(seed: int) -> Survival:
    """Any of the writes, some of them torn, and the first few namings."""
    chance = Random(seed)

    def some(writes: Sequence[Write]) -> list[Write]:
        kept = []
        for write in writes:
            fate = chance.random()
            if fate < 0.5:
                kept.append(write)
            elif fate < 0.65 and write.data is not None:
                sectors = chance.randint(0, len(write.data) // SECTOR_BYTES)
                kept.append(Write(write.offset, write.data[: sectors * SECTOR_BYTES]))
        return kept

    return Survival(some, lambda namings: namings[: chance.randint(0, len(namings))])


class Disk:
    """Everything below one folder, which itself is on the disk for good."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = Folder()
        # What each path names at the moment, for the process.
        self._named: dict[str, File | Folder] = {str(root): self._top}
        self._syncing: dict[int, tuple[File | Folder, int]] = {}

    def take(self, phase: Phase, number: int, call: Call) -> bool:
        """Do what a call did, and say whether it was about this disk."""
        if phase is Phase.BEGINS:
            return call.result >= 0 and self._begin(number, call)
        if call.result == 0 and (syncing := self._syncing.pop(number, None)) is not None:
            what, done = syncing
            what.synced = max(what.synced, done)
            return True
        return False

    def rebuild(self, home: Path, survival: Survival) -> None:
        """Write what a power loss now would leave, into an empty folder."""
        _rebuild(self._top, home, survival)

    def _begin(self, number: int, call: Call) -> bool:
        match call.name:
            case "open" | "openat" | "creat":
                return self._open(call)
            case "write" | "pwrite64" | "ftruncate":
                return self._write(call)
            case "fsync" | "fdatasync":
                return self._sync(number, call)
            case "mkdir" | "mkdirat":
                return self._name(_path(call, 0), Folder())
            case "link" | "linkat":
                return self._name(_path(call, 1), self._named.get(_path(call, 0)))
            case "unlink" | "unlinkat":
                return self._name(_path(call, 0), None)
            case "rename" | "renameat" | "renameat2":
                moved = self._named.get(_path(call, 0))
                return self._name(_path(call, 0), None) and self._name(_path(call, 1), moved)
        is_ours = any(_is_below(text, self._root) for text in (call.descriptor, *(map(_decoded, call.texts))))
        assert not is_ours, f"the disk does not know {call.name}"
        return False

    def _open(self, call: Call) -> bool:
        is_made = "O_CREAT" in call.flags or call.name == "creat"
        if not _is_below(call.opened, self._root) or call.opened.endswith(_SHARED_MEMORY):
            return False
        named = self._named.get(call.opened)
        if isinstance(named, File):
            named.is_synchronous = "O_SYNC" in call.flags or "O_DSYNC" in call.flags
            if "O_TRUNC" in call.flags and named.size:
                named.writes.append(Write(0, None))
                named.size = 0
                return True
        if named is not None or not is_made:
            return False
        return self._name(call.opened, File(is_synchronous="O_SYNC" in call.flags))

    def _write(self, call: Call) -> bool:
        file = self._named.get(call.descriptor)
        if not isinstance(file, File):
            return False
        if call.name == "ftruncate":
            file.writes.append(Write(call.number, None))
            file.size = call.number
            return True
        data = call.texts[0][: call.result]
        # A writer that does not say where writes at the end: all such files here are appended to.
        offset = call.number if call.name == "pwrite64" else file.size
        file.writes.append(Write(offset, data))
        file.size = max(file.size, offset + len(data))
        if file.is_synchronous:
            file.synced = len(file.writes)
        return True

    def _sync(self, number: int, call: Call) -> bool:
        what = self._named.get(call.descriptor)
        if what is None:
            return False
        self._syncing[number] = what, len(what.writes if isinstance(what, File) else what.namings)
        return False

    def _name(self, path: str, what: "File | Folder | None") -> bool:
        if not _is_below(path, self._root) or path.endswith(_SHARED_MEMORY):
            return False
        parent = self._named[str(PurePosixPath(path).parent)]
        assert isinstance(parent, Folder), path
        parent.namings.append(Naming(PurePosixPath(path).name, what))
        if what is None:
            self._named.pop(path, None)
        else:
            self._named[path] = what
        return True


def _rebuild(folder: Folder, home: Path, survival: Survival) -> None:
    home.mkdir(mode=0o700)
    # A later naming takes the place of an earlier one.
    there = dict((*folder.namings[: folder.synced], *survival.namings(folder.namings[folder.synced :])))
    for name, what in there.items():
        if isinstance(what, Folder):
            _rebuild(what, home / name, survival)
        elif isinstance(what, File):
            path = home / name
            path.touch(mode=0o600)
            path.write_bytes(_content(what, survival))


def _content(file: File, survival: Survival) -> bytes:
    content = bytearray()
    for offset, data in (*file.writes[: file.synced], *survival.writes(file.writes[file.synced :])):
        end = offset if data is None else offset + len(data)
        if len(content) < end:
            content.extend(bytes(end - len(content)))
        if data is None:
            del content[end:]
        else:
            content[offset:end] = data
    return bytes(content)


def _path(call: Call, place: int) -> str:
    return _decoded(call.texts[place])


def _decoded(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def _is_below(path: str, root: Path) -> bool:
    return path.startswith(f"{root}/") and not path.endswith(_GONE)
