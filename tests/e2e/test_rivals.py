"""Rivals: several processes at one run. One wins, the others learn why not, and whatever was to happen happens once."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING, Ending, RemitError
from remit.core.journal.codec import encode_signal
from remit.core.run.signals import Signal, UserSignal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
from tests.e2e.command import Answer, Remit, remit_in, until
from tests.e2e.house import asking, calls, house, says, tell

# Both tools write down what they do. They go on when there is a file named `gate`, or at once where it is open.
TOOLS = """
import os, time
from pathlib import Path
from remit import tool

HERE = Path(__file__).parent

def note(what: str) -> None:
    with (HERE / "ledger").open("a") as ledger:
        ledger.write(what + "\\n")

def pass_gate() -> None:
    deadline_s = time.monotonic() + 60
    while not (HERE / "gate").exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)

@tool(effect="read")
def look() -> str:
    \"\"\"Look, when the gate is open.\"\"\"
    note("looking")
    pass_gate()
    return "seen"

@tool(effect="write", idempotent=True, verify=lambda arguments, result: result.startswith("paid"))
def pay(idempotency_key: str) -> str:
    \"\"\"Pay once per key, when the gate is open.\"\"\"
    note(f"asked {idempotency_key}")
    pass_gate()
    try:
        os.close(os.open(HERE / f"paid {idempotency_key.replace('/', '-')}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "paid before"
    note(f"paid {idempotency_key}")
    return "paid"
"""

# What a person is told whose answer came second: the question is settled, or not there any more, or the run has ended.
TOO_LATE = {"QUESTION_SETTLED", "NOT_WAITING", "WRONG_PACKET"}


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    with remit_in(tmp_path) as remit:
        yield remit


def ledger(remit: Remit) -> Counter[str]:
    """How often each thing was noted."""
    path = remit.folder / "ledger"
    return Counter(line.split()[0] for line in path.read_text().splitlines()) if path.exists() else Counter()


def open_gate(remit: Remit) -> None:
    (remit.folder / "gate").touch()


def apart(one: Answer, other: Answer) -> tuple[Answer, Answer]:
    """The winner and the loser."""
    winner, loser = sorted((one, other), key=lambda answer: answer.error_code != "")
    assert winner.error_code == "", (one, other)
    assert loser.error_code != "", (one, other)
    return winner, loser


def test_of_two_processes_that_resume_a_run_one_wins_and_the_effect_happens_once(remit: Remit) -> None:
    remit.write(TOOLS, [calls("pay"), says("Paid.")])
    assert remit.run_here().exit_code == EXIT_WAITING
    approving = remit.start("approve", "last")
    until(lambda: ledger(remit)["asked"] == 1, "the tool is at work")
    approving.kill()
    one, other = (remit.start("resume", "last", "--json") for _ in range(2))
    # The winner stands at the gate while the loser learns that it is one.
    until(lambda: None not in (one.process.poll(), other.process.poll()) or ledger(remit)["asked"] == 2, "one resumes")
    until(lambda: {one.process.poll(), other.process.poll()} != {None}, "the other has lost")
    open_gate(remit)
    winner, loser = apart(one.answer(), other.answer())
    assert (winner.exit_code, winner.values["terminal_code"]) == (EXIT_OK, "SUCCESS")
    assert (loser.exit_code, loser.error_code) == (EXIT_FAILED, "RUN_HELD")
    assert "another process" in loser.values["error"]["message"]
    assert ledger(remit) == {"asked": 2, "paid": 1}


def test_of_two_processes_that_approve_a_packet_one_wins_and_the_effect_happens_once(remit: Remit) -> None:
    remit.write(TOOLS, [calls("pay"), says("Paid.")])
    packet = remit.run_here().values["waiting_for"]["packet_ids"][0]
    one, other = (remit.start("approve", packet, "--json", "--by", name) for name in ("ann", "bob"))
    # A process that was heard by the other waits for the rest of the run, and the other drives it there before it is sent away.
    until(lambda: ledger(remit)["asked"] == 1, "the tool is at work")
    open_gate(remit)
    winner, loser = apart(one.answer(), other.answer())
    assert winner.exit_code == EXIT_OK
    assert loser.exit_code == EXIT_FAILED
    assert loser.error_code in TOO_LATE
    assert remit.here("show", "last", "--json").values["response"]["terminal_code"] == "SUCCESS"
    assert ledger(remit) == {"asked": 1, "paid": 1}


def test_a_process_that_finds_an_earlier_answer_to_the_same_question_sees_it_through(tmp_path: Path) -> None:
    effects = Counter[str]()

    @tool(effect="write", verify=lambda arguments, result: result == "paid")
    async def pay(idempotency_key: str) -> str:
        """Pay."""
        effects[idempotency_key] += 1
        return "paid"

    kit = engine_kit(ScriptedEngine([calls("pay"), says("Done.")]), Registry([pay]))

    async def play() -> None:
        async with house(tmp_path / "store", kit) as system:
            asked = await system.run(asking(), kit)
            assert asked.waiting_for is not None
            payload = {"packet_id": asked.waiting_for.packet_ids[0]}
            earlier = UserSignal(uuid4().hex, Signal.APPROVE, asked.run_id, "ann", payload=payload)
            # As a process leaves it that finds the run held, just before the holder lets it go.
            await system.store.inbox.put(asked.run_id, encode_signal(earlier))
            with pytest.raises(RemitError) as caught:
                await tell(system, Signal.REJECT, asked.run_id, payload)
            assert str(caught.value.code) in TOO_LATE
            assert (await system.result(asked.run_id)).terminal_code is Ending.SUCCESS
            assert sum(effects.values()) == 1

    asyncio.run(play())


def test_of_a_yes_and_a_no_at_the_same_moment_one_is_heard(tmp_path: Path) -> None:
    """Two systems on one store answer at once, again and again; each time one is heard."""
    effects = Counter[str]()

    @tool(effect="write", verify=lambda arguments, result: result == "paid")
    async def pay(idempotency_key: str) -> str:
        """Pay."""
        effects[idempotency_key] += 1
        return "paid"

    def kit() -> Kit:
        return engine_kit(ScriptedEngine([calls("pay"), says("Done.")]), Registry([pay]))

    async def play() -> None:
        async with house(tmp_path / "store", kit()) as one, house(tmp_path / "store", kit()) as other:
            heard = Counter[str]()
            for _ in range(12):
                asked = await one.run(asking(), kit())
                assert asked.waiting_for is not None
                payload = {"packet_id": asked.waiting_for.packet_ids[0]}
                outcomes = await asyncio.gather(
                    tell(one, Signal.APPROVE, asked.run_id, payload),
                    tell(other, Signal.REJECT, asked.run_id, payload),
                    return_exceptions=True,
                )
                await one.settle()
                await other.settle()
                (refused,) = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
                assert isinstance(refused, RemitError), refused
                assert str(refused.code) in TOO_LATE
                ended = await one.result(asked.run_id)
                expected = Ending.PERMISSION_DENIED if refused is outcomes[0] else Ending.SUCCESS
                assert ended.terminal_code is expected
                heard[str(ended.terminal_code)] += 1
            assert sum(effects.values()) == heard["SUCCESS"]
            assert set(effects.values()) <= {1}

    asyncio.run(play())


def test_a_run_can_be_read_paused_and_told_something_by_others_while_it_is_driven(remit: Remit) -> None:
    remit.write(TOOLS, [{"when": "Look twice", **says("Twice.")}, calls("look"), says("Once.")])
    running = remit.start_run()
    until(lambda: ledger(remit)["looking"] == 1, "the tool is at work")
    run_id = remit.open_run()
    listed = remit("runs", "--json")
    assert [json.loads(line)["run_id"] for line in listed.out.splitlines()] == [run_id]
    assert remit.here("show", run_id).exit_code == EXIT_OK
    assert "is under way" in remit.here("explain", run_id).out
    assert "tool look" in remit.here("trace", run_id).out
    held = remit.here("resume", run_id)
    assert (held.exit_code, held.error_code) == (EXIT_FAILED, "RUN_HELD")
    assert remit("signal", run_id, "pause").exit_code == EXIT_OK
    again = remit.here("signal", run_id, "pause")
    assert (again.exit_code, again.error_code) == (EXIT_FAILED, "ALREADY_PAUSED")
    assert remit.here("signal", run_id, "feedback", "Look twice").exit_code == EXIT_OK
    open_gate(remit)
    paused = running.answer()
    assert (paused.exit_code, paused.values["terminal_code"]) == (EXIT_WAITING, None), paused
    assert "is paused" in remit.here("explain", run_id).out
    released = remit.here("signal", run_id, "resume", "--json")
    assert (released.exit_code, released.values["content"]) == (EXIT_OK, "Twice."), released


def test_a_run_is_cancelled_by_another_process_while_its_model_thinks(remit: Remit) -> None:
    remit.write(replies=[{"delay_ms": 60_000, **says("Too late.")}])
    running = remit.start_run()
    run_id = remit.open_run()
    assert remit.here("signal", run_id, "cancel", "changed my mind").exit_code == EXIT_OK
    ended = running.answer()
    assert (ended.exit_code, ended.values["terminal_code"]) == (EXIT_FAILED, "USER_CANCEL")
    late = remit.here("signal", run_id, "cancel")
    assert (late.exit_code, late.error_code) == (EXIT_FAILED, "RUN_ENDED")


def test_an_approval_is_heard_by_the_process_that_drives_the_run(remit: Remit) -> None:
    """A read beside the question keeps the first process at work; the answer reaches it there."""
    both = {"tool_calls": [{"name": "look", "arguments": {}}, {"name": "pay", "arguments": {}}]}
    remit.write(TOOLS, [both, says("Both.")])
    running = remit.start_run()
    until(lambda: ledger(remit)["looking"] == 1, "the tool is at work")
    approving = remit.start("approve", remit.open_run(), "--json")
    until(lambda: ledger(remit)["asked"] == 1, "the approval is heard")
    open_gate(remit)
    ended, approved = running.answer(), approving.answer()
    assert (ended.exit_code, ended.values["content"]) == (EXIT_OK, "Both.")
    assert approved.exit_code == EXIT_OK, approved
    assert ledger(remit) == {"looking": 1, "asked": 1, "paid": 1}
