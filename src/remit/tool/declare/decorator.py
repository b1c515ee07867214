"""The decorator that declares a tool: it stands on a typed function, and the tool that it makes.

Rule 1: what is not declared counts as the worst: an external effect, untrusted output, not idempotent.
Rule 2: a declaration that no run could use is refused at once, with the code TOOL_DEFINITION_INVALID.
Rule 3: a tool is still its function: calling it calls the function, without the gate, and type checkers know its signature.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Unpack, overload

from remit.core.limits.tools import ToolDefinition, check_definition, tool_version
from remit.core.record import replace
from remit.core.run.manifest import Source
from remit.tool.declare.declared_options import (
    ORDINARY,
    Available,
    Declared,
    OwnProcess,
    Reconcile,
    Verify,
    check_known,
    definition_fields,
    own_process_of,
)
from remit.tool.declare.docstrings import summary_of
from remit.tool.declare.signature import Signature, invalid_definition, read_signature
from remit.tool.source import source_of

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    # A tool of which nothing more is said takes anything and gives anything.
    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


ToolFunction: TypeAlias = Callable[..., Any]
Companions: TypeAlias = tuple[Available | None, Verify | None, Reconcile | None]


class Tool(Generic[P, R]):
    """A function with its definition, its source and the functions that go with it."""

    def __init__(
        self,
        function: Callable[P, R],
        definition: ToolDefinition,
        signature: Signature,
        source: Source,
        *,
        isolate: bool = False,
        process: OwnProcess = ORDINARY,
        companions: Companions = (None, None, None),
    ) -> None:
        # Its name, its text and where it stands are those of the function, which inspect and others look for there.
        update_wrapper(self, function, updated=())
        self.__wrapped__: Callable[P, R] = function
        self.definition = definition
        self.signature = signature
        self.source = source
        # A sandbox is a process of its own, too.
        self.isolate = isolate or process.sandbox
        self.sandbox, self.limits, self.environment = process
        # What stands around a call in a process of its own, in the process that makes it.
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext
        self.is_async = inspect.iscoroutinefunction(function)
        self.available, self.verify, self.reconcile = companions

    @property
    def function(self) -> Callable[P, R]:
        """The function as it was written."""
        return self.__wrapped__

    @property
    def name(self) -> str:
        """The name by which a model calls it."""
        return self.definition.name

    @property
    def __call__(self) -> Callable[P, R]:
        """The function itself; a property, so that a call has exactly its signature."""
        return self.__wrapped__

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"Tool({self.name!r}, effect={self.definition.effect.value!r}, place={self.source.place!r})"


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(**declared: Unpack[Declared]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: ToolFunction | None = None, /, **declared: Unpack[Declared]
) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a tool of a typed function: bare, or with what it declares of its effects, limits and values."""
    check_known(declared)

    def declare(function: ToolFunction) -> Tool:
        name = str(declared.get("name") or getattr(function, "__name__", type(function).__name__))
        companions = (declared.get("available"), declared.get("verify"), declared.get("reconcile"))
        _check_companions(name, *companions)
        description = declared.get("description")
        fields = definition_fields(name, declared)
        signature = read_signature(function, name, fields["secrets"])
        definition = ToolDefinition(
            name=name,
            description=summary_of(function.__doc__ or "") if description is None else description,
            parameters=signature.parameters,
            result=signature.result,
            **fields,
        )
        process = own_process_of(name, declared)
        return _declared(function, definition, signature, companions, process, isolate=declared.get("isolate", False))

    return declare if function is None else declare(function)


def _declared(
    function: ToolFunction,
    definition: ToolDefinition,
    signature: Signature,
    companions: Companions,
    process: OwnProcess,
    *,
    isolate: bool,
) -> Tool:
    check_definition(definition)
    source = source_of(function, definition.name)
    if process != ORDINARY and not (isolate or process.sandbox):
        raise invalid_definition(
            definition.name, "limits and environment need isolate=True or sandbox=True, whose process they are for"
        )
    if (isolate or process.sandbox) and not source.place:
        raise invalid_definition(
            definition.name,
            f"{'sandbox' if process.sandbox else 'isolate'}=True needs a function at the top level of a file or module, which a subprocess can load",
        )
    versioned = replace(definition, version=tool_version(definition))
    return Tool(function, versioned, signature, source, isolate=isolate, process=process, companions=companions)


def _check_companions(
    name: str, available: Available | None, verify: Verify | None, reconcile: Reconcile | None
) -> None:
    """Each is asked with so many values, and must be able to take them."""
    _check_takes(name, "available", available, (0,), "nothing")
    _check_takes(name, "verify", verify, (2,), "the arguments and the result")
    _check_takes(name, "reconcile", reconcile, (1, 2), "the key, or the key and the arguments")


def _check_takes(name: str, option: str, function: ToolFunction | None, counts: tuple[int, ...], what: str) -> None:
    if function is None:
        return
    if not callable(function):
        raise invalid_definition(name, f"{option} is a {type(function).__name__}; give a function that takes {what}")
    if not any(takes(function, count) for count in counts):
        raise invalid_definition(name, f"{option} must take {what}, by position; its signature is another")


def takes(function: ToolFunction, count: int) -> bool:
    """Whether a function can be called with so many values by position."""
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True
