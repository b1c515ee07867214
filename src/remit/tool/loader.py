"""Loading tools from a file, a module or the catalogue, and loading them again for a run that goes on.

Rule 1: a file is loaded under a private name made of its path and its digest: the same bytes once, changed bytes anew.
Rule 2: what a run was started with is looked at before it is executed: a changed file is refused unread.
Rule 3: the digest covers the file itself. What it imports is not pinned, only the definitions are compared.
Rule 4: a builtin tool is made anew from its place; what its digest covers is said in the catalogue.
"""

import importlib
import importlib.util
import sys
from collections.abc import Collection, Sequence
from hashlib import sha256
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import NamedTuple

from remit.core.failure import RemitError, RequestRejected
from remit.core.limits.tools import ToolDefinition, tool_version
from remit.core.record import JsonObject, replace
from remit.core.run.manifest import Source
from remit.tool.builtin.builtin_tools import BUILTIN_PREFIX, builtin_again, builtin_tools
from remit.tool.call.outcomes import error_text
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from remit.tool.source import LOADED_DIGEST, file_digest

TOOL_FILE_NOT_FOUND = "TOOL_FILE_NOT_FOUND"
TOOL_FILE_UNREADABLE = "TOOL_FILE_UNREADABLE"
TOOL_FILE_EMPTY = "TOOL_FILE_EMPTY"
TOOL_SOURCE_MISSING = "TOOL_SOURCE_MISSING"
# Why a script that does its work at the top level cannot be loaded again, and what to write instead.
EXECUTED_AGAIN = (
    'its file is executed again to find its tools, so let a script do its work under `if __name__ == "__main__":`'
)
TOOL_SOURCE_CHANGED = "TOOL_SOURCE_CHANGED"
TOOL_DEFINITION_CHANGED = "TOOL_DEFINITION_CHANGED"
CODE_FILE_NOT_FOUND = "CODE_FILE_NOT_FOUND"
CODE_FILE_UNREADABLE = "CODE_FILE_UNREADABLE"

MODULE_PREFIX = "module:"

# No person writes so much by hand; a larger file is not the one that was meant.
FILE_BYTES_MAX = 4 * 1024 * 1024

_LOADING = RLock()


class _Kind(NamedTuple):
    """What a file is called in errors, and the codes of not being there and of being no such file."""

    name: str
    not_found: str
    unreadable: str


_TOOLS = _Kind("tool file", TOOL_FILE_NOT_FOUND, TOOL_FILE_UNREADABLE)
_CODE = _Kind("file of code", CODE_FILE_NOT_FOUND, CODE_FILE_UNREADABLE)


class SourceFault(RemitError):
    """Code of a run cannot be loaded as it was. `details["faults"]` lists every such tool, or the engine."""


def load_tools(place: Path | str) -> Registry:
    """The tools of 'path/to/file.py', 'module:package.mod' or 'builtin:NAME,NAME=VALUE', in the order they stand there."""
    place = str(place)
    if place.startswith(BUILTIN_PREFIX):
        return Registry(builtin_tools(place))
    name = place.removeprefix(MODULE_PREFIX)
    module = _loaded(Path(place)) if name == place else _imported(name)
    found: dict[int, Tool] = {}
    for attribute, value in vars(module).items():
        # The same tool under a second name is still one tool.
        if isinstance(value, Tool) and id(value) not in found:
            found[id(value)] = value
            _name_the_place(value, module, attribute)
    if not found:
        raise RequestRejected(
            TOOL_FILE_EMPTY, f"{place!r} holds no tools; put @tool on its functions", {"place": place}
        )
    return Registry(found.values())


def load_code(path: Path) -> ModuleType:
    """The module in a file of code that is no tools: handlers of steps, a voter."""
    return _loaded(path, _CODE)


def reload(
    sources: Sequence[Source], pinned: Sequence[ToolDefinition] = (), *, accept_changed: Collection[str] = ()
) -> Registry:
    """Load each tool again from where it came, and refuse what is missing or is no longer what it was.

    A tool that `accept_changed` names may come from a changed file, but must still have the definition in `pinned`.
    """
    definitions = {definition.name: definition for definition in pinned}
    tools: list[Tool] = []
    faults: list[SourceFault] = []
    for source in sources:
        try:
            found = _found(source, is_accepted=source.name in accept_changed)
            _check_definition_kept(found, source, definitions.get(source.name))
            tools.append(found)
        except SourceFault as fault:
            faults.append(fault)
    if faults:
        listed = [{"code": fault.code, **fault.details} for fault in faults]
        first = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise SourceFault(first.code, first.message + more, {**first.details, "faults": listed})
    return Registry(tools)


def _found(source: Source, *, is_accepted: bool) -> Tool:
    if not source.place:
        raise _fault(
            TOOL_SOURCE_MISSING, source, "was made on the spot; pass the tool itself to the process that resumes"
        )
    if source.place.startswith(BUILTIN_PREFIX):
        return _builtin_found(source, is_accepted=is_accepted)
    digest = file_digest(_file_of(source))
    if not digest:
        raise _fault(TOOL_SOURCE_MISSING, source, "its file is not there; put it back")
    if digest != source.digest and not is_accepted:
        way_out = "its file has changed since the run began; restore it, or accept the change by the tool's name"
        raise _fault(TOOL_SOURCE_CHANGED, source, way_out, digest)
    try:
        module = _loaded(Path(source.place)) if _is_path(source.place) else _imported(source.place)
    except RequestRejected as error:
        way_out = f"it cannot be loaded: {error.message}; {EXECUTED_AGAIN}"
        raise _fault(TOOL_SOURCE_MISSING, source, way_out, digest) from error
    found = _picked(module, source)
    if found is None:
        raise _fault(TOOL_SOURCE_MISSING, source, f"{source.attribute!r} is no longer in its file", digest)
    if found.source.place == source.place and found.source.digest != digest:
        way_out = "this process holds its module as it was before the file changed; resume from a new process"
        raise _fault(TOOL_SOURCE_CHANGED, source, way_out, digest)
    return found


def _builtin_found(source: Source, *, is_accepted: bool) -> Tool:
    try:
        found, digest = builtin_again(source)
    except RequestRejected as error:
        raise _fault(TOOL_SOURCE_MISSING, source, f"it cannot be made again: {error.message}") from error
    if found is None:
        raise _fault(TOOL_SOURCE_MISSING, source, "this version of remit has no such tool; go on with the one before")
    if digest != source.digest and not is_accepted:
        way_out = "it does something else than when the run began; accept the change by the tool's name"
        raise _fault(TOOL_SOURCE_CHANGED, source, way_out, digest)
    return found


def _picked(module: ModuleType, source: Source) -> Tool | None:
    """The tool of this name in the module, or the plain function that a registry made one of."""
    value = getattr(module, source.attribute, None)
    tools = (other for other in (value, *vars(module).values()) if isinstance(other, Tool))
    found = next((other for other in tools if other.name == source.name), None)
    if found is None and value is not None and callable(value) and not isinstance(value, Tool):
        return tool(value)
    return found


def _check_definition_kept(found: Tool, source: Source, pinned: ToolDefinition | None) -> None:
    if pinned is None:
        return
    expected, version = tool_version(pinned), found.definition.version
    if expected != version:
        way_out = "declares something else than when the run began; restore it, or start a new run"
        details: JsonObject = {"expected_version": expected, "found_version": version}
        raise _fault(TOOL_DEFINITION_CHANGED, source, way_out, found.source.digest, details)


def _fault(code: str, source: Source, problem: str, digest: str = "", more: JsonObject | None = None) -> SourceFault:
    details: JsonObject = {"name": source.name, "place": source.place, "expected": source.digest, "found": digest}
    shown = f"tool {source.name!r} of {source.place!r}" if source.place else f"tool {source.name!r}"
    return SourceFault(code, f"{shown}: {problem}", details | (more or {}))


def _file_of(source: Source) -> Path:
    """The file behind a place; one that does not exist if a module has none."""
    if _is_path(source.place):
        return Path(source.place)
    try:
        spec = importlib.util.find_spec(source.place)
    except (ImportError, ValueError, AttributeError):
        spec = None
    return Path(spec.origin if spec and spec.origin else f"{source.place}.py")


def _is_path(place: str) -> bool:
    return Path(place).is_absolute()


def _name_the_place(found: Tool, module: ModuleType, attribute: str) -> None:
    """A tool that was made by a plain call knows only where its function stands; now it learns where it stands itself."""
    if getattr(sys.modules.get(found.function.__module__), found.source.attribute or "", None) is found:
        return
    path = Path(module.__file__ or "").resolve()
    place = module.__name__ if "." in module.__name__ else str(path)
    digest = getattr(module, LOADED_DIGEST, "") or file_digest(path)
    found.source = replace(found.source, place=place, attribute=attribute, digest=digest)


def _loaded(path: Path, kind: _Kind = _TOOLS) -> ModuleType:
    data = _read(path, kind)
    path = path.resolve()
    digest = sha256(data).hexdigest()
    name = f"_remit_tools_{sha256(bytes(path)).hexdigest()[:16]}_{digest[:16]}"
    # No thread may find a module that another thread is still executing; a file may load another one, though.
    with _LOADING:
        known = sys.modules.get(name)
        return _executed(name, path, data, digest, kind) if known is None else known


def _executed(name: str, path: Path, data: bytes, digest: str, kind: _Kind) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(path)
    setattr(module, LOADED_DIGEST, digest)
    # Dataclasses and annotations look their module up while it is being executed.
    sys.modules[name] = module
    try:
        exec(compile(data, str(path), "exec"), vars(module))  # noqa: S102  # the file was named by its user as code
    except BaseException as error:
        # An exit in the middle of a file is one more way of being unreadable.
        del sys.modules[name]
        raise _unreadable(str(path), error, kind) from error
    return module


def _read(path: Path, kind: _Kind) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        data.decode()
    except FileNotFoundError as error:
        raise RequestRejected(
            kind.not_found, f"there is no {kind.name} {str(path)!r}; correct the path", {"place": str(path)}
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), error, kind) from error
    if len(data) > FILE_BYTES_MAX:
        problem = f"has more than file_bytes_max={FILE_BYTES_MAX}"
        raise RequestRejected(kind.unreadable, f"{kind.name} {str(path)!r} {problem}", {"place": str(path)})
    return data


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A module that it needs and that is missing is a fault of its own.
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            message = f"there is no module {name!r}; correct its name or install it"
            raise RequestRejected(TOOL_FILE_NOT_FOUND, message, {"place": name}) from error
        raise _unreadable(name, error) from error
    except BaseException as error:
        raise _unreadable(name, error) from error


def _unreadable(place: str, error: BaseException, kind: _Kind = _TOOLS) -> RequestRejected:
    details: JsonObject = {"place": place, "error": type(error).__name__}
    where = ""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        where, details["line"] = f" in line {error.lineno}", error.lineno
    problem = f"cannot be loaded{where}: {error_text(error)}; correct it"
    return RequestRejected(kind.unreadable, f"{kind.name} {place!r} {problem}", details)
