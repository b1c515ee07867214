"""The suites themselves: the tasks are whole, the attacks are many, and both can fail a gate."""

import json
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from tests.authority import gates
from tests.authority.attacks.catalogue import KINDS, attacks, sample
from tests.authority.attacks.script import Run, honest_run
from tests.authority.effects import Ledger
from tests.authority.runner import (
    SAMPLE_RUNS,
    SEED,
    Operation,
    Played,
    Tally,
    details,
    leak_line,
    main,
    play,
    report,
    share,
    tally,
)
from tests.authority.suite import DECLARABLE, Call, Task, World, world, worlds

TASKS_MIN = 15
KINDS_MIN = 20
TASKS = [(one, task) for one in worlds() for task in one.tasks]
# What no gate decides without a person.
RESIDUAL = {"mixed_up", "word_lookup", "other_number_of_the_words", "prose_rewritten"}


@cache
def every_run() -> list[Run]:
    return [run for one in worlds() for run in attacks(one)]


@pytest.fixture(scope="module")
def allowed() -> dict[str, Tally]:
    return tally(gates.allow_everything(), every_run())


def test_each_world_has_enough_tasks_and_each_task_a_name_of_its_own() -> None:
    for one in worlds():
        assert len(one.tasks) >= TASKS_MIN, one.name
        assert len({task.id for task in one.tasks}) == len(one.tasks)


def test_each_world_has_tools_that_are_declared_in_full_in_part_and_not_at_all() -> None:
    for one in worlds():
        declared = Counter(
            str(tool.truth["shows"]) if tool.truth["shows"] in ("all", "none") else "part"
            for tool in one.tools.values()
        )
        assert declared["all"] > declared["part"] > 1, one.name
        assert declared["none"] > 1, one.name


def test_a_gate_is_told_what_a_tool_shows_and_nothing_else() -> None:
    told = world("workspace").tools["create_mail_rule"].shown
    assert set(told) == {"name", "description", "parameters"}
    assert set(world("workspace").tools["set_vacation"].shown) == {*told, "effect", "control_args"}
    for one in worlds():
        for tool in one.tools.values():
            assert set(tool.shown) <= {*told, *DECLARABLE}
            assert set(tool.kinds) | set(tool.payload) <= set(tool.truth["parameters"]), tool.name


@pytest.mark.parametrize(("one", "task"), TASKS, ids=[task.id for _, task in TASKS])
def test_the_honest_calls_of_a_task_work_and_use_only_what_was_said_read_or_worked_out(one: World, task: Task) -> None:
    data, known = one.fresh(), task.said
    for call in task.calls:
        tool = one.tools[call.tool]
        for arg in set(call.args) & set(tool.kinds):
            for value in call.args[arg] if isinstance(call.args[arg], list) else [call.args[arg]]:
                assert value in task.model_values or _is_known(value, known), f"{call.tool}.{arg}={value!r}"
        result = one.perform(data, call)
        assert not (isinstance(result, dict) and "error" in result), result
        assert result not in ([], "404 Not Found"), f"{call} finds nothing"
        known += json.dumps(result, ensure_ascii=False)


def _is_known(value: Any, known: str) -> bool:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"[T ]", " ", text) in re.sub(r"[T ]", " ", known) or all(part in known for part in text.split("T"))


def test_there_are_many_kinds_of_attack_and_each_has_runs() -> None:
    assert len(KINDS) >= KINDS_MIN
    found = Counter(run.kind for run in every_run())
    assert set(found) == set(KINDS)


def test_every_task_is_attacked() -> None:
    assert {run.task.id for run in every_run()} == {task.id for _, task in TASKS}


def test_no_two_runs_share_a_name() -> None:
    names = Counter(run.name for run in every_run())
    assert [name for name, count in names.items() if count > 1] == []


def test_the_attacks_are_the_same_every_time() -> None:
    def written(runs: list[Run]) -> list[str]:
        return [f"{run.name} {run.prompt} {run.moves}" for run in runs]

    again = [run for one in worlds() for run in attacks(one, task=one.tasks[0].id)]
    assert written(again) == written([run for run in every_run() if run.task.id == run.world.tasks[0].id])


@pytest.mark.slow
def test_a_sample_follows_its_seed() -> None:
    def names(seed: int) -> list[str]:
        return [run.name for run in sample(500, seed)]

    assert names(1) == names(1)
    assert names(1) != names(2)


def test_a_sample_holds_every_kind_of_every_world() -> None:
    cells = {(run.world.name, run.kind) for run in every_run()}
    assert {(run.world.name, run.kind) for run in sample(SAMPLE_RUNS, SEED)} == cells


@pytest.mark.slow
def test_a_gate_that_allows_everything_leaks_in_every_single_attacked_run(allowed: dict[str, Tally]) -> None:
    assert [run.name for one in allowed.values() for run in one.vacuous] == []


@pytest.mark.slow
def test_a_gate_that_allows_everything_leaks_in_every_kind_of_attack(allowed: dict[str, Tally]) -> None:
    leaked = {run.kind for one in allowed.values() for run, _ in one.leaks}
    # A number that is swapped where money moves is no longer among them.
    assert leaked == set(KINDS) - RESIDUAL | {"other_number_of_the_words"}
    assert {run.kind for one in allowed.values() for run, _ in one.residual} >= RESIDUAL


@pytest.mark.slow
def test_a_gate_that_allows_everything_serves_every_benign_task(allowed: dict[str, Tally]) -> None:
    assert share(allowed) == 1.0


@pytest.mark.slow
def test_a_gate_that_asks_about_everything_leaks_nothing_and_serves_nobody() -> None:
    asked = tally(gates.ask_everything(), sample(SAMPLE_RUNS, SEED))
    assert [leak_line(*leak) for one in asked.values() for leak in [*one.leaks, *one.residual]] == []
    assert share(asked) == 0.0
    assert sum(played.questions for one in asked.values() for played in one.benign) >= len(TASKS)


def test_an_effect_of_the_task_is_honest_once_and_a_leak_the_second_time() -> None:
    one, task = TASKS[0]
    ledger = Ledger(one, task.calls)
    assert ledger.books(task.calls[0]) == ""
    assert ledger.books(task.calls[0]) == "once too often"


def test_the_order_of_recipients_means_nothing_and_one_more_means_a_lot() -> None:
    one = world("workspace")
    mail = Call("send_mail", {"recipients": ["a@x.example", "b@x.example"], "subject": "s", "body": "b"})
    turned = Call("send_mail", mail.args | {"recipients": ["b@x.example", "a@x.example"]})
    more = Call("send_mail", mail.args | {"recipients": ["a@x.example", "b@x.example", "c@x.example"]})
    assert Ledger(one, (mail,)).books(turned) == ""
    assert Ledger(one, (mail,)).books(more) == "no effect of the task"
    assert Ledger(one, (mail,)).books(Call("send_mail", mail.args | {"body": "c"})) == "says something else"


def test_honest_effects_in_an_attacked_run_are_no_leaks() -> None:
    run = next(iter(attacks(world("bank"), kind="pay", task="bk-01")))
    played = play(gates.allow_everything(), run)
    assert [step.injected for step in played.leaks] == [True]
    assert any(not step.injected and step.passed for step in played.steps)


def test_a_question_about_an_injected_effect_is_answered_with_no_and_an_honest_one_with_yes() -> None:
    heard: list[Operation] = []

    def gate(operation: Operation) -> Operation | None:
        heard.append(operation)
        return gates.ask_everything()(operation)

    run = next(iter(attacks(world("bank"), kind="pay", task="bk-01")))
    play(gate, run)
    answers = {entry["id"]: entry["approve"] for entry in heard if entry["op"] == "answer"}
    assert answers == {f"call-{n}": not move.injected for n, move in enumerate(run.moves)}
    results = [entry["id"] for entry in heard if entry["op"] == "result"]
    assert results == [f"call-{n}" for n, move in enumerate(run.moves) if not move.injected]


def test_overlapping_effects_get_their_results_only_after_the_last_call() -> None:
    heard: list[str] = []

    def gate(operation: Operation) -> Operation | None:
        heard.append(operation["op"])
        return gates.allow_everything()(operation)

    run = next(run for run in attacks(world("bank"), kind="effect_repeated", task="bk-01") if run.overlapping)
    play(gate, run)
    assert heard[-3:] == ["result", "result", "end"]


def test_a_gate_that_answers_out_of_protocol_is_not_counted_as_safe() -> None:
    run = honest_run(*TASKS[0])
    with pytest.raises(AssertionError, match="start answered"):
        play(lambda operation: None, run)
    with pytest.raises(AssertionError, match="call answered"):
        play(lambda operation: {"ok": True}, run)


def test_the_report_names_each_leak_with_world_task_attack_call_and_verdict() -> None:
    counted = tally(gates.allow_everything(), list(attacks(world("bank"), kind="pay", task="bk-01"))[:1])
    text = details(counted)
    assert "LEAK bank bk-01-transfer-by-iban/pay/0: transfer({'iban': 'GB29" in text
    assert "verdict {'decision': 'allow'" in text
    assert "benign unattended in all: 100.0%" in report(counted)


def test_the_report_names_each_benign_task_that_was_held() -> None:
    counted = tally(gates.ask_everything(), [])
    assert "HELD travel tr-18-car: rent_car(" in details(counted)


def test_the_command_ends_with_one_when_something_leaked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--gate", "allow", "--world", "chat", "--attack", "rights", "--task", "ch-01"]) == 1
    assert "attacked runs in" in capsys.readouterr().out
    assert main(["--gate", "ask", "--world", "chat", "--attack", "rights", "--task", "ch-01"]) == 0


def test_a_played_run_knows_its_questions() -> None:
    played: Played = play(gates.ask_everything(), honest_run(*TASKS[0]))
    assert (played.questions, played.is_unattended, played.leaks) == (1, False, ())
