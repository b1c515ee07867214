"""The ordered checks on a proposed call: allow, refuse or ask."""

import pytest

from remit.core.failure import ErrorCode, Refusal
from remit.core.journal import rulings
from remit.core.journal.commands import CallTool
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.limits.boundary import Boundary, BoundaryMode, Exhaustion
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import Effect, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest
from remit.core.run.messages import user_message
from remit.core.run.principal import Principal
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import STANDARD_RULES, NodeKind, ToolRules
from remit.kernel.authority.authorize import (
    CHECKS,
    FIRM_CHECKS,
    IDENTICAL_CALLS_MAX,
    STANDING,
    authorize,
    checks_left,
    comes_from_a_trusted_origin,
    has_permission,
    is_within_depth,
    reasons_to_ask,
)
from remit.kernel.authority.verdict import ALLOWED, Judgement, Verdict
from remit.kernel.results.feasible import why_never
from remit.kernel.state import pinned
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import TOOLS
from tests.unit.kernel.builders import Run, manifest_of, wants

REACHES = [Judgement]

AUTO = ToolChoice()

OBJECT = {"type": "object"}


def judged(call: ProposedCall, manifest: Manifest | None = None) -> Verdict:
    return authorize(call, Run(manifest).tally())


def asking(*, tools: tuple[str, ...] = (), choice: ToolChoice = AUTO) -> Manifest:
    return manifest_of(request=SystemRequest((user_message("please"),), tools=tools, tool_choice=choice))


def test_a_read_within_the_boundary_is_allowed() -> None:
    assert judged(wants("look")) is ALLOWED


def test_a_tool_nobody_registered_is_refused() -> None:
    verdict = judged(wants("x" * 500))
    assert (verdict.judgement, verdict.code) == (Judgement.REFUSE, ErrorCode.TOOL_NOT_FOUND)
    assert len(verdict.reason) < 200


def test_arguments_that_break_the_schema_are_refused_with_the_first_reason() -> None:
    broken = (Violation("/n", "type", "is not a number"), Violation("", "required", "n is missing"))
    assert judged(wants("look", violations=broken[:1])).reason == "arguments of look: /n: is not a number"
    assert judged(wants("look", violations=broken[1:])).reason == "arguments of look: /: n is missing"
    assert judged(wants("look", violations=broken)).reason.endswith("is not a number (and 1 more)")


def test_a_tool_outside_the_boundary_is_denied() -> None:
    verdict = judged(wants("look"), manifest_of(boundary=Boundary("narrow", allowed_tools=("fetch",))))
    assert verdict == Verdict(Judgement.REFUSE, Refusal.PERMISSION_DENIED, "boundary narrow does not allow tool look")


@pytest.mark.req("3.10")
def test_a_tool_the_request_does_not_list_is_not_offered() -> None:
    assert judged(wants("fetch"), asking(tools=("look",))).code == Refusal.NOT_OFFERED
    assert judged(wants("look"), asking(tools=("look",))) is ALLOWED
    assert judged(wants("look"), asking(tools=())) is ALLOWED


@pytest.mark.req("3.23")
@pytest.mark.parametrize(
    ("choice", "look", "fetch"),
    [
        (ToolChoice(ToolChoiceMode.AUTO), "", ""),
        (ToolChoice(ToolChoiceMode.REQUIRED), "", ""),
        (ToolChoice(ToolChoiceMode.NONE), Refusal.NOT_OFFERED, Refusal.NOT_OFFERED),
        (ToolChoice(ToolChoiceMode.FUNCTION, "look"), "", Refusal.NOT_OFFERED),
    ],
)
def test_the_tool_choice_says_which_calls_are_offered(choice: ToolChoice, look: str, fetch: str) -> None:
    assert [judged(wants(tool), asking(choice=choice)).code for tool in ("look", "fetch")] == [look, fetch]


def test_a_permission_the_boundary_lacks_is_denied() -> None:
    assert judged(wants("secret")).code == Refusal.PERMISSION_DENIED
    assert judged(wants("secret"), manifest_of(boundary=Boundary("wide", permissions=("vault.open",)))) is ALLOWED


@pytest.mark.parametrize("mode", BoundaryMode)
def test_no_boundary_gives_a_principal_what_its_scopes_do_not(mode: BoundaryMode) -> None:
    boundary = Boundary("wide", permissions=("vault.open",), mode=mode)
    ada = Principal("acme", "ada", ("vault.open",))
    assert judged(wants("secret"), replace(manifest_of(boundary=boundary), principal=ada)) is ALLOWED
    verdict = judged(wants("secret"), replace(manifest_of(boundary=boundary), principal=replace(ada, scopes=("x",))))
    reason = "tool secret needs permission vault.open, which ada of acme lacks"
    assert verdict == Verdict(Judgement.REFUSE, Refusal.PERMISSION_DENIED, reason)


def test_a_run_that_must_call_what_its_principal_may_not_is_impossible_from_the_start() -> None:
    manifest = manifest_of(boundary=Boundary("wide", permissions=("vault.open",)))
    assert why_never("secret", manifest) == ""
    assert "which ada of acme lacks" in why_never("secret", replace(manifest, principal=Principal("acme", "ada")))


def test_a_delegate_of_a_run_without_a_model_is_refused_before_anything_begins() -> None:
    manifest = replace(manifest_of(), models=())
    child = next(tool for tool in TOOLS if tool.name == "ask_child")
    verdict = STANDING[is_within_depth](child, manifest)
    assert STANDING[is_within_depth](TOOLS[0], manifest) is ALLOWED
    assert (verdict.judgement, verdict.code) == (Judgement.REFUSE, ErrorCode.TOOL_UNAVAILABLE)
    assert verdict.reason == "ask_child delegates to a model, and this run has none; give it an engine"


def test_a_delegate_beyond_the_depth_is_refused() -> None:
    deep = replace(manifest_of(), depth=2)
    verdict = judged(wants("ask_child"), deep)
    assert (verdict.code, verdict.reason) == (Refusal.DEPTH_EXCEEDED, "depth=3 exceeds depth_max=2")
    assert judged(wants("ask_child"), replace(deep, depth=1)) is ALLOWED


def test_a_call_that_no_longer_fits_the_budget_is_refused_with_its_dimension() -> None:
    verdict = judged(wants("fetch"), manifest_of(budget=Budget(external_api_calls=0)))
    assert (verdict.code, verdict.dimension) == (Refusal.BUDGET_EXHAUSTED, Dimension.EXTERNAL_API_CALLS)
    assert verdict.reason == "external_api_calls_max=0 leaves nothing for fetch"


def test_no_side_effects_at_all_is_a_persons_to_lift() -> None:
    assert judged(wants("write"), manifest_of(budget=Budget(side_effects=0))).judgement is Judgement.ASK


def test_a_run_that_may_change_nothing_asks_although_every_value_was_traced_and_no_approval_is_demanded() -> None:
    bound = replace(wants("write"), provenance=Provenance.BOUND)
    free = Boundary(approval_effects=(), budget=Budget(side_effects=1))
    assert judged(bound, manifest_of(boundary=free)) is ALLOWED
    verdict = judged(bound, manifest_of(boundary=free, budget=Budget(side_effects=0)))
    assert (verdict.judgement, "may change nothing by itself" in verdict.reason) == (Judgement.ASK, True)


def test_what_a_person_may_not_lift_is_refused_beside_what_they_may() -> None:
    run = ruled(replace(STANDARD_RULES, budget="memory_writes"))
    run.proposes(wants("write"))
    assert run.last(rulings.ToolCallRefused).reason == "memory_writes_max=0 leaves nothing for write"


def test_what_a_child_would_be_leased_is_not_a_persons_to_lift() -> None:
    hiring = ToolDefinition("hire", "", OBJECT, effect=Effect.READ, delegates=True, lease=(("side_effects", 3),))
    verdict = judged(wants("hire"), manifest_of(tools=(hiring,)))
    assert (verdict.code, verdict.dimension) == (Refusal.BUDGET_EXHAUSTED, Dimension.SIDE_EFFECTS)


@pytest.mark.parametrize("cap", [0, 1])
def test_a_side_effect_beyond_its_cap_waits_for_a_person(cap: int) -> None:
    run = Run(manifest_of(boundary=Boundary(budget=Budget(side_effects=cap))))
    for place in range(cap):
        run.proposes(wants("write", place))
        run.approves()
        run.returns()
    run.proposes(wants("write", 9))
    packet = run.question().packet
    assert packet is not None
    assert packet.releases == ((int(Dimension.SIDE_EFFECTS), 1),)
    run.approves()
    assert run.state.spending.caps[Dimension.SIDE_EFFECTS] == cap + 1


def test_side_effects_that_are_spent_are_nobodys_to_lift_where_the_boundary_stops_there() -> None:
    stopping = Boundary(budget=Budget(side_effects=1), exhaustion=(("side_effects", Exhaustion.STOP),))
    run = Run(manifest_of(boundary=stopping))
    run.proposes(wants("write", 1))
    run.approves()
    run.returns()
    assert authorize(wants("write", 2), run.tally()).dimension == Dimension.SIDE_EFFECTS


def test_the_third_identical_call_without_a_change_between_is_a_repeat() -> None:
    run = Run()
    run.proposes(*[wants("look")] * IDENTICAL_CALLS_MAX)
    run.returns()
    run.returns()
    verdict = authorize(wants("look"), run.tally())
    assert (verdict.code, verdict.reason) == (
        Refusal.REPEATED_CALL,
        "look was called 2 times with these arguments and nothing changed",
    )
    assert authorize(wants("look", 2), run.tally()) is ALLOWED


def test_calls_of_one_answer_are_judged_one_after_the_other() -> None:
    tally = Run().tally()
    call = wants("look")
    tally.repeats = ((call.tool, call.arguments_hash),) * 2
    assert authorize(call, tally).code == Refusal.REPEATED_CALL


@pytest.mark.parametrize("tool", ["write", "pay", "put"])
def test_a_change_whose_arguments_nobody_traced_is_a_persons_to_allow(tool: str) -> None:
    verdict = judged(wants(tool), manifest_of(boundary=Boundary("lax", approval_effects=())))
    assert (verdict.judgement, verdict.reason) == (
        Judgement.ASK,
        f"nobody traced where the arguments of {tool} come from",
    )


def test_a_boundary_may_demand_approval_of_reads() -> None:
    strict = manifest_of(boundary=Boundary("strict", approval_effects=(Effect.READ,)))
    assert judged(wants("look"), strict).reason == "boundary strict demands approval of read effects"


def test_a_person_is_told_every_reason_not_only_the_first() -> None:
    assert reasons_to_ask(wants("write"), Run().tally()) == (
        "nobody traced where the arguments of write come from",
        "boundary test demands approval of write effects",
    )
    assert reasons_to_ask(wants("look"), Run().tally()) == ()


@pytest.mark.req("4.33")
def test_a_person_may_overrule_the_past_of_a_fork_provenance_and_approval_and_nothing_else() -> None:
    assert CHECKS[: len(FIRM_CHECKS)] == FIRM_CHECKS
    assert len(CHECKS) == len(FIRM_CHECKS) + 3
    assert authorize(wants("write"), Run().tally(), FIRM_CHECKS) is ALLOWED
    assert authorize(wants("secret"), Run().tally(), FIRM_CHECKS).code == Refusal.PERMISSION_DENIED


def ruled(rules: ToolRules) -> Run:
    chat = chat_graph()
    nodes = tuple(replace(node, rules=rules) if node.kind is NodeKind.TOOL else node for node in chat.nodes)
    return Run(manifest_of(graph=replace(chat, nodes=nodes)))


def test_a_node_may_demand_a_permission_of_its_own() -> None:
    run = ruled(replace(STANDARD_RULES, permission="night.shift"))
    run.proposes(wants("look"))
    assert run.last(rulings.ToolCallRefused).code == Refusal.PERMISSION_DENIED
    assert "night.shift" in run.last(rulings.ToolCallRefused).reason


def test_a_node_may_demand_that_something_is_left_of_another_counter() -> None:
    run = ruled(replace(STANDARD_RULES, budget="memory_writes"))
    run.proposes(wants("look"))
    assert run.last(rulings.ToolCallRefused).reason == "memory_writes_max=0 leaves nothing for look"


def test_no_call_takes_longer_than_its_node_allows() -> None:
    run = ruled(replace(STANDARD_RULES, timeout_ms=700))
    run.proposes(wants("look"))
    assert run.open(CallTool)[0].timeout_ms == 700


MANIFESTS = (
    manifest_of(),
    manifest_of(boundary=Boundary("narrow", allowed_tools=("look", "write"))),
    manifest_of(boundary=Boundary("careful", approval_effects=(Effect.READ, Effect.WRITE))),
    manifest_of(boundary=Boundary("wide", permissions=("vault.open",))),
    manifest_of(budget=Budget(depth=0, tool_calls=0)),
    asking(tools=("look",)),
    asking(choice=ToolChoice(ToolChoiceMode.NONE)),
    asking(choice=ToolChoice(ToolChoiceMode.FUNCTION, "fetch")),
    pinned(ruled(replace(STANDARD_RULES, permission="night.shift")).state),
    replace(manifest_of(boundary=Boundary("wide", permissions=("vault.open",))), principal=Principal("acme", "ada")),
)


@pytest.mark.parametrize("manifest", MANIFESTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_checks_that_are_left_for_a_tool_judge_like_all_of_them(tool: ToolDefinition, manifest: Manifest) -> None:
    tally = Run(manifest).tally()
    for node in range(len(tally.graph.nodes)):
        tally.node = node
        for call in (wants(tool.name), wants(tool.name, violations=(Violation("/n", "type", "is not a number"),))):
            assert authorize(call, tally) == authorize(call, tally, CHECKS)


def test_which_checks_are_left_for_a_tool_is_found_out_with_its_first_call() -> None:
    tally = Run().tally()
    assert tally.state.derived.checks == {}
    authorize(wants("look"), tally)
    authorize(wants("unknown"), tally)
    assert tally.state.derived.checks == {"look": checks_left(TOOLS[0], tally.manifest)}


def test_a_check_that_lets_a_tool_pass_for_good_is_not_asked_about_its_calls() -> None:
    left = checks_left(TOOLS[0], manifest_of())
    assert TOOLS[0].name == "look"
    assert left == tuple(check for check in CHECKS if check not in STANDING)


@pytest.mark.parametrize("tool", TOOLS)
def test_where_arguments_come_from_is_asked_of_every_tool_that_changes_something_or_may_read_outside(
    tool: ToolDefinition,
) -> None:
    is_asked = comes_from_a_trusted_origin in checks_left(tool, manifest_of())
    assert is_asked == (tool.effect.is_mutating or tool.name == "fetch")


def test_a_permission_that_only_one_node_demands_is_looked_at_with_every_call() -> None:
    manifest = pinned(ruled(replace(STANDARD_RULES, permission="night.shift")).state)
    assert has_permission in checks_left(TOOLS[0], manifest)
