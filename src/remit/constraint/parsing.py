"""Parsing: the value of a text that is JSON as the standard has it, and nothing else.

Rule 1: a key that stands twice in an object is an error; whichever came last is nobody's intention.
Rule 2: numbers are kept exactly, or as the nearest double where they have a fraction; one beyond every double is an error.
"""

import re
from math import isfinite
from typing import Any

# A number has to be long, or to have an exponent of three digits, to be beyond a double.
_may_be_infinite = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}").search


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises ValueError that says where it is none."""
    from jiter import from_json

    data = text.encode("utf-8", "surrogatepass")
    value = from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    if _may_be_infinite(data) is not None and not _is_finite(value):
        raise ValueError("a number is beyond what a double holds")
    return value


def _is_finite(value: Any) -> bool:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, float) and not isfinite(found):
            return False
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
    return True
