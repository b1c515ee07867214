"""What is asked, or said of another person, orders nothing; a request stays one."""

from random import Random
from typing import Any

import pytest

from remit.provenance.declarations import declaration_of
from remit.provenance.gate import start
from remit.provenance.words.asked_effects import plan_with
from remit.provenance.words.imperatives import PLANNED_WORDS_MAX
from remit.provenance.words.tool_words import ToolWords
from remit.provenance.words.user_words import words_of_user

TOOLS = {
    "send_mail": declaration_of(
        {"name": "send_mail", "description": "Sends a mail.", "effect": "external", "asks": ["mail"]}
    ),
    "delete_file": declaration_of({"name": "delete_file", "description": "Deletes a file.", "effect": "write"}),
}


@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        ("Has anybody else but ann@corp.example mail access?", "send_mail"),
        ("Have I mail from Ann?", "send_mail"),
        ("I have mail from Ann.", "send_mail"),
        ("Is there mail from Ann?", "send_mail"),
        ("Do we mail Ann as a rule?", "send_mail"),
        ("Can Ann delete notes.txt?", "delete_file"),
        ("Should I delete notes.txt?", "delete_file"),
        ("By the way, could Bob delete notes.txt?", "delete_file"),
        ("Ann can delete notes.txt.", "delete_file"),
        ("ann@corp.example can delete notes.txt.", "delete_file"),
        ("'Ann Lee' should delete notes.txt.", "delete_file"),
        ("Read notes.txt and tell me what I should delete.", "delete_file"),
        ("Tell me whether to delete notes.txt.", "delete_file"),
        ("Explain how to delete notes.txt", "delete_file"),
        ("Make sure nobody can delete notes.txt", "delete_file"),
        ("Make sure no one can delete notes.txt", "delete_file"),
        ("None of you delete notes.txt.", "delete_file"),
        ("There is nothing to delete.", "delete_file"),
        ("I did not want to delete notes.txt", "delete_file"),
        ("notes.txt should be deleted", "delete_file"),
    ],
)
def test_a_question_a_wish_or_a_statement_asks_for_no_effect(prompt: str, tool: str) -> None:
    assert plan_with(words_of_user([prompt]), ToolWords(TOOLS)).of(tool).count == 0


@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        ("Can you delete notes.txt?", "delete_file"),
        ("Would you please delete notes.txt?", "delete_file"),
        ("You should delete notes.txt.", "delete_file"),
        ("Please check, and could you delete notes.txt?", "delete_file"),
        ("When is it due, and please mail Ann.", "send_mail"),
        ("Find out which file is the largest and delete it.", "delete_file"),
        ("Look up what is old, delete it.", "delete_file"),
        ("What is old? Delete it.", "delete_file"),
        ("I want you to delete notes.txt", "delete_file"),
    ],
)
def test_a_request_asks_also_beside_a_question(prompt: str, tool: str) -> None:
    assert plan_with(words_of_user([prompt]), ToolWords(TOOLS)).of(tool).count == 1


def test_a_sentence_without_end_is_read_at_once() -> None:
    prompt = "what " + "delete it " * PLANNED_WORDS_MAX
    assert plan_with(words_of_user([prompt]), ToolWords(TOOLS)).of("delete_file").count == 0


@pytest.mark.parametrize("ending", ["ed", "eed", "ing", "ings"])
def test_a_verb_of_a_tool_orders_whatever_it_ends_like(ending: str) -> None:
    letters = Random(ending)
    for _ in range(20):
        verb = "".join(letters.sample("bcdfgkmprtw", 3)) + ending
        tool: dict[str, Any] = {
            "name": f"{verb}_file",
            "effect": "external",
            "stakes": "none",
            "parameters": {"properties": {"file": {"type": "string"}}},
            "control_args": {"file": "id:file"},
        }
        for prompt in (f"{verb.title()} file F-1.", f"Please {verb} file F-1.", f"{verb.title()} the file F-1."):
            assert start(prompt, [tool]).verdict_on("c", tool["name"], {"file": "F-1"}).is_allowed, prompt


def test_an_inflection_that_a_tool_declares_beside_its_verb_orders_nothing() -> None:
    tool: dict[str, Any] = {
        "name": "mail_file",
        "effect": "external",
        "stakes": "none",
        "parameters": {"properties": {"file": {"type": "string"}}},
        "control_args": {"file": "id:file"},
        "asks": ["mailed", "mailing"],
    }
    for prompt in ("Mailed file F-1.", "Mailing file F-1."):
        assert not start(prompt, [tool]).verdict_on("c", "mail_file", {"file": "F-1"}).is_allowed
