"""Laws of boundaries: a boundary further in allows no more, and what is settled once is settled as if asked every time.

A verdict is at least as strict as another when it comes no earlier in: allow, ask, refuse.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remit.core.failure import Refusal
from remit.core.journal.commands import CallModel, StartChild
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import Boundary, BoundaryMode, Condition, DecisionRight, Exhaustion, Rate, Then, narrow
from remit.core.limits.budget import Budget
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads, Trust
from remit.core.limits.tools import MUTATING, Effect, ToolCategory, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.manifest import Manifest
from remit.core.run.messages import user_message
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import STANDARD_RULES, Graph, Node, NodeKind
from remit.kernel.authority.authorize import CHECKS, authorize
from remit.kernel.authority.conditions import TRACED_NAMES
from remit.kernel.authority.verdict import ALLOWED, Judgement, Verdict
from remit.kernel.tally import Tally
from remit.orchestrate.loop.offspring import child_manifest
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import LEASE, PARAMETERS
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

STRICTNESS = {Judgement.ALLOW: 0, Judgement.ASK: 1, Judgement.REFUSE: 2}
NAMES = ("a", "b", "c")
HIRE = ToolDefinition(
    "hire",
    "delegate",
    PARAMETERS,
    effect=Effect.NONE,
    delegates=True,
    lease=(*LEASE, ("side_effects", 1), ("external_api_calls", 1)),
)
PERMISSIONS = ("vault.open", "account.read")


def some(values: type[Enum] | Sequence[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A few of these."""
    return st.lists(st.sampled_from(values), unique=True, max_size=3).map(tuple)


def rarely(strategy: st.SearchStrategy[Any], usual: Any) -> st.SearchStrategy[Any]:
    """Mostly the usual value: a boundary that objects to everything shows nothing."""
    return st.one_of(st.just(usual), st.just(usual), strategy)


@st.composite
def tools(draw: st.DrawFn) -> tuple[ToolDefinition, ...]:
    """Three tools that do anything a tool can do, one that delegates."""
    made = []
    for name in NAMES:
        effect = draw(st.sampled_from(Effect))
        made.append(
            ToolDefinition(
                name,
                "",
                PARAMETERS,
                effect=effect,
                category=draw(st.none() | st.sampled_from(ToolCategory)),
                network=effect is not Effect.NONE and draw(st.booleans()),
                destructive=effect in MUTATING and draw(st.booleans()),
                permissions=draw(rarely(some(PERMISSIONS), ())),
                cost_microusd=draw(st.sampled_from((0, 0, 5))),
                trust=Trust(reads=draw(st.sampled_from(Reads))),
            )
        )
    return (*made, HIRE)


caps = st.none() | st.integers(0, 3)
budgets = st.builds(
    Budget,
    tool_calls=st.sampled_from((None, None, 0, 40)),
    external_api_calls=caps,
    inference_cost_microusd=st.sampled_from((None, None, 0, 3, 4_000_000)),
    side_effects=caps,
    depth=caps,
    memory_writes=st.none() | st.just(0),
)
# Of the call alone: what a condition says of the depth, the hour or what is left may hold of a parent and not of a child.
CONDITIONS = ("changes", "args.n > 2", "args.missing == 1", '"secret" in labels', 'tool == "a" && network', "bound")
conditions = st.lists(
    st.builds(Condition, st.just("c"), st.sampled_from(CONDITIONS), st.sampled_from(Then)), max_size=2
).map(tuple)
rates = st.lists(st.builds(Rate, st.sampled_from((*NAMES, "*")), st.integers(0, 2), st.just(1_000)), max_size=2).map(
    tuple
)


def bounded(**parts: Any) -> Boundary:
    """A boundary that traces calls wherever its conditions ask what only the gate can tell."""
    boundary = Boundary(**parts)
    is_asked = any(name in condition.when for condition in boundary.conditions for name in TRACED_NAMES)
    return replace(boundary, authority=Authority()) if is_asked else boundary


boundaries = st.builds(
    bounded,
    name=st.just("parent"),
    allowed_tools=rarely(some((*NAMES, "hire", "unknown")), None),
    approval_effects=some(Effect),
    permissions=some(PERMISSIONS),
    budget=budgets,
    mode=rarely(st.just(BoundaryMode.AUDIT), BoundaryMode.ENFORCE),
    approval_categories=rarely(some(ToolCategory), ()),
    four_eyes=rarely(some(ToolCategory), ()),
    rates=rarely(rates, ()),
    conditions=st.just(()) | conditions,
    authority=st.none() | st.just(Authority()),
    reads_max=st.sampled_from(Reads),
    writes=rarely(some(StateWrite), None),
    decisions=rarely(some(DecisionRight), None),
    exhaustion=rarely(
        st.lists(
            st.tuples(st.sampled_from(("tool_calls", "side_effects", "external_api_calls")), st.just(Exhaustion.ASK)),
            max_size=2,
        ).map(tuple),
        (),
    ),
)
# Where the budget has room for everything, it hides no other difference.
AMPLE = Budget(tool_calls=200, external_api_calls=50, side_effects=50, depth=3, input_tokens=10**7, output_tokens=10**6)
ample = boundaries.map(lambda boundary: replace(boundary, budget=AMPLE))
CHOICES = (ToolChoiceMode.AUTO, ToolChoiceMode.AUTO, ToolChoiceMode.REQUIRED, ToolChoiceMode.NONE)


class Proposal(NamedTuple):
    """A call as a model may propose it, before it is known what the boundary traces."""

    tool: str
    n: int
    provenance: Provenance
    labels: tuple[str, ...]
    is_broken: bool
    is_filtered: bool

    def call(self, manifest: Manifest) -> ProposedCall:
        """The call with its facts: only what is checked is traced, and only what there are filters for is filtered."""
        broken = (Violation("/n", "type", "is not a number"),) if self.is_broken else ()
        tool = next((tool for tool in manifest.tools if tool.name == self.tool), None)
        is_checked = tool is not None and (tool.network or tool.effect in MUTATING)
        is_traced = is_checked and manifest.boundary.authority is not None
        return replace(
            wants(self.tool, self.n, violations=broken),
            provenance=self.provenance if is_traced else Provenance.UNTRACED,
            objection="REPEAT" if is_traced and self.provenance is Provenance.UNBOUND else "",
            labels=self.labels,
            filtered="no" if self.is_filtered and manifest.filters else "",
        )


proposals = st.builds(
    Proposal,
    st.sampled_from((*NAMES, *NAMES, "hire", "unknown")),
    st.integers(0, 5),
    st.sampled_from((*Provenance, Provenance.BOUND)),
    some(("private", "secret")),
    rarely(st.booleans(), False),
    rarely(st.booleans(), False),
)


def request_of(offered: tuple[str, ...], mode: ToolChoiceMode = ToolChoiceMode.AUTO) -> SystemRequest:
    return SystemRequest(
        (user_message("please"),),
        tools=offered,
        tool_choice=ToolChoice(mode),
        hints=ExecutionHints(timeout_ms=0),
    )


# Every kind of call that the boundaries above tell apart.
PROPOSALS = tuple(
    Proposal(tool, n, provenance, labels, is_broken=False, is_filtered=False)
    for tool in (*NAMES, "hire")
    for n in (0, 5)
    for provenance in Provenance
    for labels in ((), ("secret",))
)


def verdicts_of(manifest: Manifest) -> list[Verdict]:
    state = Run(manifest).state
    return [authorize(proposal.call(manifest), Tally(state, state.at_ms)) for proposal in PROPOSALS]


def assert_at_least_as_strict(outer: Manifest, inner: Manifest) -> None:
    for proposal, above, below in zip(PROPOSALS, verdicts_of(outer), verdicts_of(inner), strict=True):
        assert STRICTNESS[below.judgement] >= STRICTNESS[above.judgement], (proposal, above, below)


# Narrowing.


@given(boundaries | ample, tools(), rarely(some((*NAMES, "hire")), None), budgets)
def test_a_narrowed_boundary_judges_every_call_at_least_as_strictly(
    boundary: Boundary,
    registered: tuple[ToolDefinition, ...],
    offered: tuple[str, ...] | None,
    budget: Budget,
) -> None:
    outer = manifest_of(boundary=boundary, tools=registered)
    inner = manifest_of(boundary=narrow(boundary, tools=offered, budget=budget), tools=registered)
    assert_at_least_as_strict(outer, inner)


@given(boundaries | ample, tools(), some((*NAMES, "hire")), st.sampled_from(CHOICES), budgets)
def test_a_request_only_ever_narrows_what_its_boundary_allows(
    boundary: Boundary,
    registered: tuple[ToolDefinition, ...],
    offered: tuple[str, ...],
    mode: ToolChoiceMode,
    budget: Budget,
) -> None:
    outer = manifest_of(boundary=boundary, tools=registered)
    inner = manifest_of(boundary=boundary, tools=registered, request=request_of(offered, mode), budget=budget)
    assert_at_least_as_strict(outer, inner)


def children_of(parent: Manifest) -> list[Manifest]:
    """The child that a call starts and the one that a node declares, where the kernel starts them at all."""
    calling = Run(parent)
    if calling.open(CallModel):
        calling.proposes(wants("hire"))
    declaring = Run(
        replace(parent, graph=in_line(Node("part", NodeKind.CHILD, prompt="do it", visits_max=1, inner=chat_graph())))
    )
    started = [(run, command) for run in (calling, declaring) for command in run.open(StartChild)]
    return [child_manifest(run.tally().manifest, command, chat_graph()) for run, command in started]


@given(boundaries | ample | ample, tools(), some((*NAMES, "hire")), st.sampled_from(CHOICES))
def test_no_child_may_do_what_its_parent_may_not(
    boundary: Boundary,
    registered: tuple[ToolDefinition, ...],
    offered: tuple[str, ...],
    mode: ToolChoiceMode,
) -> None:
    parent = manifest_of(boundary=boundary, tools=registered, request=request_of(offered, mode))
    children = children_of(parent)
    assume(children)
    for child in children:
        assert_at_least_as_strict(parent, child)
        for grandchild in children_of(child):
            assert_at_least_as_strict(child, grandchild)


def test_children_are_started_under_a_boundary_that_lets_them() -> None:
    """Else the law above would hold of nothing."""
    registered = tuple(
        ToolDefinition(name, "", PARAMETERS, effect=effect)
        for name, effect in zip(NAMES, (Effect.READ, Effect.WRITE, Effect.EXTERNAL), strict=True)
    )
    free = Boundary(approval_effects=(), approval_categories=(), authority=Authority(), budget=AMPLE)
    parent = manifest_of(tools=(*registered, HIRE), boundary=free)
    children = children_of(parent)
    assert len(children) == 2
    for child in children:
        assert child.parent is not None
        allowed = {p.tool for p, said in zip(PROPOSALS, verdicts_of(child), strict=True) if said is ALLOWED}
        assert allowed >= set(NAMES)


def test_what_must_be_tried_first_is_a_matter_of_order_and_not_of_authority() -> None:
    """The one objection that narrowing may lift: a run that may not call the cheaper tool need not try it."""
    dear = ToolDefinition("dear", "", PARAMETERS, effect=Effect.READ, alternative="cheap")
    registered = (dear, ToolDefinition("cheap", "", PARAMETERS, effect=Effect.READ))
    narrower = narrow(Boundary(), tools=("dear",), budget=Budget())
    assert authorize(wants("dear"), Run(manifest_of(tools=registered)).tally()).code == Refusal.LEAST_TOOL
    assert authorize(wants("dear"), Run(manifest_of(tools=registered, boundary=narrower)).tally()) is ALLOWED


# What is settled once.


def demanding(**rules: object) -> Graph:
    chat, own = chat_graph(), replace(STANDARD_RULES, **rules)
    return replace(chat, nodes=tuple(replace(n, rules=own) if n.kind is NodeKind.TOOL else n for n in chat.nodes))


GRAPHS = (chat_graph(), chat_graph(), demanding(approval=True), demanding(permission="vault.open"))
ALTERNATIVES = st.sampled_from(("", "", *NAMES))


@given(
    boundaries,
    tools(),
    proposals,
    some((*NAMES, "hire")),
    st.sampled_from(CHOICES),
    st.sampled_from(GRAPHS),
    st.booleans(),
    st.lists(ALTERNATIVES, min_size=3, max_size=3),
    st.lists(st.integers(0, 2), max_size=3),
)
def test_the_checks_left_for_a_tool_say_what_all_of_them_would_say_at_every_node(
    boundary: Boundary,
    registered: tuple[ToolDefinition, ...],
    proposal: Proposal,
    offered: tuple[str, ...],
    mode: ToolChoiceMode,
    graph: Graph,
    is_filtering: bool,
    alternatives: list[str],
    promised: list[int],
) -> None:
    registered = tuple(
        replace(tool, alternative="" if other == tool.name else other)
        for tool, other in zip(registered, (*alternatives, ""), strict=True)
    )
    manifest = manifest_of(
        boundary=boundary,
        tools=registered,
        graph=graph,
        request=request_of(offered, mode),
        filters=("polite",) if is_filtering else (),
    )
    call = proposal.call(manifest)
    state = Run(manifest).state
    for node in range(len(graph.nodes)):
        few, all_of_them = Tally(state, 5_000), Tally(state, 5_000)
        for tally in (few, all_of_them):
            tally.node = node
            tally.repeats = tuple((NAMES[place], call.arguments_hash) for place in promised)
        assert authorize(call, few) == authorize(call, all_of_them, CHECKS)
        assert few.decisions == all_of_them.decisions


@pytest.mark.parametrize("judgement", Judgement)
def test_the_three_judgements_have_an_order(judgement: Judgement) -> None:
    assert sorted(STRICTNESS, key=lambda each: STRICTNESS[each])[STRICTNESS[judgement]] is judgement
