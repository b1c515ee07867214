"""What a boundary says of a call beyond which tools there are: rights, state, rates, the least tool, and people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.failure import Ending, Refusal
from remit.core.journal.commands import AskHuman, CallTool, StartChild
from remit.core.journal.proposed_call import OVER_RATE
from remit.core.journal.rulings import ToolCallRefused
from remit.core.limits.boundary import Boundary, DecisionRight, Rate, Whose
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads, Trust
from remit.core.limits.tools import MUTATING, Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import user_message
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.boundary_checks import ANY_TOOL, may_write, model_may_decide, needs_a_person, rates_of
from remit.kernel.authority.verdict import ALLOWED
from tests.simulation.scenarios import LEASE, PARAMETERS
from tests.unit.kernel.builders import Run, bound, manifest_of, wants

REACHES = [DecisionRight, StateWrite, Reads]

LOOK = ToolDefinition("look", "look", PARAMETERS, effect=Effect.READ)
DEAR = ToolDefinition("dear", "look at a price", PARAMETERS, effect=Effect.READ, alternative="look")
WRITE = ToolDefinition("write", "write", PARAMETERS, effect=Effect.WRITE)
SEND = replace(WRITE, name="send", effect=Effect.EXTERNAL, category=ToolCategory.EMAIL_CALENDAR)
HIRE = ToolDefinition("hire", "delegate", PARAMETERS, effect=Effect.NONE, delegates=True, lease=LEASE)
ASK = ToolDefinition("ask", "ask a person", PARAMETERS, effect=Effect.NONE, asks_under=Ending.MISSING_INFO)


def refusals(run: Run) -> list[str]:
    return [refused.code for refused in run.all(ToolCallRefused)]


# Decision rights.


@pytest.mark.parametrize(
    ("tool", "rights"),
    [
        (LOOK, {DecisionRight.CHOOSE_TOOLS}),
        (WRITE, {DecisionRight.CHOOSE_TOOLS}),
        (HIRE, {DecisionRight.CHOOSE_TOOLS, DecisionRight.DELEGATE}),
        (ASK, {DecisionRight.ASK_PEOPLE}),
    ],
)
def test_a_call_takes_the_rights_it_needs_and_no_other(tool: ToolDefinition, rights: set[DecisionRight]) -> None:
    assert model_may_decide(tool, manifest_of()) is ALLOWED
    assert model_may_decide(tool, manifest_of(boundary=Boundary(decisions=tuple(rights)))) is ALLOWED
    for missing in DecisionRight:
        granted = tuple(right for right in DecisionRight if right is not missing)
        verdict = model_may_decide(tool, manifest_of(boundary=Boundary("few", decisions=granted)))
        if missing in rights:
            reason = f"{tool.name} takes the right to {missing}, which boundary few does not grant"
            assert (verdict.code, verdict.reason) == (Refusal.PERMISSION_DENIED, reason)
        else:
            assert verdict is ALLOWED


def test_a_model_without_the_right_to_delegate_starts_no_child() -> None:
    run = Run(manifest_of(boundary=Boundary(decisions=(DecisionRight.CHOOSE_TOOLS,)), tools=(LOOK, HIRE)))
    run.proposes(wants("hire"), wants("look"))
    assert (refusals(run), run.open(StartChild)) == ([Refusal.PERMISSION_DENIED], [])
    assert [command.tool for command in run.open(CallTool)] == ["look"]


# State.


@pytest.mark.req("4.6")
@pytest.mark.parametrize("written", StateWrite)
def test_a_run_writes_the_kinds_of_state_that_its_boundary_names(written: StateWrite) -> None:
    category = {
        StateWrite.FILES: ToolCategory.FILE_SYSTEM,
        StateWrite.RECORDS: ToolCategory.DATABASE,
        StateWrite.MESSAGES: ToolCategory.EMAIL_CALENDAR,
        StateWrite.MONEY: ToolCategory.PAYMENT,
        StateWrite.INFRASTRUCTURE: ToolCategory.INFRASTRUCTURE,
        StateWrite.OTHER: None,
    }[written]
    tool = replace(WRITE, category=category)
    others = tuple(kind for kind in StateWrite if kind is not written)
    assert may_write(tool, manifest_of(boundary=Boundary(writes=None))) is ALLOWED
    assert may_write(tool, manifest_of(boundary=Boundary(writes=(written,)))) is ALLOWED
    verdict = may_write(tool, manifest_of(boundary=Boundary("few", writes=others)))
    assert verdict.code == Refusal.PERMISSION_DENIED
    assert verdict.reason == f"write writes {written}, and boundary few lets a run write {', '.join(others)}"
    assert may_write(replace(tool, effect=Effect.READ), manifest_of(boundary=Boundary(writes=()))) is ALLOWED


def test_a_boundary_that_lets_nothing_be_written_says_nothing() -> None:
    verdict = may_write(WRITE, manifest_of(boundary=Boundary("frozen", writes=())))
    assert verdict.reason == "write writes other, and boundary frozen lets a run write nothing"


# Rates.


def rated(*rates: Rate, tools: tuple[ToolDefinition, ...] = (LOOK, replace(LOOK, name="peek"))) -> Run:
    return Run(manifest_of(boundary=Boundary("rated", rates=rates), tools=tools))


def looks(run: Run, *numbers: int, tool: str = "look") -> list[str]:
    """What becomes of such calls in one answer; whatever is called returns."""
    before = len(refusals(run))
    run.proposes(*(wants(tool, n) for n in numbers))
    while run.open(CallTool):
        run.returns()
    return refusals(run)[before:]


def test_a_rate_counts_calls_of_one_answer_one_after_the_other() -> None:
    assert looks(rated(Rate("look", 2, 10_000)), 1, 2, 3, 4) == [Refusal.RATE_LIMITED] * 2


@pytest.mark.req("4.25")
def test_a_rate_counts_across_turns_and_forgets_what_is_longer_ago_than_its_time() -> None:
    run = rated(Rate("look", 2, 10_000))
    assert looks(run, 1) == looks(run, 2) == []
    first, _ = run.state.calls.called_at["look"]
    assert looks(run, 3) == [Refusal.RATE_LIMITED]
    run.now_ms = first + 10_000 - 11
    assert looks(run, 4) == [Refusal.RATE_LIMITED]
    run.now_ms = first + 10_000 - 10
    assert looks(run, 5) == []
    assert len(run.state.calls.called_at["look"]) == 2


def test_a_rate_of_a_user_is_judged_by_the_shell_which_knows_their_other_runs() -> None:
    run = rated(Rate("look", 1, 10_000, Whose.USER))
    assert looks(run, 1, 2) == []
    run.proposes(replace(wants("look", 3), filtered=f"{OVER_RATE}look"))
    assert (refusals(run), run.last(ToolCallRefused).reason) == ([Refusal.RATE_LIMITED], f"{OVER_RATE}look")


def test_what_is_refused_by_a_rate_says_when_to_come_again() -> None:
    run = rated(Rate("look", 1, 10_000))
    looks(run, 1)
    called_at = run.state.calls.called_at["look"][0]
    run.now_ms = called_at + 4_000 - 10
    looks(run, 2)
    assert run.last(ToolCallRefused).reason == "look: 1 calls within 10000 ms are allowed; again in 6000 ms"


def test_where_all_of_a_rate_goes_into_one_answer_its_whole_time_is_to_be_waited() -> None:
    run = rated(Rate(ANY_TOOL, 1, 10_000))
    looks(run, 1, 2)
    assert run.last(ToolCallRefused).reason == "all tools: 1 calls within 10000 ms are allowed; again in 10000 ms"


def test_a_rate_of_one_tool_leaves_the_others_alone_and_a_star_counts_them_together() -> None:
    run = rated(Rate("look", 1, 10_000))
    assert (looks(run, 1), looks(run, 1, 2, tool="peek")) == ([], [])
    run = rated(Rate(ANY_TOOL, 2, 10_000))
    assert looks(run, 1) == looks(run, 1, tool="peek") == []
    assert looks(run, 2) == looks(run, 2, tool="peek") == [Refusal.RATE_LIMITED]


def test_a_tool_brings_a_rate_of_its_own() -> None:
    run = rated(tools=(replace(LOOK, rate_max=1, rate_per_ms=5_000),))
    assert looks(run, 1, 2) == [Refusal.RATE_LIMITED]


def test_a_tool_keeps_its_own_rate_those_of_the_boundary_for_it_and_those_for_all() -> None:
    tool = replace(LOOK, rate_max=3, rate_per_ms=7)
    boundary = Boundary(rates=(Rate("other", 1, 1), Rate("look", 2, 2), Rate(ANY_TOOL, 4, 4)))
    assert rates_of(tool, boundary) == (Rate("look", 3, 7), Rate("look", 2, 2), Rate(ANY_TOOL, 4, 4))
    assert rates_of(LOOK, Boundary()) == ()


def test_two_rates_of_one_name_count_each_call_once_and_remember_as_many_as_the_larger_needs() -> None:
    tool = replace(LOOK, rate_max=3, rate_per_ms=100_000)
    run = rated(Rate("look", 2, 1_000), tools=(tool,))
    assert looks(run, 1, 2) == []
    assert looks(run, 3) == [Refusal.RATE_LIMITED]
    run.now_ms += 2_000
    assert looks(run, 4) == []
    assert len(run.state.calls.called_at["look"]) == 3
    run.now_ms += 2_000
    assert looks(run, 5) == [Refusal.RATE_LIMITED]
    assert "3 calls within 100000 ms" in run.last(ToolCallRefused).reason


def test_a_person_cannot_hurry_a_rate() -> None:
    run = rated(Rate("write", 1, 10_000), tools=(WRITE,))
    run.proposes(wants("write", 1), wants("write", 2))
    run.approves()
    run.approves()
    assert refusals(run) == [Refusal.RATE_LIMITED]


def test_starting_a_child_and_asking_a_person_count_for_rates_too() -> None:
    run = rated(Rate("hire", 1, 10_000), Rate("ask", 1, 10_000), tools=(HIRE, ASK))
    run.proposes(wants("hire", 1), wants("ask", 1))
    assert (len(run.open(StartChild)), len(run.open(AskHuman))) == (1, 1)
    assert {name: len(moments) for name, moments in run.state.calls.called_at.items()} == {"hire": 1, "ask": 1}
    assert authorize(wants("hire", 2), run.tally()).code == Refusal.RATE_LIMITED
    assert authorize(wants("ask", 2), run.tally()).code == Refusal.RATE_LIMITED


@pytest.mark.req("4.25")
@given(
    st.integers(1, 4),
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=12),
)
def test_no_window_of_time_ever_holds_more_calls_than_its_rate(
    times_max: int, per_ms: int, answers: list[tuple[int, int]]
) -> None:
    run = rated(Rate("look", times_max, per_ms))
    called: list[int] = []
    n = 0
    for after_ms, how_many in answers:
        run.now_ms += after_ms
        if run.state.end.ending is not None:
            break
        n += how_many
        run.proposes(*(wants("look", n - place) for place in range(how_many)))
        called += [run.now_ms] * len(run.open(CallTool))
        while run.open(CallTool):
            run.returns()
    for at_ms in called:
        assert sum(at_ms - per_ms < moment <= at_ms for moment in called) <= times_max


# The least tool.


def least(tool: str = "dear", *, tools: tuple[ToolDefinition, ...] = (LOOK, DEAR), **parts: object) -> str:
    return authorize(wants(tool), Run(manifest_of(tools=tools, **parts)).tally()).code  # type: ignore[arg-type]


def test_a_cheaper_alternative_comes_first() -> None:
    run = Run(manifest_of(tools=(LOOK, DEAR)))
    run.proposes(wants("dear"))
    assert run.last(ToolCallRefused).reason == "try look first: dear is for what it cannot do"
    run.proposes(wants("look"))
    run.returns()
    run.proposes(wants("dear"))
    assert [command.tool for command in run.open(CallTool)] == ["dear"]


def test_an_alternative_that_was_tried_in_vain_was_tried() -> None:
    run = Run(manifest_of(tools=(LOOK, DEAR)))
    run.proposes(wants("look"))
    run.fails()
    assert authorize(wants("dear"), run.tally()) is ALLOWED


def test_who_was_refused_the_alternative_has_tried_it() -> None:
    run = Run(manifest_of(tools=(LOOK, DEAR), boundary=Boundary(rates=(Rate("look", 0, 1_000),))))
    run.proposes(wants("look"))
    assert refusals(run) == [Refusal.RATE_LIMITED]
    assert authorize(wants("dear"), run.tally()) is ALLOWED


def test_an_alternative_that_is_a_child_or_a_question_is_tried_like_any_other() -> None:
    for other in (HIRE, ASK):
        run = Run(manifest_of(tools=(other, replace(DEAR, alternative=other.name))))
        assert authorize(wants("dear"), run.tally()).code == Refusal.LEAST_TOOL
        run.proposes(wants(other.name))
        assert authorize(wants("dear"), run.tally()) is ALLOWED


def test_an_alternative_of_the_same_answer_counts_once_it_is_ordered() -> None:
    run = Run(manifest_of(tools=(LOOK, DEAR)))
    run.proposes(wants("look"), wants("dear"))
    assert refusals(run) == []


def test_an_alternative_that_the_run_may_not_call_need_not_be_tried() -> None:
    vault = replace(LOOK, permissions=("vault.open",))
    few = SystemRequest((user_message("please"),), tools=("dear",))
    assert least() == Refusal.LEAST_TOOL
    # The code that pins a run refuses such a tool; a manifest from elsewhere is judged all the same.
    assert authorize(wants("dear"), Run(replace(manifest_of(tools=()), tools=(DEAR,))).tally()) is ALLOWED
    assert least(boundary=Boundary(allowed_tools=("dear",))) == ""
    assert least(boundary=Boundary(allowed_tools=("dear", "look"))) == Refusal.LEAST_TOOL
    assert least(request=few) == ""
    assert least(request=replace(few, tools=("dear", "look"))) == Refusal.LEAST_TOOL
    assert least(tools=(vault, DEAR)) == ""
    assert least(tools=(vault, DEAR), boundary=Boundary(permissions=("vault.open",))) == Refusal.LEAST_TOOL
    hiring = replace(HIRE, name="look")
    assert least(tools=(hiring, DEAR)) == Refusal.LEAST_TOOL
    assert least(tools=(hiring, DEAR), boundary=Boundary(decisions=(DecisionRight.CHOOSE_TOOLS,))) == ""
    writing = replace(LOOK, effect=Effect.WRITE)
    assert least(tools=(writing, DEAR)) == Refusal.LEAST_TOOL
    assert least(tools=(writing, DEAR), boundary=Boundary(writes=())) == ""


# People.


def asked(tool: ToolDefinition, **parts: object) -> str:
    free = Boundary("b", approval_effects=(), approval_categories=())
    return needs_a_person(tool, replace(free, **parts))


def test_a_boundary_without_demands_asks_nobody() -> None:
    assert asked(SEND) == asked(LOOK) == ""


@pytest.mark.parametrize("effect", Effect)
def test_an_effect_may_be_a_persons_to_allow(effect: Effect) -> None:
    reason = f"boundary b demands approval of {effect} effects"
    assert asked(replace(LOOK, effect=effect), approval_effects=(effect,)) == reason
    others = tuple(other for other in Effect if other is not effect)
    assert asked(replace(LOOK, effect=effect), approval_effects=others) == ""


def test_what_two_people_must_approve_is_for_people_where_it_changes_something() -> None:
    eyes = (ToolCategory.EMAIL_CALENDAR,)
    assert asked(SEND, four_eyes=eyes) == "boundary b wants two people to approve what email_calendar tools do"
    assert asked(replace(SEND, effect=Effect.READ), four_eyes=eyes) == ""
    assert asked(replace(SEND, category=ToolCategory.PAYMENT), four_eyes=eyes) == ""


def test_a_category_asks_where_the_table_of_tools_says_so_and_the_boundary_does_not_preauthorize_it() -> None:
    files = replace(WRITE, category=ToolCategory.FILE_SYSTEM)
    named = (ToolCategory.EMAIL_CALENDAR, ToolCategory.FILE_SYSTEM)
    assert asked(SEND, approval_categories=named) == "what email_calendar tools do is for a person to approve"
    assert asked(replace(SEND, effect=Effect.READ), approval_categories=named) == ""
    assert asked(files, approval_categories=named) == ""
    assert asked(SEND, approval_categories=(ToolCategory.PAYMENT,)) == ""


@pytest.mark.parametrize("effect", sorted(MUTATING))
@pytest.mark.parametrize("category", [None, *ToolCategory])
def test_what_destroys_is_for_a_person_in_every_category_whatever_the_boundary_preauthorizes(
    category: ToolCategory | None, effect: Effect
) -> None:
    wipe = replace(WRITE, effect=effect, category=category, destructive=True)
    assert asked(wipe, approval_categories=()) == "write declares that it destroys, and that always needs a person"
    assert asked(replace(wipe, destructive=False), approval_categories=()) == ""


@pytest.mark.parametrize("most", Reads)
@pytest.mark.parametrize("reads", Reads)
def test_what_is_read_beyond_the_boundary_is_a_persons_to_allow(reads: Reads, most: Reads) -> None:
    tool = replace(LOOK, trust=Trust(reads=reads))
    order = list(Reads)
    reason = f"look reads what is {reads}; boundary b lets a run read {most}"
    assert asked(tool, reads_max=most) == (reason if order.index(reads) > order.index(most) else "")
    assert asked(replace(tool, effect=Effect.WRITE), reads_max=most) == ""


def test_four_eyes_wait_for_a_second_person() -> None:
    strict = Boundary("eyes", four_eyes=(ToolCategory.EMAIL_CALENDAR,))
    run = Run(manifest_of(boundary=strict, tools=(SEND,)))
    run.proposes(bound(wants("send")))
    run.approves(by="ada")
    assert run.open(CallTool) == []
    run.approves(by="grace")
    assert [command.approved_by for command in run.open(CallTool)] == ["ada, grace"]
