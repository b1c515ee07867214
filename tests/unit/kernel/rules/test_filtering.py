"""Filters of the user: they look at proposed calls one after the other, and only then is anything judged."""

import pytest

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, CallCode, CallModel, CallTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import CallsFiltered
from remit.core.limits.boundary import Boundary
from remit.core.record import replace
from remit.core.work.graph import STANDARD_RULES, Node, NodeKind, StepInput
from remit.kernel.decide import weigh
from remit.kernel.rules.tool import FILTER_MARK, FILTERED
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants


def filtering(*names: str, boundary: Boundary = Boundary(name="test")) -> Run:
    return Run(manifest_of(filters=names or ("mask",), boundary=boundary))


def turned_away(call: ProposedCall, reason: str = "not in here") -> ProposedCall:
    return replace(call, filtered=reason)


def looked_at(run: Run) -> list[str]:
    """The filters whose look is open."""
    return [command.name for command in run.open(CallCode)]


def ordered(run: Run) -> list[tuple[str, object]]:
    return [(command.tool, command.arguments) for command in run.open(CallTool)]


def test_nothing_is_judged_before_the_filters_have_looked() -> None:
    run = filtering("mask", "curfew")
    run.proposes(wants("look"), wants("write", 2), wants("nothing", 3))
    assert looked_at(run) == [f"{FILTER_MARK}mask"]
    assert (run.open(CallTool), run.open(AskHuman), run.all(rulings.ToolCallRefused)) == ([], [], [])


def test_filters_look_in_their_order_and_each_at_what_the_ones_before_it_left() -> None:
    run = filtering("mask", "curfew", "last")
    run.proposes(wants("look", 1))
    run.sifts(wants("look", 2))
    assert looked_at(run) == [f"{FILTER_MARK}curfew"]
    assert run.state.calls.proposed == (wants("look", 2),)
    run.sifts(wants("look", 3))
    assert looked_at(run) == [f"{FILTER_MARK}last"]
    run.sifts(wants("look", 3))
    assert ordered(run) == [("look", wants("look", 3).arguments)]
    assert [(f.name, f.changed, f.dropped) for f in run.all(CallsFiltered)] == [
        ("mask", 1, 0),
        ("curfew", 1, 0),
        ("last", 0, 0),
    ]


def test_the_next_filter_looks_even_where_the_one_before_it_has_left_nothing() -> None:
    run = filtering("mask", "curfew")
    run.proposes(wants("look"))
    run.sifts()
    assert looked_at(run) == [f"{FILTER_MARK}curfew"]


def test_a_call_that_a_filter_turns_away_is_refused_with_its_reason_and_the_others_are_judged() -> None:
    run = filtering()
    calls = (wants("look", 1, call_id="one"), wants("look", 2, call_id="two"), wants("write", 3, call_id="three"))
    run.proposes(*calls)
    run.sifts(turned_away(calls[0]), *calls[1:])
    refused = run.last(rulings.ToolCallRefused)
    assert (refused.call_id, refused.code, refused.reason) == ("one", Refusal.FILTERED, "not in here")
    assert ordered(run) == [("look", calls[1].arguments)]
    assert len(run.open(AskHuman)) == 1
    assert run.last(CallsFiltered).dropped == 1


def test_a_call_that_one_filter_turned_away_stays_so_and_is_counted_once() -> None:
    run = filtering("mask", "curfew")
    call = turned_away(wants("look"))
    run.proposes(wants("look"))
    run.sifts(call)
    run.sifts(call)
    assert [(f.changed, f.dropped) for f in run.all(CallsFiltered)] == [(0, 1), (0, 0)]
    assert run.last(rulings.ToolCallRefused).reason == "not in here"


def test_when_every_call_was_turned_away_the_model_is_asked_again() -> None:
    run = filtering()
    run.proposes(wants("look"))
    run.sifts(turned_away(wants("look")))
    assert (run.path()[-1], run.now(rulings.NodeEntered)[-1].outcome) == ("think", "refused")
    assert "not in here" in run.messages()[-1]


def test_to_be_turned_away_is_no_denial_that_could_end_the_run() -> None:
    run = filtering()
    for n in range(5):
        run.proposes(wants("look", n))
        run.sifts(turned_away(wants("look", n)))
    assert (run.state.end.ending, run.state.counts.denials) == (None, 0)


@pytest.mark.parametrize("names", [("mask",), ("mask", "curfew")])
def test_a_filter_that_failed_has_let_nothing_through(names: tuple[str, ...]) -> None:
    run = filtering(*names)
    run.proposes(wants("look", 1), wants("write", 2))
    run.take(arrivals.CodeFailed(run.open(CallCode)[0].id, "it broke", ErrorCode.TOOL_TIMEOUT))
    for _ in names[1:]:
        run.sifts(*run.state.calls.proposed)
    assert (run.open(CallTool), run.open(AskHuman)) == ([], [])
    refused = run.all(rulings.ToolCallRefused)
    assert [(each.code, each.reason) for each in refused] == [(Refusal.FILTERED, "filter mask failed: it broke")] * 2
    assert run.all(CallsFiltered)[0].dropped == 2
    assert run.path()[-1] == "think"


def test_a_failure_leaves_the_reason_of_an_earlier_filter_as_it_is() -> None:
    run = filtering("mask", "curfew")
    run.proposes(wants("look", 1), wants("look", 2))
    run.sifts(turned_away(wants("look", 1)), wants("look", 2))
    run.take(arrivals.CodeFailed(run.open(CallCode)[0].id, "it broke"))
    assert [each.reason for each in run.all(rulings.ToolCallRefused)] == [
        "not in here",
        "filter curfew failed: it broke",
    ]


def test_every_answer_is_shown_to_all_filters_from_the_first_on() -> None:
    run = filtering("mask", "curfew")
    for n in range(3):
        run.proposes(wants("look", n))
        for name in ("mask", "curfew"):
            assert looked_at(run) == [f"{FILTER_MARK}{name}"]
            run.sifts(wants("look", n))
        run.returns()
    assert len(run.all(CallsFiltered)) == 6


def test_an_answer_without_calls_is_shown_to_no_filter() -> None:
    run = filtering()
    run.says("done")
    assert (run.all(CallCode), run.state.end.ending) == ([], Ending.SUCCESS)


def test_what_a_filter_changed_is_judged_like_any_call() -> None:
    run = filtering()
    run.proposes(wants("look", 1))
    run.sifts(replace(wants("look", 2), tool="secret"))
    assert run.last(rulings.ToolCallRefused).code == Refusal.PERMISSION_DENIED


def test_a_step_of_a_plan_that_calls_a_tool_passes_the_filters_each_time() -> None:
    steps = [
        node
        for name in ("one", "two")
        for node in (
            Node(f"{name}.arguments", NodeKind.DECIDE, code=f"call:{name}", feed=StepInput(kind="text", value="x")),
            Node(name, NodeKind.TOOL, rules=STANDARD_RULES, feed=StepInput(source=f"{name}.arguments")),
        )
    ]
    run = Run(manifest_of(graph=in_line(*steps), filters=("mask", "curfew")))
    for n, name in enumerate(("one", "two")):
        run.take(arrivals.CodeReturned(run.open(CallCode)[0].id, calls=(wants("look", n),)))
        for place, filter_name in enumerate(("mask", "curfew")):
            assert looked_at(run) == [f"{FILTER_MARK}{filter_name}"], name
            assert run.state.calls.filtered == place
            run.sifts(wants("look", n))
        run.returns()
    assert run.state.end.ending is Ending.SUCCESS


# Pausing and cancelling meanwhile.


@pytest.mark.parametrize("is_last", [False, True])
def test_a_run_that_is_paused_while_a_filter_looks_goes_on_behind_it_when_it_is_resumed(is_last: bool) -> None:
    run = filtering(*(("mask",) if is_last else ("mask", "curfew")))
    run.proposes(wants("look", 1))
    run.take(arrivals.PauseRequested("ada"))
    run.sifts(wants("look", 2))
    assert (run.open(CallTool), run.open(CallCode)) == ([], [])
    assert run.state.place.parked == rulings.OutcomeParked(FILTERED)
    run.take(arrivals.ResumeRequested("ada"))
    if not is_last:
        assert looked_at(run) == [f"{FILTER_MARK}curfew"]
        run.sifts(wants("look", 2))
    assert ordered(run) == [("look", wants("look", 2).arguments)]


def test_a_filter_that_fails_in_a_paused_run_has_let_nothing_through_either() -> None:
    run = filtering()
    run.proposes(wants("look"))
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.CodeFailed(run.open(CallCode)[0].id, "it broke"))
    run.take(arrivals.ResumeRequested("ada"))
    assert (run.open(CallTool), run.last(rulings.ToolCallRefused).code) == ([], Refusal.FILTERED)


def test_an_answer_that_came_in_a_pause_is_shown_to_the_filters_after_it() -> None:
    run = filtering()
    run.take(arrivals.PauseRequested("ada"))
    run.proposes(wants("look"))
    assert run.open(CallCode) == []
    run.take(arrivals.ResumeRequested("ada"))
    assert looked_at(run) == [f"{FILTER_MARK}mask"]


def test_a_run_that_is_cancelled_while_a_filter_looks_calls_nothing() -> None:
    run = filtering()
    run.proposes(wants("look"))
    look = run.open(CallCode)[0]
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.end.ending is Ending.USER_CANCEL
    assert run.all(CallTool) == []
    assert run.fault_of(arrivals.CodeReturned(look.id, calls=(wants("look"),), is_filtered=True)) == "DUPLICATE"


def test_a_run_whose_time_is_up_when_a_filter_returns_calls_nothing() -> None:
    run = filtering()
    run.proposes(wants("look"))
    run.now_ms = run.state.clock.deadline_at_ms
    run.sifts(wants("look"))
    assert (run.state.end.ending, run.all(CallTool)) == (Ending.TIMEOUT, [])


# Folding.


def test_the_turns_of_a_filtered_run_fold_to_its_state_and_agree_with_what_each_turn_counted() -> None:
    run = filtering("mask", "curfew")
    for n in range(2):
        run.proposes(wants("look", n), wants("look", n + 10))
        after = (turned_away(wants("look", n)), wants("look", n + 20))
        counted = weigh(
            run.state, arrivals.CodeReturned(run.open(CallCode)[0].id, calls=after, is_filtered=True), 2**40
        )
        assert counted.ending is Ending.TIMEOUT
        run.sifts(*after)
        failing = arrivals.CodeFailed(run.open(CallCode)[0].id, "it broke")
        tally = weigh(run.state, failing, run.now_ms)
        run.take(failing)
        assert (run.state.calls.proposed, run.state.calls.filtered) == (tally.proposed, tally.filtered)
        assert not run.state.calls.is_unjudged
        assert fold_journal(run.journal) == run.state
    assert len(run.open(CallModel)) == 1
