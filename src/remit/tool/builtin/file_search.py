"""Searching: the lines of text files that hold a text, in a folder and below it.

Rule 1: a text is looked for as it is. There are no patterns, so no text costs more than another.
Rule 2: a search looks at so much and no more, and says when that was not all.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.relative_path import joined_path, path_names
from remit.tool.builtin.rooted import Root, file_text, folder_names
from remit.tool.call.cancel_token import CancelToken

# A search looks at so much and no more; each of these is seconds of work at worst.
SEARCHED_FILES_MAX = 2_000
SEARCHED_FOLDERS_MAX = 2_000
SEARCHED_BYTES_MAX = 64 * 1024 * 1024
SEARCHED_DEPTH_MAX = 16
MATCHES_MAX = 100
MATCH_CHARS_MAX = 300
NEEDLE_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Match:
    """One line that holds the text."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class FoundLines:
    """Lines that hold the text. `skipped` counts what is no text, too large, too deep or out of reach."""

    matches: list[Match]
    files_searched: int
    skipped: int
    is_complete: bool


class Search:
    """One search: what it looks for, and how much it has looked at."""

    __slots__ = ("_bytes", "_files", "_is_complete", "_matches", "_needle", "_root", "_skipped", "_token")

    def __init__(self, root: Root, text: str, token: CancelToken) -> None:
        self._root = root
        self._needle = text.casefold()
        self._token = token
        self._matches: list[Match] = []
        self._files = self._bytes = self._skipped = 0
        self._is_complete = True

    def under(self, folder: str) -> FoundLines:
        """Search this folder and those below."""
        for path in self._paths(folder):
            self._token.raise_if_cancelled()
            self._is_complete = self._files < SEARCHED_FILES_MAX and self._bytes < SEARCHED_BYTES_MAX
            if self._is_complete:
                self._look_into(path)
            if not self._is_complete:
                break
        return FoundLines(self._matches, self._files, self._skipped, self._is_complete)

    def _paths(self, folder: str) -> Iterator[str]:
        """The files below a folder, folder by folder. Only the first may fail; a later one may be gone by now."""
        waiting, folders = deque([joined_path(folder)]), 0
        while waiting and folders < SEARCHED_FOLDERS_MAX:
            self._token.raise_if_cancelled()
            here, folders = waiting.popleft(), folders + 1
            try:
                with self._root.folder(here) as descriptor:
                    found = folder_names(descriptor, here)
            except ToolRefused:
                if folders == 1:
                    raise
                self._skipped += 1
                continue
            yield from (joined_path(here, entry.name) for entry in found.entries if not entry.is_folder)
            deeper = [joined_path(here, entry.name) for entry in found.entries if entry.is_folder]
            if len(path_names(here)) < SEARCHED_DEPTH_MAX:
                # One more than will be looked at tells that there are more; the rest need not be remembered.
                waiting += deeper[: SEARCHED_FOLDERS_MAX + 1 - folders - len(waiting)]
            else:
                self._skipped += len(deeper)
        self._is_complete = self._is_complete and not waiting

    def _look_into(self, path: str) -> None:
        self._files += 1
        try:
            data = self._root.read(path)
            self._bytes += len(data)
            text = file_text(data, path)
        except ToolRefused:
            self._skipped += 1
            return
        if self._needle not in text.casefold():
            return
        for number, line in enumerate(_lines(text), start=1):
            if self._needle in line.casefold():
                if len(self._matches) >= MATCHES_MAX:
                    self._is_complete = False
                    return
                self._matches.append(Match(path, number, line[:MATCH_CHARS_MAX]))


def _lines(text: str) -> Iterator[str]:
    """One line after the other; a list of millions of short ones would take many times the memory of their text."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]
