"""A request that a boundary does not want is turned away before anything begins."""

from datetime import UTC, datetime

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary, Condition, Then
from remit.core.record import BlobRef, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest
from remit.core.run.messages import assistant_message, user_message
from remit.core.work.goal import Goal, TaskClass
from remit.kernel.authority.intake import GOAL_REFUSED, INTAKE_NAMES, check_intake, parse_intake
from remit.kernel.graph.expressions import GuardRefused
from tests.unit.kernel.builders import manifest_of

SUNDAY_MS = int(datetime(2026, 11, 15, 6, 30, tzinfo=UTC).timestamp() * 1000)


def asked(when: str, *, prompt: object = "Sue them.", message: str = "") -> Manifest:
    condition = Condition("rule", when, Then.REFUSE, message)
    request = SystemRequest((user_message("before"), user_message(prompt), assistant_message("yes")))  # type: ignore[arg-type]
    request = replace(request, user_id="ada", tenant_id="acme")
    goal = Goal("win", task_class=TaskClass.HIGH_STAKES)
    return replace(manifest_of(boundary=Boundary(name="firm", intake=(condition,))), request=request, goal=goal)


@pytest.mark.req("4.8")
@pytest.mark.parametrize(
    "when",
    [
        'prompt == "Sue them."',
        "prompt_chars == 9",
        'mode == "chat"',
        'task_class == "high_stakes"',
        '"look" in tools',
        'user == "ada" && tenant == "acme"',
        'role == "general"',
        "weekday == 7",
        "hour == 6",
    ],
)
def test_a_condition_sees_what_was_asked_by_whom_and_when(when: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_intake(asked(when), SUNDAY_MS)
    assert refused.value.code == GOAL_REFUSED
    assert refused.value.details == {"boundary": "firm", "condition": "rule"}


def test_the_refusal_says_why() -> None:
    with pytest.raises(RequestRejected, match="boundary firm turns the request away by rule: not our trade"):
        check_intake(asked("prompt_chars > 0", message="not our trade"), SUNDAY_MS)


def test_a_request_that_no_condition_is_about_passes() -> None:
    check_intake(asked("weekday == 1"), SUNDAY_MS)
    check_intake(manifest_of(), SUNDAY_MS)


def test_a_condition_that_cannot_be_decided_turns_the_request_away() -> None:
    with pytest.raises(RequestRejected, match="could not be decided"):
        check_intake(asked("10 / (prompt_chars - prompt_chars) > 1"), SUNDAY_MS)


def test_words_that_are_kept_elsewhere_and_goals_that_nobody_has_are_empty() -> None:
    far = replace(asked('prompt != "" || task_class != ""', prompt=BlobRef(b"x" * 32, 5000)), goal=None)
    check_intake(far, SUNDAY_MS)
    check_intake(replace(far, goal=Goal("no class")), SUNDAY_MS)
    check_intake(replace(far, request=SystemRequest((assistant_message("hello"),))), SUNDAY_MS)


def test_a_name_that_no_request_has_is_refused_with_its_place() -> None:
    assert "args" not in INTAKE_NAMES
    with pytest.raises(GuardRefused):
        parse_intake("args.n > 1")
