"""A scenario: what is given, what people do, and what must come of it; read strictly from a YAML file.

Rule 1: a file that could be misread is refused, with its name, the line, the key and what would be right.
Rule 2: what a file leaves out is the least: no tool, no person who answers, nothing refused.
Rule 3: whatever a file names (a boundary, a code, a category) must exist in the house.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.core.failure import Ending, EscalationRoute
from remit.core.limits.escalation import Gravity, Trigger
from remit.core.limits.profiles import PROFILES
from remit.core.limits.tools import ToolCategory
from remit.core.record import JsonObject
from remit.core.schema.strict_yaml import (
    ValuePath,
    YamlDocument,
    YamlFault,
    block_in,
    decoded_text,
    list_in,
    parse_yaml,
    spelled_place,
)
from tests.scenarios import places
from tests.scenarios.given import Given, call_at, given_in
from tests.scenarios.places import BoundaryDimension, Control, PlaceKind, cell
from tests.scenarios.props import Call
from tests.scenarios.reading import names_at, pattern_at, text_at

# Six levels lead to the arguments of a call or to the schema of a result; four more are what people write in them.
DEPTH_MAX = 10

_KEYS = ("title", "shows", "story", "given", "when", "then")
_SHOWS = ("code", "row", "control", "category", "check", "profile", "dimension")
_THEN = ("ends", "waits", "turned_away", "escalates", "calls_made", "refused", "asked", "says", "error")
_ACTS: dict[str, tuple[str, ...]] = {
    "approve": ("by", "tool", "arguments", "reason", "turned_away"),
    "reject": ("by", "tool", "reason", "turned_away"),
    "answer": ("by", "text", "turned_away"),
    "cancel": ("by", "reason", "turned_away"),
    "silence": (),
}
_NEEDS_WORDS = {"answer": ("by", "text"), "approve": ("by",), "reject": ("by",), "cancel": ("by",)}


@dataclass(frozen=True)
class Act:
    """What a person does when the run waits."""

    verb: str
    by: str = ""
    tool: str = ""
    text: str = ""
    reason: str = ""
    arguments: JsonObject | None = None
    # The code with which the run does not hear it; empty where it does.
    turned_away: str = ""


@dataclass(frozen=True)
class Said:
    """A refusal or a question that must have happened: of which tool, under which code, for which reason."""

    tool: str
    code: str
    because: str = ""


@dataclass(frozen=True)
class Then:
    """What must come of it."""

    ends: Ending | None
    waits: Ending | None
    turned_away: str
    escalates: dict[str, str]
    calls_made: tuple[Call, ...]
    refused: tuple[Said, ...]
    asked: tuple[Said, ...] | None
    says: str
    error: str


@dataclass(frozen=True)
class Scenario:
    """One file."""

    name: str
    title: str
    story: str
    shows: tuple[places.ValuePath, ...]
    given: Given
    when: tuple[Act, ...]
    then: Then


def read_scenario(path: Path, *, name: str = "") -> Scenario:
    """The scenario in a file; raises RequestRejected where it cannot be read as one."""
    return scenario_of(decoded_text(path.read_bytes(), str(path)), str(path), name=name)


def scenario_of(text: str, source_name: str, *, name: str = "") -> Scenario:
    """The scenario in a text; the source's name stands for it in errors."""
    document = parse_yaml(text, source_name, depth_max=DEPTH_MAX)
    root = block_in(document, document.value, _KEYS, ())
    for key in ("title", "shows", "story", "given", "then"):
        if key not in root:
            document.reject(YamlFault.VALUE_INVALID, f"{key} is missing; a scenario has {', '.join(_KEYS)}", ())
    return Scenario(
        name=name or source_name,
        title=text_at(document, root, "title", ()),
        story=" ".join(text_at(document, root, "story", ()).split()),
        shows=_shows(document, root["shows"]),
        given=given_in(document, root["given"]),
        when=tuple(
            _act(document, act, ("when", at))
            for at, act in enumerate(list_in(document, root.get("when", []), ("when",)))
        ),
        then=_then(document, root["then"]),
    )


def _shows(document: YamlDocument, value: Any) -> tuple[places.ValuePath, ...]:
    block = block_in(document, value, _SHOWS, ("shows",))
    known: Mapping[str, Iterable[str]] = {
        "code": list(Ending),
        "row": list(Trigger),
        "control": list(Control),
        "category": list(ToolCategory),
        "check": list(ToolCategory),
        "profile": list(PROFILES),
        "dimension": list(BoundaryDimension),
    }
    named = {key: names_at(document, block[key], known[key], ("shows", key)) for key in block}
    if ("profile" in named) != ("dimension" in named):
        message = "shows names a profile or a dimension alone; a cell is both"
        document.reject(YamlFault.VALUE_INVALID, message, ("shows",))
    found = [places.ValuePath(PlaceKind(key), one) for key in named if key in set(PlaceKind) for one in named[key]]
    found += [cell(profile, one) for profile in named.get("profile", ()) for one in named["dimension"]]
    if not found:
        document.reject(YamlFault.VALUE_INVALID, f"shows is empty; name one of {', '.join(_SHOWS)}", ("shows",))
    return tuple(found)


def _act(document: YamlDocument, value: Any, place: ValuePath) -> Act:
    block = block_in(document, value, tuple(_ACTS), place)
    if len(block) != 1:
        message = f"{spelled_place(place)} must be one act, of {', '.join(_ACTS)}"
        document.reject(YamlFault.VALUE_INVALID, message, place)
    ((verb, said),) = block.items()
    details = block_in(document, said or {}, _ACTS[verb] or ("nothing",), (*place, verb))
    for key in _NEEDS_WORDS.get(verb, ()):
        if not details.get(key):
            document.reject(YamlFault.VALUE_INVALID, f"{spelled_place((*place, verb))} lacks {key!r}", place)
    arguments = details.pop("arguments", None)
    words = {key: text_at(document, details, key, (*place, verb)) for key in details}
    return Act(verb, arguments=arguments, **words)


def _then(document: YamlDocument, value: Any) -> Then:
    place: ValuePath = ("then",)
    block = block_in(document, value, _THEN, place)
    if sum(key in block for key in ("ends", "waits", "turned_away")) != 1:
        message = "then says how it comes out: one of ends, waits, turned_away"
        document.reject(YamlFault.VALUE_INVALID, message, place)
    codes = {
        key: names_at(document, block[key], list(Ending), (*place, key))[0] for key in ("ends", "waits") if key in block
    }
    if "calls_made" not in block:
        document.reject(YamlFault.VALUE_INVALID, "then.calls_made is missing; [] says that nothing was done", place)
    return Then(
        ends=Ending(codes["ends"]) if "ends" in codes else None,
        waits=Ending(codes["waits"]) if "waits" in codes else None,
        turned_away=text_at(document, block, "turned_away", place),
        escalates=_escalation(document, block.get("escalates", {})),
        calls_made=tuple(
            _made(document, call, (*place, "calls_made", at))
            for at, call in enumerate(list_in(document, block["calls_made"], (*place, "calls_made")))
        ),
        refused=_said(document, block.get("refused", []), (*place, "refused")),
        asked=_said(document, block["asked"], (*place, "asked")) if "asked" in block else None,
        says=pattern_at(document, block, "says", place),
        error=text_at(document, block, "error", place),
    )


def _made(document: YamlDocument, value: Any, place: ValuePath) -> Call:
    """A call that was made: the tool, or TOOL: {ARGUMENT: VALUE}."""
    if isinstance(value, str):
        return Call(value, None)
    call = call_at(document, value, place)
    return Call(call["name"], call["arguments"])


def _escalation(document: YamlDocument, value: Any) -> dict[str, str]:
    place: ValuePath = ("then", "escalates")
    known: Mapping[str, Iterable[str]] = {
        "trigger": list(Trigger),
        "severity": list(Gravity),
        "route": list(EscalationRoute),
    }
    block = block_in(document, value, ("queue", *known), place)
    for key in block:
        if key in known:
            names_at(document, block[key], known[key], (*place, key))
    return {key: text_at(document, block, key, place) for key in block}


def _said(document: YamlDocument, value: Any, place: ValuePath) -> tuple[Said, ...]:
    found = []
    for at, one in enumerate(list_in(document, value, place)):
        block = block_in(document, one, ("tool", "code", "because"), (*place, at))
        texts = {key: text_at(document, block, key, (*place, at)) for key in ("tool", "code")}
        found.append(Said(**texts, because=pattern_at(document, block, "because", (*place, at))))
    return tuple(found)
