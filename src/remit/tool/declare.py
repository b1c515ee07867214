"""Declaring tools: a decorator on a typed function, and the tool that it makes.

Rule 1: what is not declared counts as the worst: an external effect, untrusted output, not idempotent.
Rule 2: a declaration that no run could use is refused at once, with the code TOOL_DEFINITION_INVALID.
Rule 3: a tool is still its function: calling it calls the function, and asks nobody.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias, TypeVar, overload

from remit.core.authority import Stakes
from remit.core.failure import Ending
from remit.core.manifest import Source
from remit.core.record import replace
from remit.core.tools import (
    TOOL_TIMEOUT_MS_DEFAULT,
    Effect,
    ToolCategory,
    ToolDefinition,
    check_definition,
    tool_version,
)
from remit.core.trust import Reads, Repeat, Trust
from remit.tool.docstrings import summary_of
from remit.tool.signature import Signature, invalid, read_signature
from remit.tool.sourcing import source_of

Function: TypeAlias = Callable[..., Any]
# Asked before a call: may the tool be called now?
Available: TypeAlias = Callable[[], bool | Awaitable[bool]]
# Asked after a call, with the arguments and what was returned: None or True is fine, False or a text refutes it.
Verify: TypeAlias = Callable[[dict[str, Any], Any], Any]
# Asked about a call nobody knows the outcome of, with its key and perhaps its arguments; see docs/tools.md.
Reconcile: TypeAlias = Callable[..., Any]
Companions: TypeAlias = tuple[Available | None, Verify | None, Reconcile | None]

SCHEMA_VERIFIER = "schema"

_Choice = TypeVar("_Choice", bound=StrEnum)


class Tool:
    """A function with its definition, its source and the functions that go with it."""

    __slots__ = (
        "__wrapped__",
        "available",
        "definition",
        "is_async",
        "isolate",
        "reconcile",
        "signature",
        "source",
        "verify",
    )

    def __init__(
        self,
        function: Function,
        definition: ToolDefinition,
        signature: Signature,
        source: Source,
        *,
        isolate: bool = False,
        companions: Companions = (None, None, None),
    ) -> None:
        # The name that inspect and others look for; `function` reads better in the house.
        self.__wrapped__ = function
        self.definition = definition
        self.signature = signature
        self.source = source
        self.isolate = isolate
        self.is_async = inspect.iscoroutinefunction(function)
        self.available, self.verify, self.reconcile = companions

    @property
    def function(self) -> Function:
        """The function as it was written."""
        return self.__wrapped__

    @property
    def name(self) -> str:
        """The name by which a model calls it."""
        return self.definition.name

    @property
    def __call__(self) -> Function:
        """The function itself; a property, so that a call has exactly its signature."""
        return self.__wrapped__

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"Tool({self.name!r}, effect={self.definition.effect.value!r}, place={self.source.place!r})"


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *,
    effect: Effect | str = ...,
    category: ToolCategory | str | None = ...,
    network: bool = ...,
    idempotent: bool = ...,
    destructive: bool = ...,
    untrusted_output: bool = ...,
    isolate: bool = ...,
    timeout_ms: int = ...,
    cost_microusd: int = ...,
    permissions: Iterable[str] = ...,
    verify: Verify | None = ...,
    reconcile: Reconcile | None = ...,
    available: Available | None = ...,
    may_stop_loop: bool = ...,
    control_args: Mapping[str, str] | Iterable[tuple[str, str]] = ...,
    payload_args: Iterable[str] = ...,
    result: Mapping[str, str] | Iterable[tuple[str, str]] = ...,
    author: str = ...,
    directory: bool = ...,
    locator_args: Iterable[str] = ...,
    asks: Iterable[str] = ...,
    repeat: Repeat | str = ...,
    reads: Reads | str = ...,
    readers: str = ...,
    stakes: Stakes | str | None = ...,
    blast_radius: str = ...,
    rollback: str = ...,
    alternative: str = ...,
    fallback: str = ...,
    rate: tuple[int, int] | None = ...,
    asks_under: Ending | None = ...,
    secrets: Mapping[str, str] | Iterable[tuple[str, str]] = ...,
    name: str | None = ...,
    description: str | None = ...,
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    effect: Effect | str = Effect.EXTERNAL,
    category: ToolCategory | str | None = None,
    network: bool = False,
    idempotent: bool = False,
    destructive: bool = False,
    untrusted_output: bool = True,
    isolate: bool = False,
    timeout_ms: int = TOOL_TIMEOUT_MS_DEFAULT,
    cost_microusd: int = 0,
    permissions: Iterable[str] = (),
    verify: Verify | None = None,
    reconcile: Reconcile | None = None,
    available: Available | None = None,
    may_stop_loop: bool = False,
    control_args: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    payload_args: Iterable[str] = (),
    result: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    author: str = "",
    directory: bool = False,
    locator_args: Iterable[str] = (),
    asks: Iterable[str] = (),
    repeat: Repeat | str = Repeat.ONCE,
    reads: Reads | str = Reads.PRIVATE,
    readers: str = "",
    stakes: Stakes | str | None = None,
    blast_radius: str = "",
    rollback: str = "",
    alternative: str = "",
    fallback: str = "",
    rate: tuple[int, int] | None = None,
    asks_under: Ending | None = None,
    secrets: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    name: str | None = None,
    description: str | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a typed function: bare, or with what its effects and limits are."""
    filled = _pairs(secrets)
    terms = partial(
        ToolDefinition,
        network=network,
        idempotent=idempotent,
        destructive=destructive,
        untrusted_output=untrusted_output,
        reconcilable=reconcile is not None,
        may_stop_loop=may_stop_loop,
        permissions=_names(permissions),
        timeout_ms=timeout_ms,
        cost_microusd=cost_microusd,
        verifier=SCHEMA_VERIFIER if verify is None else getattr(verify, "__name__", type(verify).__name__),
        control_args=_pairs(control_args),
        secrets=filled,
        blast_radius=blast_radius,
        rollback=rollback,
        alternative=alternative,
        fallback=fallback,
        asks_under=asks_under,
        rate_max=0 if rate is None else rate[0],
        rate_per_ms=0 if rate is None else rate[1],
    )
    trusting = partial(
        Trust,
        payload_args=_names(payload_args),
        fields=_pairs(result),
        author=author,
        directory=directory,
        locator_args=_names(locator_args),
        asks=_names(asks),
        readers=readers,
    )

    def declare(function: Function) -> Tool:
        called = str(name or getattr(function, "__name__", type(function).__name__))
        _check_companions(called, available, verify, reconcile)
        signature = read_signature(function, called, filled)
        definition = terms(
            name=called,
            description=summary_of(function.__doc__ or "") if description is None else description,
            parameters=signature.parameters,
            result=signature.result,
            effect=_chosen(called, "effect", effect, Effect),
            category=None if category is None else _chosen(called, "category", category, ToolCategory),
            trust=trusting(
                repeat=_chosen(called, "repeat", repeat, Repeat),
                reads=_chosen(called, "reads", reads, Reads),
                stakes=None if stakes is None else _chosen(called, "stakes", stakes, Stakes),
            ),
        )
        return _declared(function, definition, signature, (available, verify, reconcile), isolate=isolate)

    return declare if function is None else declare(function)


def _declared(
    function: Function, definition: ToolDefinition, signature: Signature, companions: Companions, *, isolate: bool
) -> Tool:
    check_definition(definition)
    source = source_of(function, definition.name)
    if isolate and not source.place:
        raise invalid(
            definition.name,
            "isolate=True needs a function at the top level of a file or module, which a subprocess can load",
        )
    versioned = replace(definition, version=tool_version(definition))
    return Tool(function, versioned, signature, source, isolate=isolate, companions=companions)


def _pairs(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(given.items() if isinstance(given, Mapping) else given)


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _chosen(name: str, option: str, value: str, choices: type[_Choice]) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        known = ", ".join(choices)
        raise invalid(name, f"{option}={str(value)[:80]!r} is unknown; use one of {known}") from None


def _check_companions(
    name: str, available: Available | None, verify: Verify | None, reconcile: Reconcile | None
) -> None:
    """Each is asked with so many values, and must be able to take them."""
    _check_takes(name, "available", available, (0,), "nothing")
    _check_takes(name, "verify", verify, (2,), "the arguments and the result")
    _check_takes(name, "reconcile", reconcile, (1, 2), "the key, or the key and the arguments")


def _check_takes(name: str, option: str, function: Function | None, counts: tuple[int, ...], what: str) -> None:
    if function is None:
        return
    if not callable(function):
        raise invalid(name, f"{option} is a {type(function).__name__}; give a function that takes {what}")
    if not any(takes(function, count) for count in counts):
        raise invalid(name, f"{option} must take {what}, by position; its signature is another")


def takes(function: Function, count: int) -> bool:
    """Whether a function can be called with so many values by position."""
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True
