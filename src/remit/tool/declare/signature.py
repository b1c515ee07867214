"""Signatures: what a typed function takes and returns, read once when it is declared.

Rule 1: every parameter has a name, a type that JSON can carry, and nothing else: no *args, no **kwargs.
Rule 2: four kinds of parameters are ours and hidden from the model: `idempotency_key: str`, any `CancelToken`, any
        `CallMetadata`, and those that the declaration names for a secret.
Rule 3: what cannot be read is refused here, where its author sees it, and never when a model calls it.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Union, get_args, get_origin, get_type_hints

from remit.core.failure import RequestRejected
from remit.core.limits.tools import TOOL_INVALID
from remit.core.raised import raised
from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from remit.tool.call.call_metadata import CallMetadata
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import Stop
from remit.tool.declare.docstrings import parameters_of
from remit.tool.declare.parameter_schemas import parameters_schema, result_schema
from remit.tool.secrets.secret import NAME_CHARS_MAX, NAME_PATTERN, Secret

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

KEY_PARAMETER = "idempotency_key"

_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}; name every parameter, or take one list",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}; name every parameter, or take one dict",
    inspect.Parameter.POSITIONAL_ONLY: "takes {0} by position only; remove the '/' from its signature",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and returns: the converters, their schemas, and which parameters are ours to fill."""

    model: "type[BaseModel]"
    # The parameters that the model fills: its field, its name, and whether the function has a default of its own.
    names: tuple[tuple[str, str, bool], ...]
    takes_key: bool
    token_names: tuple[str, ...]
    metadata_names: tuple[str, ...]
    # The parameters that a secret fills, and whether each takes a Secret and not its text.
    secret_names: tuple[tuple[str, bool], ...]
    returns: "TypeAdapter[Any] | None"
    returns_name: str
    # Whether a text and nothing else was declared.
    returns_text: bool
    parameters: JsonObject
    result: JsonObject


def read_signature(function: Callable[..., Any], name: str, secrets: tuple[tuple[str, str], ...] = ()) -> Signature:
    """Read a function, or refuse it with the reason. `name` is the tool's, for the messages.

    `secrets` are the parameters that a secret fills, each with the name of the secret.
    """
    if not inspect.isroutine(function):
        raise invalid_definition(name, f"a {type(function).__name__} is no function; wrap it in a typed 'def'")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise invalid_definition(name, "yields its results; return a list instead")
    parameters, hints = _read(function, name)
    tokens = tuple(key for key in parameters if hints[key] is CancelToken)
    metadata = tuple(key for key in parameters if hints[key] is CallMetadata)
    _check_key(hints, name)
    secret_names = _read_secrets(parameters, hints, name, secrets)
    hidden = {*tokens, *metadata, KEY_PARAMETER, *(key for key, _ in secret_names)}
    shown = {key: value for key, value in parameters.items() if key not in hidden}
    described = parameters_of(inspect.getdoc(function) or "")
    model = _model(name, shown, hints, described)
    schema = _schema(name, model, shown, hints)
    returned = _without_stop(hints.get("return", Any))
    adapter = None if returned in (Any, NoReturn) else _adapter(name, returned)
    return Signature(
        model=model,
        names=tuple(
            (_field_name(position), key, value.default is not value.empty)
            for position, (key, value) in enumerate(shown.items())
        ),
        takes_key=KEY_PARAMETER in parameters,
        token_names=tokens,
        metadata_names=metadata,
        secret_names=secret_names,
        returns=adapter,
        returns_name=_type_name(returned),
        returns_text=returned is str,
        parameters=schema,
        result={} if adapter is None else _result(name, adapter, returned),
    )


def invalid_definition(name: str, problem: str) -> RequestRejected:
    """The refusal of a definition."""
    return RequestRejected(TOOL_INVALID, f"tool {name[:80]!r}: {problem}", {"tool": name[:80]})


def _read(function: Callable[..., Any], name: str) -> tuple[Mapping[str, inspect.Parameter], dict[str, Any]]:
    try:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        # Annotations are expressions, and so may raise anything at all.
        problem = f"its signature cannot be read ({raised(error)}); annotate with types of its module"
        raise invalid_definition(name, problem) from error
    for key, parameter in parameters.items():
        if parameter.kind in _KINDS:
            raise invalid_definition(name, _KINDS[parameter.kind].format(key))
        if key not in hints:
            raise invalid_definition(name, f"parameter {key!r} has no annotation; say which type it takes")
    return parameters, hints


def _check_key(hints: Mapping[str, Any], name: str) -> None:
    if hints.get(KEY_PARAMETER, str) is not str:
        kind = _type_name(hints[KEY_PARAMETER])
        raise invalid_definition(
            name, f"parameter '{KEY_PARAMETER}' is filled with the key of the call, a str, and not a {kind}"
        )


def _read_secrets(
    parameters: Mapping[str, Any], hints: Mapping[str, Any], name: str, secrets: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, bool], ...]:
    """The parameters that a secret fills; each must be there, and take one."""
    for key, secret in secrets:
        if key not in parameters or key == KEY_PARAMETER:
            raise invalid_definition(
                name, f"secrets name {str(key)[:80]!r}, which is no parameter that a secret could fill"
            )
        named: object = secret
        if not isinstance(named, str) or not NAME_PATTERN.fullmatch(named):
            problem = f"a secret is named by 1 to {NAME_CHARS_MAX} letters, digits or '_', and begins with no digit"
            raise invalid_definition(name, f"parameter {key!r} is filled with a secret without a fit name: {problem}")
        if hints[key] not in (str, Secret):
            kind = _type_name(hints[key])
            raise invalid_definition(
                name, f"parameter {key!r} is filled with a secret, a str or a Secret, and not a {kind}"
            )
    filled = {key for key, _ in secrets}
    for key in parameters:
        if hints[key] is Secret and key not in filled:
            raise invalid_definition(
                name, f"parameter {key!r} is a Secret; say which with @tool(secrets={{{key!r}: 'NAME'}})"
            )
    return tuple((key, hints[key] is Secret) for key in parameters if key in filled)


def _model(
    name: str, shown: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], described: Mapping[str, str]
) -> "type[BaseModel]":
    """The model that converts arguments. Its fields have names of their own, since a parameter may be called `json`."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {}
    for position, (key, parameter) in enumerate(shown.items()):
        if type(parameter.default).__name__ == "FieldInfo":
            raise invalid_definition(
                name, f"parameter {key!r} has a Field as its default; use Annotated[type, Field(...)]"
            )
        field = _field(key, hints[key], described.get(key, ""))
        fields[_field_name(position)] = field if parameter.default is parameter.empty else (field, parameter.default)
    try:
        model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    except Exception as error:
        # Building a model runs code of the types in it, and so may raise anything at all.
        raise _unfit(name, shown, hints, error) from error
    return model


def _field_name(position: int) -> str:
    return f"p{position}"


def _field(key: str, annotation: Any, description: str) -> Any:
    from pydantic import Field
    from pydantic.fields import FieldInfo

    own = (part for part in get_args(annotation)[1:] if isinstance(part, FieldInfo))
    if get_origin(annotation) is Annotated and any(part.description for part in own):
        description = ""
    named = Field(alias=key, validation_alias=key, serialization_alias=key)
    if not description:
        return Annotated[annotation, named]
    return Annotated[annotation, Field(description=description), named]


def _schema(
    name: str, model: "type[BaseModel]", shown: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> JsonObject:
    try:
        schema = parameters_schema(model)
    except Exception as error:
        raise _unfit(name, shown, hints, error) from error
    _check_compiles(name, "parameters", schema)
    return schema


def _check_compiles(name: str, part: str, schema: JsonObject) -> None:
    """A schema that cannot be compiled would refuse every call."""
    try:
        compile_schema(schema)
    except RequestRejected as error:
        raise invalid_definition(name, f"its {part} make a schema that cannot be checked: {error.message}") from error


def _unfit(
    name: str, shown: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], error: Exception
) -> RequestRejected:
    """Name the parameter whose type JSON cannot carry: the first that fails by itself."""
    from pydantic import TypeAdapter

    for key in shown:
        try:
            TypeAdapter(hints[key]).json_schema()
        except Exception as own:  # noqa: BLE001  # whatever a type raises, it is the one that was looked for
            kind = _type_name(hints[key])
            return invalid_definition(
                name, f"parameter {key!r} has type {kind}, which JSON cannot carry ({_first_line(own)})"
            )
    return invalid_definition(name, f"its parameters make no schema ({_first_line(error)})")


def _without_stop(annotation: Any) -> Any:
    """The return annotation as far as it speaks of results."""
    if annotation is Stop:
        return Any
    if get_origin(annotation) not in (Union, types.UnionType) or Stop not in get_args(annotation):
        return annotation
    return Union[tuple(part for part in get_args(annotation) if part is not Stop)]  # noqa: UP007  # made at run time


def _adapter(name: str, returned: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(returned)
    except Exception as error:
        problem = f"its result has type {_type_name(returned)}, which JSON cannot carry ({_first_line(error)})"
        raise invalid_definition(name, problem) from error


def _result(name: str, adapter: "TypeAdapter[Any]", returned: Any) -> JsonObject:
    try:
        schema = result_schema(adapter)
    except Exception as error:
        problem = f"its result has type {_type_name(returned)}, which has no schema ({_first_line(error)})"
        raise invalid_definition(name, problem) from error
    _check_compiles(name, "results", schema)
    return schema


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).removeprefix("typing.")[:200]


def _first_line(error: Exception) -> str:
    return raised(error).split("\n")[0][:200]
