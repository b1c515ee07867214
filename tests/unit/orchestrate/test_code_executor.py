"""Named code of the user: what it may say, and what becomes of code that is missing, late or broken."""

import asyncio
import threading
from typing import Any

import pytest

from remit.core.failure import ErrorCode, RemitError, RequestRejected
from remit.core.journal.arrivals import CodeFailed, CodeReturned
from remit.core.journal.commands import CallCode
from remit.core.record import Text
from remit.orchestrate.executors.code import run_code
from remit.orchestrate.executors.errands import JudgeErrand, Sender
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.setup.kit import Kit
from remit.validate.check import compile_rules
from remit.validate.rule_set import MustMention, NotEmpty, Rule, RuleSet
from tests.unit.orchestrate.stage import play


async def inline(text: Text) -> str:
    """A text that lives nowhere else."""
    assert isinstance(text, str)
    return text


def run(code: Any, *, name: str = "check", timeout_ms: int = 5_000) -> Report:
    errand = JudgeErrand(Sender("run", "run"), CallCode("1.1", name, "input", timeout_ms))
    return play(run_code(errand, Kit({}, code={"check": code}), ProcessResources(inline)))


async def waits(text: str) -> None:
    await asyncio.Event().wait()


async def echoes(text: str) -> str:
    return f"{text} heard"


@pytest.mark.parametrize(
    ("code", "report"),
    [
        (lambda text: None, CodeReturned("1.1")),
        (lambda text: f"{text} read", CodeReturned("1.1", "input read")),
        (echoes, CodeReturned("1.1", "input heard")),
        (lambda text: ["too long", "too dull"], CodeReturned("1.1", problems=("too long", "too dull"))),
        (lambda text: (), CodeReturned("1.1")),
    ],
)
def test_a_text_is_a_value_several_are_problems_and_nothing_is_content(code: Any, report: Report) -> None:
    assert run(code) == report


@pytest.mark.parametrize(("said", "kind"), [(7, "int"), ([1], "list"), ({"a": 1}, "dict")])
def test_code_that_says_anything_else_failed(said: object, kind: str) -> None:
    report = run(lambda text: said)
    assert report == CodeFailed("1.1", f"'check' returned a {kind}; it may return a text, a list of texts or None")


def test_code_that_nobody_has_fails_the_command_and_not_the_process() -> None:
    why = "there is no code here named 'other'; give it to the kit under that name"
    assert run(echoes, name="other") == CodeFailed("1.1", why, ErrorCode.CONFIG_PART_MISSING)


def test_code_that_raises_fails_with_what_it_raised() -> None:
    def breaks(text: str) -> str:
        raise LookupError("no dictionary")

    assert run(breaks) == CodeFailed("1.1", "'check' raised LookupError: no dictionary")


def test_code_that_takes_too_long_is_cut_off() -> None:
    late = CodeFailed("1.1", "'check' took longer than timeout_ms=10", ErrorCode.TOOL_TIMEOUT)
    assert run(waits, timeout_ms=10) == late


def test_code_that_fails_with_a_code_of_ours_keeps_it() -> None:
    def refuses(text: str) -> str:
        raise RemitError(ErrorCode.TOOL_UNAVAILABLE, "closed")

    assert run(refuses) == CodeFailed("1.1", "'check': closed", ErrorCode.TOOL_UNAVAILABLE)

    def refuses_oddly(text: str) -> str:
        raise RequestRejected("ODD", "closed")

    assert run(refuses_oddly) == CodeFailed("1.1", "'check': closed", ErrorCode.TOOL_EXECUTION_FAILED)


def test_a_report_of_rules_is_its_breaches_and_their_count() -> None:
    rules = compile_rules(RuleSet("all", (Rule("said", NotEmpty()), Rule("tea", MustMention(("tea",))))))
    report = run(rules.validator())
    assert isinstance(report, CodeReturned)
    assert (len(report.problems), report.checks_passed, report.checks_failed) == (1, 1, 1)


def test_plain_functions_run_in_a_thread_so_that_nobody_waits_for_them() -> None:
    threads: list[threading.Thread] = []

    def note(text: str) -> None:
        threads.append(threading.current_thread())

    run(note)
    assert threads[0] is not threading.main_thread()
