"""What a person is asked in the middle of a conversation, and what an answer means."""

import pytest

from remit.adapters.cli.asking import EFFECTS, PROMPTS, Edit, Reply, Unclear, ask, meaning_of, packet_lines
from remit.core.commands import AskPurpose
from remit.core.failure import Ending
from remit.core.signals import Signal
from remit.core.tools import Effect
from remit.orchestrate.executors.human import Approval

REACHES = [AskPurpose]
HELD = Approval(
    id="r/3.2",
    run_id="r",
    purpose=AskPurpose.APPROVAL,
    ending=Ending.CONFIRM_REQUIRED,
    expires_at_ms=0,
    tool="write",
    effect="write",
    arguments={"text": "hello", "deep": {"a": [1, "\u202e"]}},
    reasons=("because",),
    releases=(("side_effects", 1),),
)
YES, NO = Reply(Signal.APPROVE), Reply(Signal.REJECT)


class Typist:
    """Somebody who answers what they were told to, and then says nothing more."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.drafts: list[str] = []

    def answer(self, question: str, draft: str = "") -> str | None:
        """The next answer."""
        self.drafts.append(draft)
        return self._answers.pop(0) if self._answers else None


def decided(*answers: str, asked: Approval = HELD) -> Reply | None:
    """What a typist's answers come to."""
    return ask(Typist(*answers), asked, lambda text: None)


def test_everything_that_will_run_is_shown_before_anybody_answers() -> None:
    shown = "\n".join("".join(text for text, _ in line) for line in packet_lines(HELD))
    assert "write wants to be called" in shown
    assert 'text = "hello"' in shown
    assert 'deep = {"a": [1, "\\u202e"]}' in shown
    assert f"effect: write, it {EFFECTS[Effect.WRITE]}" in shown
    assert "why: because" in shown
    assert "a yes allows: 1 of side_effects beyond its cap" in shown
    assert "as r/3.2" in shown


def test_a_question_in_words_is_shown_as_it_was_asked() -> None:
    asked = Approval("r/1.1", "r", AskPurpose.QUESTION, Ending.MISSING_INFO, 0, question="Which one?")
    assert [line[1][0] for line in packet_lines(asked)] == ["Which one?"]


def test_a_call_in_doubt_is_said_to_be_one() -> None:
    asked = Approval("r/1.1", "r", AskPurpose.OUTCOME, Ending.REVIEW_REQUIRED, 0, tool="write", about="0.1")
    assert "nobody knows whether it happened" in next(packet_lines(asked))[2][0]


def test_every_purpose_has_a_prompt_and_every_effect_its_words() -> None:
    assert set(PROMPTS) == set(AskPurpose)
    assert set(EFFECTS) == set(Effect)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("y", YES),
        ("YES ", YES),
        ("n", NO),
        ("no, too much", Reply(Signal.REJECT, {"reason": "too much"})),
        ("e", Edit()),
        ("l", None),
        ("later", None),
        ("", None),
    ],
)
def test_only_a_word_that_says_so_is_a_yes_or_a_no(said: str, meant: object) -> None:
    assert meaning_of(AskPurpose.APPROVAL, said) == meant


@pytest.mark.parametrize("said", ["yeah", "y n", "later please", "ok", "1", "e now"])
def test_what_nobody_understands_decides_nothing(said: str) -> None:
    assert isinstance(meaning_of(AskPurpose.APPROVAL, said), Unclear)


def test_a_call_in_doubt_cannot_be_edited() -> None:
    assert isinstance(meaning_of(AskPurpose.OUTCOME, "e"), Unclear)
    assert meaning_of(AskPurpose.OUTCOME, "y") == YES


@pytest.mark.parametrize(
    ("said", "meant"), [("the blue one", Reply(Signal.APPROVE, {"text": "the blue one"})), ("/no", NO), ("  ", None)]
)
def test_a_question_in_words_is_answered_in_words(said: str, meant: object) -> None:
    assert meaning_of(AskPurpose.QUESTION, said) == meant


def test_silence_leaves_it_open_and_so_does_confusion() -> None:
    complaints: list[str] = []
    assert ask(Typist(), HELD, complaints.append) is None
    assert ask(Typist("what", "eh", "hm", "y"), HELD, complaints.append) is None
    assert len(complaints) == 3
    assert decided("what", "y") == YES


def test_edited_arguments_begin_with_those_that_were_proposed() -> None:
    typist = Typist("e", '{"text": "bye"}')
    assert ask(typist, HELD, lambda text: None) == Reply(Signal.APPROVE, {"arguments": {"text": "bye"}})
    assert typist.drafts[1].startswith('{"text": "hello"')


@pytest.mark.parametrize("arguments", ["{", "[1]", '"x"'])
def test_arguments_that_cannot_be_used_decide_nothing(arguments: str) -> None:
    complaints: list[str] = []
    assert ask(Typist("e", arguments), HELD, complaints.append) is None
    assert "arguments" in complaints[0]


def test_an_edit_that_is_left_empty_leaves_it_open() -> None:
    assert decided("e", "") is None
    assert decided("e") is None
