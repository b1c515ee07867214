"""The laws a run must keep, checked on its journal and on what really happened in the world.

Rule 1: a law trusts nothing the kernel computed: it keeps its own books from arrivals, decisions and the manifest.
Rule 2: a broken law names itself, the seed and the turn, so that it can be seen again.
"""

from collections.abc import Mapping
from types import MappingProxyType

from remit.testing.world import Law, SimulatedWorld
from remit.testing.world import keep_the_law as check
from tests.simulation.laws.effects import (
    an_approval_is_used_once,
    an_unknown_outcome_is_never_success,
    calls_are_told_as_they_came,
    four_eyes_are_two_people,
    no_mutating_command_is_issued_again,
    no_mutating_command_without_its_approval,
    nobody_is_asked_twice_about_one_call,
    nothing_unsafe_goes_on,
    only_verified_observations_are_committed,
    success_is_earned,
    what_is_committed_really_happened,
)
from tests.simulation.laws.plans import (
    no_finished_step_is_done_again,
    replicas_stay_within_their_parent,
    the_answer_is_the_winners,
)
from tests.simulation.laws.runs import (
    a_paused_run_orders_nothing,
    a_turn_is_kept_for_every_process_that_relies_on_it,
    an_ended_run_holds_nothing,
    deciding_again_gives_the_same,
    every_call_is_answered,
    every_run_ends_or_waits,
    folding_gives_the_live_state,
    only_what_turns_order_is_done,
    the_chain_holds,
    the_tally_agrees_with_the_fold,
)
from tests.simulation.laws.spending import (
    children_inherit_the_deadline,
    leases_hold,
    no_budget_is_overshot,
    no_clock_stands_for_work,
    no_gauge_is_exceeded,
    nothing_is_ordered_when_time_is_up,
)
from tests.simulation.laws.trees import no_tree_is_overshot

LAWS: Mapping[str, Law] = MappingProxyType(
    {
        law.__name__: law
        for law in (
            folding_gives_the_live_state,
            every_run_ends_or_waits,
            no_budget_is_overshot,
            no_gauge_is_exceeded,
            nothing_is_ordered_when_time_is_up,
            no_clock_stands_for_work,
            leases_hold,
            no_tree_is_overshot,
            only_verified_observations_are_committed,
            what_is_committed_really_happened,
            no_mutating_command_without_its_approval,
            an_approval_is_used_once,
            four_eyes_are_two_people,
            nothing_unsafe_goes_on,
            no_mutating_command_is_issued_again,
            an_unknown_outcome_is_never_success,
            success_is_earned,
            deciding_again_gives_the_same,
            only_what_turns_order_is_done,
            a_turn_is_kept_for_every_process_that_relies_on_it,
            the_chain_holds,
            the_tally_agrees_with_the_fold,
            a_paused_run_orders_nothing,
            every_call_is_answered,
            nobody_is_asked_twice_about_one_call,
            calls_are_told_as_they_came,
            children_inherit_the_deadline,
            an_ended_run_holds_nothing,
            no_finished_step_is_done_again,
            the_answer_is_the_winners,
            replicas_stay_within_their_parent,
        )
    }
)


def keep_the_law(world: SimulatedWorld, laws: Mapping[str, Law] = LAWS) -> None:
    """Check every law on every run of a world; raise LawBroken for the first that does not hold."""
    check(world, laws)
