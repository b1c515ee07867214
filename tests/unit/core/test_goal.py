import pytest

from remit.core.work.goal import NEEDS_OBSERVATION, Criterion, Goal, RequiredAction, TaskClass

REACHES = [TaskClass]


def test_every_task_class_says_whether_reasoning_is_enough() -> None:
    assert set(NEEDS_OBSERVATION) == set(TaskClass)
    reasoned = [task for task in TaskClass if not NEEDS_OBSERVATION[task]]
    assert reasoned == [TaskClass.ESTIMATE, TaskClass.CREATIVE]


@pytest.mark.parametrize("task", [TaskClass.EXACT_CALCULATION, TaskClass.CURRENT_FACT, TaskClass.ACCOUNT_STATUS])
def test_exact_current_and_account_facts_need_an_observation(task: TaskClass) -> None:
    assert NEEDS_OBSERVATION[task]


def test_a_goal_demands_nothing_it_does_not_say() -> None:
    goal = Goal("be kind")
    assert (goal.criteria, goal.required_actions, goal.task_class) == ((), (), None)


def test_a_required_action_must_be_seen_at_least_once() -> None:
    assert RequiredAction("look").times_min == 1


def test_a_criterion_names_a_guard_or_a_validator() -> None:
    assert Criterion("short", guard="answer_bytes < 9").validator == ""
    assert Criterion("polite", validator="polite").guard == ""
