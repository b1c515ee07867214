"""Authorization: what a decision on one call costs with every check on, early and late in a run.

Each decision is timed alone, since the slowest of a hundred matter as much as the middle one: half of all decisions
take at most the median, and all but one in a hundred at most the 99th percentile. The kernel's own checks are too short
for the clock and are timed in batches. Before each figure stands its floor, timed in turn with it. The growth exponent is
that of the median over the number of results that the run has seen: 0 is flat, 1 is linear.

Run it alone: `python -m benchmarks.authorization`.
"""

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Any

from benchmarks.errand import FOUND, LOOKUP, MAIL, PROMPT, STRAY, TOOLS, mails
from benchmarks.measure import FULL, Work, growth_exponent
from benchmarks.parts import agree, judged_call
from remit.agents.guard_in_memory import GuardInMemory
from remit.core.journal.canonical import canonical_json
from remit.core.journal.codec import read_json, to_json
from remit.core.journal.proposed_call import Provenance
from remit.core.record import JsonObject
from remit.core.record import replace as changed
from remit.core.work.orders import orders_of
from remit.kernel.authority.authorize import CHECKS, authorize
from remit.kernel.authority.verdict import ALLOWED
from remit.provenance.gate import Gate, start
from remit.provenance.gate_verdict import Decision, GateVerdict

# A flat cost shows between these; a run with more results is none that a person reads.
RESULTS = (10, 100, 1_000)
# Decisions of each figure in a round: enough that one in a hundred is a few.
DECISIONS = 400
ROUNDS = 3
# Calls of the kernel's checks in one go; they take about a microsecond.
BATCH = 50
# What is asked for: tens of microseconds, and less than a millisecond for all but one in a hundred.
MEDIAN_WANTED_US, P99_WANTED_US = 100, 1_000
# Flat, but for the noise of a machine.
EXPONENT_MAX = 0.05
# No cap may end a run that is there to be measured.
PLENTY: JsonObject = {"budget": dict.fromkeys(("tool_calls", "external_api_calls", "side_effects"), 10**9)}
_NAMES = count()
# Ten orders, the last of which is the mail: its words are the model's.
_FREE = {"free": ["search_mails", "find_files", "find_contact"]}
_FIXED = {name: {"literal": value} for name, value in MAIL.items() if name not in ("subject", "body", "attachments")}
ORDERS: list[JsonObject] = [
    *({"tool": "send_mail", "args": {"recipients": [f"p{number}@corp.example"]}} for number in range(9)),
    {
        "tool": "send_mail",
        "args": {**_FIXED, "attachments": {"literal": ["7"]}},
        "text": {"subject": _FREE, "body": _FREE},
    },
]


@dataclass(frozen=True)
class Trial:
    """One thing to be timed, its floor, and what has to happen between two decisions."""

    name: str
    floor: str
    work: Work
    floor_work: Work
    settle: Work
    batch: int = 1


@dataclass(frozen=True)
class Series:
    """One figure at several lengths of the run: microseconds of single decisions, of the best round."""

    name: str
    floor: str
    results: tuple[int, ...]
    taken: tuple[tuple[float, ...], ...]
    floor_taken: tuple[tuple[float, ...], ...]

    @property
    def medians(self) -> list[float]:
        """The median at each length."""
        return [at_share(taken, 0.5) for taken in self.taken]

    @property
    def p99_us(self) -> float:
        """The 99th percentile, at the length where it is the worst."""
        return max(at_share(taken, 0.99) for taken in self.taken)

    @property
    def ratio(self) -> float:
        """How many floors a decision costs late in a run."""
        return self.medians[-1] / at_share(self.floor_taken[-1], 0.5)

    @property
    def exponent(self) -> float:
        """How the median grows with the length of the run."""
        return growth_exponent(self.results, self.medians)


def at_share(taken: Sequence[float], share: float) -> float:
    """What this share of all decisions took at most."""
    return sorted(taken)[min(int(len(taken) * share), len(taken) - 1)]


def gate_trials(results: int) -> list[Trial]:
    """A gate that has seen so many results, and the verdicts on an effect that passes, one that is held, and a read."""
    gate = start(PROMPT, TOOLS)
    look_up(results, gate.verdict_on, gate.observe)
    return [
        _gate_trial("gate: an effect that passes", gate, "send_mail", MAIL, Decision.ALLOW),
        _gate_trial("gate: an effect that is held", gate, "send_mail", STRAY, Decision.ASK),
        _gate_trial("gate: a read", gate, *LOOKUP, Decision.ALLOW),
    ]


def order_trials(results: int) -> list[Trial]:
    """A gate with orders that has seen so many results: the verdicts on an effect that equals the last order, and on another."""
    gate = start(PROMPT, TOOLS, orders=orders_of(ORDERS))
    look_up(results, gate.verdict_on, gate.observe)
    return [
        _gate_trial("gate: an effect that was ordered", gate, "send_mail", MAIL, Decision.ALLOW),
        _gate_trial("gate: an effect beyond orders", gate, "send_mail", STRAY, Decision.ASK),
    ]


def look_up(results: int, judge: Callable[..., object], observe: Callable[..., object]) -> None:
    """Read so many pages of mails, and find what the mail needs."""
    pages = [("search_mails", {"query": f"report {number}"}, mails(number)) for number in range(results)]
    for number, (tool, arguments, content) in enumerate((*pages, *FOUND)):
        judge(f"r{number}", tool, arguments)
        observe(f"r{number}", tool, content)


def _gate_trial(name: str, gate: Gate, tool: str, arguments: JsonObject, expected: Decision) -> Trial:
    proposed = [varied(arguments)]
    judged: list[GateVerdict] = []

    def settle() -> None:
        verdict = judged.pop()
        assert verdict.decision is expected, f"{name}: {verdict}"
        if verdict.decision is Decision.ASK:
            gate.answer(verdict.call_id, False, "the owner")  # noqa: FBT003  # the gate's own signature
        else:
            gate.observe(verdict.call_id, tool, "done")
            # The order is open again for the next decision.
            gate.ledger.carried_out.clear()
        proposed[0] = varied(arguments)

    return Trial(
        name,
        "hashing the canonical call",
        lambda: judged.append(gate.verdict_on(None, tool, proposed[0])),
        lambda: sha256(canonical_json([tool, proposed[0]])).hexdigest(),
        settle,
    )


def varied(arguments: JsonObject) -> JsonObject:
    """A call that was never made before, where it has words of its own. A long number would be looked at more closely."""
    if "subject" not in arguments:
        return arguments
    word = "".join(chr(ord("a") + int(digit)) for digit in str(next(_NAMES)))
    return {**arguments, "subject": f"The report, part {word}"}


def guard_trials(results: int) -> list[Trial]:
    """A guard with a run of so many results, and what a call of it takes from the line to the answer."""
    guard = GuardInMemory()
    opened = guard.line(_line("start", prompt=PROMPT, tools=TOOLS, boundary=PLENTY))
    assert opened == {"ok": True}, opened
    look_up(
        results,
        lambda call_id, tool, arguments: guard.line(_line("call", id=call_id, tool=tool, args=arguments)),
        lambda call_id, tool, content: guard.line(_line("result", id=call_id, tool=tool, content=content)),
    )
    lines: list[bytes] = [_mail_line()]
    answered: list[JsonObject | None] = []

    def settle() -> None:
        (answer,) = answered
        assert answer is not None, "a call is answered"
        assert answer["decision"] == Decision.ALLOW, answer
        guard.line(_line("result", id=answer["id"], tool="send_mail", content="sent"))
        answered.clear()
        lines[0] = _mail_line()

    answer = guard.line(lines[0])
    answered.append(answer)
    settle()
    return [
        Trial(
            "guard: a call, from its line on",
            "reading the line, writing the answer",
            lambda: answered.append(guard.line(lines[0])),
            lambda: (read_json(lines[0]), to_json(answer)),
            settle,
        )
    ]


def _line(op: str, **fields: object) -> bytes:
    return json.dumps({"op": op, "run": "r", **fields}).encode()


def _mail_line() -> bytes:
    return _line("call", id=f"c{next(_NAMES)}", tool="send_mail", args=varied(MAIL))


def kernel_trials(results: int) -> list[Trial]:
    """A state after so many calls, and all checks of the kernel on one more."""
    tally, call = judged_call(replace(FULL, loops=results))
    call, empty = changed(call, provenance=Provenance.BOUND), (agree,) * len(CHECKS)
    assert authorize(call, tally, CHECKS) is ALLOWED

    def judge(checks: Any) -> None:
        for _ in range(BATCH):
            authorize(call, tally, checks)

    name, floor = f"kernel: authorize, {len(CHECKS)} checks", f"{len(CHECKS)} empty checks"
    return [Trial(name, floor, lambda: judge(CHECKS), lambda: judge(empty), lambda: None, BATCH)]


def measure_authorization(
    results: Sequence[int] = RESULTS, decisions: int = DECISIONS, rounds: int = ROUNDS
) -> list[Series]:
    """Every figure at every length, in rounds; of each figure and length the round with the least median counts."""
    at_length = [
        [*gate_trials(size), *order_trials(size), *guard_trials(size), *kernel_trials(size)] for size in results
    ]
    best: dict[tuple[int, int], tuple[tuple[float, ...], tuple[float, ...]]] = {}
    for _ in range(rounds):
        for place, trials in enumerate(at_length):
            for row, trial in enumerate(trials):
                found = timed(trial, decisions)
                kept = best.get((place, row), found)
                best[place, row] = min(kept, found, key=lambda pair: at_share(pair[0], 0.5))
    rows = range(len(at_length[0]))
    return [
        Series(
            at_length[0][row].name,
            at_length[0][row].floor,
            tuple(results),
            tuple(best[place, row][0] for place in range(len(results))),
            tuple(best[place, row][1] for place in range(len(results))),
        )
        for row in rows
    ]


def timed(trial: Trial, decisions: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """CPU microseconds of so many decisions and of their floor, one after the other."""
    # What earlier figures left behind stays out of the collector's sight; what a decision leaves is collected on its time.
    gc.collect()
    gc.freeze()
    taken, floor_taken = [], []
    for _ in range(decisions):
        floor_taken.append(_micros(trial.floor_work, trial.batch))
        taken.append(_micros(trial.work, trial.batch))
        trial.settle()
    gc.unfreeze()
    return tuple(taken), tuple(floor_taken)


def _micros(work: Work, batch: int) -> float:
    began = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - began) / 1_000 / batch


def authorization_lines(found: Sequence[Series]) -> Iterator[str]:
    """What the report says of authorization."""
    sizes = found[0].results
    yield f"Authorization: one decision (CPU time), after {', '.join(f'{size:,}' for size in sizes)} results"
    medians = "".join(f"{f'at {size:,}':>10}" for size in sizes)
    yield f"  {'median µs':<36}{medians}{'p99 µs':>10}{'ratio':>8}{'exponent':>10}  floor"
    for one in found:
        shown = "".join(f"{median:>10,.1f}" for median in one.medians)
        yield f"  {one.name:<36}{shown}{one.p99_us:>10,.1f}{one.ratio:>8,.1f}{one.exponent:>10.3f}  {one.floor}"
    slowest, worst = max(max(one.medians) for one in found), max(one.p99_us for one in found)
    is_flat = max(one.exponent for one in found) <= EXPONENT_MAX
    is_within = is_flat and slowest <= MEDIAN_WANTED_US and worst <= P99_WANTED_US
    yield (
        f"  wanted: medians of at most {MEDIAN_WANTED_US} µs, p99 of at most {P99_WANTED_US:,}, exponents of at most {EXPONENT_MAX}: "
        f"{'reached' if is_within else 'MISSED'}"
    )


def authorization_values(found: Sequence[Series]) -> list[dict[str, Any]]:
    """The figures without their single decisions."""
    return [
        {
            "name": one.name,
            "floor": one.floor,
            "results": list(one.results),
            "median_micros": one.medians,
            "p99_micros": one.p99_us,
            "ratio": one.ratio,
            "exponent": one.exponent,
        }
        for one in found
    ]


def main() -> None:
    """Measure, then print."""
    print(*authorization_lines(measure_authorization()), sep="\n")


if __name__ == "__main__":
    main()
