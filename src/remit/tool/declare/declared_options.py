"""What a tool may declare of itself, by name; what is absent counts as the worst.

Rule 1: every option is a field of ToolDefinition or of its Trust, or is asked of the tool's own companions.
Rule 2: an unknown option is refused: a declaration that is misspelt would be one that is missing.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, TypedDict, TypeVar

from remit.core.failure import Ending, RequestRejected
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads, Repeat, Trust
from remit.core.limits.tools import TOOL_TIMEOUT_MS_DEFAULT, Effect, ToolCategory
from remit.core.limits.verification import OBSERVED_ONLY, SCHEMA_VERIFIER
from remit.core.record import JsonObject
from remit.tool.declare.signature import invalid_definition
from remit.tool.process.confinement import LIMITS, Limits, declared_limits, variables_of

# Asked before a call: may the tool be called now?
Available: TypeAlias = Callable[[], bool | Awaitable[bool]]
# Asked after a call, with the arguments and what was returned: True or "" confirms it; see docs/tools.md.
Verify: TypeAlias = Callable[[dict[str, Any], Any], Any]
# Asked about a call with an unknown outcome, with its key and perhaps its arguments; see docs/tools.md.
Reconcile: TypeAlias = Callable[..., Any]
Pairs: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

_Choice = TypeVar("_Choice", bound=StrEnum)
# Options that stand in a definition under their own name, as they are.
_AS_THEY_ARE = (
    "network",
    "idempotent",
    "destructive",
    "untrusted_output",
    "cost_microusd",
    "may_stop_loop",
)
_TEXTS = ("blast_radius", "rollback", "alternative", "fallback")
_OF_TRUST = ("author", "directory", "readers")
# Of options that are neither lists nor members of an enum: of which kind a value is, and how a refusal calls that.
_KINDS: tuple[tuple[tuple[str, ...], type, str], ...] = (
    (
        (
            "network",
            "idempotent",
            "destructive",
            "untrusted_output",
            "isolate",
            "sandbox",
            "may_stop_loop",
            "directory",
        ),
        bool,
        "True or False",
    ),
    (("timeout_ms", "cost_microusd"), int, "a whole number"),
    ((*_TEXTS, "author", "readers"), str, "a text"),
)


class Declared(TypedDict, total=False):
    """The options of the decorator."""

    name: str | None
    description: str | None
    effect: Effect | str
    category: ToolCategory | str | None
    network: bool
    idempotent: bool
    destructive: bool
    untrusted_output: bool
    isolate: bool
    # Runs in a process that sees no files but its own, no network unless `network` says so, and no other process.
    sandbox: bool
    # Of the process of an isolated or sandboxed tool: what it may take, and which variables it sees besides.
    limits: Mapping[str, int] | None
    environment: Iterable[str]
    timeout_ms: int
    cost_microusd: int
    permissions: Iterable[str]
    verify: Verify | None
    reconcile: Reconcile | None
    available: Available | None
    may_stop_loop: bool
    # Which arguments steer a call and of what kind each is, and which only carry words.
    control_args: Pairs
    payload_args: Iterable[str]
    # Fields of the result that supply values: path and kind.
    result: Pairs
    author: str
    directory: bool
    locator_args: Iterable[str]
    asks: Iterable[str]
    repeat: Repeat | str
    reads: Reads | str
    readers: str
    stakes: Stakes | str | None
    # The hosts that its calls reach, where these are always the same.
    hosts: Iterable[str]
    secrets: Pairs
    blast_radius: str
    rollback: str
    alternative: str
    fallback: str
    # Fields of the result that raise a flag, and what every call of it is about.
    flags: Pairs
    concerns: Iterable[str]
    # So many calls in so many milliseconds.
    rate: tuple[int, int] | None
    asks_under: Ending | str | None


def check_known(declared: Declared) -> None:
    """Refuse an option that no tool has."""
    if unknown := sorted(set(declared) - Declared.__annotations__.keys()):
        known = ", ".join(sorted(Declared.__annotations__))
        raise invalid_definition(
            str(declared.get("name") or "?"), f"declares {unknown[0]!r}, which is unknown; use {known}"
        )


def _check_kinds(name: str, said: Mapping[str, Any]) -> None:
    """Refuse a value of another kind than its option takes: a text in place of a yes or a no would be a yes."""
    for options, kind, wanted in _KINDS:
        for option in options:
            if option in said and type(said[option]) is not kind:
                raise _unlike(name, option, said[option], wanted)
    rate = said.get("rate")
    if rate and not (isinstance(rate, tuple | list) and list(map(type, rate)) == [int, int]):
        raise _unlike(name, "rate", rate, "two numbers: so many calls, in so many milliseconds")


def _unlike(name: str, option: str, value: object, wanted: str) -> RequestRejected:
    return invalid_definition(name, f"{option}={str(value)[:80]!r} is a {type(value).__name__}; give {wanted}")


class OwnProcess(NamedTuple):
    """What a tool declares of the process of its own that it runs in."""

    sandbox: bool = False
    limits: Limits = LIMITS
    environment: tuple[str, ...] = ()


ORDINARY = OwnProcess()


def own_process_of(name: str, declared: Declared) -> OwnProcess:
    """What these options say of the tool's process."""
    limits = declared_limits(name, declared.get("limits"))
    return OwnProcess(
        declared.get("sandbox", False),
        limits,
        variables_of(name, _names(name, "environment", declared.get("environment", ()))),
    )


def definition_fields(name: str, declared: Declared) -> JsonObject:
    """The fields of a definition that these options give."""
    verify, rate = declared.get("verify"), declared.get("rate") or (0, 0)
    category, asks_under = declared.get("category"), declared.get("asks_under")
    said: Mapping[str, Any] = declared
    _check_kinds(name, said)
    return {
        **{key: said[key] for key in (*_AS_THEY_ARE, *_TEXTS) if key in said},
        "effect": chosen(name, "effect", declared.get("effect", Effect.EXTERNAL), Effect),
        "category": None if category is None else chosen(name, "category", category, ToolCategory),
        "asks_under": None if asks_under is None else chosen(name, "asks_under", asks_under, Ending),
        "timeout_ms": declared.get("timeout_ms", TOOL_TIMEOUT_MS_DEFAULT),
        "reconcilable": declared.get("reconcile") is not None,
        "permissions": _names(name, "permissions", declared.get("permissions", ())),
        "verifier": SCHEMA_VERIFIER if verify is None else _name_of(verify),
        "control_args": _pairs(name, "control_args", declared.get("control_args", ())),
        "secrets": _pairs(name, "secrets", declared.get("secrets", ())),
        "rate_max": rate[0],
        "rate_per_ms": rate[1],
        "flags": _pairs(name, "flags", declared.get("flags", ())),
        "concerns": _names(name, "concerns", declared.get("concerns", ())),
        "trust": _trust(name, declared),
    }


def _name_of(verify: Verify) -> str:
    """What a check is called in the journal: its own name, unless that is a word of ours."""
    name: str = getattr(verify, "__name__", type(verify).__name__)
    return "verify" if name in (SCHEMA_VERIFIER, OBSERVED_ONLY) else name


def _trust(name: str, declared: Declared) -> Trust:
    said: Mapping[str, Any] = declared
    stakes = declared.get("stakes")
    return Trust(
        payload_args=_names(name, "payload_args", declared.get("payload_args", ())),
        fields=_pairs(name, "result", declared.get("result", ())),
        locator_args=_names(name, "locator_args", declared.get("locator_args", ())),
        asks=_names(name, "asks", declared.get("asks", ())),
        hosts=_names(name, "hosts", declared.get("hosts", ())),
        repeat=chosen(name, "repeat", declared.get("repeat", Repeat.ONCE), Repeat),
        reads=chosen(name, "reads", declared.get("reads", Reads.PRIVATE), Reads),
        stakes=None if stakes is None else chosen(name, "stakes", stakes, Stakes),
        **{key: said[key] for key in _OF_TRUST if key in said},
    )


def _pairs(name: str, option: str, given: Pairs) -> tuple[tuple[str, str], ...]:
    """Pairs of names, however they were given."""
    found = tuple(given.items()) if isinstance(given, Mapping) else _listed(name, option, given)
    if not all(isinstance(pair, tuple | list) and list(map(type, pair)) == [str, str] for pair in found):
        raise _unlike(name, option, given, "pairs of names, or a mapping of names")
    return tuple((one, other) for one, other in found)


def _names(name: str, option: str, given: Iterable[str]) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else _listed(name, option, given)
    if not all(isinstance(one, str) for one in found):
        raise _unlike(name, option, given, "names")
    return found


def _listed(name: str, option: str, given: object) -> tuple[Any, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise _unlike(name, option, given, "a list")
    return tuple(given)


def chosen(name: str, option: str, value: str, choices: type[_Choice]) -> _Choice:
    """The member of an enum that an option names."""
    try:
        return choices(value)
    except ValueError:
        known = ", ".join(choices)
        raise invalid_definition(name, f"{option}={str(value)[:80]!r} is unknown; use one of {known}") from None
