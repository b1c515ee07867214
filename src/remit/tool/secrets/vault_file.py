"""The file of secrets in the store's folder: a TOML table or a JSON object of names.

Rule 1: a file that anybody but its owner may read or write is refused unread.
Rule 2: what is wrong with the file is told by its place, never by its words.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.regex import regex
from remit.core.regular_file import open_regular
from remit.core.schema.json_text import KeyRepeated, NotJson, parse_json, place_in
from remit.tool.secrets.secret import credential_of
from remit.tool.secrets.vault import FILES

SECRETS_NOT_PRIVATE = "SECRETS_NOT_PRIVATE"
SECRETS_UNREADABLE = "SECRETS_UNREADABLE"

# Nobody keeps more secrets by hand; a larger file is not the one that was meant.
FILE_BYTES_MAX = 4 * 1024 * 1024

_OTHERS = 0o077
_PLACE = regex(r"line (\d+)")


def read_secrets(folder: Path) -> Mapping[str, Any]:
    """The secrets that stand in a folder; none if it holds no such file."""
    present = [folder / name for name in FILES if (folder / name).exists()]
    if len(present) > 1:
        raise _refused(SECRETS_UNREADABLE, folder, f"holds {' and '.join(FILES)}; keep one of them")
    if not present:
        return {}
    found = _parsed(present[0], _private_bytes(present[0]))
    for name, given in found.items():
        credential_of(name, given)
    return found


def _private_bytes(path: Path) -> bytes:
    try:
        # The mode is that of the very file that is read.
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & _OTHERS:
                problem = f"is open to others (mode {stat.S_IMODE(mode):o}); type: chmod 600 {str(path)!r}"
                raise _refused(SECRETS_NOT_PRIVATE, path, problem)
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _refused(SECRETS_UNREADABLE, path, f"cannot be read: {error.strerror}; correct it") from error
    if len(data) > FILE_BYTES_MAX:
        raise _refused(SECRETS_UNREADABLE, path, f"has more than file_bytes_max={FILE_BYTES_MAX}")
    return data


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    kind = path.suffix[1:].upper()
    try:
        found = tomllib.loads(data.decode()) if path.suffix == ".toml" else parse_json(data)
    except NotJson as error:
        # The error itself may hold words of the file, so it is not kept as the cause.
        problem = "has a key twice" if isinstance(error, KeyRepeated) else f"is no valid {kind}"
        line, _ = place_in(data, error.at)
        raise _refused(SECRETS_UNREADABLE, path, f"{problem} in line {line}; correct it") from None
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        where = f" in line {place.group(1)}" if place else ""
        raise _refused(SECRETS_UNREADABLE, path, f"is no valid {kind}{where}; correct it") from None
    if not isinstance(found, dict):
        raise _refused(SECRETS_UNREADABLE, path, "must be an object that maps names to secrets")
    return found


def _refused(code: str, path: Path, problem: str) -> RequestRejected:
    return RequestRejected(code, f"{str(path)!r} {problem}", {"place": str(path)})
