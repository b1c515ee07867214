"""Excerpts: what the kernel is shown of texts that live in Blobs, because it has to look into them.

Rule 1: only what the kernel or a person looks at is taken out, and only as much as stands in a turn.
Rule 2: an excerpt is a fact like any other: the same text always gives the same one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.codec import read_json
from remit.core.limits.boundary import Boundary, Condition
from remit.core.limits.flags import OTHER_USER, SECRET_READ, TESTS_FAILED, raised_by, says_tests_failed, values_under
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import ToolDefinition
from remit.core.record import TEXT_INLINE_BYTES_MAX, JsonObject
from remit.core.regex import regex
from remit.core.run.contract import named_user
from remit.core.run.manifest import Manifest
from remit.core.work.goal import Goal
from remit.kernel.authority.call_flags import infers_tests
from remit.kernel.authority.conditions import looks_for_assertions
from remit.kernel.state import RunState, pinned
from remit.orchestrate.facts.texts import note
from remit.validate.leaks import leaks_in

if TYPE_CHECKING:
    from remit.orchestrate.facts.gate_trace import Tracer

# Of a call whose arguments are too long for a turn, arguments of this length are kept where conditions look at them.
ABRIDGED_BYTES_MAX = 256
# Facts are stated near the surface of a result.
CRITICAL_DEPTH_MAX = 16
# A result that says more than this of critical facts is a listing, and a turn need not hold all of it.
CRITICAL_FACTS_MAX = 64

# Names and short texts in a condition, of which some are names of arguments.
_NAME = regex(r"[\w-]+")
# A setting as files of the environment have it, whose name says that its value is secret. A reference is no value.
_SETTING = regex(
    r"(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)[A-Z0-9_]{0,40}\\{0,3}[\"']?"
    r"[ \t]{0,4}=[ \t]{0,4}\\{0,3}[\"']?[^\s\"'\\$<{(]{6,}"
)
# How an answer says that it was checked.
_CLAIM = regex(
    r"(?<!not )(?<!n't )(?<!\w)(?:verified|confirmed|fact-checked|double-checked|according to|as reported (?:by|in)"
    r"|sources? ?:|i (?:have )?(?:checked|looked (?:it )?up|searched|found in))(?!\w)",
    re.IGNORECASE,
)
# As many of them as a person reads.
CLAIMS_MAX = 10


def is_looked_into(state: RunState, tool: ToolDefinition) -> bool:
    """Whether the kernel looks into the arguments of a tool's calls: for conditions, or to ask what they ask."""
    return bool(pinned(state).boundary.conditions) or tool.asks_under is not None


def abridged(arguments: JsonObject, conditions: Iterable[Condition] = (), control: Iterable[str] = ()) -> str:
    """As many arguments of a call as stand in a turn, in canonical form: what is looked at first, then the shortest.

    That is what conditions name, what steers the tool, and the user. Where it is too long it is null: it is there, and
    what it says cannot be told. So no padding hides anything.
    """
    named = {"user_id", *control, *(name for condition in conditions for name in _NAME.findall(condition.when))}
    written = {key: canonical_json(value) for key, value in arguments.items()}
    kept: JsonObject = {}
    size = 0
    for key in sorted(arguments, key=lambda key: (key not in named, len(written[key]), key)):
        more = len(key) + len(written[key])
        if len(written[key]) <= ABRIDGED_BYTES_MAX and size + more <= TEXT_INLINE_BYTES_MAX:
            size += more
            kept[key] = arguments[key]
        elif key in named:
            kept[key] = None
    return canonical_json(kept).decode()


def flags_in(manifest: Manifest, tool: ToolDefinition, content: str) -> tuple[str, ...]:
    """The flags that a result raises: what its tool declares, a record of another person, and what is or looks like a secret."""
    boundary, user = manifest.boundary, named_user(manifest.request)
    whose = [path for path, kind in tool.trust.fields if kind in boundary.identities] if user else []
    found: tuple[str, ...] = ()
    is_test = infers_tests(tool)
    if tool.flags or whose or is_test:
        try:
            result = read_json(content)
        except (ValueError, RecursionError):
            result = content
        found = (TESTS_FAILED,) if is_test and says_tests_failed(result) else raised_by(tool.flags, result)
        named = [value for path in whose for value in values_under(result, path) or ()]
        if any(str(value) != user for value in named if value is not None):
            found += (OTHER_USER,)
    is_secret = tool.trust.reads is Reads.SECRET and _asks_for(boundary, SECRET_READ)
    return (*found, *((SECRET_READ,) if is_secret else secret_flag(boundary, content)))


def secret_flag(boundary: Boundary, text: str) -> tuple[str, ...]:
    """The flag of a text that holds something like a secret, where the boundary asks."""
    return (SECRET_READ,) if _asks_for(boundary, SECRET_READ) and tells_secret(text) else ()


def carries_secret(boundary: Boundary, arguments: str) -> bool:
    """Whether something in the arguments of a call looks like a secret, where the boundary asks."""
    return _asks_for(boundary, "carries_secret") and tells_secret(arguments)


def tells_secret(text: str) -> bool:
    """Whether a text holds something that looks like a secret: by the mark of its maker, or by the name it is set to."""
    return next(leaks_in(text), None) is not None or _SETTING.search(text) is not None


def claims_in(text: str) -> tuple[str, ...]:
    """The words by which an answer presents itself as checked."""
    return tuple(dict.fromkeys(found[0].lower() for found in _CLAIM.finditer(text)))[:CLAIMS_MAX]


def ungrounded_in(state: RunState, said: str, tracer: "Tracer | None") -> tuple[str, ...]:
    """What an answer presents as verified: links that were not observed, and claims where nothing was observed."""
    if not looks_for_assertions(pinned(state).boundary):
        return ()
    links = () if tracer is None else tracer.unseen_links(said)
    has_found = state.talk.relevance_ppm >= 0 and bool(state.talk.ephemeral)
    has_looked = bool(state.effects.committed) or has_found
    return tuple(note(one) for one in (*links, *(() if has_looked else claims_in(said))))


def _asks_for(boundary: Boundary, name: str) -> bool:
    return any(name in condition.when for condition in boundary.conditions)


def critical_facts(goal: Goal, content: bytes) -> tuple[tuple[str, str], ...]:
    """What a result says of the facts that the goal calls critical, wherever in it they stand."""
    if not goal.critical:
        return ()
    try:
        found = read_json(content)
    except ValueError:
        return ()  # A text states no field.
    return tuple(sorted(set(_stated(found, goal.critical))))[:CRITICAL_FACTS_MAX]


def _written(value: object) -> str:
    """A plain value in its canonical form; a number that has none, because it is too large, as it stands."""
    try:
        return canonical_json(value).decode()
    except NotCanonical:
        return str(value)


def _stated(value: Any, names: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > CRITICAL_DEPTH_MAX:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in names and not isinstance(inner, dict | list):
                yield key, note(_written(inner))
            else:
                yield from _stated(inner, names, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _stated(inner, names, depth + 1)
