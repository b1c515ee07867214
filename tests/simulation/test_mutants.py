"""Break each law on purpose, in the kernel or beside it, and see the simulation find it and name its seed."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import pytest

from remit.core.failure import Ending, ErrorCode, RemitError
from remit.core.journal import arrivals
from remit.core.journal.arrivals import ModelAnswered, ToolFailed, ToolOutcomeLost
from remit.core.journal.commands import CallTool, StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    ARGUMENTS_INVALID,
    LEFT_BY_CHILD,
    REFUSED_IN_CHILD,
    UNVERIFIED,
    FeedbackTaken,
    QuestionSettled,
    Rung,
    VoteCounted,
)
from remit.core.journal.turn import Turn
from remit.core.limits.budget import COUNTERS, Charges, Dimension
from remit.core.limits.tools import ToolResult
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest
from remit.core.work.graph import Graph, Node, NodeOutcome
from remit.kernel import children, decide
from remit.kernel.authority import authorize, call_rulings
from remit.kernel.budget import spend
from remit.kernel.fold import apply as applying
from remit.kernel.fold import derived, fold_calls, fold_decisions
from remit.kernel.graph import join
from remit.kernel.people.clock_stop import UNTOLD
from remit.kernel.results import doubt, endings
from remit.kernel.results.proven_effects import unproven_effects
from remit.kernel.rules import child, human, model, signal, tool
from remit.kernel.state import CallKey, RunState
from remit.kernel.tally import Tally
from remit.orchestrate.executors import reports
from remit.orchestrate.facts import facts
from remit.orchestrate.facts.schema_checks import Mended
from remit.orchestrate.loop import durability, offspring, recover, runner
from remit.testing import hands, pattern_hands
from remit.testing.runs import LawBroken
from remit.testing.trouble import Faults
from remit.testing.world import Law, SimulatedWorld
from tests.simulation.laws.every_law import LAWS, keep_the_law
from tests.simulation.scenarios import scenario
from tests.simulation.tree_scenarios import hurried_scenario

# A mutant that survives this many worlds is one the laws would miss in practice.
SEEDS = 3000

# Where mutants that few worlds notice were found. These worlds are looked at first, and all others if they have changed.
FOUND_AT: Mapping[str, int] = {
    "a delegation that was refused is forgotten": 493,
    "a paused run goes on": 13,
    "a proposal of a tool that nobody knows is forgotten": 232,
    "a proposal with invalid arguments is forgotten": 505,
    "a resumed plan begins its step anew": 893,
    "a timeout counts as an outcome": 13,
    "a timeout that is reported again is doubted again": 210,
    "a tool that failed within counts as one that did nothing": 238,
    "a turn counts what the fold does not": 45,
    "a vote is won by the candidate that was first": 110,
    "an effect that nothing could refuse is committed": 22,
    "an effect that nothing verified earns SUCCESS": 25,
    "an unknown effect is forgotten": 499,
    "another attempt gets another key": 13,
    "calls of one answer see the same untouched budget": 228,
    "children get a deadline that did not stand still": 20,
    "decide changes the state it reads": 115,
    "one outcome is heard as that of every call": 1471,
    "recovery repeats everything": 22,
    "what a child left undone is forgotten": 856,
    "what is unsafe is refused like anything else": 492,
    "whatever returns is committed": 13,
    "who has approved may approve again": 408,
}

admit_outcome = decide._admit_outcome
leave_nothing_open = endings._leave_nothing_open
# The law that the world itself checks, with every arrival that is not judged.
CHECKED_BY_THE_WORLD = "illegal_arrivals_change_nothing"


def _instead(module: object, name: str, replacement: object) -> Any:
    return mock.patch.object(module, name, replacement)


def _rule(kind: type[arrivals.Arrival], rule: Callable[[Tally, Any], str | None]) -> Any:
    return _instead(decide, "RULES", {**decide.RULES, kind: rule})


def _lacking(replacement: Callable[[Tally, Charges], Dimension | None]) -> tuple[Any, ...]:
    places = (spend, model, authorize, call_rulings, doubt, human, child)
    return tuple(_instead(place, "lacking", replacement) for place in places if hasattr(place, "lacking"))


def _forgets_promises(tally: Tally, charges: Charges) -> Dimension | None:
    state = tally.state
    for dimension, amount in charges:
        if state.used[dimension] + state.reserved[dimension] + amount > state.spending.caps[dimension]:
            return Dimension(dimension)
    return None


def _changes_the_state(tally: Tally, arrival: ModelAnswered) -> str | None:
    tally.state.counts.iterations += 1
    return model.on_answered(tally, arrival)


def _has_whims() -> Callable[[Tally, ModelAnswered], str | None]:
    count = iter(range(10**9))

    def rule(tally: Tally, arrival: ModelAnswered) -> str | None:
        tally.rule(FeedbackTaken(str(next(count))))
        return model.on_answered(tally, arrival)

    return rule


def _guesses(tally: Tally, arrival: ToolFailed) -> str | None:
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallTool)
    call_rulings.settle_call(tally, command, Rung.OBSERVED, evidence=arrival.evidence, code=arrival.code)
    tally.say(arrival.tokens_bound)
    return join.join_outcome(tally)


def _hopes(tally: Tally, arrival: ToolOutcomeLost) -> str | None:
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallTool)
    call_rulings.settle_call(tally, command, Rung.COMMITTED, verifier="hope", evidence=b"hope")
    return join.join_outcome(tally)


def _without(*codes: str) -> Callable[[Tally], Mapping[CallKey, str]]:
    """The unproven effects but those of one kind."""
    return lambda tally: {key: why for key, why in unproven_effects(tally).items() if why not in codes}


def _leaves_a_mark(state: RunState, arrival: arrivals.Arrival, command_id: str) -> None:
    state.counts.denials += 1
    admit_outcome(state, arrival, command_id)


def _keeps_its_orders(tally: Tally) -> None:
    orders = [*tally.issued]
    leave_nothing_open(tally)
    tally.issued[:0] = orders


def _keeps_the_question(state: RunState, ruling: QuestionSettled, arrival: arrivals.Arrival) -> None:
    state.people.asking -= 1


def _says_nothing(tally: Tally, call: ProposedCall, code: str, reason: str) -> None:
    tally.rule(FeedbackTaken(code))


def _doubles_the_lease(
    parent: Manifest, command: StartChild, graph: Graph, request: SystemRequest | None = None
) -> Manifest:
    lease = tuple((dimension, 2 * amount) for dimension, amount in command.lease)
    return offspring.child_manifest(parent, replace(command, lease=lease), graph, request)


def _forgets_the_lease(
    parent: Manifest, command: StartChild, graph: Graph, request: SystemRequest | None = None
) -> Manifest:
    return replace(offspring.child_manifest(parent, command, graph, request), caps=parent.caps)


def _begins_the_step_anew(tally: Tally, arrival: arrivals.ResumeRequested) -> str | None:
    outcome, node = signal.on_resume(tally, arrival), tally.graph.nodes[tally.node]
    return outcome if outcome is None or node.feed is None else decide.ENTRIES[node.kind](tally, node)


def _hears_the_first(state: RunState, ruling: VoteCounted, arrival: arrivals.Arrival) -> None:
    state.result.answer, state.result.confidence_ppm = state.children.ended[0].text, ruling.confidence_ppm


def _gives_everything_away(tally: Tally, node: Node) -> Charges:
    return tuple((int(dimension), tally.left[dimension]) for dimension in COUNTERS if tally.left[dimension] > 0)


def _forgets_the_head(state: RunState, turn: Turn, head: bytes) -> None:
    applying.apply(state, turn, b"")


def _only_claims(self: hands.Hands, run_id: str, command: CallTool) -> reports.Report:
    return reports.ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))


def _goes_on(tally: Tally, ending: Ending, *why: Any, **named: Any) -> str:
    return NodeOutcome.SETTLED if ending is Ending.UNSAFE_DETECTION else endings.head_for(tally, ending, *why, **named)


# What is broken -> the law that must say so, and how it is broken.
MUTANTS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "decide changes the state it reads": (
        "folding_gives_the_live_state",
        (_rule(ModelAnswered, _changes_the_state), _instead(decide, "_admit_outcome", admit_outcome)),
    ),
    "nodes never join and timers are not heard": (
        "every_run_ends_or_waits",
        (
            _instead(tool, "join_outcome", lambda tally, content="": None),
            _rule(arrivals.TimerFired, lambda tally, arrival: None),
        ),
    ),
    "budgets have no limit": ("no_budget_is_overshot", _lacking(lambda tally, charges: None)),
    "calls of one answer see the same untouched budget": ("no_budget_is_overshot", _lacking(_forgets_promises)),
    "the context has no limit": ("no_gauge_is_exceeded", (_instead(model, "_CONTEXT", int(Dimension.INPUT_TOKENS)),)),
    "the deadline is not looked at": (
        "nothing_is_ordered_when_time_is_up",
        (_instead(decide, "is_past_deadline", lambda tally: False),),
    ),
    "children do not say how long they waited": (
        "no_clock_stands_for_work",
        (_instead(hands, "waited_by", lambda state: UNTOLD),),
    ),
    "children get twice their lease": (
        "leases_hold",
        (_instead(pattern_hands, "child_manifest", _doubles_the_lease),),
    ),
    "children may spend as much as their parent": (
        "no_tree_is_overshot",
        (_instead(pattern_hands, "child_manifest", _forgets_the_lease),),
    ),
    "whatever returns is committed": (
        "only_verified_observations_are_committed",
        (_instead(tool, "rung_reached", lambda arrival: Rung.COMMITTED),),
    ),
    "a lost effect is assumed to have happened": (
        "only_verified_observations_are_committed",
        (_rule(ToolOutcomeLost, _hopes),),
    ),
    "a tool claims what it did not do": (
        "what_is_committed_really_happened",
        (_instead(hands.Hands, "_really_call", _only_claims),),
    ),
    "nobody is asked": (
        "no_mutating_command_without_its_approval",
        (_instead(tool, "authorize", lambda call, tally: authorize.authorize(call, tally, authorize.FIRM_CHECKS)),),
    ),
    "who has approved may approve again": (
        "four_eyes_are_two_people",
        (_instead(human, "is_among", lambda name, names: False),),
    ),
    "what is unsafe is refused like anything else": ("nothing_unsafe_goes_on", (_instead(tool, "head_for", _goes_on),)),
    "an answered question stays open": (
        "an_approval_is_used_once",
        (_instead(applying, "APPLIED", {**fold_decisions.APPLIED, QuestionSettled: _keeps_the_question}),),
    ),
    "recovery repeats everything": (
        "no_mutating_command_is_issued_again",
        (_instead(recover, "is_safe_to_repeat", lambda state, command: command.id not in state.commands.doubted),),
    ),
    "a tool that failed within counts as one that did nothing": (
        "an_unknown_outcome_is_never_success",
        (_instead(tool, "leaves_open", lambda arrival: arrival.code is ErrorCode.TOOL_TIMEOUT),),
    ),
    "an unknown effect is forgotten": (
        "an_unknown_outcome_is_never_success",
        (_instead(endings, "unknown_effects", lambda tally: {}),),
    ),
    "another attempt gets another key": (
        "no_mutating_command_is_issued_again",
        (_instead(call_rulings, "key_of_failed_attempt", lambda state, tool, arguments_hash: f"{state.run_id}:again"),),
    ),
    "a timeout counts as an outcome": ("an_unknown_outcome_is_never_success", (_rule(ToolFailed, _guesses),)),
    "words beside calls are not held to the contract": (
        "success_is_earned",
        (_instead(facts.Facts, "_beside_calls", lambda self, state, said: Mended(said)),),
    ),
    "a resumed plan begins its step anew": (
        "no_finished_step_is_done_again",
        (_rule(arrivals.ResumeRequested, _begins_the_step_anew),),
    ),
    "a vote is won by the candidate that was first": (
        "the_answer_is_the_winners",
        (_instead(applying, "APPLIED", {**fold_decisions.APPLIED, VoteCounted: _hears_the_first}),),
    ),
    "every replica gets all that is left": (
        "replicas_stay_within_their_parent",
        (_instead(child, "share_of", _gives_everything_away), _instead(child, "lacking", lambda tally, charges: None)),
    ),
    "an effect that nothing could refuse is committed": (
        "only_verified_observations_are_committed",
        (_instead(derived, "_verifier", lambda tool: "schema"),),
    ),
    "an effect that nothing verified earns SUCCESS": (
        "success_is_earned",
        (_instead(endings, "unproven_effects", _without(UNVERIFIED)),),
    ),
    "a proposal of a tool that nobody knows is forgotten": (
        "success_is_earned",
        (_instead(endings, "unproven_effects", _without(ErrorCode.TOOL_NOT_FOUND)),),
    ),
    "a proposal with invalid arguments is forgotten": (
        "success_is_earned",
        (_instead(endings, "unproven_effects", _without(ARGUMENTS_INVALID)),),
    ),
    "what a child left undone is forgotten": (
        "success_is_earned",
        (_instead(endings, "unproven_effects", _without(LEFT_BY_CHILD, REFUSED_IN_CHILD)),),
    ),
    "a delegation that was refused is forgotten": (
        "success_is_earned",
        (_instead(call_rulings, "may_change", lambda tool: tool.effect.is_mutating),),
    ),
    "claims are not checked": ("success_is_earned", (_instead(endings, "unproven_effects", lambda tally: {}),)),
    "decide has whims": ("deciding_again_gives_the_same", (_rule(ModelAnswered, _has_whims()),)),
    "illegal arrivals leave a mark": (CHECKED_BY_THE_WORLD, (_instead(decide, "_admit_outcome", _leaves_a_mark),)),
    "turns forget the one before": ("the_chain_holds", (_instead(runner, "apply", _forgets_the_head),)),
    "a turn counts what the fold does not": (
        "the_tally_agrees_with_the_fold",
        (_instead(tool, "stops_loop", lambda arrival, tool: False),),
    ),
    "nobody notices that a run has ended": (
        "a_turn_is_kept_for_every_process_that_relies_on_it",
        (_instead(durability, "WEIGHTY", frozenset()),),
    ),
    "steps are counted as depth": (
        "an_ended_run_holds_nothing",
        (_instead(fold_decisions, "_STEPS", int(Dimension.DEPTH)),),
    ),
    "what a run has taken back is performed": (
        "only_what_turns_order_is_done",
        (_instead(endings, "_leave_nothing_open", _keeps_its_orders),),
    ),
    "a paused run goes on": ("a_paused_run_orders_nothing", (_instead(decide, "AT_ONCE", (None, *Ending)),)),
    "refusals are not told": ("every_call_is_answered", (_instead(tool, "refuse_call", _says_nothing),)),
    "a timeout that is reported again is doubted again": (
        "nobody_is_asked_twice_about_one_call",
        (_instead(decide, "_knows_nothing", lambda state, arrival: False),),
    ),
    "one outcome is heard as that of every call": (
        "calls_are_told_as_they_came",
        (_instead(fold_calls, "_ATTEMPTED", None),),
    ),
    "children get a deadline that did not stand still": (
        "children_inherit_the_deadline",
        (_instead(children, "deadline_at_ms", lambda tally: tally.state.clock.deadline_at_ms),),
    ),
    "endings release nothing": (
        "an_ended_run_holds_nothing",
        (_instead(endings, "_leave_nothing_open", lambda tally: None),),
    ),
}


# Worlds in which a mutant shows sooner than in any weather.
SHOWS_IN: Mapping[str, Faults] = {
    "children get a deadline that did not stand still": Faults(signal=0.4),
    "one outcome is heard as that of every call": Faults(delay=0.9, clock_jump=0.05),
}


# Mutants that show in other worlds than these scenarios.
SHOWS_WHERE: Mapping[str, Callable[[int], SimulatedWorld]] = {
    "children do not say how long they waited": hurried_scenario,
}


def test_every_law_has_a_mutant_that_breaks_it() -> None:
    assert {law for law, _ in MUTANTS.values()} == {*LAWS, CHECKED_BY_THE_WORLD}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_simulation_finds_the_mutant_and_names_its_seed(mutant: str) -> None:
    law, patches = MUTANTS[mutant]
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        play = SHOWS_WHERE.get(mutant, partial(scenario, faults=SHOWS_IN.get(mutant)))
        tried = (_broken_law(seed, law, play) for seed in (FOUND_AT.get(mutant, 0), *range(SEEDS)))
        found = next((broken for broken in tried if broken is not None), None)
    assert found is not None, f"{SEEDS} worlds did not notice that {mutant}"
    assert f"seed {found.seed}" in str(found)
    keep_the_law(play(found.seed), _only(law))  # Without the mutant, its seed is healthy.


def _broken_law(seed: int, law: str, play: Callable[[int], SimulatedWorld]) -> LawBroken | None:
    """How a law is broken with this seed. A mutant may also break what the kernel asserts; that is not what is looked for.

    Anything else is a mistake of the mutant, or of a law, and must be seen.
    """
    try:
        keep_the_law(play(seed), _only(law))
    except LawBroken as broken:
        return broken if broken.law == law else None
    except (RemitError, AssertionError):
        return None
    return None


def _only(law: str) -> Mapping[str, Law]:
    """A law alone; every one of them where the world itself checks it."""
    return {law: LAWS[law]} if law in LAWS else LAWS
