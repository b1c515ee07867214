"""Rule sets from YAML files, in the shape docs/validation.md describes.

Rule 1: a file and Python build equal rule sets, with equal versions; the file is only the friendlier spelling.
Rule 2: an unknown name, of a check or of a key, is refused with the nearest one that is known.
Rule 3: an error names the file, the line, the value found and what would be right.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.schema.strict_yaml import (
    ValuePath,
    YamlDocument,
    YamlFault,
    block_in,
    list_in,
    parse_yaml,
    read_yaml,
    spelled_place,
)
from remit.validate.breach import shown_in_message
from remit.validate.check import Rules, compile_rules
from remit.validate.rule_set import CHECKS, RetryPolicy, Rule, RuleSet, SemanticCheck, Severity

_SET_KEYS = ("name", "rules", "semantic", "retry")
_RULE_KEYS = ("name", "check", "at", "severity", "optional")
_SEMANTIC_KEYS = ("name", "question", "severity")
_RETRY_KEYS = ("reasks_max", "final_rules")


def load_rules(path: Path | str) -> Rules:
    """The compiled rule set in a file."""
    return _rules(read_yaml(Path(path)))


def parse_rules(text: str, source_name: str) -> Rules:
    """The compiled rule set in a text; the name stands for it in errors."""
    return _rules(parse_yaml(text, source_name))


def _rules(document: YamlDocument) -> Rules:
    block = block_in(document, document.value, _SET_KEYS, ())
    rules = list_in(document, block.get("rules", []), ("rules",))
    questions = list_in(document, block.get("semantic", []), ("semantic",))
    rule_set = RuleSet(
        name=_value(document, block, "name", ()),
        rules=tuple(_rule(document, rule, ("rules", at)) for at, rule in enumerate(rules)),
        semantic=tuple(_question(document, check, ("semantic", at)) for at, check in enumerate(questions)),
        retry=_retry(document, block.get("retry", {})),
    )
    try:
        return compile_rules(rule_set)
    except RequestRejected as error:
        place = _place_of(rule_set, error.details.get("rule"))
        line = document.lines.get(place, 1)
        message = f"{document.source_name}:{line}: {error.message}"
        raise RequestRejected(error.code, message, {"source": document.source_name, "line": line}) from None


def _place_of(rule_set: RuleSet, name: object) -> ValuePath:
    names = [rule.name for rule in rule_set.rules]
    return ("rules", names.index(name)) if isinstance(name, str) and name in names else ()


def _rule(document: YamlDocument, value: Any, place: ValuePath) -> Rule:
    named = value.get("check") if isinstance(value, dict) else None
    if isinstance(value, dict) and not (isinstance(named, str) and named in CHECKS):
        near = get_close_matches(str(named), CHECKS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(CHECKS)}"
        document.reject(
            YamlFault.VALUE_INVALID,
            f"{spelled_place(place)} has the unknown check {shown_in_message(named)}; {hint}",
            place,
        )
    limits = CHECKS[str(named)].__struct_fields__ if isinstance(value, dict) else ()
    block = block_in(document, value, (*_RULE_KEYS, *limits), place)
    check_type = CHECKS[str(block.pop("check"))]
    needed = check_type.__struct_fields__[: len(check_type.__struct_fields__) - len(check_type.__struct_defaults__)]
    read = {key: _value(document, block, key, place) for key in limits if key in block or key in needed}
    rest = {key: _value(document, block, key, place) for key in block if key not in limits and key != "name"}
    return Rule(_value(document, block, "name", place), check_type(**read), **rest)


def _question(document: YamlDocument, value: Any, place: ValuePath) -> SemanticCheck:
    block = block_in(document, value, _SEMANTIC_KEYS, place)
    keys = dict.fromkeys(("name", "question", *block))
    return SemanticCheck(**{key: _value(document, block, key, place) for key in keys})


def _retry(document: YamlDocument, value: Any) -> RetryPolicy:
    place: ValuePath = ("retry",)
    block = block_in(document, value, _RETRY_KEYS, place)
    return RetryPolicy(**{key: _value(document, block, key, place) for key in block})


def _value(document: YamlDocument, block: Mapping[str, Any], key: str, place: ValuePath) -> Any:
    """One value of a block, as the type its key asks for."""
    if key not in block:
        document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)} has no {key!r}; add it", place)
    kind, wanted = _READERS[key]
    found = kind(block[key])
    if found is None:
        message = f"{spelled_place((*place, key))} must be {wanted}, not {shown_in_message(block[key])}"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, key))
    return found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _severity(value: Any) -> Severity | None:
    return Severity(value) if value in list(Severity) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else None


def _scalars(value: Any) -> tuple[Any, ...] | None:
    plain = isinstance(value, list) and all(isinstance(entry, str | int | float) for entry in value)
    return tuple(value) if plain else None


# How the value of each key is read, and what it must be.
_READERS: Mapping[str, tuple[Callable[[Any], Any], str]] = MappingProxyType(
    {
        "name": (_text, "a text"),
        "at": (_text, "a JSON pointer such as /items/*/price"),
        "question": (_text, "a text"),
        "pattern": (_text, "a regular expression in quotes"),
        "severity": (_severity, f"one of {', '.join(Severity)}"),
        "optional": (_truth, "true or false"),
        "chars_min": (_integer, "a whole number"),
        "chars_max": (_integer, "a whole number"),
        "citations_min": (_integer, "a whole number"),
        "reasks_max": (_integer, "a whole number"),
        "least": (_number, "a number"),
        "most": (_number, "a number"),
        "words": (_texts, "a list of texts"),
        "fields": (_texts, "a list of texts"),
        "final_rules": (_texts, "a list of texts"),
        "values": (_scalars, "a list of texts, numbers or truth values"),
    }
)
