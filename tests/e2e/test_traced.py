"""A traced run is killed and goes on in other processes: the gate, made again there, says what it would have said."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import decode_turn
from tests.e2e.command import SCRIPT, TOOLS, remit_in, until
from tests.e2e.crash_law import journals

WORDS = "Mail Bob that lunch is at noon. Then pay 100 to DE89370400440532013000."
OFFICE = '''
import time
from pathlib import Path

from remit import tool

HERE = Path(__file__).parent


def _note(line: str) -> None:
    with (HERE / "done").open("a") as done:
        done.write(line + "\\n")


@tool(effect="read", directory=True, result={"[].email": "who:email", "[].name": "label"})
def find_user(name: str) -> list[dict[str, str]]:
    """Look up a colleague by name."""
    return [{"email": "bob@corp.example", "name": name}]


@tool(effect="read", reads="public")
def read_news() -> str:
    """Read the news."""
    if not (HERE / "reading").exists():
        (HERE / "reading").touch()
        time.sleep(60)
    return "Nothing happened. " * 2000


@tool(effect="external", control_args={"recipients": "email"}, payload_args=["body"], asks=["mail"], repeat="target")
def send_mail(recipients: list[str], body: str) -> str:
    """Send a mail."""
    _note(f"mail {recipients[0]}")
    return "sent"


@tool(effect="external", control_args={"iban": "id:account", "amount": "number"}, asks=["pay"])
def pay(iban: str, amount: float) -> str:
    """Pay money to an account."""
    _note(f"pay {iban}")
    return "paid"
'''


def calls(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}


PAID = calls("pay", iban="DE89370400440532013000", amount=100)
REPLIES = [
    calls("find_user", name="Bob"),
    calls("read_news"),
    calls("send_mail", recipients=["$obs0.records[0].email"], body="Lunch is at noon"),
    calls("send_mail", recipients=["mallory@evil.example"], body="Lunch is at noon"),
    PAID,
    PAID,
    {"text": "Bob knows and the bill is paid."},
]


async def journal_in(home: Path) -> list[bytes]:
    store = EmbeddedStore.open(home)
    try:
        (journal,) = (await journals(store)).values()
    finally:
        await store.close()
    return journal


def found(home: Path) -> list[str]:
    turns = [decode_turn(data) for data in asyncio.run(journal_in(home))]
    answers = [turn.arrival for turn in turns if isinstance(turn.arrival, ModelAnswered)]
    return [call.objection or call.provenance.value for answer in answers for call in answer.calls]


def done(folder: Path) -> list[str]:
    return (folder / "done").read_text().splitlines() if (folder / "done").exists() else []


@pytest.mark.slow
def test_a_traced_run_that_is_killed_goes_on_elsewhere_with_the_same_verdicts(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(OFFICE, REPLIES)
        running = remit.start("run", WORDS, "--tools", TOOLS, "--engine", f"scripted:{SCRIPT}", "--boundary", "guarded")
        until((tmp_path / "reading").exists, "the news are being read")
        running.kill()

        # The lookup was made in a process that is dead; the mail rests on it all the same.
        assert remit("resume", "last").exit_code == 3
        assert done(tmp_path) == ["mail bob@corp.example"]

        # And in a third process the wire that was tripped in the second is re-armed by the answer.
        assert remit("reject", "last", "--by", "ada").exit_code == 3
        assert remit("signal", "last", "resume", "--by", "ada").exit_code == 3
        assert done(tmp_path) == ["mail bob@corp.example", "pay DE89370400440532013000"]

        assert remit("reject", "last", "--by", "ada").exit_code == 3
        assert remit("signal", "last", "resume", "--by", "ada").exit_code == 0
        assert found(remit.home) == ["untraced", "untraced", "bound", "PROVENANCE_UNBOUND", "bound", "REPEAT"]
        replayed = remit("replay", "last", "--json")
        assert (replayed.exit_code, replayed.values["verdict"]) == (0, "same")


@pytest.mark.slow
def test_the_person_who_is_asked_sees_where_each_value_comes_from(tmp_path: Path) -> None:
    (tmp_path / "reading").touch()
    with remit_in(tmp_path) as remit:
        remit.write(OFFICE, REPLIES)
        assert (
            remit("run", WORDS, "--tools", TOOLS, "--engine", f"scripted:{SCRIPT}", "--boundary", "guarded").exit_code
            == 3
        )
        shown = json.dumps([json.loads(line) for line in remit("approvals", "--json").out.splitlines()])
        assert "mallory@evil.example" in shown
        assert "PROVENANCE_UNBOUND" in shown
