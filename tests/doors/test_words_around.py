"""Words that a model says around its JSON: what they may say of the value is never lost in silence."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from remit import SpecializedLoop
from tests.doors.desk import Panel


class Payment(BaseModel):
    amount: int


MEANT = '{"amount": 2}'


@pytest.mark.req("0.11", "1.23")
@pytest.mark.parametrize(
    "said",
    [
        'Do not use {"amount": 1}.',
        'Do not use this:\n```json\n{"amount": 1}\n```',
        '{"amount": 1} is wrong',
        'I cannot tell. For example {"amount": 1} would be valid.',
        '{"amount": 1}\n\nWait, that is wrong. The amount is 2.',
        '{"amount": 1}\nCorrection: amount = 2',
        'Previously: {"amount": 1}',
        '{"amount": 1 // should be 2\n}',
        '```json Do not use this.\n{"amount": 1}\n```',
        'Here is the JSON:\n```example\n{"amount": 1}\n```',
        '```json\n{"amount": 1}\n```\n```json\n["the amount is 2"]\n```',
    ],
)
def test_a_value_of_which_words_say_something_is_asked_for_again(said: str, tmp_path: Path) -> None:
    panel = Panel(said, MEANT)
    response = SpecializedLoop(panel, schema=Payment, home=tmp_path).call_sync("How much?")
    assert (response.value.amount, len(panel.asked)) == (2, 2)
    assert "JSON" in str(panel.asked[1].messages[-1].content)


@pytest.mark.parametrize(
    ("said", "kind", "meant"),
    [
        ('Do not use ["bob", "eve"].', list[str], ["ann"]),
        ('The excluded are ["bob"]', list[str], ["ann"]),
        ('["bob"] is wrong', list[str], ["ann"]),
        ("Do not use [10, 20].", list[int], [30]),
        ('["bob"] ...', list[str], ["ann", "bob"]),
        ('["bob"]\n```json\n{"correction": ["ann"]}\n```', list[str], ["ann"]),
        ('{"a": 1}\n\nSorry, here is the corrected JSON:\n{"a": 2}', list[dict[str, int]], [{"a": 2}]),
        ('[{"a": 1}]\n{"a": 2}', list[dict[str, int]], [{"a": 2}]),
        ('{"a": 2}\n[{"a": 1}]', list[dict[str, int]], [{"a": 2}]),
        ('[{"a": 1}]\n{"a"', list[dict[str, int]], [{"a": 2}]),
        ('```json\n[{"a": 1}]\n```\n{', list[dict[str, int]], [{"a": 2}]),
        ('[{"a": 1}]\n"a', list[dict[str, int]], [{"a": 2}]),
        ('[{"a": 1}, ', list[dict[str, int]], [{"a": 2}]),
        ('["ann"]\n{', list[str], ["bob"]),
        ("low...", Literal["low", "low_risk"], "low_risk"),
        ('["done", "open..."]', list[Literal["done", "open"]], ["done"]),
        ('"yes"\n["no"]', list[str], ["yes"]),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', list[dict[str, int]], [{"a": 2}]),
    ],
)
def test_a_list_of_which_words_say_something_is_asked_for_again(
    said: str, kind: Any, meant: Any, tmp_path: Path
) -> None:
    panel = Panel(said, json.dumps(meant))
    response = SpecializedLoop(panel, schema=kind, home=tmp_path).call_sync("Which?")
    assert (response.value, len(panel.asked)) == (meant, 2)


@pytest.mark.parametrize(
    "said",
    [
        f"Here is the JSON:\n{MEANT}\nLet me know if you need anything else!",
        f"Sure! Here's the payment you asked for:\n\n```json\n{MEANT}\n```\n\nI hope this helps.",
        f"I apologize for the confusion. Here is the corrected JSON:\n{MEANT}",
        f"The answer is {MEANT}, as requested.",
        f"Perhaps 1? No.\n</think>\n\n{MEANT}",
        f"</think>\n{MEANT}",
        f"Here is the JSON instance that conforms to the given schema:\n```json\n{MEANT}\n```",
        f"So the JSON is:\n{MEANT}\n\nLet me know if you'd like me to make any changes.",
        f"Hier ist das JSON:\n{MEANT}",
        f"Voici le JSON :\n{MEANT}",
        f"Aquí está el JSON:\n{MEANT}",
    ],
)
def test_words_that_say_nothing_of_the_value_cost_no_call(said: str, tmp_path: Path) -> None:
    panel = Panel(said)
    response = SpecializedLoop(panel, schema=Payment, home=tmp_path).call_sync("How much?")
    assert (response.value.amount, len(panel.asked)) == (2, 1)


def test_json_in_lines_is_a_list(tmp_path: Path) -> None:
    panel = Panel('Here is the list:\n{"amount": 1}\n{"amount": 2}')
    response = SpecializedLoop(panel, schema=list[Payment], home=tmp_path).call_sync("Which?")
    assert ([each.amount for each in response.value], len(panel.asked)) == ([1, 2], 1)
