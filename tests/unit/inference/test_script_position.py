"""Which reply is next follows from the conversation alone."""

from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall
from remit.core.run.messages import Message, assistant_message, system_message, tool_message, user_message
from remit.inference.engine import EngineFault
from remit.inference.scripted.script import FREE, ScriptedReply, script_of
from remit.inference.scripted.script_position import (
    LONG_MESSAGES,
    REMEMBERED_MAX,
    WHEN_SEES_CHARS_MAX,
    Bookmark,
    Playbook,
)

CALL = {"tool_calls": [{"name": "look", "arguments": {"n": 1}}]}
OTHER_CALL = {"tool_calls": [{"name": "look", "arguments": {"n": 2}}]}
ERROR = {"error": "INFERENCE_ENGINE_ERROR"}


def texts(*replies: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in replies]


def playbook(*replies: dict[str, Any]) -> Playbook:
    return Playbook(script_of(replies, context_window=100, price=FREE).replies)


def said(book: Playbook, *messages: Message, attempt: int = 1) -> str:
    """The reply as one word: its text, its error, or the argument of its call."""
    return word(book.reply_to(messages, attempt)[0])


def word(reply: ScriptedReply) -> str:
    if reply.error is not None:
        return "error"
    return reply.text or f"call {reply.calls[0].arguments['n']}"


def exchange(*answers: str) -> list[Message]:
    """A conversation in which each answer was given to a message of the user."""
    messages = [user_message("begin")]
    for answer in answers:
        messages += [assistant_message(answer), user_message("and then?")]
    return messages


def called(n: int = 1) -> list[Message]:
    return [assistant_message("", (ToolCall(f"id-{n}", "look", {"n": n}),)), tool_message(f"id-{n}", "look", "{}")]


def test_replies_are_served_in_order_and_the_last_one_repeats() -> None:
    given: list[str] = []
    book = playbook(*texts("a", "b", "c"))
    for _ in range(5):
        given.append(said(book, *exchange(*given)))
    assert given == ["a", "b", "c", "c", "c"]


def test_the_first_reply_needs_no_message_at_all() -> None:
    assert said(playbook(*texts("a", "b"))) == "a"


def test_a_playbook_that_was_never_asked_before_knows_the_place() -> None:
    assert said(playbook(*texts("a", "b", "c")), *exchange("a", "b")) == "c"


def test_asking_twice_gives_the_same_reply() -> None:
    book = playbook(*texts("a", "b"))
    assert [said(book, *exchange()) for _ in range(3)] == ["a"] * 3


def test_a_call_with_its_result_is_followed_by_the_next_reply() -> None:
    book = playbook(CALL, OTHER_CALL, *texts("done"))
    begin = user_message("begin")
    assert said(book, begin) == "call 1"
    assert said(book, begin, *called()) == "call 2"
    assert said(book, begin, *called(), *called(2)) == "done"


def test_a_history_that_kept_only_the_answers_goes_on_behind_them() -> None:
    book = playbook(CALL, *texts("first"), OTHER_CALL, *texts("second"))
    later = exchange("first")
    assert said(book, *later) == "call 2"
    assert said(book, *later, *called(2)) == "second"


def test_an_answer_that_the_script_gives_twice_counts_each_time() -> None:
    book = playbook(CALL, *texts("ok", "ok", "done"))
    assert said(book, *exchange("ok")) == "ok"
    assert said(book, *exchange("ok", "ok")) == "done"


def test_an_answer_that_is_not_in_the_script_counts_as_one_reply() -> None:
    book = playbook(*texts("a"), ERROR, *texts("b", "c"))
    assert said(book, *exchange("something else")) == "error"
    assert said(book, *exchange("something", "else")) == "c"
    assert said(book, *exchange(*["many", "more", "than", "there", "are"])) == "c"


def test_a_call_with_other_arguments_or_of_another_tool_is_not_the_one_in_the_script() -> None:
    book = playbook(CALL, *texts("a"), OTHER_CALL, *texts("b"))
    assert said(book, *called(3)) == "a"
    other = assistant_message("", (ToolCall("x", "other", {"n": 2}),))
    assert said(book, other) == "a"


def test_an_error_is_passed_by_asking_again() -> None:
    book = playbook(ERROR, ERROR, *texts("a", "b"))
    begin = exchange()
    assert [said(book, *begin, attempt=attempt) for attempt in (1, 2, 3, 4)] == ["error", "error", "a", "a"]
    assert said(book, *exchange("a")) == "b"
    assert said(book, *exchange("a"), attempt=2) == "b"


def test_an_error_in_the_middle_is_met_once() -> None:
    book = playbook(*texts("a"), ERROR, *texts("b"))
    assert said(book, *exchange("a")) == "error"
    assert said(book, *exchange("a"), attempt=2) == "b"
    assert said(book, *exchange("a", "b")) == "b"


def test_silence_is_passed_like_an_error() -> None:
    book = playbook({"text": ""}, *texts("a"))
    assert book.reply_to((), 1)[0].text == ""
    assert said(book, attempt=2) == "a"


@pytest.mark.parametrize("attempt", [1, 2, 9])
def test_an_error_at_the_end_repeats(attempt: int) -> None:
    assert said(playbook(*texts("a"), ERROR), *exchange("a"), attempt=attempt) == "error"
    assert said(playbook(ERROR), *exchange(), attempt=attempt) == "error"


def test_an_attempt_below_the_first_is_the_first() -> None:
    assert said(playbook(ERROR, *texts("a")), attempt=0) == "error"


def test_a_reply_with_a_pattern_answers_what_it_matches() -> None:
    book = playbook({"text": "hello yourself", "when": "(?i)hello"}, *texts("a"))
    assert said(book, user_message("Hello!")) == "hello yourself"
    assert said(book, user_message("what?")) == "a"


def test_the_first_pattern_that_matches_wins() -> None:
    book = playbook({"text": "x", "when": "order"}, {"text": "y", "when": "order 42"})
    assert said(book, user_message("order 42")) == "x"


def test_a_pattern_sees_what_a_tool_returned() -> None:
    book = playbook({"text": "it is lost", "when": '"lost"'}, CALL, *texts("fine"))
    begin = user_message("begin")
    lost = tool_message("id-1", "look", '{"state": "lost"}')
    assert said(book, begin, called()[0], lost) == "it is lost"
    assert said(book, begin, *called()) == "fine"


def test_a_reply_with_a_pattern_moves_no_place() -> None:
    book = playbook({"text": "hi", "when": "^hello$"}, *texts("a", "b"))
    greeted = [user_message("hello"), assistant_message("hi"), user_message("go on")]
    assert said(book, *greeted) == "a"
    assert said(book, *greeted, assistant_message("a"), user_message("more")) == "b"


def test_an_ordered_answer_to_what_a_pattern_matches_moves_the_place() -> None:
    # A session keeps the question and the last answer; the call that the pattern proposed in between is gone.
    book = playbook({**CALL, "when": "refund"}, *texts("refunded", "goodbye"))
    assert said(book, user_message("refund"), assistant_message("refunded"), user_message("thanks")) == "goodbye"


def test_errors_with_a_pattern_are_passed_by_asking_again() -> None:
    book = playbook({**ERROR, "when": "x"}, {"text": "a", "when": "x"}, {"text": "never", "when": "x"}, *texts("b"))
    x = user_message("x")
    assert [said(book, x, attempt=attempt) for attempt in (1, 2, 3)] == ["error", "a", "a"]
    assert said(book, x, assistant_message("a"), user_message("y")) == "b"


def test_an_error_alone_with_its_pattern_repeats() -> None:
    book = playbook({**ERROR, "when": "x"}, *texts("b"))
    assert said(book, user_message("x"), attempt=5) == "error"


def test_a_message_that_nothing_answers_is_a_fault_that_says_so() -> None:
    book = playbook({"text": "hi", "when": "hello"})
    for messages in ((user_message("what?"),), ()):
        with pytest.raises(EngineFault, match="no reply of the script matches") as caught:
            book.reply_to(messages, 1)
        assert caught.value.code is ErrorCode.INFERENCE_ENGINE_ERROR


def test_a_pattern_sees_the_beginning_of_a_long_message_only() -> None:
    book = playbook({"text": "found", "when": "needle"}, *texts("a"))
    hay = "x" * WHEN_SEES_CHARS_MAX
    assert said(book, user_message("needle" + hay)) == "found"
    assert said(book, user_message(hay + "needle")) == "a"


def test_a_bookmark_counts_answers_and_the_bytes_that_were_shown() -> None:
    messages = (system_message("be ü"), user_message("hi"), assistant_message("yes", (), "hm"))
    assert playbook(*texts("yes", "no")).reply_to(messages, 1)[1] == Bookmark(1, 1, 5 + 2 + 3 + 2)


def long_run(loops: int) -> list[Message]:
    return [user_message("begin"), *(message for n in range(loops) for message in called(n))]


def test_a_long_conversation_is_read_on_from_where_it_was_left() -> None:
    calls = [{"tool_calls": [{"name": "look", "arguments": {"n": n}}]} for n in range(100)]
    followed, messages = playbook(*calls), long_run(99)
    for loops in range(100):
        shown = tuple(messages[: 1 + 2 * loops])
        assert followed.reply_to(shown, 1) == playbook(*calls).reply_to(shown, 1)
        assert said(followed, *shown) == f"call {loops}"


def test_a_long_conversation_that_was_changed_is_read_anew() -> None:
    book = playbook(*[{"text": str(n)} for n in range(60)])
    told = exchange(*[str(n) for n in range(LONG_MESSAGES)])
    assert said(book, *told) == str(LONG_MESSAGES)
    # The same objects but for one in the middle, where an answer has become a remark.
    changed = [*told[:5], user_message("instead"), *told[6:]]
    assert changed[5] != told[5]
    fresh = playbook(*[{"text": str(n)} for n in range(60)])
    assert book.reply_to(tuple(changed), 1) == fresh.reply_to(tuple(changed), 1)
    assert book.reply_to(tuple(told[:-2]), 1) == fresh.reply_to(tuple(told[:-2]), 1)


def test_only_so_many_long_conversations_are_remembered() -> None:
    book = playbook(*texts("a"))
    conversations = [(user_message(f"{n}"), *long_run(LONG_MESSAGES)) for n in range(REMEMBERED_MAX + 5)]
    for conversation in conversations:
        book.reply_to(conversation, 1)
    assert len(book._remembered) == REMEMBERED_MAX
