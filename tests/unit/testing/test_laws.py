"""Every law finds the run that breaks it, and leaves the run that keeps it alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.codec import NO_HASH, encode_turn, hash_turn
from remit.core.journal.commands import AskHuman, CallTool, StartChild
from remit.core.journal.rulings import CallSettled, Rung
from remit.core.journal.turn import Decision, Turn
from remit.core.limits.boundary import Boundary, Condition, Then
from remit.core.limits.budget import Dimension
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.manifest import Origin
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Edge, NodeOutcome
from remit.orchestrate.loop import durability
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.testing.hands import Performed
from remit.testing.laws import LAWS, keep_the_law
from remit.testing.pattern_scenarios import plan_request, vote_request
from remit.testing.runs import LawBroken, SimulatedRun
from remit.testing.scenarios import tools
from remit.testing.scripts import in_turn, proposes, proposes_all, says
from remit.testing.world import SimulatedWorld
from tests.unit.kernel.builders import Run, known, manifest_of, wants
from tests.unit.kernel.plans import SCHEMA, PlanRun, child_step, plan_of, validate_step

Edit = Callable[[Turn], Turn]

WRITES = in_turn(proposes_all(("look", {"n": 1}), ("write", {"n": 2})), says("done"))
PAY = known("pay", category=ToolCategory.PAYMENT)
DELEGATES = in_turn(proposes("ask_child", {"n": 1}), says("done"))


@pytest.fixture
def world() -> SimulatedWorld:
    """A world in which a run looked something up and wrote something, with an approval."""
    world = SimulatedWorld(model=WRITES, tools=tools())
    assert world.finish(manifest_of()).ending is Ending.SUCCESS
    return world


@pytest.fixture
def family() -> SimulatedWorld:
    """A world in which a run asked a child."""
    world = SimulatedWorld(model=DELEGATES, tools=tools())
    assert world.finish(manifest_of()).ending is Ending.SUCCESS
    assert len(world.run_ids()) > 1
    return world


def doubting() -> tuple[SimulatedWorld, SimulatedRun]:
    """A run with a call in doubt, about which its tool is being asked."""
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.loses("pay")
    return SimulatedWorld(model=WRITES), SimulatedRun("run", run.journal)


def voted(*, timeout_ms: int = 0) -> SimulatedWorld:
    """A world in which three replicas agreed."""
    world = SimulatedWorld(model=in_turn(says("{}")))
    graph = redundant_graph(SCHEMA, "", Redundancy(3, timeout_ms=timeout_ms))
    assert world.finish(manifest_of(graph=graph, request=vote_request({"type": "object"}))).ending is Ending.SUCCESS
    return world


def planned() -> SimulatedWorld:
    """A world in which a model did the one step of a plan."""
    world = SimulatedWorld(model=in_turn(says("hi")))
    assert world.finish(manifest_of(graph=plan_of(child_step("a")), request=plan_request())).ending is Ending.SUCCESS
    return world


def repaired() -> SimulatedRun:
    """A plan whose first answer was sent back."""
    edges = (Edge("v", "a", NodeOutcome.REPAIRABLE),)
    graph = plan_of(child_step("a", visits_max=2), validate_step("v", "a", visits_max=2), edges=edges)
    run = PlanRun(manifest_of(graph=graph))
    run.answers("bad")
    run.validates("too short")
    run.answers("good")
    run.validates()
    return SimulatedRun("run", run.journal)


def told(law: str, world: SimulatedWorld, run: SimulatedRun | None = None) -> list[str]:
    """What a law has to say about a run."""
    return list(LAWS[law](world, run or world.run("run")))


def retold(run: SimulatedRun, edit: Edit) -> SimulatedRun:
    """The run as if its turns had been other ones, in a chain that holds."""
    journal: list[bytes] = []
    for turn in run.turns:
        head = hash_turn(journal[-1]) if journal else NO_HASH
        journal.append(encode_turn(replace(edit(turn), previous=head)))
    return SimulatedRun(run.run_id, journal)


def arriving(kind: type[arrivals.Arrival], change: Callable[[arrivals.Arrival], arrivals.Arrival]) -> Edit:
    """Change every arrival of a kind."""
    return lambda turn: replace(turn, arrival=change(turn.arrival)) if isinstance(turn.arrival, kind) else turn


def deciding(kind: type[Decision], change: Callable[[Decision], tuple[Decision, ...]]) -> Edit:
    """Put other decisions in the place of every one of a kind."""

    def edit(turn: Turn) -> Turn:
        decisions: list[Decision] = []
        for decision in turn.decisions:
            decisions.extend(change(decision) if isinstance(decision, kind) else (decision,))
        return replace(turn, decisions=tuple(decisions))

    return edit


def capped(dimension: Dimension, cap: int) -> Edit:
    """Pretend that the run had been given another cap."""

    def change(arrival: arrivals.Arrival) -> arrivals.Arrival:
        assert isinstance(arrival, arrivals.RunStarted)
        caps = list(arrival.manifest.caps)
        caps[dimension] = cap
        return replace(arrival, manifest=replace(arrival.manifest, caps=tuple(caps)))

    return arriving(arrivals.RunStarted, change)


def ordering_turn(run: SimulatedRun, tool: str) -> int:
    return next(turn.seq for turn in run.turns for d in turn.decisions if isinstance(d, CallTool) and d.tool == tool)


def test_a_world_that_keeps_every_law_is_left_alone(world: SimulatedWorld, family: SimulatedWorld) -> None:
    keep_the_law(world)
    keep_the_law(family)


def test_a_broken_law_names_itself_the_seed_and_the_run(world: SimulatedWorld) -> None:
    world.lives["run"].state.counts.denials += 1
    with pytest.raises(LawBroken, match=r"folding_gives_the_live_state.*run run.*seed 0"):
        keep_the_law(world)


def test_only_the_laws_that_are_named_are_looked_at(world: SimulatedWorld) -> None:
    world.lives["run"].state.counts.denials += 1
    keep_the_law(world, {"the_chain_holds": LAWS["the_chain_holds"]})


class TestRuns:
    def test_a_live_state_that_is_not_the_fold_is_found(self, world: SimulatedWorld) -> None:
        world.lives["run"].state.counts.iterations += 1
        assert told("folding_gives_the_live_state", world) != []

    def test_a_run_that_nobody_holds_has_no_live_state_to_differ(self, world: SimulatedWorld) -> None:
        world.lives.clear()
        assert told("folding_gives_the_live_state", world) == []

    def test_a_run_that_stands_without_waiting_is_found(self, world: SimulatedWorld) -> None:
        cut = SimulatedRun("run", world.run("run").journal[:-1])
        assert "open" in told("every_run_ends_or_waits", world, cut)[0]

    def test_a_run_that_waits_for_a_child_that_waits_is_left_alone(self) -> None:
        world = SimulatedWorld(model=DELEGATES)
        parent, child = Run(), Run()
        parent.proposes(wants("ask_child"))
        child.proposes(wants("write"))
        (order,) = parent.open(StartChild)
        world.journal.kept._runs.update({"run": parent.journal, order.run_id: child.journal})
        assert told("every_run_ends_or_waits", world) == []

    def test_a_decision_that_would_be_another_one_today_is_found(self, world: SimulatedWorld) -> None:
        other = retold(
            world.run("run"), deciding(rulings.NodeEntered, lambda d: (replace(d, outcome="by another rule"),))
        )
        assert told("deciding_again_gives_the_same", world, other) != []

    def test_a_turn_that_does_not_follow_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        loose = [encode_turn(replace(turn, previous=b"nothing")) for turn in run.turns]
        assert told("the_chain_holds", world, SimulatedRun("run", loose)) != []

    def test_time_that_goes_back_is_found(self, world: SimulatedWorld) -> None:
        back = retold(world.run("run"), lambda turn: replace(turn, at_ms=10_000 - turn.seq))
        assert told("the_chain_holds", world, back) != []

    def test_a_paused_run_that_orders_something_is_found(self, world: SimulatedWorld) -> None:
        paused = retold(world.run("run"), deciding(rulings.RunAccepted, lambda d: (d, rulings.RunPaused("ada"))))
        assert "although the run is paused" in told("a_paused_run_orders_nothing", world, paused)[0]

    def test_a_call_without_a_result_in_the_context_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        run.state.talk.context = [entry for entry in run.state.talk.context if getattr(entry, "role", "") != "tool"]
        assert "0 of 2 calls answered" in told("every_call_is_answered", world, run)[0]

    def test_a_turn_that_counted_otherwise_than_it_folds_is_found(self, world: SimulatedWorld) -> None:
        paused = retold(world.run("run"), deciding(rulings.RunAccepted, lambda d: (d, rulings.RunPaused("ada"))))
        found = next(LAWS["the_tally_agrees_with_the_fold"](world, paused))
        assert found == "turn 0 counted paused as False and the fold as True"

    def test_a_turn_that_charged_otherwise_than_it_promised_is_found(self, world: SimulatedWorld) -> None:
        cheap = retold(world.run("run"), deciding(rulings.CommandSettled, lambda d: (replace(d, charged=()),)))
        assert "input_tokens" in next(LAWS["the_tally_agrees_with_the_fold"](world, cheap))

    def test_a_fork_is_not_counted_again(self, world: SimulatedWorld) -> None:
        def change(arrival: arrivals.Arrival) -> arrivals.Arrival:
            assert isinstance(arrival, arrivals.RunStarted)
            return replace(arrival, manifest=replace(arrival.manifest, forked_from=Origin("another")))

        fork = retold(world.run("run"), arriving(arrivals.RunStarted, change))
        assert told("the_tally_agrees_with_the_fold", world, fork) == []
        assert told("deciding_again_gives_the_same", world, fork) == []

    def test_a_run_that_ends_twice_is_found(self, world: SimulatedWorld) -> None:
        twice = retold(world.run("run"), deciding(rulings.RunEnded, lambda d: (d, d)))
        assert told("an_ended_run_holds_nothing", world, twice) == ["it ended more than once"]

    def test_a_command_that_was_never_settled_is_found(self, world: SimulatedWorld) -> None:
        unsettled = retold(
            world.run("run"),
            lambda turn: replace(
                turn,
                decisions=tuple(
                    d
                    for d in turn.decisions
                    if not (isinstance(d, rulings.CommandSettled) and turn.seq == world.run("run").turns[-1].seq)
                ),
            ),
        )
        assert "neither settled nor in doubt" in told("an_ended_run_holds_nothing", world, unsettled)[0]

    def test_what_is_open_or_reserved_after_the_ending_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        run.state.commands.open["9.9"] = commands.Retrieve("9.9", 1000)
        run.state.spending.left[Dimension.TOOL_CALLS] -= 1
        assert len(told("an_ended_run_holds_nothing", world, run)) == 2

    def test_an_open_run_holds_what_it_needs(self) -> None:
        world, run = doubting()
        assert told("an_ended_run_holds_nothing", world, run) == []


class TestSpending:
    def test_a_budget_that_is_overshot_is_found(self, world: SimulatedWorld) -> None:
        over = retold(world.run("run"), capped(Dimension.TOOL_CALLS, 1))
        assert "tool_calls of 1" in told("no_budget_is_overshot", world, over)[0]

    def test_usage_beyond_what_was_reserved_is_the_worlds_doing(self, world: SimulatedWorld) -> None:
        over = retold(world.run("run"), capped(Dimension.TOOL_CALLS, 1))
        excused = retold(over, deciding(rulings.RunAccepted, lambda d: (d, rulings.UsageExceeded("0.1", ((0, 1),)))))
        assert told("no_budget_is_overshot", world, excused) == []

    @pytest.mark.parametrize(
        ("dimension", "cap", "words"),
        [
            (Dimension.CONTEXT_TOKENS, 1, "shows the model"),
            (Dimension.RETRIES, -1, "is attempt 1"),
            (Dimension.DEPTH, 0, "at depth 1"),
        ],
    )
    def test_a_gauge_that_is_exceeded_is_found(
        self, family: SimulatedWorld, dimension: Dimension, cap: int, words: str
    ) -> None:
        over = retold(family.run("run"), capped(dimension, cap))
        assert any(words in what for what in told("no_gauge_is_exceeded", family, over))

    def test_an_order_after_the_deadline_is_found(self, world: SimulatedWorld) -> None:
        late = retold(world.run("run"), lambda turn: replace(turn, at_ms=turn.at_ms + 10**7 * (turn.seq > 0)))
        assert "after the deadline" in told("nothing_is_ordered_when_time_is_up", world, late)[0]

    def test_a_clock_that_stood_while_a_child_worked_is_found(self, family: SimulatedWorld) -> None:
        run, ended = family.run("run"), []
        ended += [turn.seq for turn in run.turns if isinstance(turn.arrival, arrivals.ChildEnded)]
        # As if the child had asked a person and then worked for hours, of which its own journal knows nothing.
        working = retold(run, lambda turn: replace(turn, at_ms=turn.at_ms + 10**7 * (turn.seq >= ended[0])))
        assert told("no_clock_stands_for_work", family, run) == []
        assert "too many of work" in told("no_clock_stands_for_work", family, working)[0]

    def test_a_child_with_another_lease_than_its_parent_gave_is_found(self, family: SimulatedWorld) -> None:
        run = family.run("run")
        other = retold(run, deciding(StartChild, lambda d: (replace(d, lease=((0, 1),)),)))
        assert told("leases_hold", family, other) != []

    def test_a_child_that_never_started_holds_no_lease(self, family: SimulatedWorld) -> None:
        run = family.run("run")
        elsewhere = retold(run, deciding(StartChild, lambda d: (replace(d, run_id="nowhere", lease=()),)))
        assert told("leases_hold", family, elsewhere) == []

    def test_a_child_with_another_deadline_is_found(self, family: SimulatedWorld) -> None:
        other = retold(family.run("run"), deciding(StartChild, lambda d: (replace(d, deadline_at_ms=1),)))
        assert told("children_inherit_the_deadline", family, other) != []


class TestEffects:
    def test_a_commit_of_something_unverified_is_found(self, world: SimulatedWorld) -> None:
        broken = (Violation("/ok", "type", "is not true"),)
        unverified = retold(world.run("run"), arriving(arrivals.ToolReturned, lambda a: replace(a, violations=broken)))
        assert told("only_verified_observations_are_committed", world, unverified) != []

    def test_a_commit_without_verifier_or_evidence_is_found(self, world: SimulatedWorld) -> None:
        bare = retold(world.run("run"), deciding(CallSettled, lambda d: (replace(d, evidence=b""),)))
        assert "without verifier" in told("only_verified_observations_are_committed", world, bare)[0]

    def test_a_commit_of_something_that_never_happened_is_found(self, world: SimulatedWorld) -> None:
        world.hands.effects.clear()
        assert told("what_is_committed_really_happened", world) != []

    def test_an_effect_that_nobody_approved_is_found(self, world: SimulatedWorld) -> None:
        alone = retold(world.run("run"), arriving(arrivals.ApprovalGiven, lambda a: arrivals.ResumeRequested("nobody")))
        assert "without an approval" in told("no_mutating_command_without_its_approval", world, alone)[0]

    def test_an_effect_that_is_ordered_as_if_it_changed_nothing_is_found(self, world: SimulatedWorld) -> None:
        harmless = retold(world.run("run"), deciding(CallTool, lambda d: (replace(d, mutating=False),)))
        assert "as if it changed nothing" in told("no_mutating_command_without_its_approval", world, harmless)[0]

    def test_arguments_that_nobody_approved_are_found(self, world: SimulatedWorld) -> None:
        other = retold(
            world.run("run"),
            arriving(arrivals.ApprovalGiven, lambda a: replace(a, modified=wants("write", 99))),
        )
        assert "nobody approved" in told("no_mutating_command_without_its_approval", world, other)[0]

    def test_another_version_of_the_tool_than_was_approved_is_found(self, world: SimulatedWorld) -> None:
        def change(decision: Decision) -> tuple[Decision, ...]:
            assert isinstance(decision, AskHuman)
            assert decision.packet is not None
            return (replace(decision, packet=replace(decision.packet, tool_version="older")),)

        other = retold(world.run("run"), deciding(AskHuman, change))
        assert "another tool" in told("no_mutating_command_without_its_approval", world, other)[0]

    def test_a_call_for_two_people_that_one_of_them_approved_twice_is_found(self) -> None:
        run = Run(manifest_of(tools=(PAY,), boundary=Boundary(four_eyes=(ToolCategory.PAYMENT,))))
        run.proposes(wants("pay"))
        for by in ("ada", "bob"):
            run.take(arrivals.ApprovalGiven(run.question().id, by))
        world, paid = SimulatedWorld(model=WRITES), SimulatedRun("run", run.journal)
        assert told("four_eyes_are_two_people", world, paid) == []
        alone = retold(paid, arriving(arrivals.ApprovalGiven, lambda a: replace(a, by="ada")))
        assert told("four_eyes_are_two_people", world, alone) == ["turn 3 orders pay with 1 approvals"]

    def test_a_run_that_goes_on_after_something_unsafe_is_found(self) -> None:
        stop = Condition("seven", 'tool == "look"', Then.STOP, "nobody looks")
        run = Run(manifest_of(boundary=Boundary(conditions=(stop,))))
        run.proposes(wants("look"))
        world, stopped = SimulatedWorld(model=WRITES), SimulatedRun("run", run.journal)
        assert (stopped.ending, told("nothing_unsafe_goes_on", world, stopped)) == (Ending.UNSAFE_DETECTION, [])
        going_on = retold(stopped, deciding(rulings.RunEnded, lambda d: ()))
        assert told("nothing_unsafe_goes_on", world, going_on) == ["turn 1 refuses look as unsafe and the run goes on"]

    def test_a_call_that_is_ordered_beside_something_unsafe_is_found(self, world: SimulatedWorld) -> None:
        run, unsafe = world.run("run"), rulings.ToolCallRefused("call", "pay", Refusal.UNSAFE, "no")
        run.turns = tuple(map(deciding(CallTool, lambda d: (unsafe, d)), run.turns))
        assert "orders look beside it" in told("nothing_unsafe_goes_on", world, run)[1]

    def test_an_approval_that_is_used_twice_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        seq = ordering_turn(run, "write")
        twice = retold(
            run,
            lambda turn: (
                replace(
                    turn,
                    decisions=(
                        *turn.decisions,
                        *(replace(d, id="9.9") for d in turn.decisions if isinstance(d, CallTool)),
                    ),
                )
                if turn.seq == seq
                else turn
            ),
        )
        assert "used 2 times" in told("an_approval_is_used_once", world, twice)[0]

    @pytest.mark.parametrize(("tool", "life", "is_lawful"), [("write", 2, False), ("put", 2, True), ("put", 1, False)])
    def test_an_effect_is_repeated_only_after_a_crash_and_by_an_idempotent_tool(
        self, world: SimulatedWorld, tool: str, life: int, *, is_lawful: bool
    ) -> None:
        world.hands.performed.clear()
        for lived in (1, life):
            world.hands.performed.append(Performed("run", "9.9", "run:9.9", tool, "{}", lived))
        assert (told("no_mutating_command_is_issued_again", world) == []) is is_lawful

    def test_an_effect_of_another_run_is_no_repetition(self, world: SimulatedWorld) -> None:
        world.hands.performed.extend([Performed("other", "9.9", "key", "write", "{}", 1)] * 2)
        assert told("no_mutating_command_is_issued_again", world) == []

    def test_a_timeout_that_settles_an_effect_is_found(self, world: SimulatedWorld) -> None:
        def change(arrival: arrivals.Arrival) -> arrivals.Arrival:
            assert isinstance(arrival, arrivals.ToolReturned)
            return arrivals.ToolFailed(arrival.command_id, ErrorCode.TOOL_TIMEOUT)

        guessed = retold(world.run("run"), arriving(arrivals.ToolReturned, change))
        assert "nobody knows" in told("an_unknown_outcome_is_never_success", world, guessed)[0]

    def test_a_success_with_something_in_doubt_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        run.state.commands.doubted["9.9"] = "TOOL_TIMEOUT"
        assert "in doubt" in told("an_unknown_outcome_is_never_success", world, run)[0]

    def test_a_success_without_an_answer_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        run.state.result.answer = ""
        assert told("success_is_earned", world, run) == ["it ended as SUCCESS without an answer"]

    def test_a_success_with_an_effect_left_open_is_found(self, world: SimulatedWorld) -> None:
        unproven = retold(
            world.run("run"), deciding(CallSettled, lambda d: (replace(d, rung=Rung.OBSERVED, verifier=""),))
        )
        assert "['write']" in told("success_is_earned", world, unproven)[0]

    def test_a_run_that_was_no_success_claims_nothing(self) -> None:
        world, run = doubting()
        assert told("success_is_earned", world, run) == []

    def test_a_doubt_that_is_ruled_twice_is_found(self) -> None:
        world, run = doubting()
        twice = retold(run, deciding(rulings.OutcomeDoubted, lambda d: (d, d)))
        assert "doubted 2 times" in told("nobody_is_asked_twice_about_one_call", world, twice)[0]

    def test_two_inquiries_about_one_call_are_found(self) -> None:
        world, run = doubting()
        twice = retold(run, deciding(commands.ReconcileTool, lambda d: (d, replace(d, id="9.9"))))
        assert "does already" in told("nobody_is_asked_twice_about_one_call", world, twice)[0]

    def test_a_trace_that_holds_what_another_call_said_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        next(iter(run.state.calls.made.values())).content = "something else"
        assert told("calls_are_told_as_they_came", world, run) != []


class TestPlans:
    def test_worlds_of_votes_and_plans_keep_every_law(self) -> None:
        keep_the_law(voted())
        keep_the_law(planned())

    def test_a_step_that_is_ordered_again_after_it_was_finished_is_found(self) -> None:
        world = planned()
        again = commands.CallCode("9.9", "step:custom", "", 1000)
        twice = retold(world.run("run"), deciding(rulings.StepFinished, lambda d: (d, again)))
        assert (
            "orders CallCode for step a, which is finished" in told("no_finished_step_is_done_again", world, twice)[0]
        )

    def test_a_step_to_which_a_repair_led_back_may_be_done_again(self) -> None:
        world = SimulatedWorld(model=in_turn(says("hi")))
        run = repaired()
        assert len(run.all(rulings.StepFinished)) == 3
        assert told("no_finished_step_is_done_again", world, run) == []

    def test_a_step_to_which_something_else_led_back_may_not(self) -> None:
        world = SimulatedWorld(model=in_turn(says("hi")))
        other = retold(repaired(), deciding(rulings.NodeEntered, lambda d: (replace(d, outcome="passed"),)))
        assert told("no_finished_step_is_done_again", world, other) != []

    def test_an_answer_that_is_not_the_winners_is_found(self) -> None:
        world = voted()
        run = world.run("run")
        run.state.result.answer = "what nobody said"
        assert told("the_answer_is_the_winners", world, run) == ["its answer is not what the winner of its vote said"]

    def test_a_winner_that_did_not_answer_is_found(self) -> None:
        world = voted()
        failed = retold(world.run("run"), arriving(arrivals.ChildEnded, lambda a: replace(a, ending=Ending.IMPOSSIBLE)))
        assert "which did not answer" in told("the_answer_is_the_winners", world, failed)[0]

    def test_replicas_that_were_leased_more_than_their_parent_has_are_found(self) -> None:
        world = voted()
        over = retold(world.run("run"), capped(Dimension.OUTPUT_TOKENS, 10))
        assert "with its children" in told("replicas_stay_within_their_parent", world, over)[0]

    def test_a_replica_that_used_more_than_its_lease_is_found(self) -> None:
        world = voted()
        stingy = retold(world.run("run"), deciding(StartChild, lambda d: (replace(d, lease=()),)))
        assert any("of 0" in what for what in told("replicas_stay_within_their_parent", world, stingy))

    def test_a_replica_that_never_started_used_nothing(self) -> None:
        world = voted()
        nowhere = retold(world.run("run"), deciding(StartChild, lambda d: (replace(d, run_id="nowhere", lease=()),)))
        assert told("replicas_stay_within_their_parent", world, nowhere) == []

    def test_a_node_may_give_its_child_less_time_and_not_more(self) -> None:
        world = voted(timeout_ms=5000)
        assert told("children_inherit_the_deadline", world) == []
        longer = retold(
            world.run("run"),
            deciding(StartChild, lambda d: (replace(d, deadline_at_ms=d.deadline_at_ms + 1),)),  # type: ignore[union-attr]
        )
        assert told("children_inherit_the_deadline", world, longer) != []


def test_a_tree_that_spends_more_than_its_root_was_given_is_found(family: SimulatedWorld) -> None:
    poor = retold(family.run("run"), capped(Dimension.CHILD_RUNS, 0))
    assert "child_runs of 0" in told("no_tree_is_overshot", family, poor)[0]


def test_a_command_that_no_turn_orders_and_that_was_sent_is_found(world: SimulatedWorld) -> None:
    assert told("only_what_turns_order_is_done", world) == []
    unwritten = retold(world.run("run"), deciding(CallTool, lambda d: (replace(d, key="another"),)))
    assert "no turn orders it" in told("only_what_turns_order_is_done", world, unwritten)[0]


def test_a_turn_that_asks_a_person_or_ends_the_run_must_be_known_to_be_relied_on(
    world: SimulatedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told("a_turn_is_kept_for_whoever_relies_on_it", world) == []
    monkeypatch.setattr(durability, "WEIGHTY", frozenset())
    assert "as if nobody relied on it" in told("a_turn_is_kept_for_whoever_relies_on_it", world)[0]


def test_every_law_is_broken_by_a_test_of_this_module() -> None:
    text = Path(__file__).read_text()
    assert [law for law in LAWS if f'"{law}"' not in text] == []
