"""A run on the real model is killed wherever it can be, and goes on without doing anything twice."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.adapters.cli.demo import story
from tests.e2e.command import Remit, remit_in, until

AT_WORK = "at_work"
# The desk of the demo, whose payment takes as long as no test says that it may end.
SLOW = f'''
    at_work = Path(__file__).with_name("{AT_WORK}")
    if not at_work.exists():
        at_work.touch()
        time.sleep(60)
'''
RETURNED = "    return Refund(order_id, order[0], idempotency_key)\n"


def set_up(folder: Path) -> None:
    story.set_up(folder)
    desk = folder / "desk.py"
    desk.write_text(desk.read_text().replace(RETURNED, SLOW + RETURNED))


def turns_of_last(remit: Remit) -> int:
    found = remit.here("runs", "--json").out.splitlines() if remit.home.exists() else []
    return int(json.loads(found[0])["turns"]) if found else 0


def refunds_in(folder: Path) -> int:
    with closing(sqlite3.connect(folder / story.LEDGER)) as ledger:
        return int(ledger.execute("SELECT count(*) FROM refunds").fetchone()[0])


@pytest.mark.model
def test_killed_in_a_model_call_while_waiting_and_in_a_payment_it_pays_once(tmp_path: Path) -> None:
    set_up(tmp_path)
    with remit_in(tmp_path) as remit:
        asking = remit.start(*story.BEGIN, "--engine", "local")
        until(lambda: turns_of_last(remit) >= 2, "the model is asked a second time")
        asking.kill()

        resumed = remit("resume", "last")
        assert resumed.exit_code == 3, resumed.err
        assert "mutating effects executed twice 0, safe calls repeated 1" in resumed.err

        remit.start("resume", "last").kill()
        waiting = remit("resume", "last")
        assert waiting.exit_code == 3, waiting.err
        assert "mutating effects executed twice 0, safe calls repeated 0" in waiting.err

        paying = remit.start("approve", "last", "--by", "ada")
        until((tmp_path / AT_WORK).exists, "the money is on its way")
        paying.kill()
        done = remit("resume", "last")
        assert done.exit_code == 0, done.err
        assert "mutating effects executed twice 0, safe calls repeated 0, made again under the same key 1" in done.err
        assert "4711" in done.out
        assert refunds_in(tmp_path) == 1
