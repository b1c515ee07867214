"""The gate of provenance: what one decision costs after few and after many results, and what a result costs to index.

Run it alone: `python -m benchmarks.provenance`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from remit.core.record import JsonObject
from remit.provenance.gate import Gate, start

PROMPT = "Mail the report 'report.docx' and a summary to mark@corp.example and alice@corp.example."
# A flat cost shows between these; a run with more results is none that a person reads.
RESULTS = (10, 100, 1_000)
RECORDS = 20
DECISIONS = 3_000

LOOKUP: JsonObject = {
    "name": "search_mails",
    "description": "Searches mails.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    "effect": "read",
    "result": {"[].id": "id:mail", "[].sender": "who:email", "[].subject": "label", "[].body": "text"},
}
FILES: JsonObject = {
    "name": "find_files",
    "description": "Finds files.",
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
    "effect": "read",
    "result": {"[].id": "id:file", "[].filename": "label"},
}
SEND: JsonObject = {
    "name": "send_mail",
    "description": "Sends a mail.",
    "parameters": {
        "type": "object",
        "properties": {
            "recipients": {"type": "array", "items": {"type": "string"}},
            "subject": {"type": "string"},
            "body": {"type": "string"},
            "attachments": {"type": "array", "items": {"type": "string"}},
        },
    },
    "effect": "external",
    "control_args": {"recipients": "email", "attachments": "id:file"},
    "payload_args": ["subject", "body"],
    "asks": ["mail"],
    "repeat": "free",
}
GOOD: JsonObject = {
    "recipients": ["mark@corp.example", "alice@corp.example"],
    "subject": "The report",
    "body": "The report says that all is well and that nothing is left to do. " * 3,
    "attachments": ["7"],
}
BAD: JsonObject = {**GOOD, "recipients": ["mark@corp.example", "p3.4@elsewhere.example"]}


@dataclass(frozen=True)
class Latency:
    """How long a decision took after so many results: the middle and the 99th percentile."""

    name: str
    results: int
    median_us: float
    p99_us: float


def filled(results: int) -> Gate:
    """A gate that has seen this many results."""
    gate = start(PROMPT, [LOOKUP, FILES, SEND])
    for number in range(results):
        gate.judge(f"r{number}", "search_mails", {"query": "report"})
        gate.observe(f"r{number}", "search_mails", mails(number, RECORDS))
    gate.judge("f", "find_files", {"name": "report.docx"})
    gate.observe("f", "find_files", [{"id": "7", "filename": "report.docx"}])
    return gate


def mails(number: int, count: int) -> list[JsonObject]:
    """One page of mails."""
    return [
        {
            "id": f"{number}-{place}",
            "sender": f"p{number}.{place}@elsewhere.example",
            "subject": f"Subject {place}",
            "body": "Some words that nobody vouches for. " * 8,
        }
        for place in range(count)
    ]


def measure(name: str, gate: Gate, arguments: JsonObject, results: int) -> Latency:
    """Judge the same call again and again."""
    taken = []
    for _ in range(DECISIONS):
        before = time.perf_counter_ns()
        gate.judge("c", "send_mail", arguments)
        taken.append(time.perf_counter_ns() - before)
        gate.ledger.open.clear()
    taken.sort()
    return Latency(name, results, taken[DECISIONS // 2] / 1e3, taken[DECISIONS * 99 // 100] / 1e3)


def measure_decisions(results: Sequence[int] = RESULTS) -> list[Latency]:
    """A call that passes and a call that is held, after each number of results."""
    found = []
    for count in results:
        gate = filled(count)
        found += [measure("passes", gate, GOOD, count), measure("is held", gate, BAD, count)]
    return found


def measure_index(count: int) -> float:
    """Milliseconds to index one result of this many records."""
    gate = start(PROMPT, [LOOKUP, FILES, SEND])
    gate.judge("r", "search_mails", {"query": "report"})
    content: Any = mails(0, count)
    before = time.perf_counter_ns()
    gate.observe("r", "search_mails", content)
    return (time.perf_counter_ns() - before) / 1e6


def main() -> None:
    """Print both tables."""
    for one in measure_decisions():
        print(f"{one.name:8} after {one.results:5,} results: {one.median_us:7.1f} us, p99 {one.p99_us:7.1f} us")
    for count in (100, 1_000, 10_000):
        print(f"index {count:6,} records: {measure_index(count):7.1f} ms")


if __name__ == "__main__":
    main()
