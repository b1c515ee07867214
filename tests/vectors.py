"""Where the public test suites are: in $REMIT_VECTORS, or in ../shared/vectors beside the project.

They are not part of the project. Where they are absent, the tests that need them step aside and say so.
"""

import gzip
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

PROJECT = Path(__file__).resolve().parents[1]


def vectors(name: str) -> Any:
    """The JSON document of this name, unpacked; without it, the module that asks is skipped."""
    folder = Path(os.environ.get("REMIT_VECTORS") or PROJECT.parent / "shared" / "vectors")
    path = folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {folder}; set REMIT_VECTORS to its folder", allow_module_level=True)
    data = path.read_bytes()
    return msgspec.json.decode(gzip.decompress(data) if path.suffix == ".gz" else data)
