"""Files under a root: the one folder whose files a model may reach, and the only way into it.

Rule 1: a path is opened one name after the other, each relative to the folder before it and never through a link. What is
        checked is what is open, so a link that is swapped in between leads nowhere.
Rule 2: only regular files with one name are read. What is no file is told from its open descriptor, and opening never waits.
Rule 3: no other file system and no store of remit is entered, even where one lies beneath the root.
Rule 4: what is looked at and what is written happens in one turn.
Rule 5: a file is written under a name of its own, made durable and then renamed: no reader ever sees half of it. Calls of this
        process that write into one folder take turns, so that none overlooks what another has just done.
Rule 6: no disk is filled to its end: runs have to write down what they do, and so have other programs.
Rule 7: files are text in UTF-8; one that is none is refused and not guessed at.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.builtin.relative_path import STORE_MARK, invalid_path, path_names, problem_of

FILE_DISK_FULL = "FILE_DISK_FULL"

# Before the name of a file that is not yet complete; hidden, so no tool reads one that a crash left behind.
PARTIAL_MARK = ".remit-partial-"

# What has to be left on the disk: room for the journal of many runs.
FREE_BYTES_MIN = 16 * 1024 * 1024

# Folders share locks, so that there is no list of folders that grows; two of so many rarely meet.
_LOCKS = tuple(Lock() for _ in range(64))

_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_NOT_FOUND = "FILE_NOT_FOUND"
FILE_NOT_TEXT = "FILE_NOT_TEXT"
FILE_NOT_REGULAR = "FILE_NOT_REGULAR"
FILE_NOT_A_FOLDER = "FILE_NOT_A_FOLDER"
FILE_IS_FOREIGN = "FILE_IS_FOREIGN"
FILE_TOO_LARGE = "FILE_TOO_LARGE"
FILE_EXISTS = "FILE_EXISTS"
FILE_INACCESSIBLE = "FILE_INACCESSIBLE"
# A text that a model could mean to work on. More is a data set, and other tools are made for those.
FILE_BYTES_MAX = 4 * 1024 * 1024
# Listing a folder goes through so many names before it gives up.
NAMES_MAX = 10_000
# O_NONBLOCK keeps the opening of a pipe from waiting; regular files do not know it.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_CHUNK_BYTES = 65_536
IfExists: TypeAlias = Literal["refuse", "replace"]


def turn_in(folder: int) -> Lock:
    """The lock that writers of an open folder hold."""
    found = os.fstat(folder)
    return _LOCKS[hash((found.st_dev, found.st_ino)) % len(_LOCKS)]


def check_disk_room(folder: int, size_bytes: int, path: str) -> None:
    """Refuse a file that would leave too little on its disk."""
    disk = os.statvfs(folder)
    # A file system that does not say how large it is has no end that we could keep away from.
    if disk.f_blocks and disk.f_bavail * disk.f_frsize - size_bytes < FREE_BYTES_MIN:
        message = (
            f"{quoted_value(path)} would leave less than free_bytes_min={FREE_BYTES_MIN} on the disk; make room first"
        )
        raise ToolRefused(FILE_DISK_FULL, message)


def put(folder: int, name: str, data: bytes, known: os.stat_result | None) -> None:
    """Give a name in an open folder this content. `known` is the file that has the name so far."""
    partial = PARTIAL_MARK + secrets.token_hex(8)
    descriptor = os.open(partial, _MAKE, 0o666, dir_fd=folder)
    try:
        try:
            if known is not None:
                # What others may do with the file stays as it was; to run as its owner is not inherited.
                os.fchmod(descriptor, stat.S_IMODE(known.st_mode) & 0o777)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        # A rename replaces a link that has come to stand there, and never follows it.
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)
        raise
    os.fsync(folder)


class FolderEntry(NamedTuple):
    """One name in a folder, with what stands behind it."""

    name: str
    is_folder: bool
    size_bytes: int


class FolderNames(NamedTuple):
    """What a folder shows, and how many of its names it does not."""

    entries: list[FolderEntry]
    hidden_count: int


class Root:
    """A folder, named once by the operator. Nothing is held open between two calls."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """An open folder at or below the root, and its descriptor."""
        with self._entered(path_names(path), path, _open_folder) as descriptor:
            yield descriptor

    def read(self, path: str) -> bytes:
        """The bytes of a file; refuses what is no regular file of our own or is too large."""
        *folders, name = self._file_names(path)
        with self._entered(tuple(folders), path, _open_folder) as descriptor:
            return read_at(descriptor, name, path)

    def write(self, path: str, data: bytes, *, if_exists: IfExists) -> bool:
        """Put a file there, in one piece; folders on the way are made. Whether anything had to be changed."""
        *folders, name = self._file_names(path)
        with self._entered(tuple(folders), path, _make_folder) as descriptor, turn_in(descriptor):
            known = _stat(descriptor, name, path)
            if known is not None:
                _check_regular(known, path)
                if known.st_size == len(data) and read_at(descriptor, name, path) == data:
                    return False
                if if_exists == "refuse":
                    message = f"{quoted_value(path)} exists with another content; say if_exists='replace' to replace it"
                    raise ToolRefused(FILE_EXISTS, message)
            with _told(path):
                check_disk_room(descriptor, len(data), path)
                put(descriptor, name, data, known)
        return True

    def _file_names(self, path: str) -> tuple[str, ...]:
        names = path_names(path)
        if not names or path.endswith("/"):
            raise invalid_path(path, "names a folder; name a file")
        return names

    @contextmanager
    def _entered(self, names: tuple[str, ...], path: str, enter: Callable[[int, str, str], int]) -> Iterator[int]:
        """The descriptor of the last of these folders, each opened from the one before it."""
        try:
            here = os.open(self._path, _FOLDER)
        except OSError as error:
            message = f"the root of these tools cannot be opened ({_reason(error)}); its operator has to look"
            raise ToolRefused(FILE_INACCESSIBLE, message) from error
        try:
            device = os.fstat(here).st_dev
            _check_ours(here, device, path)
            for name in names:
                below = enter(here, name, path)
                os.close(here)
                here = below
                _check_ours(here, device, path)
            yield here
        finally:
            os.close(here)


def read_at(folder: int, name: str, path: str) -> bytes:
    """The bytes of a file in an open folder; `path` is what messages call it."""
    # Looked at before it is opened, since opening a device may do something; and again when it is open.
    _check_regular(_stat(folder, name, path), path)
    with _told(path):
        descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        _check_regular(found, path)
        if found.st_nlink > 1:
            message = f"{quoted_value(path)} has {found.st_nlink} names (hard links), so it may belong elsewhere; copy it first"
            raise ToolRefused(FILE_IS_FOREIGN, message)
        with _told(path):
            return _read(descriptor, path)
    finally:
        os.close(descriptor)


def folder_names(folder: int, path: str, *, names_max: int = NAMES_MAX) -> FolderNames:
    """The names in an open folder, sorted: regular files and folders. What is hidden or neither is only counted."""
    entries: list[FolderEntry] = []
    hidden = 0
    with _told(path), os.scandir(folder) as found:
        for count, item in enumerate(found):
            if count >= names_max:
                message = f"folder {quoted_value(path)} has more than names_max={names_max} names; use one with fewer"
                raise ToolRefused(FILE_TOO_LARGE, message)
            entry = None if problem_of(item.name) else _entry(item)
            if entry is None:
                hidden += 1
            else:
                entries.append(entry)
    return FolderNames(sorted(entries), hidden)


def _entry(item: "os.DirEntry[str]") -> FolderEntry | None:
    try:
        known = item.stat(follow_symlinks=False)
    except FileNotFoundError:
        # It went away while the folder was read.
        return None
    if stat.S_ISDIR(known.st_mode):
        return FolderEntry(item.name, is_folder=True, size_bytes=0)
    return FolderEntry(item.name, is_folder=False, size_bytes=known.st_size) if stat.S_ISREG(known.st_mode) else None


def _open_folder(here: int, name: str, path: str) -> int:
    with _told(path):
        return os.open(name, _FOLDER, dir_fd=here)


def _make_folder(here: int, name: str, path: str) -> int:
    with _told(path), contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=here)
        os.fsync(here)
    return _open_folder(here, name, path)


def _check_ours(folder: int, device: int, path: str) -> None:
    if os.fstat(folder).st_dev != device:
        raise ToolRefused(
            FILE_IS_FOREIGN, f"{quoted_value(path)} lies on another file system than the root; copy it first"
        )
    if _stat(folder, STORE_MARK, path) is not None:
        raise ToolRefused(FILE_IS_FOREIGN, f"{quoted_value(path)} leads into a store of remit, which is out of reach")


def _check_regular(known: os.stat_result | None, path: str) -> None:
    if known is None:
        raise _refusal(FileNotFoundError(errno.ENOENT, ""), path)
    if not stat.S_ISREG(known.st_mode):
        raise _not_regular(path)


def _stat(folder: int, name: str, path: str) -> os.stat_result | None:
    """What a name stands for, a link for itself; None if there is none."""
    try:
        with _told(path):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except ToolRefused as refused:
        if refused.code != FILE_NOT_FOUND:
            raise
        return None


def _read(descriptor: int, path: str) -> bytes:
    """All bytes of a file. The size is counted while reading, since a file may grow or lie about it."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, _CHUNK_BYTES):
        size += len(part)
        if size > FILE_BYTES_MAX:
            message = f"{quoted_value(path)} has more than file_bytes_max={FILE_BYTES_MAX}; use a smaller file"
            raise ToolRefused(FILE_TOO_LARGE, message)
        parts.append(part)
    return b"".join(parts)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Errors of the file system in our words: the model's own path, and no other."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, path) from error


def _refusal(error: OSError, path: str) -> ToolRefused:
    match error.errno:
        case errno.ENOENT:
            return ToolRefused(
                FILE_NOT_FOUND, f"there is no {quoted_value(path)}; list the folder to see what there is"
            )
        case errno.ENOTDIR:
            message = f"{quoted_value(path)} leads through something that is no folder, perhaps a link; links are not followed"
            return ToolRefused(FILE_NOT_A_FOLDER, message)
        case errno.ELOOP | errno.ENXIO | errno.EISDIR:
            # A link, a pipe or a folder that took the place of a file since it was looked at.
            return _not_regular(path)
    message = f"{quoted_value(path)} cannot be used ({_reason(error)}); use another path"
    return ToolRefused(FILE_INACCESSIBLE, message)


def _reason(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "unknown")


def _not_regular(path: str) -> ToolRefused:
    message = f"{quoted_value(path)} is no regular file but a folder, link, pipe or device; name a file"
    return ToolRefused(FILE_NOT_REGULAR, message)


def file_text(data: bytes, path: str) -> str:
    """The bytes of a file as text; refuses what is none."""
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    message = f"{quoted_value(path)} is no text in UTF-8 but {len(data)} bytes of something else; name a text file"
    raise ToolRefused(FILE_NOT_TEXT, message)


def file_bytes(text: str, path: str) -> bytes:
    """A text as the bytes of a file."""
    if "\0" in text:
        # What could not be read again is not written: files that hold it are programs and data.
        raise ToolRefused(FILE_NOT_TEXT, f"the text for {quoted_value(path)} holds a NUL, which no text has; remove it")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolRefused(
            FILE_NOT_TEXT, f"the text for {quoted_value(path)} holds a lone surrogate; remove it"
        ) from None
    assert len(data) <= FILE_BYTES_MAX, "a character takes four bytes at most"
    return data
