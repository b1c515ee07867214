"""Trials: what the gate does to calls that were made up for a tool, so that a wrong declaration is seen before a run.

Rule 1: three requests a tool: one that orders the call in so many words, the same one with other values, and one that
        orders nothing. The first shall pass, the others shall not.
Rule 2: a call is judged by the gate itself, opened with the tool as it declares itself; nothing is called.
Rule 3: what names and types tell is offered as something to declare, and is never taken for declared.
"""

from typing import Any

from remit.core.limits.authority import Authority
from remit.core.limits.boundary_views import ToolTrial
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject
from remit.orchestrate.facts.gate_facts import declared
from remit.provenance.declarations import Declaration, declaration_of
from remit.provenance.gate import start
from remit.provenance.kinds import ANY, MOMENTS, NUMBERS, UNSAYING
from remit.provenance.leaves import Leaf, Leaves
from remit.provenance.vocabulary import name_words, stem

# Two values of each kind: the one that the request names, and another.
_SAMPLES: dict[str, tuple[object, object]] = {
    "email": ("ann@corp.example", "eve@other.example"),
    "url": ("https://a.example/1", "https://b.example/2"),
    "path": ("docs/a-101.txt", "docs/b-202.txt"),
    "iban": ("DE89370400440532013000", "DE02500105170137075030"),
    "date": ("2030-01-15", "2030-02-20"),
    "number": (17, 23),
}
_TEXT = "All is well here."
_TEXTS = frozenset({"body", "text", "message", "content", "subject", "comment", "note", "description", "reason"})
_DEPTH_MAX = 6


def trials_of(tool: ToolDefinition, authority: Authority) -> tuple[ToolTrial, ...]:
    """What becomes of three made-up calls of a tool that changes something; of any other, none."""
    said = declared(tool)
    declaration = declaration_of(said)
    if not declaration.effect.is_mutating or tool.delegates:
        return ()
    ordered, other = (_arguments(declaration, number) for number in (0, 1))
    request = _request(declaration, ordered)
    idle = f"Tell me about the {request.partition(' ')[2]}"
    cases = (("ordered", request, ordered), ("other values", request, other), ("not ordered", idle, ordered))
    return tuple(_tried(said, authority, *case) for case in cases)


def kinds_of(tool: ToolDefinition) -> tuple[str, ...]:
    """Every argument of a tool, nested ones included, with the kind that its values are of."""
    declaration = declaration_of(declared(tool))
    leaves = Leaves(declaration).of(_arguments(declaration, 0))
    return tuple(f"{leaf.path.replace('[0]', '[]')}: {_said_kind(leaf)}" for leaf in leaves)


def patch_of(tool: ToolDefinition) -> str:
    """What names and types tell of the arguments and the tool does not declare, as it would be declared."""
    declaration = declaration_of(declared(tool))
    if not declaration.effect.is_mutating:
        return ""
    open_ones = [leaf for leaf in Leaves(declaration).of(_arguments(declaration, 0)) if _is_open(leaf, declaration)]
    texts = [leaf.path for leaf in open_ones if stem(_last_word(leaf)) in {stem(word) for word in _TEXTS}]
    kinds = {
        leaf.path.replace("[0]", "[]"): kind for leaf in open_ones if leaf.path not in texts and (kind := _guess(leaf))
    }
    parts = [f"control_args={kinds}" if kinds else "", f"payload_args={texts}" if texts else ""]
    return ", ".join(part for part in parts if part)


def _tried(said: JsonObject, authority: Authority, name: str, request: str, arguments: JsonObject) -> ToolTrial:
    verdict = start(request, [said], authority).verdict_on("trial", str(said["name"]), arguments)
    return ToolTrial(name, request, verdict.decision.value, verdict.code.value if verdict.code else "", verdict.reasons)


def _is_open(leaf: Leaf, declaration: Declaration) -> bool:
    return leaf.kind == ANY and not leaf.is_payload and leaf.argument not in dict(declaration.control_args)


def _said_kind(leaf: Leaf) -> str:
    return "payload" if leaf.is_payload else leaf.kind or "no kind: it is matched by its characters alone"


def _last_word(leaf: Leaf) -> str:
    return (name_words(leaf.argument) or ("",))[-1]


def _guess(leaf: Leaf) -> str:
    """The kind that the name and the type of an argument tell."""
    words = name_words(leaf.argument)
    if words[-1:] in (("id",), ("ids",)) and len(words) > 1:
        return f"id:{words[-2]}"
    for word in words:
        if word.removesuffix("s") in ("email", "url", "iban", "path", "date"):
            return word.removesuffix("s")
    return "number" if leaf.schema.get("type") in ("number", "integer") else ""


def _arguments(declaration: Declaration, number: int) -> JsonObject:
    """Made-up arguments: all that a call must have, and those that a kind is declared for."""
    found = declaration.parameters.get("properties")
    properties: JsonObject = found if isinstance(found, dict) else {}
    required, kinds = declaration.parameters.get("required") or (), dict(declaration.control_args)
    wanted = [name for name in properties if name in required or name in kinds or name in declaration.payload_args]
    return {name: _value(properties[name], name, kinds, declaration, number, 0) for name in wanted}


def _value(schema: Any, path: str, kinds: JsonObject, declaration: Declaration, number: int, depth: int) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    if depth < _DEPTH_MAX and schema.get("type") == "array":
        return [_value(schema.get("items"), f"{path}[]", kinds, declaration, number, depth + 1)]
    inner = schema.get("properties")
    if depth < _DEPTH_MAX and isinstance(inner, dict):
        return {key: _value(one, f"{path}.{key}", kinds, declaration, number, depth + 1) for key, one in inner.items()}
    if path in declaration.payload_args:
        return _TEXT
    choices = schema.get("enum")
    if isinstance(choices, (list, tuple)) and choices:
        return choices[number % len(choices)]
    if schema.get("type") == "boolean":
        return False
    return _sample(str(kinds.get(path, kinds.get(path.removesuffix("[]"), ""))), path, schema)[number]


def _sample(kind: str, path: str, schema: JsonObject) -> tuple[object, object]:
    base, _, space = kind.partition(":")
    shape = space if base == "who" else base or _guess(Leaf(path, path.rpartition(".")[2], "", schema=schema))
    if shape in NUMBERS or schema.get("type") in ("number", "integer"):
        return _SAMPLES["number"]
    if shape in MOMENTS:
        return _SAMPLES["date"]
    return _SAMPLES.get(shape, ("alpha-101", "omega-202"))


def _request(declaration: Declaration, arguments: JsonObject) -> str:
    """A request that orders the call: its verb and thing, then each value beside the noun of its argument."""
    verb, *thing = name_words(declaration.name) or ("do",)
    said, link = " ".join((verb, *thing)), " with"
    for leaf in Leaves(declaration).of(arguments):
        words = [word for word in name_words(leaf.argument) if stem(word) not in UNSAYING]
        value = f"'{leaf.value}'" if leaf.is_payload else leaf.value
        if isinstance(leaf.value, bool):
            continue
        # "delete file alpha-101", and "move stock with shelf alpha-101".
        said += f" {value}" if words == thing and link == " with" else f"{link} {' '.join((*words, str(value)))}"
        link = ","
    return f"{said[0].upper()}{said[1:]}."
