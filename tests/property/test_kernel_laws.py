"""Laws of the kernel and its words: no cap is overshot, judging changes nothing, and what was written can be read."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from random import Random
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from remit.core.failure import Ending, ErrorCode, IllegalArrival, InvariantBroken
from remit.core.journal import arrivals, codec
from remit.core.journal.arrivals import Arrival, Happened, RunStarted
from remit.core.journal.codec import FORMAT, decode_turn, encode_turn, from_json, hash_turn, turn_to_json
from remit.core.journal.commands import CallCode
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import UsageExceeded
from remit.core.journal.turn import KERNEL_VERSION, Decision, Turn
from remit.core.limits.boundary import Boundary, narrow
from remit.core.limits.budget import (
    COUNTERS,
    DIMENSIONS,
    FIELDS,
    STANDARD,
    Budget,
    Charges,
    Dimension,
    assign,
    budget_of,
    charges_of,
    lease_of,
)
from remit.core.limits.tools import Effect
from remit.core.record import JsonObject, replace
from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind, NodeOutcome
from remit.kernel.budget.backoff import BACKOFF_MS_FIRST, BACKOFF_MS_MAX, backoff_ms
from remit.kernel.budget.spend import lacking, settle_command
from remit.kernel.decide import ANSWERS, decide, take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned
from remit.kernel.tally import Tally
from remit.testing.runs import fold_journal
from remit.testing.trouble import Faults
from tests.depth import examples
from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.scenarios import TOOLS, played_world, random_manifest, scenario

seeds = st.integers(0, 100_000)
budgets = st.builds(Budget, *[st.none() | st.integers(0, 2_000_000)] * DIMENSIONS)
names = st.sampled_from([*(tool.name for tool in TOOLS), "no_such_tool"])


# Budgets and boundaries.


@given(budgets, st.lists(budgets, max_size=3), st.randoms(use_true_random=False))
def test_the_smallest_cap_anyone_said_is_assigned_in_any_order(
    boundary: Budget, narrower: list[Budget], chance: Random
) -> None:
    caps = assign(boundary, *narrower)
    for field, cap in zip(FIELDS, caps, strict=True):
        own = getattr(boundary, field)
        amounts = [amount for budget in narrower if (amount := getattr(budget, field)) is not None]
        assert cap == min([getattr(STANDARD, field) if own is None else own, *amounts])
    assert assign(boundary, *chance.sample(narrower, len(narrower))) == caps


@given(budgets, st.lists(budgets, max_size=3))
def test_assigning_what_was_assigned_changes_nothing(boundary: Budget, narrower: list[Budget]) -> None:
    caps = assign(boundary, *narrower)
    assert assign(budget_of(caps), *narrower) == caps


boundaries = st.builds(
    Boundary,
    name=st.just("parent"),
    allowed_tools=st.none() | st.lists(names, unique=True).map(tuple),
    approval_effects=st.lists(st.sampled_from(Effect), unique=True).map(tuple),
    permissions=st.lists(st.sampled_from(["vault.open", "account.read"]), unique=True).map(tuple),
    budget=budgets,
    approval_wait_ms_max=st.integers(0, 10**9),
)


@given(boundaries, st.none() | st.lists(names, unique=True).map(tuple), budgets)
def test_a_narrowed_boundary_allows_nothing_more(
    parent: Boundary, tools: tuple[str, ...] | None, budget: Budget
) -> None:
    child = narrow(parent, tools=tools, budget=budget)
    for limit in (parent.allowed_tools, tools):
        assert limit is None or (child.allowed_tools is not None and set(child.allowed_tools) <= set(limit))
    assert set(child.permissions) <= set(parent.permissions)
    assert set(child.approval_effects) >= set(parent.approval_effects)
    assert child.approval_wait_ms_max <= parent.approval_wait_ms_max
    for field, cap in zip(FIELDS, assign(child.budget), strict=True):
        for limit in (getattr(parent.budget, field), getattr(budget, field)):
            assert limit is None or cap <= limit


@given(boundaries, st.none() | st.lists(names, unique=True).map(tuple), budgets, budgets)
def test_narrowing_again_never_widens_what_was_narrowed(
    parent: Boundary, tools: tuple[str, ...] | None, first: Budget, second: Budget
) -> None:
    child = narrow(parent, tools=tools, budget=first)
    grandchild = narrow(child, tools=None, budget=second)
    assert grandchild.allowed_tools == child.allowed_tools
    caps = zip(assign(grandchild.budget), assign(child.budget), strict=True)
    assert all(cap <= above for cap, above in caps)


amounts = st.dictionaries(st.sampled_from(COUNTERS), st.integers(0, 9))


@given(amounts, st.randoms(use_true_random=False))
def test_charges_are_sorted_and_say_nothing_of_zero(said: dict[Dimension, int], chance: Random) -> None:
    shuffled = chance.sample(list(said.items()), len(said))
    charges = charges_of(shuffled)
    assert list(charges) == sorted(charges)
    assert dict(charges) == {int(dimension): amount for dimension, amount in said.items() if amount}
    assert lease_of((dimension.name.lower(), amount) for dimension, amount in shuffled) == charges


# Spending. A run that stands still; what is ordered and settled is drawn, several things per turn.

STANDING = Graph(
    "standing",
    "wait",
    (Node("wait", NodeKind.DECIDE, code="wait"), *TERMINALS),
    (Edge("wait", "done"),),
    EXITS,
)


class Order(NamedTuple):
    """Something is wanted that would reserve this."""

    charges: Charges


class Settlement(NamedTuple):
    """What the open command at this position reserved is settled, with so many quarters of it charged."""

    position: int
    quarters: int


acts = st.builds(Order, amounts.map(lambda said: charges_of(said.items()))) | st.builds(
    Settlement, st.integers(0, 20), st.integers(0, 4)
)
small_caps = st.lists(st.integers(1, 20), min_size=DIMENSIONS, max_size=DIMENSIONS).map(tuple)


class Purse:
    """A run and books of its spending, kept apart from the kernel's own."""

    def __init__(self, caps: tuple[int, ...]) -> None:
        manifest = random_manifest(Random(0), "run")
        manifest = replace(manifest, graph=STANDING, goal=None, caps=caps)
        self.caps = caps
        self.state = RunState()
        self.take(RunStarted(manifest, 1), decide(self.state, RunStarted(manifest, 1), 1000))
        self.used = list(self.state.used)
        self.open: dict[str, CallCode] = {}

    def take(self, arrival: Arrival, decisions: tuple[Decision, ...]) -> None:
        turn = Turn(self.state.seq + 1, 1000, self.state.head, KERNEL_VERSION, arrival, decisions)
        apply(self.state, turn, hash_turn(encode_turn(turn)))

    def held(self) -> list[int]:
        """Spent and reserved, per dimension."""
        held = list(self.used)
        for command in self.open.values():
            for dimension, amount in command.reserved:
                held[dimension] += amount
        return held

    def act(self, tally: Tally, act: Order | Settlement) -> None:
        if isinstance(act, Order):
            held = self.held()
            short = [Dimension(d) for d, amount in act.charges if held[d] + amount > self.caps[d]]
            assert lacking(tally, act.charges) is (short[0] if short else None)
            if not short:
                command = CallCode(tally.next_id(), "wait", "", 1000, act.charges)
                tally.issue(command)
                self.open[command.id] = command
        # The outcome of a command can only arrive in a later turn.
        elif earlier := [command for command in self.open.values() if command.id in self.state.commands.open]:
            command = earlier[act.position % len(earlier)]
            charged = tuple((d, amount * act.quarters // 4) for d, amount in command.reserved)
            assert settle_command(tally, command, charged) is None
            del self.open[command.id]
            for dimension, amount in charged:
                self.used[dimension] += amount


@given(small_caps, st.lists(st.lists(acts, max_size=6), max_size=6))
def test_what_is_used_and_reserved_never_exceeds_a_cap(
    caps: tuple[int, ...], turns: list[list[Order | Settlement]]
) -> None:
    purse = Purse(caps)
    for turn in turns:
        tally = Tally(purse.state, 1000)
        for act in turn:
            purse.act(tally, act)
            promised = [cap - left for cap, left in zip(caps, tally.left, strict=True)]
            assert promised == purse.held()
            assert all(amount <= cap for amount, cap in zip(promised, caps, strict=True))
        purse.take(arrivals.TimerFired("made up"), tuple(tally.decisions))
        state = purse.state
        assert state.used == purse.used
        assert [used + reserved for used, reserved in zip(state.used, state.reserved, strict=True)] == purse.held()
        assert set(purse.open) <= set(state.commands.open)


@given(amounts, amounts)
def test_a_settlement_above_its_reservation_is_charged_and_stops_the_run(
    wanted: dict[Dimension, int], cost: dict[Dimension, int]
) -> None:
    purse = Purse((1_000,) * DIMENSIONS)
    command = CallCode("0.9", "wait", "", 1000, charges_of(wanted.items()))
    purse.take(arrivals.TimerFired("made up"), (command,))
    tally = Tally(purse.state, 1000)
    over = charges_of((d, amount - wanted.get(d, 0)) for d, amount in cost.items() if amount > wanted.get(d, 0))
    outcome = settle_command(tally, command, charges_of(cost.items()))
    assert outcome == (NodeOutcome.EXHAUSTED if over else None)
    assert [ruling.over for ruling in tally.decisions if isinstance(ruling, UsageExceeded)] == ([over] if over else [])
    purse.take(arrivals.TimerFired("made up"), tuple(tally.decisions))
    assert purse.state.used == [purse.used[d] + cost.get(d, 0) for d in Dimension]
    assert purse.state.reserved == [0] * DIMENSIONS


@given(st.text(max_size=20), st.text(max_size=8), st.integers(1, 100_000))
def test_a_pause_before_a_retry_is_bounded_repeatable_and_grows(run_id: str, command_id: str, attempt: int) -> None:
    def ceiling(number: int) -> int:
        return min(BACKOFF_MS_FIRST << min(number - 1, 100), BACKOFF_MS_MAX)

    pause_ms = backoff_ms(run_id, command_id, attempt)
    assert ceiling(attempt) // 2 <= pause_ms <= ceiling(attempt) <= BACKOFF_MS_MAX
    assert backoff_ms(run_id, command_id, attempt) == pause_ms
    if ceiling(attempt + 1) == 2 * ceiling(attempt):
        assert backoff_ms(run_id, command_id, attempt + 1) >= pause_ms


# The codec.


@cache
def journals_of(seed: int) -> tuple[tuple[bytes, ...], ...]:
    """The journals of a world; none when its process died before anything was written."""
    world = played_world(seed)
    return tuple(world.run(run_id).journal for run_id in world.run_ids())


# Few enough worlds that each is played once for all the tests that read what it wrote.
journals = st.integers(0, 199).filter(journals_of).flatmap(lambda seed: st.sampled_from(journals_of(seed)))
turns_written = st.tuples(journals, st.integers(0, 500)).map(lambda drawn: drawn[0][drawn[1] % len(drawn[0])])


@given(journals)
def test_every_turn_ever_written_reads_and_writes_the_same(journal: tuple[bytes, ...]) -> None:
    for data in journal:
        turn = decode_turn(data)
        assert encode_turn(turn) == data
        line = turn_to_json(turn)
        assert b"\n" not in line
        assert from_json(line, Turn) == turn
        assert encode_turn(from_json(line, Turn)) == data


Lift = Callable[[JsonObject], JsonObject]

# Formats that never were: with every step up, one more field got the name it has today.
NEWEST = 3
RENAMED = (("number", "seq"), ("moment", "at_ms"), ("link", "previous"))


def renaming(old: str, new: str) -> Lift:
    return lambda values: {(new if name == old else name): value for name, value in values.items()}


LIFTS: Mapping[int, Lift] = {version: renaming(old, new) for version, (old, new) in enumerate(RENAMED)}


def as_written_in(version: int, data: bytes) -> bytes:
    """A turn as that format would have written it."""
    values: JsonObject = msgspec.msgpack.decode(data[1:])
    for old, new in RENAMED[version:]:
        values = renaming(new, old)(values)
    return bytes([version]) + msgspec.msgpack.encode(values)


@contextmanager
def newer_format() -> Iterator[None]:
    """The codec as it will be when its format has been raised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "FORMAT", NEWEST)
        patch.setattr(codec, "_PREFIX", bytes([NEWEST]))
        yield


@given(turns_written, st.integers(0, NEWEST - 1))
def test_a_turn_of_any_older_format_is_lifted_step_by_step(data: bytes, version: int) -> None:
    old = as_written_in(version, data)
    steps: list[int] = []

    def noting(step: int, values: JsonObject) -> JsonObject:
        steps.append(step)
        return LIFTS[step](values)

    with newer_format():
        turn = decode_turn(old, lifts={step: partial(noting, step) for step in LIFTS})
    assert turn == decode_turn(data)
    assert steps == list(range(version, NEWEST))


@given(turns_written, st.integers(0, NEWEST - 1), st.integers(0, NEWEST - 1))
def test_a_format_with_a_missing_step_is_refused_by_its_number(data: bytes, version: int, missing: int) -> None:
    if missing < version:
        version, missing = missing, version
    old = as_written_in(version, data)
    with newer_format(), pytest.raises(InvariantBroken, match=f"format {missing};") as refused:
        decode_turn(old, lifts={step: lift for step, lift in LIFTS.items() if step != missing})
    assert refused.value.code == "JOURNAL_FORMAT_UNKNOWN"


@given(st.integers(0, 254).filter(lambda version: version != FORMAT), st.binary(max_size=100))
def test_a_format_nobody_knows_is_refused_whatever_follows(version: int, rest: bytes) -> None:
    with pytest.raises(InvariantBroken) as refused:
        decode_turn(bytes([version]) + rest)
    assert refused.value.code == "JOURNAL_FORMAT_UNKNOWN"


@given(st.binary(max_size=200), st.booleans())
def test_garbage_is_unreadable_in_every_format(garbage: bytes, is_old: bool) -> None:
    lifts: dict[int, Lift] = {FORMAT - 1: lambda values: values}
    with pytest.raises(InvariantBroken) as refused:
        decode_turn(bytes([FORMAT - is_old]) + garbage, lifts=lifts)
    assert refused.value.code == "JOURNAL_UNREADABLE"


@given(turns_written, st.integers(1, 10_000), st.binary(min_size=1, max_size=10))
def test_a_turn_cut_short_or_followed_by_more_is_unreadable(data: bytes, cut: int, more: bytes) -> None:
    for broken in (data[: 1 + cut % (len(data) - 1)], data + more):
        with pytest.raises(InvariantBroken) as refused:
            decode_turn(broken)
        assert refused.value.code == "JOURNAL_UNREADABLE"


# Deciding.

CALL = ProposedCall("call", "look", '{"n":1}', b"hash")
OUTCOMES: tuple[Callable[[str], Arrival], ...] = (
    lambda command_id: arrivals.ModelAnswered(command_id, "an answer", tokens_bound=40),
    lambda command_id: arrivals.ModelAnswered(command_id, calls=(CALL, CALL), tokens_bound=90),
    arrivals.ModelAnswered,
    lambda command_id: arrivals.ModelFailed(command_id, ErrorCode.INFERENCE_ENGINE_ERROR),
    lambda command_id: arrivals.ModelFailed(command_id, ErrorCode.INFERENCE_CONTEXT_EXCEEDED, was_cut=True),
    lambda command_id: arrivals.ToolReturned(command_id, "{}", b"evidence", 22),
    lambda command_id: arrivals.ToolFailed(command_id, ErrorCode.TOOL_TIMEOUT, tokens_bound=90),
    lambda command_id: arrivals.ToolFailed(command_id, ErrorCode.TOOL_EXECUTION_FAILED, tokens_bound=90),
    arrivals.ToolOutcomeLost,
    lambda command_id: arrivals.ToolReconciled(command_id, Happened.YES, "{}", b"evidence", 22),
    lambda command_id: arrivals.ToolReconciled(command_id, Happened.UNKNOWN),
    lambda command_id: arrivals.CodeReturned(command_id, problems=("a problem",)),
    lambda command_id: arrivals.CodeFailed(command_id, "it broke"),
    lambda command_id: arrivals.ContextFound(command_id, "evidence", 28),
    lambda command_id: arrivals.ContextFailed(command_id, "nothing"),
    lambda command_id: arrivals.ApprovalGiven(command_id, "ada"),
    lambda command_id: arrivals.ApprovalGiven(command_id, "ada", CALL),
    lambda command_id: arrivals.ApprovalRefused(command_id, "ada", "no"),
    lambda command_id: arrivals.OutcomeJudged(command_id, "ada", Happened.NO),
    lambda command_id: arrivals.OutcomeJudged(command_id, "ada", Happened.UNKNOWN),
    lambda command_id: arrivals.QuestionAnswered(command_id, "ada", "forty-two", 29),
    arrivals.TimerFired,
    lambda command_id: arrivals.ChildEnded(command_id, Ending.SUCCESS, "found it", ((2, 1),), 28),
    lambda command_id: arrivals.ChildEnded(command_id, Ending.IMPOSSIBLE),
    arrivals.ChildLost,
)
SIGNALS: tuple[Arrival, ...] = (
    arrivals.CancelRequested("ada"),
    arrivals.PauseRequested("ada"),
    arrivals.ResumeRequested("ada"),
    arrivals.FeedbackGiven("ada", "be quick", 28),
    arrivals.RetryRequested("ada"),
)


# What some run had written at some moment, from nothing to everything.
prefixes = journals.flatmap(lambda journal: st.sampled_from(range(len(journal) + 1)).map(lambda count: journal[:count]))


@st.composite
def arrivals_at(draw: st.DrawFn, state: RunState) -> Arrival:
    """What may arrive at a run: an outcome that fits an open command, any outcome about anything, a signal or a start."""
    choice = draw(st.integers(0, 9))
    fitting = [
        make(command.id)
        for command in state.commands.open.values()
        for make in OUTCOMES
        if ANSWERS[type(make(""))] is type(command)
    ]
    if choice < 6 and fitting:
        return draw(st.sampled_from(fitting))
    if choice < 8:
        ids = (
            *state.commands.open,
            *state.calls.made,
            "0.1",
            f"{state.seq}.0",
            f"{state.seq + 1}.0",
            f"{'1' * 5000}.0",
            "nonsense",
        )
        return draw(st.sampled_from(OUTCOMES))(draw(st.sampled_from(ids)))
    if choice < 9 and state.manifest is not None:
        return RunStarted(state.manifest, 1)
    return draw(st.sampled_from(SIGNALS))


def decided(state: RunState, arrival: Arrival, at_ms: int) -> tuple[Decision, ...] | IllegalArrival:
    try:
        return decide(state, arrival, at_ms)
    except IllegalArrival as illegal:
        return illegal


@given(journals, st.integers(0, 500))
def test_deciding_what_came_next_leaves_the_state_as_it_was(journal: tuple[bytes, ...], position: int) -> None:
    position %= len(journal)
    origin = pinned(fold_journal(journal)).forked_from
    state, turn = fold_journal(journal[:position]), decode_turn(journal[position])
    # What a fork has copied was decided for its origin, which others asked for, and is not decided again.
    assume(origin is None or turn.seq > origin.seq)
    first = take_turn(state, turn.arrival, turn.at_ms)
    assert state == fold_journal(journal[:position])
    assert encode_turn(take_turn(state, turn.arrival, turn.at_ms)) == encode_turn(first)
    assert encode_turn(first) == journal[position]


@settings(max_examples=examples(400))
@given(prefixes, st.data())
def test_deciding_anything_at_all_leaves_the_state_as_it_was(journal: tuple[bytes, ...], data: st.DataObject) -> None:
    state = fold_journal(journal)
    arrival = data.draw(arrivals_at(state), label="arrival")
    at_ms = state.at_ms + data.draw(st.sampled_from([0, 1, 1000, 10**6, 10**8]), label="after_ms")
    first = decided(state, arrival, at_ms)
    assert state == fold_journal(journal)
    again = decided(state, arrival, at_ms)
    if isinstance(first, IllegalArrival):
        assert isinstance(again, IllegalArrival)
        assert again.fault is first.fault
    else:
        assert again == first
        assert first, "an arrival that was judged leaves a decision"


@given(prefixes, st.sampled_from(OUTCOMES), st.data())
def test_an_outcome_of_no_open_command_is_illegal_and_changes_nothing(
    journal: tuple[bytes, ...], outcome: Callable[[str], Arrival], data: st.DataObject
) -> None:
    state = fold_journal(journal)
    kind = ANSWERS[type(outcome(""))]
    closed = [f"{seq}.{place}" for seq in range(state.seq + 2) for place in range(3)]
    wrong = [command_id for command_id, command in state.commands.open.items() if type(command) is not kind]
    ids = [*wrong, *(command_id for command_id in (*closed, "nonsense", "") if command_id not in state.commands.open)]
    arrival = outcome(data.draw(st.sampled_from(ids)))
    with pytest.raises(IllegalArrival):
        decide(state, arrival, state.at_ms)
    assert state == fold_journal(journal)


# Whole worlds.


def up_to(rate: float) -> st.SearchStrategy[float]:
    return st.floats(0, rate)


# A world where everybody signals at every event, or a rival is always faster, never comes to rest; these rates stay below.
troubles = st.builds(
    Faults,
    crash=up_to(0.1),
    duplicate=up_to(0.7),
    delay=up_to(0.5),
    clock_jump=up_to(0.2),
    tool_failure=up_to(1),
    rival=up_to(0.4),
    lost_child=up_to(1),
    signal=up_to(0.3),
)


@settings(max_examples=40)
@given(seeds, troubles)
@pytest.mark.slow
def test_every_world_keeps_the_law_whatever_goes_wrong(seed: int, faults: Faults) -> None:
    keep_the_law(scenario(seed, faults=faults))
