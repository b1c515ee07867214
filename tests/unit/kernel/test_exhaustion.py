"""When a dimension is spent: the run stops, compresses, takes a cheaper model, says its last words, or asks for more."""

from hashlib import sha256
from typing import Any

import pytest

from remit.core.failure import ArrivalFault, Ending, Refusal, RequestRejected
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, AskPurpose, CallModel, CallTool, TimerPurpose
from remit.core.journal.rulings import ContextCompressed, ModelDowngraded, WrapUpBegun
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import FIELDS, Budget, Dimension
from remit.core.record import BlobRef
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.messages import Message, Role
from remit.core.run.usage import TokenUsage
from remit.kernel.budget.exhaustion import EXHAUSTION_INVALID, WAYS_OUT, asked_when_spent, check_exhaustion, policy_of
from remit.kernel.results.notices import SHORTENED_BYTES_MAX, WRAP_UP, compressed_notice, tokens_bound, whole_bound
from tests.simulation.scenarios import MODEL
from tests.unit.kernel.builders import Run, lawful, manifest_of, wants

REACHES = [Exhaustion]

# A model that costs a tenth, and one that costs nothing.
CHEAP = ModelInfo("cheap", 100_000, Price(100_000, 200_000))
FREE = ModelInfo("free", 100_000, Price(0, 0))
CALLS, CONTEXT = int(Dimension.TOOL_CALLS), int(Dimension.CONTEXT_TOKENS)
OUTPUT, COST = int(Dimension.OUTPUT_TOKENS), int(Dimension.INFERENCE_COST_MICROUSD)
INPUT = int(Dimension.INPUT_TOKENS)


def exhausting(
    *policies: tuple[str, Exhaustion], budget: Budget, others: tuple[ModelInfo, ...] = (), **more: Any
) -> Run:
    boundary = Boundary("test", exhaustion=policies, budget=budget, **more)
    return Run(manifest_of(boundary=boundary, others=others))


def looks(run: Run, *contents: str, usage: TokenUsage | None = None) -> None:
    """A round of a look for each result."""
    for n, content in enumerate(contents):
        call = wants("look", len(run.state.calls.made) + n, call_id=f"call{len(run.state.calls.made)}")
        if usage is None:
            run.proposes(call)
        else:
            model_call = run.open(CallModel)[0]
            run.take(arrivals.ModelAnswered(model_call.id, calls=(call,), usage=usage, tokens_bound=40))
        run.returns("look", content)


def results(run: Run) -> list[object]:
    """What is shown of each result, in order."""
    return [e.content for e in run.state.talk.context if isinstance(e, Message) and e.role is Role.TOOL]


# The table.


@pytest.mark.parametrize("policy", list(Exhaustion))
@pytest.mark.parametrize("dimension", list(Dimension))
def test_a_dimension_has_the_ways_out_of_the_table_and_no_other(dimension: Dimension, policy: Exhaustion) -> None:
    boundary = Boundary("mine", exhaustion=((FIELDS[dimension], policy),))
    ways = WAYS_OUT.get(dimension, (Exhaustion.STOP,))
    if policy in ways:
        check_exhaustion(boundary)
        assert policy_of(boundary, dimension) is policy
        return
    with pytest.raises(RequestRejected, match=EXHAUSTION_INVALID) as refused:
        Run(manifest_of(boundary=boundary))
    assert refused.value.message == (
        f"boundary mine: {FIELDS[dimension]} cannot {policy} when it is spent; it can {', '.join(ways)}"
    )


def test_a_dimension_that_does_not_exist_is_refused_before_the_run_begins() -> None:
    boundary = Boundary("mine", exhaustion=(("patience", Exhaustion.ASK),))
    with pytest.raises(RequestRejected, match=EXHAUSTION_INVALID) as refused:
        Run(manifest_of(boundary=boundary))
    assert refused.value.message.startswith(
        "boundary mine: exhaustion names 'patience', no dimension; use input_tokens"
    )


def test_what_a_boundary_does_not_name_stops_the_run() -> None:
    stopping = {dimension for dimension in Dimension if policy_of(Boundary(), dimension) is Exhaustion.STOP}
    assert stopping == set(Dimension) - {Dimension.SIDE_EFFECTS}
    assert asked_when_spent(Boundary()) == {Dimension.SIDE_EFFECTS}
    assert asked_when_spent(Boundary(exhaustion=(("side_effects", Exhaustion.STOP),))) == frozenset()


def test_people_are_asked_only_for_what_the_boundary_leaves_to_them() -> None:
    boundary = Boundary(exhaustion=(("tool_calls", Exhaustion.ASK), ("output_tokens", Exhaustion.WRAP_UP)))
    assert asked_when_spent(boundary) == {CALLS, int(Dimension.SIDE_EFFECTS)}


@pytest.mark.parametrize("policies", [(), (("output_tokens", Exhaustion.STOP),)])
def test_a_run_that_is_to_stop_stops(policies: tuple[tuple[str, Exhaustion], ...]) -> None:
    run = exhausting(*policies, budget=Budget(output_tokens=10))
    looks(run, "{}", usage=TokenUsage(prompt_tokens=8, output_tokens=10))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.state.end.message == "output_tokens: 10 spent or reserved and 1 wanted exceed output_tokens_max=10"


# Compressing.

LONG = "x" * 600
COMPRESSING = ("context_tokens", Exhaustion.COMPRESS)


def test_under_pressure_earlier_results_are_shown_by_their_digest_and_the_last_two_in_full() -> None:
    run = exhausting(COMPRESSING, budget=Budget(context_tokens=3000))
    looks(run, LONG, LONG, LONG)
    assert run.all(ContextCompressed) == []
    before = run.state.talk.context_tokens
    looks(run, LONG)
    (compressed,) = run.now(ContextCompressed)
    digest = sha256(LONG.encode()).hexdigest()
    assert results(run) == [f"(an earlier result of 600 bytes, kept as sha256:{digest})"] * 2 + [LONG] * 2
    assert [type(run.state.talk.context[place]) for place in compressed.messages] == [Message] * 2
    saved = 2 * (whole_bound(LONG) - tokens_bound(compressed_notice(LONG)))
    assert compressed.tokens_saved == saved
    assert run.state.talk.context_tokens == before + 40 + whole_bound(LONG) - saved
    assert (run.state.talk.compressions, run.state.end.ending) == (1, None)
    lawful(run)


def test_pressure_begins_beyond_four_fifths_of_the_context() -> None:
    cap = 3000
    fitting = cap * 4 // 5 - 100 - 3 * 40 - 3 * 16
    for extra, times in ((0, 0), (1, 1)):
        run = exhausting(COMPRESSING, budget=Budget(context_tokens=cap))
        looks(run, LONG, LONG, "y" * (fitting - 1200 + extra))
        assert len(run.all(ContextCompressed)) == times


def test_the_words_of_people_and_of_the_model_are_never_compressed() -> None:
    run = exhausting(COMPRESSING, budget=Budget(context_tokens=3000))
    run.take(arrivals.FeedbackGiven("ada", "w" * 300, 316))
    looks(run, LONG, LONG, LONG, LONG)
    assert run.state.talk.compressions > 0
    assert [text for text in run.messages() if str(text).startswith(("please", "w"))] == ["please", "w" * 300]
    lawful(run)


def test_a_second_compression_takes_the_next_results_and_no_result_twice() -> None:
    run = exhausting(COMPRESSING, budget=Budget(context_tokens=9000))
    for n in range(16):
        looks(run, str(n) * 1500)
    first, second, *_ = run.all(ContextCompressed)
    assert not {*first.messages} & {*second.messages}
    digests = [sha256((str(n) * 1500).encode()).hexdigest() for n in range(16)]
    shown = results(run)
    for n, (content, digest) in enumerate(zip(shown[:-2], digests, strict=False)):
        assert str(content) == str(n) * 1500 or str(content).endswith(f"sha256:{digest})")
    assert run.state.talk.compressions >= 2
    lawful(run)


def test_nothing_that_was_shortened_is_long_enough_to_be_shortened_again() -> None:
    longest = compressed_notice(BlobRef(b"\xff" * 32, 10**20))
    assert len(longest.encode()) <= SHORTENED_BYTES_MAX


def test_a_result_that_lives_elsewhere_is_compressed_to_its_digest() -> None:
    run = exhausting(COMPRESSING, budget=Budget(context_tokens=12_000))
    kept = BlobRef(sha256(b"kept").digest(), 8000)
    for n in range(3):
        run.proposes(wants("look", n))
        content = kept if n == 0 else LONG
        command = run.open(CallTool)[0]
        run.take(arrivals.ToolReturned(command.id, content, b"evidence", whole_bound(content)))
    looks(run, LONG, LONG)
    assert results(run)[0] == f"(an earlier result of 8000 bytes, kept as sha256:{kept.digest.hex()})"
    lawful(run)


def test_where_nothing_can_be_compressed_the_run_stops_once_its_context_is_full() -> None:
    run = exhausting(COMPRESSING, budget=Budget(context_tokens=3000))
    looks(run, "x" * 1200, "x" * 1300)
    assert (run.state.end.ending, run.all(ContextCompressed)) == (None, [])
    looks(run, "ok")
    assert run.state.talk.compressions == 1
    looks(run, "x" * 2900)
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert "exceed context_tokens_max=3000" in run.state.end.message
    lawful(run)


def test_short_results_are_left_as_they_are() -> None:
    run = exhausting(COMPRESSING, budget=Budget(context_tokens=600))
    looks(run, "ok", "ok", "ok", "x" * 100)
    assert (run.all(ContextCompressed), run.state.end.ending) == ([], None)


def test_input_that_is_spent_is_saved_by_compressing_too() -> None:
    run = exhausting(("input_tokens", Exhaustion.COMPRESS), budget=Budget(input_tokens=2500))
    looks(run, LONG, LONG, LONG)
    assert run.all(ContextCompressed) == []
    looks(run, LONG)
    assert run.state.talk.compressions == 1
    assert run.open(CallModel)[0].reserved[0] == (INPUT, run.state.talk.context_tokens + 70)
    looks(run, LONG, LONG)
    assert (run.state.talk.compressions, run.state.end.ending) == (2, None)
    looks(run, "x" * 2400)
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    lawful(run)


# A cheaper model.

DOWNGRADING = ("inference_cost_microusd", Exhaustion.DOWNGRADE)
DEAR = TokenUsage(prompt_tokens=100, output_tokens=1000)


def test_a_cheaper_model_is_asked_when_the_first_is_too_dear_and_charged_at_its_own_price() -> None:
    run = exhausting(DOWNGRADING, budget=Budget(inference_cost_microusd=5_000), others=(CHEAP,))
    assert run.open(CallModel)[0].model == MODEL.name
    looks(run, "{}", usage=DEAR)
    assert run.last(ModelDowngraded) == ModelDowngraded(COST, "cheap")
    assert (run.open(CallModel)[0].model, run.used(Dimension.INFERENCE_COST_MICROUSD)) == ("cheap", 2100)
    looks(run, "{}", usage=DEAR)
    assert run.used(Dimension.INFERENCE_COST_MICROUSD) == 2100 + 210
    assert (run.open(CallModel)[0].model, run.state.talk.model_index) == ("cheap", 1)
    lawful(run)


def test_several_models_are_passed_over_in_one_turn() -> None:
    run = exhausting(DOWNGRADING, budget=Budget(inference_cost_microusd=300), others=(CHEAP, FREE))
    assert [ruling.model for ruling in run.now(ModelDowngraded)] == ["cheap", "free"]
    assert (run.open(CallModel)[0].model, run.state.talk.model_index) == ("free", 2)
    run.says("done")
    assert (run.state.end.ending, run.used(Dimension.INFERENCE_COST_MICROUSD)) == (Ending.SUCCESS, 0)
    lawful(run)


def test_where_no_cheaper_model_is_left_the_run_stops() -> None:
    run = exhausting(DOWNGRADING, budget=Budget(inference_cost_microusd=300), others=(CHEAP,))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.state.end.message.startswith("inference_cost_microusd: 0 spent or reserved and 420 wanted exceed")


# Last words.

WRAPPING = ("output_tokens", Exhaustion.WRAP_UP)


def wrapping(**more: Any) -> Run:
    """A run that has spent all but what was kept back for its last words."""
    run = exhausting(WRAPPING, budget=Budget(output_tokens=1000), wrap_up_tokens=100, **more)
    looks(run, "{}", usage=TokenUsage(prompt_tokens=8, output_tokens=900))
    return run


def test_what_is_kept_back_for_last_words_is_not_spent_before() -> None:
    run = exhausting(WRAPPING, budget=Budget(output_tokens=1000), wrap_up_tokens=100)
    assert run.open(CallModel)[0].max_tokens == 900


def test_last_words_are_asked_for_from_what_was_kept_back() -> None:
    run = wrapping()
    assert run.now(WrapUpBegun) == [WrapUpBegun(OUTPUT, tokens_bound(WRAP_UP))]
    assert (run.messages()[-1], run.open(CallModel)[0].max_tokens) == (WRAP_UP, 100)
    assert run.state.talk.is_wrapping
    lawful(run)


def test_a_run_ends_as_exhausted_with_its_last_words_as_the_answer() -> None:
    run = wrapping()
    run.says("my best guess")
    assert (run.state.end.ending, run.state.result.answer) == (Ending.BUDGET_EXHAUSTED, "my best guess")
    assert run.state.end.message == "the budget was spent; the answer is the run's last words"
    assert run.path()[-2:] == ["think", "exhausted"]
    lawful(run)


def test_last_words_call_no_tool() -> None:
    run = wrapping()
    run.proposes(wants("look", 7), text="let me look once more")
    assert (run.state.end.ending, len(run.all(CallTool))) == (Ending.BUDGET_EXHAUSTED, 1)
    assert run.state.result.answer == "let me look once more"


def test_last_words_are_asked_for_once() -> None:
    run = wrapping()
    run.breaks(was_cut=True)
    run.rings(TimerPurpose.RETRY)
    assert (run.state.end.ending, len(run.all(WrapUpBegun))) == (Ending.BUDGET_EXHAUSTED, 1)
    assert run.state.end.message == "output_tokens: 1000 spent or reserved and 1 wanted exceed output_tokens_max=1000"
    lawful(run)


def test_a_wish_for_fewer_words_holds_for_the_last_ones() -> None:
    run = exhausting(WRAPPING, budget=Budget(output_tokens=5000), wrap_up_tokens=3000)
    assert run.open(CallModel)[0].max_tokens == 2000
    looks(run, "{}", usage=TokenUsage(prompt_tokens=8, output_tokens=2000))
    assert run.open(CallModel)[0].max_tokens == 2048


def test_money_is_kept_back_for_last_words_too() -> None:
    policy = ("inference_cost_microusd", Exhaustion.WRAP_UP)
    run = exhausting(policy, budget=Budget(inference_cost_microusd=5_000), wrap_up_tokens=100)
    first = dict(run.open(CallModel)[0].reserved)[COST]
    assert first == 100 + 2 * 2048
    looks(run, "{}", usage=DEAR)
    assert run.last(WrapUpBegun).dimension == COST
    run.says("that was all")
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.used(Dimension.INFERENCE_COST_MICROUSD) <= 5_000
    lawful(run)


def test_whatever_touches_what_was_kept_back_leads_to_last_words_and_not_to_a_stop() -> None:
    """The reserve is of every dimension that a call takes, whichever of them the boundary names."""
    run = exhausting(WRAPPING, budget=Budget(input_tokens=1200), wrap_up_tokens=100)
    looks(run, "x" * 500)
    assert run.last(WrapUpBegun).dimension == INPUT
    run.says("from what I have")
    assert (run.state.end.ending, run.state.result.answer) == (Ending.BUDGET_EXHAUSTED, "from what I have")
    lawful(run)


def test_what_does_not_fit_at_all_stops_a_run_whatever_was_kept_back() -> None:
    run = exhausting(WRAPPING, budget=Budget(input_tokens=400), wrap_up_tokens=100)
    looks(run, "x" * 500)
    assert (run.state.end.ending, run.all(WrapUpBegun)) == (Ending.BUDGET_EXHAUSTED, [])


def test_a_run_whose_calls_are_spent_says_its_last_words() -> None:
    run = exhausting(("tool_calls", Exhaustion.WRAP_UP), budget=Budget(tool_calls=1), wrap_up_tokens=100)
    looks(run, "{}")
    run.proposes(wants("look", 2))
    assert run.last(rulings.ToolCallRefused).code == Refusal.BUDGET_EXHAUSTED
    assert (run.last(WrapUpBegun).dimension, run.open(CallModel)[0].max_tokens) == (CALLS, 100)
    run.says("from one look")
    assert (run.state.end.ending, run.state.result.answer) == (Ending.BUDGET_EXHAUSTED, "from one look")
    lawful(run)


def test_a_call_that_was_ordered_is_waited_for_before_last_words() -> None:
    run = exhausting(("tool_calls", Exhaustion.WRAP_UP), budget=Budget(tool_calls=1))
    run.proposes(wants("look", 1), wants("look", 2))
    assert (run.all(WrapUpBegun), len(run.open(CallTool))) == ([], 1)
    run.returns()
    assert run.path()[-1] == "think"


def test_under_a_cap_of_money_a_model_without_a_price_is_not_asked_for_last_words() -> None:
    boundary = Boundary(exhaustion=(WRAPPING,))
    capped = Budget(inference_cost_microusd=1_000)
    run = Run(manifest_of(boundary=boundary, budget=capped, model=ModelInfo("unpriced", 100_000)))
    assert (run.state.end.ending, run.all(WrapUpBegun)) == (Ending.BUDGET_EXHAUSTED, [])


# Asking for more.


def releasing(name: str, budget: Budget) -> Run:
    return exhausting((name, Exhaustion.ASK), budget=budget)


def test_a_person_is_asked_for_half_of_what_was_given() -> None:
    run = releasing("output_tokens", Budget(output_tokens=1000))
    looks(run, "{}", usage=TokenUsage(prompt_tokens=8, output_tokens=1000))
    asked = run.question()
    assert (asked.purpose, asked.ending, asked.releases) == (
        AskPurpose.RELEASE,
        Ending.CONFIRM_REQUIRED,
        ((OUTPUT, 500),),
    )
    assert asked.question == "output_tokens is spent: 1000 were given. Release 500 more?"
    assert run.state.end.ending is None


@pytest.mark.req("4.29")
def test_a_release_gives_exactly_what_was_asked_for_and_the_model_is_asked_after_all() -> None:
    run = releasing("output_tokens", Budget(output_tokens=1000))
    looks(run, "{}", usage=TokenUsage(prompt_tokens=8, output_tokens=1000))
    run.approves()
    assert run.last(rulings.QuestionSettled).releases == ((OUTPUT, 500),)
    assert (run.state.spending.caps[OUTPUT], run.open(CallModel)[0].max_tokens) == (1500, 500)
    assert run.path()[-1] == "think"
    run.says("done")
    assert run.state.end.ending is Ending.SUCCESS
    lawful(run)


def test_a_release_covers_what_the_next_call_lacks_where_half_would_not() -> None:
    run = releasing("input_tokens", Budget(input_tokens=150))
    looks(run, "x" * 500)
    lacked = run.state.talk.context_tokens + 70 - run.state.spending.left[INPUT]
    assert run.question().releases == ((INPUT, lacked),)
    run.approves()
    assert (len(run.open(CallModel)), run.state.spending.left[INPUT]) == (1, 0)


def test_a_run_that_was_given_nothing_asks_for_as_much_as_it_needs() -> None:
    run = releasing("output_tokens", Budget(output_tokens=0))
    assert run.question().releases == ((OUTPUT, 1),)


def test_a_longer_context_that_was_released_holds_in_the_same_turn() -> None:
    run = releasing("context_tokens", Budget(context_tokens=400))
    looks(run, "x" * 500)
    wanted = run.state.talk.context_tokens + 70
    assert run.question().releases == ((CONTEXT, max(wanted - 400, 200)),)
    run.approves()
    assert (run.open(AskHuman), len(run.open(CallModel))) == ([], 1)
    assert run.state.spending.caps[CONTEXT] == max(wanted, 600)
    run.says("done")
    assert run.state.end.ending is Ending.SUCCESS
    lawful(run)


@pytest.mark.req("4.29")
def test_a_no_and_silence_end_the_run_as_exhausted() -> None:
    rejected, expired = (releasing("output_tokens", Budget(output_tokens=0)) for _ in range(2))
    rejected.rejects()
    expired.rings(TimerPurpose.APPROVAL)
    assert (rejected.state.end.ending, rejected.state.end.message) == (
        Ending.BUDGET_EXHAUSTED,
        "output_tokens is spent and ada released nothing",
    )
    assert (expired.state.end.ending, expired.state.spending.caps[OUTPUT]) == (Ending.BUDGET_EXHAUSTED, 0)
    lawful(rejected)
    lawful(expired)


def test_where_no_review_is_left_nobody_is_asked_for_more() -> None:
    run = releasing("output_tokens", Budget(output_tokens=0, human_reviews=0))
    assert (run.state.end.ending, run.all(AskHuman)) == (Ending.BUDGET_EXHAUSTED, [])


def test_every_release_is_asked_for_anew() -> None:
    run = releasing("output_tokens", Budget(output_tokens=100))
    for given in (100, 150, 200):
        looks(run, "{}", usage=TokenUsage(prompt_tokens=8, output_tokens=run.open(CallModel)[0].max_tokens))
        assert run.question().question == f"output_tokens is spent: {given} were given. Release 50 more?"
        run.approves()
    assert run.state.spending.caps[OUTPUT] == 250


def test_a_spent_call_is_for_a_person_to_let_through() -> None:
    run = exhausting(("tool_calls", Exhaustion.ASK), budget=Budget(tool_calls=1))
    looks(run, "{}")
    run.proposes(wants("look", 2))
    packet = run.question().packet
    assert packet is not None
    assert (packet.releases, packet.reasons) == (
        ((CALLS, 1),),
        ("nothing is left of tool_calls; a person may let this one call through",),
    )
    run.approves()
    assert (run.state.spending.caps[CALLS], len(run.open(CallTool))) == (2, 1)
    run.returns()
    run.proposes(wants("look", 3))
    run.rejects()
    assert (run.state.end.ending, run.state.spending.caps[CALLS]) == (Ending.BUDGET_EXHAUSTED, 2)
    lawful(run)


@pytest.mark.req("4.29")
def test_a_no_to_one_of_several_spent_calls_ends_the_run_when_the_others_are_settled() -> None:
    run = exhausting(("tool_calls", Exhaustion.ASK), budget=Budget(tool_calls=1))
    looks(run, "{}")
    run.proposes(wants("look", 2), wants("look", 3))
    run.rejects()
    run.approves()
    assert run.open(CallTool)
    run.returns()
    assert (run.state.end.ending, run.state.end.message) == (
        Ending.BUDGET_EXHAUSTED,
        "tool_calls is spent and ada released nothing",
    )
    lawful(run)


@pytest.mark.req("4.29")
def test_one_shortage_is_one_question_that_counts_what_is_kept_back_for_last_words() -> None:
    policies = (("input_tokens", Exhaustion.ASK), ("output_tokens", Exhaustion.WRAP_UP))
    run = exhausting(*policies, budget=Budget(input_tokens=150))
    needed = 2 * (run.state.talk.context_tokens + run.state.talk.offer_tokens)
    assert run.question().question == (
        f"input_tokens is short: 150 were given, 150 are left and {needed} are needed, {needed // 2} of them for "
        f"last words. Release {max(needed - 150, 75)} more?"
    )
    run.approves()
    assert (len(run.open(CallModel)), len(run.all(AskHuman))) == (1, 1)


@pytest.mark.req("4.29")
def test_a_call_beyond_the_budget_is_released_by_those_alone_whom_the_boundary_names() -> None:
    run = exhausting(("tool_calls", Exhaustion.ASK), budget=Budget(tool_calls=1), release_by=("carla",))
    run.proposes(wants("look", 1), wants("look", 2))
    for by, fault in (("mallory", ArrivalFault.NOT_RELEASING), ("c\u0430rla", ArrivalFault.NAME_CONFUSABLE)):
        assert run.fault_of(arrivals.ApprovalGiven(run.question().id, by)) is fault
    run.approves(by="carla")
    assert len(run.open(CallTool)) == 2
