"""Regular expressions of modules, compiled when they are first asked.

Some three hundred stand in the modules, and a command asks a few of them; compiling all took a third of its start.
"""

import re
from typing import Any, AnyStr, Generic, cast


class _Late(Generic[AnyStr]):
    """Stands for a pattern; each of its attributes is the pattern's own from the first use on."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._asked: tuple[AnyStr, int] = (pattern, flags)

    def __getattr__(self, name: str) -> Any:  # whatever the pattern has by this name
        found = getattr(re.compile(*self._asked), name)
        setattr(self, name, found)
        return found


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, and compiled when it is first used.

    Call its methods where they are needed: one that is taken at once compiles it. The functions of `re` do not take it.
    """
    return cast(re.Pattern[AnyStr], _Late(pattern, flags))
