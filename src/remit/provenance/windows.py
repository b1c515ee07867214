"""Windows: whether a look-up returned all that it could have. A page, an offset or a limit singles out nothing.

Rule 1: a limit cuts nothing where fewer records came back than it allows. A limit of the user's own is what they asked for.
Rule 2: a listing that comes in pages is whole only where it is shorter than a page; without a limit that is not known.
"""

from collections.abc import Collection, Iterable

from remit.core.record import JsonObject
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.labels import Group
from remit.provenance.vocabulary import name_words

_LIMITS = frozenset({"limit", "n", "max", "count", "size", "top", "num", "number", "per"})
_PAGES = frozenset({"page", "offset", "skip", "start", "cursor", "token", "after", "before"})
# No listing is known to be as short as this.
NEVER_WHOLE = 1


class Window:
    """The arguments of one tool that say where a listing begins and how long it is. Made once per tool."""

    def __init__(self, declaration: Declaration) -> None:
        """Find them by their names and types."""
        found = declaration.parameters.get("properties")
        properties: JsonObject = found if isinstance(found, dict) else {}
        kinds = dict(declaration.control_args)
        self.limits = {
            name: _default(one) for name, one in properties.items() if name not in kinds and _is_limit(name, one)
        }
        self.pages = frozenset(
            name for name in properties if name not in self.limits and not _PAGES.isdisjoint(name_words(name))
        )

    def is_limit(self, argument: Argument) -> bool:
        """Whether a value says how long the listing may be."""
        return argument.path in self.limits and type(argument.value) is int

    def bound(self, arguments: Iterable[Argument], said: Collection[str]) -> int:
        """How many records are too many for a whole listing; 0 for none. `said` are the arguments that the user gave."""
        given = {one.path: one.value for one in arguments}
        limits = [given.get(name, default) for name, default in self.limits.items() if name not in said]
        known = [limit for limit in limits if type(limit) is int]
        is_paged = bool(self.pages.difference(said))
        return max(min(known), NEVER_WHOLE) if known else NEVER_WHOLE if is_paged else 0


def is_whole(bound: int, groups: Iterable[Group]) -> bool:
    """Whether a listing is shorter than its bound, and has anything to be known by where none is known."""
    return not bound or max([len(group.records) for group in groups], default=0) < bound


def _is_limit(name: str, schema: object) -> bool:
    is_integer = isinstance(schema, dict) and schema.get("type") in ("integer", "number")
    return (
        is_integer and not _LIMITS.isdisjoint(name_words(name)) and _PAGES.isdisjoint(set(name_words(name)) - {"page"})
    )


def _default(schema: JsonObject) -> object:
    return schema.get("default")
