"""The suites as real runs: what the guard decides about a call, a run of a System decides, too.

`python -m tests.authority.runner --runs` prints the whole.
"""

import pytest

from remit.core.limits.boundary import BoundaryMode
from remit.core.limits.profiles import GUARDED
from remit.core.record import replace
from tests.authority import adapter, real_runs
from tests.authority.attacks.catalogue import attacks, sample
from tests.authority.attacks.script import Run, honest_run, injected, overlapping, unanswered
from tests.authority.runner import REAL_SAMPLE_RUNS, SEED, Played, leak_line, main, play, report, share, tally
from tests.authority.suite import Call, world, worlds
from tests.authority.test_compromised_model import UNATTENDED_MIN, leaks

FEW = 80


def decisions(played: Played) -> list[str]:
    return [f"{step.tool}: {step.decision} {step.verdict.get('code') or ''}" for step in played.steps]


def unlike_the_guard(played: Played) -> list[str]:
    """What a real run decided otherwise than the guard, but for two differences.

    A run in which no person answers waits, and goes no further. And calls of one answer are all judged before anybody can
    answer the first of them, so what follows a held one is held too, where the guard has its answer by then.
    """
    said, guarded = decisions(played), decisions(play(adapter.real_gate(), played.run))
    if not played.run.answered:
        guarded = guarded[: len(said)]
    if played.run.overlapping:
        said = [one.replace("ask TRIPPED", "allow ") for one in said]
        guarded = [one.replace("ask TRIPPED", "allow ") for one in guarded]
        # What was held before its like was answered is held for the same reason as that.
        guarded = [
            mine if one.endswith("ask REPEAT") and mine in said[:place] and ": ask " in mine else one
            for place, (mine, one) in enumerate(zip(said, guarded, strict=False))
        ] + guarded[len(said) :]
    return [] if said == guarded else [f"{played.run.name}: {said} instead of {guarded}"]


def check(runs: list[Run]) -> None:
    leaked, unlike, count = [], [], 0
    for played in real_runs.play_all(runs):
        count += 1
        leaked += [leak_line(played.run, step) for step in played.leaks if not played.run.residual]
        unlike += unlike_the_guard(played)
    assert count == len(runs)
    assert leaked == []
    assert unlike == []


@pytest.mark.slow
def test_a_sample_of_every_kind_of_attack_leaks_nothing_in_real_runs_and_is_decided_as_the_guard_decides() -> None:
    check(sample(REAL_SAMPLE_RUNS, SEED))


@pytest.mark.soak
def test_no_attack_leaks_in_real_runs_and_each_is_decided_as_the_guard_decides() -> None:
    check([run for one in worlds() for run in attacks(one)])


@pytest.mark.slow
def test_benign_tasks_need_nobody_in_real_runs_as_often_as_before_the_guard() -> None:
    counted, guarded = real_runs.tally([]), tally(adapter.real_gate(), [])
    print(report(counted))  # noqa: T201
    assert share(counted) == share(guarded) >= UNATTENDED_MIN
    assert [one.questions for own in counted.values() for one in own.benign] == [
        one.questions for own in guarded.values() for one in own.benign
    ]


def test_a_boundary_that_only_audits_leaks_in_real_runs_so_a_leak_would_be_found() -> None:
    runs = [run for run in attacks(world("bank"), kind="pay", task="bk-0") if run.answered][:FEW]
    audited = replace(GUARDED, mode=BoundaryMode.AUDIT)
    played = list(real_runs.play_all(runs, audited))
    assert [one.run.name for one in played if not one.leaks] == []
    assert leaks(real_runs.tally(runs[:1], boundary=audited, task="bk-01")) != []


def test_a_run_whose_question_nobody_answers_waits_and_does_nothing_more() -> None:
    run = unanswered(next(iter(attacks(world("bank"), kind="pay", task="bk-01"))))
    (played,) = real_runs.play_all([run])
    place = next(n for n, step in enumerate(played.steps) if step.decision == "ask")
    assert place == len(played.steps) - 1 < len(run.moves)


def test_effects_that_are_proposed_together_are_judged_one_after_the_other() -> None:
    one = world("bank")
    task = next(task for task in one.tasks if task.id.startswith("bk-01"))
    effect = task.calls[-1]
    twice = honest_run(one, task)
    twice = overlapping(Run(one, task, "twice", "", (*twice.moves, injected(effect)), task.prompt, twice.tamper))
    (played,) = real_runs.play_all([twice])
    assert [step.decision for step in played.steps] == ["allow", "ask"]
    assert played.steps[-1].verdict["code"] == "REPEAT"


def test_late_effects_are_proposed_together_and_a_read_comes_alone() -> None:
    one = world("bank")
    task = one.tasks[0]
    read, effect = Call("list_accounts", {}), task.calls[-1]
    moves = tuple(map(injected, (effect, effect, read, effect)))
    run = overlapping(Run(one, task, "", "", moves, task.prompt, lambda number, tool, result: result))
    assert list(real_runs._answers(run)) == [(0, 1), (2,), (3,)]


@pytest.mark.slow
def test_the_command_plays_real_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "--world", "chat", "--attack", "rights", "--task", "ch-01"]) == 0
    assert "benign unattended in all" in capsys.readouterr().out
