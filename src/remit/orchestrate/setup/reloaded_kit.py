"""The kit of a run, loaded again from what its manifest says, for a process that did not start it.

Rule 1: what was loaded from a file or a module is loaded from there again; what was made on the spot cannot be.
Rule 2: code that is missing or has changed is refused with a code and the run stays open, until a person accepts it. The
        file that an engine plays counts as code, and so do a plan file, what it names, a rule file, and that of a voter.
Rule 3: an accepted change may change what a tool or an engine does, never what it declares: that was judged and approved.
        The steps of a plan were pinned as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace as replace_parts
from pathlib import Path

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.limits.tools import ToolDefinition
from remit.core.record import replace
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.manifest import Source
from remit.core.run.messages import Role
from remit.core.work.graph import graph_version
from remit.inference.engine import AnyEngine, Engine, StreamHandler
from remit.inference.specs import NO_SETTINGS, EngineSettings, engine_source, open_recorded
from remit.kernel.state import RunState, pinned
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.redundant_graph import VOTE_MARK
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.relied_on import (
    PLAN_CODES,
    PLAN_FILE,
    PLAN_MARK,
    RULES_CODES,
    RULES_MARK,
    VOTER_CODES,
    expect,
    fault,
)
from remit.tool.loader import TOOL_SOURCE_CHANGED, SourceFault, reload
from remit.tool.registry import Registry
from remit.tool.source import file_digest

ENGINE_NOT_REOPENABLE = "ENGINE_NOT_REOPENABLE"
ENGINE_SOURCE_MISSING = "ENGINE_SOURCE_MISSING"
ENGINE_SOURCE_CHANGED = "ENGINE_SOURCE_CHANGED"
ENGINE_DEFINITION_CHANGED = "ENGINE_DEFINITION_CHANGED"
PLAN_DEFINITION_CHANGED = "PLAN_DEFINITION_CHANGED"

# Before the name of a model, it names the source of its engine. No tool may have a colon in its name.
ENGINE_MARK = "engine:"
_CODES = {PLAN_MARK: PLAN_CODES, VOTE_MARK: VOTER_CODES, RULES_MARK: RULES_CODES}
_PARTS = tuple(_CODES)
_NO_TOOLS = (ENGINE_MARK, *_PARTS)


def engine_sources(engines: Iterable[AnyEngine]) -> tuple[Source, ...]:
    """The files that engines rely on, as a manifest keeps them among those of the tools."""
    found = ((engine.model_info().name, engine_source(engine)) for engine in engines)
    return tuple([replace(source, name=f"{ENGINE_MARK}{model}") for model, source in found if source is not None])


async def kit_again(state: RunState, settings: EngineSettings = NO_SETTINGS) -> Kit:
    """The kit of a run, loaded anew."""
    engines = {info.name: _opened(state, info, spec, _source(state, info), settings) for info, spec in _specs(state)}
    return equipped(Kit(engines, _tools(state)), _parts(state))


def equipped(kit: Kit, sources: Iterable[Source]) -> Kit:
    """The kit with the code that these sources name: what a plan's steps are done with, who counts votes, and rules."""
    listed = tuple(sources)
    if any(source.name == PLAN_FILE for source in listed):
        # Only those who run a plan file pay for what reads it.
        from remit.orchestrate.patterns.plan_kit import planned

        kit = planned(kit, listed)
    for source in listed:
        if source.name.startswith(VOTE_MARK):
            from remit.orchestrate.patterns.voter_file import load_voter

            code = {**kit.code, source.name: load_voter(source)}
            kit = replace_parts(kit, code=code, sources=(*kit.sources, source))
        if source.name.startswith(RULES_MARK):
            from remit.orchestrate.setup.answer_rules import load_rules_again

            code = {**kit.code, source.name: load_rules_again(source)}
            kit = replace_parts(kit, code=code, sources=(*kit.sources, source))
    return kit


def changed_sources(state: RunState) -> tuple[Source, ...]:
    """The code of a run whose files are no longer what they were, each with the digest it has now.

    Raises SourceFault where what has become of it cannot be accepted: it is gone, or declares something else.
    """
    tools = _changed_tools(state)
    parts = _changed_parts(state)
    if parts:
        _check_plan_kept(state, parts, frozenset(source.name for source in tools))
    return (*tools, *_changed_engines(state), *parts)


def _changed_tools(state: RunState) -> list[Source]:
    try:
        _tools(state)
    except SourceFault as fault:
        changed = {f["name"]: f["found"] for f in fault.details["faults"] if f["code"] == TOOL_SOURCE_CHANGED}
        _tools(state, changed)
        return [replace(state.sources[name], digest=digest) for name, digest in changed.items()]
    return []


def _tools(state: RunState, accepted: Iterable[str] = ()) -> Registry:
    sources = [source for name, source in state.sources.items() if not name.startswith(_NO_TOOLS)]
    return reload(sources, pinned=pinned(state).tools, accept_changed=frozenset(accepted))


def _changed_engines(state: RunState) -> list[Source]:
    changed: list[Source] = []
    for info, spec in _specs(state):
        source = _source(state, info)
        if source is not None and (digest := file_digest(Path(source.place))) != source.digest:
            found = replace(source, digest=digest)
            _opened(state, info, spec, found)
            changed.append(found)
    return changed


def _parts(state: RunState) -> tuple[Source, ...]:
    """The files of a run that are neither its tools' nor its engines'."""
    return tuple(source for name, source in state.sources.items() if name.startswith(_PARTS))


def _changed_parts(state: RunState) -> list[Source]:
    changed: list[Source] = []
    for source in _parts(state):
        codes = next(codes for mark, codes in _CODES.items() if source.name.startswith(mark))
        digest = _digest_now(state, source)
        if digest != source.digest:
            found = replace(source, digest=digest)
            expect(found, digest, codes)  # What is gone cannot be accepted.
            changed.append(found)
    return changed


def _digest_now(state: RunState, source: Source) -> str:
    if not source.name.startswith(PLAN_MARK):
        return file_digest(Path(source.place))
    from remit.orchestrate.patterns.plan_kit import digest_now

    return digest_now(source, Path(state.sources[PLAN_FILE].place).parent)


def _check_plan_kept(state: RunState, changed: Iterable[Source], tools: frozenset[str]) -> None:
    """Load everything as it is now, and refuse a plan whose steps are others than those that were pinned."""
    now = {source.name: source for source in (*_parts(state), *changed)}
    manifest = pinned(state)
    kit = equipped(Kit({info.name: _Pinned(info) for info in manifest.models}, _tools(state, tools)), now.values())
    if manifest.parent is not None or PLAN_FILE not in now:
        return  # A step's own run follows the graph that its parent gave it.
    from remit.orchestrate.patterns.plan_file import read_plan

    source = now[PLAN_FILE]
    said = [message.content for message in manifest.request.messages if message.role is Role.USER]
    prompt = said[-1] if said and isinstance(said[-1], str) else ""
    try:
        file = read_plan(Path(source.place))
        graph = plan_graph(file.plan, file.policy, kit.handlers, prompt)
    except RequestRejected as error:
        raise fault(PLAN_DEFINITION_CHANGED, source, error.message, source.digest) from error
    if graph_version(graph) != manifest.versions.graph:
        problem = "its steps are others than when the run began; restore them, or start a new run"
        raise fault(PLAN_DEFINITION_CHANGED, source, problem, source.digest)


def pinned_kit(state: RunState) -> Kit:
    """What a run works with where workers ask its models and call its tools: neither is loaded, only what they declare."""
    engines = {info.name: _Pinned(info, spec) for info, spec in _specs(state)}
    return equipped(Kit(engines, _PinnedTools(state)), _parts(state))


class _PinnedTools(Registry):
    """The tools of a run as they were declared; none of them can be called."""

    __slots__ = ("_state",)

    def __init__(self, state: RunState) -> None:
        super().__init__()
        self._state = state

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """The definitions of tools that the manifest pins."""
        return pinned(self._state).tools

    def __contains__(self, name: object) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return any(tool.name == name for tool in self.definitions)


@dataclass(frozen=True, slots=True)
class _Pinned:
    """An engine that says which model it has and is asked nothing."""

    info: ModelInfo
    spec: str = ""

    def model_info(self) -> ModelInfo:
        """The facts about the model that the manifest tells."""
        return self.info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """It is never asked."""
        raise InvariantBroken("ENGINE_PINNED", f"model {self.info.name!r} was asked while its run was only looked at")


def _specs(state: RunState) -> Iterable[tuple[ModelInfo, str]]:
    """The models of a run, each with what opens its engine again."""
    manifest = pinned(state)
    return zip(manifest.models, manifest.engines, strict=True)


def _source(state: RunState, info: ModelInfo) -> Source | None:
    return state.sources.get(f"{ENGINE_MARK}{info.name}")


def _opened(
    state: RunState, info: ModelInfo, spec: str, source: Source | None, settings: EngineSettings = NO_SETTINGS
) -> Engine:
    """The engine of a model, opened again from a file that is still what it was."""
    if not spec:
        raise RequestRejected(
            ENGINE_NOT_REOPENABLE,
            f"the engine of model {info.name!r} was passed to run {state.run_id} as an object; "
            "resume the run from the program that started it",
            {"run_id": state.run_id, "model": info.name},
        )
    if source is not None:
        _check_file(state.run_id, source)
    # Specs were made absolute when the engine was first opened.
    engine = open_recorded(spec, settings=settings)
    if source is not None and engine.model_info() != info:
        way_out = "it declares another model than when the run began; restore it, or start a new run"
        raise _fault(ENGINE_DEFINITION_CHANGED, state.run_id, source, way_out, source.digest)
    return engine


def _check_file(run_id: str, source: Source) -> None:
    digest = file_digest(Path(source.place))
    if not digest:
        raise _fault(ENGINE_SOURCE_MISSING, run_id, source, "it is not there; put it back", "")
    if digest != source.digest:
        way_out = "it has changed since the run began; restore it, or accept the change by this name"
        raise _fault(ENGINE_SOURCE_CHANGED, run_id, source, way_out, digest)


def _fault(code: str, run_id: str, source: Source, problem: str, digest: str) -> SourceFault:
    details = {"name": source.name, "place": source.place, "expected": source.digest, "found": digest}
    message = f"{source.place!r}, on which {source.name!r} of run {run_id} relies: {problem}"
    return SourceFault(code, message, {**details, "faults": [{"code": code, **details}]})
