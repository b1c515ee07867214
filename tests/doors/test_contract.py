"""What the envelope promises, as a caller sees it: own words beside the accepted ones, and a run as one object."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.doors.desk import Desk, call

FENCED = 'Sure!\n```json\n{"mood": "Good",}\n```'


@pytest.mark.req("0.6")
def test_a_repaired_answer_comes_with_the_words_of_the_model(tmp_path: Path) -> None:
    response = Desk(tmp_path).shaped({"text": FENCED})
    assert json.loads(response.content) == response.structured_output == {"mood": "good"}
    assert response.raw_content == FENCED


@pytest.mark.req("0.6")
def test_an_answer_that_stands_as_it_was_said_has_no_other_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    shaped, chat = desk.shaped({"text": '{"mood":"good"}'}), desk.chat({"text": "Three."})
    assert (shaped.content, shaped.raw_content) == ('{"mood":"good"}', "")
    assert (chat.content, chat.raw_content) == ("Three.", "")


def shown(folder: Path, *words: str) -> Any:
    """What a command of the installed program prints as JSON."""
    environment = {**os.environ, "REMIT_HOME": str(folder / "store")}
    command = [sys.executable, "-m", "remit", *words, "--json"]
    done = warm.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


@pytest.mark.req("0.19", "0.20")
def test_a_run_is_shown_as_one_object_with_its_state(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from remit import tool\n\n\n@tool(effect='read', network=False)\ndef count() -> int:\n    '''Count.'''\n    return 3\n"
    )
    engine = Desk(tmp_path).engine(call("count"), {"text": "Three."})
    ran = shown(tmp_path, "run", "How many?", "--engine", engine, "--tools", "tools.py", "--session", "shop")
    execution = shown(tmp_path, "show", ran["run_id"])["execution"]
    assert (execution["request_id"], execution["session_id"]) == (ran["request_id"], "shop")
    assert (execution["mode"], execution["selected_tools"]) == ("chat", ["count"])
    state = execution["state"]
    assert (state["current"], state["attempt"], state["last_error"]) == ("COMPLETE", 1, None)
    assert state["total_steps"] > 0
    assert state["last_step"] == "done"
    assert execution["started_at_ms"] <= state["entered_at_ms"]


@pytest.mark.req("0.19")
def test_a_run_that_failed_shows_its_last_error(tmp_path: Path) -> None:
    engine = Desk(tmp_path).engine({"error": "INFERENCE_CONTEXT_EXCEEDED"})
    ran = shown(tmp_path, "run", "How many?", "--engine", engine)
    state = shown(tmp_path, "show", ran["run_id"])["execution"]["state"]
    assert (state["current"], state["last_error"]["code"]) == ("ERROR", "INFERENCE_CONTEXT_EXCEEDED")
