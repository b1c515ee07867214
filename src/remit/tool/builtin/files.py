"""Files in one folder: list, read and search them, and write texts.

Rule 1: a model names paths relative to the root, and `remit.tool.builtin.rooted` decides what they reach.
Rule 2: what is shown is text in UTF-8; a file that is none is refused, not guessed at.
Rule 3: every amount that comes back has a limit, and a result that was cut says so.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.file_search import NEEDLE_CHARS_MAX, FoundLines, Search
from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.builtin.relative_path import PATH_CHARS_MAX, joined_path
from remit.tool.builtin.rooted import FILE_NOT_TEXT, IfExists, Root, file_bytes, file_text, folder_names
from remit.tool.call.cancel_token import CancelToken
from remit.tool.declare.decorator import Tool, tool

# One folder that a model can still overlook.
LISTED_MAX = 1_000
# A prompt takes some tens of thousands of characters; the rest of a file is read by its lines.
READ_CHARS_MAX = 64_000
# What a model writes itself in one answer is far shorter.
WRITTEN_CHARS_MAX = 1_000_000
# Local disks answer in milliseconds; folders on a network may take their time.
TIMEOUT_MS = 10_000

FilePath: TypeAlias = Annotated[str, Field(max_length=PATH_CHARS_MAX, description="The file, relative to the root.")]
FolderPath: TypeAlias = Annotated[
    str, Field(max_length=PATH_CHARS_MAX, description="The folder, relative to the root; empty for the root itself.")
]
FirstLine: TypeAlias = Annotated[int, Field(ge=1, description="The line to begin with.")]
Needle: TypeAlias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=NEEDLE_CHARS_MAX,
        description="The text to look for, without regard to upper and lower case. It is no pattern.",
    ),
]
NewText: TypeAlias = Annotated[
    str, Field(max_length=WRITTEN_CHARS_MAX, description="Everything that the file shall hold.")
]
Replacing: TypeAlias = Annotated[IfExists, Field(description="What to do when there is a file with another content.")]


@dataclass(frozen=True, slots=True)
class Listed:
    """One file or folder; a folder has no size."""

    path: str
    kind: Literal["file", "folder"]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FolderListing:
    """What a folder holds. `left_out` counts hidden names, links and other things that are out of reach."""

    entries: list[Listed]
    left_out: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a file, from `first_line` on; `is_complete` says whether they go to its end."""

    path: str
    text: str
    first_line: int
    last_line: int
    lines_total: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file as it stands now; `changed` is false where it was like that before."""

    path: str
    size_bytes: int
    changed: bool


def file_tools(root: Path) -> tuple[Tool, ...]:
    """The tools that read files below a root, and the one that writes."""
    return (*reading_tools(root), _write_file(Root(root)))


def reading_tools(root: Path) -> tuple[Tool, ...]:
    """The tools that read files below a root."""
    place = Root(root)
    return _list_files(place), _read_file(place), _search_files(place)


def _list_files(root: Root) -> Tool:
    @tool(effect=Effect.READ, category=ToolCategory.FILE_SYSTEM, network=False, idempotent=True, timeout_ms=TIMEOUT_MS)
    def list_files(folder: FolderPath = "") -> FolderListing:
        """List the files and folders in a folder, with their sizes."""
        with root.folder(folder) as descriptor:
            found = folder_names(descriptor, folder)
        entries = [
            Listed(joined_path(folder, entry.name), "folder" if entry.is_folder else "file", entry.size_bytes)
            for entry in found.entries[:LISTED_MAX]
        ]
        return FolderListing(entries, found.hidden_count, is_complete=len(found.entries) <= LISTED_MAX)

    return list_files


def _read_file(root: Root) -> Tool:
    @tool(
        effect=Effect.READ,
        category=ToolCategory.FILE_SYSTEM,
        network=False,
        idempotent=True,
        timeout_ms=TIMEOUT_MS,
        control_args={"path": "path"},
    )
    def read_file(path: FilePath, first_line: FirstLine = 1) -> FileLines:
        """Read a text file. A long one is cut; read on from the line after the last."""
        return _excerpt(path, file_text(root.read(path), path), first_line)

    return read_file


def _search_files(root: Root) -> Tool:
    @tool(effect=Effect.READ, category=ToolCategory.FILE_SYSTEM, network=False, idempotent=True, timeout_ms=TIMEOUT_MS)
    def search_files(text: Needle, token: CancelToken, folder: FolderPath = "") -> FoundLines:
        """Find the lines of text files that hold a text, in a folder and the folders below it."""
        return Search(root, text, token).under(folder)

    return search_files


def _write_file(root: Root) -> Tool:
    def is_written(arguments: dict[str, Any], result: WrittenFile) -> str:
        """Read the file again instead of trusting what wrote it."""
        stands = root.read(arguments["path"]) == arguments["text"].encode()
        return "" if stands else f"{quoted_value(result.path)} does not hold what was written"

    @tool(
        effect=Effect.WRITE,
        category=ToolCategory.FILE_SYSTEM,
        network=False,
        idempotent=True,
        destructive=True,
        untrusted_output=False,
        timeout_ms=TIMEOUT_MS,
        control_args={"path": "path"},
        verify=is_written,
    )
    def write_file(
        path: FilePath,
        text: NewText,
        if_exists: Replacing = "refuse",
    ) -> WrittenFile:
        """Write a text file, in one piece. Folders on its way are made."""
        data = file_bytes(text, path)
        changed = root.write(path, data, if_exists=if_exists)
        return WrittenFile(path, len(data), changed)

    return write_file


def _excerpt(path: str, text: str, first_line: int) -> FileLines:
    """As many whole lines as fit, and at least a piece of one."""
    total = _line_count(text)
    if first_line > max(total, 1):
        message = f"{quoted_value(path)} has {total} lines, and first_line={first_line} is beyond them; begin earlier"
        raise ToolRefused(FILE_NOT_TEXT, message)
    # No list of lines is made: of millions of short ones it would take a hundred times the memory of their text.
    start = 0
    for _ in range(first_line - 1):
        start = text.index("\n", start) + 1
    most = start + READ_CHARS_MAX
    end = len(text) if len(text) <= most else text.rfind("\n", start, most) + 1
    # Where not even one line ends within the limit, its beginning is shown.
    cut = text[start : end or most]
    last_line = first_line + max(_line_count(cut), 1) - 1
    return FileLines(path, cut, first_line, last_line, total, is_complete=end == len(text))


def _line_count(text: str) -> int:
    """The lines as editors count them: other separators of Unicode are part of a line."""
    return text.count("\n") + (text[-1:] not in ("", "\n"))
