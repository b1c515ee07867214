"""What the worlds are made of: records in lists, found by the field that names them."""

from typing import Any

World = dict[str, Any]
Record = dict[str, Any]


def one(records: list[Record], identity: str, *, key: str = "id") -> Record:
    """The record of this name; raises KeyError with the name when there is none."""
    for record in records:
        if record[key] == identity:
            return record
    raise KeyError(identity)
