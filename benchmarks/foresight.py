"""Foreseeing: what stopping hopeless runs early saves, and which successes it costs, on a recorded set of tasks.

Runs of a few task classes are recorded without it: some have all they need, some have a budget that may or may not
suffice, and of some the model never comes to an end. Half of them are the history; the other half, made of other seeds,
is judged again from its recorded arrivals: by what the goal requires, by the history, and by both. What is saved are
tokens that the recorded run really went on to spend. Run it alone: `python -m benchmarks.foresight`.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from random import Random

from remit.core.failure import Ending
from remit.core.journal.arrivals import RunStarted
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.foresight import RUNS_MIN, Foresight
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, ModelResult, Price
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import Message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.goal import Goal, RequiredAction, TaskClass
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.cost.like_runs import course_of, foresight_of, shortfall_in
from remit.observe.linked_turns import History, read_history, states
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.setup.like_run_lookup import RUNS_MAX
from remit.testing.world import SimulatedWorld

# Runs of each class in either half.
RUNS = 200
# How much history: as few as could be asked for, what is asked for, what is looked at, and all there is.
HISTORIES = (3, 10, RUNS_MIN, RUNS_MAX)
PARAMETERS: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LOOK = ToolDefinition("look", "look something up", PARAMETERS, effect=Effect.READ, network=False)
MODEL = ModelInfo("scripted", 100_000, Price(1_000_000, 2_000_000))
# A result of some sixty tokens, as a record of an order has.
RESULT = json.dumps({"ok": True, "text": "what was found, at some length. " * 7})
# Shares of the runs: those whose budget may not suffice, and those whose model never comes to an end.
TIGHT, ENDLESS = 0.45, 0.05
# Beyond the least and below the most that a class needs, so that some of the tight budgets suffice.
SHARE_MIN, SHARE_MAX = 0.2, 1.1


@dataclass(frozen=True)
class Kind:
    """A class of tasks: how many rounds of look-ups one takes, how many at once, how much is said, what is required."""

    task_class: TaskClass
    rounds_min: int
    rounds_max: int
    at_once: int
    words_max: int
    required: int = 0

    @property
    def goal(self) -> Goal:
        """What such a task is for."""
        actions = (RequiredAction("look", self.required),) if self.required else ()
        return Goal("find it", required_actions=actions, task_class=self.task_class)

    def typical(self) -> dict[str, int]:
        """About what the longest such task takes, by dimension."""
        rounds, said = self.rounds_max, self.words_max
        return {
            "tool_calls": rounds * self.at_once,
            "output_tokens": (rounds + 1) * said,
            "input_tokens": (rounds + 1) * (rounds * self.at_once * 70 + 60) // 2,
            "steps": 2 * rounds + 3,
        }


KINDS = (
    Kind(TaskClass.CURRENT_FACT, 1, 3, 1, 60),
    Kind(TaskClass.ACCOUNT_STATUS, 2, 4, 2, 90, required=3),
    Kind(TaskClass.TOOL_RESULT, 4, 8, 2, 150, required=6),
    Kind(TaskClass.CREATIVE, 0, 2, 1, 900),
)


@dataclass
class Row:
    """What came of the runs of one class: what they spent, in vain or not, and what each way of stopping did to them."""

    name: str
    runs: int = 0
    succeeded: int = 0
    tokens: int = 0
    # Tokens of the runs that came to nothing, for want of budget and because the model came to no end: all there is to save.
    tokens_short: int = 0
    tokens_endless: int = 0
    saved: dict[str, int] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def count(self, way: str, saved: int, *, is_success: bool) -> None:
        """Note that a run was stopped so."""
        self.saved[way] = self.saved.get(way, 0) + saved
        self.stopped[way] = self.stopped.get(way, 0) + 1
        self.lost[way] = self.lost.get(way, 0) + is_success


@dataclass(frozen=True)
class Recorded:
    """A run that was played to its end, without foreseeing anything."""

    history: History
    state: RunState
    is_endless: bool

    @property
    def is_success(self) -> bool:
        """Whether the task was done."""
        return self.state.end.ending is Ending.SUCCESS


def recorded(kind: Kind, seed: int) -> Recorded:
    """One run of a task."""
    chance = Random(f"{kind.task_class} {seed}")
    is_endless = chance.random() < ENDLESS
    rounds = 10**6 if is_endless else chance.randint(kind.rounds_min, kind.rounds_max)
    manifest = make_manifest(
        run_id=f"{kind.task_class}-{seed}",
        request=SystemRequest(messages=(user_message("Please find out what became of order 42."),)),
        boundary=Boundary(name="recorded", stops_early=False),
        budget=_budget(kind, chance),
        graph=chat_graph(),
        models=(MODEL,),
        tools=(LOOK,),
        goal=kind.goal,
    )
    world = SimulatedWorld(model=_model(kind, rounds), tools={"look": lambda arguments: RESULT}, seed=seed)
    run = world.finish(manifest)
    return Recorded(read_history(run.run_id, run.journal), run.state, is_endless)


def _budget(kind: Kind, chance: Random) -> Budget:
    """What the boundary gives, or less of one dimension than some of these tasks need."""
    if chance.random() >= TIGHT:
        return Budget()
    name, typical = chance.choice(sorted(kind.typical().items()))
    return Budget(**{name: max(1, round(typical * chance.uniform(SHARE_MIN, SHARE_MAX)))})


def _model(kind: Kind, rounds: int) -> Callable[[Sequence[Message], Random], ModelResult]:
    """A model that looks so many times, each time for something else, and then answers."""

    def answer(messages: Sequence[Message], chance: Random) -> ModelResult:
        asked = sum(message.role == "assistant" for message in messages)
        shown = sum(len(str(message.content)) for message in messages)
        usage = TokenUsage(prompt_tokens=shown // 4, output_tokens=chance.randint(kind.words_max // 3, kind.words_max))
        if asked >= rounds:
            return ModelResult("It was delivered.", usage=usage)
        count = chance.randint(1, kind.at_once)
        calls = [ToolCall(f"c{n}", "look", {"n": asked * kind.at_once + n}) for n in range(count)]
        return ModelResult(tool_calls=tuple(calls), usage=usage)

    return answer


def judged_again(history: History, foresight: Foresight | None) -> RunState:
    """The same arrivals, decided with foreseeing on: as they were, or up to where the run is stopped."""
    state, copied = RunState(), -1
    for turn in history.turns:
        arrival = turn.arrival
        if turn.seq and turn.seq <= copied:  # Decided for the origin of a fork, and not decided again.
            apply(state, turn, b"")
            continue
        if isinstance(arrival, RunStarted):
            boundary = replace(arrival.manifest.boundary, stops_early=True)
            manifest: Manifest = replace(arrival.manifest, boundary=boundary, foresight=foresight)
            arrival = replace(arrival, manifest=manifest)
            copied = manifest.forked_from.seq if manifest.forked_from else -1
        apply(state, take_turn(state, arrival, turn.at_ms), b"")
        if state.end.ending is not None:
            break
    return state


def tokens_of(state: RunState) -> int:
    """What models read and said."""
    return state.used[Dimension.INPUT_TOKENS] + state.used[Dimension.OUTPUT_TOKENS]


def tokens_at(history: History, seq: int) -> int:
    """What was spent before the model call of a turn."""
    for turn, state in states(history):
        if turn.seq == seq:
            return tokens_of(state)
    raise LookupError(f"run {history.run_id} has no turn {seq}")


def learned(kind: Kind, seeds: range) -> list[Foresight | None]:
    """What the first so many successes of the history say, for each of HISTORIES."""
    courses = [course for seed in seeds if (course := course_of(states(recorded(kind, seed).history)))]
    return [_as_enough(foresight_of(courses[-count:], runs_min=min(count, RUNS_MIN))) for count in HISTORIES]


def _as_enough(foresight: Foresight | None) -> Foresight | None:
    """As if a history that is too short sufficed: to see what it would cost."""
    return None if foresight is None else replace(foresight, runs=max(foresight.runs, RUNS_MIN))


def measure_kind(kind: Kind, runs: int) -> Row:
    """The history of a class, and what it would have done to other runs of the class."""
    foresights = learned(kind, range(runs))
    row = Row(kind.task_class.value)
    for seed in range(runs, 2 * runs):
        run = recorded(kind, seed)
        tokens = tokens_of(run.state)
        row.runs += 1
        row.succeeded += run.is_success
        row.tokens += tokens
        if not run.is_success:
            row.tokens_endless += tokens if run.is_endless else 0
            row.tokens_short += 0 if run.is_endless else tokens
        for way, left_over in stops_of(run, foresights):
            row.count(way, tokens - left_over, is_success=run.is_success)
    return row


def stops_of(run: Recorded, foresights: Sequence[Foresight | None]) -> Iterator[tuple[str, int]]:
    """Which ways stop a run early, and what it has spent by then."""
    for count, foresight in zip(HISTORIES, foresights, strict=True):
        if foresight is not None and (short := shortfall_in(states(run.history), foresight)) is not None:
            yield f"history {count}", tokens_at(run.history, short.seq)
    for way, foresight in (("goal", None), ("both", foresights[-1])):
        again = judged_again(run.history, foresight)
        if again.end.ending is not run.state.end.ending or again.seq < run.state.seq:
            yield way, tokens_of(again)


def measure(runs: int = RUNS, kinds: Sequence[Kind] = KINDS) -> list[Row]:
    """A row for each class, and one for all of them."""
    rows = [measure_kind(kind, runs) for kind in kinds]
    total = Row("all")
    for row in rows:
        for name in ("runs", "succeeded", "tokens", "tokens_short", "tokens_endless"):
            setattr(total, name, getattr(total, name) + getattr(row, name))
        for part in ("saved", "stopped", "lost"):
            amounts = getattr(total, part)
            amounts |= {way: amounts.get(way, 0) + amount for way, amount in getattr(row, part).items()}
    return [*rows, total]


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """What the report says."""
    yield "Foreseeing: what a recorded set of tasks would have saved, by what stops a run"
    yield f"  {'':<17}{'runs':>6}{'succeeded':>11}{'tokens':>12}{'in vain: budget':>18}{'no end':>11}"
    for row in rows:
        spent = f"{row.tokens:>12,}{row.tokens_short:>18,}{row.tokens_endless:>11,}"
        yield f"  {row.name:<17}{row.runs:>6}{row.succeeded:>11}{spent}"
    for way in ("goal", *(f"history {count}" for count in HISTORIES), "both"):
        yield f"  {_titles(way)}"
        yield f"  {'':<17}{'stopped':>9}{'tokens saved':>15}{'of those in vain':>18}{'successes lost':>16}"
        for row in rows:
            saved = row.saved.get(way, 0)
            in_vain = row.tokens_short + row.tokens_endless
            share = saved / in_vain if in_vain else 0
            yield f"  {row.name:<17}{row.stopped.get(way, 0):>9}{saved:>15,}{share:>18.0%}{row.lost.get(way, 0):>16}"


def _titles(way: str) -> str:
    if way == "goal":
        return "by what the goal requires alone"
    count = way.removeprefix("history ")
    return f"by both, {HISTORIES[-1]} successes" if way == "both" else f"by a history of {count} successes alone"


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.foresight", description="Measure what foreseeing saves."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each class in either half")
    options = parser.parse_args()
    rows = measure(options.runs)
    print(json.dumps([asdict(row) for row in rows]) if options.json else "\n".join(lines(rows)))


if __name__ == "__main__":
    main()
