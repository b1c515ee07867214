"""Arguments of a function, made from JSON; and its result, made into text.

Rule 1: the converter reads the canonical form of the arguments, the very bytes that were judged and approved.
Rule 2: conversion is strict, so that what the schema refuses is refused here too.
Rule 3: an argument that was not given is not passed; the function's own default holds.
Rule 4: a text stays as it is; everything else becomes JSON.
Rule 5: what was returned is kept: members that the declared type does not name are written, too, and the error of a result
        that cannot be used says what it was.
Rule 6: what goes wrong before the function is entered has changed nothing; what goes wrong afterwards leaves that open.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from remit.core.failure import ErrorCode
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.record import JsonObject
from remit.tool.call.call_metadata import NO_METADATA, CallMetadata
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import ERROR_CHARS_MAX, RESULT_BYTES_MAX, Performed, Stop, ToolFault, error_text, fault_of
from remit.tool.declare.decorator import Tool
from remit.tool.declare.signature import KEY_PARAMETER
from remit.tool.secrets.secret import Secret

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

# Enough of the problems for a model to correct itself.
PROBLEMS_MAX = 10

# Values whose declared type may name less than they hold.
_HOLDERS = (dict, list, tuple)

# No value: a text that is the result of no call of the function.
UNFIT = object()

# What a function that asks for no secrets is called with.
NO_SECRETS_LENT: Mapping[str, Secret] = MappingProxyType({})


def prepared(
    tool: Tool,
    arguments: JsonObject | str,
    key: str,
    token: CancelToken | None,
    secrets: Mapping[str, Secret] = NO_SECRETS_LENT,
    metadata: Mapping[str, Any] = NO_METADATA,
) -> dict[str, Any]:
    """The arguments, or those of their canonical form, in the types the function declared, with the hidden ones filled in."""
    signature = tool.signature
    try:
        canonical = arguments if isinstance(arguments, str) else canonical_json(arguments)
        given = signature.model.model_validate_json(canonical, strict=True)
    except Exception as error:
        # A validator of the user's own type may raise anything.
        raise _not_begun(_unfit(error)) from error
    fields = given.__dict__
    values: dict[str, Any] = {}
    for field, name, has_default in signature.names:
        if not has_default or field in given.model_fields_set:
            values[name] = fields[field]
    if signature.takes_key:
        values[KEY_PARAMETER] = key
    for name in signature.token_names:
        values[name] = token
    for name in signature.metadata_names:
        values[name] = CallMetadata(deepcopy(dict(metadata)))
    for name, is_secret in signature.secret_names:
        values[name] = secrets[name] if is_secret else secrets[name].reveal()
    return values


def _unfit(error: Exception) -> str:
    """Why arguments could not be made into what the function takes."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        return f"the arguments do not fit: {_problems(error)}"
    if isinstance(error, NotCanonical):
        return f"the arguments are no JSON: {error}"
    return f"the arguments could not be converted: {error_text(error)}"


def call_function(
    tool: Tool,
    arguments: JsonObject | str,
    key: str,
    token: CancelToken | None,
    secrets: Mapping[str, Secret] = NO_SECRETS_LENT,
    metadata: Mapping[str, Any] = NO_METADATA,
) -> Any:
    """What the function returned, from a thread or process of its own; an asynchronous one gets a loop of its own."""
    values = prepared(tool, arguments, key, token, secrets, metadata)
    try:
        return asyncio.run(tool.function(**values)) if tool.is_async else tool.function(**values)
    except BaseException as error:
        # Whatever a tool raises, an exit or an interrupt included, is an observation and ends nothing but its call.
        raise fault_of(error) from error


def result_text(tool: Tool, value: Any) -> Performed:
    """Write what a function returned as the text of its result; a coroutine is closed and refused."""
    if type(value) is str and tool.signature.returns_text:
        # Of a text that was declared as such, nothing is left to be checked but its size.
        return Performed(_bounded(value))
    if isinstance(value, Stop):
        if not isinstance(value.content, str):
            raise _failed(
                f"returned Stop with a {type(value.content).__name__}; its content must be a text; it was: {_told(value.content)}"
            )
        return Performed(_bounded(value.content), stop_loop=True)
    if inspect.iscoroutine(value):
        value.close()
        raise _failed("returned a coroutine; declare the function with 'async def'")
    returned = value
    if tool.signature.returns is not None:
        value = _checked(tool, tool.signature.returns, value)
    text = value if type(value) is str else _written(tool, value)
    return Performed(_bounded(_whole(text, value, returned) if isinstance(returned, _HOLDERS) else text))


def returned_as(tool: Tool, text: str) -> Any:
    """What a function would have returned for the text of a result to be this; UNFIT where it cannot have been.

    A function that declares nothing is taken to have returned the text.
    """
    signature = tool.signature
    if signature.returns is None or signature.returns_text:
        return text
    for read in (signature.returns.validate_json, signature.returns.validate_python):
        with suppress(Exception):
            # A validator of the user's own type may raise anything.
            return read(text)
    return UNFIT


def _checked(tool: Tool, adapter: "TypeAdapter[Any]", value: Any) -> Any:
    try:
        return adapter.validate_python(value, strict=True)
    except Exception as error:
        raise _failed(_undeclared(tool, value, error)) from error


def _undeclared(tool: Tool, value: Any, error: Exception) -> str:
    """Why a result is not what the function declared."""
    from pydantic import ValidationError

    kind = type(value).__name__
    if isinstance(error, ValidationError):
        why = f"returned a {kind} that is not the declared {tool.signature.returns_name}: {_problems(error)}"
    else:
        why = f"its result of type {kind} could not be checked: {error_text(error)}"
    return f"{why}; it was: {_told(value)}"


def _written(tool: Tool, value: Any) -> str:
    try:
        text = (tool.signature.returns or _anything()).dump_json(value, by_alias=True, warnings=False).decode()
    except Exception as error:
        # Values of the user's own types may raise anything while they are written.
        why = f"returned a {type(value).__name__}, which is no JSON: {error_text(error)}"
        raise _failed(f"{why}; it was: {_told(value)}") from error
    # A text in an enum or a subclass of str is a text, and stays one.
    return str.__str__(value) if isinstance(value, str) else text


def _whole(text: str, value: Any, returned: Any) -> str:
    """The written result with the members that its declared type does not name, and so has dropped."""
    try:
        if value == returned:
            return text
        written = json.loads(text)
        whole = _completed(written, json.loads(_as_json(returned)))
    except Exception:  # noqa: BLE001  # values of the user's own types may raise anything; what fits is written then
        return text
    return text if whole == written else json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _completed(written: Any, returned: Any) -> Any:
    if isinstance(written, dict) and isinstance(returned, dict):
        fitting = {
            name: _completed(part, returned[name]) if name in returned else part for name, part in written.items()
        }
        return fitting | {name: part for name, part in returned.items() if name not in written}
    if isinstance(written, list) and isinstance(returned, list) and len(written) == len(returned):
        return [_completed(*parts) for parts in zip(written, returned, strict=True)]
    return written


def _told(value: Any) -> str:
    """What was returned, as far as it can be told."""
    if type(value) is str:
        return value
    for told in (_as_json, repr):
        with suppress(Exception):
            # Values of the user's own types may raise anything.
            return told(value)
    return f"a {type(value).__name__} that cannot be told"


def _as_json(value: Any) -> str:
    return _anything().dump_json(value, by_alias=True, warnings=False).decode()


@cache
def _anything() -> "TypeAdapter[Any]":
    """Writes an undeclared result, by its type at hand; made once, since making it costs more than using it."""
    from pydantic import TypeAdapter

    return TypeAdapter(Any)


def _bounded(text: str) -> str:
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if size > RESULT_BYTES_MAX:
        why = f"result_bytes={size} exceeds result_bytes_max={RESULT_BYTES_MAX}; return less, or a reference"
        raise _failed(f"{why}; it began: {text[:ERROR_CHARS_MAX]}")
    return text


def _problems(error: "ValidationError") -> str:
    """The places that do not fit, without the values: those may be long, and the model knows them."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(str(part) for part in one['loc']) or 'value'}: {one['msg']}" for one in found[:PROBLEMS_MAX]]
    more = [f"and {len(found) - PROBLEMS_MAX} more"] if len(found) > PROBLEMS_MAX else []
    return "; ".join(told + more)


def _not_begun(error: str) -> ToolFault:
    """The arguments could not be made ready, so the function was not entered."""
    return ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, error)


def _failed(error: str) -> ToolFault:
    """The function has returned what cannot be used: what it did by then is unknown."""
    return ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, error, is_unknown=True)
