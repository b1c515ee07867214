"""Structured answers: the response of a run, with its output as the type that was asked for.

Rule 1: `structured_output` stays the JSON value; `value` is made of it by the schema's own type, when it is asked for.
Rule 2: there is no value of a run that failed or waits, or whose output does not fit: to ask for it raises.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from remit.core.failure import ErrorCode, RunFailed
from remit.core.run.contract import RUN_OPEN, SystemResponse
from remit.core.schema.json_schema import Schema
from remit.core.schema.schema_source import check_of, instance_reader
from remit.core.work.plan import MARK
from remit.orchestrate.patterns.structured_graph import TYPE_MARK
from remit.orchestrate.setup.kit import Code

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Any where the schema is no type: what a JSON Schema describes, no type checker knows.
    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
# A pydantic model, a dataclass, a TypedDict or another type, of which the value will be; or a JSON Schema.
SchemaSource: TypeAlias = type[T] | Mapping[str, Any] | Schema


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
            raise self._unfit(str(error)) from error

    def _unfit(self, why: str) -> RunFailed:
        message = f"the output of run {self.run_id} is no value of its schema: {why[:400]}"
        return RunFailed(ErrorCode.CONSTRAINT_SCHEMA_INVALID, message, {"run_id": self.run_id})


def type_code(schema: SchemaSource[Any] | None) -> dict[str, Code]:
    """The code that hears an output for the type that was given as schema, where the type demands more than JSON can say."""
    check = None if schema is None else check_of(schema)
    return {} if check is None else {f"{TYPE_MARK}{getattr(schema, '__name__', 'output')}": check}


def typed_for(place: str, typed: Mapping[str, Code]) -> dict[str, Code]:
    """What hears the outputs at a place of a plan, under names that no other place and no other type has there."""
    return {f"{TYPE_MARK}{place}{MARK}{name.removeprefix(TYPE_MARK)}": check for name, check in typed.items()}


def structured(response: SystemResponse, schema: SchemaSource[T]) -> StructuredResponse[T]:
    """A response with its output as a value of this schema."""
    made: StructuredResponse[T] = StructuredResponse(*(getattr(response, name) for name in response.__struct_fields__))
    made.__dict__["read"] = instance_reader(schema)
    return made
