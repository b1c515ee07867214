"""Engine specs: a short text that says which engine to open, such as `scripted:replies.yaml` or `local`.

Rule 1: what opened an engine opens it again: the manifest keeps the spec, and a resumed run reads it there.
Rule 2: an unknown kind is refused with those that are known.
Rule 3: a bar between specs makes a chain of their engines; limits of an endpoint may stand among the options of an engine
        that asks a url.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.manifest import Source
from remit.inference.engine import AnyEngine, Engine
from remit.inference.scripted.script import SCRIPTED


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What engines need beyond their spec: where models are kept, and how a vendor is reached. Keys are never shown."""

    models: Path | None = None
    openai_base_url: str = ""
    openai_api_key: str = field(default="", repr=False)
    # On whose account the vendor is asked; no other server learns it.
    openai_organization: str = ""
    openai_project: str = ""
    anthropic_base_url: str = ""
    anthropic_api_key: str = field(default="", repr=False)
    # Further addresses that may be given the keys when a run that names them is taken up again.
    urls: tuple[str, ...] = ()


NO_SETTINGS = EngineSettings()
# Between the members of a chain of engines, in its name and in its spec.
BAR = "|"


def open_engine(spec: str, *, base: Path, settings: EngineSettings = NO_SETTINGS) -> Engine:
    """The engine that a spec names; paths in it start from `base`."""
    specs = _members(spec, base)
    if len(specs) == 1:
        return _open(spec, base, settings)
    from remit.inference.chain import ChainEngine

    return ChainEngine([_open(each, base, settings) for each in specs])


def open_recorded(spec: str, *, settings: EngineSettings = NO_SETTINGS) -> Engine:
    """The engine that a run recorded. An address that is not configured here, too, is given no key of this environment."""
    from remit.inference.endpoint.recorded import keyless_where_unknown

    specs = _members(spec, Path("/"))
    found = [_open(each, Path("/"), keyless_where_unknown(each, settings)) for each in specs]
    if len(found) == 1:
        return found[0]
    from remit.inference.chain import ChainEngine

    return ChainEngine(found)


def _members(spec: str, base: Path) -> list[str]:
    """The specs that a bar separates; a file may have one in its name."""
    kind, _, rest = spec.partition(":")
    if BAR not in spec or (kind in _OF_FILES and (base / rest).exists()):
        return [spec]
    return [each.strip() for each in spec.split(BAR)]


def _open(spec: str, base: Path, settings: EngineSettings) -> Engine:
    kind, _, rest = spec.partition(":")
    found = _KINDS.get(kind)
    if found is None:
        alone = [name for name, each in _KINDS.items() if each.stands_alone]
        known = ", ".join([*alone, *(f"{name}:{each.takes}" for name, each in _KINDS.items())])
        message = f"engine {spec[:80]!r} is of no known kind; known are {known}"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    if not rest and not found.stands_alone:
        message = f"engine {spec[:80]!r} names nothing to open; write {kind}:{found.takes}"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    if kind in _OF_FILES:
        return found.open(rest, base, settings)
    return _limited(spec, found.open, base, settings)


def _limited(spec: str, open_kind: "_OpenKind", base: Path, settings: EngineSettings) -> Engine:
    """An engine that asks a url, within the limits that its spec names."""
    from remit.inference.endpoint.limits import take_limits

    named, limits = take_limits(spec)
    engine = open_kind(named.partition(":")[2], base, settings)
    if limits is None:
        return engine
    from remit.inference.endpoint.endpoint import LimitedEngine

    return LimitedEngine(engine, engine_spec(engine), limits)


def engine_spec(engine: AnyEngine) -> str:
    """What opens this engine again; empty for one that was made on the spot."""
    spec = getattr(engine, "spec", "")
    return spec if isinstance(spec, str) else ""


def engine_source(engine: AnyEngine) -> Source | None:
    """The file an engine relies on, if it relies on one."""
    source = getattr(engine, "source", None)
    return source if isinstance(source, Source) and source.place else None


def _scripted(file: str, base: Path, settings: EngineSettings) -> Engine:
    # Only those who open one pay for it.
    from remit.inference.scripted.engine import ScriptedEngine

    return ScriptedEngine.from_file(base / file)


def _local(model: str, base: Path, settings: EngineSettings) -> Engine:
    from remit.inference.local.engine import open_local

    return open_local(model, base, models=settings.models)


def _openai(model: str, base: Path, settings: EngineSettings) -> Engine:
    from remit.inference.openai.engine import open_openai

    return open_openai(model, settings)


def _anthropic(model: str, base: Path, settings: EngineSettings) -> Engine:
    from remit.inference.anthropic.engine import open_anthropic

    return open_anthropic(model, settings)


def _ollama(model: str, base: Path, settings: EngineSettings) -> Engine:
    from remit.inference.openai.presets import open_preset

    return open_preset("ollama", model, settings)


def _vllm(model: str, base: Path, settings: EngineSettings) -> Engine:
    from remit.inference.openai.presets import open_preset

    return open_preset("vllm", model, settings)


_OpenKind: TypeAlias = Callable[[str, Path, EngineSettings], Engine]


class _Kind(NamedTuple):
    """A kind of engine: what follows its colon, what opens it, and whether its name alone says enough."""

    takes: str
    open: _OpenKind
    stands_alone: bool = False


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        SCRIPTED: _Kind("FILE", _scripted),
        "local": _Kind("MODEL", _local, stands_alone=True),
        "openai": _Kind("MODEL", _openai),
        "anthropic": _Kind("MODEL", _anthropic),
        "ollama": _Kind("MODEL", _ollama),
        "vllm": _Kind("MODEL", _vllm),
    }
)

# The kinds that name a file, which may have a bar in its name.
_OF_FILES = frozenset({SCRIPTED, "local"})
