"""A guarded conversation from its host's side: who stops it is heard, what was not allowed is told, what was not made is free.

Everything comes from `remit`, as a developer who installed it writes it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import Principal, RemitError, RequestRejected, Scope, Signal, System, UserSignal

ANN = {"to": "ann@corp.example", "body": "The plan is ready."}
EVE = {"to": "eve@evil.example", "body": "The plan is ready."}
MAIL = {
    "name": "send_mail",
    "description": "Sends a mail.",
    "parameters": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
        "required": ["to", "body"],
    },
    "effect": "external",
    "control_args": {"to": "email"},
    "payload_args": ["body"],
    "asks": ["mail"],
    "repeat": "target",
}
NOTES = {"name": "read_notes", "description": "Reads notes.", "parameters": {"type": "object"}, "effect": "read"}
PROMPT = "Mail ann@corp.example that the plan is ready."
HEARD_WITHIN_S = 0.2
# On a busy machine one hearing in so many is as quick as all of them are on a quiet one.
TRIES_MAX = 5
Operation = dict[str, Any]


class Host:
    """An agent elsewhere, as it talks to a guard."""

    def __init__(self, system: System) -> None:
        self.system, self.guard = system, system.guard()

    async def say(self, op: str, run: str = "talk", **fields: Any) -> Operation:
        return await self.guard.answer({"op": op, "run": run, **fields}) or {}

    async def start(self, **more: Any) -> Operation:
        return await self.say("start", **{"prompt": PROMPT, "tools": [MAIL, NOTES], **more})

    async def mail(self, arguments: Operation, call_id: str = "c") -> Operation:
        return await self.say("call", id=call_id, tool="send_mail", args=arguments)

    async def sent(self, call_id: str = "c", **more: Any) -> Operation:
        return await self.say("result", id=call_id, tool="send_mail", **{"content": "sent", **more})

    async def yes(self, call_id: str = "c") -> Operation:
        return await self.say("answer", id=call_id, approve=True, by="ann")

    @property
    def run_id(self) -> str:
        return self.guard.run_id_of("talk")

    async def used(self, run_id: str, dimension: str) -> int:
        spent = (await self.system.archive.told(run_id)).explanation.spent
        # What a call in doubt holds counts as spent when its run has ended, by quotas too.
        return sum(one.used for one in spent if one.dimension == dimension)


Scene = Callable[[Host], Awaitable[None]]


def play(scene: Scene, path: Path | None = None) -> None:
    async def whole() -> None:
        async with remit.open(memory=True) if path is None else remit.open(path) as system:
            await scene(Host(system))

    asyncio.run(whole())


# Who stops it


HALTS = ["run", "tool", "tenant", "model", "everything"]


@pytest.mark.parametrize("kind", HALTS)
def test_no_answer_lets_a_call_be_made_that_is_halted(kind: str) -> None:
    async def scene(host: Host) -> None:
        await host.start(tenant="acme", model="gpt-9")
        assert (await host.mail(EVE))["decision"] == "ask"
        names = {"run": host.run_id, "tool": "send_mail", "tenant": "acme", "model": "gpt-9"}
        scope = {kind: names[kind]} if kind in names else {}
        await host.system.halt("stop", by="op", **scope)
        assert (await host.yes())["code"] == "HALTED"
        assert (await host.mail(ANN, "d"))["code"] == "HALTED"
        await host.system.lift(by="op", why="on", **scope)
        run_id = host.run_id
        assert await host.used(run_id, "side_effects") == 0
        assert (await host.mail(EVE))["decision"] == "ask", "it is still held"
        assert await host.yes() == {"ok": True}

    play(scene)


def test_a_no_is_heard_under_a_halt() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        await host.mail(EVE)
        await host.system.halt("stop", by="op")
        assert await host.say("answer", id="c", approve=False, by="ann") == {"ok": True}

    play(scene)


async def told(host: Host, system: System, kind: Signal) -> float:
    """How long an approver elsewhere waits until an idle host's guard has heard them."""
    asked = (await system.result(host.run_id)).waiting_for
    payload = {} if asked is None else {"packet_id": asked.packet_ids[0]}
    began = time.monotonic()
    await system.signal(UserSignal(f"s-{kind}", kind, host.run_id, "zoe", payload=payload))
    return time.monotonic() - began


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("kind", [Signal.APPROVE, Signal.REJECT, Signal.CANCEL, Signal.PAUSE])
def test_an_idle_host_hears_people_within_200_ms(kind: Signal, is_elsewhere: bool, tmp_path: Path) -> None:
    took_s: list[float] = []

    async def scene(host: Host) -> None:
        await host.start()
        await host.mail(EVE)
        async with remit.open(tmp_path / f"store{len(took_s)}") as other:
            took_s.append(await told(host, other if is_elsewhere else host.system, kind))
        after = await host.mail(EVE)
        expected = {Signal.APPROVE: "allow", Signal.PAUSE: "ask"}
        assert after["decision"] == expected.get(kind, "refuse")

    while not took_s or (took_s[-1] > HEARD_WITHIN_S and len(took_s) < TRIES_MAX):
        play(scene, tmp_path / f"store{len(took_s)}")
    assert took_s[-1] <= HEARD_WITHIN_S, took_s


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_handle_on_a_guarded_run_returns_when_its_answer_was_heard(verb: str, tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.start()
        await host.mail(EVE)
        run = await host.system.find(host.run_id)
        response = await asyncio.wait_for(getattr(run, verb)(by="zoe"), 20)
        assert response.waiting_for is None
        assert (await host.mail(EVE))["decision"] == ("allow" if verb == "approve" else "refuse")

    play(scene, tmp_path / "store")


# What was not allowed


async def asked(host: Host) -> None:
    assert (await host.mail(EVE))["decision"] == "ask"


async def refused(host: Host) -> None:
    assert (await host.mail({"to": 7, "body": ""}))["decision"] == "refuse"


async def rejected(host: Host) -> None:
    await host.mail(EVE)
    await host.say("answer", id="c", approve=False, by="ann")


async def never_proposed(host: Host) -> None:
    """Nothing was said of it."""


@pytest.mark.parametrize("before", [asked, refused, rejected, never_proposed])
@pytest.mark.parametrize("tool", ["send_mail", "rm_rf"])
@pytest.mark.parametrize("has_id", [True, False])
def test_an_effect_without_an_allow_is_told_counted_and_ends_the_run(
    before: Scene, tool: str, has_id: bool, tmp_path: Path
) -> None:
    async def scene(host: Host) -> None:
        await host.start()
        await before(host)
        run_id, named = host.run_id, {"id": "c"} if has_id else {}
        assert await host.say("result", tool=tool, content="it is done", **named) == {}
        stopped = await host.mail(ANN, "later")
        assert (stopped["code"], stopped["stop"]) == ("RUN_STOPPED", True)
        assert (await host.yes())["ok"] is False, "it is not made a second time"
        assert await host.say("end") == {"ok": True}
        response = await host.system.result(run_id)
        assert response.terminal_code == "UNSAFE_DETECTION"
        made = [call for call in response.tool_calls_made if call.code == "EFFECT_UNALLOWED"]
        assert [(call.name, call.status.value, call.result) for call in made] == [(tool, "observed", "it is done")]
        assert any(f"{tool} was made by the agent elsewhere without being allowed" in one for one in response.warnings)
        assert await host.used(run_id, "side_effects") == 1
        assert await host.used(run_id, "tool_calls") == 1
        seen = await host.system.archive.told(run_id)
        assert "without being allowed" in seen.explanation.standing.reason
        steps = [step for step in seen.reading.steps.values() if step.code == "EFFECT_UNALLOWED"]
        assert [(step.name, step.answered) for step in steps] == [(tool, "it is done")]
        assert (await host.system.archive.verify(run_id)).ok
        assert (await host.system.archive.replay(run_id)).verdict.value == "same"

    play(scene, tmp_path / "store")


def test_the_result_of_an_allowed_call_that_is_told_twice_is_no_effect_of_its_own() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        assert (await host.mail(ANN))["decision"] == "allow"
        for _ in range(2):
            assert await host.sent() == {}
        assert (await host.say("call", id="n", tool="read_notes", args={}))["decision"] == "allow"

    play(scene)


def test_that_nothing_was_done_and_what_was_read_are_no_effects() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        await host.mail(EVE)
        await host.sent(content="I did not dare", error=True, not_done=True)
        await host.say("result", tool="read_notes", content="a note")
        assert (await host.say("call", id="n", tool="read_notes", args={}))["decision"] == "allow"

    play(scene)


def test_an_effect_without_an_allow_is_told_of_a_run_that_was_stopped_before(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.start()
        run_id = host.run_id
        await host.mail(EVE)
        await told(host, host.system, Signal.CANCEL)
        assert await host.sent() == {}
        response = await host.system.result(run_id)
        assert response.terminal_code == "USER_CANCEL", "the ending stays"
        assert [call.code for call in response.tool_calls_made] == ["EFFECT_UNALLOWED"]
        assert (await host.system.archive.verify(run_id)).ok

    play(scene, tmp_path / "store")


# How it ends


def test_the_host_ends_a_paused_run_and_its_name_is_free_again() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        run_id = host.run_id
        await told(host, host.system, Signal.PAUSE)
        assert await host.say("end") == {"ok": True}
        assert (await host.system.archive.find(run_id)).ending == "SUCCESS"
        assert await host.start(prompt="Something else.") == {"ok": True}

    play(scene)


def test_a_yes_that_the_host_never_came_for_made_nothing_and_costs_nothing() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        run_id = host.run_id
        await host.mail(EVE)
        await told(host, host.system, Signal.APPROVE)
        assert await host.say("end") == {"ok": True}
        response = await host.system.result(run_id)
        assert (response.terminal_code, response.warnings) == (
            "PARTIAL_SUCCESS",
            ("not done: send_mail (approved and never made)",),
        )
        assert [(call.status.value, call.code) for call in response.tool_calls_made] == [("refused", "CALL_NOT_TAKEN")]
        assert await host.used(run_id, "side_effects") == await host.used(run_id, "tool_calls") == 0

    play(scene)


def test_an_allowed_effect_without_a_result_counts_as_spent_and_a_late_one_is_added(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.start()
        run_id = host.run_id
        assert (await host.mail(ANN))["decision"] == "allow"
        assert await host.say("end") == {"ok": True}
        assert await host.used(run_id, "side_effects") == 1
        assert await host.start(prompt="Something else.") == {"ok": True}, "a new run of the same name"
        assert await host.sent() == {}
        (call,) = (await host.system.result(run_id)).tool_calls_made
        assert (call.status.value, call.is_late, call.result) == ("observed", True, "sent")
        assert await host.used(run_id, "side_effects") == 1
        assert (await host.system.result(host.run_id)).tool_calls_made == ()

    play(scene, tmp_path / "store")


# What was not done


@pytest.mark.parametrize("repeat", ["target", "once", "free"])
@pytest.mark.parametrize(
    ("declared", "failed"), [({}, {"error": True, "not_done": True}), ({"idempotent": True}, {"error": True})]
)
def test_the_same_call_again_is_not_asked_where_the_first_did_nothing_or_may_be_repeated(
    repeat: str, declared: Operation, failed: Operation
) -> None:
    async def scene(host: Host) -> None:
        await host.start(tools=[{**MAIL, "repeat": repeat, **declared}])
        assert (await host.mail(ANN))["decision"] == "allow"
        await host.sent(content="mailbox is locked", **failed)
        assert (await host.mail(ANN, "d"))["decision"] == "allow"
        await host.sent("d")
        # Once it is done, the next one is a repetition, and so is another mail to the same address.
        other = {**ANN, "body": "Really."} if repeat != "free" else EVE
        assert (await host.mail(other, "e"))["decision"] == "ask"

    play(scene)


def test_what_may_have_been_done_under_a_key_is_repeated_as_it_was_and_not_otherwise() -> None:
    async def scene(host: Host) -> None:
        await host.start(tools=[{**MAIL, "idempotent": True}])
        await host.mail(ANN)
        await host.sent(content="connection reset", error=True)
        assert (await host.mail({**ANN, "body": "Really."}, "d"))["code"] == "REPEAT"

    play(scene)


def test_the_loop_states_of_a_conversation_that_was_paused_end_where_it_ended() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        await host.mail(EVE)
        run_id = host.run_id
        for kind in (Signal.PAUSE, Signal.REJECT):
            payload = {"packet_id": f"{run_id}/1.0"} if kind is Signal.REJECT else {}
            await host.system.signal(UserSignal(kind.value, kind, run_id, "ann", payload=payload))
            await host.guard.hear()
        told = await host.system.archive.told(run_id)
        assert [state.value for state in told.loop] == ["executing", "awaiting_approval", "paused"]
        await host.say("end")
        told = await host.system.archive.told(run_id)
        assert [state.value for state in told.loop] == ["executing", "awaiting_approval", "paused", "failed"]

    play(scene)


# Whose it is


def test_a_principal_guards_within_its_tenant_and_in_its_name() -> None:
    ada = Principal("acme", "ada", (Scope.START, Scope.READ, Scope.APPROVE))

    async def scene(host: Host) -> None:
        hers = Host(host.system.acting_for(ada))
        assert (await hers.start(tenant="globex"))["code"] == "PRINCIPAL_FOREIGN"
        assert (await hers.start(user="bob"))["code"] == "PRINCIPAL_FOREIGN"
        assert await hers.start() == {"ok": True}
        entry = await hers.system.archive.find(hers.run_id)
        assert (entry.listing.tenant_id, entry.listing.name) == ("acme", "talk")
        await hers.mail(EVE)
        assert (await hers.say("answer", id="c", approve=True, by="bob"))["code"] == "PRINCIPAL_FOREIGN"
        assert (await hers.say("answer", id="c", approve=True, by="ada"))["code"] == "SELF_APPROVAL"
        with pytest.raises(RequestRejected, match=r"runs\.start"):
            host.system.acting_for(Principal("acme", "eva", (Scope.READ,))).guard()
        starter = Host(host.system.acting_for(Principal("acme", "eva", (Scope.START,))))
        assert await starter.say("start", run="other", prompt=PROMPT, tools=[MAIL]) == {"ok": True}
        assert (await starter.say("call", run="other", id="c", tool="send_mail", args=EVE))["decision"] == "ask"
        unheard = await starter.say("answer", run="other", approve=True, by="eva")
        assert unheard["code"] == "SCOPE_LACKING"

    play(scene)


def test_one_guard_holds_the_same_name_for_two_tenants() -> None:
    async def scene(host: Host) -> None:
        for tenant in ("acme", "globex"):
            assert await host.start(tenant=tenant) == {"ok": True}
        assert (await host.mail(ANN))["code"] == "GUARD_RUN_AMBIGUOUS"
        first = await host.say("call", id="c", tool="send_mail", args=ANN, tenant="acme")
        assert first["decision"] == "allow"
        assert host.guard.run_id_of("talk", "acme") != host.guard.run_id_of("talk", "globex")
        assert await host.say("end", tenant="acme") == {"ok": True}
        assert (await host.mail(ANN))["decision"] == "allow", "only one is open now"

    play(scene)


@pytest.mark.parametrize("tenant", ["*", "acme.*", "a>", "a?", "a b"])
def test_no_tenant_has_a_name_that_stands_for_several(tenant: str) -> None:
    async def scene(host: Host) -> None:
        assert (await host.start(tenant=tenant))["code"] == "GUARD_OP_INVALID"
        request = remit.SystemRequest((remit.user_message("hi"),), tenant_id=tenant)
        with pytest.raises(RequestRejected, match="tenant"):
            await host.system.run(request, remit.kit_of(remit.ScriptedEngine([{"text": "ok"}])))
        with pytest.raises(RequestRejected, match="tenant"):
            await host.system.halt("stop", by="op", tenant=tenant)
        if tenant != "*":
            with pytest.raises(RequestRejected, match="tenant"):
                host.system.acting_for(Principal(tenant, "ada", (Scope.READ,)))

    play(scene)


def test_operations_of_one_guard_wait_for_each_other() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        verdicts = await asyncio.gather(*[host.mail(ANN, f"c{number}") for number in range(4)])
        assert [verdict["decision"] for verdict in verdicts] == ["allow", "ask", "ask", "ask"]

    play(scene)


def test_an_outcome_after_the_end_is_told_alike_by_every_view(tmp_path: Path) -> None:
    """Among them a failure, which says that nothing happened."""

    async def scene(host: Host) -> None:
        for content, status in (({"content": "sent"}, "observed"), ({"error": True, "content": "no line"}, "failed")):
            await host.start(prompt=f"{PROMPT} {status}")
            await host.mail(EVE)
            await host.yes()
            run_id = host.run_id
            assert (await host.system.execution(run_id)).mode == "guard"
            await host.say("end")
            await host.sent(not_done="error" in content, **content)
            (made,) = (await host.system.result(run_id)).tool_calls_made
            told = await host.system.archive.told(run_id)
            (step,) = [one for one in told.reading.steps.values() if one.name == "send_mail"]
            assert (made.status, step.status) == (status, status)

    play(scene, tmp_path)


def test_a_run_that_this_process_guards_is_not_driven_by_another() -> None:
    async def scene(host: Host) -> None:
        await host.start()
        with pytest.raises(RemitError) as refused:
            await host.system.resume(host.run_id)
        assert refused.value.code == "RUN_HELD"
        assert "in this process" in refused.value.message

    play(scene)


# What a person is told


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_held_call_is_shown_with_what_is_known_by_now(is_restarted: bool, tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.start()
        assert (await host.mail(EVE))["decision"] == "ask"
        await host.yes()
        first = await host.mail(EVE, "again")
        assert any("its outcome is not known" in reason for reason in first["reasons"])
        if is_restarted:
            await host.guard.close()
            host.guard = host.system.guard()
            assert (await host.start())["resumed"]
        await host.sent()
        asked = (await host.system.archive.approvals(run_id=host.run_id))[0]
        later = await host.mail(EVE, "again")
        for reasons in (asked.reasons, later["reasons"]):
            assert not any("its outcome is not known" in reason for reason in reasons)
            assert any("returned and was not verified" in reason for reason in reasons)
        assert later["packet"] != first["packet"], "other reasons are another packet"
        told = {"reasons": (), "packet": ""}
        assert {**later, **told} == {**first, **told}, "it is the same call"
        assert await host.used(host.run_id, "human_reviews") == 2 + is_restarted, (
            "what became of the first is asked, too"
        )
        assert await host.yes("again") == {"ok": True}

    play(scene, tmp_path / "store")
