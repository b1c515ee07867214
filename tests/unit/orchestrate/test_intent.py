"""What kind of task words look like: the same words always the same, and in doubt none."""

import pytest

from remit.core.work.goal import TaskClass
from remit.orchestrate.facts.intent import PROMPT_CHARS_MAX, intent_of

LOOKS_LIKE = {
    TaskClass.ACCOUNT_STATUS: (
        "What is my balance?",
        "Where is order #4711?",
        "Is my account active?",
        "Give me the status of order 4711",
        "What is the account status of customer 17?",
        "How much do I still owe?",
        "has my refund arrived yet",
    ),
    TaskClass.EXACT_CALCULATION: (
        "What is 4821 * 377?",
        "calculate 19% of 250",
        "How much is 15% of 84.20",
        "7 * 12345",
        "What's 2+2?",
        "What is 17 * 3?",
        "17*23",
        "how much is 12 plus 30",
        "What's 6 x 7?",
        "sum of 3, 4 and 5",
        "the average of 3 and 5, please",
        "100 / 8",
        "12 divided by 5",
        "What is 9 - 4?",
        "how much is 15 percent of 80",
        "square root of 2",
    ),
    TaskClass.CURRENT_FACT: (
        "What time is it?",
        "What's the weather in Paris?",
        "Who is the CEO of Acme?",
        "current EUR/USD exchange rate",
        "What is the latest version of Python? the newest release, I mean",
    ),
    TaskClass.CODE_RESULT: ("Do the tests pass?", "Please run the test suite", "What does this code print?"),
    TaskClass.TOOL_RESULT: ("Did the email go through?", "Is the payment API up?", "has the deployment finished?"),
    TaskClass.HIGH_STAKES: (
        "Should I invest in bonds?",
        "Would you recommend that I stop my medication?",
        "Should I take 400 mg ibuprofen with warfarin?",
        "Can I give my son two tablets?",
    ),
    TaskClass.ESTIMATE: ("Roughly how many people live in Rome?", "give me a ballpark for 4821 * 377"),
    TaskClass.CREATIVE: ("Write a poem about my account balance", "please summarize what we said"),
}


@pytest.mark.req("4.8")
@pytest.mark.parametrize(
    ("task_class", "words"), [(kind, words) for kind, all_ in LOOKS_LIKE.items() for words in all_]
)
def test_words_are_taken_for_the_task_they_look_like(task_class: TaskClass, words: str) -> None:
    intent = intent_of(words)
    assert intent is not None
    assert intent.task_class is task_class
    assert intent.words.lower() in " ".join(words.split()).lower()


def test_every_class_has_words_that_look_like_it() -> None:
    assert set(LOOKS_LIKE) == set(TaskClass)


@pytest.mark.req("4.8")
@pytest.mark.parametrize(
    "words",
    [
        "Hello?",
        "please",
        "Is 2026-01-02 a holiday?",
        "Call +49 30 1234",
        "Buy a 2x4 board",
        "Does it fit 1920x1080 screens?",
        "Read section 3/4",
        "Please refund order A-17",
        "Send 50 euros to Bob",
        "What is the capital of France?",
        "Remind me on 2026-01-02",
        "",
        "What is my balance? " + "x " * PROMPT_CHARS_MAX,
    ],
)
def test_words_that_look_like_nothing_are_taken_for_nothing(words: str) -> None:
    assert intent_of(words) is None
