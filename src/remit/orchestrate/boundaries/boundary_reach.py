"""Which conditions of a boundary no call of these tools could ever meet, and what declaration is missing.

Rule 1: only what tools and the boundary declare decides; what a run would have to show is taken as possible.
Rule 2: a condition is read as alternatives of demands. A condition is idle when each of its alternatives has a demand
        that no tool meets; that demand says why.
"""

from collections.abc import Iterator, Sequence

from remit.core.limits.boundary import Boundary, Condition
from remit.core.limits.boundary_views import IdleCondition
from remit.core.limits.flags import OTHER_USER, SECRET_READ, TESTS_FAILED, flag_named
from remit.core.limits.purchases import tells_amount
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.regex import regex
from remit.kernel.authority.call_flags import declares_tests, names_people
from remit.kernel.authority.conditions import CONDITION_NAMES, SETTLED_NAMES, says_always

_NAME = regex(r"(?<![\w\"'.])[a-z_][a-z0-9_]*(?![\w(])")
_QUOTED = regex(r"\"[^\"]*\"|'[^']*'")
_FLAG = regex(r"[\"'](\w+)[\"'] in flags")
_CONCERN = regex(r"[\"'](\w+)[\"'] in concerns")


def idle_conditions(boundary: Boundary, tools: Sequence[ToolDefinition]) -> tuple[IdleCondition, ...]:
    """The conditions that none of these tools could meet."""
    found = ((condition.name, _why_idle(condition, boundary, tools)) for condition in boundary.conditions)
    return tuple(IdleCondition(name, why) for name, why in found if why)


def _why_idle(condition: Condition, boundary: Boundary, tools: Sequence[ToolDefinition]) -> str:
    """What every alternative of a condition lacks; empty where one of them could hold."""
    reasons: list[str] = []
    for demands in _alternatives(condition.when):
        unmet = [demand for demand in demands if not any(_meets(demand, tool, boundary, tools) for tool in tools)]
        together = [tool for tool in tools if all(_meets(demand, tool, boundary, tools) for demand in demands)]
        if together:
            return ""
        reasons.append(_lack(unmet[0]) if unmet else f"no single tool meets {' && '.join(demands)}")
    return "; ".join(dict.fromkeys(reasons))


def _meets(demand: str, tool: ToolDefinition, boundary: Boundary, tools: Sequence[ToolDefinition]) -> bool:
    """Whether a call of a tool, in a run with all of them, could meet one demand."""
    if (flag := _FLAG.fullmatch(demand)) is not None:
        return _may_raise(flag[1], boundary, tools)
    names = set(_NAME.findall(_QUOTED.sub('""', demand)))
    if "users" in names:
        return names_people(tool, boundary)
    if demand.replace(" ", "") == "purchase>=0":
        return tells_amount(tool)
    if demand == SECRET_READ:
        return any(one.effect is not Effect.NONE for one in tools)
    known = names & CONDITION_NAMES.keys()
    if not known or not known <= SETTLED_NAMES:
        return True
    return says_always(demand, tool, boundary) is True


def _may_raise(flag: str, boundary: Boundary, tools: Sequence[ToolDefinition]) -> bool:
    if flag == SECRET_READ:
        return any(tool.effect is not Effect.NONE for tool in tools)
    if flag == OTHER_USER:
        return any(kind in boundary.identities for tool in tools for _, kind in tool.trust.fields)
    if flag == TESTS_FAILED and any(declares_tests(tool) for tool in tools):
        return True
    return any(flag_named(spec) == flag for tool in tools for _, spec in tool.flags)


def _lack(demand: str) -> str:
    """The declaration whose absence makes a demand idle."""
    if (flag := _FLAG.fullmatch(demand)) is not None and flag[1] == OTHER_USER:
        return "no tool declares a field of its result of a kind in `identities`"
    if flag is not None:
        return f"no tool declares a field of its result that raises the flag {flag[1]}"
    if (concern := _CONCERN.fullmatch(demand)) is not None:
        return f"neither a tool nor the boundary declares the concern {concern[1]}"
    if "users" in demand:
        return "no tool has an argument of a kind in `identities`, or called after one"
    if demand.startswith("purchase"):
        return "no tool declares which of its arguments is `money`"
    return f"no tool makes {demand} true"


def _alternatives(when: str) -> Iterator[list[str]]:
    """The alternatives of a condition, each as its demands; brackets around either are opened."""
    parts = _split(when, "||")
    if len(parts) > 1:
        for part in parts:
            yield from _alternatives(part)
        return
    demands = _split(when, "&&")
    if len(demands) == 1:
        inner = _opened(demands[0])
        if inner == demands[0]:
            yield demands
        else:
            yield from _alternatives(inner)
        return
    combined: list[list[str]] = [[]]
    for demand in demands:
        combined = [[*before, *more] for before in combined for more in _alternatives(demand)]
    yield from combined


def _opened(text: str) -> str:
    """A text without the brackets that enclose all of it."""
    is_enclosed = text.startswith("(") and text.endswith(")") and len(_split(text[1:-1], ")", nested=False)) == 1
    return text[1:-1].strip() if is_enclosed else text


def _split(text: str, sign: str, *, nested: bool = True) -> list[str]:
    """The parts of a text between signs that stand in no brackets and no quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for place, one in enumerate(text):
        if quote:
            quote = "" if one == quote else quote
        elif one in "\"'":
            quote = one
        elif depth == 0 and text.startswith(sign, place):
            parts.append(text[start:place].strip())
            start = place + len(sign)
        elif one in "([":
            depth += 1
        elif one in ")]" and (nested or depth):
            depth -= 1
    return [*parts, text[start:].strip()]
