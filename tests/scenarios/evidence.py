"""Evidence: what the journal proves about a scenario, place by place, so that no file claims what it does not reach.

Rule 1: a claim is proved by rulings and commands, never by what the file expects.
Rule 2: a control is proved by the ruling that only it makes, and by nothing being done behind its back.
Rule 3: a dimension of a boundary is proved by playing the story again without it: it must go another way.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from remit.core.failure import Ending, EscalationRoute, Refusal
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, SetTimer, TimerPurpose
from remit.core.journal.rulings import (
    ContextCompressed,
    QuestionSettled,
    RetryPlanned,
    RunEnded,
    ToolCallRefused,
)
from remit.core.limits.boundary import Demanding
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.limits.escalation import Escalation
from remit.core.limits.profiles import PROFILES
from remit.core.limits.tool_policy import asks_by_category, gaps_of
from remit.core.limits.tools import ToolDefinition
from remit.core.limits.verification import SCHEMA_VERIFIER
from remit.core.record import replace
from tests.scenarios.lifting import lifted
from tests.scenarios.places import BoundaryDimension, Control, PlaceKind, ValuePath
from tests.scenarios.stage import RUN, Played, play

Proof = Callable[[Played, str], str]

_CONTEXT = FIELDS[Dimension.CONTEXT_TOKENS]
_STORM_ENDINGS = (Ending.UNAVAILABLE_DEP, Ending.REPEATED_FAILURE)
_BREAKER_ENDINGS = (Ending.UNSAFE_DETECTION, Ending.PERMISSION_DENIED)


def unproved(played: Played) -> list[str]:
    """What a scenario claims to show and the journal does not prove."""
    return [
        f"shows {place}: {objection}" for place in played.scenario.shows if (objection := _objection(played, place))
    ]


def _objection(played: Played, place: ValuePath) -> str:
    return PROOFS[place.kind](played, place.name)


def escalations(played: Played) -> list[Escalation]:
    """Everything that was handed on: with each question, and with the ending."""
    asked = [one.escalation for one in played.decisions(AskHuman)]
    ended = [one.escalation for one in played.decisions(RunEnded)]
    return [one for one in (*asked, *ended) if one is not None]


def _code(played: Played, name: str) -> str:
    reached = {one.ending for one in played.decisions(AskHuman)}
    reached |= {one.ending for turn in played.runs.get(RUN, []) for one in turn.decisions if isinstance(one, RunEnded)}
    return "" if Ending(name) in reached else f"the run reached {_listed(reached)}"


def _row(played: Played, name: str) -> str:
    handed_on = {one.trigger for one in escalations(played)}
    return "" if name in handed_on else f"what was handed on is {_listed(handed_on)}"


def _category(played: Played, name: str) -> str:
    """A tool of the category was judged, and nothing that a person decides about was done without one."""
    tools = {one.name: one for one in _tools(played) if one.category == name}
    made = [one for one in played.decisions(CallTool) if one.tool in tools]
    refused = [one for one in played.decisions(ToolCallRefused) if one.tool in tools]
    held = [one for one in played.decisions(AskHuman) if tool_asked_about(one) in tools]
    if not (made or refused or held):
        return "no call of such a tool was judged"
    asking = {
        one.name for one in tools.values() if asks_by_category(one) and name in played.boundary.approval_categories
    }
    unattended = [one.tool for one in made if one.tool in asking and not one.approved_by]
    return f"{_listed(unattended)} was called although nobody approved it" if unattended else ""


def _check(played: Played, name: str) -> str:
    """The tools of the category declare what its row demands, and a boundary that enforces it lets no tool in without."""
    tools = [one for one in played.scenario.given.tools if one.definition.category == name]
    if not tools:
        return "there is no such tool"
    strict = replace(played.boundary, demands=Demanding.ENFORCE)
    if turned_away := play(played.scenario, boundary=strict).turned_away:
        return turned_away.message
    bares = [(tool, dataclasses.replace(tool, definition=_bare(tool.definition))) for tool in tools]
    demanding = [(tool, bare) for tool, bare in bares if gaps_of(bare.definition)]
    for tool, bare in demanding:
        others = tuple(bare if one is tool else one for one in played.scenario.given.tools)
        poorer = dataclasses.replace(played.scenario, given=dataclasses.replace(played.scenario.given, tools=others))
        if play(poorer, boundary=strict).turned_away is None:
            return f"{tool.definition.name} is let in although it declares nothing"
    return "" if demanding else "nothing is demanded of any of its tools"


def _bare(definition: ToolDefinition) -> ToolDefinition:
    """The same tool without anything that its calls could be checked by."""
    trust = replace(definition.trust, fields=())
    return replace(
        definition, permissions=(), result={}, verifier=SCHEMA_VERIFIER, control_args=(), rollback="", trust=trust
    )


def _cell(played: Played, name: str) -> str:
    profile, dimension = name.split("/")
    if played.boundary != PROFILES[profile]:
        return f"the boundary is {played.boundary.name!r}, not the profile as it ships"
    without = lifted(played.boundary, BoundaryDimension(dimension), _tools(played))
    again = play(played.scenario, boundary=without)
    return "" if outcome(again) != outcome(played) else "the story goes the same way without that dimension"


def outcome(played: Played) -> tuple[Any, ...]:
    """How a story went, as far as a boundary decides it."""
    answers = [one.answer for one in played.decisions(QuestionSettled)]
    asked = [
        (tool_asked_about(one), one.ending, one.escalation, () if one.packet is None else one.packet.reasons)
        for one in played.decisions(AskHuman)
    ]
    refused = [(one.tool, one.code, one.reason) for one in played.decisions(ToolCallRefused)]
    ended = [(one.ending, one.message, one.escalation) for one in played.decisions(RunEnded)]
    turned_away = "" if played.turned_away is None else played.turned_away.code
    return (turned_away, ended, refused, asked, answers, played.executed)


def tool_asked_about(question: AskHuman) -> str:
    """The tool that a person is asked about, or that asks; empty for a question of the run itself."""
    return question.tool if question.packet is None else question.packet.call.tool


def _tools(played: Played) -> tuple[ToolDefinition, ...]:
    return tuple(one.definition for one in played.scenario.given.tools)


def _listed(names: Any) -> str:
    return ", ".join(sorted(str(name) for name in names)) or "nothing"


def _ended(played: Played, *endings: Ending) -> list[RunEnded]:
    return [one for one in played.decisions(RunEnded) if one.ending in endings]


def _clock(played: Played) -> str:
    turns = played.runs.get(RUN, [])
    if not _ended(played, Ending.TIMEOUT):
        return "the run did not end by the clock"
    cap_ms = turns[0].arrival.manifest.caps[Dimension.WALL_CLOCK_MS]  # type: ignore[union-attr]  # the first turn starts the run
    took_ms = turns[-1].at_ms - turns[0].at_ms
    return "" if took_ms >= cap_ms else f"it took {took_ms} ms of {cap_ms}"


def _repeats(played: Played) -> str:
    blocked = [one for one in played.decisions(ToolCallRefused) if one.code == Refusal.REPEATED_CALL]
    made = [(one.tool, one.arguments_hash) for one in played.decisions(CallTool)]
    is_proved = any(made.count((one.tool, one.arguments_hash)) > 1 for one in blocked)
    return "" if is_proved else "no call was blocked after it had been made before"


def _storm(played: Played) -> str:
    """Each pause is longer than the one before, the retries are capped, and the cap ends the run."""
    pauses_ms = [
        one.due_at_ms - turn.at_ms
        for turn in played.turns
        for one in turn.decisions
        if isinstance(one, SetTimer) and one.purpose is TimerPurpose.RETRY
    ]
    pauses_ms += [one.not_before_ms - at_ms for at_ms, one in _cooled(played)]
    retried = played.decisions(RetryPlanned)
    if len(retried) < 2 or pauses_ms[-1] <= pauses_ms[0]:
        return f"there were {len(retried)} retries after {pauses_ms} ms, no growing pauses"
    return "" if _ended(played, *_STORM_ENDINGS) else "no cap ended the retries"


def _cooled(played: Played) -> list[tuple[int, CallTool]]:
    """The calls of tools that were kept waiting, and when they were ordered."""
    calls = [(turn.at_ms, one) for turn in played.turns for one in turn.decisions if isinstance(one, CallTool)]
    return [(at_ms, call) for at_ms, call in calls if call.not_before_ms]


def _exhaustion(played: Played) -> str:
    released = [one for one in played.decisions(AskHuman) if one.purpose is AskPurpose.RELEASE]
    if released or _ended(played, Ending.BUDGET_EXHAUSTED):
        return ""
    return "no budget stopped the run or had to be released"


def _context(played: Played) -> str:
    compressed = played.decisions(ContextCompressed)
    stopped = [one for one in _ended(played, Ending.BUDGET_EXHAUSTED) if one.message.startswith(_CONTEXT)]
    return "" if compressed or stopped else "the context was neither compressed nor too long"


def _privileged(played: Played) -> str:
    changing = {one.name for one in _tools(played) if one.effect.is_mutating}
    held = [one for one in played.decisions(AskHuman) if tool_asked_about(one) in changing]
    if not held:
        return "no change was held for a person"
    unattended = [one.tool for one in played.decisions(CallTool) if one.mutating and not one.approved_by]
    return f"{_listed(unattended)} was done without a person" if unattended else ""


def _breaker(played: Played) -> str:
    stopped = _ended(played, *_BREAKER_ENDINGS)
    routes = [one.escalation.route for one in stopped if one.escalation is not None]
    return "" if EscalationRoute.FAIL_CLOSED in routes else "the run did not fail closed"


CONTROLS: Mapping[Control, Callable[[Played], str]] = MappingProxyType(
    {
        Control.WALL_CLOCK_TIMEOUT: _clock,
        Control.REPEATED_TOOL_CALL: _repeats,
        Control.RETRY_STORM: _storm,
        Control.BUDGET_EXHAUSTION: _exhaustion,
        Control.CONTEXT_PRESSURE: _context,
        Control.PRIVILEGED_ACTION: _privileged,
        Control.SAFETY_BREAKER: _breaker,
    }
)

PROOFS: Mapping[PlaceKind, Proof] = MappingProxyType(
    {
        PlaceKind.CODE: _code,
        PlaceKind.ROW: _row,
        PlaceKind.CONTROL: lambda played, name: CONTROLS[Control(name)](played),
        PlaceKind.CATEGORY: _category,
        PlaceKind.CHECK: _check,
        PlaceKind.CELL: _cell,
    }
)
