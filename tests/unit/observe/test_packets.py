"""What is asked together, the version of it, and what a person changed in it."""

import asyncio

import pytest

from remit.core.failure import Ending, ErrorCode, RemitError
from remit.core.journal import arrivals
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import AskHuman
from remit.core.journal.rulings import Answer, ApprovalCounted, QuestionSettled, RunEnded
from remit.core.journal.turn import Turn
from remit.core.limits.authority import ValueOrigin
from remit.core.record import JsonObject, replace
from remit.core.run.approval import Approval, What
from remit.core.run.signals import Signal, UserSignal
from remit.observe.people.packets import (
    QUESTION_SETTLED,
    asked_version,
    changes,
    group_of,
    grouped,
    names_version,
    origins_of,
    too_late,
)
from tests.unit.kernel.builders import Run, wants
from tests.unit.orchestrate.house import approval, calls, in_memory, keep, request, scripted, signal


def held(command: str, group: str = "", packet: str = "v") -> Approval:
    """A held call of one run."""
    name = f"r/{group}" if group else ""
    return Approval(f"r/{command}", "r", What.APPROVAL, Ending.CONFIRM_REQUIRED, 0, group=name, packet=packet)


def test_calls_of_one_group_are_one_packet_where_the_first_of_them_stands() -> None:
    one, other, alone = held("1.2", "1.2"), held("1.4", "1.2"), held("3.1")
    assert grouped([one, alone, other]) == [[one, other], [alone]]
    assert group_of(one) == group_of(other) == "r/1.2+"
    assert group_of(alone) == "r/3.1+"


def test_the_version_of_a_packet_covers_every_call_in_it() -> None:
    one, other = held("1.2", "1.2", "a"), held("1.4", "1.2", "b")
    assert asked_version([one]) == "a"
    together = asked_version([one, other])
    assert len(together) == 64
    assert asked_version([one, held("1.4", "1.2", "c")]) != together
    assert asked_version([held("1.2", "1.2", "b"), held("1.4", "1.2", "a")]) != together


@pytest.mark.parametrize(
    ("named", "means"), [("a" * 64, True), ("a" * 12, True), ("a" * 11, False), ("", False), ("a" * 11 + "b", False)]
)
def test_a_version_is_named_by_enough_of_its_digits(named: str, means: bool) -> None:
    assert names_version("a" * 64, named) is means
    assert not names_version("", named)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": True}]}, ["a"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, ["a"]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, ["a", "c"]),
        ({"a": None}, {}, ["a"]),
    ],
)
def test_changes_are_told_key_by_key_as_they_are_written(
    before: JsonObject, after: JsonObject, changed: list[str]
) -> None:
    assert [change.key for change in changes(before, after)] == changed


def test_a_key_that_was_added_or_removed_says_so() -> None:
    removed, added = changes({"a": None}, {"b": None})
    assert (removed.is_removed, removed.is_added, added.is_added, added.is_removed) == (True, False, True, False)


def test_the_values_within_an_argument_belong_to_it_and_to_no_other() -> None:
    origins = tuple(ValueOrigin(path, "v") for path in ("to", "to[0]", "to.name", "token", "top[0]"))
    assert [origin.path for origin in origins_of("to", origins)] == ["to", "to[0]", "to.name"]


def asking() -> tuple[Run, AskHuman]:
    run = Run()
    run.proposes(wants("write"))
    return run, run.question()


def told(run: Run, command_id: str = "") -> str:
    late = too_late("run", run.turns, command_id)
    return "" if late is None else late.message


def test_a_question_that_is_open_or_was_never_asked_is_not_late() -> None:
    run, question = asking()
    assert (told(run), told(run, question.id), told(run, "9.9")) == ("", "", "")


def test_who_answered_is_named() -> None:
    run, question = asking()
    run.take(arrivals.ApprovalRefused(question.id, "eve"))
    late = too_late("run", run.turns)
    assert late is not None
    assert (late.code, late.details) == (QUESTION_SETTLED, {"run_id": "run", "packet_id": f"run/{question.id}"})
    assert late.message == f"question run/{question.id} was rejected by eve; `remit show run` tells what followed"


def test_a_question_of_a_run_that_was_cancelled_or_ended_says_so() -> None:
    run, question = asking()
    run.take(arrivals.CancelRequested("eve"))
    assert "was withdrawn, since the run was cancelled by eve;" in told(run, question.id)


def turn_of(*decisions: object) -> Turn:
    run, _ = asking()
    return replace(run.turns[-1], decisions=decisions)


@pytest.mark.parametrize(
    ("decisions", "words"),
    [
        ((QuestionSettled("1.2", Answer.EXPIRED),), "got no answer in time;"),
        ((QuestionSettled("1.2", Answer.ESCALATED), "again"), "got no answer in time and is asked as run/1.2 now;"),
        ((QuestionSettled("1.2", Answer.WITHDRAWN),), "was withdrawn;"),
        ((QuestionSettled("1.2", Answer.ANSWERED),), "was answered by a person;"),
        (
            (QuestionSettled("1.2", Answer.WITHDRAWN), RunEnded(Ending.TIMEOUT, ErrorCode.CANCELLED_TIMEOUT, "late")),
            "was withdrawn, since the run ended as TIMEOUT;",
        ),
        (
            (ApprovalCounted("1.2", "ann"), QuestionSettled("1.2", Answer.APPROVED, "bob")),
            "was approved by ann, bob;",
        ),
    ],
)
def test_every_way_in_which_a_question_is_settled_has_words(decisions: tuple[object, ...], words: str) -> None:
    _, question = asking()
    turn = turn_of(*[replace(question, id="1.2") if one == "again" else one for one in decisions])
    late = too_late("run", [turn], "1.2")
    assert late is not None
    assert f"question run/1.2 {words}" in late.message


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_later_answer_is_told_what_happened_whatever_the_timing(is_cancelled: bool) -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted(calls("keep", text="x"), {"text": "left"}, tools=[keep])
            asked = await system.run(request(), kit)
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            no = signal(Signal.CANCEL, asked.run_id, by="eve")
            if not is_cancelled:
                no = replace(approval(packet, Signal.REJECT), user_id="eve")
            yes = [
                UserSignal(by, Signal.APPROVE, asked.run_id, by, payload={"packet_id": packet}) for by in ("ann", "bob")
            ]
            first = await asyncio.gather(*(system.signal(one) for one in (no, *yes)), return_exceptions=True)
            await system.settle()
            later = await asyncio.gather(
                system.signal(yes[0]),
                system.archive.approval(packet),
                system.archive.approval(asked.run_id),
                return_exceptions=True,
            )
            refused = [error for error in (*first, *later) if isinstance(error, RemitError)]
            assert len(refused) == len(yes) + len(later)
            assert {error.code for error in refused} == {QUESTION_SETTLED}
            assert all(
                ("cancelled by eve" if is_cancelled else "rejected by eve") in error.message for error in refused
            )
            turns = [decode_turn(data) for data in await system.store.journal.read(asked.run_id)]
            assert too_late(asked.run_id, turns) is not None

    asyncio.run(story())
