"""What a person is asked in the middle of a conversation, and what an answer means."""

import pytest

from remit.adapters.cli.chat.prompt_answers import PROMPTS, Edit, PromptAnswer, Unclear, ask_at_prompt, meaning_of
from remit.adapters.cli.screen.colours import Line
from remit.core.failure import Ending
from remit.core.record import replace
from remit.core.run.approval import Approval, What
from remit.core.run.signals import Signal

REACHES = [What]
HELD = Approval(
    id="r/3.2",
    run_id="r",
    purpose=What.APPROVAL,
    ending=Ending.CONFIRM_REQUIRED,
    expires_at_ms=0,
    tool="write",
    effect="write",
    arguments={"text": "hello", "deep": {"a": [1, "\u202e"]}},
    reasons=("because",),
    releases=(("side_effects", 1),),
)
YES, NO = PromptAnswer(Signal.APPROVE), PromptAnswer(Signal.REJECT)


class Typist:
    """A user who answers what they were told to, and then says nothing more."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.drafts: list[str] = []

    def answer(self, question: str, draft: str = "") -> str | None:
        """The next answer."""
        self.drafts.append(draft)
        return self._answers.pop(0) if self._answers else None


def decided(*answers: str, asked: Approval = HELD) -> PromptAnswer | None:
    """What a typist's answers come to."""
    return ask_at_prompt(Typist(*answers), asked, lambda line: None)


def test_every_purpose_has_a_prompt() -> None:
    assert set(PROMPTS) == set(What) - {What.ENDING}


def test_an_answer_carries_the_version_of_what_was_shown() -> None:
    shown = replace(HELD, packet="v" * 64)
    assert decided("y", asked=shown) == PromptAnswer(Signal.APPROVE, {"packet": "v" * 64})
    assert decided("n too much", asked=shown) == PromptAnswer(Signal.REJECT, {"reason": "too much", "packet": "v" * 64})
    assert decided("l", asked=shown) is None


def test_what_edited_arguments_change_is_told_before_they_are_sent() -> None:
    told: list[Line] = []
    ask_at_prompt(Typist("e", '{"text": "bye"}'), HELD, told.append)
    assert ["".join(text for text, _ in line).strip() for line in told] == [
        'text: "hello" -> "bye"',
        'deep: {"a": [1, "\\u202e"]} -> (not there)',
    ]


def test_more_budget_is_allowed_or_not_and_has_no_arguments_to_edit() -> None:
    assert meaning_of(What.RELEASE, "y") == YES
    assert isinstance(meaning_of(What.RELEASE, "e"), Unclear)


def test_a_doubtful_answer_stands_by_a_yes_and_a_no_in_words_is_a_no() -> None:
    assert meaning_of(What.REVIEW, "yes") == YES
    assert meaning_of(What.REVIEW, "no, it is wrong") == PromptAnswer(Signal.REJECT, {"reason": "it is wrong"})
    assert isinstance(meaning_of(What.REVIEW, "it is wrong"), Unclear)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("y", YES),
        ("YES ", YES),
        ("n", NO),
        ("no, too much", PromptAnswer(Signal.REJECT, {"reason": "too much"})),
        ("e", Edit()),
        ("l", None),
        ("later", None),
        ("", None),
    ],
)
def test_only_a_word_that_says_so_is_a_yes_or_a_no(said: str, meant: object) -> None:
    assert meaning_of(What.APPROVAL, said) == meant


@pytest.mark.parametrize("said", ["yeah", "y n", "later please", "ok", "1", "e now"])
def test_what_nobody_understands_decides_nothing(said: str) -> None:
    assert isinstance(meaning_of(What.APPROVAL, said), Unclear)


def test_a_call_in_doubt_cannot_be_edited() -> None:
    assert isinstance(meaning_of(What.OUTCOME, "e"), Unclear)
    assert meaning_of(What.OUTCOME, "y") == YES


@pytest.mark.parametrize(
    ("said", "meant"),
    [("the blue one", PromptAnswer(Signal.APPROVE, {"text": "the blue one"})), ("/no", NO), ("  ", None)],
)
def test_a_question_in_words_is_answered_in_words(said: str, meant: object) -> None:
    assert meaning_of(What.QUESTION, said) == meant


def test_silence_leaves_it_open_and_so_does_confusion() -> None:
    complaints: list[Line] = []
    assert ask_at_prompt(Typist(), HELD, complaints.append) is None
    assert ask_at_prompt(Typist("what", "eh", "hm", "y"), HELD, complaints.append) is None
    assert len(complaints) == 3
    assert decided("what", "y") == YES


def test_edited_arguments_begin_with_those_that_were_proposed() -> None:
    typist = Typist("e", '{"text": "bye"}')
    assert ask_at_prompt(typist, HELD, lambda line: None) == PromptAnswer(
        Signal.APPROVE, {"arguments": {"text": "bye"}}
    )
    assert typist.drafts[1].startswith('{"text": "hello"')


@pytest.mark.parametrize("arguments", ["{", "[1]", '"x"'])
def test_arguments_that_cannot_be_used_decide_nothing(arguments: str) -> None:
    complaints: list[Line] = []
    assert ask_at_prompt(Typist("e", arguments), HELD, complaints.append) is None
    assert "arguments" in complaints[0][0][0]


def test_an_edit_that_is_left_empty_leaves_it_open() -> None:
    assert decided("e", "") is None
    assert decided("e") is None


def test_all_of_it_is_shown_on_demand_and_decides_nothing() -> None:
    told: list[Line] = []
    assert ask_at_prompt(Typist("f", "y"), HELD, told.append) == PromptAnswer(Signal.APPROVE)
    assert '     text = "hello"' in ["".join(text for text, _ in line) for line in told]
    assert isinstance(meaning_of(What.APPROVAL, "f because"), Unclear)
