"""Two boundaries compared: what the second allows more, what less, and what otherwise."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from remit.core.limits.authority import Authority, Inference, OptionReach, PlanSource
from remit.core.limits.boundary import (
    Boundary,
    BoundaryMode,
    Condition,
    DecisionRight,
    Demanding,
    Exhaustion,
    Rate,
    TaskRule,
    Then,
    Unverified,
)
from remit.core.limits.boundary_views import Difference
from remit.core.limits.budget import FIELDS, Budget
from remit.core.limits.profiles import KNOWN, STANDARD
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import replace
from remit.core.work.goal import TaskClass
from remit.orchestrate.boundaries.boundary_file import SHAPE, BoundaryKey
from remit.orchestrate.boundaries.boundary_words import differences

GATE = replace(STANDARD, authority=Authority())
HELD, WIDER = Condition("c", "changes", Then.STOP), Condition("c", "changes", Then.ASK)


def difference(first: Boundary, second: Boundary) -> Difference:
    (only,) = differences(first, second)
    return only


@pytest.mark.parametrize("boundary", KNOWN.values(), ids=list(KNOWN))
def test_a_boundary_does_not_differ_from_itself(boundary: Boundary) -> None:
    assert differences(boundary, boundary) == ()


@pytest.mark.parametrize(
    ("base", "change", "key", "said"),
    [
        (STANDARD, {"mode": BoundaryMode.AUDIT}, "mode", "enforce -> audit"),
        (
            replace(STANDARD, reads_max=Reads.PUBLIC),
            {"reads_max": Reads.SECRET},
            "observations.reads_max",
            "public -> secret",
        ),
        (replace(STANDARD, writes=()), {"writes": (StateWrite.FILES,)}, "writes", "+ files"),
        (replace(STANDARD, writes=()), {"writes": None}, "writes", "nothing -> all"),
        (replace(STANDARD, allowed_tools=("a",)), {"allowed_tools": ("a", "b")}, "tools.allowed", "+ b"),
        (STANDARD, {"approval_effects": (Effect.WRITE,)}, "tools.approval_effects", "- external"),
        (replace(STANDARD, four_eyes=(ToolCategory.PAYMENT,)), {"four_eyes": ()}, "tools.four_eyes", "- payment"),
        (STANDARD, {"permissions": ("p",)}, "tools.permissions", "+ p"),
        (
            replace(STANDARD, rates=(Rate("*", 5, 60_000),)),
            {"rates": ()},
            "tools.rates",
            "- all tools together: 5 calls per 1m",
        ),
        (
            replace(STANDARD, unverified=Unverified.REFUSE),
            {"unverified": Unverified.OBSERVE},
            "tools.unverified",
            "refuse -> observe",
        ),
        (replace(STANDARD, demands=Demanding.ENFORCE), {"demands": Demanding.SHOW}, "tools.demands", "enforce -> show"),
        (replace(STANDARD, decisions=()), {"decisions": (DecisionRight.DELEGATE,)}, "decisions.rights", "+ delegate"),
        (replace(STANDARD, tier_max=5), {"tier_max": 6}, "decisions.tier_max", "5 -> 6"),
        (STANDARD, {"budget": Budget(tool_calls=51)}, "budget.tool_calls", "50 calls -> 51 calls"),
        (STANDARD, {"budget": Budget(depth=3)}, "budget.depth", "2 levels -> 3 levels"),
        (STANDARD, {"exhaustion": (("steps", Exhaustion.ASK),)}, "budget.exhaustion", "steps: stop -> ask"),
        (STANDARD, {"wrap_up_tokens": 300}, "budget.wrap_up_tokens", "256 -> 300"),
        (STANDARD, {"stops_early": False}, "budget.stops_early", "true -> false"),
        (STANDARD, {"self_approval": True}, "self_approval", "none -> true"),
        (replace(STANDARD, self_approval=False), {"self_approval": None}, "self_approval", "false -> none"),
        (replace(STANDARD, release_by=("ann",)), {"release_by": ("ann", "bob")}, "budget.release_by", "+ bob"),
        (replace(STANDARD, release_by=("ann",)), {"release_by": ()}, "budget.release_by", "ann -> all"),
        (
            replace(STANDARD, approval_wait_ms_max=1000),
            {"approval_wait_ms_max": 60_000},
            "escalation.approval_wait",
            "1s -> 1m",
        ),
        (STANDARD, {"authority": Authority()}, "authority", "off -> on"),
        (GATE, {"authority": Authority(infer_fields=Inference.IDENTITY)}, "authority.infer_fields", "off -> identity"),
        (GATE, {"authority": Authority(closed_set=OptionReach.ALL)}, "authority.closed_set", "off -> all"),
        (GATE, {"authority": Authority(tripwire=False)}, "authority.tripwire", "true -> false"),
        (GATE, {"authority": Authority(plan=PlanSource.OFF)}, "authority.plan", "words -> off"),
        (replace(STANDARD, conditions=(HELD,)), {"conditions": ()}, "conditions", "- c"),
        (replace(STANDARD, conditions=(HELD,)), {"conditions": (WIDER,)}, "conditions", "c: stop -> ask"),
    ],
)
def test_what_is_wider_one_way_is_narrower_the_other(
    base: Boundary, change: dict[str, Any], key: str, said: str
) -> None:
    wider = replace(base, **change)
    found, back = difference(base, wider), difference(wider, base)
    assert (found.key, found.more, found.less, found.other) == (key, (said,), (), ())
    assert (back.key, back.more, back.other) == (key, (), ())
    assert len(back.less) == 1


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ({"name": "mine"}, "name", "standard -> mine"),
        ({"queues": (("outage", "night"),)}, "escalation.queues", "outage: as usual -> night"),
        ({"on_silence": ("ann", "bob")}, "escalation.on_silence", "nothing -> ann, bob"),
        (
            {"approval_effects": (Effect.EXTERNAL, Effect.WRITE)},
            "tools.approval_effects",
            "write, external -> external, write",
        ),
        ({"budget": Budget(tool_calls=50)}, "budget.tool_calls", "50 calls (standard) -> 50 calls"),
    ],
)
def test_what_is_neither_more_nor_less_is_other(change: dict[str, Any], key: str, said: str) -> None:
    found = difference(STANDARD, replace(STANDARD, **change))
    assert (found.key, found.more, found.less, found.other) == (key, (), (), (said,))


def test_a_cap_that_is_no_longer_said_is_the_standard_one() -> None:
    assert difference(replace(STANDARD, budget=Budget(retries=3)), STANDARD).other == (
        "3 in a row -> 3 in a row (standard)",
    )


def test_a_set_may_gain_and_lose_at_once() -> None:
    found = difference(replace(STANDARD, permissions=("a", "b")), replace(STANDARD, permissions=("b", "c")))
    assert (found.more, found.less) == (("+ c",), ("- a",))


def test_conditions_that_are_worded_otherwise_may_do_either() -> None:
    first = replace(STANDARD, conditions=(Condition("a", "changes"), Condition("b", "network"), HELD))
    second = replace(
        STANDARD, conditions=(Condition("a", "destructive"), Condition("b", "network", message="why"), HELD)
    )
    assert difference(first, second).other == ("a: changes -> destructive", "b: '' -> 'why'")
    turned = replace(first, conditions=tuple(reversed(first.conditions)))
    assert difference(first, turned).other == ("a, b, c -> c, b, a",)


def test_ways_of_being_spent_and_plans_are_compared_with_stopping_and_with_none() -> None:
    ask, compress = (("steps", Exhaustion.ASK),), (("steps", Exhaustion.COMPRESS),)
    found = difference(replace(STANDARD, exhaustion=ask), replace(STANDARD, exhaustion=compress))
    assert found.other == ("steps: ask -> compress",)
    both = (*ask, ("depth", Exhaustion.STOP))
    assert difference(replace(STANDARD, exhaustion=ask), replace(STANDARD, exhaustion=both)).other == (
        "steps -> steps, depth",
    )
    model = replace(STANDARD, authority=Authority(plan=PlanSource.MODEL))
    assert difference(GATE, model).other == ("words -> model",)


def test_every_key_of_a_file_is_compared() -> None:
    other = Boundary(
        "other",
        ("a",),
        (),
        ("p",),
        Budget(*[1_000_000_007 + at for at in range(len(FIELDS))]),
        1,
        BoundaryMode.AUDIT,
        (),
        (ToolCategory.PAYMENT,),
        (Rate("a", 1, 1),),
        (HELD,),
        (HELD,),
        Authority(),
        Reads.PUBLIC,
        (),
        (),
        1,
        (("steps", Exhaustion.ASK),),
        1,
        False,  # the field stands here
        (("outage", "x"),),
        ("x",),
        False,
        ("x",),
        trusted_hosts=("wiki.corp.example",),
        tasks=(TaskRule("a", "true", TaskClass.ESTIMATE),),
        identities=("who:customer",),
        concerns=(("regulated", ("a",)),),
        purchase_max=5,
        unverified=Unverified.REFUSE,
        demands=Demanding.ENFORCE,
    )
    keys = {one.key for one in differences(STANDARD, other)}
    files = {
        name if isinstance(entry, BoundaryKey) else f"{name}.{key}"
        for name, entry in SHAPE.items()
        for key in _of(entry)
    }
    twins = {"budget.wall_clock", "budget.inference_cost_usd"}
    assert keys == files - twins


def _of(entry: BoundaryKey | Mapping[str, BoundaryKey]) -> Iterable[str]:
    return ("",) if isinstance(entry, BoundaryKey) else entry


def test_rules_for_tasks_are_compared_by_their_names() -> None:
    rule = TaskRule("a", "true", TaskClass.ESTIMATE)
    one, other = (
        replace(STANDARD, tasks=(rule,)),
        replace(STANDARD, tasks=(replace(rule, grounds=(ToolCategory.PAYMENT,)),)),
    )
    assert difference(STANDARD, one).less == ("+ a",)
    assert difference(one, STANDARD).more == ("- a",)
    assert difference(one, other).other == ("a: estimate when true -> estimate when true grounded by payment",)
    two = replace(STANDARD, tasks=(rule, replace(rule, name="b")))
    assert difference(two, replace(two, tasks=two.tasks[::-1])).other == ("a, b -> b, a",)
