"""What the steps of a plan file are done with: its engine and tools, and the documents, rules and code it names.

Rule 1: the kit is made of the sources that the manifest keeps, when a run begins and when it is taken up alike; so both
        find the same, or it is refused.
Rule 2: a type that the plan's own code gives wins over the types that come by themselves; one that the plan gives twice
        is refused.
Rule 3: steps that ask a model are offered no tools: what a tool may do is said by a step of the plan.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolDefinition
from remit.core.run.manifest import Source
from remit.core.schema.strict_yaml import decoded_text
from remit.core.work.plan import PLAN_STEP_TYPE_REFUSED, StepType
from remit.orchestrate.patterns.documents import Documents, read_documents
from remit.orchestrate.patterns.handlers import (
    Handler,
    InferHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
    unusable_handler,
)
from remit.orchestrate.patterns.plan_file import PlanFile
from remit.orchestrate.patterns.plan_graph import STEP_MARK, plan_graph
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.relied_on import PLAN_CODES, PLAN_FILE, PLAN_MARK, expect, fault
from remit.rerank.lexical import rerank
from remit.tool.loader import load_code
from remit.tool.source import file_digest
from remit.validate.rule_file import parse_rules

PLAN_HANDLERS_INVALID = "PLAN_HANDLERS_INVALID"
PLAN_RULES_INVALID = "PLAN_RULES_INVALID"

RULES, HANDLERS = f"{PLAN_MARK}rules", f"{PLAN_MARK}handlers"
_DOCUMENTS_MARK = f"{PLAN_MARK}documents:"

# A file of code may list its types under this name; otherwise each public function is a type.
TABLE = "HANDLERS"


def asks_a_model(file: PlanFile, tools: Iterable[ToolDefinition] = ()) -> bool:
    """Whether a step of the plan asks a model, or calls a tool that delegates to one; without that no engine is needed."""
    delegating = {tool.name for tool in tools if tool.delegates}
    return any(step.type == StepType.INFER or step.tool in delegating for step in file.plan.steps)


def plan_sources(file: PlanFile) -> tuple[Source, ...]:
    """The files that a plan relies on, as they are now."""
    base = file.path.parent
    found = [Source(PLAN_FILE, str(file.path), digest=file.digest)]
    for position, place in enumerate(file.documents, 1):
        digest = read_documents(place, base=base).digest
        found.append(Source(f"{_DOCUMENTS_MARK}{position}", str(place), digest=digest))
    for name, path in ((RULES, file.rules), (HANDLERS, file.handlers)):
        if path is not None:
            found.append(Source(name, str(path), digest=file_digest(path)))
    return tuple(found)


def digest_now(source: Source, base: Path) -> str:
    """The digest of what a source of a plan names, as it is now; empty where nothing can be read."""
    if not source.name.startswith(_DOCUMENTS_MARK):
        return file_digest(Path(source.place))
    try:
        return read_documents(Path(source.place), base=base).digest
    except RequestRejected:
        return ""


def planned(kit: Kit, sources: Iterable[Source]) -> Kit:
    """The kit with what a plan's steps are done with; raises SourceFault where a file is not what its source says."""
    named = {source.name: source for source in sources if source.name.startswith(PLAN_MARK)}
    handlers = {**_standing(kit), **_given(named)}
    code = {f"{STEP_MARK}{name}": unusable_handler(handler) or handler for name, handler in handlers.items()}
    return replace(kit, handlers=handlers, code={**kit.code, **code}, sources=(*kit.sources, *named.values()))


def check_steps(file: PlanFile, kit: Kit, prompt: str) -> None:
    """Refuse a plan that cannot run with this kit, naming the line of the step that is wrong."""
    try:
        for step in file.plan.steps:
            _expect_part(step.name, step.type, kit.handlers)
        plan_graph(file.plan, file.policy, kit.handlers, prompt)
    except RequestRejected as error:
        raise file.located(error) from None


def _expect_part(name: str, step_type: str, handlers: Mapping[str, Handler]) -> None:
    """Say which key a type of step needs that the plan has no part for."""
    key = {StepType.RETRIEVE.value: "documents", StepType.VALIDATE.value: "rules"}.get(step_type, "")
    if key and step_type not in handlers:
        message = f"step {name!r} is of type {step_type!r} and the plan names no {key}; add `{key}:`"
        raise RequestRejected(PLAN_STEP_TYPE_REFUSED, message, {"step": name, "type": step_type})


def _standing(kit: Kit) -> dict[str, Handler]:
    """The types that come by themselves."""
    return {
        StepType.INFER: InferHandler(next(iter(kit.engines.values()), None)),
        StepType.TOOL: ToolHandler(kit.tools),
        StepType.RERANK: RerankHandler(rerank),
    }


def _given(named: Mapping[str, Source]) -> dict[str, Handler]:
    """The types that the files of the plan give."""
    given: dict[str, Handler] = {}
    expect(named[PLAN_FILE], file_digest(Path(named[PLAN_FILE].place)), PLAN_CODES)
    base = Path(named[PLAN_FILE].place).parent
    read = [_read(source, base) for name, source in named.items() if name.startswith(_DOCUMENTS_MARK)]
    if read:
        given[StepType.RETRIEVE] = RetrieveHandler(Documents([one for documents in read for one in documents]))
    if RULES in named:
        given[StepType.VALIDATE] = ValidateHandler(_rules(named[RULES]))
    for name, handler in _code(named[HANDLERS]).items() if HANDLERS in named else ():
        if name in given:
            message = f"{named[HANDLERS].place!r} has a handler for {name!r}, and so has the plan file; keep one"
            raise RequestRejected(PLAN_HANDLERS_INVALID, message, {"type": name})
        given[name] = handler
    return given


def _read(source: Source, base: Path) -> Iterable[Any]:
    try:
        reading = read_documents(Path(source.place), base=base)
    except RequestRejected as error:
        raise fault(PLAN_CODES.missing, source, error.message) from error
    expect(source, reading.digest, PLAN_CODES)
    return reading.documents


def _rules(source: Source) -> Callable[[str], Any]:
    data = _bytes(source)
    expect(source, sha256(data).hexdigest() if data is not None else "", PLAN_CODES)
    assert data is not None, "what is missing was refused"
    rules = parse_rules(decoded_text(data, source.place), source.place)
    if rules.rule_set.semantic:
        names = ", ".join(check.name for check in rules.rule_set.semantic)
        message = f"{source.place!r} asks a judge ({names}), which a step of a plan cannot; leave `semantic` out"
        raise RequestRejected(PLAN_RULES_INVALID, message, {"rules": source.place})
    return rules.check


def _bytes(source: Source) -> bytes | None:
    try:
        return Path(source.place).read_bytes()
    except OSError:
        return None


def _code(source: Source) -> dict[str, Handler]:
    path = Path(source.place)
    # It is looked at before it is executed.
    expect(source, file_digest(path), PLAN_CODES)
    module = load_code(path)
    table = getattr(module, TABLE, None)
    found = _functions(module) if table is None else table
    if not isinstance(found, Mapping) or not found:
        problem = f"has no functions and no mapping {TABLE}; define a function of a Step for each type"
        raise _no_handlers(source, problem)
    for name, function in found.items():
        if not isinstance(name, str) or not callable(function) or isinstance(function, type):
            raise _no_handlers(source, f"gives {str(name)[:80]!r} a {type(function).__name__}; give it a function")
    return dict(found)


def _functions(module: ModuleType) -> dict[str, Handler]:
    """The functions that were defined in this file, not those it imports or keeps for itself."""
    return {
        name: value
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def _no_handlers(source: Source, problem: str) -> RequestRejected:
    return RequestRejected(PLAN_HANDLERS_INVALID, f"{source.place!r} {problem}", {"place": source.place})
