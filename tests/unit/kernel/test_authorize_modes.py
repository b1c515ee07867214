"""Authorization beyond the plain order of checks: provenance, approval at a node, what a person lifts, and auditing."""

import pytest

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal import rulings
from remit.core.journal.commands import AskHuman, CallTool
from remit.core.journal.proposed_call import Provenance
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import Boundary, BoundaryMode, Condition, DecisionRight, Exhaustion, Rate, Then
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import user_message
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import STANDARD_RULES, Graph, NodeKind
from remit.kernel.authority.authorize import (
    AUDITED,
    CHECKS,
    FIRM_CHECKS,
    authorize,
    checks_left,
    comes_from_a_trusted_origin,
    lifted_by_a_person,
    needs_no_approval,
    passes_filters,
)
from remit.kernel.authority.verdict import ALLOWED, Judgement, ask_person, refuse
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import fold_journal
from tests.simulation.scenarios import PARAMETERS, TOOLS
from tests.unit.kernel.builders import Run, bound, manifest_of, wants

REACHES = [Provenance, BoundaryMode]

ASK = ToolDefinition("ask", "ask a person", PARAMETERS, effect=Effect.NONE, asks_under=Ending.MISSING_INFO)
FREE = Boundary(
    "free",
    approval_effects=(),
    approval_categories=(),
    budget=Budget(side_effects=3),
    authority=Authority(),
)


def act(**rules: object) -> Graph:
    """A chat whose tool node has rules of its own."""
    chat = chat_graph()
    own = replace(STANDARD_RULES, **rules)
    return replace(
        chat, nodes=tuple(replace(node, rules=own) if node.kind is NodeKind.TOOL else node for node in chat.nodes)
    )


# Verdicts.


def test_a_verdict_is_allow_refuse_or_ask() -> None:
    assert ALLOWED.judgement is Judgement.ALLOW
    assert refuse(Refusal.UNSAFE, "why").judgement is Judgement.REFUSE
    assert refuse(ErrorCode.TOOL_NOT_FOUND, "why").code == "TOOL_NOT_FOUND"
    asked = ask_person("why", "REPEAT")
    assert (asked.judgement, asked.code, asked.reason) == (Judgement.ASK, "REPEAT", "why")


# Provenance.


def test_a_change_whose_values_are_bound_passes_and_one_that_nobody_traced_asks() -> None:
    tally = Run(manifest_of(boundary=FREE)).tally()
    assert authorize(bound(wants("write")), tally) is ALLOWED
    assert authorize(wants("write"), tally).judgement is Judgement.ASK


def test_what_the_gate_objects_to_is_asked_with_its_objection_and_its_reasons() -> None:
    tally = Run(manifest_of(boundary=FREE)).tally()
    unbound = replace(wants("write"), provenance=Provenance.UNBOUND, objection="PROVENANCE_UNBOUND")
    verdict = authorize(replace(unbound, reasons=("n is nowhere", "copy it")), tally)
    assert (verdict.judgement, verdict.code, verdict.reason) == (
        Judgement.ASK,
        "PROVENANCE_UNBOUND",
        "n is nowhere; copy it",
    )
    assert authorize(unbound, tally).reason == "PROVENANCE_UNBOUND"


def test_a_call_that_a_person_has_turned_away_stays_turned_away() -> None:
    tally = Run(manifest_of(boundary=FREE)).tally()
    refused = replace(wants("write"), provenance=Provenance.REFUSED)
    verdict = authorize(refused, tally)
    assert (verdict.judgement, verdict.code) == (Judgement.REFUSE, Refusal.APPROVAL_REJECTED)
    assert verdict.reason == "a person said no to exactly this call"
    assert authorize(replace(refused, reasons=("grace said no",)), tally).reason == "grace said no"


@pytest.mark.parametrize("boundary", [FREE, STANDARD], ids=lambda one: one.name)
def test_a_read_to_which_the_gate_objects_is_asked_about_in_every_boundary(boundary: Boundary) -> None:
    manifest, tools = manifest_of(boundary=boundary), {tool.name: tool for tool in TOOLS}
    for name, network in (("fetch", True), ("look", None)):
        silent = replace(manifest, tools=tuple(replace(tool, network=network) for tool in (tools[name],)))
        unbound = replace(wants(name), provenance=Provenance.UNBOUND, objection="PRIVATE_FLOW")
        assert authorize(unbound, Run(silent).tally()).code == "PRIVATE_FLOW"
    assert comes_from_a_trusted_origin not in checks_left(tools["look"], manifest)
    delegating = replace(tools["look"], network=None, delegates=True)
    assert comes_from_a_trusted_origin not in checks_left(delegating, manifest), "what a child does is its own"


def test_a_call_that_a_filter_turned_away_is_refused_with_its_reason() -> None:
    manifest = manifest_of(filters=("polite",))
    verdict = authorize(replace(wants("look"), filtered="not like this"), Run(manifest).tally())
    assert (verdict.code, verdict.reason) == (Refusal.FILTERED, "not like this")
    assert authorize(wants("look"), Run(manifest).tally()) is ALLOWED
    assert passes_filters in checks_left(TOOLS[0], manifest)
    assert passes_filters not in checks_left(TOOLS[0], manifest_of())


# Approval at a node.


def test_a_node_may_demand_a_person_for_every_call_but_a_question_to_one() -> None:
    run = Run(manifest_of(graph=act(approval=True), tools=(*TOOLS, ASK)))
    run.proposes(wants("look"), wants("ask"))
    asked = run.open(AskHuman)
    assert [question.tool for question in asked] == ["", "ask"]
    assert asked[0].packet is not None
    assert asked[0].packet.reasons == ("node act demands approval of every call",)
    run.approves()
    assert [command.tool for command in run.open(CallTool)] == ["look"]


def test_where_one_node_demands_approval_every_call_is_looked_at() -> None:
    assert needs_no_approval in checks_left(TOOLS[0], manifest_of(graph=act(approval=True)))
    assert needs_no_approval not in checks_left(TOOLS[0], manifest_of(graph=act()))


# What a person lifts.


def lifted(tool: str, **parts: object) -> dict[Dimension, int]:
    tally = Run(manifest_of(**parts)).tally()  # type: ignore[arg-type]
    return {Dimension(dimension): amount for dimension, amount in lifted_by_a_person(wants(tool), tally)}


def test_a_person_lifts_the_one_side_effect_of_a_run_that_has_none() -> None:
    assert lifted("write") == {Dimension.SIDE_EFFECTS: 1}
    assert lifted("write", boundary=Boundary(budget=Budget(side_effects=1))) == {}
    assert lifted("look") == {}


def test_nothing_is_lifted_for_a_child() -> None:
    asking = (("side_effects", Exhaustion.ASK),)
    assert lifted("send_child", boundary=Boundary(exhaustion=asking)) == {}


def test_what_a_spent_dimension_lacks_is_lifted_where_the_boundary_leaves_it_to_a_person() -> None:
    asking = Boundary("asking", exhaustion=(("tool_calls", Exhaustion.ASK),), budget=Budget(tool_calls=1))
    run = Run(manifest_of(boundary=asking))
    assert lifted_by_a_person(wants("look", 1), run.tally()) == ()
    run.proposes(wants("look", 1), wants("look", 2))
    assert len(run.open(CallTool)) == 1
    packet = run.question().packet
    assert packet is not None
    assert packet.releases == ((int(Dimension.TOOL_CALLS), 1),)
    assert packet.reasons == ("nothing is left of tool_calls; a person may let this one call through",)
    run.approves()
    assert (len(run.open(CallTool)), run.state.spending.caps[Dimension.TOOL_CALLS]) == (2, 2)


def test_a_cap_of_zero_forbids_and_is_not_spent() -> None:
    never = Boundary(exhaustion=(("tool_calls", Exhaustion.ASK),), budget=Budget(tool_calls=0))
    assert authorize(wants("look"), Run(manifest_of(boundary=never)).tally()).code == Refusal.BUDGET_EXHAUSTED


def test_a_dimension_that_nobody_is_asked_about_is_refused_beside_one_that_is() -> None:
    asking = Boundary(exhaustion=(("tool_calls", Exhaustion.ASK),), budget=Budget(tool_calls=1, external_api_calls=1))
    run = Run(manifest_of(boundary=asking))
    run.proposes(wants("fetch", 1))
    verdict = authorize(wants("fetch", 2), run.tally())
    assert (verdict.code, verdict.dimension) == (Refusal.BUDGET_EXHAUSTED, Dimension.EXTERNAL_API_CALLS)


# Auditing.


def auditing(**parts: object) -> Boundary:
    return replace(Boundary("watching", mode=BoundaryMode.AUDIT, budget=Budget(side_effects=5)), **parts)


NIGHT = Condition("night", "true", Then.STOP)
DEAR = replace(TOOLS[1], name="dear", alternative="look")


@pytest.mark.parametrize(
    ("tool", "boundary", "judgement", "code"),
    [
        ("look", auditing(allowed_tools=()), Judgement.REFUSE, Refusal.PERMISSION_DENIED),
        ("look", auditing(decisions=()), Judgement.REFUSE, Refusal.PERMISSION_DENIED),
        ("write", auditing(writes=()), Judgement.REFUSE, Refusal.PERMISSION_DENIED),
        ("secret", auditing(), Judgement.REFUSE, Refusal.PERMISSION_DENIED),
        ("look", auditing(conditions=(NIGHT,)), Judgement.REFUSE, Refusal.UNSAFE),
        ("look", auditing(rates=(Rate("*", 0, 1_000),)), Judgement.REFUSE, Refusal.RATE_LIMITED),
        ("dear", auditing(), Judgement.REFUSE, Refusal.LEAST_TOOL),
        ("write", auditing(), Judgement.ASK, ""),
    ],
)
def test_a_boundary_that_only_audits_records_what_it_would_have_done_and_lets_the_call_pass(
    tool: str, boundary: Boundary, judgement: Judgement, code: str
) -> None:
    run = Run(manifest_of(boundary=boundary, tools=(*TOOLS, DEAR)))
    run.proposes(wants(tool))
    assert [command.tool for command in run.open(CallTool)] == [tool]
    first = run.all(rulings.CallNoted)[0]
    assert (first.tool, first.call_id, first.judgement, first.code) == (tool, "call", judgement, code)
    assert first.reason


def test_every_objection_of_an_auditing_boundary_is_recorded_and_not_only_the_first() -> None:
    run = Run(manifest_of(boundary=auditing(allowed_tools=())))
    run.proposes(wants("secret"), wants("write", 2))
    assert [(noted.tool, noted.judgement) for noted in run.all(rulings.CallNoted)] == [
        ("secret", "refuse"),
        ("secret", "refuse"),
        ("write", "refuse"),
        ("write", "ask"),
        ("write", "ask"),
    ]
    assert run.state.counts.denials == 0


def test_what_keeps_a_run_whole_is_enforced_while_its_boundary_only_audits() -> None:
    few = SystemRequest((user_message("please"),), tools=("look", "finish", "ask_child"))
    manifest = manifest_of(boundary=auditing(budget=Budget(tool_calls=3, depth=0)), request=few, filters=("polite",))
    run = Run(manifest)
    tally = run.tally()
    broken = wants("look", violations=(Violation("/n", "type", "is not a number"),))
    filtered = replace(wants("look"), filtered="no")
    said = [
        authorize(call, tally).code for call in (wants("nothing"), broken, filtered, wants("write"), wants("ask_child"))
    ]
    assert said == [
        ErrorCode.TOOL_NOT_FOUND,
        ErrorCode.CONSTRAINT_SCHEMA_INVALID,
        Refusal.FILTERED,
        Refusal.NOT_OFFERED,
        Refusal.DEPTH_EXCEEDED,
    ]
    tally.repeats = ((wants("look").tool, wants("look").arguments_hash),) * 2
    assert authorize(wants("look"), tally).code == Refusal.REPEATED_CALL
    tally.left[Dimension.TOOL_CALLS] = 0
    assert authorize(wants("look", 7), tally).code == Refusal.BUDGET_EXHAUSTED
    assert tally.decisions == []


def test_what_a_person_would_have_lifted_is_lifted_and_noted_where_nobody_is_asked() -> None:
    run = Run(manifest_of(boundary=auditing(budget=Budget(side_effects=0))))
    run.proposes(wants("write", 1), wants("write", 2))
    assert len(run.open(CallTool)) == 2
    released = [noted.releases for noted in run.all(rulings.CallNoted) if noted.releases]
    assert released == [((int(Dimension.SIDE_EFFECTS), 1),)] * 2
    assert (run.state.spending.caps[Dimension.SIDE_EFFECTS], run.state.spending.left[Dimension.SIDE_EFFECTS]) == (2, 0)
    assert fold_journal(run.journal) == run.state


def test_only_checks_of_the_boundary_are_audited() -> None:
    assert set(CHECKS) > AUDITED
    enforced = [check.__name__ for check in CHECKS if check not in AUDITED]
    assert enforced == [
        "is_registered",
        "passes_filters",
        "has_valid_arguments",
        "is_offered",
        "is_within_scopes",
        "is_within_depth",
        "is_within_budget",
        "is_not_a_repeat",
        "was_not_done_before",
    ]


def test_an_enforcing_boundary_notes_nothing() -> None:
    run = Run(manifest_of(boundary=Boundary(allowed_tools=())))
    run.proposes(wants("look"))
    assert (run.all(rulings.CallNoted), run.open(CallTool)) == ([], [])


def test_what_a_person_approved_is_judged_by_the_firm_checks_in_either_mode() -> None:
    strict = Boundary("few", allowed_tools=("look",), decisions=(DecisionRight.CHOOSE_TOOLS,))
    tally = Run(manifest_of(boundary=strict)).tally()
    assert authorize(wants("write"), tally, FIRM_CHECKS).code == Refusal.PERMISSION_DENIED
    four = Boundary(four_eyes=(ToolCategory.PAYMENT,))
    assert authorize(wants("write"), Run(manifest_of(boundary=four)).tally(), FIRM_CHECKS) is ALLOWED
