"""The boundaries that come with the house: the standard one, the guarded one, and the five risk profiles.

Rule 1: budgets are those of the doctrine; support and procurement take the research caps, with more live look-ups and
        nothing written or changed.
Rule 2: what a profile lets pass without a person is what its budget and its tools allow; what asks is said by effects,
        categories and conditions; and what stops the run at once is a condition that stops.
"""

import msgspec

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import TIER_MAX, At, Boundary, Condition, DecisionRight, Exhaustion, Then
from remit.core.limits.budget import FIELDS, Budget, Dimension, uncharged, uncharged_in
from remit.core.limits.escalation import Trigger
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import once_a_record

BOUNDARY_UNKNOWN = "BOUNDARY_UNKNOWN"
BOUNDARY_INVALID = "BOUNDARY_INVALID"

# Boundaries of a busy service that are known to fit their types.
_BOUNDARIES_KEPT_MAX = 256

_RESEARCH = Budget(
    steps=15,
    tool_calls=30,
    external_api_calls=5,
    input_tokens=200_000,
    output_tokens=30_000,
    wall_clock_ms=300_000,
    inference_cost_microusd=2_000_000,
    retries=3,
    reflection_passes=1,
    context_tokens=100_000,
    memory_writes=2,
    side_effects=0,
)
_CODING = Budget(
    steps=30,
    tool_calls=50,
    external_api_calls=10,
    input_tokens=400_000,
    output_tokens=60_000,
    wall_clock_ms=600_000,
    inference_cost_microusd=5_000_000,
    retries=5,
    reflection_passes=2,
    context_tokens=200_000,
    memory_writes=5,
    side_effects=2,
)
_INCIDENT = Budget(
    steps=10,
    tool_calls=15,
    external_api_calls=2,
    input_tokens=100_000,
    output_tokens=15_000,
    wall_clock_ms=120_000,
    inference_cost_microusd=1_000_000,
    retries=2,
    reflection_passes=1,
    context_tokens=50_000,
    memory_writes=0,
    side_effects=0,
)
_SERVICE = msgspec.structs.replace(_RESEARCH, external_api_calls=10, memory_writes=0, side_effects=0)

_ASK, _STOP = Then.ASK, Then.STOP

# What a profile leaves to a person once it is spent, in the queue of budgets: the run freezes, and goes on
# with what was released.
_RELEASED = (
    ("input_tokens", Exhaustion.ASK),
    ("tool_calls", Exhaustion.ASK),
    ("steps", Exhaustion.ASK),
    ("wall_clock_ms", Exhaustion.ASK),
)

# What no profile survives: a call that carries a secret, or that leaves the machine after one was read.
_SECRET_EXPOSED = Condition(
    "secret_exposure",
    "leaves_the_machine && (secret_read || carries_secret)",
    _STOP,
    "a secret was read and would leave the machine",
)
# A second denial is a run that tries doors.
_UNAUTHORIZED = Condition(
    "unauthorized_access",
    "denials >= 2 && (changes || leaves_the_machine)",
    _STOP,
    "the run was denied twice and now wants to act",
)

RESEARCH_ASSISTANT = Boundary(
    name="research_assistant",
    permissions=("sources.read", "documents.read"),
    budget=_RESEARCH,
    authority=Authority(),
    reads_max=Reads.PRIVATE,
    writes=(StateWrite.FILES, StateWrite.OTHER),
    tier_max=6,
    conditions=(
        _UNAUTHORIZED,
        Condition(
            "source_policy_conflict",
            'effect == "read" && network && secret_read',
            _STOP,
            "a source outside was to be asked after secret data was read",
        ),
        _SECRET_EXPOSED,
        Condition(
            "ungrounded_claim",
            "size(ungrounded) > 0",
            _STOP,
            "the answer presents as verified what nobody has looked up",
            At.ANSWER,
        ),
        Condition("paid_lookup", 'effect == "read" && cost_microusd > 0', _ASK, "a paid look-up outside"),
    ),
    exhaustion=(("output_tokens", Exhaustion.WRAP_UP), ("context_tokens", Exhaustion.COMPRESS), *_RELEASED),
)

CODING_ASSISTANT = Boundary(
    name="coding_assistant",
    # Local drafts are its trade; what leaves the machine is for a person.
    approval_effects=(Effect.EXTERNAL,),
    permissions=("workspace.read", "workspace.write", "sandbox.run"),
    budget=_CODING,
    authority=Authority(),
    writes=(StateWrite.FILES, StateWrite.OTHER, StateWrite.INFRASTRUCTURE),
    tier_max=6,
    conditions=(
        _UNAUTHORIZED,
        _SECRET_EXPOSED,
        Condition(
            "change_beyond_machine",
            "changes && !local",
            _ASK,
            "a change by a tool that does not declare network=False may reach beyond the workspace",
        ),
        Condition(
            "change_outside_workspace",
            "changes && size(paths_outside) > 0",
            _ASK,
            "a change at a path that is absolute or climbs out of the workspace",
        ),
        Condition(
            "production_impact",
            '"production" in concerns || (category == "infrastructure" && destructive)',
            _STOP,
            "a command that reaches production",
        ),
        Condition(
            "failing_tests_after_mutation",
            '"tests_failed" in flags',
            _STOP,
            "tests failed after the workspace was changed",
            At.OBSERVATION,
        ),
    ),
    exhaustion=(
        ("output_tokens", Exhaustion.WRAP_UP),
        ("context_tokens", Exhaustion.COMPRESS),
        # Two changes are what the doctrine gives a run; a third is not asked for.
        ("side_effects", Exhaustion.STOP),
        *_RELEASED,
    ),
)

CUSTOMER_SUPPORT = Boundary(
    name="customer_support",
    permissions=("documents.read", "account.read"),
    budget=_SERVICE,
    authority=Authority(),
    reads_max=Reads.PRIVATE,
    writes=(StateWrite.RECORDS, StateWrite.MESSAGES, StateWrite.MONEY, StateWrite.OTHER),
    identities=("who:user", "who:customer", "who:client", "who:member", "who:subscriber", "who:patient"),
    decisions=(DecisionRight.CHOOSE_TOOLS, DecisionRight.ASK_PEOPLE),
    exhaustion=_RELEASED,
    tier_max=6,
    conditions=(
        _UNAUTHORIZED,
        _SECRET_EXPOSED,
        Condition(
            "identity_mismatch",
            "user_named && size(users) > 0 && !(user in users)",
            _STOP,
            "the call is about another user than the one who asks",
        ),
        Condition(
            "identity_unknown",
            "!user_named && size(users) > 0",
            _ASK,
            "the call names a person, and the request does not say who asks",
        ),
        Condition(
            "identity_mismatch_in_result",
            '"other_user" in flags',
            _STOP,
            "a record of another user than the one who asks was read",
            At.OBSERVATION,
        ),
        Condition(
            "payment_change",
            '"payment_change" in concerns || (category == "payment" && destructive)',
            _STOP,
            "a way of paying was to be changed",
        ),
        Condition(
            "policy_exception",
            'changes && ("policy_exception" in concerns || "policy_exception" in flags)',
            _STOP,
            "an exception from policy was asked for",
        ),
        Condition(
            "regulated_category",
            '"regulated" in concerns || "regulated" in flags',
            _STOP,
            "a regulated category of support",
        ),
        Condition(
            "regulated_category_in_result",
            '"regulated" in flags',
            _STOP,
            "a regulated category of support",
            At.OBSERVATION,
        ),
    ),
)

PROCUREMENT = Boundary(
    name="procurement",
    permissions=("vendors.read", "contracts.read"),
    budget=_SERVICE,
    authority=Authority(),
    reads_max=Reads.PRIVATE,
    writes=(StateWrite.RECORDS, StateWrite.MONEY, StateWrite.OTHER),
    decisions=(DecisionRight.CHOOSE_TOOLS, DecisionRight.ASK_PEOPLE),
    exhaustion=_RELEASED,
    tier_max=5,
    four_eyes=(ToolCategory.PAYMENT,),
    # Ten thousand in most currencies: an order of supplies. A house that buys more says so in a boundary of its own.
    purchase_max=1_000_000,
    conditions=(
        _UNAUTHORIZED,
        _SECRET_EXPOSED,
        Condition(
            "budget_breach",
            'changes && (category == "payment" || purchase >= 0) && (purchase < 0 || purchased + purchase > purchase_max)',
            _STOP,
            "the purchase exceeds what is left of purchase_max, or its tool does not say which argument is `money`",
        ),
        Condition(
            "missing_approval_chain",
            'category == "payment" && changes && user == ""',
            _STOP,
            "nobody is named for whom the payment is made",
        ),
        Condition(
            "vendor_risk_conflict",
            'changes && ("vendor_risk" in flags || "vendor_risk" in concerns)',
            _STOP,
            "a vendor that was looked up is flagged as a risk",
        ),
        Condition(
            "contract_ambiguity",
            'changes && objection == "RECORD_AMBIGUOUS"',
            _STOP,
            "more than one record fits what was asked for",
        ),
    ),
    queues=((Trigger.HIGH_IMPACT_MUTATION, "procurement"),),
)

INCIDENT_SRE = Boundary(
    name="incident_sre",
    permissions=("logs.read", "metrics.read", "deploys.read"),
    budget=_INCIDENT,
    authority=Authority(),
    writes=(StateWrite.INFRASTRUCTURE, StateWrite.OTHER),
    decisions=(DecisionRight.CHOOSE_TOOLS, DecisionRight.MAKE_PLANS, DecisionRight.ASK_PEOPLE),
    exhaustion=_RELEASED,
    tier_max=5,
    conditions=(
        _UNAUTHORIZED,
        Condition(
            "security_incident",
            'secret_read || carries_secret || "security_incident" in flags',
            _STOP,
            "secret data was read, or a result speaks of an incident: this is for security",
        ),
        Condition(
            "security_incident_in_result",
            'secret_read || "security_incident" in flags',
            _STOP,
            "secret data was read, or a result speaks of an incident: this is for security",
            At.OBSERVATION,
        ),
        Condition(
            "missing_operator_approval",
            "changes && (rejections > 0 || left_human_reviews <= 0)",
            _STOP,
            "an operator has not approved a change of this run, and it wants another one",
        ),
        Condition("destructive_action", "destructive", _STOP, "the action destroys something"),
        Condition(
            "uncertain_blast_radius",
            'changes && category == "infrastructure" && !has_blast_radius',
            _STOP,
            "nobody declared what the action reaches",
        ),
    ),
    queues=((Trigger.HIGH_IMPACT_MUTATION, "sre"),),
    on_silence=("operator",),
)

STANDARD = Boundary()

# No effect needs a person for what it is, only for where its values come from; its caps stop a lost loop: a day's work
# of one agent, and a person who was asked a hundred times about one run does not look any more.
GUARDED = Boundary(
    name="guarded",
    approval_effects=(),
    approval_categories=(),
    budget=Budget(tool_calls=1_000, external_api_calls=1_000, side_effects=200, human_reviews=100),
    authority=Authority(),
)

PROFILES: dict[str, Boundary] = {
    profile.name: profile
    for profile in (RESEARCH_ASSISTANT, CODING_ASSISTANT, CUSTOMER_SUPPORT, PROCUREMENT, INCIDENT_SRE)
}
KNOWN: dict[str, Boundary] = {STANDARD.name: STANDARD, GUARDED.name: GUARDED, **PROFILES}


def boundary_named(name: str) -> Boundary:
    """The boundary of this name; raises RequestRejected when there is none."""
    if (found := KNOWN.get(name)) is None:
        shown = str(name)[:SHOWN_CHARS_MAX]
        message = f"boundary {shown!r} is unknown; use one of {', '.join(KNOWN)}, or a file"
        raise RequestRejected(BOUNDARY_UNKNOWN, message, {"boundary": shown})
    return found


@once_a_record(_BOUNDARIES_KEPT_MAX)
def declared_boundary(boundary: Boundary) -> Boundary:
    """The boundary as its types read it; raises RequestRejected for what does not fit them."""
    read = as_declared(boundary, Boundary, "boundary", BOUNDARY_INVALID)
    if not 1 <= read.tier_max <= TIER_MAX:
        message = f"boundary.tier_max={read.tier_max} cannot be used; it takes a tier from 1 to {TIER_MAX}"
        raise RequestRejected(BOUNDARY_INVALID, message, {"field": "boundary.tier_max"})
    return read


def check_figures(boundary: Boundary) -> None:
    """Refuse a cap above 0 that would bind nothing, unless it is the figure of a profile that was taken over."""
    found = uncharged_in(boundary.budget)
    if found and not any(_has_figures(boundary.budget, known.budget, found) for known in KNOWN.values()):
        raise uncharged(found[0], f"boundary {boundary.name}")


def _has_figures(budget: Budget, known: Budget, dimensions: tuple[Dimension, ...]) -> bool:
    names = [FIELDS[dimension] for dimension in dimensions]
    return all(getattr(budget, name) == getattr(known, name) for name in names)
