"""Talking at the terminal: a session of governed runs, and what can be said besides."""

import json
import sys
from typing import Any

import pytest

from remit.adapters.cli.answers import attendance
from remit.adapters.cli.chat.prompt_answers import PromptAnswer, ask_at_prompt
from remit.adapters.cli.chat.slash import SLASHES
from remit.assemble import os_user
from remit.core.run.contract import SystemResponse
from remit.core.run.request_checks import REQUEST_BYTES_MAX
from tests import warm
from tests.unit.adapters.desk import HELPER, TOOLS, Desk, calls
from tests.unit.adapters.talk import CTRL_C, Talker

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

INTERRUPTS = '''
import asyncio, os, signal
from remit.tool.declare.decorator import tool


@tool(effect="read")
async def interrupt() -> str:
    """Press Ctrl-C while this runs."""
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()
    return ""


@tool(effect="read")
async def terminate() -> str:
    """Ask the process to end while this runs."""
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()
    return ""
'''
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200b\r"


@pytest.fixture
def talker(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Talker:
    """A user at a desk."""
    return Talker(desk, monkeypatch)


def writing(desk: Desk, *after: str) -> tuple[str, tuple[object, ...]]:
    """An engine that wants a note written and then says something, and the tools for it."""
    return desk.script(calls("write", text="hello"), *(after or ("Written.",))), ("--tools", desk.tools())


def test_every_message_is_a_run_of_one_session(talker: Talker) -> None:
    seen = talker.says("Hi", "And now?", engine=talker.desk.script("One.", "Two."), options=("--session", "s1"))
    assert talker.code == 0
    assert seen.index("One.") < seen.index("Two.")
    assert "go on with: remit chat --session s1" in seen
    rows = talker.desk.say("runs", "--json").rows
    assert [row["listing"]["session_id"] for row in rows] == ["s1", "s1"]


def test_a_user_who_leaves_is_told_how_to_come_back_with_the_same_engine_tools_and_boundary(talker: Talker) -> None:
    engine, tools = talker.desk.script("One."), talker.desk.tools()
    seen = talker.says("Hi", engine=engine, options=("--session", "s1", "--boundary", "guarded", "--tools", tools))
    hint = f"go on with: remit chat --session s1 --engine {engine} --tools {tools} --boundary guarded"
    assert hint in " ".join(seen.split())


def test_exit_leaves_and_no_model_is_asked(talker: Talker) -> None:
    seen = talker.says("exit", "Hi", engine=talker.desk.script("One."))
    assert (talker.code, "One." in seen) == (0, False)


def test_a_user_who_comes_back_is_reminded_and_goes_on(talker: Talker) -> None:
    engine = talker.desk.script("One.", "Two.")
    talker.says("First", engine=engine, options=("--session", "s1"))
    seen = talker.says("Second", engine=engine, options=("--session", "s1"))
    assert "> First\nOne.\n" in seen
    assert "Two." in seen


def test_tool_calls_and_what_was_used_are_told_as_they_happen(talker: Talker) -> None:
    engine = talker.desk.script(calls("look", place="here"), "Nothing.")
    seen = talker.says("Look", engine=engine, options=("--tools", talker.desk.tools()))
    assert '  -> look {"place":"here"}\n' in seen
    assert "  <- look nothing at here" in seen
    assert "1/50 tool calls" in seen
    assert seen.index("<- look") < seen.index("Nothing.\n") < seen.index("  used ")


@pytest.mark.parametrize(("answer", "notes"), [("y", ["hello"]), ("n too loud", [])])
def test_what_a_run_asks_is_asked_in_the_middle_of_the_conversation(
    talker: Talker, answer: str, notes: list[str]
) -> None:
    engine, options = writing(talker.desk)
    seen = talker.says("Write", answer, engine=engine, options=options)
    assert 'write(text="hello") wants to be called' in seen
    assert seen.count("Written.") == 1
    assert ("what the model said last is not accepted as an answer" in seen) == (not notes)
    assert talker.desk.notes == notes
    turns = talker.desk.say("trace", "last", "--json").rows
    assert [row["arrival"]["by"] for row in turns if "by" in row["arrival"]] == [os_user()]


def test_a_question_that_another_person_answered_meanwhile_leaves_the_chat_with_what_came_of_it(
    talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_late(*asked: Any) -> PromptAnswer | None:
        approve = [sys.executable, "-m", "remit", "approve", "last", "--by", "ada", "--home", str(talker.desk.home)]
        assert warm.run(approve, capture_output=True, check=False).returncode == 0
        return ask_at_prompt(*asked)

    engine, options = writing(talker.desk)
    monkeypatch.setattr(attendance, "ask_at_prompt", ask_late)
    seen = talker.says("Write", "y", engine=engine, options=options)
    assert "QUESTION_SETTLED" in seen
    assert "waits; /resume" not in seen
    assert "Written." in seen
    assert talker.desk.notes == ["hello"]


def test_who_talks_in_another_name_than_the_owner_s_does_not_approve_what_they_asked_for(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    seen = talker.says("Write", "y", engine=engine, options=(*options, "--user", "ann"))
    assert "SELF_APPROVAL" in seen
    assert "waits; /resume asks again" in seen
    assert talker.desk.notes == []
    assert talker.desk.say("approve", "last", "--by", "bob").code == 0
    assert talker.desk.notes == ["hello"]


def test_an_edited_call_runs_with_the_arguments_of_its_editor(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    talker.says("Write", "e", '{"text": "bye"}', engine=engine, options=options)
    assert talker.desk.notes == ["bye"]


def test_arguments_that_the_house_refuses_leave_the_question_open(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    seen = talker.says("Write", "e", '{"text": 1}', "l", "y", engine=engine, options=options)
    assert talker.desk.notes == []
    assert "waits; /resume asks again" in seen


def test_silence_refuses_nothing_and_says_how_to_answer_later(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    seen = talker.says("Write", engine=engine, options=options)
    assert "answer with: remit approve " in seen
    assert "is still open; `remit approvals` lists what is asked" in seen
    assert talker.desk.say("approve", "last").code == 0
    assert talker.desk.notes == ["hello"]


def test_while_an_exchange_is_open_nothing_else_is_said_until_it_is_resumed_or_cancelled(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    seen = talker.says("Write", "l", "Something else", "/resume", "y", engine=engine, options=options)
    assert "error EXCHANGE_OPEN" in seen
    assert seen.count('write(text="hello")') == 2
    assert talker.desk.notes == ["hello"]


def test_an_open_exchange_is_told_to_a_user_who_comes_back_and_can_be_cancelled(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    options = (*options, "--session", "s1")
    talker.says("Write", "l", engine=engine, options=options)
    seen = talker.says("/cancel", "/cancel", engine=engine, options=options)
    assert "is open; /resume goes on with it, /cancel ends it" in seen
    assert "ended as USER_CANCEL" in seen
    assert "error NOTHING_OPEN" in seen
    assert talker.desk.notes == []


def test_what_a_run_beneath_asks_is_asked_too(talker: Talker) -> None:
    desk = talker.desk
    tools = desk.file("tools.py", TOOLS + HELPER)
    script = desk.script({"when": '"task"', **calls("write", text="hello")}, calls("helper", task="write"), "Done.")
    seen = talker.says("Have it written", "y", engine=script, options=("--tools", tools))
    assert desk.notes == ["hello"]
    assert "-> helper" in seen


def test_an_interrupt_cancels_the_exchange_and_the_chat_goes_on(talker: Talker) -> None:
    tools = talker.desk.file("stops.py", INTERRUPTS)
    engine = talker.desk.script({"when": "Stop", **calls("interrupt")}, "Still here.")
    seen = talker.says("Stop", "Hi", engine=engine, options=("--tools", tools))
    assert "cancelling; Ctrl-C once more stops at once" in seen
    assert "ended as USER_CANCEL" in seen
    assert "/retry tries it again" in seen
    assert "Still here." in seen
    assert talker.code == 0


def test_a_termination_ends_the_chat_and_leaves_the_run_to_be_resumed(talker: Talker) -> None:
    tools = talker.desk.file("stops.py", INTERRUPTS)
    engine = talker.desk.script(calls("terminate"), "Never.")
    talker.says("Stop", "Hi", engine=engine, options=("--tools", tools))
    assert talker.code == 143
    assert len(talker.desk.say("runs", "--open", "--json").rows) == 1


def test_an_interrupt_at_the_prompt_clears_the_line_and_a_second_one_leaves(talker: Talker) -> None:
    seen = talker.says(CTRL_C, "Hi", CTRL_C, CTRL_C, "unread", engine=talker.desk.script("Hello."))
    assert seen.count("Ctrl-C once more, or Ctrl-D, leaves") == 2
    assert seen.count("Hello.") == 1
    assert talker.code == 0


def test_an_interrupted_question_is_left_open(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    seen = talker.says("Write", CTRL_C, "/runs", engine=engine, options=options)
    # The line of a run is that of `remit runs`.
    (listed,) = talker.desk.say("runs").out.splitlines()
    assert listed[: listed.index("CONFIRM_REQUIRED")] in seen
    assert talker.desk.notes == []


def test_nothing_hostile_reaches_the_screen(talker: Talker) -> None:
    desk = talker.desk
    wild = {"tool_calls": [{"name": f"wipe{HOSTILE}", "arguments": {HOSTILE: HOSTILE}}]}
    engine = desk.script({"text": f"{HOSTILE} said the model", "chunks": 9}, wild, *["ok"] * 3)
    seen = talker.says("Hi", "Again", "/session " + HOSTILE, "/runs", "/explain", engine=engine)
    assert "said the model" in seen
    assert "wipe\\x1b" in seen
    assert seen.replace("\n", "").isprintable()


def test_a_model_that_fails_is_a_line_and_the_chat_goes_on_with_retry(talker: Talker) -> None:
    engine = talker.desk.script({"error": "INFERENCE_CONTEXT_EXCEEDED"}, "Better.")
    seen = talker.says("Hi", "/retry", engine=engine)
    assert "(INFERENCE_CONTEXT_EXCEEDED)" in seen
    assert seen.count("ended as") == 2
    assert talker.code == 0


def test_retry_needs_something_that_was_said(talker: Talker) -> None:
    assert "error NOTHING_SAID" in talker.says("/retry")


def test_help_lists_everything_there_is(talker: Talker) -> None:
    seen = talker.says("/help")
    assert all(slash.word in seen and slash.line in seen for slash in SLASHES)


def test_tools_are_listed_with_what_they_do(talker: Talker) -> None:
    seen = talker.says("/tools", options=("--tools", talker.desk.tools()))
    assert "look                 read     Look somewhere." in seen
    assert "write                write    Write a note." in seen
    assert "no tools; start the chat with --tools" in talker.says("/tools")


def test_the_budget_is_shown_with_every_dimension_as_bars(talker: Talker) -> None:
    seen = talker.says("Hi", "/budget")
    assert "memory_writes" in seen
    assert "output_tokens" in seen
    assert "of 60,000" in seen


def test_an_exchange_is_explained_traced_and_listed(talker: Talker) -> None:
    seen = talker.says("Hi", "/explain", "/trace", "/runs", "/session", "/explain last", "/trace nosuch")
    assert seen.count("The agent was allowed") == 2
    assert "think" in seen
    assert ": 1 exchange" in seen
    assert "error RUN_NOT_FOUND" in seen


def test_sessions_are_changed_and_begun(talker: Talker) -> None:
    engine = talker.desk.script("One.", "Two.")
    seen = talker.says(
        "First", "/new", "/session", "/session s1", "/session", engine=engine, options=("--session", "s1")
    )
    assert ": 0 exchanges" in seen
    assert seen.count("> First\nOne.\n") == 1
    assert "session s1: 1 exchange\n" in seen


def test_a_conversation_is_saved_to_a_new_file_and_never_over_an_old_one(talker: Talker) -> None:
    path = talker.file("talk.txt")
    seen = talker.says("Hi", f"/save {path}", f"/save {path}", "/save", options=("--user", "ann"))
    assert path.read_text() == "ann:\nHi\n\nassistant:\nHello.\n\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "error SAVE_FAILED" in seen
    assert "error SLASH_MISUSED" in seen


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/bugdet", "did you mean /budget?"),
        ("/zzzzzz", "/help lists what there is"),
        ("/help me", "error SLASH_MISUSED"),
    ],
)
def test_what_nobody_knows_is_refused_with_the_nearest_that_is_known(talker: Talker, line: str, said: str) -> None:
    seen = talker.says(line, "/runs")
    assert said in seen
    assert talker.code == 0


@pytest.mark.parametrize("word", ["/quit", "/exit"])
def test_a_user_who_quits_says_nothing_more(talker: Talker, word: str) -> None:
    assert "Hello." not in talker.says(word, "Hi")


def test_two_slashes_begin_a_message_with_one_and_a_backslash_continues_a_line(talker: Talker) -> None:
    talker.says("//etc is what?", "one \\", "two", "", options=("--session", "s1"))
    prompts = [
        talker.desk.say("trace", row["run_id"], "--json").rows[0]["arrival"]["manifest"]["request"]["messages"][-1]
        for row in talker.desk.say("runs", "--json").rows
    ]
    assert [prompt["content"] for prompt in prompts] == ["one \ntwo", "/etc is what?"]


def test_a_line_that_ends_before_it_is_continued_is_said_as_it_is(talker: Talker) -> None:
    assert "Hello." in talker.says("one \\")


def test_a_pipe_is_answered_line_by_line_without_prompt_or_colour(talker: Talker) -> None:
    code, out, err = talker.pipes(b"First\n\n  \nSecond", engine=talker.desk.script("One.", "Two."))
    assert (code, out, err) == (0, "One.\nTwo.\n", "")


def test_a_pipe_says_messages_and_no_commands(talker: Talker) -> None:
    assert talker.pipes(b"/help\n")[1] == "Hello.\n"


def test_a_pipe_in_json_is_one_response_a_line(talker: Talker) -> None:
    code, out, _ = talker.pipes(b"First\nSecond\n", "--json", engine=talker.desk.script("One.", "Two."))
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["content"] for row in rows] == ["One.", "Two."]
    assert all(set(row) == set(SystemResponse.__struct_fields__) for row in rows)
    assert code == 0


def test_a_pipe_stops_where_a_person_has_to_be_asked(talker: Talker) -> None:
    engine, options = writing(talker.desk)
    code, out, err = talker.pipes(b"Write\ny\n", *options, engine=engine)
    assert (code, out) == (3, "")
    assert "is left unread until that is answered" in err
    assert talker.desk.notes == []


def test_of_several_exchanges_in_a_pipe_the_worst_decides(talker: Talker) -> None:
    engine = talker.desk.script({"when": "bad", "error": "INFERENCE_CONTEXT_EXCEEDED"}, "Fine.")
    code, out, _ = talker.pipes(b"bad\ngood\n", engine=engine)
    assert (code, out) == (1, "Fine.\n")


@pytest.mark.parametrize("data", [b"\xff\n", b"x" * (REQUEST_BYTES_MAX + 1)], ids=["no text", "too long"])
def test_a_line_that_cannot_be_read_is_refused_with_a_code(talker: Talker, data: bytes) -> None:
    code, _, err = talker.pipes(data)
    assert code == 2
    assert err.startswith("error PROMPT_UNREADABLE")


def test_an_interrupted_pipe_says_how_to_go_on(talker: Talker) -> None:
    tools = talker.desk.file("stops.py", INTERRUPTS)
    code, _, err = talker.pipes(b"Stop\n", "--tools", tools, engine=talker.desk.script(calls("interrupt"), "Never."))
    assert code == 130
    assert "go on with: remit resume " in err


def test_an_engine_that_cannot_be_opened_makes_no_store(talker: Talker) -> None:
    code, _, err = talker.pipes(b"Hi\n", engine="nosuch:thing")
    assert code == 2
    assert "error CONFIG_NO_ENGINE" in err
    assert not talker.desk.home.exists()


def test_a_session_that_nobody_could_print_is_wrong_usage_and_makes_no_store(talker: Talker) -> None:
    code, _, err = talker.pipes(b"Hi\n", "--session", "\x1b[2J", engine=talker.desk.script("Hello."))
    assert code == 2
    assert err.startswith("error REQUEST_ID_INVALID: session_id=")
    assert not talker.desk.home.exists()
