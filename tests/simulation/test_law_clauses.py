"""The clauses of laws that no mutant reaches: each finds the run that breaks it."""

from collections.abc import Callable

import pytest

from remit.core.failure import Ending, Refusal
from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.codec import NO_HASH, encode_turn, hash_turn
from remit.core.journal.commands import AskHuman, CallTool, StartChild
from remit.core.journal.rulings import CallSettled
from remit.core.journal.turn import Decision, Turn
from remit.core.limits.budget import Budget, Dimension
from remit.core.record import replace
from remit.core.work.graph import Edge, NodeOutcome
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.testing.hands import PerformedCall
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import in_turn, proposes, proposes_all, says
from remit.testing.trouble import CALM, Faults
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.every_law import LAWS
from tests.simulation.laws.spending import covered_ms, no_clock_stands_for_work
from tests.simulation.pattern_scenarios import vote_request
from tests.simulation.scenarios import tools
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.kernel.plans import SCHEMA, PlanRun, child_step, plan_of, validate_step

Edit = Callable[[Turn], Turn]

WRITES = in_turn(proposes_all(("look", {"n": 1}), ("write", {"n": 2})), says("done"))
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


def voted() -> SimulatedWorld:
    """A world in which three replicas agreed."""
    world = SimulatedWorld(model=in_turn(says("{}")))
    graph = redundant_graph(SCHEMA, "", Redundancy(3))
    assert world.finish(manifest_of(graph=graph, request=vote_request({"type": "object"}))).ending is Ending.SUCCESS
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


class TestRuns:
    def test_time_that_goes_back_is_found(self, world: SimulatedWorld) -> None:
        back = retold(world.run("run"), lambda turn: replace(turn, at_ms=10_000 - turn.seq))
        assert told("the_chain_holds", world, back) != []

    def test_a_turn_that_charged_otherwise_than_it_promised_is_found(self, world: SimulatedWorld) -> None:
        cheap = retold(world.run("run"), deciding(rulings.CommandSettled, lambda d: (replace(d, charged=()),)))
        assert "input_tokens" in next(LAWS["the_tally_agrees_with_the_fold"](world, cheap))

    def test_a_run_that_ends_twice_is_found(self, world: SimulatedWorld) -> None:
        twice = retold(world.run("run"), deciding(rulings.RunEnded, lambda d: (d, d)))
        assert told("an_ended_run_holds_nothing", world, twice) == ["it ended more than once"]


class TestSpending:
    @pytest.mark.parametrize(
        ("dimension", "cap", "words"),
        [
            (Dimension.RETRIES, -1, "is attempt 1"),
            (Dimension.DEPTH, 0, "at depth 1"),
        ],
    )
    def test_a_gauge_that_is_exceeded_is_found(
        self, family: SimulatedWorld, dimension: Dimension, cap: int, words: str
    ) -> None:
        over = retold(family.run("run"), capped(dimension, cap))
        assert any(words in what for what in told("no_gauge_is_exceeded", family, over))


class TestEffects:
    def test_a_commit_without_verifier_or_evidence_is_found(self, world: SimulatedWorld) -> None:
        bare = retold(world.run("run"), deciding(CallSettled, lambda d: (replace(d, evidence=b""),)))
        assert "without verifier" in told("only_verified_observations_are_committed", world, bare)[0]

    def test_an_effect_that_is_ordered_as_if_it_changed_nothing_is_found(self, world: SimulatedWorld) -> None:
        harmless = retold(world.run("run"), deciding(CallTool, lambda d: (replace(d, mutating=False),)))
        assert "as if it changed nothing" in told("no_mutating_command_without_its_approval", world, harmless)[0]

    def test_arguments_that_nobody_approved_are_found(self, world: SimulatedWorld) -> None:
        other = retold(
            world.run("run"),
            arriving(arrivals.ApprovalGiven, lambda a: replace(a, modified=wants("write", 99))),
        )
        assert "were not approved" in told("no_mutating_command_without_its_approval", world, other)[0]

    def test_another_version_of_the_tool_than_was_approved_is_found(self, world: SimulatedWorld) -> None:
        def change(decision: Decision) -> tuple[Decision, ...]:
            assert isinstance(decision, AskHuman)
            assert decision.packet is not None
            return (replace(decision, packet=replace(decision.packet, tool_version="older")),)

        other = retold(world.run("run"), deciding(AskHuman, change))
        assert "another tool" in told("no_mutating_command_without_its_approval", world, other)[0]

    def test_a_call_that_is_ordered_beside_something_unsafe_is_found(self, world: SimulatedWorld) -> None:
        run, unsafe = world.run("run"), rulings.ToolCallRefused("call", "pay", Refusal.UNSAFE, "no")
        run.turns = tuple(map(deciding(CallTool, lambda d: (unsafe, d)), run.turns))
        assert "orders look beside it" in told("nothing_unsafe_goes_on", world, run)[1]

    @pytest.mark.parametrize(("tool", "life", "is_lawful"), [("write", 2, False), ("put", 2, True), ("put", 1, False)])
    def test_an_effect_is_repeated_only_after_a_crash_and_by_an_idempotent_tool(
        self, world: SimulatedWorld, tool: str, life: int, *, is_lawful: bool
    ) -> None:
        world.hands.performed.clear()
        for lived in (1, life):
            world.hands.performed.append(PerformedCall("run", "9.9", "run:9.9", tool, "{}", lived))
        assert (told("no_mutating_command_is_issued_again", world) == []) is is_lawful

    @pytest.mark.parametrize(("tool", "is_lawful"), [("write", False), ("put", True)])
    def test_an_effect_that_a_halt_called_off_is_repeated_only_by_an_idempotent_tool(
        self, world: SimulatedWorld, tool: str, *, is_lawful: bool
    ) -> None:
        run = world.run("run")
        halted = arrivals.RunHalted("ada", 1, "everything", "smoke", ("9.9",))
        run.turns = (*run.turns, replace(run.turns[-1], arrival=halted))
        world.hands.performed.clear()
        world.hands.performed += [PerformedCall("run", "9.9", "run:9.9", tool, "{}", 1)] * 2
        assert (told("no_mutating_command_is_issued_again", world, run) == []) is is_lawful

    def test_a_success_without_an_answer_is_found(self, world: SimulatedWorld) -> None:
        run = world.run("run")
        run.state.result.answer = ""
        assert told("success_is_earned", world, run) == ["it ended as SUCCESS without an answer"]

    def test_two_inquiries_about_one_call_are_found(self) -> None:
        world, run = doubting()
        twice = retold(run, deciding(commands.ReconcileTool, lambda d: (d, replace(d, id="9.9"))))
        assert "does already" in told("nobody_is_asked_twice_about_one_call", world, twice)[0]


class TestPlans:
    def test_a_step_to_which_something_else_led_back_may_not(self) -> None:
        world = SimulatedWorld(model=in_turn(says("hi")))
        other = retold(repaired(), deciding(rulings.NodeEntered, lambda d: (replace(d, outcome="passed"),)))
        assert told("no_finished_step_is_done_again", world, other) != []

    def test_a_winner_that_did_not_answer_is_found(self) -> None:
        world = voted()
        failed = retold(world.run("run"), arriving(arrivals.ChildEnded, lambda a: replace(a, ending=Ending.IMPOSSIBLE)))
        assert "which did not answer" in told("the_answer_is_the_winners", world, failed)[0]

    def test_a_replica_that_used_more_than_its_lease_is_found(self) -> None:
        world = voted()
        stingy = retold(world.run("run"), deciding(StartChild, lambda d: (replace(d, lease=()),)))
        assert any("of 0" in what for what in told("replicas_stay_within_their_parent", world, stingy))


MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("spans", "covered"),
    [([], 0), ([(10, 30)], 20), ([(10, 30), (20, 40)], 30), ([(50, 60), (10, 20)], 20), ([(10, 90), (20, 30)], 80)],
)
def test_time_is_covered_once_however_many_waited_in_it(spans: list[tuple[int, int]], covered: int) -> None:
    assert covered_ms(spans, 100) == covered


def test_nothing_is_covered_after_the_moment_that_is_asked_about() -> None:
    assert covered_ms([(10, 30), (20, 500), (300, 400)], 100) == 90


def held_for(how_ms: int, *, waited_ms: int, is_lost: bool = False) -> Run:
    """A run with a minute whose child was known to wait for so long, and says that all of it was waiting."""
    run = Run(manifest_of(budget=Budget(wall_clock_ms=MINUTE_MS)))
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0].id
    run.take(arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED), after_ms=0)
    ended = arrivals.ChildEnded(child, Ending.SUCCESS, "done", tokens_bound=25, stood_ms=waited_ms)
    run.take(arrivals.ChildLost(child) if is_lost else ended, after_ms=how_ms)
    return run


def judged(parent: Run, *, child: Run | None = None, faults: Faults = CALM) -> list[str]:
    """What the law says of a run in a world that knows its child, or does not."""
    world = SimulatedWorld(model=in_turn(says("done")), tools=tools(), faults=faults)
    known = {"run": parent.journal}
    if child is not None:
        known[parent.all(StartChild)[0].run_id] = child.journal
    world.journal.kept._runs.update(known)
    return list(no_clock_stands_for_work(world, SimulatedRun("run", parent.journal)))


def asking_for(how_ms: int) -> Run:
    """A child that asks a person, who takes so long."""
    run = Run()
    run.proposes(wants("write"))
    run.approves(after_ms=how_ms)
    return run


def test_a_child_that_says_it_waited_and_did_not_is_found_out() -> None:
    (found,) = judged(held_for(5 * MINUTE_MS, waited_ms=5 * MINUTE_MS), child=asking_for(MINUTE_MS))
    assert found == f"turn 3 orders CallModel after {3 * MINUTE_MS + 20 - 10} ms too many of work"
