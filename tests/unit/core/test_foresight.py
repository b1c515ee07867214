"""What like runs needed: known as far as enough of them came, and unknown beyond."""

from remit.core.limits.foresight import RUNS_MIN, Foresight, Milestone, milestone_after, needed_after

FAR = Milestone(least=((1, 5), (2, 1)), most=((1, 50), (2, 3)))
NEAR = Milestone(least=((1, 2),), most=((1, 9),))
KNOWN = Foresight(RUNS_MIN, (FAR, NEAR))


def test_each_number_of_answers_has_its_own_milestone() -> None:
    assert [milestone_after(KNOWN, answers) for answers in (0, 1)] == [FAR, NEAR]
    assert [needed_after(KNOWN, answers) for answers in (0, 1)] == [FAR.least, NEAR.least]


def test_where_nobody_came_so_far_nothing_is_known() -> None:
    assert milestone_after(KNOWN, 2) is None
    assert needed_after(KNOWN, 2) == ()


def test_too_few_runs_say_nothing() -> None:
    few = Foresight(RUNS_MIN - 1, (FAR, NEAR))
    assert milestone_after(few, 0) is None
    assert needed_after(few, 0) == ()
