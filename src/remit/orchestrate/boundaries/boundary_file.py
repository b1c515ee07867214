"""Boundaries from YAML and JSON files and from Python mappings, in the shape docs/boundaries.md describes.

Rule 1: a file says how it differs from the boundary it extends; without a word about that, from the standard one.
Rule 2: an unknown key or value is refused by its place, never skipped.
Rule 3: what is written of a boundary reads back as an equal one.
Rule 4: a file may not call itself by the name of a boundary of the house unless it is that one.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.journal.codec import read_json, to_json
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import uncharged_in
from remit.core.limits.profiles import BOUNDARY_INVALID, KNOWN, STANDARD, boundary_named, declared_boundary
from remit.core.record import JsonObject, replace
from remit.core.schema.strict_yaml import (
    Place,
    spelled_place,
    write_yaml,
)
from remit.kernel.authority.conditions import check_conditions
from remit.kernel.budget.exhaustion import check_exhaustion
from remit.orchestrate.boundaries.boundary_shape import SHAPE, BoundaryKey
from remit.orchestrate.boundaries.boundary_values import JSON_SUFFIX, ValueReader, values_in

EXTENDS = "extends"
_SUFFIXES = (".yaml", ".yml", JSON_SUFFIX)
_NO_KEYS: Mapping[str, BoundaryKey] = MappingProxyType({})


def boundary_at(said: object) -> Boundary:
    """The boundary that is handed over, that has this name, or that stands in this file."""
    if isinstance(said, Boundary):
        return declared_boundary(said)
    if isinstance(said, Path) or (isinstance(said, str) and said not in KNOWN and _names_a_file(said)):
        return read_boundary(Path(said))
    if isinstance(said, dict):
        return boundary_of(said)
    return boundary_named(said if isinstance(said, str) else repr(said))


def read_boundary(path: Path) -> Boundary:
    """The boundary in a YAML or JSON file."""
    return _named(*values_in(path, BOUNDARY_INVALID, "boundary"))


def boundary_of(said: object) -> Boundary:
    """The boundary that a mapping describes, with the keys of a file."""
    return _named(ValueReader("boundary", {}, BOUNDARY_INVALID), said)


def boundary_from(said: object, *, base: Boundary, code: str, flat: Mapping[str, BoundaryKey] = _NO_KEYS) -> Boundary:
    """What a mapping says beyond a boundary; refused under another code, and with more keys at its head."""
    return _read_boundary(ValueReader("boundary", {}, code), said, base, flat)


def boundary_said(boundary: Boundary) -> JsonObject:
    """A boundary as its file says it: every key, those of caps that it leaves to the standard budget excepted.

    Where it has figures of a profile that no file may set, it extends that profile.
    """
    said: JsonObject = {}
    for name, entry in SHAPE.items():
        if isinstance(entry, BoundaryKey):
            said[name] = entry.say(getattr(boundary, entry.field))
        else:
            block = {key: one.say(getattr(boundary, one.field)) for key, one in entry.items()}
            said[name] = {key: value for key, value in block.items() if value is not None}
    found: JsonObject = read_json(to_json(said))
    if not uncharged_in(boundary.budget):
        return found
    name = found.pop("name")
    base = next((known for known in KNOWN if _is_said(boundary, name, found, known)), None)
    return {"name": name, **({} if base is None else {EXTENDS: base}), **found}


def _is_said(boundary: Boundary, name: str, said: JsonObject, base: str) -> bool:
    """Whether a file that extends this boundary of the house and says so much reads back as the boundary."""
    try:
        return boundary_from({"name": name, EXTENDS: base, **said}, base=STANDARD, code=BOUNDARY_INVALID) == boundary
    except RequestRejected:
        return False


def boundary_yaml(boundary: Boundary) -> str:
    """The text of a file that holds this boundary."""
    return write_yaml(boundary_said(boundary))


def _named(reader: ValueReader, said: object) -> Boundary:
    """A boundary that has a name of its own."""
    boundary = _read_boundary(reader, said, STANDARD, _NO_KEYS)
    if not isinstance(said, dict) or "name" not in said:
        raise reader.refusal((), "the boundary has no 'name'; name it, since every refusal will")
    if boundary.name in KNOWN and boundary != KNOWN[boundary.name]:
        problem = f"name={boundary.name!r} is that of a boundary of the house, and this one differs from it"
        raise reader.refusal(("name",), f"{problem}; give it another name, and say extends: {boundary.name}")
    return boundary


def _read_boundary(reader: ValueReader, said: object, base: Boundary, flat: Mapping[str, BoundaryKey]) -> Boundary:
    block = reader.block(said, (*SHAPE, EXTENDS, *flat), ())
    if EXTENDS in block:
        base = _extended(reader, block[EXTENDS])
    fields: dict[str, Any] = {}
    slots: dict[str, Place] = {}
    for place, key, value in _entries(reader, block, flat):
        slot = key.slot or key.field
        if slot in slots:
            problem = f"{spelled_place(place)} says again what {spelled_place(slots[slot])} says; keep one of them"
            raise reader.refusal(place, problem)
        slots[slot] = place
        fields[key.field] = key.read(reader, value, place, fields.get(key.field, getattr(base, key.field)))
    # A field counts in the version unless it holds the default itself, and what equals that says nothing more.
    settled = {
        name: default if value == (default := getattr(STANDARD, name)) else value for name, value in fields.items()
    }
    boundary = replace(base, **settled)
    for check, place in ((check_exhaustion, ("budget", "exhaustion")), (check_conditions, ("conditions",))):
        try:
            check(boundary)
        except RequestRejected as error:
            raise reader.refusal(place, error.message, {"cause": str(error.code)}) from None
    return boundary


def _entries(
    reader: ValueReader, block: JsonObject, flat: Mapping[str, BoundaryKey]
) -> list[tuple[Place, BoundaryKey, Any]]:
    """Every value of a file, with its place and its key."""
    found: list[tuple[Place, BoundaryKey, Any]] = []
    for name, value in block.items():
        if name == EXTENDS:
            continue
        entry = flat[name] if name in flat else SHAPE[name]
        if isinstance(entry, BoundaryKey):
            found.append(((name,), entry, value))
        else:
            said = reader.block(value, tuple(entry), (name,))
            found += [((name, key), entry[key], one) for key, one in said.items()]
    return found


def _extended(reader: ValueReader, value: object) -> Boundary:
    if isinstance(value, str) and value in KNOWN:
        return KNOWN[value]
    raise reader.unfit((EXTENDS,), value, f"one of {', '.join(KNOWN)}")


def _names_a_file(text: str) -> bool:
    """Whether a text is meant as a path: it looks like one, or there is such a file."""
    if text.lower().endswith(_SUFFIXES):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False  # A text that no file can be called by.
