"""The guard: what one operation costs in CPU time, from the bytes of its line to its answer, early and late in a run.

Run it alone: `python -m benchmarks.guard`.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.provenance import FILES, GOOD, LOOKUP, PROMPT, SEND, mails
from remit.core.record import JsonObject
from remit.orchestrate.guarding import Guard

# A flat cost shows between these; together they are less than the calls that a run may have.
CALLS = (10, 1_000, 3_000)
DECISIONS = 1_000
RECORDS = 5
BOUNDARY: JsonObject = {"budget": dict.fromkeys(("tool_calls", "external_api_calls", "side_effects"), 10**9)}


@dataclass(frozen=True)
class Latency:
    """How long a call and its result took after so many calls of the run: the middle and the 99th percentile."""

    name: str
    calls: int
    median_us: float
    p99_us: float


def line(op: str, **fields: object) -> bytes:
    """One line of the protocol."""
    return json.dumps({"op": op, "run": "r", **fields}).encode()


def opened(calls: int) -> Guard:
    """A guard whose run has made this many look-ups and one find."""
    guard = Guard()
    start = line("start", prompt=PROMPT, tools=[LOOKUP, FILES, SEND], boundary=BOUNDARY)
    assert guard.line(start) == {"ok": True}
    for number in range(calls):
        guard.line(line("call", id=f"r{number}", tool="search_mails", args={"query": f"report {number}"}))
        guard.line(line("result", id=f"r{number}", tool="search_mails", content=mails(number, RECORDS)))
    guard.line(line("call", id="f", tool="find_files", args={"name": "report.docx"}))
    guard.line(line("result", id="f", tool="find_files", content=[{"id": "7", "filename": "report.docx"}]))
    return guard


def measure(calls: int, decisions: int = DECISIONS) -> list[Latency]:
    """A mail that passes, each time another one, and its result."""
    guard, judged, settled = opened(calls), [], []
    for number in range(decisions):
        arguments = {**GOOD, "subject": f"The report, part {number}"}
        asked = line("call", id=f"c{number}", tool="send_mail", args=arguments)
        done = line("result", id=f"c{number}", tool="send_mail", content="sent")
        before = time.thread_time_ns()
        answer = guard.line(asked)
        between = time.thread_time_ns()
        guard.line(done)
        settled.append(time.thread_time_ns() - between)
        judged.append(between - before)
        assert answer is not None
        assert answer["decision"] == "allow", answer
    return [_latency("a call", calls, judged), _latency("its result", calls, settled)]


def _latency(name: str, calls: int, taken: list[int]) -> Latency:
    taken.sort()
    return Latency(name, calls, taken[len(taken) // 2] / 1e3, taken[len(taken) * 99 // 100] / 1e3)


def measure_guard(calls: Sequence[int] = CALLS, decisions: int = DECISIONS) -> list[Latency]:
    """Calls and results after each number of calls."""
    return [one for count in calls for one in measure(count, decisions)]


def main() -> None:
    """Print the table."""
    for one in measure_guard():
        print(f"{one.name:10} after {one.calls:5,} calls: {one.median_us:7.1f} us, p99 {one.p99_us:7.1f} us")


if __name__ == "__main__":
    main()
