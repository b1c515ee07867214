"""Plans from YAML files, in the shape docs/plans.md describes.

Rule 1: a file and Python build equal plans; the file is only the friendlier spelling.
Rule 2: reading judges the spelling, and whether a plan could be judged by the policy at all. Whether the plan may run is
        for its graph to say.
Rule 3: an unknown key is refused with the nearest one that is known, never skipped.
Rule 4: paths start at the plan file. What they name must be there; it is loaded by the process that runs the plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from remit.core.failure import RequestRejected
from remit.core.journal.codec import from_json, to_json
from remit.core.record import replace
from remit.core.regex import regex
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.strict_yaml import (
    ValuePath,
    YamlDocument,
    YamlFault,
    block_in,
    bytes_in,
    decoded_text,
    list_in,
    parse_yaml,
    spelled_place,
    value_in_error,
)
from remit.core.work.plan import ExecutionPlan, PlanPolicy, PlanTrace, Step
from remit.orchestrate.patterns.planners import check_policy

# Three levels lead to the schema of a step; what people write below them stays under thirty.
PLAN_DEPTH_MAX = 32
# A plan over more places than this wants a folder.
DOCUMENTS_MAX = 100

# As much of a name as the refusal of a step quotes.
_QUOTED_CHARS_MAX = 80

# Who made a plan that a file holds.
PLANNER_ID = "file"

_PLAN_KEYS = ("steps", "policy", "documents", "rules", "handlers")
_STEP_KEYS = tuple(field for field in Step.__struct_fields__ if field != "output")
_POLICY_KEYS = PlanPolicy.__struct_fields__

# msgspec ends its messages with the place, as in "Expected `int`, got `str` - at `$.retries`".
_PLACE_IN_ERROR = regex(r" - at `\$(?:\.(?P<key>\w+))?[^`]*`$")

_Typed = TypeVar("_Typed")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan, what it may be, the files that its steps are done with, and on which line each step stands.

    Lines go by as much of a step's name as an error quotes.
    """

    path: Path
    digest: str
    plan: ExecutionPlan
    policy: PlanPolicy
    documents: tuple[Path, ...]
    rules: Path | None
    handlers: Path | None
    lines: Mapping[str, int]

    def located(self, error: RequestRejected) -> RequestRejected:
        """A refusal with the line of the step that it names."""
        line = self.lines.get(_shortened(str(error.details.get("step", ""))), 0)
        where = f"{self.path}:{line}" if line else str(self.path)
        return RequestRejected(error.code, f"{where}: {error.message}", {**error.details, "line": line})


def read_plan(path: Path) -> PlanFile:
    """The plan in a YAML file."""
    path = path.absolute()
    data = bytes_in(path)
    document = parse_yaml(decoded_text(data, str(path)), str(path), depth_max=PLAN_DEPTH_MAX)
    return _plan(document, path, sha256(data).hexdigest())


def _plan(document: YamlDocument, path: Path, digest: str) -> PlanFile:
    block = block_in(document, document.value, _PLAN_KEYS, ())
    steps = list_in(document, block.get("steps", []), ("steps",))
    read = [_step(document, value, ("steps", position)) for position, value in enumerate(steps)]
    named = {key: _named_file(document, block, key, path.parent) for key in ("rules", "handlers")}
    return PlanFile(
        path=path,
        digest=digest,
        plan=ExecutionPlan(tuple(read), PlanTrace(PLANNER_ID, f"the plan file {path}")),
        policy=_policy(document, block),
        documents=_documents(document, block, path.parent),
        rules=named["rules"],
        handlers=named["handlers"],
        lines={
            _shortened(step.name): document.lines["steps", place] for place, step in reversed(list(enumerate(read)))
        },
    )


def _policy(document: YamlDocument, block: Mapping[str, Any]) -> PlanPolicy:
    place: ValuePath = ("policy",)
    policy = _typed(document, block_in(document, block.get("policy", {}), _POLICY_KEYS, place), PlanPolicy, place)
    try:
        check_policy(policy)
    except RequestRejected as error:
        line = document.lines[place]
        message = f"{document.source_name}:{line}: {error.message}"
        raise RequestRejected(error.code, message, {"source": document.source_name, "line": line}) from None
    return policy


def _step(document: YamlDocument, value: Any, place: ValuePath) -> Step:
    block = block_in(document, value, _STEP_KEYS, place)
    for key in ("name", "type"):
        if key not in block:
            document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)} has no {key!r}; add it", place)
    # An input may be anything; what no step could work on is refused where the plan is checked.
    given = {key: block.pop(key) for key in ("input", "schema") if key in block}
    step = replace(_typed(document, block, Step, place), **given)
    if step.schema is not None:
        if not isinstance(step.schema, dict):
            message = f"{spelled_place((*place, 'schema'))} must be a JSON Schema, a mapping; found {value_in_error(step.schema)}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, "schema"))
        try:
            compile_schema(step.schema)
        except RequestRejected as error:
            message = f"{spelled_place((*place, 'schema'))}: {error.message}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, "schema"))
    return step


def _documents(document: YamlDocument, block: Mapping[str, Any], base: Path) -> tuple[Path, ...]:
    if "documents" not in block:
        return ()
    given = block["documents"]
    entries = [given] if isinstance(given, str) else list_in(document, given, ("documents",))
    if not 0 < len(entries) <= DOCUMENTS_MAX:
        message = f"documents has {len(entries)} entries; name 1 to {DOCUMENTS_MAX} folders or files"
        document.reject(YamlFault.VALUE_INVALID, message, ("documents",))
    places: list[ValuePath] = [
        ("documents",) if entries is not given else ("documents", at) for at in range(len(entries))
    ]
    return tuple(_path(document, entry, place, base) for entry, place in zip(entries, places, strict=True))


def _named_file(document: YamlDocument, block: Mapping[str, Any], key: str, base: Path) -> Path | None:
    if key not in block:
        return None
    path = _path(document, block[key], (key,), base)
    if not path.is_file():
        message = f"{key}: {str(path)!r} is no file; name one"
        document.reject(YamlFault.VALUE_INVALID, message, (key,))
    return path


def _path(document: YamlDocument, value: Any, place: ValuePath, base: Path) -> Path:
    """An absolute path to something that is there."""
    if not isinstance(value, str) or not value:
        document.reject(
            YamlFault.VALUE_INVALID, f"{spelled_place(place)} must be a path, not {value_in_error(value)}", place
        )
    path = base / value
    try:
        path = path.resolve()
        is_there = path.exists()
    except (OSError, ValueError, RuntimeError):
        is_there = False  # A name that no file can have, or a link that leads to itself.
    if not is_there:
        message = f"{spelled_place(place)}: {str(path)!r} is not there; paths start at the plan file"
        document.reject(YamlFault.VALUE_INVALID, message, place)
    return path


def _typed(document: YamlDocument, value: dict[str, Any], to: type[_Typed], place: ValuePath) -> _Typed:
    try:
        return from_json(to_json(value), to)
    except ValueError as error:
        text, found = str(error), _PLACE_IN_ERROR.search(str(error))
        if found is not None and found["key"]:
            place = (*place, found["key"])
            text = f"{text[: found.start()]}; found {value_in_error(value.get(found['key']))}"
        document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)}: {text}", place)


def _shortened(name: str) -> str:
    return name[:_QUOTED_CHARS_MAX]
