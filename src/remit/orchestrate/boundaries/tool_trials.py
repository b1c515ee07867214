"""Trials: what the gate does to calls that were made up for a tool, so that a wrong declaration is seen before a run.

Rule 1: three requests a tool: one that orders the call in so many words, the same one with other values, and one that
        orders nothing. The first shall pass, the others shall not.
Rule 2: a call is judged by the gate itself, opened with the tool as it declares itself; nothing is called.
Rule 3: what names and types tell is offered as something to declare, and is never taken for declared.
"""

from collections.abc import Sequence

from remit.core.limits.authority import Authority
from remit.core.limits.boundary_views import ToolTrial
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject
from remit.orchestrate.boundaries.made_up_calls import NothingFits, arguments_of, guessed_kind
from remit.orchestrate.facts.gate_facts import declared
from remit.provenance.declarations import Declaration, declaration_of
from remit.provenance.gate import start
from remit.provenance.kinds import ANY, UNSAYING
from remit.provenance.values.leaves import Leaf, Leaves
from remit.provenance.words.vocabulary import name_words, stem

_TEXTS = frozenset({"body", "text", "message", "content", "subject", "comment", "note", "description", "reason"})
# Of the members of an enum, as many as fit a line.
_CHOICES_SHOWN_MAX = 6


# What a made-up call comes to that could not be made up.
UNTRIED = "not tried"
# What a value without a kind is matched as.
_UNKIND = {"boolean": "no kind: true or false", "object": "no kind: every key and value is matched by its characters"}


def trials_of(tool: ToolDefinition, authority: Authority, faults: Sequence[str] = ()) -> tuple[ToolTrial, ...]:
    """What becomes of three made-up calls of a tool that changes something; of any other, none.

    A tool with a declaration that cannot be so is not tried: what passes would say nothing of what was meant.
    """
    said = declared(tool)
    declaration = declaration_of(said)
    if not declaration.effect.is_mutating or tool.delegates:
        return ()
    if faults:
        return (ToolTrial("ordered", "", UNTRIED, reasons=(f"first mend its declaration: {faults[0]}",)),)
    try:
        ordered, other = (arguments_of(declaration, number) for number in (0, 1))
    except NothingFits as error:
        why = f"no value was made up for {error} that its schema takes; give the schema `examples`"
        return (ToolTrial("ordered", "", UNTRIED, reasons=(why,)),)
    request = _request(declaration, ordered)
    idle = f"Tell me about the {request.partition(' ')[2]}"
    cases = (("ordered", request, ordered), ("other values", request, other), ("not ordered", idle, ordered))
    # Where the schema has room for one call alone, there are no other values.
    return tuple(_tried(said, authority, *case) for case in cases if case[2] is not other or other != ordered)


def kinds_of(tool: ToolDefinition) -> tuple[str, ...]:
    """Every argument of a tool, nested ones included, with the kind that its values are of."""
    declaration = declaration_of(declared(tool))
    leaves = Leaves(declaration).of(arguments_of(declaration, 0, is_whole=True))
    kinds = {leaf.path.replace("[0]", "[]"): _said_kind(leaf) for leaf in leaves if _is_first(leaf)}
    return tuple(f"{path}: {kind}" for path, kind in kinds.items())


def patch_of(tool: ToolDefinition) -> str:
    """What names and types tell of the arguments and the tool does not declare, as it would be declared."""
    declaration = declaration_of(declared(tool))
    if not declaration.effect.is_mutating:
        return ""
    leaves = Leaves(declaration).of(arguments_of(declaration, 0, is_whole=True))
    open_ones = [leaf for leaf in leaves if _is_first(leaf) and _is_open(leaf, declaration)]
    texts = [leaf.path for leaf in open_ones if stem(_last_word(leaf)) in {stem(word) for word in _TEXTS}]
    kinds = {
        leaf.path.replace("[0]", "[]"): kind
        for leaf in open_ones
        if leaf.path not in texts and (kind := guessed_kind(leaf.argument, leaf.schema))
    }
    parts = [f"control_args={kinds}" if kinds else "", f"payload_args={texts}" if texts else ""]
    return ", ".join(part for part in parts if part)


def _tried(said: JsonObject, authority: Authority, name: str, request: str, arguments: JsonObject) -> ToolTrial:
    verdict = start(request, [said], authority).verdict_on("trial", str(said["name"]), arguments)
    return ToolTrial(name, request, verdict.decision.value, verdict.code.value if verdict.code else "", verdict.reasons)


def _is_open(leaf: Leaf, declaration: Declaration) -> bool:
    return leaf.kind == ANY and not leaf.is_payload and leaf.argument not in dict(declaration.control_args)


def _is_first(leaf: Leaf) -> bool:
    """Whether a value stands for all members of the lists that it is in."""
    return not any(step.partition("]")[0] not in ("0", "") for step in leaf.path.split("[")[1:])


def _said_kind(leaf: Leaf) -> str:
    if leaf.is_payload:
        return "payload"
    if leaf.kind:
        return leaf.kind
    choices = leaf.schema.get("enum")
    if isinstance(choices, (list, tuple)):
        more = ", …" if len(choices) > _CHOICES_SHOWN_MAX else ""
        return f"one of {', '.join(map(str, choices[:_CHOICES_SHOWN_MAX]))}{more}"
    return _UNKIND.get(str(leaf.schema.get("type")), "no kind: it is matched by its characters alone")


def _last_word(leaf: Leaf) -> str:
    return (name_words(leaf.argument) or ("",))[-1]


def _request(declaration: Declaration, arguments: JsonObject) -> str:
    """A request that orders the call: its verb and thing, then each value beside the noun of its argument."""
    verb, *thing = name_words(declaration.name) or ("do",)
    said, link = " ".join((verb, *thing)), ":"
    for leaf in Leaves(declaration).of(arguments):
        words = [word for word in name_words(leaf.argument) if stem(word) not in UNSAYING]
        value = f"'{leaf.value}'" if leaf.is_payload else leaf.value
        if leaf.value is None or isinstance(leaf.value, (bool, dict, list)):
            continue
        # "delete file alpha-101", and "move stock: shelf alpha-101".
        is_counted = isinstance(value, int) and words[-1:] and words[-1].endswith("s")
        called = (str(value), *words) if is_counted else (*words, str(value))  # "17 pieces"
        said += f" {value}" if words == thing and link == ":" else f"{link} {' '.join(called)}"
        link = " and"
    return f"{said[0].upper()}{said[1:]}."
