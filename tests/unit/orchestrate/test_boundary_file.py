"""Boundaries as files: what may stand in one, what is refused, and that what is written reads back."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.core.durations import said_duration
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.limits.authority import Authority, Inference, OptionReach, PlanSource
from remit.core.limits.boundary import (
    CONDITIONS_MAX,
    TIER_MAX,
    Boundary,
    BoundaryMode,
    Condition,
    DecisionRight,
    Exhaustion,
    Rate,
    TaskRule,
    Then,
    Whose,
    boundary_version,
)
from remit.core.limits.budget import FIELDS, UNCHARGED, Budget, Dimension
from remit.core.limits.escalation import Trigger
from remit.core.limits.profiles import BOUNDARY_INVALID, BOUNDARY_UNKNOWN, CUSTOMER_SUPPORT, KNOWN, STANDARD
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import RATE_MAX, Effect, ToolCategory
from remit.core.record import JsonObject, replace
from remit.core.schema.strict_yaml import YamlFault
from remit.core.work.goal import TaskClass
from remit.kernel.budget.exhaustion import WAYS_OUT
from remit.orchestrate.boundaries.boundary_file import (
    boundary_at,
    boundary_of,
    boundary_said,
    boundary_yaml,
    read_boundary,
)
from remit.orchestrate.boundaries.value_reader import NAME_CHARS_MAX, said_dollars
from tests.text_files import from_text

FULL = """
name: refunds
mode: audit
observations: {reads_max: private}
writes: [records, money]
tools:
  allowed: [look, pay]
  approval_effects: [external]
  approval_categories: [payment, database]
  four_eyes: [payment]
  permissions: [ledger.write]
  rates: [{tool: look, times: 5, per: 1m}, {tool: '*', times: 50, per: 3600000}]
decisions: {rights: [choose_tools], tier_max: 5}
budget:
  tool_calls: 20
  inference_cost_usd: 0.50
  wall_clock: 5m
  exhaustion: {output_tokens: wrap_up}
  wrap_up_tokens: 128
  stops_early: false
escalation:
  queues: {high_impact_mutation: finance}
  on_silence: [supervisor]
  approval_wait: 4h
authority: {infer_fields: typed, tripwire: false}
conditions:
- {name: large, when: 'tool == "pay" && args.amount > 10000', then: stop, message: too much}
- {name: any, when: changes}
"""


def refused(said: Any) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        boundary_of({"name": "mine", **said} if isinstance(said, dict) else said)
    return caught.value


def test_a_file_says_every_dimension_of_a_boundary() -> None:
    assert from_text(read_boundary, FULL, "refunds.yaml") == Boundary(
        name="refunds",
        mode=BoundaryMode.AUDIT,
        reads_max=Reads.PRIVATE,
        writes=(StateWrite.RECORDS, StateWrite.MONEY),
        allowed_tools=("look", "pay"),
        approval_effects=(Effect.EXTERNAL,),
        approval_categories=(ToolCategory.PAYMENT, ToolCategory.DATABASE),
        four_eyes=(ToolCategory.PAYMENT,),
        permissions=("ledger.write",),
        rates=(Rate("look", 5, 60_000), Rate("*", 50, 3_600_000)),
        decisions=(DecisionRight.CHOOSE_TOOLS,),
        tier_max=5,
        budget=Budget(tool_calls=20, inference_cost_microusd=500_000, wall_clock_ms=300_000),
        exhaustion=(("output_tokens", Exhaustion.WRAP_UP),),
        wrap_up_tokens=128,
        stops_early=False,
        queues=(("high_impact_mutation", "finance"),),
        on_silence=("supervisor",),
        approval_wait_ms_max=14_400_000,
        authority=Authority(infer_fields=Inference.TYPED, tripwire=False),
        conditions=(
            Condition("large", 'tool == "pay" && args.amount > 10000', Then.STOP, "too much"),
            Condition("any", "changes", Then.ASK),
        ),
    )


def test_a_file_extends_the_standard_boundary_unless_it_says_otherwise() -> None:
    assert boundary_of({"name": "mine"}) == replace(STANDARD, name="mine")
    mine = boundary_of({"name": "mine", "extends": "customer_support", "budget": {"steps": 3}})
    assert mine == replace(CUSTOMER_SUPPORT, name="mine", budget=replace(CUSTOMER_SUPPORT.budget, steps=3))


def test_a_list_replaces_a_list_and_mappings_are_merged() -> None:
    mine = boundary_of(
        {
            "name": "mine",
            "extends": "procurement",
            "tools": {"permissions": ["vendors.read"]},
            "escalation": {"queues": {"outage": "night"}},
            "authority": {"tripwire": False},
        }
    )
    assert mine.permissions == ("vendors.read",)
    assert dict(mine.queues) == {"high_impact_mutation": "procurement", "outage": "night"}
    assert mine.authority == Authority(tripwire=False)


def test_a_condition_is_added_to_those_of_the_profile_and_one_of_the_same_name_takes_its_place() -> None:
    mine = boundary_of(
        {
            "name": "mine",
            "extends": "customer_support",
            "conditions": [{"name": "late", "when": "hour > 20"}, {"name": "payment_change", "when": "destructive"}],
        }
    )
    kept = {one.name: one for one in mine.conditions}
    assert set(kept) == {*(one.name for one in CUSTOMER_SUPPORT.conditions), "late"}
    assert kept["payment_change"] == Condition("payment_change", "destructive")


@pytest.mark.parametrize("said", ["off", False])
def test_the_gate_can_be_switched_off(said: object) -> None:
    assert boundary_of({"name": "mine", "extends": "guarded", "authority": said}).authority is None
    assert from_text(read_boundary, "name: mine\nextends: guarded\nauthority: off\n", "x").authority is None


def test_everything_is_spelled_all() -> None:
    said = {"name": "mine", "extends": "procurement", "writes": "all", "decisions": {"rights": "all"}}
    mine = boundary_of({**said, "tools": {"allowed": "all"}})
    assert (mine.writes, mine.decisions, mine.allowed_tools) == (None, None, None)


@pytest.mark.parametrize(
    ("said", "ms"),
    [(1500, 1500), ("250ms", 250), ("30s", 30_000), ("5 m", 300_000), ("4h", 14_400_000), ("1d", 86_400_000)],
)
def test_time_is_said_with_a_unit_or_in_milliseconds(said: object, ms: int) -> None:
    assert boundary_of({"name": "mine", "escalation": {"approval_wait": said}}).approval_wait_ms_max == ms


@pytest.mark.parametrize(
    ("said", "microusd"), [(2, 2_000_000), (0.5, 500_000), ("0.50", 500_000), (0.000001, 1), (0, 0), (1e-05, 10)]
)
def test_money_is_said_in_dollars(said: object, microusd: int) -> None:
    mine = boundary_of({"name": "mine", "budget": {"inference_cost_usd": said}})
    assert mine.budget.inference_cost_microusd == microusd


@pytest.mark.parametrize(
    ("said", "key", "way_out"),
    [
        ({"observation": {}}, "observation", "did you mean 'observations'?"),
        ({"tools": {"zzz": 1}}, "tools.zzz", "known are allowed"),
        ({"tools": []}, "tools", "must be a mapping"),
        ({"mode": "strict"}, "mode", "one of enforce, audit"),
        ({"name": "x" * (NAME_CHARS_MAX + 1)}, "name", "1 to 80 characters"),
        ({"name": ""}, "name", "1 to 80 characters"),
        ({"name": 5}, "name", "1 to 80 characters"),
        ({"extends": "nobody"}, "extends", "one of standard, guarded"),
        ({"extends": ["standard"]}, "extends", "one of standard, guarded"),
        ({"observations": {"reads_max": "everything"}}, "observations.reads_max", "public, private, secret"),
        ({"writes": "files"}, "writes", "a list"),
        ({"writes": ["moon"]}, "writes[0]", "one of files, records"),
        ({"tools": {"allowed": [1]}}, "tools.allowed[0]", "a text"),
        ({"tools": {"permissions": "all"}}, "tools.permissions", "a list"),
        ({"tools": {"permissions": ["p"] * 1001}}, "tools.permissions", "more than 1000"),
        ({"tools": {"approval_effects": ["explode"]}}, "tools.approval_effects[0]", "one of none, read"),
        ({"tools": {"approval_categories": ["money"]}}, "tools.approval_categories[0]", "payment"),
        ({"tools": {"four_eyes": ["two"]}}, "tools.four_eyes[0]", "payment"),
        ({"tools": {"rates": [{"tool": "a", "times": 1}]}}, "tools.rates[0]", "has no 'per'"),
        ({"tools": {"rates": [{"tool": "a", "times": 0, "per": "1m"}]}}, "tools.rates[0].times", f"1 to {RATE_MAX}"),
        ({"tools": {"rates": [{"tool": "a", "times": 1, "per": "0s"}]}}, "tools.rates[0].per", "from 1"),
        ({"tools": {"rates": [{"tool": "a", "times": 1, "per": "1y"}]}}, "tools.rates[0].per", "30s, 5m, 4h, 1d or 2w"),
        (
            {"tools": {"rates": [{"tool": "a", "times": 1, "per": "1m", "whose": "us"}]}},
            "tools.rates[0].whose",
            "run, user",
        ),
        ({"decisions": {"rights": ["rule"]}}, "decisions.rights[0]", "choose_tools"),
        ({"decisions": {"tier_max": 0}}, "decisions.tier_max", f"1 to {TIER_MAX}"),
        ({"decisions": {"tier_max": TIER_MAX + 1}}, "decisions.tier_max", f"1 to {TIER_MAX}"),
        ({"budget": {"patience": 5}}, "budget.patience", "known are"),
        ({"budget": {"steps": -1}}, "budget.steps", "a whole number from 0"),
        ({"budget": {"steps": True}}, "budget.steps", "a whole number from 0"),
        ({"budget": {"steps": 1.5}}, "budget.steps", "a whole number from 0"),
        ({"budget": {"steps": INTEGER_MAX + 1}}, "budget.steps", f"to {INTEGER_MAX}"),
        ({"budget": {"wall_clock": "soon"}}, "budget.wall_clock", "a time such as"),
        ({"budget": {"wall_clock": True}}, "budget.wall_clock", "a time such as"),
        ({"budget": {"wall_clock": "9999999999999999d"}}, "budget.wall_clock", "a time such as"),
        ({"budget": {"wall_clock": "1m", "wall_clock_ms": 5}}, "budget.wall_clock_ms", "keep one of them"),
        ({"budget": {"inference_cost_usd": -1}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"inference_cost_usd": 0.0000001}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"inference_cost_usd": "1e999999999"}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"inference_cost_usd": float("nan")}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"inference_cost_usd": True}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"inference_cost_usd": None}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"inference_cost_usd": "9999999999.9"}}, "budget.inference_cost_usd", "six decimals"),
        ({"budget": {"exhaustion": {"patience": "stop"}}}, "budget.exhaustion.patience", "known are"),
        ({"budget": {"exhaustion": {"steps": "weep"}}}, "budget.exhaustion.steps", "one of stop"),
        ({"budget": {"exhaustion": {"retries": "ask"}}}, "budget.exhaustion", "retries cannot ask when it is spent"),
        ({"conditions": [{"name": "a", "when": '"secret" in labels'}]}, "conditions", "give the boundary `authority`"),
        ({"budget": {"wrap_up_tokens": "x"}}, "budget.wrap_up_tokens", "a whole number"),
        ({"budget": {"stops_early": "yes"}}, "budget.stops_early", "true or false"),
        ({"escalation": {"queues": {"boredom": "ann"}}}, "escalation.queues.boredom", "known are"),
        ({"escalation": {"queues": {"outage": ""}}}, "escalation.queues.outage", "a text"),
        ({"escalation": {"on_silence": "ann"}}, "escalation.on_silence", "a list"),
        ({"authority": "on"}, "authority", "off, or a mapping"),
        ({"authority": {"magic": 1}}, "authority.magic", "known are infer_fields"),
        ({"authority": {"plan": "guess"}}, "authority.plan", "words, model, off"),
        ({"conditions": {"a": "b"}}, "conditions", "a list"),
        ({"conditions": ["changes"]}, "conditions[0]", "must be a mapping"),
        ({"conditions": [{"name": "a"}]}, "conditions[0]", "has no 'when'"),
        ({"conditions": [{"when": "changes"}]}, "conditions[0]", "has no 'name'"),
        ({"conditions": [{"name": "a", "when": 5}]}, "conditions[0].when", "an expression"),
        ({"conditions": [{"name": "a", "when": "tool"}]}, "conditions[0].when", "not a BOOL"),
        ({"conditions": [{"name": "a", "when": "moon > 1"}]}, "conditions[0].when", "moon"),
        ({"conditions": [{"name": "", "when": "changes"}]}, "conditions[0].name", "a text"),
        ({"conditions": [{"name": "a", "when": "changes", "then": "shout"}]}, "conditions[0].then", "one of ask"),
        ({"conditions": [{"name": "a", "when": "changes", "message": "x" * 501}]}, "conditions[0].message", "500"),
        ({"conditions": [{"name": "a", "when": "changes"}] * 2}, "conditions[1]", "there twice"),
        (
            {"conditions": [{"name": f"c{n}", "when": "changes"} for n in range(CONDITIONS_MAX + 1)]},
            "conditions",
            f"more than {CONDITIONS_MAX}",
        ),
        (
            {
                "extends": "customer_support",
                "conditions": [{"name": f"c{n}", "when": "changes"} for n in range(CONDITIONS_MAX)],
            },
            "conditions",
            f"conditions_max={CONDITIONS_MAX}",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_key_and_a_way_out(said: JsonObject, key: str, way_out: str) -> None:
    error = refused(said)
    assert (error.code, error.details["key"]) == (BOUNDARY_INVALID, key)
    assert way_out in error.message


@pytest.mark.parametrize("said", [None, 5, "x", ["name"], {5: "x"}])
def test_what_is_no_mapping_of_texts_is_no_boundary(said: Any) -> None:
    with pytest.raises(RequestRejected, match=BOUNDARY_INVALID):
        boundary_of(said)


def test_a_boundary_needs_a_name_of_its_own() -> None:
    with pytest.raises(RequestRejected, match="has no 'name'"):
        boundary_of({"mode": "audit"})
    with pytest.raises(RequestRejected, match="another name, and say extends: standard"):
        boundary_of({"name": "standard", "mode": "audit"})
    assert boundary_of({"name": "standard"}) == STANDARD


def test_the_cause_of_a_refused_condition_or_option_is_kept() -> None:
    error = refused({"conditions": [{"name": "a", "when": "changes &&"}]})
    assert (error.code, error.details["cause"]) == (BOUNDARY_INVALID, "GUARD_UNREADABLE")
    assert refused({"authority": {"derive": "maybe"}}).details["cause"] == "AUTHORITY_INVALID"


def test_an_error_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "refunds.yaml"
    path.write_text("name: refunds\nbudget:\n  steps: 3\n  tool_calls: many\n")
    with pytest.raises(RequestRejected, match=r"refunds\.yaml:4: budget\.tool_calls='many' cannot be used") as caught:
        read_boundary(path)
    assert (caught.value.details["line"], caught.value.details["source"]) == (4, str(path))


def test_a_boundary_is_found_by_name_path_or_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")
    bare = tmp_path / "bare"
    bare.write_text("name: bare\n")
    assert boundary_at("procurement") is KNOWN["procurement"]
    assert boundary_at(STANDARD) is STANDARD
    assert boundary_at(path).name == boundary_at(str(path)).name == "mine"
    assert boundary_at(str(bare)).name == "bare"
    assert boundary_at({"name": "said"}).name == "said"


def test_a_name_of_the_house_wins_over_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "standard").write_text("name: mine\n")
    assert boundary_at("standard") is STANDARD


@pytest.mark.parametrize("said", ["nobody", "", "\x00", "x" * 5000, 5, None, ["standard"]])
def test_what_names_no_boundary_is_refused_with_the_names_there_are(said: object) -> None:
    with pytest.raises(RequestRejected, match="customer_support") as caught:
        boundary_at(said)
    assert caught.value.code == BOUNDARY_UNKNOWN


@pytest.mark.parametrize("name", ["no.yaml", "no.JSON", "\x00.yaml", "."])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestRejected, match="check its path") as caught:
        boundary_at(tmp_path / name)
    assert caught.value.code == YamlFault.UNREADABLE


def test_a_json_file_holds_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"name": "mine",\t"budget": {"steps": 5}}')
    assert read_boundary(path) == replace(STANDARD, name="mine", budget=Budget(steps=5))
    path.write_text('{"name": ')
    with pytest.raises(RequestRejected, match="is not JSON"):
        read_boundary(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [("a: [", YamlFault.NOT_YAML), ("name: a\nname: b\n", YamlFault.KEY_REPEATED), ("a: &b c", YamlFault.HAS_ALIAS)],
)
def test_what_is_no_plain_yaml_is_refused_as_everywhere(text: str, fault: YamlFault) -> None:
    with pytest.raises(RequestRejected) as caught:
        from_text(read_boundary, text, "x.yaml")
    assert caught.value.code == fault


@pytest.mark.parametrize("boundary", KNOWN.values(), ids=list(KNOWN))
def test_every_boundary_of_the_house_can_be_written_and_read_and_keeps_its_version(boundary: Boundary) -> None:
    again = from_text(read_boundary, boundary_yaml(boundary), "x")
    assert again == boundary
    assert boundary_version(again) == boundary_version(boundary)


def test_durations_and_dollars_are_written_as_short_as_they_can_be() -> None:
    assert [said_duration(ms) for ms in (0, 1, 1500, 90_000, 3_600_000, 86_400_000)] == [
        "0s",
        "1ms",
        "1500ms",
        "90s",
        "1h",
        "1d",
    ]
    assert (said_dollars(500_000), said_dollars(INTEGER_MAX)) == (0.5, None)


_TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=NAME_CHARS_MAX)
_AMOUNTS = st.integers(0, INTEGER_MAX)
_CONDITIONS = st.builds(
    Condition,
    _TEXTS,
    st.sampled_from(["changes", 'tool == "pay" && args.amount > 10', "denials >= 2", '"secret" in labels']),
    st.sampled_from(Then),
    st.one_of(st.just(""), _TEXTS),
)
_AUTHORITIES = st.builds(
    Authority,
    st.sampled_from(Inference),
    st.sampled_from(OptionReach),
    st.sampled_from(OptionReach),
    st.sampled_from(OptionReach),
    st.booleans(),
    st.sampled_from(PlanSource),
)


def _tuples(members: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(members, max_size=4).map(tuple)


def _ways_out() -> st.SearchStrategy[tuple[tuple[str, Exhaustion], ...]]:
    """Ways out that each dimension has."""
    pairs = [(FIELDS[dimension], way) for dimension in Dimension for way in WAYS_OUT.get(dimension, (Exhaustion.STOP,))]
    return st.lists(st.sampled_from(pairs), unique_by=lambda pair: pair[0], max_size=4).map(tuple)


def _table(keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.dictionaries(keys, values, max_size=4).map(lambda found: tuple(found.items()))


_TASKS = st.builds(
    TaskRule,
    _TEXTS,
    st.sampled_from(("true", "prompt_chars > 3", 'prompt.contains("refund")')),
    st.sampled_from(TaskClass),
    _tuples(st.sampled_from(ToolCategory)),
)
_BOUNDARIES = st.builds(
    Boundary,
    name=_TEXTS.filter(lambda name: name not in KNOWN),
    allowed_tools=st.none() | _tuples(_TEXTS),
    approval_effects=_tuples(st.sampled_from(Effect)),
    permissions=_tuples(_TEXTS),
    budget=st.builds(Budget, *[st.none() | (st.just(0) if d in UNCHARGED else _AMOUNTS) for d in Dimension]),
    approval_wait_ms_max=_AMOUNTS,
    mode=st.sampled_from(BoundaryMode),
    approval_categories=_tuples(st.sampled_from(ToolCategory)),
    four_eyes=_tuples(st.sampled_from(ToolCategory)),
    rates=_tuples(
        st.builds(Rate, _TEXTS, st.integers(1, RATE_MAX), st.integers(1, INTEGER_MAX), st.sampled_from(Whose))
    ),
    conditions=st.lists(_CONDITIONS, max_size=3, unique_by=lambda one: one.name).map(tuple),
    authority=st.none() | _AUTHORITIES,
    reads_max=st.sampled_from(Reads),
    writes=st.none() | _tuples(st.sampled_from(StateWrite)),
    decisions=st.none() | _tuples(st.sampled_from(DecisionRight)),
    tier_max=st.integers(1, TIER_MAX),
    exhaustion=_ways_out(),
    wrap_up_tokens=_AMOUNTS,
    stops_early=st.booleans(),
    queues=_table(st.sampled_from([trigger.value for trigger in Trigger]), _TEXTS),
    on_silence=_tuples(_TEXTS),
    self_approval=st.none() | st.booleans(),
    release_by=_tuples(st.sampled_from(("ann", "bob", "cleo"))),
    tasks=st.lists(_TASKS, max_size=3, unique_by=lambda one: one.name).map(tuple),
).filter(lambda boundary: boundary.authority is not None or not any("labels" in c.when for c in boundary.conditions))


@given(_BOUNDARIES)
@settings(max_examples=60, deadline=None)
def test_what_is_written_of_a_boundary_reads_back_as_the_same_one(boundary: Boundary) -> None:
    again = from_text(read_boundary, boundary_yaml(boundary), "x")
    assert again == boundary == boundary_of(boundary_said(boundary))


@pytest.mark.req("4.8")
def test_rules_for_tasks_are_read_and_those_of_one_name_take_each_others_place() -> None:
    said = {"name": "mine", "tasks": [{"name": "a", "when": "prompt_chars > 1", "task_class": "estimate"}]}
    assert boundary_of(said).tasks == (TaskRule("a", "prompt_chars > 1", TaskClass.ESTIMATE),)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"name": "a", "when": "true"}, "tasks[0] has no 'task_class'; add one of estimate"),
        ({"name": "a", "task_class": "estimate"}, "tasks[0] has no 'when'"),
        ({"name": "a", "when": "args.x > 1", "task_class": "estimate"}, "tasks[0].when"),
        ({"name": "a", "when": "true", "task_class": "guess"}, "tasks[0].task_class='guess'"),
        ({"name": "a", "when": "true", "task_class": "estimate", "grounds": ["x"]}, "tasks[0].grounds[0]='x'"),
        ({"name": "a", "when": "true", "task_class": "estimate", "then": "stop"}, "unknown key 'then'"),
    ],
)
def test_a_rule_for_tasks_that_cannot_be_used_is_refused(rule: JsonObject, problem: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        boundary_of({"name": "mine", "tasks": [rule]})
    assert (refused.value.code, problem in refused.value.message) == (BOUNDARY_INVALID, True), refused.value.message
    twice = {"name": "a", "when": "true", "task_class": "estimate"}
    with pytest.raises(RequestRejected, match="'a' is there twice"):
        boundary_of({"name": "mine", "tasks": [twice, twice]})
