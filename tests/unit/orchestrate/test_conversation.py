"""The conversation grows with its run and equals one that is rendered at once."""

from remit.core.arrivals import ContextFound, ModelAnswered
from remit.core.commands import Retrieve
from remit.core.contract import SystemRequest
from remit.core.messages import Message, Role, assistant_message, system_message, tool_message, user_message
from remit.core.record import BlobRef, Text
from remit.core.tools import ToolCall
from remit.kernel.state import RunState
from remit.orchestrate.conversation import Conversation, rendered
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.orchestrate.stage import play

REQUEST = SystemRequest((system_message("be brief"), user_message("first"), user_message("last")))


def shown(state: RunState) -> list[Message]:
    return Conversation().catch_up(state)


def test_the_messages_of_the_request_come_first() -> None:
    assert shown(Run(manifest_of(request=REQUEST)).state) == list(REQUEST.messages)


def test_an_answer_is_shown_with_its_calls_and_their_results() -> None:
    run = Run()
    run.proposes(wants("look"), text="let me see")
    run.returns()
    assert shown(run.state)[1:] == [
        assistant_message("let me see", (ToolCall("call", "look", {"n": 1}),)),
        tool_message("call", "look", '{"ok": true}'),
    ]


def test_what_was_rendered_is_not_rendered_again() -> None:
    run, conversation = Run(), Conversation()
    run.proposes(wants("look"))
    before = list(conversation.catch_up(run.state))
    run.returns()
    after = conversation.catch_up(run.state)
    assert all(old is new for old, new in zip(before, after, strict=False))
    assert len(after) == len(before) + 1


def test_nothing_new_adds_nothing() -> None:
    run, conversation = Run(), Conversation()
    assert conversation.catch_up(run.state) == conversation.catch_up(run.state) == shown(run.state)


def test_evidence_stands_just_before_the_last_message_of_the_request() -> None:
    run = retrieving()
    run.take(ContextFound(run.open(Retrieve)[0].id, "evidence", 20))
    assert [message.content for message in shown(run.state)] == ["be brief", "first", "evidence", "last"]
    assert shown(run.state)[2].role is Role.SYSTEM


def test_evidence_stays_in_its_place_for_the_whole_exchange() -> None:
    run = retrieving()
    run.take(ContextFound(run.open(Retrieve)[0].id, "evidence", 20))
    run.proposes(wants("look"))
    run.returns()
    assert [message.content for message in shown(run.state)][2:4] == ["evidence", "last"]


def test_evidence_that_comes_after_the_conversation_was_looked_at_is_put_in_its_place() -> None:
    run, conversation = retrieving(), Conversation()
    conversation.catch_up(run.state)
    run.take(ContextFound(run.open(Retrieve)[0].id, "evidence", 20))
    assert conversation.catch_up(run.state) == shown(run.state)


def test_newer_evidence_replaces_what_was_found_before() -> None:
    run, conversation = retrieving(), Conversation()
    run.take(ContextFound(run.open(Retrieve)[0].id, "old", 20))
    conversation.catch_up(run.state)
    run.state.ephemeral = "new"
    assert [message.content for message in conversation.catch_up(run.state)] == ["be brief", "first", "new", "last"]


def test_evidence_that_is_withdrawn_leaves_no_trace() -> None:
    run, conversation = retrieving(), Conversation()
    run.take(ContextFound(run.open(Retrieve)[0].id, "old", 20))
    conversation.catch_up(run.state)
    run.state.ephemeral = ""
    assert conversation.catch_up(run.state) == list(REQUEST.messages)


def test_long_texts_stay_references() -> None:
    reference = BlobRef(b"digest", 5000)
    assert rendered(ModelAnswered("1.0", reference, reference)) == assistant_message(reference, (), reference)


def test_an_engine_takes_a_conversation_in_full_and_what_was_fetched_stays() -> None:
    async def scene() -> None:
        fetched = []

        async def fetch(text: Text) -> str:
            if isinstance(text, str):
                return text
            fetched.append(text)
            return "in full"

        run, conversation = Run(), Conversation()
        run.state.context[0] = user_message(BlobRef(b"digest", 5000))
        once = await conversation.whole(run.state, 1, fetch)
        again = await conversation.whole(run.state, 1, fetch)
        assert once == again == (user_message("in full"),)
        assert once[0] is again[0]
        assert await conversation.whole(run.state, 0, fetch) == ()
        assert len(fetched) == 1

    play(scene())


def retrieving() -> Run:
    return Run(manifest_of(request=REQUEST, retrieves_context=True))
