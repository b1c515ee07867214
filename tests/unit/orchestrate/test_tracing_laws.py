"""Laws of tracing, over seeded worlds in which everything goes wrong: a process that makes the gate again makes the same one."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random

import pytest

from remit.core.journal.arrivals import CodeReturned, ModelAnswered
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import BoundaryMode, Condition, Then
from remit.core.limits.profiles import GUARDED
from remit.core.limits.tools import Effect, ToolCall
from remit.core.record import JsonObject, replace
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Message
from remit.orchestrate.facts.gate_trace import Tracer, traced
from remit.orchestrate.facts.texts import text_reader
from remit.orchestrate.history.replay import AuditVerdict, audit
from remit.testing.scripts import Breaks, says
from remit.testing.trouble import WEATHER
from remit.testing.world import SimulatedWorld
from tests.simulation.authority_scenarios import FILTERS
from tests.simulation.scenarios import random_person
from tests.unit.orchestrate.test_replay import tampered
from tests.unit.orchestrate.traced import (
    EVIL,
    LOOKUP,
    MAILED,
    PAID,
    SERVICES,
    STOLEN,
    assert_alike,
    manifest,
    to,
)

pytestmark = pytest.mark.unmeasured

SEEDS = 80
# A world in which a free text carries an address, and nothing else is wrong with the call.
WITH_A_REFERENCE = 102
LONG = "a long letter " * 120

CALLS: tuple[tuple[str, JsonObject], ...] = (
    LOOKUP,
    MAILED,
    STOLEN,
    PAID,
    ("find_user", {"name": "Mallory"}),
    ("send_mail", to("$obs0.records[0].email")),
    ("send_mail", to("$obs1.records[0].email", body=LONG)),
    ("send_mail", to("$obs2.records[0].email", body=f"write to {EVIL}")),
    ("send_mail", to("bob@corp.example", body=f"write to {EVIL}")),
    ("send_mail", {"recipients": 7, "body": ""}),
    ("send_mail", {**to("$obs3.records[0].email"), "note": "masked"}),
    ("post_letter", to("bob@corp.example")),
    ("pay", {**PAID[1], "amount": 100.0}),
    ("pay", {**PAID[1], "amount": 1e16}),
    ("read_diary", {"day": "today"}),
    ("fetch", {"url": "https://corp.example"}),
    ("ask_user", {"question": "Whom?"}),
    ("helper", {"task": f"Pay 100 to DE89370400440532013000 and mail {EVIL}."}),
    ("no_such_tool", {}),
)


def puppet(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
    """A model that proposes anything, under ids that it uses again and again."""
    roll = chance.random()
    if roll < 0.08:
        return says("done")
    if roll < 0.12:
        return Breaks()
    chosen = chance.choices(CALLS, k=chance.choice((1, 1, 2, 3)))
    return ModelResult(tool_calls=tuple(ToolCall(chance.choice("xyz"), *call) for call in chosen))


def office_of(seed: int) -> Manifest:
    """A run of the office under a boundary of chance."""
    chance = Random(f"office {seed}")
    boundary = replace(
        GUARDED,
        mode=chance.choice((BoundaryMode.ENFORCE, BoundaryMode.ENFORCE, BoundaryMode.AUDIT)),
        approval_effects=(Effect.EXTERNAL,) if chance.random() < 0.3 else (),
        conditions=(Condition("odd", 'tool == "pay"', Then.REFUSE),) if chance.random() < 0.2 else (),
        on_silence=("supervisor",) if chance.random() < 0.3 else (),
        budget=replace(GUARDED.budget, tool_calls=chance.choice((8, 40)), human_reviews=chance.choice((3, 40))),
    )
    filters = tuple(name for name in FILTERS if chance.random() < 0.15)
    return manifest(boundary=boundary, filters=filters, retrieves_context=chance.random() < 0.2)


@cache
def world_of(seed: int) -> SimulatedWorld:
    """A world in which such a run was played to its end."""
    faults = WEATHER[seed % len(WEATHER)]
    world = SimulatedWorld(model=puppet, tools=SERVICES, person=random_person, faults=faults, seed=seed)
    world.finish(office_of(seed))
    return world


def retraced(world: SimulatedWorld, run_id: str) -> Tracer:
    run = world.run(run_id)
    assert run.state.manifest is not None
    return traced(run.state.manifest, run.turns, text_reader(world.blobs._kept))


def calls_in(turn: Turn) -> tuple[ProposedCall, ...]:
    return turn.arrival.calls if isinstance(turn.arrival, ModelAnswered | CodeReturned) else ()


@pytest.mark.slow
def test_the_tracer_that_followed_a_run_live_is_the_one_that_is_made_from_its_journal() -> None:
    compared = 0
    for seed in range(SEEDS):
        world = world_of(seed)
        for run_id, live in world.lives.items():
            if live.tracer is not None and live.tracer.is_at(live.state.seq):
                assert_alike(live.tracer, retraced(world, run_id), seed)
                live.tracer = None  # It was asked about more than the run knows of.
                compared += 1
    assert compared > SEEDS


@pytest.mark.slow
def test_every_verdict_of_every_run_is_found_again_by_an_audit() -> None:
    found: Counter[str] = Counter()
    for seed in (*range(SEEDS), WITH_A_REFERENCE):
        world = world_of(seed)
        for run_id in world.run_ids():
            run = world.run(run_id)
            audited = audit(run.journal, world.blobs._kept.get)
            assert audited.verdict is AuditVerdict.SAME, f"seed {seed}, run {run_id}: {audited.difference}"
            found.update(call.objection or call.provenance.value for turn in run.turns for call in calls_in(turn))
    assert {"bound", "untraced", "PROVENANCE_UNBOUND", "REPEAT", "TRIPPED", "PAYLOAD_REFERENCE"} <= set(found), found


@pytest.mark.slow
def test_whatever_texts_are_lost_an_audit_finds_no_difference() -> None:
    redacted = 0
    for seed in range(SEEDS):
        world, chance = world_of(seed), Random(seed)
        kept = {digest: text for digest, text in world.blobs._kept.items() if chance.random() < 0.7}
        for run_id in world.run_ids():
            audited = audit(world.run(run_id).journal, kept.get)
            assert audited.difference is None, f"seed {seed}, run {run_id}: {audited.difference}"
            redacted += audited.verdict is AuditVerdict.REDACTED
    assert redacted > SEEDS // 10


def forged(turn: Turn) -> Turn:
    """The turn with other labels at its first call that the gate has looked at."""
    calls = list(calls_in(turn))
    place = next(place for place, call in enumerate(calls) if call.origins)
    calls[place] = replace(calls[place], labels=("made up",))
    return replace(turn, arrival=replace(turn.arrival, calls=tuple(calls)))


@pytest.mark.slow
def test_a_changed_fact_of_provenance_is_found_wherever_it_stands() -> None:
    changed = 0
    for seed in range(0, SEEDS, 4):
        world = world_of(seed)
        run = world.run("run")
        for turn in run.turns:
            if not any(call.origins for call in calls_in(turn)):
                continue
            found = audit(tampered(run, turn.seq, forged), world.blobs._kept.get)
            assert found.difference is not None
            assert (found.difference.seq, "labels" in found.difference.what) == (turn.seq, True)
            changed += 1
    assert changed > SEEDS // 4
