"""remit: agents that stay within their remit.

The short public list. Each name is loaded when it is first asked for, so `import remit` costs nothing.
Inside the house every name is imported from the file that defines it, never from here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.core.boundary import Boundary
    from remit.core.budget import Budget
    from remit.core.contract import SystemRequest, SystemResponse
    from remit.core.graph import Graph

    __version__: str

__all__ = ["Boundary", "Budget", "Graph", "SystemRequest", "SystemResponse", "__version__"]

_HOMES = {
    "Boundary": "remit.core.boundary",
    "Budget": "remit.core.budget",
    "Graph": "remit.core.graph",
    "SystemRequest": "remit.core.contract",
    "SystemResponse": "remit.core.contract",
}

# Hidden from type checkers, for which it would make every name exist.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a public name from its home and keep it."""
        if name == "__version__":
            from importlib.metadata import version

            value = version("remit")
        elif name in _HOMES:
            from importlib import import_module

            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'remit' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
