"""remit: agents that stay within their remit.

The short public list. Each name is loaded when it is first asked for, so `import remit` costs nothing.
Inside the house every name is imported from the file that defines it, never from here.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remit.agents.conversation import AgentLoop
    from remit.agents.plan import PlanExecutor
    from remit.agents.redundant import RedundantLoop
    from remit.agents.single import SpecializedLoop
    from remit.core.boundary import Boundary
    from remit.core.budget import Budget
    from remit.core.contract import SystemRequest, SystemResponse
    from remit.core.graph import Graph
    from remit.core.plan import ExecutionPlan, PlanPolicy, Step
    from remit.orchestrate.facade import System
    from remit.orchestrate.handlers import InferHandler, RerankHandler, RetrieveHandler, ToolHandler, ValidateHandler
    from remit.tool.declare import tool
    from remit.tool.outcomes import NotDone

    __version__: str

__all__ = [
    "AgentLoop",
    "Boundary",
    "Budget",
    "ExecutionPlan",
    "Graph",
    "InferHandler",
    "NotDone",
    "PlanExecutor",
    "PlanPolicy",
    "RedundantLoop",
    "RerankHandler",
    "RetrieveHandler",
    "SpecializedLoop",
    "Step",
    "System",
    "SystemRequest",
    "SystemResponse",
    "ToolHandler",
    "ValidateHandler",
    "__version__",
    "tool",
]

_HOMES = {
    "AgentLoop": "remit.agents.conversation",
    "Boundary": "remit.core.boundary",
    "Budget": "remit.core.budget",
    "ExecutionPlan": "remit.core.plan",
    "Graph": "remit.core.graph",
    "InferHandler": "remit.orchestrate.handlers",
    "NotDone": "remit.tool.outcomes",
    "PlanExecutor": "remit.agents.plan",
    "PlanPolicy": "remit.core.plan",
    "RedundantLoop": "remit.agents.redundant",
    "RerankHandler": "remit.orchestrate.handlers",
    "RetrieveHandler": "remit.orchestrate.handlers",
    "SpecializedLoop": "remit.agents.single",
    "Step": "remit.core.plan",
    "System": "remit.orchestrate.facade",
    "SystemRequest": "remit.core.contract",
    "SystemResponse": "remit.core.contract",
    "ToolHandler": "remit.orchestrate.handlers",
    "ValidateHandler": "remit.orchestrate.handlers",
    "tool": "remit.tool.declare",
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


class _Package(ModuleType):
    """Keeps `remit.tool` the decorator: importing the room of that name would put itself in its place."""

    def __setattr__(self, name: str, value: Any) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)
