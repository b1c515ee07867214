"""Calling tools: what was judged is what is called, and an outcome is reported whether or not anybody still waits."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened
from remit.core.journal.canonical import canonical_json
from remit.core.journal.codec import read_json
from remit.core.journal.commands import CallTool, ReconcileTool
from remit.core.limits.tools import ToolResult
from remit.core.record import Text
from remit.core.secrets.seal import SECRET_EXPOSED
from remit.orchestrate.executors.errands import InquiryErrand, Sender, ToolErrand
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.executors.tool import Abandoned, ToolExecutor
from remit.orchestrate.setup.kit import Kit
from remit.tool.call import performing
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import Stop
from remit.tool.call.threads import THREADS_MAX, Threads
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from remit.tool.secrets.vault import NO_SECRETS, Vault
from tests.unit.orchestrate.stage import play
from tests.unit.tool.watching import sample, until

KEY = "run:1.1"
SENDER = Sender("run", "run")


async def inline(text: Text) -> str:
    assert isinstance(text, str)
    return text


class Desk:
    """An executor with its tools, and what it heard too late."""

    def __init__(self, *tools: Tool, vault: Vault = NO_SECRETS) -> None:
        self.late: list[tuple[str, Report]] = []
        registry = Registry(tools)
        self.kit = Kit({}, registry)
        self.executor = ToolExecutor(ProcessResources(inline, vault, on_late=lambda *heard: self.late.append(heard)))
        self.called: CallTool | None = None

    async def call(
        self, name: str, arguments: str = "{}", *, timeout_ms: int = 5_000, is_mutating: bool = False
    ) -> Report:
        """Have a tool called."""
        command = CallTool(
            "1.1", "call", name, "version", arguments, b"hash", KEY, timeout_ms, (), mutating=is_mutating
        )
        self.called = command
        return await self.executor.call(ToolErrand(SENDER, command), self.kit)

    async def reconcile(self, name: str, *, timeout_ms: int = 5_000) -> Report:
        """Have a tool asked about the call that is open."""
        arguments = None if self.called is None else self.called.arguments
        errand = InquiryErrand(SENDER, ReconcileTool("2.1", "1.1", name, KEY, timeout_ms), arguments)
        return await self.executor.reconcile(errand, self.kit)


def made(function: Callable[..., Any], **terms: Any) -> Tool:
    return tool(effect="write", **terms)(function)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def fail() -> str:
    """Fail."""
    raise OSError("no disk")


def keyed(text: str, idempotency_key: str) -> str:
    """Tell the key."""
    return f"{text} under {idempotency_key}"


async def hang() -> str:
    """Never return."""
    await asyncio.Event().wait()
    return ""


def finish() -> Stop:
    """End the loop."""
    return Stop("that is all")


def test_a_tool_is_called_with_the_arguments_of_the_command() -> None:
    report = play(Desk(made(add)).call("add", '{"a":2,"b":3}'))
    assert isinstance(report, ToolSaid)
    assert (report.command_id, report.result) == ("1.1", ToolResult("call", "add", "5"))
    assert report.duration_ms >= 0


@pytest.mark.req("4.44")
def test_the_key_minted_for_the_call_reaches_the_tool() -> None:
    report = play(Desk(made(keyed)).call("keyed", '{"text":"x"}'))
    assert isinstance(report, ToolSaid)
    assert report.result.content == f"x under {KEY}"


def test_a_tool_that_ends_the_loop_says_so() -> None:
    report = play(Desk(made(finish, may_stop_loop=True)).call("finish"))
    assert isinstance(report, ToolSaid)
    assert (report.result.content, report.result.stop_loop) == ("that is all", True)


def test_what_the_tools_own_check_found_wrong_comes_with_the_report() -> None:
    report = play(Desk(made(add, verify=lambda arguments, result: "not in the ledger")).call("add", '{"a":1,"b":1}'))
    assert isinstance(report, ToolSaid)
    assert report.refuted == "not in the ledger"


def test_a_tool_that_nobody_has_is_unavailable() -> None:
    report = play(Desk().call("add"))
    assert report == ToolBroke("1.1", ErrorCode.TOOL_UNAVAILABLE, "there is no tool here named 'add'")


@pytest.mark.req("0.24")
def test_a_tool_that_says_it_is_not_available_is_not_called() -> None:
    report = play(Desk(made(add, available=lambda: False)).call("add", '{"a":1,"b":1}'))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_UNAVAILABLE


def test_a_tool_that_raises_is_reported_with_what_it_raised() -> None:
    report = play(Desk(made(fail)).call("fail"))
    assert isinstance(report, ToolBroke)
    assert (report.code, report.error) == (ErrorCode.TOOL_EXECUTION_FAILED, "OSError: no disk")


def test_a_coroutine_that_takes_too_long_is_cut_off() -> None:
    report = play(Desk(made(hang)).call("hang", timeout_ms=20))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_TIMEOUT
    assert report.error == "tool 'hang' took longer than timeout_ms=20"


def test_a_result_that_comes_at_the_last_moment_counts() -> None:
    def heeds(token: CancelToken) -> str:
        """Stop when told."""
        return "done" if token.wait(30_000) else "never told"

    desk = Desk(made(heeds))
    report = play(desk.call("heeds", timeout_ms=20))
    assert isinstance(report, ToolSaid)
    assert (report.result.content, desk.late) == ("done", [])


def test_a_thread_that_gives_up_when_its_time_is_up_has_timed_out() -> None:
    def gives_up(token: CancelToken) -> None:
        """Stop when told."""
        token.wait(30_000)
        token.raise_if_cancelled()

    report = play(Desk(made(gives_up)).call("gives_up", timeout_ms=20))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_TIMEOUT
    assert "timeout_ms=20 and ended with ToolCancelled" in report.error


def test_a_process_is_killed_when_its_time_is_up(tmp_path: Path) -> None:
    report = play(
        Desk(sample("hangs")).call("hangs", canonical_json({"folder": str(tmp_path)}).decode(), timeout_ms=300)
    )
    assert isinstance(report, ToolBroke)
    assert (report.code, report.error) == (ErrorCode.TOOL_TIMEOUT, "tool 'hangs' took longer than timeout_ms=300")


def test_a_call_that_never_got_a_thread_was_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, release, reached = Threads(), threading.Event(), []
    monkeypatch.setattr(performing, "threads", lambda: pool)
    for _ in range(THREADS_MAX):
        pool.submit(lambda: release.wait(30))

    def reach() -> None:
        """Be reached."""
        reached.append(1)

    report = play(Desk(made(reach)).call("reach", timeout_ms=20))
    release.set()
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_UNAVAILABLE
    assert "'reach' was not called within timeout_ms=20" in report.error
    assert pool.submit(lambda: list(reached)).result(10) == []


def test_a_call_of_a_tool_that_does_not_say_whether_it_is_available_was_not_made() -> None:
    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    report = play(Desk(made(add, available=hangs)).call("add", '{"a":1,"b":1}', timeout_ms=20))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_UNAVAILABLE


def test_a_thread_whose_call_is_cancelled_is_kept_in_sight() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stubborn() -> str:
        """Do not listen."""
        begun.set()
        go_on.wait(20)
        return "done after all"

    async def story() -> None:
        desk = Desk(made(stubborn))
        calling = asyncio.create_task(desk.call("stubborn"))
        await until(begun.is_set)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert desk.executor.abandoned == (Abandoned("run", "1.1", "stubborn"),)
        go_on.set()
        await asyncio.gather(*desk.executor._left)

    play(story())


def test_a_thread_that_does_not_stop_is_waited_for_by_no_task_once_all_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go_on = threading.Event()

    def stubborn() -> str:
        """Do not listen."""
        go_on.wait(20)
        return "done after all"

    async def story() -> None:
        desk = Desk(made(stubborn))
        await desk.call("stubborn", timeout_ms=20)
        assert len(asyncio.all_tasks()) == 2
        await desk.executor.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        go_on.set()
        await asyncio.sleep(0.01)
        # It may still have been running when it was left.
        assert (desk.executor.abandoned, desk.late) == ((Abandoned("run", "1.1", "stubborn"),), [])

    with caplog.at_level(logging.WARNING, "remit.orchestrate.executors.tool"):
        play(story())
    assert "tool stubborn is left running" in caplog.messages[-1]


@pytest.mark.parametrize("breaks", [False, True])
def test_a_thread_that_does_not_stop_is_kept_is_kept_in_sight_and_its_outcome_told_when_it_comes(
    breaks: bool, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()

    def stubborn() -> str:
        """Do not listen."""
        go_on.wait(20)
        if breaks:
            raise OSError("no disk")
        return "done after all"

    async def story() -> Desk:
        desk = Desk(made(stubborn))
        report = await desk.call("stubborn", timeout_ms=20)
        assert isinstance(report, ToolBroke)
        assert report.code is ErrorCode.TOOL_TIMEOUT
        assert report.error.endswith("took longer than timeout_ms=20 and was abandoned; it may still be running")
        assert (desk.executor.abandoned, desk.late) == ((Abandoned("run", "1.1", "stubborn"),), [])
        go_on.set()
        await asyncio.gather(*desk.executor._left)
        await asyncio.sleep(0)
        assert desk.executor.abandoned == ()
        return desk

    with caplog.at_level(logging.WARNING, "remit.orchestrate.executors.tool"):
        ((run_id, late),) = play(story()).late
    (record,) = caplog.records
    assert "stubborn does not stop, was abandoned" in record.getMessage()
    assert (getattr(record, "run_id", ""), getattr(record, "span_id", "")) == ("run", "1.1")
    assert run_id == "run"
    if breaks:
        assert late == ToolBroke("1.1", ErrorCode.TOOL_EXECUTION_FAILED, "OSError: no disk", is_unknown=True)
    else:
        assert late == ToolSaid("1.1", ToolResult("call", "stubborn", "done after all"))


@pytest.mark.parametrize(
    ("account", "report"),
    [
        (lambda key: 5, ToolAccounted("2.1", Happened.YES, "5")),
        (lambda key: False, ToolAccounted("2.1", Happened.NO)),
        (lambda key: None, ToolAccounted("2.1", Happened.UNKNOWN, why="reconcile returned None")),
    ],
)
def test_a_tool_is_asked_what_became_of_the_call_with_the_key(account: Any, report: Report) -> None:
    async def story() -> Report:
        desk = Desk(made(add, reconcile=account))
        await desk.call("add", '{"a":2,"b":3}')
        return await desk.reconcile("add")

    assert play(story()) == report


def test_a_tool_may_be_asked_with_the_arguments_of_the_call_as_well() -> None:
    asked: list[tuple[str, Any]] = []

    def account(key: str, arguments: dict[str, Any]) -> bool:
        asked.append((key, arguments))
        return True

    async def story() -> Report:
        desk = Desk(made(add, reconcile=account))
        await desk.call("add", '{"a":2,"b":3}')
        return await desk.reconcile("add")

    play(story())
    assert asked == [(KEY, read_json('{"a":2,"b":3}'))]


def test_a_tool_that_takes_too_long_to_remember_does_not_know() -> None:
    async def account(key: str) -> bool:
        await asyncio.Event().wait()
        return True

    async def story() -> Report:
        desk = Desk(made(add, reconcile=account))
        await desk.call("add", '{"a":2,"b":3}')
        return await desk.reconcile("add", timeout_ms=20)

    assert play(story()) == ToolAccounted("2.1", Happened.UNKNOWN)


def test_nobody_knows_of_a_call_that_is_not_open_or_of_a_tool_that_is_not_there() -> None:
    desk = Desk(made(add))
    assert play(desk.reconcile("add")) == ToolAccounted("2.1", Happened.UNKNOWN)
    assert play(desk.reconcile("other")) == ToolAccounted("2.1", Happened.UNKNOWN)


VALUE = "token-0123456789"
VAULT = Vault({"TOKEN": VALUE})


def leaky(token: str) -> str:
    """Tell the secret."""
    return f"sent with {token}"


def quoting(token: str) -> str:
    """Raise the secret, so that the error is cut within it."""
    raise OSError("x" * 1_975 + token * 2)


def test_what_a_tool_returns_is_reported_without_its_secret() -> None:
    report = play(Desk(made(leaky, secrets={"token": "TOKEN"}), vault=VAULT).call("leaky"))
    assert isinstance(report, ToolSaid)
    assert report.result.content == "sent with [secret TOKEN]"


def test_what_a_tool_raises_is_reported_without_its_secret_even_where_it_was_cut() -> None:
    report = play(Desk(made(quoting, secrets={"token": "TOKEN"}), vault=VAULT).call("quoting"))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert report.error == f"OSError: {'x' * 1_975}[secret TOKEN] ..."


def test_a_tool_that_was_given_no_secret_cannot_tell_one_either() -> None:
    def finds() -> str:
        """Find it elsewhere."""
        return VALUE

    report = play(Desk(made(finds, verify=lambda arguments, result: result), vault=VAULT).call("finds"))
    assert isinstance(report, ToolSaid)
    assert (report.result.content, report.refuted) == ("[secret TOKEN]", "[secret TOKEN]")


def test_what_comes_late_is_told_without_a_secret() -> None:
    go_on = threading.Event()

    def late(token: str, breaks: bool) -> str:
        """Do not listen."""
        go_on.wait(20)
        if breaks:
            raise OSError(token)
        return token

    async def story(breaks: str) -> list[tuple[str, Report]]:
        desk = Desk(made(late, secrets={"token": "TOKEN"}), vault=VAULT)
        await desk.call("late", f'{{"breaks":{breaks}}}', timeout_ms=20)
        go_on.set()
        await asyncio.gather(*desk.executor._left)
        await asyncio.sleep(0)
        return desk.late

    said = ToolSaid("1.1", ToolResult("call", "late", "[secret TOKEN]"))
    assert play(story("false")) == [("run", said)]
    go_on.clear()
    broke = ToolBroke("1.1", ErrorCode.TOOL_EXECUTION_FAILED, "OSError: [secret TOKEN]", is_unknown=True)
    assert play(story("true")) == [("run", broke)]


def test_what_a_tool_remembers_is_told_without_a_secret() -> None:
    async def story() -> Report:
        desk = Desk(made(keyed, reconcile=lambda key: f"with {VALUE}"), vault=VAULT)
        await desk.call("keyed", '{"text":"x"}')
        return await desk.reconcile("keyed")

    assert play(story()) == ToolAccounted("2.1", Happened.YES, "with [secret TOKEN]")


def test_a_call_without_its_secret_is_not_made() -> None:
    reached: list[str] = []

    def reach(token: str) -> None:
        """Be reached."""
        reached.append(token)

    report = play(Desk(made(reach, secrets={"token": "ABSENT"}), vault=VAULT).call("reach"))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_UNAVAILABLE
    assert "'reach' was not called: the secret 'ABSENT' is not here; set the variable REMIT_SECRET_" in report.error
    assert reached == []


def test_a_secret_that_is_not_renewed_in_time_means_that_nothing_was_called() -> None:
    release = threading.Event()
    vault = Vault({"TOKEN": {"refresh": lambda: str(release.wait(20))}})
    report = play(Desk(made(leaky, secrets={"token": "TOKEN"}), vault=vault).call("leaky", timeout_ms=20))
    release.set()
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_UNAVAILABLE
    assert "the renewal of a secret did not answer" in report.error


@pytest.mark.parametrize("value", [VALUE, VALUE.encode().hex(), "[exposed secret TOKEN]"])
def test_a_call_whose_arguments_hold_a_secret_is_not_made(value: str) -> None:
    reached: list[str] = []

    def send(to: str, body: str) -> None:
        """Be reached."""
        reached.append(body)

    arguments = canonical_json({"to": "x", "body": f"psst: {value}"}).decode()
    report = play(Desk(made(send), vault=VAULT).call("send", arguments))
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert report.error.startswith(
        f"{SECRET_EXPOSED}: tool 'send' was not called: its arguments hold the secret 'TOKEN'"
    )
    assert VALUE not in report.error
    assert reached == []


def test_a_call_that_names_a_redacted_secret_is_made() -> None:
    report = play(Desk(made(keyed), vault=VAULT).call("keyed", '{"text":"[secret TOKEN]"}'))
    assert isinstance(report, ToolSaid)


def counted() -> tuple[list[str], Tool]:
    """A tool that changes something, and what it was called for."""
    done: list[str] = []

    def pay() -> str:
        """Pay."""
        done.append("paid")
        return "paid"

    return done, made(pay)


class Slow:
    """Claims of which the first takes longer than leave lasts, as for a process that was stopped; and whether it still holds."""

    def __init__(self, *, holds: bool) -> None:
        self.holds, self.claimed = holds, 0

    async def claim(self, run_id: str, command_id: str) -> bool:
        self.claimed += 1
        if self.claimed == 1:
            await asyncio.sleep(0.1)
        return True

    async def is_wanted(self, run_id: str, command_id: str) -> bool:
        return self.holds


@pytest.mark.parametrize("holds", [True, False])
def test_a_call_whose_claim_took_long_is_made_only_if_it_is_still_wanted(
    holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(performing, "PERMIT_S", 0.05)
    done, one = counted()
    desk, slow = Desk(one), Slow(holds=holds)
    desk.executor = ToolExecutor(ProcessResources(inline, claim=slow.claim, is_wanted=slow.is_wanted))
    report = play(desk.call("pay", is_mutating=True))
    assert (done, slow.claimed) == ((["paid"], 2) if holds else ([], 1))
    assert isinstance(report, ToolSaid if holds else ToolBroke)


@pytest.mark.parametrize("kind", ["in a thread", "on the loop"])
def test_a_process_that_stood_still_between_the_claim_and_the_call_does_not_make_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, one = counted()

    async def pay() -> str:
        """Pay."""
        done.append("paid")
        return "paid"

    desk = Desk(one if kind == "in a thread" else made(pay))
    slow = Slow(holds=True)
    slow.claimed = 1
    desk.executor = ToolExecutor(ProcessResources(inline, claim=slow.claim, is_wanted=slow.is_wanted))
    ages = iter([0.0, 60.0, 60.0])
    monkeypatch.setattr(performing.Permit, "age_s", property(lambda _: next(ages)))
    report = play(desk.call("pay", is_mutating=True))
    assert done == []
    assert isinstance(report, ToolBroke)
    assert (report.code, report.is_unknown) == (ErrorCode.CANCELLED_SIGNAL, False)
    assert "60.0 s passed since it was let begin" in report.error


def test_a_no_about_a_call_that_still_goes_on_here_is_not_believed() -> None:
    may_end = threading.Event()

    def pay() -> str:
        """Pay."""
        may_end.wait(10)
        return "paid"

    async def story() -> None:
        desk = Desk(made(pay, reconcile=lambda key: Happened.NO))
        report = await desk.call("pay", timeout_ms=50)
        assert isinstance(report, ToolBroke)
        account = await desk.reconcile("pay")
        assert isinstance(account, ToolAccounted)
        assert account.happened is Happened.UNKNOWN
        assert "still running" in account.why
        may_end.set()
        await until(lambda: bool(desk.late))
        assert await desk.reconcile("pay") == ToolAccounted("2.1", Happened.NO)

    play(story())
