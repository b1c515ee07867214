"""What an agent is made of: engine, tools and terms, as its maker names or hands them over.

Rule 1: what no run could be started with is refused here, when the agent is made.
"""

from collections.abc import Iterable
from pathlib import Path

from remit.assemble import settings_of
from remit.core.boundary import Boundary, boundary_named
from remit.core.budget import Budget, negative_caps
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.goal import Goal
from remit.core.inference import Routing
from remit.core.manifest import MANIFEST_INVALID
from remit.inference.engine import Engine
from remit.inference.specs import open_engine
from remit.orchestrate.kit import Terms
from remit.rerank.router import routing_named
from remit.tool.declare import Function, Tool
from remit.tool.registry import Registry


def engine_of(engine: Engine | str | None) -> Engine:
    """The engine that is given, or that a spec names; a path in a spec is read from the current folder."""
    if not engine:
        raise RequestRejected(
            ErrorCode.CONFIG_NO_ENGINE, "the agent has no engine; give it one, or a spec such as 'scripted:FILE'"
        )
    if isinstance(engine, str):
        return open_engine(engine, base=Path.cwd(), settings=settings_of().engines)
    if not callable(getattr(engine, "infer", None)) or not callable(getattr(engine, "model_info", None)):
        message = f"a {type(engine).__name__} is no engine: it lacks infer() or model_info()"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    return engine


def tools_of(tools: Registry | Iterable[Tool | Function]) -> Registry:
    """The registry that is given, or one of these tools and plain functions."""
    return tools if isinstance(tools, Registry) else Registry(tools)


def terms_of(boundary: Boundary | str, budget: Budget, router: Routing | str, *, goal: Goal | None = None) -> Terms:
    """What every run of an agent may do and must achieve; raises RequestRejected for what no run could be given."""
    return Terms(
        boundary if isinstance(boundary, Boundary) else boundary_named(boundary),
        _checked(budget),
        goal,
        router=routing_named(router),
    )


def _checked(budget: Budget) -> Budget:
    if negative := negative_caps(budget):
        raise RequestRejected(MANIFEST_INVALID, f"caps of {', '.join(negative)} are below 0; 0 forbids")
    return budget
