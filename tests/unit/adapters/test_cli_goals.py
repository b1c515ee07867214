"""`--goal FILE`: what a run or a conversation must have done to succeed, from the command line."""

import io
from hashlib import sha256

import pytest

from tests.unit.adapters.desk import Desk

LOOKS = {"tool_calls": [{"name": "look", "arguments": {"place": "home"}}]}


@pytest.mark.req("4.8", "4.9")
def test_a_goal_of_a_file_decides_how_a_run_ends(desk: Desk) -> None:
    goal = desk.file("goal.yaml", "task_class: account_status\nrequired_actions: [look]\n")
    words = ("run", "How is the account of home?", "--tools", desk.tools(), "--goal", goal, "--json")
    missed = desk.say(*words, "--engine", desk.script(*({"text": "Fine."},) * 3))
    assert (missed.code, missed.values["terminal_code"]) == (1, "VALIDATION_FAIL")
    met = desk.say(*words, "--engine", desk.script(LOOKS, {"text": "Fine."}))
    assert (met.code, met.values["terminal_code"], met.values["warnings"]) == (0, "SUCCESS", [])


@pytest.mark.req("4.36")
def test_a_required_action_that_nobody_can_do_is_said_to_be_impossible(desk: Desk) -> None:
    goal = desk.file("goal.json", '{"required_actions": ["nobody"]}')
    said = desk.say("run", "Go.", "--goal", goal, "--engine", desk.script({"text": "Done."}))
    assert said.code == 1
    assert "ended as IMPOSSIBLE" in said.err
    assert "required action nobody cannot be done: no tool named 'nobody' is registered" in said.err


@pytest.mark.req("4.35")
def test_an_answer_of_high_stakes_waits_with_exit_code_three(desk: Desk) -> None:
    goal = desk.file("goal.yaml", "task_class: high_stakes\n")
    script = desk.script(LOOKS, {"text": "I would not."})
    said = desk.say("run", "Go?", "--tools", desk.tools(), "--goal", goal, "--engine", script)
    assert said.code == 3
    assert "waits for a person: REVIEW_REQUIRED" in said.err


@pytest.mark.req("4.34", "4.35")
@pytest.mark.parametrize("answer", ["I would\x1b[2J not.", "I would not. " * 1000])
def test_a_reviewer_is_shown_the_answer_and_says_yes_to_its_bytes(desk: Desk, answer: str) -> None:
    goal = desk.file("goal.yaml", "task_class: high_stakes\n")
    terms = ("run", "Go?", "--tools", desk.tools(), "--goal", goal, "--engine", desk.script(LOOKS, {"text": answer}))
    run = desk.say(*terms, "--json").values["run_id"]
    (asked,) = desk.say("approvals", "--json").rows
    said = str(asked["answer"])
    assert said.startswith("I would")
    assert asked["packet"] == sha256(said.encode()).hexdigest()
    (item,) = desk.say("queues", "review", "--json").rows
    assert item["packet"] == asked["packet"]
    for shown in (desk.say("approvals", "--full").out, desk.say("approvals", run, "--full").out):
        assert "I would" in shown
        assert "\x1b" not in shown
        assert str(asked["packet"])[:16] in shown
    assert "let stand: " in desk.say("queues", "review").out
    other = desk.say("approve", run, "--packet", "0" * 64, "--by", "eve", "--json")
    assert (other.code == 0, other.error) == (False, "PACKET_CHANGED")
    assert desk.say("approve", run, "--packet", asked["packet"], "--by", "eve").code == 0


@pytest.mark.req("4.8")
def test_what_a_task_was_taken_for_is_shown_and_explained(desk: Desk) -> None:
    said = desk.say("run", "What is my balance?", "--engine", desk.script({"text": "It is 7."}))
    assert said.code == 0
    assert "taken for a task of class account_status" in said.err
    shown = desk.say("show", "last").out
    assert "a task of class account_status (inferred from 'What is my balance'; it only warns)" in shown
    assert "warning" in shown
    assert "was warned of (taken for a task of class account_status" in desk.say("explain", "last").out
    assert "warned of" in desk.say("trace", "last").out


def test_a_goal_that_cannot_be_used_is_wrong_usage_before_a_store_is_made(desk: Desk) -> None:
    for text, code in (("task_class: guess", "GOAL_INVALID"), ("criteria: [{name: a, guard: '1 +'}]", "GOAL_INVALID")):
        goal = desk.file("goal.yaml", text)
        for command in (("run", "hello"), ("chat",)):
            said = desk.say(*command, "--goal", goal, "--engine", desk.script({"text": "x"}), "--json")
            assert (said.code, said.error) == (2, code)
    absent = desk.say("run", "hello", "--goal", "nothing.yaml", "--engine", desk.script({"text": "x"}), "--json")
    assert (absent.code, absent.error) == (2, "FILE_UNREADABLE")


def test_a_conversation_keeps_its_goal(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    goal = desk.file("goal.yaml", "required_actions: [nobody]")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    said = desk.say("chat", "--goal", goal, "--engine", desk.script({"text": "x"}))
    assert said.code == 1
    assert "IMPOSSIBLE" in said.err
