"""Routers: which of many tools a user's words ask for, decided before a model is asked.

Rule 1: a router reads words and descriptions and calls no tool. What it chooses is an offer; whether a call may be made is
        judged elsewhere.
Rule 2: where no tool fits, a router says so, and the model answers in words.
Rule 3: a router may take long when it is first asked; code on an event loop asks it from a thread.
"""

import importlib.util
from collections.abc import Sequence
from typing import Protocol

from remit.core.failure import RequestRejected
from remit.core.installing import install_command
from remit.core.limits.tools import ToolDefinition
from remit.core.record import Record
from remit.core.run.inference import Routing

ROUTER_UNKNOWN = "ROUTER_UNKNOWN"
ROUTER_MISSING = "ROUTER_MISSING"

EMBEDDING_PACKAGE = "wordllama"


class Scored(Record):
    """A tool by its name, and how well it fits: the cosine of its words and the user's."""

    tool: str
    score: float


class Router(Protocol):
    """Puts tools in order for a user's words."""

    def shortlist(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        """The tools that the words ask for, in the order in which they ask; none when no tool fits."""

    def ranked(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        """All of the tools, the one that fits best first."""


def routing_named(name: str) -> Routing:
    """The routing of this name, if it can be had here."""
    try:
        routing = Routing(name)
    except ValueError:
        known = ", ".join(Routing)
        raise RequestRejected(ROUTER_UNKNOWN, f"router {name[:80]!r} is unknown; use one of {known}") from None
    check_routing(routing)
    return routing


def check_routing(routing: Routing) -> None:
    """Refuse a routing that needs a package which is not installed."""
    if routing is Routing.EMBEDDING and not has_embeddings():
        message = (
            f"router {routing.value!r} needs the package {EMBEDDING_PACKAGE}, which is not installed; "
            f"install it with: {install_command('local')}, or use the router 'none'"
        )
        raise RequestRejected(ROUTER_MISSING, message, {"package": EMBEDDING_PACKAGE})


def has_embeddings() -> bool:
    """Whether the embedding router can be had here. Nothing is loaded for the answer."""
    return importlib.util.find_spec(EMBEDDING_PACKAGE) is not None
