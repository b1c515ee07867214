"""The toolbox: what the gate knows of a list of tools before any run, made once and shared by all runs that bring it.

Rule 1: it depends on the tools alone, and nothing in it changes afterwards.
Rule 2: lists are told apart by their content. One that JSON cannot hold as it is stays with the run that brought it.
Rule 3: what is kept is a copy, read back from its bytes, so that a list cannot be changed behind the runs that share it.
"""

from functools import lru_cache
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import canonical_json
from remit.core.journal.codec import read_json, to_json
from remit.core.record import JsonObject
from remit.provenance.declarations import Declaration, declarations_of
from remit.provenance.origins.records import ResultLayout
from remit.provenance.origins.windows import Window
from remit.provenance.values.leaves import Leaves
from remit.provenance.values.left_out import choosable_of
from remit.provenance.words.tool_words import ToolWords

# A process that opens many runs has a few lists of tools, each some tens of kilobytes long. What is made of one takes some
# twenty times its bytes, so a long list is not kept.
TOOLBOXES_KEPT_MAX = 32
TOOLBOX_KEPT_BYTES_MAX = 128 * 1024


class GatedTool:
    """One tool, ready to judge its calls and to read its results."""

    __slots__ = (
        "choosable",
        "declaration",
        "has_records",
        "has_schema",
        "is_checked",
        "is_mutating",
        "layout",
        "leaves",
        "may_leave",
        "window",
    )

    def __init__(self, declaration: Declaration) -> None:
        """Read off the declaration what every call would ask."""
        self.declaration = declaration
        self.has_schema = isinstance(declaration.parameters.get("properties"), dict)
        self.is_checked = declaration.is_checked
        self.is_mutating = declaration.effect.is_mutating
        self.may_leave = declaration.leaves
        self.leaves = Leaves(declaration)
        self.choosable = choosable_of(declaration)
        self.layout = ResultLayout(declaration)
        # Whether its results may hold records that are declared.
        self.has_records = bool(self.layout.kinds)
        self.window = Window(declaration)


class Toolbox:
    """A list of tools; raises RequestRejected for one that cannot be read, NotCanonical for one that cannot be hashed."""

    __slots__ = ("canonical", "declarations", "tools", "words")

    def __init__(self, tools: list[JsonObject]) -> None:
        """Read the declarations."""
        self.declarations = declarations_of(tools)
        self.words = ToolWords(self.declarations)
        self.tools = {name: GatedTool(declaration) for name, declaration in self.declarations.items()}
        self.canonical = canonical_json(tools)


def toolbox_of(tools: list[JsonObject]) -> Toolbox:
    """The toolbox of a list of tools, the same for lists of the same content."""
    try:
        data = to_json(tools).encode()
        copy, toolbox = _kept(data) if len(data) <= TOOLBOX_KEPT_BYTES_MAX else (None, None)
    except (TypeError, ValueError, RecursionError, RequestRejected):
        return Toolbox(tools)
    # JSON has one form for what Python has two for, such as a list and a tuple.
    return toolbox if toolbox is not None and copy == tools else Toolbox(tools)


@lru_cache(maxsize=TOOLBOXES_KEPT_MAX)
def _kept(data: bytes) -> tuple[Any, Toolbox]:
    copy = read_json(data)
    return copy, Toolbox(copy)
