"""The queues of a store from its file: their names, their limits, who answers them and where their items may be delivered.

Rule 1: a key that nobody knows is refused with the nearest one that is known, never skipped.
Rule 2: without a file no queue has a limit.
"""

from pathlib import Path

from remit.core.failure import RequestRejected
from remit.core.limits.queue import QueueLimits, check_limits
from remit.core.regular_file import open_regular
from remit.core.schema.strict_yaml import Document, Place, YamlFault, block_in, list_in, read_yaml, shown, spelled

_FILE_KEYS = ("queues",)
_KINDS = {"name": str, "load_max": int, "age_ms_max": int, "webhook": str}
_PEOPLE = "answered_by"


def read_queues(path: Path) -> tuple[QueueLimits, ...]:
    """The queues that a file names; raises RequestRejected where it cannot be meant."""
    document = read_yaml(path, open_regular)
    block = block_in(document, document.value, _FILE_KEYS, ())
    listed = list_in(document, block.get("queues", []), ("queues",))
    limits = [_queue(document, value, ("queues", position)) for position, value in enumerate(listed)]
    try:
        return check_limits(limits)
    except RequestRejected as error:
        raise RequestRejected(error.code, f"{path}: {error.message}", error.details) from None


def _queue(document: Document, value: object, place: Place) -> QueueLimits:
    said = block_in(document, value, (*_KINDS, _PEOPLE), place)
    if "name" not in said:
        document.reject(YamlFault.VALUE_INVALID, f"{spelled(place)} has no name; give it one", place)
    for key, kind in _KINDS.items():
        if key in said and type(said[key]) is not kind:
            wanted = "a whole number" if kind is int else "a text"
            message = f"{spelled((*place, key))} must be {wanted}, not {shown(said[key])}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, key))
    people = list_in(document, said.get(_PEOPLE, []), (*place, _PEOPLE))
    for number, name in enumerate(people):
        if type(name) is not str:
            at = (*place, _PEOPLE, number)
            document.reject(YamlFault.VALUE_INVALID, f"{spelled(at)} must be a name, not {shown(name)}", at)
    return QueueLimits(**{**said, _PEOPLE: tuple(people)})
