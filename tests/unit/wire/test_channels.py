"""What a message of a channel means: a task, a signal, a look at loops, or a refusal with a code."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.run.principal import Scope
from remit.core.run.signals import Signal, check_signal
from remit.observe.linked_turns import read_history, states
from remit.wire.channels import (
    CHANNEL_COMMAND_UNKNOWN,
    CHANNEL_LOOP_UNCLEAR,
    CHANNEL_LOOP_UNKNOWN,
    CHANNEL_NOT_PERMITTED,
    COMMANDS,
    ChannelDesk,
    Explain,
    LoopCard,
    Meaning,
    Permission,
    Permissions,
    Show,
    Submit,
    Tell,
    card_of,
    may_do,
    principal_of,
)
from remit.wire.inbound import route_of, signal_of, start_of_task
from remit.wire.message_records import Attachment, UserMessage
from scripts.make_golden import GOLDEN, read_journal

REACHES = [Permission]
AT = "2026-03-13T10:11:12Z"


def said(content: str, user: str = "ann", *, thread: str = "", reply_to: str = "", channel: str = "C1") -> UserMessage:
    return UserMessage(
        message_id="m1",
        channel_type="slack",
        channel_id=channel,
        user_id=user,
        content=content,
        thread_id=thread,
        reply_to=reply_to,
        timestamp=AT,
    )


def card(loop_id: str, user: str = "ann", state: str = "executing", *, began: int = 1, thread: str = "") -> LoopCard:
    return LoopCard(
        loop_id=loop_id,
        session_id=f"s-{loop_id}",
        user_id=user,
        channel_type="slack",
        channel_id="C1",
        thread_id=thread,
        state=state,
        began_at_ms=began,
    )


STANDARD = Permissions()


def desk(*loops: LoopCard, permissions: Permissions = STANDARD) -> ChannelDesk:
    return ChannelDesk(permissions=permissions, loops=loops, model="gpt-4")


def signal(meaning: Meaning) -> tuple[str, str, object]:
    assert isinstance(meaning, Tell)
    return meaning.signal.type, meaning.signal.loop_id, meaning.signal.payload


def refused(at: ChannelDesk, message: UserMessage, groups: tuple[str, ...] = ()) -> str:
    with pytest.raises(RequestRejected) as rejected:
        at.meaning_of(message, groups)
    return rejected.value.code


def test_words_in_a_channel_become_a_task_with_the_way_back() -> None:
    message = replace(
        said("What is this?", thread="T7"),
        attachments=(Attachment(type="code", name="a.py", content="print()"),),
        metadata={"team": "core"},
    )
    meaning = desk().meaning_of(message)
    assert isinstance(meaning, Submit)
    order = start_of_task(meaning.task, thread_id=meaning.thread_id, message_id=meaning.message_id)
    route = route_of(order.request)
    assert (route.channel_type, route.channel_id, route.thread_id, route.message_id) == ("slack", "C1", "T7", "m1")
    assert (order.request.user_id, order.request.metadata["team"], order.model) == ("ann", "core", "gpt-4")
    assert order.context is not None
    assert "print()" in order.context.content


def test_attachments_alone_are_a_task() -> None:
    message = replace(said(""), attachments=(Attachment(type="file", name="a.txt", content="x"),))
    meaning = desk().meaning_of(message)
    assert isinstance(meaning, Submit)
    assert meaning.task.prompt


@pytest.mark.req("3.26")
@pytest.mark.parametrize("way", ["reply_to", "thread"])
def test_a_reply_to_a_loop_that_has_ended_continues_its_session(way: str) -> None:
    at = desk(card("old", state="complete", thread="T7"), card("run1", state="complete", began=2, thread="T7"))
    meaning = at.meaning_of(said("And now?", thread="T7", reply_to="run1" if way == "reply_to" else ""))
    assert isinstance(meaning, Submit)
    assert (meaning.task.loop_id, meaning.session_id) == ("run1", "s-run1")
    assert start_of_task(meaning.task, session_id=meaning.session_id).request.session_id == "s-run1"


def test_words_outside_a_thread_begin_a_loop_of_their_own() -> None:
    meaning = desk(card("run1", state="complete")).meaning_of(said("Something else."))
    assert isinstance(meaning, Submit)
    assert (meaning.task.loop_id, meaning.session_id) == ("", "")


def test_words_to_a_loop_that_goes_on_are_feedback() -> None:
    meaning = desk(card("run1")).meaning_of(said("Use metres.", reply_to="run1"))
    assert signal(meaning) == ("feedback", "run1", {"text": "Use metres."})


def test_words_to_a_loop_that_asks_in_words_are_the_answer() -> None:
    asking = replace(card("run1", state="paused"), pending=("run1/2.0",), worded=("run1/2.0",))
    meaning = desk(asking).meaning_of(said("TaskOrder 42.", reply_to="run1"))
    assert signal(meaning) == ("approve", "run1", {"packet_id": "run1/2.0", "text": "TaskOrder 42."})
    assert isinstance(meaning, Tell)
    principal = principal_of(Permissions(), said("TaskOrder 42."), meaning, tenant_id="acme")
    assert Scope.APPROVE in principal.scopes


def test_words_are_never_a_yes_to_a_call() -> None:
    asking = replace(card("run1", state="awaiting_approval"), pending=("run1/2.0",))
    assert refused(desk(asking), said("yes", reply_to="run1")) == CHANNEL_LOOP_UNCLEAR


def test_another_users_loop_does_not_exist_for_a_reply() -> None:
    at = desk(card("run1", user="bob", state="complete", thread="T7"))
    assert refused(at, said("And now?", reply_to="run1")) == CHANNEL_LOOP_UNKNOWN
    meaning = at.meaning_of(said("And now?", thread="T7"))
    assert isinstance(meaning, Submit)
    assert meaning.task.loop_id == ""


@pytest.mark.parametrize("word", [name for name, row in COMMANDS.items() if row.signal is not None])
def test_every_command_that_signals_becomes_a_signal_that_the_house_takes(word: str) -> None:
    asking = replace(card("run1", state="awaiting_approval"), pending=("run1/2.0",))
    everything = Permissions(approve=("ann",))
    meaning = desk(asking, permissions=everything).meaning_of(said(f"/{word} run1 as agreed"))
    assert isinstance(meaning, Tell)
    taken = signal_of(meaning.signal, sender="ann", pending=asking.pending)
    check_signal(taken)
    assert (taken.type, taken.run_id) == (COMMANDS[word].signal, "run1")
    assert "as agreed" in taken.payload.values()


def test_a_packet_may_be_named_in_place_of_its_loop() -> None:
    asking = replace(card("run1", user="bob"), pending=("run1/2.0", "run1/3.0"))
    at = desk(asking, permissions=Permissions(approve=("ann",)))
    assert signal(at.meaning_of(said("/reject run1/3.0 too dear"))) == (
        "reject",
        "run1",
        {"packet_id": "run1/3.0", "reason": "too dear"},
    )


def test_a_command_without_a_loop_means_the_senders_newest_that_goes_on_here() -> None:
    at = desk(card("a"), card("b", began=2), card("c", state="complete", began=3), card("d", user="bob", began=4))
    assert signal(at.meaning_of(said("/cancel no longer needed"))) == ("cancel", "b", {"reason": "no longer needed"})
    assert signal(at.meaning_of(said("/pause"))) == ("pause", "b", None)
    assert signal(at.meaning_of(said("/retry"))) == ("retry", "c", None)
    assert refused(at, said("/cancel", channel="C2")) == CHANNEL_LOOP_UNKNOWN


def test_one_may_cancel_ones_own_loop_and_with_the_right_to_it_any() -> None:
    loops = (card("own"), card("other", user="bob"))
    assert signal(desk(*loops).meaning_of(said("/cancel own")))[1] == "own"
    assert refused(desk(*loops), said("/cancel other")) == CHANNEL_LOOP_UNKNOWN
    admin = Permissions(cancel_own=(), cancel_any=("admin",))
    assert signal(desk(*loops, permissions=admin).meaning_of(said("/cancel other"), ("admin",)))[1] == "other"
    assert signal(desk(*loops, permissions=admin).meaning_of(said("/cancel own"), ("admin",)))[1] == "own"
    assert refused(desk(*loops, permissions=admin), said("/cancel own")) == CHANNEL_NOT_PERMITTED


@pytest.mark.parametrize(
    ("permission", "content"),
    [
        (Permission.VIEW, "/loops"),
        (Permission.VIEW, "/status run1"),
        (Permission.SUBMIT, "Do it."),
        (Permission.SUBMIT, "/retry run1"),
        (Permission.CANCEL_OWN, "/cancel run1"),
        (Permission.APPROVE, "/approve run1"),
    ],
)
def test_what_a_permission_is_needed_for_is_refused_without_it(permission: Permission, content: str) -> None:
    nothing = Permissions(view=(), submit_task=(), cancel_own=(), cancel_any=(), approve=())
    assert refused(desk(card("run1"), permissions=nothing), said(content)) == CHANNEL_NOT_PERMITTED
    allowed = replace(nothing, **{permission.value: ("ann",)})
    assert desk(card("run1", state="complete"), permissions=allowed).meaning_of(said(content)) is not None


def test_permissions_are_held_by_name_by_group_or_by_all() -> None:
    permissions = Permissions(view=("*",), approve=("Ann", "reviewers"))
    assert may_do(permissions, Permission.VIEW, "anyone")
    assert may_do(permissions, Permission.APPROVE, "ann")
    assert may_do(permissions, Permission.APPROVE, "bob", ["reviewers"])
    assert not may_do(permissions, Permission.APPROVE, "bob")
    assert not may_do(permissions, Permission.CANCEL_ANY, "ann")


def test_the_loops_of_a_sender_are_listed_and_the_status_of_any_is_shown() -> None:
    at = desk(card("b", began=2), card("a"), card("c", state="failed"), card("d", user="bob"))
    listed, shown = at.meaning_of(said("/loops")), at.meaning_of(said("/status d"))
    assert isinstance(listed, Show)
    assert isinstance(shown, Show)
    assert [loop.loop_id for loop in listed.loops] == ["a", "b"]
    assert [loop.loop_id for loop in shown.loops] == ["d"]
    latest = at.meaning_of(said("/status"))
    assert isinstance(latest, Show)
    assert latest.loops[0].loop_id == "b"
    assert refused(at, said("/status nowhere")) == CHANNEL_LOOP_UNKNOWN


def test_help_names_every_command_and_takes_no_permission() -> None:
    nothing = Permissions(view=(), submit_task=(), cancel_own=(), approve=())
    meaning = desk(permissions=nothing).meaning_of(said("/help"))
    assert isinstance(meaning, Explain)
    assert [line.split(":")[0].split()[0] for line in meaning.lines] == [f"/{name}" for name in COMMANDS]


def test_an_unknown_command_never_reaches_a_model_and_two_slashes_say_one() -> None:
    assert refused(desk(), said("/deploy now")) == CHANNEL_COMMAND_UNKNOWN
    meaning = desk().meaning_of(said("//etc/hosts says what?"))
    assert isinstance(meaning, Submit)
    assert meaning.task.prompt == "/etc/hosts says what?"


def test_a_sender_acts_with_the_scopes_of_their_permissions() -> None:
    message = said("go")
    meaning = desk().meaning_of(message)
    everybody = principal_of(Permissions(), message, meaning, tenant_id="acme")
    assert (everybody.tenant_id, everybody.user_id, everybody.channel) == ("acme", "ann", "slack")
    assert set(everybody.scopes) == {Scope.READ, Scope.START, Scope.SIGNAL}
    reviewer = principal_of(Permissions(approve=("g",)), message, meaning, tenant_id="acme", groups=["g"])
    assert Scope.APPROVE in reviewer.scopes


def test_a_card_tells_what_a_run_waits_for() -> None:
    journals = [read_journal(path) for path in sorted((GOLDEN / "v4").glob("*.journal"))]
    cards = [card_of(state) for journal in journals for _, state in states(read_history("", journal))]
    assert any(one.pending for one in cards)
    for one in cards:
        assert set(one.worded) <= set(one.pending)
        assert all(packet.startswith(f"{one.loop_id}/") for packet in one.pending)
        assert not (one.is_over and one.pending)


def test_feedback_by_command_carries_its_words() -> None:
    assert signal(desk(card("run1")).meaning_of(said("/feedback use metres"))) == (
        Signal.FEEDBACK.value,
        "run1",
        {"text": "use metres"},
    )
