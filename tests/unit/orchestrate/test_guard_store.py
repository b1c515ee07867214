"""A guard on a store: its runs are listed, gone on with by their name, answered from elsewhere, within quotas and queues."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.failure import ArrivalFault, Ending, RequestRejected
from remit.core.journal.arrivals import CancelRequested, PauseRequested
from remit.core.journal.codec import encode_signal
from remit.core.limits.budget import Budget
from remit.core.limits.escalation import QUEUES
from remit.core.limits.queue import QueueLimits
from remit.core.limits.quota import QUOTA_EXHAUSTED, Period, Quota
from remit.core.record import JsonObject
from remit.core.run.signals import Signal, UserSignal, packet_id
from remit.kernel.state import questions
from remit.orchestrate.facade import System
from remit.orchestrate.facts.gate_facts import RESULT_LOST
from remit.orchestrate.guard.begin_run import GUARD_RUN_DIFFERS, GUARD_RUN_OPEN
from remit.orchestrate.guard.guard import GUARD_RUN_BROKEN, Guard
from remit.orchestrate.guard.shown_verdicts import RUN_STOPPED
from remit.orchestrate.history.fork_run import FORK_INVALID
from remit.orchestrate.history.replay import AuditVerdict
from remit.orchestrate.people.queues import QUEUE_FOREIGN
from tests.unit.orchestrate.test_guarding import BOB, DELETE, EVE, FIND, MAIL, PROMPT

START: JsonObject = {"op": "start", "run": "talk 1", "prompt": PROMPT, "tools": [MAIL, FIND, DELETE], "tenant": "acme"}
KEY = "ghp" + "_" + "Ab1" * 12


class Talk:
    """A guard on a store, as a host talks to it."""

    def __init__(self, system: System) -> None:
        self.system, self.guard = system, system.guard()

    async def say(self, op: str, **fields: Any) -> JsonObject:
        return await self.guard.answer({"op": op, "run": START["run"], **fields}) or {}

    async def mail(self, to: str = BOB, call_id: str = "c") -> JsonObject:
        return await self.say("call", id=call_id, tool="send_mail", args={"to": to, "body": "The plan is ready."})

    async def start(self, **other: Any) -> JsonObject:
        return await self.guard.answer({**START, **other}) or {}

    @property
    def run_id(self) -> str:
        return self.guard.run_id_of(START["run"])

    async def crash(self) -> "Talk":
        """The same store, after the process that drove its runs is gone."""
        await self.guard.close()
        return Talk(self.system)

    async def signal(self, kind: Signal, call_id: str = "") -> None:
        """What a person says to the run from elsewhere, heard by this guard."""
        state = (await self.system._runner.load(self.run_id)).state
        payload: JsonObject = {}
        for question in questions(state):
            if question.packet is not None and question.packet.call.call_id == call_id:
                payload = {"packet_id": packet_id(self.run_id, question.id)}
        signal = UserSignal("s", kind, self.run_id, "ann", payload=payload)
        number = await self.system.store.inbox.put(self.run_id, encode_signal(signal))
        await self.guard.hear()
        assert await self.system.store.inbox.outcome(number) is not None


Scene = Callable[[Talk], Awaitable[None]]


def play(scene: Scene, **parts: Any) -> None:
    async def whole() -> None:
        system = system_on(MemoryStore(), **parts)
        try:
            await scene(Talk(system))
        finally:
            await system.close()

    asyncio.run(whole())


def test_a_run_is_listed_by_the_name_of_its_host_and_its_turns_are_decided_alike_again() -> None:
    async def scene(talk: Talk) -> None:
        assert await talk.start() == {"ok": True}
        await talk.mail()
        await talk.say("result", id="c", tool="send_mail", content="sent")
        await talk.say("result", tool="find_files", content="x" * 5_000)
        await talk.say("result", tool="find_files", content={1, 2})
        assert (await talk.mail(EVE, "d"))["code"] == "PROVENANCE_UNBOUND"
        assert (await talk.mail(BOB, "e"))["decision"] == "ask"
        for call_id, approve in (("d", False), ("e", True)):
            assert await talk.say("answer", id=call_id, approve=approve, by="ann", scope="value") == {"ok": True}
        await talk.say("call", tool="send_mail", args=7)
        run_id = talk.run_id
        assert await talk.say("end") == {"ok": True}
        entry = await talk.system.store.catalogue.entry(run_id)
        assert entry is not None
        listing = entry.listing
        assert (listing.name, listing.mode, listing.tenant_id) == (START["run"], "guard", "acme")
        audited = await talk.system.archive.replay(run_id)
        assert (audited.verdict, audited.difference) == (AuditVerdict.SAME, None)

    play(scene)


def test_who_starts_the_same_again_goes_on_where_the_journal_ends() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        await talk.say("call", id="f", tool="find_files", args={"name": "plan"})
        await talk.mail(BOB, "made")
        shown = await talk.mail(EVE, "held")
        run_id = talk.run_id
        again = await talk.crash()
        assert await again.start() == {"ok": True, "resumed": True}
        assert again.run_id == run_id
        assert await again.mail(EVE, "held") == shown, "it is still held, for the same reasons"
        assert (await again.mail(BOB, "twice"))["decision"] == "ask", "it is unknown whether it was made"
        await again.say("result", id="made", tool="send_mail", content="sent")
        state = (await again.system._runner.load(run_id)).state
        assert state.commands.doubted == {}, "its late result says so"
        assert [call.call_id for call in state.calls.made.values() if not call.rung.startswith("o")] == ["f"]
        assert (await again.start())["code"] == GUARD_RUN_OPEN
        assert (await Talk(again.system).start())["code"] == "RUN_HELD"

    play(scene)


@pytest.mark.parametrize(
    ("other", "unlike"),
    [
        ({"prompt": "Mail nobody."}, "request"),
        ({"tools": [MAIL]}, "tools"),
        ({"boundary": "standard"}, "boundary"),
        ({"user": "cleo"}, "request"),
        ({"role": "reviewer"}, "role"),
        ({"read": ["secret"]}, "read"),
        ({"plan": {"send_mail": 1}}, "host"),
    ],
)
def test_who_declares_something_else_is_refused_by_what_differs(other: JsonObject, unlike: str) -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        again = await talk.crash()
        refused = await again.start(**other)
        assert (refused["ok"], refused["code"]) == (False, GUARD_RUN_DIFFERS)
        assert unlike in refused["message"]
        assert await again.start() == {"ok": True, "resumed": True}, "it is not held"

    play(scene)


def test_a_name_belongs_to_a_tenant_and_is_free_again_when_its_run_has_ended() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        again = await talk.crash()
        assert await again.start(tenant="other") == {"ok": True}
        await again.say("end")
        assert await again.start() == {"ok": True, "resumed": True}
        await again.say("end")
        assert await again.start(prompt="Mail nobody.") == {"ok": True}

    play(scene)


def test_what_is_approved_elsewhere_is_allowed_once_when_it_is_proposed_again() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start(boundary={"authority": {"tripwire": False}})
        await talk.mail(EVE, "c")
        await talk.signal(Signal.APPROVE, "c")
        assert (await talk.say("answer", id="c", approve=True, by="bea"))["code"] == "QUESTION_SETTLED"
        assert (await talk.mail(EVE, "other id"))["decision"] == "allow"
        assert (await talk.mail(EVE, "once more"))["decision"] == "ask"
        await talk.say("result", id="other id", tool="send_mail", content="sent")
        await talk.signal(Signal.REJECT, "once more")
        refused = await talk.mail(EVE, "again")
        assert refused["reasons"] == ["ann said no to exactly this call"]

    play(scene)


def test_an_approval_given_while_nobody_drives_the_run_holds_and_is_in_no_doubt() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        await talk.mail(EVE, "c")
        run_id = talk.run_id
        again = await talk.crash()
        (question,) = questions((await again.system._runner.load(run_id)).state)
        said = {"packet_id": packet_id(run_id, question.id)}
        await again.system.signal(UserSignal("s", Signal.APPROVE, run_id, "ann", payload=said))
        await again.system.settle()
        again = await again.crash()
        assert await again.start() == {"ok": True, "resumed": True}
        assert (await again.system._runner.load(run_id)).state.commands.doubted == {}
        assert (await again.mail(EVE, "d"))["decision"] == "allow"

    play(scene)


@pytest.mark.parametrize("halted", [{}, {"tool": "send_mail"}, {"tenant": "acme"}, {"run": START["run"]}])
@pytest.mark.parametrize("is_host_there", [True, False])
def test_a_yes_from_elsewhere_under_a_halt_is_refused_with_its_code_and_holds_once_it_is_lifted(
    halted: dict[str, str], is_host_there: bool
) -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        await talk.mail(EVE, "c")
        run_id, again = talk.run_id, talk if is_host_there else await talk.crash()
        handle = await talk.system.find(run_id)
        turns = len((await talk.system.archive.history(run_id)).turns)
        await talk.system.halt("too hot", by="ann", **halted)
        with pytest.raises(RequestRejected, match="HALTED"):
            await handle.approve(by="ann")
        assert len((await talk.system.archive.history(run_id)).turns) == turns
        await talk.system.lift(by="ann", **halted)
        await handle.approve(by="ann")
        if not is_host_there:
            assert await again.start() == {"ok": True, "resumed": True}
        assert (await again.mail(EVE, "d"))["decision"] == "allow"

    play(scene)


def test_under_a_halt_a_no_is_heard_and_so_is_what_became_of_a_call() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start(boundary={"authority": {"tripwire": False}})
        await talk.mail(BOB, "made")
        await talk.mail(EVE, "held")
        again = await talk.crash()
        await again.start(boundary={"authority": {"tripwire": False}})
        await again.system.halt("too hot", by="ann")
        handle = await again.system.find(again.run_id)
        for asked in await again.system.archive.approvals(again.run_id):
            await (handle.approve if asked.purpose == "outcome" else handle.reject)(asked.id, by="ann")
        assert await again.system.archive.approvals(again.run_id) == []

    play(scene)


@pytest.mark.parametrize("body", ["Shorter.", "Long. " * 2_000])
def test_arguments_that_a_person_changed_reach_the_host_that_proposes_the_call_again(body: str) -> None:
    async def scene(talk: Talk) -> None:
        await talk.start(boundary={"authority": {"tripwire": False}})
        await talk.mail(EVE, "c")
        changed = {"to": BOB, "body": body}
        await (await talk.system.find(talk.run_id)).approve(by="ann", arguments=changed)
        allowed = await talk.mail(EVE, "d")
        assert (allowed["decision"], allowed["arguments"]) == ("allow", changed)
        assert allowed["reasons"] == ["ann changed the arguments; call it with those in `arguments`"]
        await talk.say("result", id="d", tool="send_mail", content="sent")
        # A yes is good for one call, under either arguments.
        assert (await talk.mail(EVE, "e"))["decision"] == "ask"
        run_id = talk.run_id
        await talk.say("end")
        audit = await talk.system.archive.replay(run_id)
        assert audit.verdict is AuditVerdict.SAME

    play(scene)


def test_a_host_that_proposes_the_changed_call_itself_needs_no_arguments() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start(boundary={"authority": {"tripwire": False}})
        await talk.mail(EVE, "c")
        changed = {"to": BOB, "body": "Shorter."}
        await (await talk.system.find(talk.run_id)).approve(by="ann", arguments=changed)
        allowed = await talk.say("call", id="d", tool="send_mail", args=changed)
        assert (allowed["decision"], "arguments" in allowed) == ("allow", False)

    play(scene)


def test_the_protocol_hears_changed_arguments_too_and_says_which_to_call_with() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start(boundary={"authority": {"tripwire": False}})
        await talk.mail(EVE, "c")
        changed = {"to": BOB, "body": KEY}
        for wrong in ({"approve": False, "arguments": changed}, {"approve": True, "arguments": "to Bob"}):
            assert (await talk.say("answer", id="c", by="ann", **wrong))["code"] == "GUARD_OP_INVALID"
        unfit = await talk.say("answer", id="c", approve=True, by="ann", arguments={"to": 7})
        assert unfit["code"] == ArrivalFault.WRONG_PACKET
        # What was sealed before it was written is given back to the host that makes the call.
        answer = await talk.say("answer", id="c", approve=True, by="ann", arguments=changed)
        assert answer == {"ok": True, "arguments": changed}

    play(scene)


def test_closing_ends_although_the_inbox_is_rung_at_the_same_moment() -> None:
    async def scene(rings: int) -> None:
        system = system_on(MemoryStore())
        await Talk(system).start()
        await asyncio.sleep(0)
        for rung in system._post._ears:
            rung.set()
        for _ in range(rings):
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await system.close()

    for rings in range(5):
        asyncio.run(scene(rings))


def test_a_result_that_was_lost_stays_lost_after_a_crash() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        await talk.guard.too_long(b'{"op":"result","run":"talk 1","content":"x')
        again = await talk.crash()
        await again.start()
        assert (await again.mail())["code"] == RESULT_LOST

    play(scene)


def test_a_run_that_a_person_paused_or_cancelled_says_so() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        await talk.system._runner.rule_on(talk.guard._runs.run(START["run"]).live, PauseRequested("ann"))
        assert (await talk.mail())["code"] == ArrivalFault.PAUSED
        await talk.system._runner.rule_on(talk.guard._runs.run(START["run"]).live, CancelRequested("ann"))
        stopped = await talk.mail()
        assert (stopped["decision"], stopped["code"], stopped["stop"]) == ("refuse", RUN_STOPPED, True)
        assert await talk.say("result", id="c", tool="send_mail", content="sent") == {}
        assert await talk.say("end") == {"ok": True}

    play(scene)


def test_quotas_and_queues_hold_for_guarded_runs() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        assert (await talk.mail(EVE))["decision"] == "ask"
        assert (await talk.say("answer", id="c", approve=True, by="ann"))["code"] == QUEUE_FOREIGN
        assert await talk.say("answer", id="c", approve=True, by="bea") == {"ok": True}
        exhausted = await talk.start(run="two")
        assert exhausted["code"] == QUOTA_EXHAUSTED

    queues = [QueueLimits(name, answered_by=("bea",)) for name in QUEUES]
    play(scene, quotas=[Quota("acme", Period.DAY, Budget(steps=1))], queues=queues)


def test_a_secret_is_sealed_in_the_journal_and_given_back_to_the_host_that_makes_the_call() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start(prompt="Delete the file plan.txt.")
        await talk.say("call", id="f", tool="find_files", args={"name": "plan.txt"})
        found = [{"id": KEY, "filename": "plan.txt", "note": ""}]
        await talk.say("result", id="f", tool="find_files", content=found)
        verdict = await talk.say("call", id="d", tool="delete_file", args={"file_id": "$obs0.records[0].id"})
        assert verdict["arguments"] == {"file_id": KEY}
        journal = b"".join(await talk.system.store.journal.read(talk.run_id))
        assert KEY.encode() not in journal

    play(scene)


def test_a_guarded_run_is_not_forked() -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()
        run_id = talk.run_id
        with pytest.raises(RequestRejected) as refused:
            await talk.system.fork(run_id, by="ann")
        assert refused.value.code == FORK_INVALID
        await talk.say("end")
        assert (await talk.system.result(run_id)).terminal_code is Ending.SUCCESS

    play(scene)


def test_a_journal_that_cannot_be_written_breaks_the_run_for_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(talk: Talk) -> None:
        await talk.start()

        async def refuse(*_: Any, **__: Any) -> None:
            raise RequestRejected("STORE_FULL", "no room")

        with monkeypatch.context() as broken:
            broken.setattr(talk.system._runner.journal, "append", refuse)
            assert (await talk.mail())["code"] == "STORE_FULL"
            assert (await talk.say("result", tool="find_files", content="x"))["code"] == "STORE_FULL"
        assert (await talk.mail())["code"] == GUARD_RUN_BROKEN
        assert isinstance(talk.guard, Guard)

    play(scene)
