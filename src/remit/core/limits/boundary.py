"""The boundary: what a run may observe, write, call, decide and spend, and to whom it escalates. Judged in the kernel.

Rule 1: a boundary is data, pinned in the manifest by its version; a request only ever narrows it.
Rule 2: what is not allowed is refused; a mutating effect needs a person unless the boundary says otherwise.
Rule 3: a child's boundary is its parent's or narrower, in every dimension.
Rule 4: a condition that cannot be decided objects, as if it held.
"""

from enum import StrEnum

from remit.core.journal.versions import content_version
from remit.core.limits.authority import Authority
from remit.core.limits.budget import Budget, assign, budget_of
from remit.core.limits.tool_policy import ASKING_CATEGORIES, StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import MadeByHand, field_values, once_a_record, replace
from remit.core.work.goal import TaskClass

# A day: long enough for a person to come back to work, short enough that a forgotten question does not linger.
APPROVAL_WAIT_MS_MAX = 86_400_000
# Two short paragraphs: what is kept back for the last words of a run whose budget is spent.
WRAP_UP_TOKENS = 256
# The highest of the seven tiers of autonomy.
TIER_MAX = 7
# As many as a person can read in one sitting; each costs a few microseconds a call.
CONDITIONS_MAX = 100


class BoundaryMode(StrEnum):
    """Whether the boundary's own objections stop a call, or are only recorded as what would have stopped it."""

    ENFORCE = "enforce"
    AUDIT = "audit"


class Then(StrEnum):
    """What a condition does to a call of which it holds: ask a person, refuse it, or stop the run."""

    ASK = "ask"
    REFUSE = "refuse"
    STOP = "stop"


class At(StrEnum):
    """When a condition is looked at: before a call is made, when an outcome was observed, or when an answer is given."""

    CALL = "call"
    OBSERVATION = "observation"
    ANSWER = "answer"


class Condition(MadeByHand):
    """A rule of one line, in CEL over the call: its tool, arguments, labels, what is left of the budget, user and time."""

    name: str
    when: str
    then: Then = Then.ASK
    message: str = ""
    at: At = At.CALL


class TaskRule(MadeByHand):
    """What kind of task a request is where this holds of it, in CEL over the request; and what grounds it, if not all."""

    name: str
    when: str
    task_class: TaskClass
    grounds: tuple[ToolCategory, ...] = ()


class Whose(StrEnum):
    """Whose calls count for a rate: those of the run, or those of all runs of its user."""

    RUN = "run"
    USER = "user"


class Rate(MadeByHand):
    """At most so many calls of a tool within so many milliseconds; `*` is any tool, all of them together."""

    tool: str
    times_max: int
    per_ms: int
    whose: Whose = Whose.RUN


class DecisionRight(StrEnum):
    """The decisions that the model itself may take."""

    CHOOSE_TOOLS = "choose_tools"
    DELEGATE = "delegate"
    MAKE_PLANS = "make_plans"
    ASK_PEOPLE = "ask_people"


class Exhaustion(StrEnum):
    """The ways out when a dimension of the budget is spent."""

    STOP = "stop"
    COMPRESS = "compress"
    DOWNGRADE = "downgrade"
    WRAP_UP = "wrap_up"
    ASK = "ask"


class Unverified(StrEnum):
    """What becomes of a tool that changes something and that nothing verifies: its effect stays observed, or it is refused."""

    OBSERVE = "observe"
    REFUSE = "refuse"


class Demanding(StrEnum):
    """Whether a tool that lacks what its category demands is only shown with its gaps, or refused."""

    SHOW = "show"
    ENFORCE = "enforce"


class Boundary(MadeByHand):
    """The lease of decision rights a run holds."""

    name: str = "standard"

    # Tools: which, who lets them act, how often.
    allowed_tools: tuple[str, ...] | None = None
    approval_effects: tuple[Effect, ...] = (Effect.WRITE, Effect.EXTERNAL)
    permissions: tuple[str, ...] = ()

    # Resources.
    budget: Budget = Budget()
    approval_wait_ms_max: int = APPROVAL_WAIT_MS_MAX

    mode: BoundaryMode = BoundaryMode.ENFORCE
    approval_categories: tuple[ToolCategory, ...] = ASKING_CATEGORIES
    # Categories whose changes two different people must approve.
    four_eyes: tuple[ToolCategory, ...] = ()
    rates: tuple[Rate, ...] = ()
    conditions: tuple[Condition, ...] = ()
    # Over the request itself: where one holds, the run does not begin.
    intake: tuple[Condition, ...] = ()
    # How far the gate of provenance may go without a person; None traces nothing, and every change asks.
    authority: Authority | None = None

    # Observations: what may be read unattended. More than that is for a person to allow.
    reads_max: Reads = Reads.SECRET
    # State: what may be written at all. None is everything.
    writes: tuple[StateWrite, ...] | None = None
    # Decision rights: what the model may decide (None: everything), and the highest tier its graph may have.
    decisions: tuple[DecisionRight, ...] | None = None
    tier_max: int = TIER_MAX

    # What happens when a dimension is spent, by its name; what is not named stops the run.
    exhaustion: tuple[tuple[str, Exhaustion], ...] = ()
    wrap_up_tokens: int = WRAP_UP_TOKENS
    # Whether a run that can no longer finish within its budget is stopped before it has spent it.
    stops_early: bool = True

    # Escalation: another queue for a trigger, and who is asked next, in this order, when no answer comes.
    queues: tuple[tuple[str, str], ...] = ()
    on_silence: tuple[str, ...] = ()
    # Whether the person who asked for a run may approve what it asks. Unsaid, only the owner of the store may.
    self_approval: bool | None = None
    # Who alone may release budget that is spent; without names, all who may answer.
    release_by: tuple[str, ...] = ()
    # What kind of task a request is whose caller does not say; the first that holds decides.
    tasks: tuple[TaskRule, ...] = ()

    # Observations: hosts that reads may always carry something to; `*.corp.example` is every host below that one.
    trusted_hosts: tuple[str, ...] = ()
    # Kinds of values that name the person who asks, or a like person.
    identities: tuple[str, ...] = ("who:user",)
    # What calls of tools are about, beyond what the tools say themselves: a name that conditions look at, and tools.
    concerns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    # What all purchases of a run may come to, in the smallest unit of the currency. None sets no limit.
    purchase_max: int | None = None

    # Tools again: what must be able to check what they did, and what their categories demand.
    unverified: Unverified = Unverified.OBSERVE
    demands: Demanding = Demanding.SHOW


# Boundaries of a busy service.
_BOUNDARIES_KEPT_MAX = 256
_FIELDS, _DEFAULTS = Boundary.__struct_fields__, Boundary.__struct_defaults__


@once_a_record(_BOUNDARIES_KEPT_MAX)
def boundary_version(boundary: Boundary) -> str:
    """The content hash under which the manifest pins a boundary: of what it says, however that was put together."""
    said = zip(_FIELDS, field_values(boundary), _DEFAULTS, strict=True)
    # A value that equals its default is replaced by it: records leave out a field only where it is the very same object.
    silent = {name: default for name, value, default in said if value is not default and value == default}
    return content_version(replace(boundary, **silent) if silent else boundary)


def narrow(
    parent: Boundary, *, tools: tuple[str, ...] | None, budget: Budget, grants: tuple[str, ...] | None = None
) -> Boundary:
    """The boundary of a child: no tool, permission, right or cap its parent lacks."""
    allowed, permitted = parent.allowed_tools, parent.permissions
    if tools is not None:
        allowed = tools if allowed is None else tuple(name for name in tools if name in allowed)
    if grants is not None:
        permitted = tuple(name for name in permitted if name in grants)
    caps = budget_of(assign(parent.budget, budget))
    return replace(parent, allowed_tools=allowed, permissions=permitted, budget=caps)
