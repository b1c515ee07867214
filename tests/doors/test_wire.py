"""A run from the wire and back: who knows JSON and the shapes of the messages starts, answers, watches and continues it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import remit
from remit import Kit, Registry, RequestRejected, ScriptedEngine, System, Terms, tool
from remit.core.record import Record
from remit.core.run.principal import Principal
from remit.kernel.state import RunState, pinned
from remit.observe.linked_turns import states
from remit.observe.reading import Reading
from remit.tool.builtin.ask_person import people_tools
from remit.wire.channels import ChannelDesk, LoopCard, Permissions, Submit, Tell, card_of, principal_of
from remit.wire.inbound import PrebuiltContext, signal_of, start_of_task
from remit.wire.message_records import UserMessage
from remit.wire.payloads import delivered, posted, written
from remit.wire.projections import loop_entity, trajectory_of, turn_messages
from remit.wire.replies import destination_of, reply_of
from tests.doors.desk import call

PERMISSIONS = Permissions(approve=("bob",))


def is_kept(arguments: dict[str, Any], result: str) -> bool:
    """Whether a text was kept."""
    return str(arguments["text"]) in result


@tool(effect="write", network=False, verify=is_kept)
def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


class Worker:
    """What a worker does with messages of a channel, without a broker: bytes come in, and bytes go out."""

    def __init__(self, system: System, *replies: dict[str, Any]) -> None:
        self.system, self.engine = system, ScriptedEngine([*replies])
        self.cards: dict[str, LoopCard] = {}
        self.states: dict[str, RunState] = {}
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def hear(self, **said: Any) -> str:
        """Carry out what a message means, in the name of its sender; gives the loop that it is about."""
        base = {"message_id": "m1", "channel_type": "slack", "channel_id": "C1", "thread_id": "T7", "user_id": "ann"}
        data = json.dumps({**base, "timestamp": "2026-03-13T10:11:12Z", **said}).encode()
        message = delivered("user.message.slack.C1", data)
        assert isinstance(message, UserMessage)
        meaning = ChannelDesk(permissions=PERMISSIONS, loops=tuple(self.cards.values())).meaning_of(message)
        acting = self.system.acting_for(principal_of(PERMISSIONS, message, meaning, tenant_id="acme"))
        if isinstance(meaning, Submit):
            loop_id = await self._started(acting, meaning)
        else:
            assert isinstance(meaning, Tell)
            loop_id = meaning.signal.loop_id
            pending = self.cards[loop_id].pending
            await acting.signal(signal_of(meaning.signal, sender=message.user_id, pending=pending))
        await self._tell(loop_id)
        return loop_id

    async def _started(self, acting: System, meaning: Submit) -> str:
        order = start_of_task(
            meaning.task, session_id=meaning.session_id, thread_id=meaning.thread_id, message_id=meaning.message_id
        )
        context = None if order.context is None else PrebuiltContext(order.context)
        kit = Kit({"scripted": self.engine}, Registry([keep, *people_tools()]), context=context)
        return await acting.submit(order.request, kit, Terms(role=order.role, budget=order.budget))

    async def _tell(self, loop_id: str) -> None:
        """Publish what every turn of a loop says, its reply, and its entries in the buckets."""
        await self.system.settle(loop_id)
        reading, told, state = Reading(), list[Record](), RunState()
        for turn, state in states(await self.system.archive.history(loop_id)):
            reading.take(turn)
            told += turn_messages(turn, state, reading)
        to = destination_of(pinned(state).request, loop_id, pinned(state).principal)
        assert to is not None
        told.append(reply_of(await self.system.result(loop_id), to, at_ms=state.at_ms))
        self.cards[loop_id], self.states[loop_id] = card_of(state), state
        posts = [posted(message) for message in told]
        self.sent = [(post.subject, json.loads(post.data)) for post in posts]
        self.sent.append(("AGENT_LOOPS", json.loads(written(loop_entity(state, reading)))))
        self.sent.append(("AGENT_TRAJECTORIES", json.loads(written(trajectory_of(state, reading, is_full=True)))))

    def last(self, subject: str) -> dict[str, Any]:
        """The newest message under a subject."""
        return [value for name, value in self.sent if name.startswith(subject)][-1]


def played(story: Callable[[Worker], Awaitable[None]], *replies: dict[str, Any]) -> None:
    async def main() -> None:
        async with remit.open(memory=True) as system:
            await story(Worker(system, *replies))

    asyncio.run(main())


@pytest.mark.req("3.18", "3.26")
def test_a_message_becomes_a_loop_that_asks_is_answered_completes_and_is_continued() -> None:
    async def story(worker: Worker) -> None:
        loop_id = await worker.hear(content="Keep the word lamp.")
        asked = worker.last("user.response.slack.C1")
        assert (asked["type"], asked["thread_id"], asked["in_reply_to"], asked["user_id"]) == (
            "prompt",
            "T7",
            "m1",
            "ann",
        )
        assert [action["signal"] for action in asked["actions"]] == ["approve", "reject"]
        loop = worker.last("AGENT_LOOPS")
        assert (loop["state"], loop["channel_id"], loop["task_id"]) == ("awaiting_approval", "C1", "m1")
        assert worker.last("agent.created")["loop_id"] == loop_id

        with pytest.raises(RequestRejected, match="CHANNEL_NOT_PERMITTED"):
            await worker.hear(content=f"/approve {asked['actions'][0]['id']}")
        await worker.hear(content=f"/approve {asked['actions'][0]['id']}", user_id="bob", message_id="m2")
        done = worker.last(f"agent.complete.{loop_id}")
        assert (done["outcome"], done["result"], done["channel_type"]) == ("success", "It is kept.", "slack")
        reply = worker.last("user.response.slack.C1")
        assert (reply["type"], reply["content"], reply["user_id"]) == ("result", "It is kept.", "ann")
        steps = worker.last("AGENT_TRAJECTORIES")["steps"]
        assert [step["step_type"] for step in steps] == ["model_call", "tool_call", "model_call"]
        assert steps[1]["tool_result"] == "kept lamp"

        following = await worker.hear(content="What did I ask for?", message_id="m3")
        assert following != loop_id
        assert worker.cards[following].session_id == worker.cards[loop_id].session_id
        shown = worker.last("AGENT_TRAJECTORIES")["steps"][0]["messages"]
        assert [message["content"] for message in shown] == [
            "Keep the word lamp.",
            "It is kept.",
            "What did I ask for?",
        ]

    played(
        story,
        {"when": "Keep", **call("keep", text="lamp")},
        {"when": "kept lamp", "text": "It is kept."},
        {"text": "A lamp."},
    )


@pytest.mark.req("3.26")
def test_words_in_the_thread_answer_what_a_loop_asks_in_words_and_need_no_right_to_approve() -> None:
    async def story(worker: Worker) -> None:
        loop_id = await worker.hear(content="Where is my order?")
        asked = worker.last("user.response")
        assert (asked["type"], asked["content"]) == ("prompt", "Which order?")
        assert "actions" not in asked
        assert worker.last("AGENT_LOOPS")["state"] == "paused"
        assert await worker.hear(content="Number 42.", message_id="m2") == loop_id
        assert worker.last("agent.complete")["result"] == "On its way."

    played(story, call("ask_user", question="Which order?"), {"text": "On its way."})


@pytest.mark.req("3.25")
def test_a_loop_that_waits_is_cancelled_by_who_started_it_and_nobody_else() -> None:
    async def story(worker: Worker) -> None:
        loop_id = await worker.hear(content="Keep the word lamp.")
        with pytest.raises(RequestRejected, match="CHANNEL_LOOP_UNKNOWN"):
            await worker.hear(content=f"/cancel {loop_id}", user_id="eve", message_id="m2")
        await worker.hear(content="/cancel it is not needed", message_id="m3")
        ended = worker.last(f"agent.complete.{loop_id}")
        assert (ended["outcome"], ended["cancelled_by"]) == ("cancelled", "ann")
        loop = worker.last("AGENT_LOOPS")
        assert (loop["state"], loop["cancelled_by"], loop["cancelled_at"]) == (
            "cancelled",
            "ann",
            ended["cancelled_at"],
        )
        assert worker.last("user.response")["type"] == "status"

    played(story, call("keep", text="lamp"))


@pytest.mark.req("3.28")
def test_what_is_attached_is_shown_to_the_model_and_is_no_word_of_the_user() -> None:
    async def story(worker: Worker) -> None:
        attached = [{"type": "code", "name": "a.py", "content": "print('lamp')"}]
        loop_id = await worker.hear(content="What does it print?", attachments=attached)
        assert worker.last("agent.complete")["result"] == "lamp"
        state = worker.states[loop_id]
        assert "print('lamp')" in str(state.talk.ephemeral)
        assert [message.content for message in pinned(state).request.messages] == ["What does it print?"]

    played(story, {"text": "lamp"})


def test_another_tenant_sees_nothing_of_a_loop() -> None:
    async def story(worker: Worker) -> None:
        loop_id = await worker.hear(content="Say hello.")
        other = worker.system.acting_for(Principal("globex", "ann", ("runs.read",)))
        with pytest.raises(RequestRejected):
            await other.result(loop_id)

    played(story, {"text": "hello"})
