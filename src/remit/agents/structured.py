"""Structured answers: the response of a run, with its output as the type that was asked for.

Rule 1: `structured_output` stays the JSON value; `value` is what the schema's own type made of it when it was checked, so that
        code which accepts an output once is not asked again; else it is made when it is asked for.
Rule 2: there is no value of a run that failed or waits, or whose output does not fit: to ask for it raises.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from remit.core.failure import ErrorCode, RunFailed
from remit.core.raised import words_of
from remit.core.run.contract import RUN_OPEN, SystemResponse
from remit.core.schema.json_schema import Schema
from remit.core.schema.schema_source import check_of, instance_reader
from remit.core.work.plan import MARK
from remit.orchestrate.patterns.structured_graph import TYPE_MARK
from remit.orchestrate.setup.kit import Code

if TYPE_CHECKING:
    from types import UnionType
    from typing import _SpecialForm

    from typing_extensions import TypeVar

    # Any where the schema is no type: what a JSON Schema describes, no type checker knows.
    T = TypeVar("T", default=Any)
    # `int | None`, `Literal[…]` and `Annotated[…]` are types and no classes, so no checker tells the type of their value.
    Form: TypeAlias = UnionType | _SpecialForm
else:
    from typing import TypeVar

    T = TypeVar("T")
    Form: TypeAlias = object
# A pydantic model, a dataclass, a TypedDict or another type, of which the value will be; or a JSON Schema.
SchemaSource: TypeAlias = type[T] | Form | Mapping[str, Any] | Schema


# Values of calls of one loop that were checked and not asked for yet: more calls than one process has under way.
VALUES_KEPT_MAX = 256


class StructuredResponse(SystemResponse, Generic[T], frozen=True, dict=True, gc=True):
    """A response whose output is also there as a value of the type that was asked for."""

    @cached_property
    def value(self) -> T:
        """The output: an instance of the type that was given as schema; of a JSON Schema the JSON value.

        Raises RunFailed, with the code of the run, where there is none.
        """
        if self.error is not None:
            about = {"run_id": self.run_id}
            raise RunFailed(self.error.code, self.error.message, about, retryable=self.error.retryable)
        if self.terminal_code is None:
            code = RUN_OPEN if self.waiting_for is None else self.waiting_for.ending
            raise RunFailed(code, f"run {self.run_id} has no value yet; answer or resume it", {"run_id": self.run_id})
        if self.validation is not None and self.validation.violations:
            raise self._unfit("; ".join(self.validation.violations))
        read: Callable[[Any], T] = self.__dict__["read"]
        try:
            return read(self.structured_output)
        except Exception as error:
            # The code of a type may raise whatever it likes.
            raise self._unfit(words_of(error)) from error

    def _unfit(self, why: str) -> RunFailed:
        message = f"the output of run {self.run_id} is no value of its schema: {why[:400]}"
        return RunFailed(ErrorCode.CONSTRAINT_SCHEMA_INVALID, message, {"run_id": self.run_id})


class OutputShape(Generic[T]):
    """What a type or a schema asks of outputs: the code that hears them for it, and how a response of it is read."""

    def __init__(self, schema: SchemaSource[T]) -> None:
        self._schema = schema
        self._kept: dict[str, T] = {}
        check, name = check_of(schema), getattr(schema, "__name__", "output")
        # Empty where the type demands nothing that JSON cannot say.
        self.code: dict[str, Code] = {} if check is None else {f"{TYPE_MARK}{name}": partial(check, keep=self._keep)}

    def response(self, response: SystemResponse) -> StructuredResponse[T]:
        """A response with its output as a value of this schema."""
        made: StructuredResponse[T] = StructuredResponse(*(getattr(response, n) for n in response.__struct_fields__))
        made.__dict__["read"] = self._value
        return made

    def _keep(self, output: Any, value: T) -> None:
        # An output that comes again gives a value of its own, so the older ones are let go.
        self._kept[json.dumps(output, sort_keys=True)] = value
        if len(self._kept) > VALUES_KEPT_MAX:
            self._kept.pop(next(iter(self._kept)))

    def _value(self, output: Any) -> T:
        """The value that was made where the output was checked, once; else one that is made now."""
        key = json.dumps(output, sort_keys=True)
        if key in self._kept:
            return self._kept.pop(key)
        made: T = instance_reader(self._schema)(output)
        return made


def type_code(schema: SchemaSource[Any] | None) -> dict[str, Code]:
    """The code that hears an output for the type that was given as schema, where the type demands more than JSON can say."""
    return {} if schema is None else OutputShape(schema).code


def typed_for(place: str, typed: Mapping[str, Code]) -> dict[str, Code]:
    """What hears the outputs at a place of a plan, under names that no other place and no other type has there."""
    return {f"{TYPE_MARK}{place}{MARK}{name.removeprefix(TYPE_MARK)}": check for name, check in typed.items()}
