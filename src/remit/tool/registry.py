"""The registry: the tools of a run, by name, in the order they were declared."""

from collections.abc import Iterable, Iterator
from typing import cast

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import canonical_hash
from remit.core.limits.tools import ToolDefinition
from remit.core.run.manifest import Source
from remit.tool.declare.decorator import Tool, ToolFunction, tool
from remit.tool.declare.signature import invalid_definition

TOOL_NAME_TAKEN = "TOOL_NAME_TAKEN"


class Registry:
    """Tools by name. A plain function becomes a tool whose effect is the worst.

    It takes tools and functions. They are typed as objects, which is all that a type checker sees in a list of several
    with different signatures; anything else is refused.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[object] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            if given is None:  # To `tool` it stands for the function that follows.
                raise invalid_definition("None", "it is no function; leave it out of the tools, or give the function")
            one = given if isinstance(given, Tool) else tool(cast(ToolFunction, given))
            if one.name in self._tools:
                message = f"two tools are called {one.name!r}; give one of them another name with @tool(name=...)"
                raise RequestRejected(TOOL_NAME_TAKEN, message, {"tool": one.name})
            self._tools[one.name] = one

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the manifest pins."""
        return tuple(one.definition for one in self)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the functions came from, in the same order. A tool that delegates is no function and came from nowhere."""
        return tuple(one.source for one in self if not one.definition.delegates)

    @property
    def keyless(self) -> tuple[str, ...]:
        """The names of those whose function takes no `idempotency_key`; one that delegates or asks a person has none."""
        functions = (one for one in self if not one.definition.delegates and one.definition.asks_under is None)
        return tuple(one.name for one in functions if not one.signature.takes_key)

    @property
    def version(self) -> str:
        """The hash over the versions of all tools, as the manifest names it."""
        return canonical_hash([one.definition.version for one in self]).hex()

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools
