"""Every door that takes a grammar takes its text or a file, and says so where the file is not there."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    Demand,
    InferHandler,
    Kit,
    Mode,
    ModelRequest,
    OutputContract,
    PlanExecutor,
    RedundantLoop,
    RequestRejected,
    SpecializedLoop,
    Step,
    SystemRequest,
    constrain,
    system_in_memory,
    user_message,
)
from tests.doors.desk import MOOD, Panel

GRAMMAR = 'root ::= "{" [^}]* "}"\n'
GOOD = '{"mood": "good"}'


def asked(grammar: Any) -> Any:
    panel = Panel(GOOD)
    output = OutputContract(schema=MOOD, grammar=grammar)
    request = SystemRequest((user_message("How is it?"),), Mode.STRUCTURED, output=output)
    asyncio.run(system_in_memory().run(request, Kit({"panel": panel}))).raise_for_error()
    return panel.asked[0].grammar


def planned(grammar: Any) -> Any:
    panel = Panel(GOOD)
    step = Step("a", "ask", ModelRequest((user_message("How is it?"),), grammar=grammar))
    plans = PlanExecutor({"ask": InferHandler(panel)}, system=system_in_memory())
    plans.execute_sync([step]).raise_for_error()
    return panel.asked[0].grammar


def shaped(grammar: Any) -> Any:
    panel = Panel(GOOD)
    SpecializedLoop(panel, schema=MOOD, grammar=grammar, system=system_in_memory()).call_sync("x").raise_for_error()
    return panel.asked[0].grammar


def voted(grammar: Any) -> Any:
    panel = Panel(GOOD)
    RedundantLoop(panel, schema=MOOD, grammar=grammar, system=system_in_memory()).call_sync("x").raise_for_error()
    return panel.asked[0].grammar


def chatted(grammar: Any) -> Any:
    return AgentLoop(Panel(GOOD), grammar=grammar).config.grammar


def demanded(grammar: Any) -> Any:
    assert constrain(GOOD, Demand(grammar=grammar)).ok
    return Demand(grammar=grammar).grammar


DOORS: list[Callable[[Any], Any]] = [asked, planned, shaped, voted, chatted, demanded]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("way", ["text", "name", "path"])
def test_a_grammar_is_given_as_its_text_or_as_a_file(door: Callable[[Any], Any], way: str, tmp_path: Path) -> None:
    file = tmp_path / "mood.gbnf"
    file.write_text(GRAMMAR)
    assert door({"text": GRAMMAR, "name": str(file), "path": file}[way]) == GRAMMAR


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_grammar_file_that_is_not_there_is_said_by_its_code(door: Callable[[Any], Any], kind: Any) -> None:
    with pytest.raises(RequestRejected, match="grammar file") as refused:
        door(kind("missing.gbnf"))
    assert refused.value.code == "CONFIG_GRAMMAR_NOT_FOUND"
