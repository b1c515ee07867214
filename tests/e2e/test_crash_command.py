"""The installed command is killed in the middle of a tool; `remit resume` takes the run up in another process.

The tools kill their own process once. A file beside them says that they have, so the second call goes through.
"""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Answer, Remit, remit_in

pytestmark = pytest.mark.slow

TOOLS = '''
"""Tools that note what they do, and kill their process the first time one is used."""

import os
import signal
from pathlib import Path
from typing import Literal

from remit import tool

HERE = Path(__file__).parent


def note(what):
    with (HERE / "ledger").open("a") as ledger:
        ledger.write(f"{what}\\n")


def die_once():
    if not (HERE / "died").exists():
        (HERE / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def account(key):
    return f"pay {key}" in (HERE / "ledger").read_text().splitlines()


@tool(effect="read")
def look() -> str:
    """Look at the order."""
    note("look")
    die_once()
    return "seen"


@tool(effect="write", idempotent=True)
def put(idempotency_key: str) -> Literal["on hold"]:
    """Put the order on hold, once under each key."""
    note(f"put {idempotency_key}")
    die_once()
    return "on hold"


@tool(effect="external", reconcile=account)
def pay(idempotency_key: str) -> str:
    """Pay the money back."""
    note(f"pay {idempotency_key}")
    die_once()
    return "paid"


@tool(effect="external")
def mail(idempotency_key: str) -> str:
    """Write to the customer."""
    note(f"mail {idempotency_key}")
    die_once()
    return "sent"
'''
EXIT_OK, EXIT_WAITING = 0, 3


def script(tool: str) -> list[dict[str, Any]]:
    return [{"tool_calls": [{"name": tool, "arguments": {}}]}, {"text": "It is done."}]


def noted(remit: Remit) -> list[str]:
    return (remit.folder / "ledger").read_text().splitlines()


def killed(answer: Answer) -> bool:
    return answer.exit_code == -signal.SIGKILL


def approved_and_killed(remit: Remit, tool: str) -> None:
    """Begin a run, approve its call, and see the process die in it."""
    remit.write(TOOLS, script(tool))
    assert remit.start_run().answer().exit_code == EXIT_WAITING
    assert killed(remit("approve", "last", "--by", "erin"))


def test_a_run_that_is_killed_while_it_reads_is_resumed_and_reads_again(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, script("look"))
        assert killed(remit.start_run().answer())
        resumed = remit("resume", "last", "--json")
        assert (resumed.exit_code, resumed.values["content"]) == (EXIT_OK, "It is done.")
        assert noted(remit) == ["look", "look"]


@pytest.mark.parametrize(("tool", "times"), [("put", 2), ("pay", 1)])
def test_a_run_that_is_killed_after_an_effect_it_can_account_for_ends_the_same(
    tool: str, times: int, tmp_path: Path
) -> None:
    with remit_in(tmp_path) as remit:
        approved_and_killed(remit, tool)
        resumed = remit("resume", "last", "--json")
        assert (resumed.exit_code, resumed.values["terminal_code"]) == (EXIT_OK, "SUCCESS")
        # The idempotent tool was called again under the same key; the other was only asked.
        assert len(noted(remit)) == times
        assert len(set(noted(remit))) == 1


def test_a_run_that_is_killed_after_an_effect_nobody_can_account_for_waits_and_names_the_call(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        approved_and_killed(remit, "mail")
        resumed = remit("resume", "last", "--json")
        assert resumed.exit_code == EXIT_WAITING
        assert resumed.values["waiting_for"]["ending"] == "REVIEW_REQUIRED"
        (asked,) = [json.loads(line) for line in remit("approvals", "--json").out.splitlines()]
        assert (asked["tool"], asked["purpose"]) == ("mail", "outcome")
        assert noted(remit)[0].removeprefix("mail ") in " ".join(asked["reasons"])
        told = f"if it happened: remit approve {asked['id']}  if it did not: remit reject {asked['id']}"
        assert told in remit("approvals").out
        # Resuming again changes nothing; a person who says that it happened lets the run end.
        assert remit("resume", "last", "--json").exit_code == EXIT_WAITING
        answered = remit("approve", asked["id"], "--by", "erin", "--json")
        assert (answered.exit_code, answered.values["terminal_code"]) == (EXIT_OK, "SUCCESS")
        assert len(noted(remit)) == 1
