"""Making a run's kit again from what its manifest says, for a process that did not start it.

Rule 1: what was loaded from a file or a module is loaded from there again; what was made on the spot cannot be.
Rule 2: code that is missing or has changed is refused with a code and the run stays open, until a person accepts it. The
        file that an engine plays counts as code.
Rule 3: an accepted change may change what a tool or an engine does, never what it declares: that was judged and approved.
"""

from collections.abc import Iterable
from pathlib import Path

from remit.core.failure import RequestRejected
from remit.core.inference import ModelInfo
from remit.core.manifest import Source
from remit.core.record import replace
from remit.inference.engine import Engine
from remit.inference.specs import NO_SETTINGS, EngineSettings, engine_source, open_engine
from remit.kernel.state import RunState, pinned
from remit.orchestrate.kit import Kit
from remit.tool.loading import TOOL_SOURCE_CHANGED, SourceFault, reload
from remit.tool.registry import Registry
from remit.tool.sourcing import file_digest

ENGINE_NOT_REOPENABLE = "ENGINE_NOT_REOPENABLE"
ENGINE_SOURCE_MISSING = "ENGINE_SOURCE_MISSING"
ENGINE_SOURCE_CHANGED = "ENGINE_SOURCE_CHANGED"
ENGINE_DEFINITION_CHANGED = "ENGINE_DEFINITION_CHANGED"

# Before the name of a model, it names the source of its engine. No tool may have a colon in its name.
ENGINE_MARK = "engine:"


def engine_sources(engines: Iterable[Engine]) -> tuple[Source, ...]:
    """The files that engines rely on, as a manifest keeps them among those of the tools."""
    found = ((engine.model_info().name, engine_source(engine)) for engine in engines)
    return tuple([replace(source, name=f"{ENGINE_MARK}{model}") for model, source in found if source is not None])


async def kit_again(state: RunState, settings: EngineSettings = NO_SETTINGS) -> Kit:
    """What a run works with, loaded anew."""
    engines = {info.name: _opened(state, info, spec, _source(state, info), settings) for info, spec in _specs(state)}
    return Kit(engines, _tools(state))


def changed_sources(state: RunState) -> tuple[Source, ...]:
    """The code of a run whose files are no longer what they were, each with the digest it has now.

    Raises SourceFault where nobody can accept what has become of it: it is gone, or declares something else.
    """
    return (*_changed_tools(state), *_changed_engines(state))


def _changed_tools(state: RunState) -> list[Source]:
    try:
        _tools(state)
    except SourceFault as fault:
        changed = {f["name"]: f["found"] for f in fault.details["faults"] if f["code"] == TOOL_SOURCE_CHANGED}
        _tools(state, changed)
        return [replace(state.sources[name], digest=digest) for name, digest in changed.items()]
    return []


def _tools(state: RunState, accepted: Iterable[str] = ()) -> Registry:
    sources = [source for name, source in state.sources.items() if not name.startswith(ENGINE_MARK)]
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
    engine = open_engine(spec, base=Path("/"), settings=settings)
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
