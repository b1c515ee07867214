"""Arguments against the types that a verb declares: Python lets a caller pass anything, and a store does not.

Rule 1: a verb of a public class refuses what its declaration does not take before it does anything, by one mechanism; the
        refusal has a code and names the argument, its value, and what may stand there.
Rule 2: what a verb reads itself, since it may be given in several forms, is left to the verb. So is what is declared by a
        name that type checkers alone import.
Rule 3: a function that is called and not awaited must be a plain one: of an async one nothing would ever be heard.
Rule 4: declarations are read when a verb is first called, so that a class costs nothing that is only imported.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial, wraps
from types import FunctionType, UnionType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, cast, get_args, get_origin

from remit.core.declared_types import refusal
from remit.core.failure import RequestRejected
from remit.core.run.request_checks import REQUEST_MALFORMED

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Asked = ParamSpec("Asked")
_Takes = Callable[[object], bool]

_UNIONS = (Union, UnionType)
_TEXTS = (str, bytes, bytearray)
_OPEN: tuple[Any, ...] = (Any, object)
# How a function is declared that gives nothing.
_NOTHING: tuple[Any, ...] = (None, type(None), "None")


class _Argument(NamedTuple):
    """An argument of a verb: what is declared, and whether a value can stand there."""

    name: str
    declared: Any
    takes: _Takes


class _Arguments(NamedTuple):
    """The arguments of a verb by their place and by their name, and what stands behind the last place."""

    placed: tuple[_Argument, ...]
    named: Mapping[str, _Argument]
    more: _Argument | None


def checks_arguments(*read_by_verbs: str) -> Callable[[type[T]], type[T]]:
    """Have the public verbs of a class refuse what they do not declare, save the arguments that they read themselves."""

    def checked(kind: type[T]) -> type[T]:
        for name, verb in list(vars(kind).items()):
            if isinstance(verb, FunctionType) and not name.startswith("_"):
                setattr(kind, name, _checked(verb, read_by_verbs))
        return kind

    return checked


def checks_only(*arguments: str) -> Callable[[F], F]:
    """Have one function, such as what makes a pattern, refuse the same of these arguments; it reads the others itself."""

    def checked(verb: F) -> F:
        others = tuple(name for name in verb.__annotations__ if name not in arguments)
        return cast("F", _checked(verb, others))

    return checked


def _checked(verb: Callable[Asked, Any], read_by_verb: tuple[str, ...]) -> Callable[Asked, Any]:
    assert isinstance(verb, FunctionType), "it is written with def"
    declared = partial(_declared_by, verb, read_by_verb)
    if inspect.iscoroutinefunction(verb):

        @wraps(verb)
        async def told_later(*args: Asked.args, **kwargs: Asked.kwargs) -> Any:
            _expect_declared(declared(), args, kwargs)
            return await verb(*args, **kwargs)

        return told_later

    @wraps(verb)
    def told(*args: Asked.args, **kwargs: Asked.kwargs) -> Any:
        _expect_declared(declared(), args, kwargs)
        return verb(*args, **kwargs)

    return told


def _expect_declared(declared: _Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise RequestRejected for the first argument that cannot stand where it does; Python itself counts them."""
    for place, value in enumerate(args):
        argument = declared.placed[place] if place < len(declared.placed) else declared.more
        if argument is not None and not argument.takes(value):
            raise _unfit(argument.name, value, argument.declared)
    for name, value in kwargs.items():
        if (argument := declared.named.get(name)) is not None and not argument.takes(value):
            raise _unfit(name, value, argument.declared)


def expect_plain(name: str, value: object) -> None:
    """Raise RequestRejected for what cannot be called, or would have to be awaited, where a listener may stand."""
    if value is not None and (not callable(value) or is_async(value)):
        raise _unfit(name, value, Callable | None)


def is_async(value: object) -> bool:
    """Whether a call of this gives something that has to be awaited."""
    ways: tuple[object, ...] = (value,)
    if not isinstance(value, FunctionType):
        ways = (value, getattr(value, "__call__", None))  # noqa: B004  # whether it is async, not whether it is callable
    return any(inspect.iscoroutinefunction(way) or inspect.isasyncgenfunction(way) for way in ways)


def _unfit(name: str, value: object, declared: Any) -> RequestRejected:
    refused = refusal(REQUEST_MALFORMED, name, value, declared)
    told = (kind for kind in (declared, *get_args(declared)) if getattr(kind, "_is_protocol", False))
    if not is_async(value) and not any(_awaited_in(value, _told_members(kind)) for kind in told):
        return refused
    message = f"{refused.message} that is called and not awaited; give a plain function, which may begin a task"
    return RequestRejected(REQUEST_MALFORMED, message, refused.details)


# A pure memo: what a function declares never changes.
@cache
def _declared_by(verb: FunctionType, read_by_verb: tuple[str, ...]) -> _Arguments:
    code, types = verb.__code__, verb.__annotations__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[: count + bool(code.co_flags & inspect.CO_VARARGS)]
    every = [_argument(name, Any if name in read_by_verb else types.get(name, Any)) for name in names]
    return _Arguments(
        placed=tuple(every[: code.co_argcount]),
        named={argument.name: argument for argument in every[:count]},
        more=every[count] if len(every) > count else None,
    )


def _argument(name: str, declared: Any) -> _Argument:
    return _Argument(name, declared, _taker(declared))


def _taker(declared: Any) -> _Takes:
    """Whether a value can stand where this is declared."""
    origin, inner = get_origin(declared), get_args(declared)
    if hasattr(declared, "__metadata__"):
        return _taker(inner[0])
    if origin in _UNIONS:
        takers = tuple(map(_taker, inner))
        return lambda value: any(takes(value) for takes in takers)
    if origin is Literal:
        return lambda value: value in inner
    if isinstance(origin, type):
        return _container_taker(origin, inner)
    if declared is None:
        return lambda value: value is None
    return _class_taker(declared) if isinstance(declared, type) and declared not in _OPEN else _anything


def _class_taker(kind: type) -> _Takes:
    if kind is int or kind is float:
        numbers = (int,) if kind is int else (int, float)
        return lambda value: isinstance(value, numbers) and not isinstance(value, bool)
    if getattr(kind, "_is_protocol", False):
        members, told = tuple(_members_of(kind)), _told_members(kind)
        # A property is not asked, which may refuse to answer.
        return lambda value: (
            all(hasattr(type(value), name) or name in getattr(value, "__dict__", ()) for name in members)
            and not _awaited_in(value, told)
        )
    return lambda value: isinstance(value, kind)


def _members_of(protocol: type) -> Iterator[str]:
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False):
            names = (*vars(base), *vars(base).get("__annotations__", ()))
            yield from (name for name in names if name == "__call__" or not name.startswith("_"))


def _told_members(protocol: type) -> tuple[str, ...]:
    """The functions of a protocol that are told something and give nothing."""
    known = {name: getattr(protocol, name, None) for name in _members_of(protocol)}
    plain = {name: one for name, one in known.items() if isinstance(one, FunctionType) and not is_async(one)}
    return tuple([name for name, one in plain.items() if one.__annotations__.get("return", Any) in _NOTHING])


def _awaited_in(value: object, told: tuple[str, ...]) -> bool:
    """Whether one of these functions of a value would have to be awaited."""
    return any(is_async(getattr(value, "__dict__", {}).get(name, getattr(type(value), name, None))) for name in told)


def _container_taker(kind: type, inner: tuple[Any, ...]) -> _Takes:
    """A text is no list of texts. What can be read once alone is not looked into."""
    if inner and kind is not type and issubclass(kind, Callable) and inner[-1] in _NOTHING:  # type: ignore[arg-type]
        return lambda value: isinstance(value, kind) and not is_async(value)
    if kind is type or not inner or issubclass(kind, Callable):  # type: ignore[arg-type]  # it is a class at runtime
        return lambda value: isinstance(value, kind)
    if issubclass(kind, Mapping):
        keys, values = map(_taker, inner)
        return lambda given: (
            isinstance(given, kind) and all(keys(key) and values(value) for key, value in given.items())
        )
    element = _taker(inner[0])

    def takes(given: object) -> bool:
        if isinstance(given, _TEXTS) or not isinstance(given, kind):
            return False
        return not isinstance(given, tuple | list) or all(map(element, given))

    return takes if len(inner) == 1 or inner[1] is ... else lambda value: isinstance(value, kind)


def _anything(value: object) -> bool:
    return True
