"""The builtin tools: which there are, what each needs to be told, and how a place names them.

Rule 1: nothing is on by itself. A tool is there because its operator named it, with the folder, file or hosts it may reach.
Rule 2: a place is `builtin:NAME,NAME=VALUE,...`. A run keeps one place per tool, with absolute paths, so that a process that goes
        on with it from another folder gets the same tools.
Rule 3: the digest of a builtin tool covers its place and its revision, and not the bytes of the package: a new release goes
        on with old runs. A revision is raised when a tool comes to do something else; then a person has to accept it.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from remit.core.failure import RequestRejected
from remit.core.run.manifest import Source
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.relative_path import STORE_MARK
from remit.tool.declare.decorator import Tool

BUILTIN_PREFIX = "builtin:"
BUILTIN_UNKNOWN = "BUILTIN_UNKNOWN"
BUILTIN_VALUE_INVALID = "BUILTIN_VALUE_INVALID"

# Folders that are no place for files of people: the whole disk, and what the kernel shows as files.
ROOTS_REFUSED = tuple(Path(path) for path in ("/proc", "/sys", "/dev"))


class Offer(NamedTuple):
    """What the catalogue offers under a name."""

    # Makes the tools of a value; and says what the value is in one spelling, with absolute paths.
    make: Callable[[str], tuple[Tool, ...]]
    settle: Callable[[str], str]
    usage: str
    revision: int = 1


def builtin_tools(place: str) -> list[Tool]:
    """The tools that a place names, in its order."""
    entries = place.removeprefix(BUILTIN_PREFIX).split(",")
    tools: list[Tool] = []
    for entry in entries:
        name, _, value = entry.strip().partition("=")
        tools += builtin(name.strip(), value.strip())
    return tools


def builtin(name: str, value: str = "") -> list[Tool]:
    """The tools of one name. `value` is the folder, file or list of hosts that it needs; a path may hold commas."""
    offer = _offer(name)
    settled = offer.settle(value)
    place = BUILTIN_PREFIX + (f"{name}={settled}" if settled else name)
    tools = list(offer.make(settled))
    for one in tools:
        one.source = _source(one.name, place, offer)
    return tools


def builtin_again(source: Source) -> tuple[Tool | None, str]:
    """The tool that a source names, made anew, and the digest it has now. There may be none of this name any more."""
    name, _, value = source.place.removeprefix(BUILTIN_PREFIX).partition("=")
    tools = {one.name: one for one in builtin(name, value)}
    found = tools.get(source.attribute)
    return found, found.source.digest if found else ""


def _source(name: str, place: str, offer: Offer) -> Source:
    digest = sha256(f"{place}\n{name}\n{offer.revision}".encode(errors="surrogateescape")).hexdigest()
    return Source(name, place, name, digest)


def _offer(name: str) -> Offer:
    if name in OFFERS:
        return OFFERS[name]
    known = ", ".join(offer.usage for offer in OFFERS.values())
    if not name:
        message = f"{BUILTIN_PREFIX!r} names no tool; there are {known}"
        raise RequestRejected(BUILTIN_UNKNOWN, message, {"known": list(OFFERS)})
    near = get_close_matches(name.lower(), OFFERS, n=1, cutoff=0.0)[0]
    message = f"there is no builtin tool {name[:80]!r}; did you mean {near!r}? There are {known}"
    raise RequestRejected(BUILTIN_UNKNOWN, message, {"name": name[:80], "nearest": near, "known": list(OFFERS)})


def _clock(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.world_clock import clock_tool

    return (clock_tool(),)


def _calculator(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.calculator import calculator_tool

    return (calculator_tool(),)


def _people(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.ask_person import people_tools

    return people_tools()


def _files(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.files import file_tools

    return file_tools(Path(value))


def _read_files(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.files import reading_tools

    return reading_tools(Path(value))


def _sqlite(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.sqlite_query import sqlite_tools

    return sqlite_tools(Path(value))


def _http_get(value: str) -> tuple[Tool, ...]:
    from remit.tool.builtin.http_get import http_get_tool
    from remit.tool.builtin.targets import allowed_host

    return (http_get_tool([allowed_host(host) for host in value.split("+")] if value else None),)


def _nothing(value: str) -> str:
    if value:
        raise _invalid(f"={value[:80]}", "takes no value; write its name alone")
    return ""


def _root(value: str) -> str:
    """The folder, absolute and without links on its way; one that is there, and is no place of the machine's own."""
    if not value:
        raise _invalid("files", "needs the folder that may be reached; write files=./notes, or files=. for this one")
    root = _resolved(value)
    if not _is_there(root, Path.is_dir):
        raise _invalid(value, "is no folder; name one that is there")
    if root == Path(root.anchor) or any(root.is_relative_to(folder) for folder in ROOTS_REFUSED):
        raise _invalid(value, "is the whole disk or a folder of the system; name a folder of files")
    if any((folder / STORE_MARK).exists() for folder in (root, *root.parents)):
        raise _invalid(value, "lies in a store of remit, which no tool may reach; name another folder")
    return str(root)


def _database(value: str) -> str:
    if not value:
        raise _invalid("sqlite_query", "needs the file that may be asked; write sqlite_query=shop.db")
    file = _resolved(value)
    if not _is_there(file, Path.is_file):
        raise _invalid(value, "is no file; name a database that is there")
    if file.name.casefold() == STORE_MARK:
        raise _invalid(value, "belongs to a store of remit, which no tool may reach; name another database")
    return str(file)


def _hosts(value: str) -> str:
    from remit.tool.builtin.targets import allowed_host, check_public

    if not value:
        return ""
    try:
        hosts = [allowed_host(host) for host in value.split("+")]
        check_public(hosts)
    except ToolRefused as refused:
        message = f"http_get={value[:80]!a}: {refused.message}"
        raise RequestRejected(BUILTIN_VALUE_INVALID, message, {"value": value[:80]}) from refused
    return "+".join(f"{_bracketed(one.host)}:{one.port}" if one.port else _bracketed(one.host) for one in hosts)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _resolved(value: str) -> Path:
    try:
        path = Path(value).resolve()
        # A run writes its places down, and what is no text cannot be.
        str(path).encode()
    except (OSError, ValueError, RuntimeError) as error:
        raise _invalid(value, f"cannot be found ({type(error).__name__}); correct it") from error
    return path


def _is_there(path: Path, is_kind: Callable[[Path], bool]) -> bool:
    try:
        return is_kind(path)
    except OSError:
        # A name that is too long, or a folder on the way that may not be entered.
        return False


def _invalid(value: str, problem: str) -> RequestRejected:
    return RequestRejected(BUILTIN_VALUE_INVALID, f"builtin tools: {value[:80]!r} {problem}", {"value": value[:80]})


OFFERS: Mapping[str, Offer] = {
    "clock": Offer(_clock, _nothing, "clock"),
    "calculator": Offer(_calculator, _nothing, "calculator"),
    "people": Offer(_people, _nothing, "people"),
    "files": Offer(_files, _root, "files=FOLDER"),
    "read_files": Offer(_read_files, _root, "read_files=FOLDER"),
    "sqlite_query": Offer(_sqlite, _database, "sqlite_query=FILE"),
    "http_get": Offer(_http_get, _hosts, "http_get or http_get=HOST+HOST:PORT"),
}
