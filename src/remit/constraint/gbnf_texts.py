"""Texts of a schema in GBNF: their lengths, patterns and formats.

Rule 1: a pattern, a format and a length that cannot be kept to together are kept to in this order.
"""

from collections.abc import Mapping
from types import MappingProxyType

from remit.constraint.gbnf_json import CHARACTER, QUOTE
from remit.constraint.gbnf_parts import Named, Part, sequence
from remit.constraint.gbnf_patterns import pattern_part
from remit.constraint.gbnf_rulebook import Rulebook
from remit.core.record import JsonObject

_DAY = r"0[1-9]|[12][0-9]"
_DATE = rf"[0-9]{{4}}-((0[13578]|1[02])-({_DAY}|3[01])|(0[469]|11)-({_DAY}|30)|02-({_DAY}))"
# A second may be a leap second, and has nine places behind the point at the most.
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "date": f"^{_DATE}$",
        "time": f"^{_TIME}$",
        "date-time": f"^{_DATE}[Tt]{_TIME}$",
        "uuid": "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
    }
)


def text_part(schema: JsonObject, path: str, book: Rulebook) -> Part:
    """The texts that fit a plain schema, with their quotes."""
    fewest = int(schema.get("minLength", 0))
    most = int(schema["maxLength"]) if "maxLength" in schema else None
    pattern, form = schema.get("pattern"), schema.get("format")
    known = FORMATS.get(form) if isinstance(form, str) else None
    if form is not None and (known is None or pattern is not None):
        book.widen(path, "format")
    wanted = pattern if pattern is not None else known
    found = None if wanted is None else pattern_part(wanted, fewest, most)
    if found is None:
        if pattern is not None:
            book.widen(path, "pattern")
        inner = book.times(Named(CHARACTER), fewest, most, path=path, keywords=("minLength", "maxLength"))
        return sequence(QUOTE, inner, QUOTE)
    part, is_long_enough = found
    if not is_long_enough:
        for keyword in ("minLength", "maxLength"):
            if keyword in schema:
                book.widen(path, keyword)
    return sequence(QUOTE, part, QUOTE)


def pattern_text(*patterns: str) -> Part | None:
    """The texts that match the first of some patterns, with their quotes; None where it says more than is read here."""
    found = pattern_part(patterns[0], 0, None)
    return None if found is None else sequence(QUOTE, found[0], QUOTE)
