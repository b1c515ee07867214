"""The reference of the public names: the signature of each and what its docstring says first, read from the code."""

import ast
import enum
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import remit
from remit.run_records import HOMES as RECORDS
from scripts.event_docs import class_body
from scripts.markdown import code, fenced, paragraph, table

# Names by what a reader wants to do with them; those that stand in no group come last.
GROUPS = {
    "Agents: one class for each way of arranging work": """AgentLoop SpecializedLoop RedundantLoop RedundantResult Redundancy PlanExecutor
        PlanResult delegate""",
    "The system: starting, following and answering runs": """open Door System Run Settings settings_of system_on system_in_memory Kit
        kit_of Terms Listener Subscription Subject RunEvent EventKind Signal UserSignal SignalOutcome BlobRef""",
    "What goes in and comes out": """SystemRequest SystemResponse Mode ExecutionHints OutputContract Message Role system_message
        user_message ToolChoice ToolChoiceMode TokenUsage ValidationResult ConfidenceSource Ending ErrorCode Refusal""",
    "Errors": "RemitError RequestRejected IllegalArrival",
    "Tools": """tool Registry load_tools builtin http_get_tool AllowedHost Reach ToolDefinition ToolCall ToolResult ToolCategory Effect NotDone Happened
        Reconciled ToolFault Stop CancelToken Attempt perform FilterContext Secret Vault""",
    "Limits: boundaries, budgets, goals, quotas, people": """Boundary BoundaryMode boundary_at boundary_of Budget Rate Whose Goal Order Quota Period
        QueueLimits Principal Scope Policies AgentRole""",
    "Engines": """Engine EngineFault ModelInfo ModelRequest ModelResult FinishReason Price FREE Routing StreamChunk StreamHandler Restarted
        ScriptedEngine""",
    "Plans": """ExecutionPlan PlanPolicy Step InferHandler RerankHandler RetrieveHandler ToolHandler ValidateHandler""",
    "Graphs": "Graph Node NodeKind Edge EXITS TERMINALS chat_graph",
    "Evidence": "ContextBuilder context_confidence Document DocumentIndex Candidate RerankCandidate rerank",
    "Shapes and rules of answers": """Demand constrain schema_of code_of check_grammar StrictMode RuleSet load_rules parse_rules Rule Severity Length MustMention NoSecrets NumberRange
        SemanticCheck RetryPolicy compile_rules result_of confidence_of ask_of verdict_of""",
    "Guarding agents of others": "Guard GuardInMemory",
    "Reading and proving what happened": """Event EventLog InMemoryEventLog ContextEvent CodeEvent Fact FactKind Reading Manifest make_manifest Turn
        ToolCallRefused Signer verify_run export_lines verify_export run_cost CostBook CostReport Grouping Prices parse_prices EmbeddedStore FoldedStore
        LogEntry START MemoryStore MemoryJournal MemoryBlobs""",
}
# The many records that the fields of other public names hold, and that verbs give, by the rooms that define them.
RECORD_GROUPS = {
    "The parts of what callers make": (
        "remit.core.limits",
        "remit.core.work",
        "remit.core.run",
        "remit.core.record",
        "remit.validate",
    ),
    "What turns hold": ("remit.core.journal", "remit.core.failure", "remit.core.schema", "remit.kernel"),
    "What verbs give": ("remit.observe", "remit.orchestrate", "remit.constraint", "remit.tool", "remit.inference"),
}
SIGNATURE_CHARS_MAX = 100


def api() -> Iterator[str]:
    """The whole document."""
    yield "# The public names"
    yield paragraph(
        "Everything that a program imports from `remit`, with its signature and the first words of its docstring. The other "
        "pages say how these are used; `remit.testing` is in [testing.md](testing.md). `remit.__version__` is the version."
    )
    for title, names in grouped():
        yield f"## {title}"
        for name in names:
            yield from described(name, getattr(remit, name))


def grouped() -> Iterator[tuple[str, list[str]]]:
    """Every public name once, under the title of its group."""
    # `open` is public, and left out of __all__ so that no star import hides the builtin.
    left = [name for name in dir(remit) if name != "__version__"]
    for title, group in GROUPS.items():
        names = [name for name in group.split() if name in left]
        left = [name for name in left if name not in names]
        yield title, names
    of_records = [name for name in left if name in RECORDS]
    for title, homes in RECORD_GROUPS.items():
        yield title, [name for name in of_records if RECORDS[name].startswith(homes)]
    if left := [name for name in left if name not in of_records]:
        yield "Others", left


def described(name: str, value: Any) -> Iterator[str]:
    """One name."""
    yield f"### {name}"
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        yield first_of(value)
        yield ", ".join(code(member.value) for member in value)
    elif inspect.isclass(value):
        yield fenced("text", f"class {signature(name, value)}")
        yield first_of(value)
        yield from methods(value)
    elif inspect.isroutine(value):
        yield fenced("text", f"{'async ' * inspect.iscoroutinefunction(value)}def {signature(name, value)}")
        yield first_of(value)
    else:
        yield fenced("text", f"{name} = {told(value)}")


def methods(value: type) -> Iterator[str]:
    """The verbs and properties of a class that owns something; a record has fields alone, and they are its signature."""
    rows = [
        (code(shown(name, member)), summary(member))
        for name, member in inspect.getmembers(value)
        if not name.startswith("_") and is_own(member) and inspect.getdoc(member)
    ]
    if rows:
        yield table(("Method", "Does"), rows)


def is_own(member: object) -> bool:
    """Whether a member of a class was written in this house."""
    function = member.fget if isinstance(member, property) else member
    return inspect.isroutine(function) and str(getattr(function, "__module__", "")).startswith("remit")


def shown(name: str, member: Any) -> str:
    """A method with its parameters, a property by its name."""
    if isinstance(member, property):
        return name
    wait = "await " if inspect.iscoroutinefunction(member) else ""
    parameters = [one for one in inspect.signature(member).parameters.values() if one.name not in ("self", "cls")]
    return f"{wait}{name}({', '.join(one.name + '=' * (one.default is not one.empty) for one in parameters)})"


def signature(name: str, value: Any) -> str:
    """How something is called, spelled as in the source, a parameter on each line where they are many."""
    parameters, result = (class_parameters(value), "") if inspect.isclass(value) else spelled(value)
    whole = f"{name}({', '.join(parameters)}){result}"
    if len(whole) <= SIGNATURE_CHARS_MAX or not parameters:
        return whole
    lines = "".join(f"    {one},\n" for one in parameters)
    return f"{name}(\n{lines}){result}"


def class_parameters(value: Any) -> list[str]:
    """What a class is made with: the parameters of its constructor, or the fields of a record."""
    homes = [home for home in reversed(value.__mro__) if home.__module__.startswith("remit")]
    found: dict[str, str] = {}
    for home in homes:
        if any(isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in class_body(home)):
            found = {one: one for one in spelled(vars(home)["__init__"])[0]}
            continue
        for statement in class_body(home):
            if isinstance(statement, ast.AnnAssign) and not ast.unparse(statement.annotation).startswith("ClassVar"):
                found[ast.unparse(statement.target)] = ast.unparse(statement)
    return [*found.values()]


def spelled(function: Any) -> tuple[list[str], str]:
    """The parameters of a function with the star that keyword-only ones stand behind, and what it returns."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    given = definition.args
    places = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(places) - len(given.defaults)) + [*given.defaults]
    first = [_one(argument, default) for argument, default in zip(places, defaults, strict=True)]
    first = [one for one in first if one not in ("self", "cls")]
    star = [f"*{_one(given.vararg)}"] if given.vararg else ["*"] if given.kwonlyargs else []
    rest = [_one(argument, default) for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    last = [f"**{_one(given.kwarg)}"] if given.kwarg else []
    result = "" if definition.returns is None else f" -> {_plain(definition.returns)}"
    return [*first, *star, *rest, *last], "" if result == " -> None" and definition.name == "__init__" else result


def _one(argument: ast.arg, default: ast.expr | None = None) -> str:
    kind = "" if argument.annotation is None else f": {_plain(argument.annotation)}"
    return f"{argument.arg}{kind}" + ("" if default is None else f" = {ast.unparse(default)}")


def _plain(annotation: ast.expr) -> str:
    """A type; one that is named before it is defined stands in quotes in the source."""
    is_quoted = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
    return str(annotation.value) if isinstance(annotation, ast.Constant) and is_quoted else ast.unparse(annotation)


def told(value: Any) -> str:
    """A constant, in a fixed order."""
    text = f"{{{', '.join(sorted(map(str, value)))}}}" if isinstance(value, frozenset | set) else str(value)
    return text if len(text) <= SIGNATURE_CHARS_MAX else f"{text[:SIGNATURE_CHARS_MAX]}…"


def first_of(value: object) -> str:
    """The first paragraph of a docstring."""
    return paragraph(summary(value))


def summary(value: object) -> str:
    """The same on one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
