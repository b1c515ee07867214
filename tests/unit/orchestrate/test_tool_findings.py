"""What a boundary amounts to: in words, and for each of a list of tools."""

from dataclasses import dataclass

import pytest

from remit.core.journal.proposed_call import Provenance
from remit.core.limits.authority import Stakes
from remit.core.limits.boundary import Boundary, BoundaryMode, DecisionRight, Rate, boundary_version
from remit.core.limits.boundary_views import Stance, ToolReport
from remit.core.limits.budget import FIELDS, Budget
from remit.core.limits.profiles import CODING_ASSISTANT, CUSTOMER_SUPPORT, GUARDED, INCIDENT_SRE, KNOWN, STANDARD
from remit.core.limits.tool_trust import Reads, Repeat, Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.verdict import Judgement
from remit.orchestrate.boundaries.boundary_file import boundary_said, boundary_yaml
from remit.orchestrate.boundaries.boundary_words import described_boundary
from remit.orchestrate.boundaries.tool_findings import boundary_findings
from tests.unit.kernel.builders import Run, manifest_of, wants

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}


def tool(name: str = "act", effect: Effect = Effect.EXTERNAL, **said: object) -> ToolDefinition:
    return replace(ToolDefinition(name, "Acts.", OBJECT, effect=effect), **said)


LOOK = tool("look", Effect.READ)
PAYER = tool("payer", Effect.NONE, delegates=True, lease=(("side_effects", 2),))
TOOLS = (
    LOOK,
    tool("count", Effect.NONE),
    tool("fetch", Effect.READ, network=True),
    tool("peek", Effect.READ, trust=Trust(reads=Reads.SECRET)),
    tool("note", Effect.WRITE, category=ToolCategory.FILE_SYSTEM),
    tool("pay", category=ToolCategory.PAYMENT),
    tool("mail", category=ToolCategory.EMAIL_CALENDAR),
    tool("open", Effect.READ, permissions=("vault.open",)),
    tool("hand_on", Effect.NONE, delegates=True),
)


def report(one: ToolDefinition, boundary: Boundary) -> ToolReport:
    (only,) = boundary_findings(boundary, (one,)).tools
    return only


def test_a_delegation_that_may_change_something_is_as_risky_as_a_change() -> None:
    assert [report(one, STANDARD).risk for one in (PAYER, tool("write", Effect.WRITE), LOOK)] == ["high", "high", "low"]


def test_a_boundary_that_is_fine_has_a_version_and_a_mode() -> None:
    found = boundary_findings(replace(STANDARD, mode=BoundaryMode.AUDIT))
    assert (found.name, found.mode, found.conditions) == ("standard", BoundaryMode.AUDIT, 0)
    assert found.version == boundary_version(replace(STANDARD, mode=BoundaryMode.AUDIT))
    assert (found.tools, found.missing) == ((), ())


@pytest.mark.parametrize(
    ("one", "boundary", "stance", "why"),
    [
        (LOOK, STANDARD, Stance.PASSES, "it only reads"),
        (tool("count", Effect.NONE), STANDARD, Stance.PASSES, "it changes nothing"),
        (tool("ask", Effect.NONE, delegates=True), STANDARD, Stance.PASSES, "it changes nothing"),
        (PAYER, STANDARD, Stance.PASSES, "it delegates with side_effects=2, a proposed effect"),
        (tool("fetch", Effect.READ, network=True), GUARDED, Stance.PASSES, "what it carries out is traced or asks"),
        (LOOK, replace(STANDARD, rates=(Rate("look", 5, 60_000),)), Stance.PASSES, "look: 5 calls per 1m"),
        (
            tool(destructive=True),
            replace(STANDARD, mode=BoundaryMode.AUDIT),
            Stance.RECORDS,
            "mode audit lets the call be made: ",
        ),
        (LOOK, replace(STANDARD, allowed_tools=()), Stance.REFUSES, "does not allow tool look"),
        (LOOK, replace(STANDARD, decisions=()), Stance.REFUSES, "the right to choose_tools"),
        (tool(), replace(STANDARD, writes=()), Stance.REFUSES, "writes other"),
        (
            tool("open", Effect.READ, permissions=("vault.open",)),
            STANDARD,
            Stance.REFUSES,
            "needs permission vault.open",
        ),
        (tool("go", Effect.NONE, delegates=True), replace(STANDARD, budget=Budget(depth=0)), Stance.REFUSES, "depth=1"),
        (tool(), STANDARD, Stance.ASKS, "demands approval of external effects"),
        (tool(), CUSTOMER_SUPPORT, Stance.ASKS, "side_effects=0"),
        (tool(), replace(GUARDED, authority=None), Stance.ASKS, "no gate traces"),
        (tool(), GUARDED, Stance.PASSES, "once every value is traced"),
        (LOOK, replace(STANDARD, reads_max=Reads.PUBLIC), Stance.ASKS, "reads what is private"),
        (
            tool(category=ToolCategory.PAYMENT),
            replace(STANDARD, four_eyes=(ToolCategory.PAYMENT,)),
            Stance.ASKS,
            "two people must approve",
        ),
        (
            tool(category=ToolCategory.PAYMENT),
            replace(GUARDED, four_eyes=(ToolCategory.PAYMENT,)),
            Stance.ASKS,
            "wants two people",
        ),
    ],
)
def test_each_tool_is_refused_asked_about_or_let_pass_and_why(
    one: ToolDefinition, boundary: Boundary, stance: Stance, why: str
) -> None:
    found = report(one, boundary)
    assert found.stance is stance
    assert why in found.why


@dataclass(frozen=True)
class Ruled:
    """What the kernel says of a first call whose values are all bound, or that was not traced."""

    boundary: Boundary

    def stance(self, one: ToolDefinition) -> Stance:
        provenance = Provenance.UNTRACED if self.boundary.authority is None else Provenance.BOUND
        run = Run(manifest_of(boundary=self.boundary, tools=TOOLS))
        verdict = authorize(replace(wants(one.name), provenance=provenance), run.tally())
        said = {Judgement.ALLOW: Stance.PASSES, Judgement.ASK: Stance.ASKS, Judgement.REFUSE: Stance.REFUSES}
        return said[verdict.judgement]


@pytest.mark.parametrize(
    "boundary",
    [
        *(replace(one, conditions=()) for one in KNOWN.values()),
        replace(GUARDED, authority=None),
        replace(GUARDED, budget=Budget(side_effects=0)),
        replace(STANDARD, decisions=(DecisionRight.CHOOSE_TOOLS,)),
        replace(STANDARD, permissions=("vault.open",), reads_max=Reads.PRIVATE),
        replace(GUARDED, four_eyes=(ToolCategory.PAYMENT,), approval_categories=(ToolCategory.EMAIL_CALENDAR,)),
    ],
    ids=lambda boundary: boundary.name,
)
def test_the_report_says_of_every_tool_what_the_kernel_does(boundary: Boundary) -> None:
    said = {one.tool: one.stance for one in boundary_findings(boundary, TOOLS).tools}
    assert said == {one.name: Ruled(boundary).stance(one) for one in TOOLS}


def test_what_a_tool_leaves_at_its_worst_is_named() -> None:
    assert report(tool(), STANDARD).at_worst == ("effect", "control_args", "payload_args", "asks", "repeat", "stakes")
    declared = tool(
        control_args=(("n", "number"),),
        trust=Trust(payload_args=("text",), asks=("act",), repeat=Repeat.TARGET, stakes=Stakes.NONE),
    )
    assert report(declared, STANDARD).at_worst == ()
    assert report(LOOK, STANDARD).at_worst == ("result", "reads", "network")
    read = tool("look", Effect.READ, network=False, trust=Trust(fields=(("id", "id:x"),), reads=Reads.PUBLIC))
    assert report(read, STANDARD).at_worst == ()


def test_what_the_category_of_a_tool_demands_is_named_with_its_risk() -> None:
    found = report(tool(category=ToolCategory.PAYMENT), STANDARD)
    assert (found.gaps, found.risk) == (("permissions", "control_args", "verifier", "rollback"), "high")
    assert report(LOOK, STANDARD).gaps == ()


def test_tools_that_a_boundary_names_and_that_are_not_there_are_told() -> None:
    named = replace(STANDARD, allowed_tools=("look", "lok"), rates=(Rate("*", 1, 1), Rate("luk", 1, 1)))
    assert boundary_findings(named, (LOOK,)).missing == ("lok", "luk")
    assert boundary_findings(named).missing == ()


def test_a_boundary_is_told_by_its_dimensions() -> None:
    shown = described_boundary(INCIDENT_SRE)
    said = {(line.dimension, line.key): line.says for line in shown.lines}
    assert list(dict.fromkeys(line.dimension for line in shown.lines)) == [
        "observations",
        "state writes",
        "tools",
        "decision rights",
        "resource budgets",
        "escalation",
        "authority",
        "conditions",
    ]
    assert said["resource budgets", "wall_clock_ms"] == "2m, then ask"
    assert said["resource budgets", "inference_cost_microusd"] == "$1.00"
    assert said["resource budgets", "depth"] == "2 levels (standard)"
    assert said["resource budgets", "reflection_passes"] == "1 pass (not yet charged)"
    assert said["escalation", "queues"] == "high_impact_mutation to sre"
    assert said["authority", "tripwire"] == "yes"
    assert said["conditions", "destructive_action"] == "stops the run when destructive (the action destroys something)"
    assert {key for dimension, key in said if dimension == "resource budgets"} > set(FIELDS)
    assert (shown.said, shown.yaml) == (boundary_said(INCIDENT_SRE), boundary_yaml(INCIDENT_SRE))


def test_figures_that_nothing_charges_are_named_when_a_boundary_is_checked() -> None:
    assert boundary_findings(CODING_ASSISTANT).uncharged == ("reflection_passes=2", "memory_writes=5")
    assert boundary_findings(STANDARD).uncharged == ()


def test_what_is_not_limited_and_what_is_spent_is_told_in_words() -> None:
    said = {line.key: line.says for line in described_boundary(replace(STANDARD, stops_early=False)).lines}
    assert (said["writes"], said["rights"], said["rates"]) == ("all", "all", "none")
    assert said["authority"] == "off: only reads that may leave are traced, and every change asks"
    assert (said["stops_early"], said["on_silence"]) == ("no", "no other person is asked")
    spent = {line.key: line.says for line in described_boundary(KNOWN["research_assistant"]).lines}
    assert spent["output_tokens"] == "30,000 tokens, then wrap_up"
    assert spent["paid_lookup"].startswith("asks a person when ")
