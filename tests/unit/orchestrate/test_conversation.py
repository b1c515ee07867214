"""The conversation grows with its run and equals one that is rendered at once."""

from remit.core.journal.arrivals import ContextFound, ToolReturned
from remit.core.journal.commands import CallTool, Retrieve
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolCall
from remit.core.record import BlobRef, Text
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import Message, Role, assistant_message, system_message, tool_message, user_message
from remit.kernel.fold.snapshot import snapshot_of, state_from
from remit.kernel.state import RunState
from remit.orchestrate.exchange.conversation import Conversation
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
    run.state.talk.ephemeral = "new"
    assert [message.content for message in conversation.catch_up(run.state)] == ["be brief", "first", "new", "last"]


def test_evidence_that_is_withdrawn_leaves_no_trace() -> None:
    run, conversation = retrieving(), Conversation()
    run.take(ContextFound(run.open(Retrieve)[0].id, "old", 20))
    conversation.catch_up(run.state)
    run.state.talk.ephemeral = ""
    assert conversation.catch_up(run.state) == list(REQUEST.messages)


def test_an_engine_takes_a_conversation_in_full_and_what_was_fetched_stays() -> None:
    async def scene() -> None:
        fetched = []

        async def fetch(text: Text) -> str:
            if isinstance(text, str):
                return text
            fetched.append(text)
            return "in full"

        run, conversation = Run(), Conversation()
        run.state.talk.context[0] = user_message(BlobRef(b"digest", 5000))
        once = await conversation.whole(run.state, 1, fetch)
        again = await conversation.whole(run.state, 1, fetch)
        assert once == again == (user_message("in full"),)
        assert once[0] is again[0]
        assert await conversation.whole(run.state, 0, fetch) == ()
        assert len(fetched) == 1

    play(scene())


def retrieving() -> Run:
    return Run(manifest_of(request=REQUEST, retrieves_context=True))


def compressed(followed: Conversation | None = None) -> Run:
    """A run whose earlier results were shortened, with evidence, perhaps followed by a conversation all along."""
    boundary = Boundary(exhaustion=(("context_tokens", Exhaustion.COMPRESS),), budget=Budget(context_tokens=3000))
    run = Run(manifest_of(request=REQUEST, boundary=boundary, retrieves_context=True))
    run.take(ContextFound(run.open(Retrieve)[0].id, "evidence", 20))
    for n in range(6):
        run.proposes(wants("look", n, call_id=f"call{n}"))
        run.returns("look", str(n) * 600)
        if followed is not None:
            followed.catch_up(run.state)
    return run


def test_a_conversation_that_followed_a_compressed_run_equals_one_that_is_rendered_at_once() -> None:
    followed = Conversation()
    run = compressed(followed)
    assert run.state.talk.compressions > 0
    assert followed.catch_up(run.state) == shown(run.state)


def test_after_a_compression_every_call_has_its_one_result_and_the_words_of_people_are_whole() -> None:
    messages = shown(compressed().state)
    assert [message.content for message in messages[:4]] == ["be brief", "first", "evidence", "last"]
    called = [call.id for message in messages for call in message.tool_calls]
    told = [message.tool_call_id for message in messages if message.role is Role.TOOL]
    assert called == told == [f"call{n}" for n in range(6)]
    results = [str(message.content) for message in messages if message.role is Role.TOOL]
    assert results[-2:] == ["4" * 600, "5" * 600]
    assert results[0].startswith("(an earlier result of 600 bytes, kept as sha256:")


def test_an_engine_takes_a_compressed_conversation_in_full_from_a_state_that_was_restored() -> None:
    run = compressed()
    data = snapshot_of(run.state)
    assert data is not None
    restored = state_from(data)
    assert restored is not None

    async def fetch(text: Text) -> str:
        assert isinstance(text, str)
        return text

    count = len(run.state.talk.context)
    whole = play(Conversation().whole(restored, count, fetch))
    assert list(whole) == shown(run.state)


def test_what_was_fetched_before_a_compression_is_not_shown_after_it() -> None:
    run, conversation = compressed(), Conversation()
    kept = BlobRef(b"d" * 32, 900)

    async def fetch(text: Text) -> str:
        return text if isinstance(text, str) else "whole"

    run.proposes(wants("look", 7, call_id="call7"))
    run.take(ToolReturned(run.open(CallTool)[0].id, kept, b"evidence", 916))
    before = play(conversation.whole(run.state, len(run.state.talk.context), fetch))
    assert before[-1].content == "whole"
    for n in (8, 9):
        run.proposes(wants("look", n, call_id=f"call{n}"))
        run.returns("look", "x" * 600)
    after = play(conversation.whole(run.state, len(run.state.talk.context), fetch))
    (told,) = [message.content for message in after if message.tool_call_id == "call7"]
    assert told == f"(an earlier result of 900 bytes, kept as sha256:{kept.digest.hex()})"


def test_a_text_that_comes_while_another_is_fetched_is_fetched_with_the_next_question() -> None:
    async def scene() -> None:
        run, conversation = Run(), Conversation()
        run.state.talk.context[0] = user_message(BlobRef(b"digest", 5000))

        async def fetch(text: Text) -> str:
            if isinstance(text, str):
                return text
            if text.digest == b"digest":
                run.state.talk.context.append(user_message(BlobRef(b"later", 5000)))
                conversation.catch_up(run.state)
            return text.digest.decode()

        assert await conversation.whole(run.state, 1, fetch) == (user_message("digest"),)
        assert await conversation.whole(run.state, 2, fetch) == (user_message("digest"), user_message("later"))

    play(scene())
