"""Binding: for each control value of a call, the one thing that vouches for it, or the objection.

Rule 1: sources are tried from the strongest down: a handle, the schema's own default, the user's words, a person's
        approval of the value, a trusted field of a picked record, a derived number, and the options of the boundary.
Rule 2: what the model says, and what stands in text, is no source.
Rule 3: the kind decides how a value is matched: numbers by size and unit, dates by day, everything else exactly.
Rule 4: a true or an enum value is bound when the words of this exchange name the switch or the choice.
Rule 5: words of earlier exchanges are tried after those of this one, and a verdict says so.
Rule 6: where money moves, a number of the words binds only as an amount, or under the argument's own name.
"""

from decimal import Decimal

from remit.core.limits.authority import Stakes, reaches
from remit.core.record import replace
from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument, Objection
from remit.provenance.kinds import (
    ANY,
    CODE,
    DATE,
    EMAIL,
    LABEL,
    MOMENTS,
    NUMBERS,
    TEXT,
    UNSAYING,
    base_of,
    is_target,
    looks_like,
    members_of,
    number_key,
    number_of,
    satisfies,
    shape_of,
    unit_of,
)
from remit.provenance.origins.labels import OriginPlace, index_key
from remit.provenance.values.grounds import Grounds
from remit.provenance.values.leaves import Leaf
from remit.provenance.words.atoms import NumberSaid
from remit.provenance.words.moments import is_said
from remit.provenance.words.money import SUMS_CALLED, in_hundredths, is_minor
from remit.provenance.words.user_words import Words, is_called_for
from remit.provenance.words.vocabulary import FUNCTION_WORDS, STATES, name_stems, name_words, stem, word_stems

# From this length on, a bare number of the words is no count and may be an identifier without being called one.
IDENTIFIER_DIGITS_MIN = 5
# How a number begins; with a plus it is that of a telephone.
_NUMERIC = frozenset("-0123456789")
# What an argument is called that takes a share, and one that takes an amount though it is written as a text.
_RATES = frozenset({"percent", "percentag", "rat"})
_FOLDERS = frozenset(map(stem, ("folder", "directory", "path")))
_FILES = frozenset({stem("file"), stem("document")})
# What an argument is called that takes how many there shall be.
_LIMITS = frozenset({"limit", "max", "count", "top"})
_FIRST = regex(r"\b(?:first|top)\s+(\d{1,6})\s+[a-z]+s\b")
# A name with an ending.
_FILE = regex(r"[^/\s]+\.\w+|[^/\s]*\d[^/\s]*")
_TIME = regex(r"\d{1,2}:\d{2}(:\d{2})?")


def bind(leaf: Leaf, grounds: Grounds, declaration: Declaration, handle: OriginPlace | None = None) -> Argument:
    """What vouches for one control value; an argument without `code` is bound."""
    kind = leaf.kind
    if not leaf.is_known:
        return _objection(leaf, kind, Objection.UNDECLARED, grounds)
    if handle is not None and _is_of(leaf, handle, grounds):
        return _by_origins(leaf, kind, [handle], grounds, declaration, "handle")
    if _is_left_alone(leaf):
        return Argument(leaf.path, leaf.value, "default", kind=kind)
    if isinstance(leaf.value, (dict, list, tuple)):
        return _objection(leaf, kind, Objection.PROVENANCE_UNBOUND, grounds)
    if len(members := members_of(leaf.value, kind)) > 1:
        return _by_members(leaf, kind, members, grounds, declaration)
    said = _by_words(leaf, kind, grounds, declaration)
    if said is not None and (said.code is None or said.code is Objection.KIND_MISMATCH):
        return said
    if grounds.approved and (declaration.name, kind, index_key(leaf.value)) in grounds.approved:
        return Argument(leaf.path, leaf.value, "approval", kind=kind)
    origins = grounds.index.origins_of(leaf.value)
    found = _by_origins(leaf, kind, origins, grounds, declaration, "field")
    if found.code is None:
        return found
    return _by_option(leaf, kind, grounds, declaration) or (found if found.origin else said) or found


def _by_words(leaf: Leaf, kind: str, grounds: Grounds, declaration: Declaration) -> Argument | None:
    """What the words of this exchange, and then earlier ones, say about a value; nothing when they say nothing."""
    if (other := _called_otherwise(leaf, kind, grounds, declaration.name)) is not None:
        return other
    if declaration.stakes is Stakes.MONEY and (number := _money(leaf, kind)) is not None:
        return _amount(leaf, kind, number, grounds, declaration.name)
    is_ordered = _is_ordered(grounds, declaration)
    if is_ordered and (span := _put_into(leaf, grounds, declaration.name)) is not None:
        return Argument(leaf.path, leaf.value, "words", span=span, kind=kind)
    if is_ordered and isinstance(leaf.value, (bool, str)) and (leaf.value is True or _is_choice(leaf)):
        return _chosen(leaf, kind, grounds, declaration.name)
    span, by = _said(leaf, kind, grounds.asking, grounds, declaration.name), "words"
    is_silent = declaration.effect.is_mutating and declaration.stakes is not Stakes.NONE
    if span is None and grounds.words is not grounds.asking and not isinstance(leaf.value, bool) and not is_silent:
        span, by = _said(leaf, kind, grounds.words, grounds, declaration.name), "earlier"
    if span is None or (
        declaration.effect.is_mutating
        and _is_plain_word(leaf, kind, grounds, declaration.name)
        and _above(leaf, kind, grounds, declaration.name) is None
    ):
        return None
    if by == "words" and is_ordered and not _is_of_order(leaf, kind, span, grounds, declaration.name):
        return None
    if _is_known_otherwise(leaf, kind, grounds, declaration):
        return _objection(leaf, kind, Objection.KIND_MISMATCH, grounds)
    return Argument(leaf.path, leaf.value, by, span=span, kind=kind)


def _is_ordered(grounds: Grounds, declaration: Declaration) -> bool:
    """Whether a tool changes something and the words order it: then their clause says what is numbered and chosen."""
    return declaration.effect.is_mutating and grounds.ordering.is_ordered(declaration.name)


def _is_plain_word(leaf: Leaf, kind: str, grounds: Grounds, tool: str) -> bool:
    """Whether a value is nothing but plain words of the user, which no noun of its argument calls a name."""
    value, words = leaf.value, grounds.words
    if not isinstance(value, str) or value in words.names or _is_choice(leaf):
        return False
    if not value.islower() or not value.replace(" ", "").isalpha():
        return False
    own = name_stems(leaf.argument) - UNSAYING
    nouns = own | (frozenset() if kind in (LABEL, TEXT) else name_stems(kind) - UNSAYING)
    # What an argument that is called by nothing names is the thing of the tool: "a repository called sandbox".
    return not words.is_called(value, nouns if own else nouns | grounds.tool_words.about[tool])


def _chosen(leaf: Leaf, kind: str, grounds: Grounds, tool: str) -> Argument | None:
    """A switch that the ordering clause turns on, or the only choice that it names."""
    if leaf.value is True:
        is_switch = leaf.schema.get("type") == "boolean" or base_of(kind) in ("bool", "boolean")
        stems = name_stems(leaf.argument)
        span = grounds.ordering.switch(tool, stems) if is_switch and stems else None
    else:
        span = grounds.ordering.choice(tool, leaf.value, leaf.schema["enum"], name_stems(leaf.argument) - UNSAYING)
    return None if span is None else Argument(leaf.path, leaf.value, "words", span=span, kind=kind)


def _put_into(leaf: Leaf, grounds: Grounds, tool: str) -> tuple[int, int] | None:
    """Where the words put a thing into the state that a switch or a choice is called by: on and off, open and shut."""
    if isinstance(leaf.value, bool):
        name = leaf.argument.removeprefix("is_")
        states = {name} if leaf.value else {state for state, opposite in STATES.items() if opposite == name}
    else:
        states = {leaf.value} if _is_choice(leaf) else set()
    return grounds.ordering.state(tool, states, STATES.keys()) if states and states <= STATES.keys() else None


def _is_of_order(leaf: Leaf, kind: str, span: tuple[int, int], grounds: Grounds, tool: str) -> bool:
    """Whether a number or a quotation stands where the effect is ordered; other values may stand anywhere.

    So may an identifier that the words call by the noun of its argument: "Order 42 arrived broken. Please refund it."
    """
    words = grounds.asking
    if base_of(kind) in NUMBERS or (kind == ANY and number_of(leaf.value) is not None):
        is_id = isinstance(leaf.value, str) or "id" in name_words(leaf.argument)
        nouns = name_stems(leaf.argument) if is_id else frozenset()
        fitting = _fitting(leaf, kind, words)
        if not fitting:  # It is called by the thing of the tool.
            return grounds.ordering.covers(tool, span[0])
        return any(
            bool(nouns & {*said.names, *said.mentions[-1:]}) or grounds.ordering.covers(tool, said.start)
            for said in fitting
        )
    is_quoted = words.own[span[0] : span[1]] != words.bare[span[0] : span[1]]
    return not is_quoted or grounds.ordering.covers_quotation(tool, span[0])


def _fitting(leaf: Leaf, kind: str, words: Words) -> list[NumberSaid]:
    number = number_of(leaf.value)
    uses = words.numbers.get(number_key(number), ()) if number is not None else ()
    return [said for said in uses if is_called_for(said, kind, leaf.argument)]


def _called_otherwise(leaf: Leaf, kind: str, grounds: Grounds, tool: str) -> Argument | None:
    """A number of an argument that is said in another unit, or that the words call for another number than this one."""
    is_open = base_of(kind) in NUMBERS or (kind == ANY and isinstance(leaf.value, (int, float)))
    number = number_of(leaf.value) if is_open else None
    if number is None:
        return None
    words, ordering = grounds.asking, grounds.ordering
    if is_minor(kind, leaf.argument):
        found = in_hundredths(number, words.amounts)
        if found is not None and (not ordering.is_ordered(tool) or ordering.covers(tool, found.start)):
            return Argument(leaf.path, leaf.value, "words", span=(found.start, found.end), kind=kind)
        is_other = number_key(number) in words.numbers and words.called(number_key(number), leaf.argument) is None
        return _not_this(leaf, kind, grounds) if is_other else None
    nouns = name_stems(leaf.argument) - UNSAYING
    named = frozenset[str]().union(*(grounds.numbered.get(noun, ()) for noun in nouns))
    is_other = bool(named) and number_key(number) not in named and number_key(number) in words.numbers
    return _not_this(leaf, kind, grounds) if is_other else None


def _not_this(leaf: Leaf, kind: str, grounds: Grounds) -> Argument:
    found = _objection(leaf, kind, Objection.PROVENANCE_UNBOUND, grounds)
    return replace(found, note="the words give this number for something else")


def _may_be(key: str, leaf: Leaf, kind: str, words: Words) -> bool:
    """Whether an amount of the words is not called what this argument is not; one in cents is called nothing."""
    return key not in words.numbers or bool(_fitting(leaf, kind, words))


def _money(leaf: Leaf, kind: str) -> Decimal | None:
    """The number that a value of a tool that moves money stands for, if it may be an amount."""
    value, base = leaf.value, base_of(kind)
    if isinstance(value, bool) or base == "percent" or name_stems(leaf.argument) & _RATES:
        return None
    if base in NUMBERS:
        return number_of(value)
    if kind != ANY:
        return None
    is_number = isinstance(value, (int, float)) and "id" not in name_words(leaf.argument)
    return number_of(value) if is_number or not SUMS_CALLED.isdisjoint(name_words(leaf.argument)) else None


def _amount(leaf: Leaf, kind: str, number: Decimal, grounds: Grounds, tool: str) -> Argument | None:
    """What the words say about an amount of money: that it is meant, that it may be, or that it is something else."""
    words, key = grounds.asking, number_key(number)
    if (span := words.called(key, leaf.argument)) is not None:
        return Argument(leaf.path, leaf.value, "words", span=span, kind=kind)
    unit = unit_of(kind)
    meant, ordering = grounds.amounts[tool], grounds.ordering
    if key in meant.spans and (words.has_unit(key, unit) if unit else _may_be(key, leaf, kind, words)):
        if not ordering.is_ordered(tool) or ordering.covers(tool, meant.spans[key][0]):
            return Argument(leaf.path, leaf.value, "words", span=meant.spans[key], kind=kind)
    elif key in meant.rivals:
        count = len(meant.rivals)
        found = _objection(leaf, kind, Objection.RECORD_AMBIGUOUS, grounds, count)
        return replace(found, note=f"one of {count} numbers that may be the amount")
    if key not in grounds.words.numbers:
        return None
    return _not_this(leaf, kind, grounds)


def _is_of(leaf: Leaf, handle: OriginPlace, grounds: Grounds) -> bool:
    """Whether a handle was put in for this very value; a key is never put in."""
    held = grounds.group_of(handle).records[handle.record].get(handle.field)
    return not leaf.is_key and type(leaf.value) is type(held) and leaf.value == held


def _is_known_otherwise(leaf: Leaf, kind: str, grounds: Grounds, declaration: Declaration) -> bool:
    """Whether results know a name of the words as another kind alone: a channel that is to be a user."""
    if not isinstance(leaf.value, str) or kind in (ANY, LABEL, TEXT):
        return False
    origins = grounds.index.origins_of(leaf.value)
    if not origins or not is_target(kind):
        return False
    known = [one.kind for one in origins if is_target(one.kind)]
    fits = (satisfies(kind, one, argument=leaf.argument, tool=declaration.name) for one in known)
    return bool(known) and not any(fits)


def _objection(leaf: Leaf, kind: str, code: Objection, grounds: Grounds, candidates: int = 0) -> Argument:
    scalar = leaf.value if isinstance(leaf.value, (str, int, float)) else ""
    seen = grounds.index.seen_in(scalar)
    also = () if seen is None else (seen,)
    return Argument(leaf.path, leaf.value, also_seen=also, candidates=candidates, code=code, kind=kind)


def _is_left_alone(leaf: Leaf) -> bool:
    """Whether the value says no more than leaving the argument out would."""
    value, default, const = leaf.value, leaf.schema.get("default"), leaf.schema.get("const")
    if default is not None and type(default) is type(value) and default == value:
        return True
    if const is not None and type(const) is type(value) and const == value:
        return True
    return not leaf.is_required and default is None and (value is None or value in ("", [], {}, ()))


def _by_members(leaf: Leaf, kind: str, members: list[str], grounds: Grounds, declaration: Declaration) -> Argument:
    found = Argument(leaf.path, leaf.value, kind=kind)
    for member in members:
        single = Leaf(leaf.path, leaf.argument, member, kind, leaf.schema)
        found = bind(single, grounds, declaration)
        if found.code is not None:
            return found
    return Argument(leaf.path, leaf.value, found.bound_by, found.span, found.origin, kind=kind)


def _said(leaf: Leaf, kind: str, words: Words, grounds: Grounds, tool: str) -> tuple[int, int] | None:
    """Where these words of the user give the value."""
    value = leaf.value
    if isinstance(value, bool) or value is None:
        return _switch_said(leaf, kind, words) if value is True else None
    base = base_of(kind)
    if base in NUMBERS or (isinstance(value, float) and kind == ANY):
        number = number_of(value)
        if isinstance(value, int) and (span := _numbered(value, leaf, words, tool)) is not None:
            return span
        if (
            isinstance(value, int)
            and name_stems(leaf.argument) & _LIMITS
            and (span := _limited(value, words)) is not None
        ):
            return span
        return None if number is None else words.number_said(number, kind, leaf.argument)
    if isinstance(value, str):
        return _text_said(leaf, kind, base, words, grounds, tool)
    return _integer_said(leaf, kind, words, tool) if isinstance(value, int) else None


def _numbered(value: int, leaf: Leaf, words: Words, tool: str) -> tuple[int, int] | None:
    """Where the words number the one thing of a tool, for an argument called by nothing else: "merge pull request 12"."""
    things = name_words(tool)[1:]
    if not things or not FUNCTION_WORDS.isdisjoint(things):
        return None
    called = name_stems(leaf.argument) - UNSAYING
    if not called <= {stem(things[-1])} or (things[-1].endswith("s") and not unit_of(leaf.kind)):
        return None  # "book seat 4" books not four of them.
    return words.identifier_said(str(value), {stem(things[-1])})


def _limited(value: int, words: Words) -> tuple[int, int] | None:
    """Where the words say how many of a listing are meant: "the first 20 rows"."""
    found = [one.span(1) for one in _FIRST.finditer(words.bare) if one[1] == str(value)]
    return found[0] if len(found) == 1 else None


def _text_said(leaf: Leaf, kind: str, base: str, words: Words, grounds: Grounds, tool: str) -> tuple[int, int] | None:
    value = leaf.value
    # What a choice is called by is said loosely, so only what is asked now chooses.
    if "enum" in leaf.schema and _is_choice(leaf) and (span := _choice_said(value, grounds.asking)) is not None:
        return span
    if base in MOMENTS or (
        kind in (ANY, TEXT) and value[:1].isdecimal() and (DATE.fullmatch(value) or _TIME.fullmatch(value))
    ):
        said = is_said(value, words.moments, today=grounds.today, years=grounds.years)
        return (words.moments.spans or ((0, 0),))[0] if said else words.span_of(value)
    if value.isdecimal():
        return _digits_said(value, leaf, kind, words, tool)
    number = number_of(value) if value[:1] in _NUMERIC else None
    if number is not None:
        return words.number_said(number, kind, leaf.argument) if kind == ANY else None
    if (shape := shape_of(kind)) is not None and not shape.fullmatch(value):
        return None
    is_open = kind in (ANY, LABEL, TEXT)
    if shape is None and not is_open and ("://" in value or ("@" in value and EMAIL.fullmatch(value))):
        return None  # An address is no id, and a link no channel.
    span = words.span_of(value) or _composed(leaf, base, words) or _above(leaf, kind, grounds, tool)
    if span is None or shape is not None or is_open or base == "path":
        return span
    hints = word_stems(tool) | word_stems(kind) | word_stems(leaf.argument)
    return span if words.is_name(value, hints) else None


def _composed(leaf: Leaf, base: str, words: Words) -> tuple[int, int] | None:
    """Where the words name the file of a path whose folder they name, too: "save a.txt in /docs", "in the folder docs".

    Both are spelled as the words spell them: a folder is none at the root unless they say so, and a text is no part of it.
    """
    folder, _, name = leaf.value.rpartition("/") if base in ("path", ANY) else ("", "", "")
    is_loaded = any("://" in link and link.endswith(f"/{name}") for link in words.references)
    if not folder or not (name in words.names or is_loaded):
        return None
    called = words.nouns_of(name) if name in words.names else frozenset[str]()
    is_file = bool(called & _FILES) or (_FILE.fullmatch(name) is not None and not called & _FOLDERS)
    spelled = next((one for one in (folder, f"{folder}/") if one in words.names), "")
    is_folder = words.is_called(folder, _FOLDERS) or (
        bool(spelled) and ("/" in spelled or bool(words.nouns_of(spelled) & _FOLDERS))
    )
    return words.strings[name if name in words.names else spelled or folder] if is_file and is_folder else None


def _above(leaf: Leaf, kind: str, grounds: Grounds, tool: str) -> tuple[int, int] | None:
    """Where the words name a path below this one, for a tool that prepares what they order: the folder of a download."""
    words = grounds.asking
    if base_of(kind) != "path" or tool not in grounds.tool_words.preparing or not isinstance(leaf.value, str):
        return None
    folder = f"{leaf.value.rstrip('/')}/"
    below = [name for name in words.names if len(folder) > 1 and name.startswith(folder) and "://" not in name]
    return words.strings[below[0]] if len(below) == 1 else None


def _switch_said(leaf: Leaf, kind: str, words: Words) -> tuple[int, int] | None:
    """A switch is turned on by the words that name it, all of them."""
    if leaf.schema.get("type") != "boolean" and base_of(kind) not in ("bool", "boolean"):
        return None
    stems = name_stems(leaf.argument)
    return _first_place(stems, words) if stems and stems <= words.stems else None


def _integer_said(leaf: Leaf, kind: str, words: Words, tool: str) -> tuple[int, int] | None:
    if kind == ANY and "id" not in name_words(leaf.argument):
        number = number_of(leaf.value)
        return None if number is None else words.number_said(number, kind, leaf.argument)
    return _digits_said(str(leaf.value), leaf, kind, words, tool)


def _digits_said(digits: str, leaf: Leaf, kind: str, words: Words, tool: str) -> tuple[int, int] | None:
    """A number as an identifier: written as an account number, called one, or too long to be a count."""
    if (span := words.strings.get(digits)) is not None or digits not in words.numbers:
        return span
    # The verb of a tool is no hint: "delete 13 files" names no file. Its things are, where the argument names none.
    hints = (name_stems(kind.partition(":")[2]) | name_stems(leaf.argument)) - UNSAYING
    hints = hints or frozenset(stem(word) for word in name_words(tool)[1:])
    # "pull request 12" is a `pr`.
    things = name_words(tool)[1:]
    if things and kind.partition(":")[2] == "".join(word[0] for word in things):
        hints |= {stem(things[-1])}
    if (span := words.identifier_said(digits, hints)) is not None:
        return span
    bare = [said for said in words.numbers.get(digits, ()) if not said.names and not said.percent]
    return (bare[0].start, bare[0].end) if bare and len(digits) >= IDENTIFIER_DIGITS_MIN else None


def _is_choice(leaf: Leaf) -> bool:
    choices = leaf.schema.get("enum")
    return isinstance(choices, (list, tuple)) and leaf.value in choices


def _choice_said(value: str, words: Words) -> tuple[int, int] | None:
    """The schema's own choices are trusted spellings, so their words are matched in any case and form."""
    if FUNCTION_WORDS.intersection(name_words(value)):
        return None
    stems = word_stems(value)
    return _first_place(stems, words) if stems and stems <= words.stems else None


def _first_place(stems: frozenset[str], words: Words) -> tuple[int, int] | None:
    first = words.first
    return min((first[one] for one in stems if one in first), default=None)


def _by_origins(
    leaf: Leaf, kind: str, origins: list[OriginPlace], grounds: Grounds, declaration: Declaration, by: str
) -> Argument:
    """A trusted field, if its kind is right and its record was picked; the objection says which of the two fails."""
    tool, fitting = declaration.name, None
    # A value that many records have is mostly of the same kind in all of them.
    fits: dict[str, bool] = {}
    for origin in origins:
        if (is_fit := fits.get(origin.kind)) is None:
            is_fit = fits[origin.kind] = satisfies(kind, origin.kind, argument=leaf.argument, tool=tool)
        if not is_fit:
            continue
        fitting = fitting or origin
        pick = grounds.picked(origin, leaf.value, leaf.argument, tool)
        if pick is not None:
            seen = grounds.index.seen_in(leaf.value)
            also = () if seen is None else (seen,)
            return Argument(leaf.path, leaf.value, f"{by}:{pick.reason}", origin=origin, also_seen=also, kind=kind)
    if fitting is not None:
        candidates, code = len(grounds.group_of(fitting).records), Objection.RECORD_AMBIGUOUS
        return Argument(leaf.path, leaf.value, origin=fitting, candidates=candidates, code=code, kind=kind)
    return _objection(leaf, kind, Objection.KIND_MISMATCH if origins else Objection.PROVENANCE_UNBOUND, grounds)


def _by_option(leaf: Leaf, kind: str, grounds: Grounds, declaration: Declaration) -> Argument | None:
    """A derived number, the only one-time code that was read, or the only reference in a source that the user named."""
    authority, value = grounds.authority, leaf.value
    is_amount = base_of(kind) in NUMBERS or (kind == ANY and isinstance(value, (int, float)))
    number = number_of(value) if is_amount else None
    if number is not None and not is_minor(kind, leaf.argument) and reaches(authority.derive, declaration.stakes):
        operation = grounds.figures.operation_for(number)
        if operation:
            return Argument(leaf.path, value, f"derived:{operation}", kind=kind)
    if kind == CODE and grounds.codes == {str(value): True} and name_stems(leaf.argument) & grounds.asking.stems:
        return Argument(leaf.path, value, "only_code", kind=kind)
    is_sole = isinstance(value, str) and value in grounds.sole and shape_of(kind) is not None
    if is_sole and looks_like(kind, value) and reaches(authority.named_source, declaration.stakes):
        return Argument(leaf.path, value, "named_source", kind=kind)
    return None
