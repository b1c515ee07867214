"""An audit decides every turn again, facts included, with no model and no tool, and says where it cannot compare."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from remit.backend.memory.blobs import MemoryBlobs
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import ModelAnswered, RunStarted
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition
from remit.core.record import JsonObject, digest_of, replace
from remit.core.run.inference import ModelResult
from remit.core.work.graph import schema_text
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.linked_turns import references
from remit.orchestrate.history.replay import SHOWN_CHARS_MAX, Audit, AuditVerdict, audit, kept_texts
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import in_turn, proposes, says
from remit.testing.world import SimulatedWorld
from tests.simulation.pattern_scenarios import fickle, vote_request
from tests.simulation.play import demo_manifest, demo_world
from tests.simulation.scenarios import played_world

SEEDS = 25
LONG = "long " * 400
NUMBERS: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "string"}, "m": {"maximum": 3}, "any": {}},
}
Tamper = Callable[[Turn], Turn]


@cache
def worlds() -> tuple[SimulatedWorld, ...]:
    return tuple(played_world(seed) for seed in range(SEEDS))


def gone(digest: bytes) -> bytes | None:
    """No text is kept any more."""
    return None


def audited(world: SimulatedWorld, run: SimulatedRun) -> Audit:
    return audit(run.journal, world.blobs._kept.get)


def tampered(run: SimulatedRun, seq: int, change: Tamper) -> list[bytes]:
    """The journal with one turn changed and every later one linked to it."""
    chain: list[bytes] = []
    for turn in run.turns:
        turn = change(turn) if turn.seq == seq else turn
        chain.append(encode_turn(replace(turn, previous=hash_turn(chain[-1]) if chain else b"")))
    return chain


def arrival_with(**changes: Any) -> Tamper:
    return lambda turn: replace(turn, arrival=replace(turn.arrival, **changes))


def calls(arguments: Any) -> SimulatedRun:
    """A run whose model calls a tool with these arguments."""
    tool = ToolDefinition("count", "count something", NUMBERS, effect=Effect.READ)
    result = ModelResult(tool_calls=(ToolCall("c", "count", arguments),))
    world = SimulatedWorld(model=in_turn(result, says("done")), tools={"count": lambda found: "1"})
    return world.finish(replace(demo_manifest(), tools=(tool,)))


DEMO_WORLD = demo_world()
DEMO = DEMO_WORLD.finish(demo_manifest())


@pytest.mark.slow
def test_every_journal_of_many_simulated_runs_comes_out_the_same() -> None:
    audits = [audited(world, world.run(run_id)) for world in worlds() for run_id in world.run_ids()]
    assert len(audits) > SEEDS
    assert all((found.verdict, found.same) == (AuditVerdict.SAME, found.turns) for found in audits)
    assert any(found.copied for found in audits)
    assert any(found.unkept for found in audits)


def test_an_audit_of_the_demo_compares_every_turn() -> None:
    found = audited(DEMO_WORLD, DEMO)
    assert (found.verdict, found.same, found.difference) == (AuditVerdict.SAME, len(DEMO.turns), None)
    assert (found.unkept, found.copied, found.redacted, found.other_version) == ((), (), (), ())


def test_a_changed_decision_is_the_first_difference() -> None:
    def generous(turn: Turn) -> Turn:
        settled = rulings.CommandSettled("0.4", ((0, 1),))
        return replace(turn, decisions=(settled, *turn.decisions[1:]))

    found = audit(tampered(DEMO, 1, generous), gone)
    assert found.verdict is AuditVerdict.DIFFERENT
    assert found.same == 1
    assert found.difference is not None
    assert (found.difference.seq, found.difference.what) == (1, "turn.decisions[0].charged[0][1]")
    assert (found.difference.recorded, found.difference.recomputed) == ("1", "8")


def test_a_missing_decision_is_a_difference() -> None:
    found = audit(tampered(DEMO, 1, lambda turn: replace(turn, decisions=turn.decisions[:-1])), gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.what) == (1, "turn.decisions")
    assert len(found.difference.recorded) <= SHOWN_CHARS_MAX


@pytest.mark.parametrize(
    ("seq", "change", "what"),
    [
        (0, {"messages_tokens_bound": 1}, "arrival.messages_tokens_bound"),
        (1, {"tokens_bound": 1}, "arrival.tokens_bound"),
        (2, {"evidence": b"\x00" * 32}, "arrival.evidence"),
        (2, {"duration_ms": -5}, "arrival.duration_ms"),
        (6, {"text": "half \\ud800"}, "arrival.tokens_bound"),
    ],
)
def test_a_fact_that_does_not_follow_from_what_was_reported_is_a_difference(
    seq: int, change: dict[str, Any], what: str
) -> None:
    found = audit(tampered(DEMO, seq, arrival_with(**change)), gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.what) == (seq, what)


def test_a_changed_argument_is_a_difference_of_its_hash() -> None:
    answer = DEMO.turns[1].arrival
    assert isinstance(answer, ModelAnswered)
    call = replace(answer.calls[0], arguments='{"order_id":"43"}')
    found = audit(tampered(DEMO, 1, arrival_with(calls=(call, *answer.calls[1:]))), gone)
    assert found.difference is not None
    assert found.difference.what == "arrival.calls[0].arguments_hash"


@pytest.mark.parametrize("arguments", ["{not json", "[" * 5000, '{"n":' + "9" * 5000 + "}", "3"])
def test_arguments_that_nobody_could_have_written_are_a_difference(arguments: str) -> None:
    answer = DEMO.turns[1].arrival
    assert isinstance(answer, ModelAnswered)
    call = replace(answer.calls[0], arguments=arguments)
    found = audit(tampered(DEMO, 1, arrival_with(calls=(call, *answer.calls[1:]))), gone)
    assert (found.verdict, found.same) == (AuditVerdict.DIFFERENT, 1)


def test_an_arrival_that_could_not_have_been_judged_is_a_difference() -> None:
    lost = arrivals.ToolOutcomeLost("77.7")
    found = audit(tampered(DEMO, 2, lambda turn: replace(turn, arrival=lost)), gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.what) == (2, "decisions")


def test_a_journal_without_its_beginning_is_a_difference() -> None:
    found = audit(DEMO.journal[1:], gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.recomputed) == (0, "RunStarted")


def test_a_journal_that_begins_twice_is_a_difference() -> None:
    found = audit([DEMO.journal[0], DEMO.journal[0]], gone)
    assert found.difference is not None
    assert found.difference.seq == 1


def test_a_manifest_that_could_not_be_written_is_a_difference() -> None:
    def nameless(turn: Turn) -> Turn:
        assert isinstance(turn.arrival, RunStarted)
        request = turn.arrival.manifest.request
        call = ToolCall("c", "t", {"n": float("inf")})
        messages = (replace(request.messages[0], tool_calls=(call,)),)
        manifest = replace(turn.arrival.manifest, request=replace(request, messages=messages))
        return replace(turn, arrival=replace(turn.arrival, manifest=manifest))

    found = audit(tampered(DEMO, 0, nameless), gone)
    assert (found.verdict, found.same) == (AuditVerdict.DIFFERENT, 0)


def test_bytes_that_are_no_turn_are_a_difference() -> None:
    found = audit([*DEMO.journal[:3], b"\x01\x1b[2J"], gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.what) == (3, "bytes")
    assert found.difference.recorded.isprintable()


def test_a_turn_of_another_version_is_never_called_the_same() -> None:
    other = [encode_turn(replace(decode_turn(data), kernel=KERNEL_VERSION + 1)) for data in DEMO.journal]
    found = audit(other, gone)
    assert (found.verdict, found.same) == (AuditVerdict.OTHER_VERSION, 0)
    assert found.other_version == tuple(range(len(DEMO.turns)))


def test_a_turn_that_only_reads_the_same_was_written_by_another_version() -> None:
    # The same map of six fields in a longer spelling.
    assert DEMO.journal[0][1] == 0x86
    respelt = DEMO.journal[0][:1] + b"\xde\x00\x06" + DEMO.journal[0][2:]
    assert decode_turn(respelt) == DEMO.turns[0]
    found = audit([respelt], gone)
    assert (found.verdict, found.other_version, found.same) == (AuditVerdict.OTHER_VERSION, (0,), 0)


def test_a_turn_of_another_version_that_does_not_even_fold_is_a_difference() -> None:
    nonsense = replace(DEMO.turns[1], kernel=KERNEL_VERSION + 1, decisions=(rulings.CommandSettled("9.9"),))
    found = audit([DEMO.journal[0], encode_turn(nonsense)], gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.what) == (1, "fold")


def test_a_run_with_a_redacted_text_is_decided_again_and_never_called_the_same() -> None:
    world = SimulatedWorld(model=in_turn(says(LONG)))
    run = world.finish(demo_manifest())
    assert audited(world, run).verdict is AuditVerdict.SAME
    found = audit(run.journal, gone)
    assert (found.verdict, found.redacted, found.difference) == (AuditVerdict.REDACTED, (1,), None)
    assert found.same == found.turns - 1


def test_a_text_that_was_altered_is_a_difference() -> None:
    run = SimulatedWorld(model=in_turn(says(LONG))).finish(demo_manifest())
    found = audit(run.journal, lambda digest: b"something else")
    assert found.difference is not None
    assert (found.difference.what, found.difference.recomputed) == ("text", digest_of(b"something else").hex())


def test_a_decision_that_was_changed_is_found_although_a_text_is_gone() -> None:
    run = SimulatedWorld(model=in_turn(says(LONG))).finish(demo_manifest())
    changed = tampered(run, 1, lambda turn: replace(turn, decisions=turn.decisions[:-1]))
    assert audit(changed, gone).verdict is AuditVerdict.DIFFERENT


@pytest.mark.parametrize(
    "arguments",
    [
        {"any": 1e16},
        {"any": 1e21},
        {"any": -0.0},
        {"any": 1.0},
        {"any": [1.5e-7, {"b": None, "a": True}]},
        {"any": LONG},
    ],
)
def test_arguments_are_told_again_as_they_were_before_they_were_canonical(arguments: JsonObject) -> None:
    tool = ToolDefinition("count", "count something", NUMBERS, effect=Effect.READ)
    world = SimulatedWorld(
        model=in_turn(proposes("count", arguments), says("done")), tools={"count": lambda found: "1"}
    )
    run = world.finish(replace(demo_manifest(), tools=(tool,)))
    found = audited(world, run)
    assert (found.verdict, found.unkept) == (AuditVerdict.SAME, ())


@pytest.mark.parametrize(
    "arguments", [{"n": 1.0}, {"m": 4.0, "n": -0.0}, {"any": float("inf")}, {"any": 2**70}, {"n": [1.0] * 200}]
)
def test_words_that_the_journal_does_not_keep_are_named_as_such(arguments: JsonObject) -> None:
    found = audit(calls(arguments).journal, gone)
    assert (found.verdict, found.unkept) == (AuditVerdict.SAME, (1,))


@pytest.mark.parametrize("arguments", [[], "text", 3, None])
def test_arguments_that_are_no_object_are_judged_again(arguments: Any) -> None:
    found = audit(calls(arguments).journal, gone)
    assert (found.verdict, found.unkept) == (AuditVerdict.SAME, ())


def test_a_violation_in_other_words_is_a_difference_where_the_words_can_be_computed() -> None:
    run = calls({"n": 1})
    answer = run.turns[1].arrival
    assert isinstance(answer, ModelAnswered)
    violation = replace(answer.calls[0].violations[0], message="nothing is wrong")
    call = replace(answer.calls[0], violations=(violation,))
    found = audit(tampered(run, 1, arrival_with(calls=(call,))), gone)
    assert found.difference is not None
    assert found.difference.what == "arrival.calls[0].violations[0].message"


@pytest.mark.parametrize("redundancy", [Redundancy(3), Redundancy(3, early_stop=True), Redundancy(3, is_parallel=True)])
def test_a_vote_that_is_decided_again_has_the_same_winner(redundancy: Redundancy) -> None:
    schema: JsonObject = {"type": "object"}
    world = SimulatedWorld(model=fickle(in_turn(says("{}"))), seed=1)
    graph = redundant_graph(schema_text(schema), "", redundancy)
    run = world.finish(replace(demo_manifest(), graph=graph, request=vote_request(schema)))
    counted = run.last(rulings.VoteCounted)
    assert audited(world, run).verdict is AuditVerdict.SAME
    state = RunState()
    for turn, data in zip(run.turns, run.journal, strict=True):
        retaken = take_turn(state, turn.arrival, turn.at_ms)
        assert retaken.decisions == turn.decisions
        apply(state, turn, hash_turn(data))
    assert (state.result.answer, state.result.confidence_ppm) == (run.state.result.answer, counted.confidence_ppm)


def test_a_vote_with_another_winner_is_a_difference() -> None:
    schema: JsonObject = {"type": "object"}
    world = SimulatedWorld(model=in_turn(says("{}")))
    graph = redundant_graph(schema_text(schema), "", Redundancy(3))
    run = world.finish(replace(demo_manifest(), graph=graph, request=vote_request(schema)))
    seq = next(turn.seq for turn in run.turns if any(isinstance(d, rulings.VoteCounted) for d in turn.decisions))
    other = run.state.children.ended[1].command_id

    def bought(turn: Turn) -> Turn:
        swapped = (replace(d, winner=other) if isinstance(d, rulings.VoteCounted) else d for d in turn.decisions)
        return replace(turn, decisions=tuple(swapped))

    found = audit(tampered(run, seq, bought), gone)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.recomputed) == (seq, run.state.children.ended[0].command_id)


def test_the_texts_of_a_run_are_fetched_once_as_far_as_they_are_kept() -> None:
    world = SimulatedWorld(model=in_turn(says(LONG)))
    run = world.finish(demo_manifest())
    digests = {reference.digest for turn in run.turns for reference in references(turn)}
    damaged = [b"no turn", *run.journal, *run.journal]
    assert set(asyncio.run(kept_texts(world.blobs, damaged))) == digests
    assert asyncio.run(kept_texts(MemoryBlobs(), run.journal)) == {}
