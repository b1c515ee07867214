"""The gateway: messages come in, loops are started, told and steered, and whatever cannot be is refused with a code."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import remit
from remit import ScriptedEngine
from remit.backend.clock import WallClock
from remit.core import record
from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.signing import Signer
from remit.core.journal.storage import StoreUnusable
from remit.core.run.inference import ModelRequest, ModelResult
from remit.core.run.lifecycle import AgentRole
from remit.inference.engine import StreamHandler
from remit.orchestrate.gateway.clerk import WireWork
from remit.orchestrate.gateway.folded_loops import FoldedLoops
from remit.orchestrate.gateway.gateway import TRIES_MAX, Gateway
from remit.orchestrate.gateway.teller import CURSORS_BUCKET
from remit.orchestrate.gateway.teller import TOLD as TOLD_CURSOR
from remit.orchestrate.gateway.told_mark import TOLD_HEADER, ToldCheck, ToldMark
from remit.wire.call_events import model_answered
from remit.wire.message_records import AgentIdentity, AgentResponse
from remit.wire.payloads import HandedMessage, PublishedMessage, posted
from remit.wire.subjects import LOOPS_BUCKET, TOLD, TRAJECTORIES_BUCKET
from tests.unit.orchestrate.paper_broker import MARK, RULES, PaperBroker, calls, gateway_on_paper, kit_of, serving

KEEP = ({"when": "Keep", **calls("keep", text="lamp")}, {"when": "kept lamp", "text": "It is kept."})


def played(story: Callable[[PaperBroker], Awaitable[None]], *replies: dict[str, Any]) -> None:
    async def main() -> None:
        async with gateway_on_paper(*replies) as broker:
            await story(broker)

    asyncio.run(main())


@pytest.mark.req("3.6", "3.12", "3.18", "3.25")
def test_a_task_becomes_a_loop_that_asks_is_approved_and_completes() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "Keep the word lamp.")
        prompt = await broker.said_under("user.response.cli.c1", type="prompt")
        loop_id = (await broker.said_under("agent.created."))["loop_id"]
        waiting = await broker.entity(loop_id, state="awaiting_approval")
        assert (waiting["task_id"], waiting["user_id"], waiting["channel_id"]) == ("t1", "ann", "c1")
        assert "state_before_pause" not in waiting, "it was not paused"
        broker.signal(loop_id, "pause", payload="lunch")
        paused = await broker.entity(loop_id, state="paused")
        assert (paused["pause_requested_by"], paused["state_before_pause"]) == ("ann", "awaiting_approval")
        broker.signal(loop_id, "resume")
        await broker.entity(loop_id, state="awaiting_approval")
        broker.signal(loop_id, "approve", user_id="bob", payload={"packet_id": prompt["actions"][0]["id"]})
        done = await broker.said_under(f"agent.complete.{loop_id}")
        assert (done["outcome"], done["result"], done["user_id"]) == ("success", "It is kept.", "ann")
        assert (await broker.said_under("user.response.cli.c1", type="result"))["content"] == "It is kept."
        assert (await broker.entity(loop_id, state="complete"))["result"] == "It is kept."
        answers = [one["status"] for one in broker.under("agent.response.")]
        assert answers == ["tool_call", "complete"]
        way = json.loads(await broker.until(lambda: broker.buckets.get((TRAJECTORIES_BUCKET, loop_id))))
        assert [step["step_type"] for step in way["steps"]] == ["model_call", "tool_call", "model_call"]
        assert set(broker.ended.values()) == {"done"}

    played(story, *KEEP)


@pytest.mark.req("3.26")
def test_a_task_that_names_a_loop_continues_it_and_one_that_comes_twice_starts_nothing() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "Say one.")
        first = await broker.said_under("agent.complete.")
        again = broker.task("t1", "Say one.")
        await broker.until(lambda: broker.ended.get(again))
        broker.task("t2", "And now?", loop_id=first["loop_id"])
        second = await broker.said_under("agent.complete.", task_id="t2")
        assert (second["result"], len(broker.under("agent.created."))) == ("two", 2)
        way = json.loads(await broker.until(lambda: broker.buckets.get((TRAJECTORIES_BUCKET, second["loop_id"]))))
        assert [one["content"] for one in way["steps"][0]["messages"]] == ["Say one.", "one", "And now?"]
        # What is named as the loop above it is there.
        broker.task("t4", "And now?", parent_loop_id=first["loop_id"])
        below = await broker.said_under("agent.complete.", task_id="t4")
        assert (await broker.entity(below["loop_id"], state="complete"))["parent_loop_id"] == first["loop_id"]
        foreign = broker.task("t3", "Mine?", loop_id=first["loop_id"], user_id="eve")
        await broker.until(lambda: broker.dead.get(foreign))
        assert broker.dead[foreign] == "WIRE_LOOP_UNKNOWN"

    played(story, {"when": "now", "text": "two"}, {"when": "Say one", "text": "one"})


@pytest.mark.req("3.20", "3.24")
def test_a_task_brings_context_tools_depth_and_a_model_that_this_worker_has() -> None:
    asked: list[ModelRequest] = []

    async def story(broker: PaperBroker) -> None:
        context = {"content": "The lamp is blue.", "token_count": 4, "sources": [{"type": "document", "id": "d1"}]}
        tools = [{"name": "keep", "description": "", "parameters": {"type": "object"}}]
        broker.task("t1", "What?", context=context, tools=tools, depth=1, max_depth=2, model="scripted", role="editor")
        done = await broker.said_under("agent.complete.")
        assert (done["role"], done["result"]) == ("editor", "It is blue.")
        entity = await broker.entity(done["loop_id"], state="complete")
        shown = [message.content for message in asked[0].messages]
        assert "Context (document d1):\nThe lamp is blue." in shown
        told = (await broker.said_under("agent.request."))["messages"]
        assert [one["content"] for one in told] == shown, "what the wire tells is what the model was asked"
        way = json.loads(await broker.until(lambda: broker.buckets.get((TRAJECTORIES_BUCKET, done["loop_id"]))))
        assert [one["content"] for one in way["steps"][0]["messages"]] == shown
        assert [tool.name for tool in asked[0].tools] == ["keep"]
        assert (entity["depth"], entity["max_depth"]) == (1, 2)
        other = broker.task("t2", "What?", model="gpt-0")
        await broker.until(lambda: broker.dead.get(other))
        assert broker.dead[other] == "WIRE_MODEL_UNKNOWN"
        refusal = await broker.said_under("user.response.cli.c1", type="error", in_reply_to="t2")
        assert "gpt-0" in refusal["content"]

    asyncio.run(_asked(story, asked, {"text": "It is blue."}))


async def _asked(
    story: Callable[[PaperBroker], Awaitable[None]], asked: list[ModelRequest], *replies: dict[str, Any]
) -> None:
    """Play a story, and note what the model is asked."""

    class Listening(ScriptedEngine):
        async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            asked.append(request)
            return await super().infer(request, on_chunk)

    async with remit.open(memory=True) as system:
        broker, kit = PaperBroker(), kit_of()
        kit = replace(kit, engines={"scripted": Listening(list(replies))})
        async with serving(system, broker, work=WireWork(kit, rules=RULES)):
            await story(broker)


@pytest.mark.req("3.11")
def test_what_breaks_a_rule_is_kept_as_a_dead_letter_with_its_code() -> None:
    async def story(broker: PaperBroker) -> None:
        sent = {
            broker.send("agent.task.t1", b"{nonsense"): "WIRE_MALFORMED",
            broker.send("agent.task.t1", {"task_id": "t2", "prompt": "x"}): "WIRE_SUBJECT_MISMATCH",
            broker.task("t3", ""): "WIRE_RULE_BROKEN",
            broker.task("t6", " \n\t"): "WIRE_RULE_BROKEN",
            broker.words("m1", "   "): "WIRE_RULE_BROKEN",
            broker.task("t7", "x", parent_loop_id="nobody"): "WIRE_LOOP_UNKNOWN",
            broker.task("t4", "x", metadata={"agentic": {"channel_type": "x"}}): "WIRE_METADATA_RESERVED",
            broker.task("t5", "x", channel_type="closed"): "CHANNEL_NOT_PERMITTED",
            broker.signal("nothing", "cancel"): "CHANNEL_LOOP_UNKNOWN",
            broker.send("agent.context.x", {"type": "gc_complete", "loop_id": "x"}): "WIRE_NOT_TAKEN",
        }
        await broker.until(lambda: len(broker.dead) == len(sent))
        assert broker.dead == sent
        assert not broker.under("agent.created.")

    played(story)


@pytest.mark.req("3.11", "3.18")
def test_who_breaks_a_rule_is_told_in_the_channel_that_the_message_names() -> None:
    async def story(broker: PaperBroker) -> None:
        here = {"channel_type": "cli", "channel_id": "c1", "user_id": "ann"}
        broker.task("t1", "")
        broker.task("t2", "x", metadata=7)
        broker.send("agent.task.t9", {"task_id": "t3", "prompt": "x", **here})
        broker.words("m1", "", channel="cli", channel_id="c1")
        broker.send("user.message.cli.c1", {**here, "message_id": "m2", "content": "Hello."})
        broker.send("agent.signal.loop", {**here, "signal_id": "s1", "type": "dance", "loop_id": "loop"})
        told = {"t1": "WIRE_RULE_BROKEN", "t2": "WIRE_SHAPE_WRONG", "t3": "WIRE_SUBJECT_MISMATCH"}
        told |= dict.fromkeys(("m1", "m2", "s1"), "WIRE_RULE_BROKEN")
        for name, code in told.items():
            answer = await broker.said_under("user.response.cli.c1", type="error", in_reply_to=name)
            assert answer["content"].startswith(code), answer
        # One that names no channel, or one that cannot be, is a dead letter alone, as is what only loops tell.
        nobody = broker.send("agent.task.t4", {"task_id": "t4", "prompt": ""})
        wrong = broker.task("t5", "", channel_id="c" * 1_000)
        forged = broker.send("agent.complete.x", here)
        for place in (nobody, wrong, forged):
            await broker.until(partial(broker.dead.get, place))
        assert len(broker.under("user.response.")) == len(told)
        nameless = broker.send("agent.task.t6", {**here, "prompt": "x"})
        await broker.said_under("user.response.cli.c1", type="error", in_reply_to=f"message-{nameless}")

    played(story)


@pytest.mark.req("3.18")
def test_a_message_becomes_a_loop_and_commands_look_at_it_and_end_it() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.words("m1", "Keep the word lamp.", thread_id="T7")
        prompt = await broker.said_under("user.response.chat.C1", type="prompt")
        assert (prompt["thread_id"], prompt["in_reply_to"]) == ("T7", "m1")
        broker.words("m2", "/loops", thread_id="T7")
        listed = await broker.said_under("user.response.chat.C1", type="text", in_reply_to="m2")
        assert "awaiting_approval, asks" in listed["content"]
        broker.words("m3", "/help")
        assert "/approve" in (await broker.said_under("user.response.chat.C1", in_reply_to="m3"))["content"]
        broker.words("m4", f"/approve {prompt['actions'][0]['id']}")
        refused = await broker.said_under("user.response.chat.C1", type="error", in_reply_to="m4")
        assert "CHANNEL_NOT_PERMITTED" in refused["content"]
        broker.words("m5", f"/cancel {prompt['actions'][0]['id'].split('/')[0]}", user_id="eve")
        refused = await broker.said_under("user.response.chat.C1", type="error", in_reply_to="m5")
        assert "CHANNEL_LOOP_UNKNOWN" in refused["content"]
        broker.words("m6", "/cancel enough", thread_id="T7")
        ended = await broker.said_under("agent.complete.")
        assert (ended["outcome"], ended["cancelled_by"]) == ("cancelled", "ann")
        broker.words("m7", "/loops", thread_id="T7")
        assert "no loop" in (await broker.said_under("user.response.chat.C1", in_reply_to="m7"))["content"]

    played(story, *KEEP)


def test_words_in_the_thread_answer_a_loop_that_asks_in_words() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.words("m1", "Ask me.", thread_id="T7")
        asked = await broker.said_under("user.response.chat.C1", type="prompt")
        assert (asked["content"], asked.get("actions")) == ("Which colour?", None)
        broker.words("m2", "blue", thread_id="T7")
        assert (await broker.said_under("agent.complete."))["result"] == "It is blue."

    played(
        story,
        {"when": "Ask me", **calls("ask_user", question="Which colour?")},
        {"when": "blue", "text": "It is blue."},
    )


def test_groups_reach_what_their_permissions_say_and_nobody_else_does() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "Keep the word lamp.", channel_type="closed", user_id="dora")
        loop_id = (await broker.said_under("agent.created."))["loop_id"]
        await broker.entity(loop_id, state="awaiting_approval")
        closed = {"channel_type": "closed"}
        eve = broker.signal(loop_id, "cancel", user_id="eve", **closed)
        feedback = broker.signal(loop_id, "feedback", user_id="carl", payload="more", **closed)
        own = broker.signal(loop_id, "approve", user_id="dora", **closed)
        bare = broker.send(f"agent.signal.{loop_id}", {"loop_id": loop_id, "type": "cancel"})
        await broker.until(lambda: len(broker.dead) == 4)
        assert (broker.dead[eve], broker.dead[feedback]) == ("CHANNEL_LOOP_UNKNOWN", "CHANNEL_LOOP_UNKNOWN")
        assert (broker.dead[own], broker.dead[bare]) == ("CHANNEL_NOT_PERMITTED", "WIRE_RULE_BROKEN")
        broker.signal(loop_id, "cancel", user_id="carl", **closed)
        assert (await broker.said_under("agent.complete."))["cancelled_by"] == "carl"

    played(story, *KEEP)


@pytest.mark.req("3.12")
def test_a_gateway_that_begins_again_goes_on_where_it_was_and_makes_lost_buckets_anew() -> None:
    async def main() -> None:
        async with remit.open(memory=True) as system:
            broker = PaperBroker()
            async with serving(system, broker, {"text": "done"}):
                broker.task("t1", "Do it.")
                loop_id = (await broker.said_under("agent.complete."))["loop_id"]
                await broker.entity(loop_id, state="complete")
                await broker.until(lambda: (CURSORS_BUCKET, TOLD_CURSOR) in broker.buckets)
            assert broker.is_closed
            kept = PaperBroker(dict(broker.buckets))
            async with serving(system, kept, {"text": "done"}) as gateway:
                assert (gateway.teller.rebuilt, kept.said) == (0, {})
            # What another client has put there is no note, wherever it says to begin.
            note = broker.buckets[CURSORS_BUCKET, TOLD_CURSOR]
            forged = note.replace(b"place:", b"place:1", 1)
            for cursor in (None, MARK.note("place:999999"), note.split()[0], forged, b"x \xff", note + b"0"):
                lost = PaperBroker({} if cursor is None else {(CURSORS_BUCKET, TOLD_CURSOR): cursor})
                async with serving(system, lost, {"text": "done"}) as gateway:
                    assert (gateway.teller.rebuilt, lost.said) == (1, {})
                    assert json.loads(lost.buckets[LOOPS_BUCKET, loop_id])["result"] == "done"
                    assert json.loads(lost.buckets[TRAJECTORIES_BUCKET, loop_id])["outcome"] == "success"

    asyncio.run(main())


def test_a_gateway_that_is_behind_tells_what_happened_meanwhile() -> None:
    async def main() -> None:
        async with remit.open(memory=True) as system:
            await system.run("Hello.", kit_of({"text": "first"}))
            broker = PaperBroker()
            async with serving(system, broker):
                pass
            response = await system.run("Hello.", kit_of({"text": "x" * 40_000}))
            async with serving(system, broker):
                done = await broker.said_under("agent.complete.")
                assert (done["loop_id"], len(done["result"])) == (response.run_id, 40_000)

    asyncio.run(main())


def test_what_fails_for_no_reason_of_its_own_is_tried_again_and_then_put_aside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(broker: PaperBroker) -> None:
        from remit.orchestrate.gateway import clerk

        def broken(error: Exception) -> Callable[..., Awaitable[None]]:
            async def fails(*_: object, **__: object) -> None:
                raise error

            return fails

        monkeypatch.setattr(clerk.Clerk, "carry_out", broken(StoreUnusable("STORE_UNREACHABLE", "away")))
        away = broker.task("t1", "x")
        await broker.until(lambda: broker.ended.get(away) == "later")
        monkeypatch.setattr(clerk.Clerk, "carry_out", broken(ZeroDivisionError("oh")))
        first = broker.task("t1", "x")
        await broker.until(lambda: broker.ended.get(first) == "later")
        last = broker.send("agent.task.t1", {"task_id": "t1", "prompt": "x"}, tries=TRIES_MAX)
        await broker.until(lambda: broker.dead.get(last))
        assert broker.dead[last] == "WIRE_UNDELIVERABLE"

    played(story)
    assert "ZeroDivisionError" in caplog.text


def test_a_run_that_cannot_be_told_keeps_the_others_from_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from remit.orchestrate.gateway import teller

    def refusing(*_: object, **__: object) -> None:
        raise RequestRejected("WIRE_RULE_BROKEN", "it is wrong")

    async def main() -> None:
        async with remit.open(memory=True) as system:
            broker = PaperBroker()
            work = WireWork(kit_of({"text": "one"}, {"text": "two"}), rules=RULES)
            async with serving(system, broker, work=work):
                with monkeypatch.context() as patch:
                    patch.setattr(teller, "loop_entity", refusing)
                    broker.task("t1", "x")
                    await broker.until(lambda: (CURSORS_BUCKET, TOLD_CURSOR) in broker.buckets)
                broker.task("t2", "x")
                done = await broker.said_under("agent.complete.", task_id="t2")
                await broker.entity(done["loop_id"], state="complete")

    asyncio.run(main())
    assert "cannot be told" in caplog.text


def test_what_could_not_be_told_while_the_broker_was_away_is_told_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from remit.orchestrate.gateway import gateway

    monkeypatch.setattr(gateway, "PAUSE_S", 0)

    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "First.")
        await broker.said_under("agent.complete.", task_id="t1")
        await broker.until(lambda: (CURSORS_BUCKET, TOLD_CURSOR) in broker.buckets)
        publish, failures = broker.publish, [StoreUnusable("STORE_UNREACHABLE", "away"), ZeroDivisionError("oh")]

        async def away(message: PublishedMessage, *, key: str, keep_s: int) -> None:
            if failures and message.subject.startswith("agent.complete."):
                raise failures.pop()
            await publish(message, key=key, keep_s=keep_s)

        monkeypatch.setattr(broker, "publish", away)
        broker.task("t2", "Second.")
        assert (await broker.said_under("agent.complete.", task_id="t2"))["result"] == "done"
        assert not failures

    played(story, {"text": "done"}, {"text": "done"})
    assert "begun again" in caplog.text


def test_a_loop_that_was_forgotten_is_folded_again_and_an_answer_of_nothing_is_an_error() -> None:
    async def main() -> None:
        async with remit.open(memory=True) as system:
            run_id = (await system.run("Hello.", kit_of({"text": "Hi."}))).run_id
            other = (await system.run("Hello.", kit_of({"text": "Hi."}))).run_id
            loops = FoldedLoops(system.store.journal, system.text, kept_max=1)
            for name in (run_id, other, run_id):
                loop, data = await loops.upto(name, 1)
                assert [turn.seq for turn in loop.folded(data)] == [0, 1]
            assert (await loops.upto(run_id, 0))[1] == []
            assert loops.at_hand(other) is None

    asyncio.run(main())
    assert model_answered(ModelAnswered("1.1"), "run").status == "error"


class Failing(ScriptedEngine):
    """A model that never answers."""

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        raise RequestRejected("INFERENCE_ENGINE_ERROR", "the engine is on fire")


@pytest.mark.req("3.2", "3.12")
def test_each_call_of_a_model_and_of_a_tool_is_told_with_what_came_of_it() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "Keep the word lamp.", metadata={"project": "blue"})
        prompt = await broker.said_under("user.response.cli.c1", type="prompt")
        loop_id = (await broker.said_under("agent.created."))["loop_id"]
        broker.signal(loop_id, "approve", user_id="bob", payload={"packet_id": prompt["actions"][0]["id"]})
        await broker.said_under(f"agent.complete.{loop_id}")
        requests, responses = broker.under("agent.request."), broker.under("agent.response.")
        assert [one["request_id"] for one in requests] == [one["request_id"] for one in responses]
        assert [one["content"] for one in requests[0]["messages"]] == ["Keep the word lamp."]
        assert "keep" in [one["name"] for one in requests[0]["tools"]]
        ((call,), (result,)) = broker.under("tool.execute.keep"), broker.under("tool.result.")
        assert (call["arguments"], call["metadata"]["project"]) == ({"text": "lamp"}, "blue")
        assert (result["call_id"], result["content"]) == (call["id"], "kept lamp")

    played(story, *KEEP)


@pytest.mark.req("3.2")
def test_a_model_call_that_fails_and_a_retry_of_its_loop_are_told_as_they_happen() -> None:
    async def main() -> None:
        async with remit.open(memory=True) as system:
            broker, kit = PaperBroker(), replace(kit_of(), engines={"scripted": Failing([{"text": "x"}])})
            async with serving(system, broker, work=WireWork(kit, rules=RULES)):
                broker.task("t1", "Say one.")
                ended = await broker.said_under("agent.complete.")
                failed = broker.under("agent.response.", status="error")
                assert failed
                assert all(one["error"].startswith("INFERENCE_ENGINE_ERROR: ") for one in failed)
                first = broker.under("agent.created.")
                told = len(broker.under("user.response.cli.c1"))
                broker.signal(ended["loop_id"], "retry", payload="again")
                await broker.until(lambda: len(broker.under("agent.complete.")) == 2)
                again = broker.under("agent.created.")[-1]
                assert again["loop_id"] != ended["loop_id"]
                assert again["created_at"] > first[0]["created_at"]
                assert len({one["request_id"] for one in broker.under("agent.request.")}) == len(
                    broker.under("agent.request.")
                )
                states = [one["content"] for one in broker.under("user.response.cli.c1", type="status")][:]
                assert len(broker.under("user.response.cli.c1")) > told
                assert "paused" not in states

    asyncio.run(main())


@pytest.mark.req("3.6")
def test_a_loop_shows_the_identity_of_the_role_that_it_has() -> None:
    async def main() -> None:
        async with remit.open(memory=True) as system:
            broker, work = PaperBroker(), WireWork(kit_of(), rules=RULES)
            gateway = Gateway(
                system,
                broker,
                work,
                clock=WallClock(),
                identities=lambda role: AgentIdentity(did="did:key:z", display_name=role),
            )
            await gateway.start()
            for role in AgentRole:
                broker.task(f"t-{role}", "Say it.", role=role.value)
            for role in AgentRole:
                done = await broker.said_under("agent.complete.", task_id=f"t-{role}")
                entity = await broker.entity(done["loop_id"], state="complete")
                assert (entity["role"], entity["identity"]["display_name"]) == (role, role)
            await gateway.close()

    asyncio.run(main())


@pytest.mark.req("3.12", "3.18")
def test_nobody_but_a_gateway_tells_what_becomes_of_loops() -> None:
    signer = Signer.generate()
    mark, other = ToldMark(signer), ToldMark(Signer.generate())
    said = posted(AgentResponse(request_id="r:1.0", status="error", error="no"))

    def handed(message: PublishedMessage) -> HandedMessage:
        return HandedMessage(subject=message.subject, data=message.data, headers=message.headers)

    own = mark.marked(said)
    assert mark.is_own(handed(own))
    assert ToldMark(Signer.generate(), lambda did: "" if did == signer.did else "SIGNER_UNKNOWN").is_own(handed(own))
    # A key of the deployment that was admitted for other things tells nothing.
    assert ToldCheck(lambda _: "CAPABILITY_LACKING").objection(handed(own)) == "CAPABILITY_LACKING"
    for forged in (
        said,
        other.marked(said),
        record.replace(own, data=own.data + b" "),
        record.replace(own, subject="agent.response.other"),
        record.replace(own, headers={**own.headers, "Agentic-Type": "agentic.request.v1"}),
        record.replace(own, headers={**own.headers, TOLD_HEADER: f"{signer.did} zz"}),
        record.replace(own, headers={**own.headers, TOLD_HEADER: f"{signer.did} é"}),
    ):
        assert not mark.is_own(handed(forged))

    async def story(broker: PaperBroker) -> None:
        places = [
            broker.send(subject, {"anything": family.value})
            for family in TOLD
            for subject in (family.value, f"{family.value}.x", f"{family.value}.x.y.z")
        ]
        for place in places:
            assert await broker.until(partial(broker.dead.get, place)) == "WIRE_NOT_TAKEN"
        deep = broker.send("agent.task.b.c", {"task_id": "b", "prompt": "x"})
        assert await broker.until(lambda: broker.dead.get(deep)) == "WIRE_SUBJECT_INVALID"

    played(story)


def test_an_id_is_its_senders_own_and_another_task_under_it_is_answered() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "Say one.", user_id="eve", channel_id="c9")
        await broker.said_under("agent.complete.", user_id="eve")
        broker.task("t1", "Say one.")
        mine = await broker.said_under("agent.complete.", user_id="ann")
        other = broker.task("t1", "And now?")
        await broker.until(lambda: broker.dead.get(other))
        assert broker.dead[other] == "WIRE_ID_TAKEN"
        refusal = await broker.said_under("user.response.cli.c1", type="error", in_reply_to="t1")
        assert mine["loop_id"] in refusal["content"]
        for user, words in (("eve", "Say one."), ("ann", "Say one.")):
            await broker.until(partial(broker.ended.get, broker.words("m1", words, user_id=user)))
        another = broker.words("m1", "And now?")
        await broker.until(lambda: broker.dead.get(another))
        assert broker.dead[another] == "WIRE_ID_TAKEN"
        await broker.until(lambda: len(broker.under("agent.created.")) == 4)

    played(story, {"when": "now", "text": "two"}, {"when": "Say one", "text": "one"})


@pytest.mark.req("3.24")
def test_the_depth_of_a_loop_follows_from_its_parent_which_is_its_users_own() -> None:
    async def story(broker: PaperBroker) -> None:
        broker.task("t0", "Say one.", max_depth=2)
        above = (await broker.said_under("agent.complete.", task_id="t0"))["loop_id"]
        for depth in (1, 2):
            broker.task(f"t{depth}", "Say one.", parent_loop_id=above)
            above = (await broker.said_under("agent.complete.", task_id=f"t{depth}"))["loop_id"]
            entity = await broker.entity(above, state="complete")
            assert (entity["depth"], entity["max_depth"]) == (depth, 2)
        for task_id, said, code in (
            ("t3", {}, "WIRE_RULE_BROKEN"),
            ("t4", {"max_depth": 9}, "WIRE_RULE_BROKEN"),
            ("t5", {"user_id": "eve"}, "WIRE_LOOP_UNKNOWN"),
        ):
            sent = broker.task(task_id, "Say one.", parent_loop_id=above, **said)
            await broker.until(partial(broker.dead.get, sent))
            assert broker.dead[sent] == code

    played(story, {"text": "one"})


@pytest.mark.req("3.4")
def test_what_the_wire_leaves_out_of_a_request_is_what_its_model_is_asked_with() -> None:
    asked: list[ModelRequest] = []

    async def story(broker: PaperBroker) -> None:
        broker.task("t1", "Say one.")
        await broker.said_under("agent.complete.")
        told = await broker.said_under("agent.request.")
        assert (told["temperature"], told["max_tokens"]) == (0.2, 4096)
        assert (asked[0].temperature, asked[0].max_tokens) == (0.2, 4096)

    asyncio.run(_asked(story, asked, {"text": "one"}))
