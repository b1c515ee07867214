"""Flags: what a result says that a boundary has to know, by the fields that its tool declares.

A tool declares `path: flag`. The path leads to a field of its result (`exit_code`, `[].risk`), the flag is a name and how
the field is read:

    NAME            raised unless the field is clear: false, 0, empty, or a word that says no (none, low, ok, passed ...)
    !NAME           raised unless the field says yes: true, a number but 0, or a word that says no harm (ok, passed ...)
    NAME=a|b        raised where the field is one of these words, in any case of letters
    NAME>=100       raised where the field is a number of this size

Rule 1: a field that is not there, and a result that has no fields, raise the flag: what cannot be decided objects.
Rule 2: a flag is never lowered, but for TESTS_FAILED, of which the latest test run decides.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from remit.core.regex import regex

# The last declared test run after a change failed.
TESTS_FAILED = "tests_failed"
# What was read holds something that looks like a secret, and belongs to another user than the one who asks.
SECRET_READ, OTHER_USER = "secret_read", "other_user"
# Names that only remit itself raises.
OWN_FLAGS = (SECRET_READ, OTHER_USER)

_SPEC = regex(r"(?P<not>!)?(?P<name>[a-z][a-z0-9_]{0,39})(?:=(?P<words>[^=<>]{1,200})|>=(?P<least>-?\d{1,15}))?")
_STEP = regex(r"\[\]|[^.\[\]]+")
_PATH = regex(r"(?:[^.\[\]]+|\[\])(?:\.[^.\[\]]+|\[\])*")
# How tools that run tests are called, and the fields by which such a tool tells what came of them.
_WORD = regex(r"[a-z]+")
_TESTING = frozenset({"test", "tests", "pytest", "unittest", "check", "checks", "lint", "build", "ci"})
_FAILURES = ("exit_code", "exitcode", "exit_status", "returncode", "return_code", "failed", "failures", "errors")
_PASSES = ("passed", "success", "ok")
OUTCOME_FIELDS = frozenset((*_FAILURES, *_PASSES))
# Words by which a field says that there is nothing to object to.
_CLEAR = frozenset({"", "0", "no", "none", "false", "low", "ok", "clear", "passed", "pass", "success", "green", "n/a"})
_YES = frozenset({"yes", "true", "ok", "passed", "pass", "success", "green", "1"})


def flag_named(spec: str) -> str:
    """The name of the flag that a declaration raises; empty for one that cannot be read."""
    found = _SPEC.fullmatch(spec)
    return "" if found is None or (found["not"] and (found["words"] or found["least"])) else found["name"]


def flag_problem(path: str, spec: str) -> str:
    """What is wrong with a declaration; empty when nothing is."""
    if not _PATH.fullmatch(path):
        return f"flags: {path[:80]!r} is no path; use one such as 'exit_code' or '[].risk'"
    name = flag_named(spec)
    if not name:
        return f"flags[{path[:80]!r}]={spec[:80]!r} cannot be read; use NAME, !NAME, NAME=word|word or NAME>=number"
    if name in OWN_FLAGS:
        return f"flags[{path[:80]!r}] raises {name}, which remit raises itself; use another name"
    return ""


def raised_by(declared: Iterable[tuple[str, str]], result: Any) -> tuple[str, ...]:
    """The flags that a result raises; one that is no JSON is a text, which has no fields."""
    return tuple(dict.fromkeys(flag_named(spec) for path, spec in declared if _is_raised(spec, result, path)))


def is_test_run(tool_name: str, *, is_sandboxed: bool) -> bool:
    """Whether a tool of the sandbox that declares nothing of its outcome is called like one that runs tests."""
    return is_sandboxed and not _TESTING.isdisjoint(_WORD.findall(tool_name.lower()))


def says_tests_failed(result: Any) -> bool:
    """Whether an undeclared result says that tests failed, or cannot be read: by an exit code, a count, or a yes."""
    if isinstance(result, bool | str):
        return not _says_yes(result)
    if not isinstance(result, dict) or OUTCOME_FIELDS.isdisjoint(result):
        return True
    failed = any(key in result and not _is_clear(result[key]) for key in _FAILURES)
    return failed or any(key in result and not _says_yes(result[key]) for key in _PASSES)


def values_under(value: Any, path: str) -> list[Any] | None:
    """The values at a path; None where it leads nowhere. Of an empty list there are none."""
    try:
        return list(_along(value, _STEP.findall(path)))
    except LookupError:
        return None


def _along(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield value
    elif steps[0] == "[]":
        if not isinstance(value, list):
            raise LookupError
        for one in value:
            yield from _along(one, steps[1:])
    elif isinstance(value, dict) and steps[0] in value:
        yield from _along(value[steps[0]], steps[1:])
    else:
        raise LookupError


def _is_raised(spec: str, result: Any, path: str) -> bool:
    found = values_under(result, path)
    return True if found is None else any(map(_reading(spec), found))


def _reading(spec: str) -> Callable[[Any], bool]:
    """How a field is read: whether this value of it raises the flag."""
    found = _SPEC.fullmatch(spec)
    assert found is not None, "a definition with another flag is refused"
    if found["words"]:
        words = frozenset(word.strip().casefold() for word in found["words"].split("|"))
        return lambda value: _word(value) in words
    if found["least"]:
        return lambda value: (number := _number(value)) is None or number >= Decimal(found["least"])
    if found["not"]:
        return lambda value: not _says_yes(value)
    return lambda value: not _is_clear(value)


def _is_clear(value: Any) -> bool:
    if isinstance(value, str):
        return _word(value) in _CLEAR
    return value is None or value is False or value == 0 or value in ([], {})


def _says_yes(value: Any) -> bool:
    if isinstance(value, str):
        return _word(value) in _YES
    return value is True or (isinstance(value, int | float) and value not in (0, False))


def _word(value: Any) -> str:
    return value.strip().casefold() if isinstance(value, str) else str(value).casefold()


def _number(value: Any) -> Decimal | None:
    try:
        return None if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        return None
