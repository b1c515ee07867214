"""Windows: whether a look-up returned all that it could have. A page, an offset or a limit singles out nothing.

Rule 1: a limit cuts nothing where fewer records came back than it allows. A limit of the user's own is what they asked for.
Rule 2: where a listing begins is never told by a number that the words merely give: they call it so, "page 3". Any other
        number that the model chose singles out nothing either, for nothing vouches for it.
Rule 3: a listing that comes in pages is whole only where it is shorter than a page; without a limit that is not known.
"""

from collections.abc import Collection, Iterable

from remit.core.record import JsonObject
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import ANY, MOMENTS, base_of, number_key, number_of
from remit.provenance.origins.labels import Group
from remit.provenance.values.leaves import told_kind
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import name_words, stem, word_stems

# What says how long a listing may be. A bare number may say which page, which version or which ticket: it is no limit.
_LIMITS = frozenset(map(stem, ("limit", "n", "max", "maximum", "count", "size", "top", "per")))
_COUNTS = frozenset(map(stem, ("number", "num")))
# What says where a listing begins, whatever the rest of the name; "page size" and "per page" say how long it is.
_SAID = """
    page paging pagination pg p offset skip start cursor token after before bookmark continuation marker index idx batch chunk
"""
_PAGES = frozenset(map(stem, _SAID.split()))
_PAGE = frozenset(map(stem, ("page", "batch", "chunk")))
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
            name
            for name, one in properties.items()
            if name not in self.limits
            and base_of(told_kind(kinds.get(name, ANY), one)) not in MOMENTS
            and _is_page(name)
        )

    def is_limit(self, argument: Argument) -> bool:
        """Whether a value says how long the listing may be."""
        return argument.path in self.limits and type(argument.value) is int

    def is_guessed(self, argument: Argument, words: Words) -> bool:
        """Whether a value says where a listing begins and the words do not call it so, whatever numbers they hold."""
        if argument.path not in self.pages or argument.bound_by not in ("words", "earlier"):
            return False
        number = number_of(argument.value)
        return number is not None and words.called(number_key(number), argument.path) is None

    def bound(self, arguments: Iterable[Argument], said: Collection[str]) -> int:
        """How many records are too many for a whole listing; 0 for none. `said` are the arguments that the user gave."""
        if not (self.limits or self.pages):
            return 0
        given = {one.path: one.value for one in arguments}
        limits = [given.get(name, default) for name, default in self.limits.items() if name not in said]
        known = [limit for limit in limits if type(limit) is int]
        is_paged = bool(self.pages.difference(said))
        return max(min(known), NEVER_WHOLE) if known else NEVER_WHOLE if is_paged else 0


def is_whole(bound: int, groups: Iterable[Group]) -> bool:
    """Whether a listing is shorter than its bound, and has anything to be known by where none is known."""
    return not bound or max([len(group.records) for group in groups], default=0) < bound


def _is_limit(name: str, schema: object) -> bool:
    if not isinstance(schema, dict) or schema.get("type") not in ("integer", "number"):
        return False
    stems = word_stems(name)
    # A number of things is how many of them: "num_results"; "results_page" is one of several.
    is_counting = not _COUNTS.isdisjoint(stems) and any(word.endswith("s") for word in name_words(name))
    if _LIMITS.isdisjoint(stems) and not is_counting:
        return False
    return (_PAGES - _PAGE).isdisjoint(stems) and (is_counting or _PAGE.isdisjoint(stems) or not stems <= _PAGE)


def _is_page(name: str) -> bool:
    return not _PAGES.isdisjoint(word_stems(name)) or any(
        word.startswith("page") or word.endswith("page") for word in name_words(name)
    )


def _default(schema: JsonObject) -> object:
    return schema.get("default")
