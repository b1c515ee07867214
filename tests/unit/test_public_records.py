"""Whatever a field of a public record holds, and whatever a verb gives, comes from `remit` itself, like the record."""

import dataclasses
import enum
import inspect
import sys
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

import remit
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.people.grants import Grants
from remit.orchestrate.people.queues import Queues
from remit.orchestrate.tenants.tenancy import TenantStandings

# What runs are kept in speaks to the drivers of runs; an author of a store reads docs/store.md.
STORES = ("EmbeddedStore", "FoldedStore", "MemoryStore", "MemoryJournal", "MemoryBlobs")
# What a system has at hand, under names of its own.
AT_HAND = (Archive, Grants, Queues, TenantStandings)
# The state of a run is the kernel's: listeners are shown it, and its parts are read and never named.
OF_THE_KERNEL = "remit.kernel."
# What only drivers of runs ask of what callers hold.
FOR_DRIVERS = {("Grants", "approve"), ("Subscription", "offer"), ("Subscription", "hears")}


def named_in(annotation: Any) -> Iterator[type]:
    """The types in an annotation, however deep."""
    if not typing.get_args(annotation):
        yield annotation
    for part in typing.get_args(annotation):
        for one in part if isinstance(part, list | tuple) else (part,):
            yield from named_in(one)


def hints(value: Any) -> dict[str, Any]:
    """What is annotated, with the names that only type checkers import taken as public ones."""
    known = {name: getattr(remit, name) for name in dir(remit)}
    found = {}
    for name, annotation in inspect.get_annotations(value).items():
        try:
            space = {**known, **vars(sys.modules[value.__module__])}
            found[name] = eval(annotation, space) if isinstance(annotation, str) else annotation
        except NameError:
            continue  # It is of a vendor, or of a room that no caller sees.
    return found


def is_record(value: object) -> bool:
    return isinstance(value, type) and (
        issubclass(value, msgspec.Struct | enum.Enum) or dataclasses.is_dataclass(value) or hasattr(value, "_fields")
    )


def fields_of(record: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in reversed(record.__mro__):
        if kind.__module__.startswith("remit."):
            found |= {name: one for name, one in hints(kind).items() if not name.startswith("_")}
    return found


def given_by(kind: type) -> Iterator[tuple[str, Any]]:
    """What the public verbs of a class give and take."""
    for name, member in inspect.getmembers_static(kind):
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        is_own = inspect.isfunction(function) and function.__module__.startswith("remit.")
        if is_own and not name.startswith("_") and (kind.__name__, name) not in FOR_DRIVERS:
            for annotation in hints(function).values():
                yield f"{kind.__name__}.{name}", annotation


def test_every_type_that_a_public_record_or_verb_names_is_public_too() -> None:
    public = {name: getattr(remit, name) for name in dir(remit)}
    known = {id(value) for value in public.values()}
    lacking: dict[str, str] = {}
    for name, value in [*public.items(), *((kind.__name__, kind) for kind in AT_HAND)]:
        places: list[tuple[str, Any]] = []
        if is_record(value) and not value.__module__.startswith(OF_THE_KERNEL):
            places += [(f"{name}.{field}", one) for field, one in fields_of(value).items()]
        if isinstance(value, type) and value.__module__.startswith("remit.") and name not in STORES:
            places += given_by(value)
        elif inspect.isfunction(value):
            places += [(name, one) for one in hints(value).values()]
        for place, annotation in places:
            for one in named_in(annotation):
                is_ours = getattr(one, "__module__", "").startswith("remit.")
                if is_ours and is_record(one) and id(one) not in known:
                    lacking[f"{one.__module__}.{one.__name__}"] = place
    assert lacking == {}


def test_the_law_sees_what_fields_name() -> None:
    class Part(remit.TokenUsage):
        """A record that is not offered."""

    assert [*named_in(tuple[dict[str, Part | None], ...])] == [str, Part, type(None), ...]
    assert fields_of(remit.Goal)["criteria"] == tuple[remit.Criterion, ...]
