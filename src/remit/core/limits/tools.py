"""Tools: what a registered tool declares, what a model asks of it, and what comes back.

Rule 1: what a tool does not declare counts as the worst: external effect, untrusted output, not idempotent, and
        of the strictest category.
Rule 2: a failed tool is a result with an error text, never an exception that crosses the house.
Rule 3: a definition is named by the hash of its content; the registry writes it into `version`.
Rule 4: building a record checks nothing; the check functions stand at the door.
"""

from collections.abc import Collection, Iterable
from enum import StrEnum

import msgspec

from remit.core.failure import ENDINGS, Ending, EndingKind, RequestRejected
from remit.core.journal.versions import content_version
from remit.core.limits.argument_paths import root_of
from remit.core.limits.budget import FIELDS, LEASABLE, UNCHARGED, Dimension, uncharged_caps
from remit.core.limits.flags import flag_problem
from remit.core.limits.tool_trust import UNTRUSTING, Trust
from remit.core.record import JsonObject, MadeByHand, Record, Text
from remit.core.regex import regex

# Names of MCP have up to 128 characters, and dots; catalogues of vendors have slashes, colons and words apart. Engines whose
# vendors take less rename what they send. What ends a line, moves a cursor or looks like another letter stays out.
TOOL_NAME_CHARS_MAX = 128
TOOL_NAME_PATTERN = regex(
    rf"(?=.{{1,{TOOL_NAME_CHARS_MAX}}}\Z)[A-Za-z0-9_-](?:(?:[A-Za-z0-9_./:-]| (?! ))*[A-Za-z0-9_-])?"
)

# Half a minute covers a slow service and its own retry, and a hanging tool costs a run little of its wall clock.
TOOL_TIMEOUT_MS_DEFAULT = 30_000

# An hour: what takes longer should be started by one call and asked about by another, so that a crash can find it.
TOOL_TIMEOUT_MS_MAX = 3_600_000

# What a run remembers of the calls of one tool, to keep its rate.
RATE_MAX = 1_000

_SIDE_EFFECTS = FIELDS[Dimension.SIDE_EFFECTS]

TOOL_INVALID = "TOOL_DEFINITION_INVALID"
TOOL_CALL_INVALID = "TOOL_CALL_INVALID"
TOOL_CHOICE_INVALID = "TOOL_CHOICE_INVALID"
TOOLS_DISALLOWED = "TOOLS_DISALLOWED"


class Effect(StrEnum):
    """The effect of a call on the world, from nothing to something outside our reach."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"

    @property
    def is_mutating(self) -> bool:
        """Whether the world may differ after the call."""
        return self in MUTATING


MUTATING = frozenset({Effect.WRITE, Effect.EXTERNAL})


class ToolCategory(StrEnum):
    """The ten rows of the tool policy matrix."""

    READ_ONLY_LOOKUP = "read_only_lookup"
    RETRIEVAL = "retrieval"
    LIVE_API = "live_api"
    SANDBOX = "sandbox"
    FILE_SYSTEM = "file_system"
    DATABASE = "database"
    EMAIL_CALENDAR = "email_calendar"
    PAYMENT = "payment"
    INFRASTRUCTURE = "infrastructure"
    REVIEW_QUEUE = "review_queue"


class ToolDefinition(MadeByHand):
    """A registered tool: all that is pinned of it. `parameters` and `result` are JSON Schemas."""

    name: str
    description: str
    parameters: JsonObject
    result: JsonObject = {}
    effect: Effect = Effect.EXTERNAL
    category: ToolCategory | None = None
    # Whether a call leaves the machine; None is a tool that does not say.
    network: bool | None = None
    idempotent: bool = False
    destructive: bool = False
    untrusted_output: bool = True
    reconcilable: bool = False
    may_stop_loop: bool = False
    permissions: tuple[str, ...] = ()
    timeout_ms: int = TOOL_TIMEOUT_MS_DEFAULT
    cost_microusd: int = 0
    verifier: str = "schema"
    control_args: tuple[tuple[str, str], ...] = ()
    # A tool that delegates is no function: its call starts a child run, which may spend this lease at most.
    delegates: bool = False
    lease: tuple[tuple[str, int], ...] = ()
    # Nor is one that asks a person: under this code its call is a question, and the answer is its result.
    asks_under: Ending | None = None
    trust: Trust = UNTRUSTING
    # Parameters that the executor fills with a secret, hidden from the model: (parameter, name of the secret).
    secrets: tuple[tuple[str, str], ...] = ()
    # What a call reaches at most, and how it is undone, in words for the approver.
    blast_radius: str = ""
    rollback: str = ""
    # A cheaper tool that must have been tried first, and one that does the same when this one is unavailable.
    alternative: str = ""
    fallback: str = ""
    # At most so many calls within so many milliseconds; 0 sets no rate.
    rate_max: int = 0
    rate_per_ms: int = 0
    version: str = ""
    # Fields of the result that raise a flag, as path and flag; see core/limits/flags.py. And what every call of it is about,
    # by names that conditions look at, such as `payment_change` or `regulated`.
    flags: tuple[tuple[str, str], ...] = ()
    concerns: tuple[str, ...] = ()
    # Of a tool that delegates: the permissions of its parent that the child has at most. None takes none away.
    grants: tuple[str, ...] | None = None


class ToolCall(Record):
    """A model's wish to have a tool called. The id is the provider's and may repeat across answers."""

    id: str
    name: str
    arguments: JsonObject = {}
    metadata: JsonObject = {}


class ToolResult(Record):
    """What a call came to. With `stop_loop` the content becomes the answer, if the tool may stop the loop."""

    call_id: str
    name: str
    content: Text = ""
    error: str = ""
    metadata: JsonObject = {}
    stop_loop: bool = False

    @property
    def is_error(self) -> bool:
        """Whether the tool failed; the error text says how."""
        return self.error != ""


class ToolChoiceMode(StrEnum):
    """How freely the model chooses among the tools it is offered."""

    AUTO = "auto"
    REQUIRED = "required"
    NONE = "none"
    FUNCTION = "function"


class ToolChoice(MadeByHand):
    """The mode, and the one tool that must be called when the mode is `function`."""

    mode: ToolChoiceMode = ToolChoiceMode.AUTO
    function_name: str = ""


def take_choice(said: object) -> ToolChoice:
    """A choice of tools as a request declares it; the text of a mode, such as `none`, stands for it."""
    return ToolChoice(said) if isinstance(said, str) else said  # type: ignore[arg-type,return-value]  # doors refuse what is no choice


def tool_version(definition: ToolDefinition) -> str:
    """The SHA-256 over everything a definition says, its version left out; fields at their default do not count.

    That a tool stays on the machine does not count either: a tool that comes to say so is still the same, and a run
    goes on with what was pinned when it began.
    """
    if definition.version or definition.network is False:
        network = definition.network or None
        definition = msgspec.structs.replace(definition, version="", network=network)
    return content_version(definition)


def may_change(tool: ToolDefinition) -> bool:
    """Whether a call of a tool may change something: the tool itself, or the child that it starts, by its lease."""
    return tool.effect.is_mutating or any(name == _SIDE_EFFECTS and amount > 0 for name, amount in tool.lease)


def validate_tools_allowed(calls: Iterable[ToolCall], allowed: Collection[str]) -> None:
    """Refuse calls of tools outside the list, naming all of them. An empty list allows nothing."""
    disallowed = list(dict.fromkeys(call.name for call in calls if call.name not in allowed))
    if disallowed:
        raise RequestRejected(
            TOOLS_DISALLOWED,
            f"disallowed tools: {', '.join(disallowed)}",
            {"disallowed": disallowed, "allowed": sorted(allowed)},
        )


def check_call(call: ToolCall) -> None:
    """A call needs an id, to match its result with, and the name of a tool."""
    if not call.id:
        raise RequestRejected(TOOL_CALL_INVALID, f"tool call {call.name[:80]!r} has no id; give each call its own")
    if not call.name:
        raise RequestRejected(TOOL_CALL_INVALID, f"tool call {call.id[:80]!r} names no tool; set its name")


def may_leave_reading(tool: ToolDefinition) -> bool:
    """Whether a call that only reads leaves the machine, or may: what a tool does not say counts as the worst."""
    return tool.effect is Effect.READ and tool.network is not False and not tool.delegates


def check_tool_choice(choice: ToolChoice) -> None:
    """A known mode; a function name with the mode `function` and with no other."""
    # A plain text that equals a mode would pass every comparison.
    if type(choice.mode) is not ToolChoiceMode:
        modes = ", ".join(ToolChoiceMode)
        raise RequestRejected(
            TOOL_CHOICE_INVALID, f"tool_choice.mode must be one of {modes}, not {str(choice.mode)[:80]!r}"
        )
    is_function = choice.mode is ToolChoiceMode.FUNCTION
    if is_function and not choice.function_name:
        raise RequestRejected(
            TOOL_CHOICE_INVALID, "tool_choice.mode='function' needs function_name: the tool that must be called"
        )
    if choice.function_name and not is_function:
        raise RequestRejected(
            TOOL_CHOICE_INVALID,
            f"tool_choice.mode={choice.mode.value!r} takes no function_name, but has "
            f"{choice.function_name[:80]!r}; leave it out or use mode 'function'",
        )


def check_definition(definition: ToolDefinition) -> None:
    """Refuse a definition that no registry should take; the first check that objects decides."""
    for check in DEFINITION_CHECKS:
        problem = check(definition)
        if problem:
            shown = definition.name[:80]
            raise RequestRejected(TOOL_INVALID, f"tool {shown!r}: {problem}", {"tool": shown})


def _name_problem(definition: ToolDefinition) -> str:
    if TOOL_NAME_PATTERN.fullmatch(definition.name):
        return ""
    within = "'.', '/', ':' and single spaces"
    return f"a name is 1 to {TOOL_NAME_CHARS_MAX} letters, digits, '_' or '-', with {within} between them"


def _parameters_problem(definition: ToolDefinition) -> str:
    if definition.parameters.get("type") != "object":
        return "parameters must be a JSON Schema with type 'object'; use {'type': 'object'} for a tool without any"
    if not isinstance(definition.parameters.get("properties", {}), dict):
        return "parameters.properties must map each parameter to its schema"
    return ""


def _control_args_problem(definition: ToolDefinition) -> str:
    known = definition.parameters.get("properties", {})
    unknown = [name for name, _ in definition.control_args if name not in known and root_of(name) not in known]
    return f"control_args name {unknown}, which parameters.properties lacks" if unknown else ""


def _effect_problem(definition: ToolDefinition) -> str:
    if definition.destructive and not definition.effect.is_mutating:
        return f"destructive, yet its effect is '{definition.effect.value}'; declare write or external"
    if definition.network and definition.effect is Effect.NONE:
        return "uses the network, yet its effect is 'none'; declare read, write or external"
    return ""


def _limits_problem(definition: ToolDefinition) -> str:
    if not 1 <= definition.timeout_ms <= TOOL_TIMEOUT_MS_MAX:
        return f"timeout_ms={definition.timeout_ms} is outside 1 to {TOOL_TIMEOUT_MS_MAX}"
    if definition.cost_microusd < 0:
        return f"cost_microusd={definition.cost_microusd} is below 0"
    return ""


def _rate_problem(definition: ToolDefinition) -> str:
    if definition.rate_max < 0 or definition.rate_per_ms < 0:
        return f"rate {definition.rate_max} per {definition.rate_per_ms} ms is below 0"
    if bool(definition.rate_max) != bool(definition.rate_per_ms):
        return "a rate needs both rate_max and rate_per_ms"
    return f"rate_max={definition.rate_max} exceeds {RATE_MAX}" if definition.rate_max > RATE_MAX else ""


def _other_tools_problem(definition: ToolDefinition) -> str:
    for key in ("alternative", "fallback"):
        if getattr(definition, key) == definition.name:
            return f"names itself as its {key}"
    return ""


def _question_problem(definition: ToolDefinition) -> str:
    if definition.asks_under is None:
        return ""
    if ENDINGS[definition.asks_under].kind is not EndingKind.SUSPENDED:
        return f"asks_under={definition.asks_under} makes no run wait; use a code that suspends"
    if definition.effect is not Effect.NONE or definition.delegates:
        return "asks a person, so its effect must be 'none' and it may not delegate"
    return ""


def _secrets_problem(definition: ToolDefinition) -> str:
    known = definition.parameters.get("properties", {})
    shown = [parameter for parameter, _ in definition.secrets if parameter in known]
    return f"shows the model its secrets {shown}; leave them out of parameters.properties" if shown else ""


def _names_problem(definition: ToolDefinition) -> str:
    if "" in definition.permissions:
        return "permissions hold an empty name; remove it"
    return "" if definition.verifier else "verifier is empty; use 'schema' or the name of a verifier"


def _lease_problem(definition: ToolDefinition) -> str:
    if definition.lease and not definition.delegates:
        return "has a lease, yet starts no child run; declare that it delegates"
    if definition.grants is not None and not definition.delegates:
        return "grants permissions, yet starts no child run; declare that it delegates"
    if definition.delegates and definition.effect.is_mutating:
        return (
            f"delegates, yet its effect is '{definition.effect.value}'; what a child changes is the child's own effect"
        )
    for name, amount in definition.lease:
        if name not in LEASABLE or amount < 0:
            return f"lease {name}={amount} is not a counter of the budget with an amount from 0 up"
    if found := uncharged_caps(definition.lease):
        return f"its lease has {found[0].name.lower()}, which nothing charges: {UNCHARGED[found[0]]}; leave it out"
    return ""


def _flags_problem(definition: ToolDefinition) -> str:
    problems = (flag_problem(path, spec) for path, spec in definition.flags)
    return next((problem for problem in problems if problem), "")


def _content_problem(definition: ToolDefinition) -> str:
    """Whatever has no hash cannot be pinned, shown in an approval packet or journaled."""
    try:
        tool_version(definition)
    except (ValueError, TypeError, RecursionError) as error:
        return f"its content has no canonical form: {error}"
    return ""


DEFINITION_CHECKS = (
    _name_problem,
    _parameters_problem,
    _control_args_problem,
    _effect_problem,
    _limits_problem,
    _names_problem,
    _lease_problem,
    _rate_problem,
    _other_tools_problem,
    _question_problem,
    _secrets_problem,
    _flags_problem,
    _content_problem,
)
