"""Where a schema comes from: a JSON Schema, a pydantic model, a dataclass, a TypedDict, or any type that JSON can carry.

Rule 1: what is a JSON Schema already is taken as it is; nothing is added to it.
Rule 2: a type is read as what may be written for it, by its aliases; what has no schema is refused, with the reason.
Rule 3: what a type demands and a JSON Schema does not (validators, dates, decimals) is checked by the type itself; a type
        that demands nothing more has no such check, and costs nothing.
"""

import json
import types
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints, is_typeddict

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.raised import raised
from remit.core.schema.json_schema import JsonSchema, Schema, compile_schema
from remit.core.schema.json_text import parse_json

if TYPE_CHECKING:
    from pydantic import BaseModel

JsonValue: TypeAlias = Any

SCHEMA_SOURCE_INVALID = "SCHEMA_SOURCE_INVALID"

# Types within types within types; a type that holds itself has to be a model, which can be named.
TYPE_LEVELS_MAX = 32
# Of so many types it is kept whether and how they check a value; a program has dozens.
CHECKS_KEPT_MAX = 256


def schema_of(source: Any) -> JsonSchema:
    """The JSON Schema that a source stands for; raises RequestRejected when there is none."""
    if isinstance(source, dict | bool):
        return source
    if isinstance(source, Schema):
        return source.to_json()
    if isinstance(source, str):
        # It is no name of a type either, whose meaning only the caller's module knows.
        raise _refused(source, "a text names no type; pass the type itself, or a JSON Schema")
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        schema = TypeAdapter(_carried(source, TYPE_LEVELS_MAX)).json_schema(by_alias=True, mode="validation")
    # A forward reference that leads nowhere is a NameError, a generic with too many arguments a TypeError.
    except (PydanticUserError, TypeError, ValueError, NameError, LookupError, AttributeError) as error:
        raise _refused(source, str(error).partition("\n")[0]) from error
    compile_schema(schema)
    return schema


def instance_reader(source: Any) -> Callable[[JsonValue], Any]:
    """What makes of a JSON value that fits a source an instance of it; raises ValueError for one that does not.

    For a JSON Schema that is the JSON value itself, and for a TypedDict of `typing` before Python 3.12 as well.
    """
    if isinstance(source, dict | bool | Schema):
        return _as_it_is
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter = TypeAdapter(source)
    except PydanticUserError:
        return _as_it_is
    # As JSON, and not as Python: a date and a tuple are written as a text and a list.
    return lambda value: adapter.validate_json(json.dumps(value))


# Takes a JSON value that a type accepted, and the instance that was made of it.
Keep: TypeAlias = Callable[[JsonValue, Any], None]
SchemaCheck: TypeAlias = Callable[..., list[str]]


def check_of(source: Any) -> SchemaCheck | None:
    """What looks at a JSON text that fits the schema of a source, and says why the type refuses it; None where it never could.

    A second argument of it, a Keep, is told the instance that it made, where that is what `instance_reader` makes.
    Raises RequestRejected for what stands for no schema.
    """
    if isinstance(source, dict | bool | str | Schema):
        return None
    try:
        return _check_of_type(source)
    except TypeError:
        # It has no hash, so nothing of it can be kept.
        return _check_of_type.__wrapped__(source)


@lru_cache(maxsize=CHECKS_KEPT_MAX)
def _check_of_type(source: Any) -> SchemaCheck | None:
    schema = compile_schema(schema_of(source))
    from pydantic import TypeAdapter, ValidationError

    carried = _carried(source, TYPE_LEVELS_MAX)
    adapter: TypeAdapter[Any] = TypeAdapter(carried)
    # A TypedDict is read as a model here, and is none.
    is_same = carried == source
    if not _demands_more(adapter.core_schema):
        return None

    def problems(text: str, keep: Keep | None = None) -> list[str]:
        try:
            value = parse_json(text)
        except ValueError:
            return []
        if not schema.is_valid(value):
            return []  # The schema has its own words for that.
        try:
            made = adapter.validate_json(text)
        except ValidationError as refused:
            said = refused.errors(include_url=False, include_context=False)
            return [f"output /{'/'.join(map(str, error['loc']))}: {error['msg']}" for error in said]
        except Exception as error:  # noqa: BLE001  # whatever the code of a type raises, it takes no such value
            return [f"the type of the output raised {raised(error)}"]
        if keep is not None and is_same:
            keep(value, made)
        return []

    return problems


def _demands_more(core: Any) -> bool:
    """Whether a type, as pydantic has compiled it, refuses what its JSON Schema admits."""
    if isinstance(core, list | tuple):
        return any(map(_demands_more, core))
    if not isinstance(core, Mapping):
        return False
    if isinstance(kind := core.get("type"), str):
        is_read = any(map(core.get, _READ_BY_THE_TYPE)) or core.get("keys_schema", _ANY_KEY)["type"] not in _PLAIN_KEYS
        if is_read or kind not in _SAID_IN_JSON:
            return True
    return any(_demands_more(part) for key, part in core.items() if key not in _NO_PARTS)


def _as_it_is(value: JsonValue) -> JsonValue:
    return value


def _carried(hint: Any, levels_left: int) -> Any:
    """A type with every TypedDict in it as a model, since pydantic refuses those of `typing` before Python 3.12."""
    if not levels_left:
        raise _refused(hint, f"it nests deeper than type_levels_max={TYPE_LEVELS_MAX}; make it a pydantic model")
    if is_typeddict(hint):
        return _model(hint, levels_left)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[_carried(arguments[0], levels_left - 1), *hint.__metadata__]
    if origin is Union or origin is types.UnionType:
        return reduce(or_, [_carried(argument, levels_left - 1) for argument in arguments])
    if origin in _HOLDERS:
        return origin[tuple(_carried(argument, levels_left - 1) for argument in arguments)]
    return hint


def _model(hint: Any, levels_left: int) -> "type[BaseModel]":
    from pydantic import Field, create_model

    hints = get_type_hints(hint, include_extras=True)
    make: Callable[..., type[BaseModel]] = create_model
    fields = {
        name: (
            _carried(_unmarked(each), levels_left - 1),
            # A default that is made, not given, stands in no schema.
            Field(default_factory=dict, alias=name) if name in hint.__optional_keys__ else Field(alias=name),
        )
        for name, each in hints.items()
    }
    # Fields have names of our own, since a model refuses some that a key may have.
    return make(hint.__name__, **{f"field_{number}": field for number, field in enumerate(fields.values())})


def _unmarked(hint: Any) -> Any:
    """A type without Required or NotRequired around it; which keys are required the TypedDict says itself."""
    return get_args(hint)[0] if getattr(get_origin(hint), "_name", "") in ("Required", "NotRequired") else hint


def _refused(source: Any, reason: str) -> RequestRejected:
    message = f"{clipped(source)} stands for no JSON Schema: {reason[:200]}; pass a JSON Schema, a model or a dataclass"
    return RequestRejected(SCHEMA_SOURCE_INVALID, message)


# The parts of types whose JSON Schema says all that they demand; whatever is none of these is asked itself.
_SAID_IN_JSON = frozenset(
    [
        "any",
        "bool",
        "dataclass",
        "dataclass-args",
        "dataclass-field",
        "default",
        "definition-ref",
        "definitions",
        "dict",
        "enum",
        "float",
        "int",
        "list",
        "literal",
        "model",
        "model-field",
        "model-fields",
        "none",
        "nullable",
        "str",
        "tuple",
        "typed-dict",
        "typed-dict-field",
        "union",
    ]
)
# What has a type run code of its own, or read more strictly or otherwise than JSON Schema tells.
_READ_BY_THE_TYPE = ("post_init", "custom_init", "strict", "pattern", "strip_whitespace")
# Keys of JSON are texts; what else they must be, its schema does not say.
_ANY_KEY = {"type": "any"}
_PLAIN_KEYS = ("any", "str")
_NO_PARTS = ("metadata", "serialization", "expected", "default", "config")
_HOLDERS = frozenset({list, dict, tuple, set, frozenset})
