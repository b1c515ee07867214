"""Conditions of a boundary: what they see of a call, what they do to it, and what becomes of one that cannot be decided."""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.failure import Ending, ErrorCode, Refusal, RequestRejected
from remit.core.journal.commands import CallTool
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import RunEnded, ToolCallRefused
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import CONDITIONS_MAX, At, Boundary, Condition, Then
from remit.core.limits.budget import FIELDS, UNCHARGED, Budget, Dimension
from remit.core.limits.tool_trust import Reads, Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import BlobRef, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import user_message
from remit.core.run.principal import Principal
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.conditions import (
    CONDITION_NAMES,
    CONDITION_VIEW,
    CONDITIONS_INVALID,
    TRACED_NAMES,
    check_conditions,
    objecting,
    parse_condition,
)
from remit.kernel.authority.verdict import ALLOWED, Judgement
from remit.kernel.graph.expressions import GuardFault, GuardRefused, GuardType
from remit.kernel.tally import Tally
from tests.simulation.scenarios import PARAMETERS
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, bound, lawful, manifest_of, wants

REACHES = [At, Then]

BLOB = BlobRef(b"d" * 32, 5_000)
# Tuesday, the fourteenth of November 2023, 22:13:20 UTC.
MOMENT_MS = 1_700_000_000_000

REFUND = ToolDefinition(
    "refund",
    "give money back",
    PARAMETERS,
    effect=Effect.EXTERNAL,
    category=ToolCategory.PAYMENT,
    network=True,
    idempotent=True,
    destructive=True,
    cost_microusd=7,
    trust=Trust(reads=Reads.SECRET),
    control_args=(("n", "who:user"),),
    concerns=("payment_change",),
    blast_radius="one order",
    rollback="charge again",
)
# The same without what always asks.
RETURN = replace(REFUND, name="give_back", destructive=False)
PLAIN = ToolDefinition("plain", "do little", PARAMETERS, effect=Effect.NONE, untrusted_output=False)


def ruled(*whens: str, then: Then = Then.ASK) -> Boundary:
    """A boundary with these conditions and nothing else that asks."""
    conditions = tuple(Condition(f"c{place}", when, then) for place, when in enumerate(whens))
    return Boundary(
        "ruled",
        approval_effects=(),
        approval_categories=(),
        budget=Budget(side_effects=5),
        conditions=conditions,
        authority=Authority(),
    )


def tally_of(boundary: Boundary, *, tools: tuple[ToolDefinition, ...] = (REFUND, RETURN, PLAIN), **parts: Any) -> Tally:
    request = SystemRequest((user_message("please"),), user_id="ada", tenant_id="acme")
    manifest = replace(manifest_of(boundary=boundary, tools=tools, request=request), **parts)
    return Run(manifest, at_ms=MOMENT_MS).tally()


def held(when: str, call: ProposedCall, tally: Tally | None = None) -> list[bool]:
    """Of each condition that objects to a call, whether it was decided."""
    tally = tally or tally_of(ruled(when))
    return [is_decided for _, is_decided in objecting(call, tally.state.derived.tools[call.tool], tally, tuple(Then))]


def call_of(text: str | BlobRef, *, abridged: str = "", tool: str = "refund") -> ProposedCall:
    return ProposedCall("call", tool, text, sha256(str(text).encode()).digest(), abridged=abridged)


SEEN = {
    "tool": 'tool == "refund"',
    "category": 'category == "payment"',
    "effect": 'effect == "external"',
    "changes": "changes",
    "destructive": "destructive",
    "network": "network",
    "local": "local == false",
    "leaves_the_machine": "leaves_the_machine",
    "idempotent": "idempotent",
    "cost_microusd": "cost_microusd == 7",
    "reads": 'reads == "secret"',
    "has_blast_radius": "has_blast_radius",
    "has_rollback": "has_rollback",
    "untrusted_output": "untrusted_output",
    "args": "args.n == 1",
    "users": 'users == ["1"]',
    "paths_outside": "paths_outside == []",
    "concerns": 'concerns == ["payment_change", "regulated"]',
    "flags": 'flags == ["secret_read", "tests_failed"]',
    "purchase": "purchase == -1",
    "purchased": "purchased == 700",
    "purchase_max": "purchase_max == 5000",
    "secret_read": "secret_read",
    "carries_secret": "carries_secret",
    "ungrounded": 'ungrounded == ["https://x.example"]',
    "rejections": "rejections == 2",
    "bound": "bound",
    "objection": 'objection == "REPEAT"',
    "labels": 'labels == ["private", "secret"]',
    "user": 'user == "ada"',
    "user_named": "user_named",
    "tenant": 'tenant == "acme"',
    "channel": 'channel == "background"',
    "agent": 'agent == "worker"',
    "role": f'role == "{AgentRole.REVIEWER.value}"',
    "depth": "depth == 1",
    "hour": "hour == 22",
    "weekday": "weekday == 2",
    "at_ms": f"at_ms == {MOMENT_MS}",
    "denials": "denials == 3",
    "effects_committed": "effects_committed == 4",
    "failures_after_change": "failures_after_change == 5",
    **{f"left_{field}": f"left_{field} == {100 + place}" for place, field in enumerate(FIELDS)},
}


def test_every_name_has_a_row_below_and_a_meaning() -> None:
    assert set(SEEN) == set(CONDITION_NAMES) == set(CONDITION_VIEW)
    assert all(meaning for _, meaning, _ in CONDITION_NAMES.values())


@pytest.mark.parametrize("name", SEEN)
def test_a_condition_sees_every_name_with_its_value(name: str) -> None:
    budget = Budget(*(0 if place in UNCHARGED else 100 + place for place in range(len(FIELDS))))
    boundary = replace(
        ruled(SEEN[name], f"!({SEEN[name]})"),
        budget=budget,
        purchase_max=5_000,
        concerns=(("regulated", ("refund",)), ("production", ("other",))),
    )
    ada = Principal("acme", "ada", channel="background")
    tally = tally_of(boundary, role=AgentRole.REVIEWER, depth=1, principal=ada, agents=("clerk", "worker"))
    state = tally.state
    state.counts.denials, state.effects.count, state.effects.failures_after_change = 3, 4, 5
    state.calls.flags, state.effects.purchased, state.people.rejections = (
        {"secret_read": "refund", "tests_failed": "t"},
        700,
        2,
    )
    state.result.ungrounded = ("https://x.example",)
    tally.left = [100 + place for place in range(len(FIELDS))]
    call = replace(bound(wants("refund")), objection="REPEAT", labels=("private", "secret"), carries_secret=True)
    found = list(objecting(call, state.derived.tools["refund"], tally, (Then.ASK,)))
    assert [(condition.name, is_decided) for condition, is_decided in found] == [("c0", True)]


@pytest.mark.parametrize(
    "name", ["changes", "destructive", "network", "leaves_the_machine", "idempotent", "has_blast_radius"]
)
def test_of_a_plain_tool_each_of_the_declarations_is_false(name: str) -> None:
    assert held(name, wants("plain")) == []


def test_a_tool_without_category_and_a_caller_without_name_are_empty_texts() -> None:
    tally = tally_of(
        ruled('category == "" && user == "" && tenant == "" && channel == "" && agent == ""'),
        request=SystemRequest((user_message("x"),)),
    )
    assert held("", wants("plain"), tally) == [True]


def test_data_leaves_with_a_call_that_acts_outside_or_reads_over_the_network() -> None:
    acting, reading, writing = (
        replace(PLAIN, name=name, effect=effect, network=network)
        for name, effect, network in (
            ("acting", Effect.EXTERNAL, False),
            ("reading", Effect.READ, True),
            ("writing", Effect.WRITE, False),
        )
    )
    tally = tally_of(ruled("leaves_the_machine"), tools=(acting, reading, writing))
    assert [held("", wants(tool), tally) for tool in ("acting", "reading", "writing")] == [[True], [True], []]


def test_only_what_the_gate_bound_is_bound() -> None:
    said = [held("bound", replace(wants("refund"), provenance=provenance)) for provenance in Provenance]
    assert said == [[], [], [], [True]]


@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_hour_and_weekday_are_those_of_the_calendar_in_utc(moment: datetime) -> None:
    at_ms = int(moment.timestamp() * 1000)
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    tally = tally_of(Boundary())
    tally.at_ms = at_ms
    call, tool = wants("plain"), PLAIN
    assert CONDITION_NAMES["hour"][2](call, tool, tally) == moment.hour
    assert CONDITION_NAMES["weekday"][2](call, tool, tally) == moment.isoweekday()


# Arguments.


@pytest.mark.parametrize(
    ("text", "abridged", "when", "said"),
    [
        ('{"amount": 150}', "", "args.amount > 100", [True]),
        ('{"amount": 50}', "", "args.amount > 100", []),
        ('{"amount": 150.5}', "", "args.amount > 100", [True]),
        ('{"to": {"name": ["eve"]}}', "", 'args.to.name[0] == "eve"', [True]),
        ("{}", "", '"amount" in args', []),
        # What is missing or has another type than the condition expects leaves it undecided, and it objects.
        ("{}", "", "args.amount > 100", [False]),
        ('{"amount": "150"}', "", "args.amount > 100", [False]),
        ('{"amount": null}', "", "args.amount > 100", [False]),
        ('{"amount": 1180591620717411303424}', "", "args.amount > 100", [False]),
        ('{"amount": 1180591620717411303424}', "", '"other" in args', [False]),
        ('{"to": []}', "", 'args.to[0] == "eve"', [False]),
        # Of long arguments, those that are short stand beside the call.
        (BLOB, '{"amount":150}', "args.amount > 100", [True]),
        (BLOB, '{"amount":150}', 'args.body == "x"', [False]),
        (BLOB, "", "args.amount > 100", [False]),
        # A call whose arguments could not be written has none.
        ("", "", "args.amount > 100", [False]),
        # The name of the tool first: then nothing is asked of the arguments of any other.
        ("{}", "", 'tool == "other" && args.amount > 100', []),
    ],
)
def test_of_its_arguments_a_call_is_asked_only_what_it_has(
    text: str | BlobRef, abridged: str, when: str, said: list[bool]
) -> None:
    assert held(when, call_of(text, abridged=abridged)) == said


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_stands_in_the_arguments_a_condition_says_yes_no_or_that_it_cannot_tell(value: object) -> None:
    import msgspec

    call = call_of(msgspec.json.encode({"value": value}).decode())
    assert held("args.value == 1 || args.value > 5", call) in ([], [True], [False])


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ('{"n": "ada"}', '["ada"]'),
        ('{"user_id": "eve", "n": 7, "to": "bob"}', '["7", "eve"]'),
        ('{"userId": "eve", "USER": "bob", "user": {"id": "ann", "city": "Rome"}}', '["eve", "bob", "ann"]'),
        ('{"filter": [{"user-id": "eve"}], "users": "x", "n": {"a": ["b", 1]}}', '["b", "1", "eve"]'),
        ('{"user_id": null}', '["None"]'),
        ("{}", "[]"),
        ("", "[]"),
    ],
)
def test_the_users_that_a_call_is_about_stand_in_arguments_that_are_declared_or_called_so(
    text: str, users: str
) -> None:
    assert held(f"users == {users}", call_of(text)) == [True]


@pytest.mark.parametrize(
    ("when", "text", "told"),
    [
        ('"eve" in users', '{"user_id": "eve"}', "user_id='eve', and the user who asks is 'ada'"),
        ("size(users) == 0", "{}", ""),
        ("depth >= 0", '{"user_id": "eve"}', ""),
    ],
)
def test_a_condition_that_looks_at_people_tells_which_argument_names_whom(when: str, text: str, told: str) -> None:
    verdict = authorize(call_of(text), tally_of(ruled(when, then=Then.REFUSE)))
    assert (told in verdict.reason) if told else verdict.reason.endswith("c0"), verdict.reason


@pytest.mark.req("4.36")
def test_calls_that_a_condition_refuses_are_denials_and_the_third_ends_the_run() -> None:
    refusing = Condition("never", 'tool == "write"', Then.REFUSE, "no")
    run = Run(manifest_of(boundary=Boundary(conditions=(refusing,))))
    for n in range(3):
        assert (run.state.end.ending, run.state.counts.denials) == (None, n)
        run.proposes(wants("write", n))
    assert (run.state.end.ending, run.state.end.message) == (
        Ending.PERMISSION_DENIED,
        "3 calls were denied, denials_max=3",
    )
    assert run.last(RunEnded).escalation is not None
    lawful(run)


# What is left of the budget.


def test_what_this_turn_has_promised_is_left_no_more() -> None:
    run = Run(manifest_of(boundary=Boundary(conditions=(Condition("last", "left_tool_calls <= 48", Then.REFUSE),))))
    run.proposes(*(wants("look", n) for n in range(4)))
    assert [refused.code for refused in run.all(ToolCallRefused)] == [Refusal.CONDITION_HELD] * 2


def test_what_is_left_of_the_clock_shrinks_as_time_passes_and_stands_still_while_a_person_is_asked() -> None:
    left = CONDITION_NAMES["left_wall_clock_ms"][2]
    run = Run(manifest_of(budget=Budget(wall_clock_ms=1_000)))
    tally = Tally(run.state, BEGINS_AT_MS + 400)
    assert left(wants("look"), run.state.derived.tools["look"], tally) == 600
    run.proposes(wants("write"))
    later = Tally(run.state, run.now_ms + 5_000)
    assert left(wants("look"), run.state.derived.tools["look"], later) == 1_000 - (run.now_ms - BEGINS_AT_MS)


# What they do.


def test_a_condition_asks_refuses_or_stops() -> None:
    call = bound(wants("give_back"))
    judged = {then: authorize(call, tally_of(ruled("changes", then=then))) for then in Then}
    assert {then: (verdict.judgement, verdict.code) for then, verdict in judged.items()} == {
        Then.ASK: (Judgement.ASK, ""),
        Then.REFUSE: (Judgement.REFUSE, Refusal.CONDITION_HELD),
        Then.STOP: (Judgement.REFUSE, Refusal.UNSAFE),
    }
    assert all(authorize(call, tally_of(ruled("!changes", then=then))) is ALLOWED for then in Then)


@pytest.mark.parametrize("then", Then)
def test_a_condition_that_cannot_be_decided_objects_as_if_it_held_and_says_so(then: Then) -> None:
    verdict = authorize(bound(wants("give_back")), tally_of(ruled("args.missing > 1", then=then)))
    assert verdict.judgement is (Judgement.ASK if then is Then.ASK else Judgement.REFUSE)
    assert verdict.reason == "condition c0 (it could not be decided, which counts as if it held)"


def test_a_reason_has_the_name_of_the_condition_and_its_message() -> None:
    condition = Condition("big", "args.n > 0", Then.REFUSE, "more than anybody asked for")
    verdict = authorize(bound(wants("refund")), tally_of(replace(ruled(), conditions=(condition,))))
    assert verdict.reason == "condition big: more than anybody asked for"


def test_only_the_conditions_that_do_what_is_asked_for_are_looked_at() -> None:
    tally = tally_of(replace(ruled(), conditions=tuple(Condition(then, "true", then) for then in Then)))
    for then in Then:
        found = objecting(wants("refund"), REFUND, tally, (then,))
        assert [condition.name for condition, _ in found] == [then]


def test_the_first_condition_that_refuses_decides_whatever_asked_before_it() -> None:
    conditions = (
        Condition("asks", "true", Then.ASK),
        Condition("silent", "false", Then.STOP),
        Condition("refuses", "true", Then.REFUSE),
        Condition("stops", "true", Then.STOP),
    )
    verdict = authorize(bound(wants("refund")), tally_of(replace(ruled(), conditions=conditions)))
    assert verdict.reason == "condition refuses"


def test_a_condition_that_stops_ends_the_run_and_names_the_call() -> None:
    stopping = Boundary(conditions=(Condition("alarm", 'tool == "fetch"', Then.STOP, "not in here"),))
    run = Run(manifest_of(boundary=stopping))
    run.proposes(wants("look", 1), wants("fetch", 2))
    assert run.state.end.ending is Ending.UNSAFE_DETECTION
    assert run.state.end.message == "fetch: condition alarm: not in here"


def test_a_condition_that_refuses_tells_the_model_and_lets_the_run_go_on() -> None:
    run = Run(manifest_of(boundary=Boundary(conditions=(Condition("late", 'tool == "fetch"', Then.REFUSE),))))
    run.proposes(wants("fetch"))
    assert run.last(ToolCallRefused).code == Refusal.CONDITION_HELD
    assert run.path()[-1] == "think"


def test_a_person_may_overrule_a_condition_that_asks_and_none_that_came_to_refuse_meanwhile() -> None:
    night = Condition("night", f"at_ms >= {BEGINS_AT_MS + 1_000}", Then.REFUSE)
    asking = Boundary(conditions=(Condition("reads", 'effect == "read"', Then.ASK), night))
    run = Run(manifest_of(boundary=asking))
    run.proposes(wants("look", 1), wants("look", 2))
    run.approves()
    assert len(run.state.calls.made) == 1
    run.approves(after_ms=2_000)
    assert run.last(ToolCallRefused).code == Refusal.CONDITION_HELD


LEAKS = Condition("leak", '"secret" in labels && args.n > 5', Then.STOP, "a secret would leave")


def test_what_was_read_before_a_call_counts_for_the_arguments_that_a_person_gives_it_too() -> None:
    run = Run(manifest_of(boundary=Boundary(conditions=(LEAKS,), authority=Authority())))
    run.proposes(replace(wants("pay", 1), labels=("secret",)))
    run.approves(modified=wants("pay", 9))
    assert run.all(CallTool) == []
    assert run.last(ToolCallRefused).code == Refusal.UNSAFE


@pytest.mark.parametrize(("labels", "called"), [((), ["near", "far"]), (("secret",), ["near"])])
def test_what_was_read_before_a_call_counts_when_an_equivalent_tool_is_called_in_its_place(
    labels: tuple[str, ...], called: list[str]
) -> None:
    far = replace(PLAIN, name="far", effect=Effect.READ)
    near = replace(far, name="near", fallback="far")
    leaving = Condition("leak", '"secret" in labels && tool == "far"', Then.STOP)
    run = Run(manifest_of(boundary=Boundary(conditions=(leaving,), authority=Authority()), tools=(near, far)))
    run.proposes(replace(wants("near"), labels=labels))
    run.fails(code=ErrorCode.TOOL_UNAVAILABLE)
    assert [command.tool for command in run.all(CallTool)] == called


def test_the_long_arguments_of_a_call_are_asked_about_as_ever_when_an_equivalent_tool_is_called_in_its_place() -> None:
    far, near = replace(PLAIN, name="far"), replace(PLAIN, name="near", fallback="far")
    big = Condition("big", 'tool == "far" && args.n > 5', Then.REFUSE)
    run = Run(manifest_of(boundary=Boundary(conditions=(big,)), tools=(near, far)))
    run.proposes(call_of(BLOB, abridged='{"n":1}', tool="near"))
    run.fails(code=ErrorCode.TOOL_UNAVAILABLE)
    assert [command.tool for command in run.all(CallTool)] == ["near", "far"]


# At the door.


def test_a_boundary_with_sound_conditions_passes_the_door() -> None:
    check_conditions(ruled(*SEEN.values()))


@pytest.mark.parametrize("name", TRACED_NAMES)
def test_what_only_a_traced_run_knows_is_asked_under_a_boundary_that_traces(name: str) -> None:
    boundary = ruled(SEEN[name])
    check_conditions(boundary)
    with pytest.raises(RequestRejected, match=f"condition c0 of boundary ruled asks for {name}") as refused:
        check_conditions(replace(boundary, authority=None))
    assert refused.value.code == CONDITIONS_INVALID


@pytest.mark.parametrize("when", ["args.bound == 1", "args.to.labels == 1", 'tool == "labels"', 'args["x"].bound == 1'])
def test_a_name_that_merely_occurs_in_a_condition_is_not_asked_for(when: str) -> None:
    check_conditions(replace(ruled(when, 'tool == "outbound_mail" || args.inbound == 1'), authority=None))


def test_more_conditions_than_anybody_reads_are_refused() -> None:
    check_conditions(ruled(*["true"] * CONDITIONS_MAX))
    with pytest.raises(RequestRejected, match="has 101 conditions, conditions_max=100") as refused:
        check_conditions(ruled(*["true"] * (CONDITIONS_MAX + 1)))
    assert refused.value.code == CONDITIONS_INVALID


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ("amount > 1", GuardFault.NAME_UNKNOWN),
        ("hour", GuardFault.NOT_BOOL),
        ("args.amount", GuardFault.NOT_BOOL),
        ('hour == "ten"', GuardFault.TYPE_MISMATCH),
        ("labels.exists(l, l == tool)", GuardFault.HAS_COMPREHENSION),
        ('tool == "{"', GuardFault.HAS_BRACES),
        ("tool ==", GuardFault.UNREADABLE),
    ],
)
def test_a_condition_that_nobody_could_decide_is_refused_before_a_run_begins(when: str, fault: GuardFault) -> None:
    with pytest.raises(GuardRefused) as refused:
        check_conditions(ruled("true", when))
    assert refused.value.fault is fault


def test_the_same_condition_is_compiled_once_and_asks_only_for_its_own_names() -> None:
    program = parse_condition('hour > 22 && tool == "refund"')
    assert program is parse_condition('hour > 22 && tool == "refund"')
    assert program.names == ("tool", "hour")


def test_the_view_has_an_object_and_texts_beside_the_types_of_guards() -> None:
    assert set(CONDITION_VIEW.values()) == set(GuardType)
    assert {f"left_{dimension.name.lower()}" for dimension in Dimension} <= set(CONDITION_VIEW)
