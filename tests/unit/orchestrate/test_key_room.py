"""The keys room: whom a deployment believes, what each may send, and who is believed nothing any more."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import remit
from remit.backend.clock import WallClock
from remit.core.failure import RequestRejected
from remit.core.journal.codec import encode_record
from remit.core.journal.signing import Signer
from remit.core.journal.storage import StoreUnusable
from remit.orchestrate.gateway.clerk import WireWork
from remit.orchestrate.gateway.gateway import Gateway
from remit.orchestrate.gateway.key_room import FRESH_MS, ROLES, STALE_MS_MAX, KeyRoom, SealedLine, account_text
from remit.wire.credentials import KeyEntry, issue, revoke
from remit.wire.payloads import HandedMessage
from tests.unit.orchestrate.paper_broker import RULES, PaperBroker, kit_of


class PaperShelf:
    """Keeps entries on paper."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.is_away = False

    async def keep(self, name: str, data: bytes) -> None:
        self.entries[name] = data

    async def kept(self) -> list[bytes]:
        if self.is_away:
            raise StoreUnusable("STORE_UNREACHABLE", "away")
        return list(self.entries.values())


class Ticking:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at_ms = WallClock().now_ms()

    def now_ms(self) -> int:
        return self.at_ms

    async def wait_until(self, at_ms: int) -> None:
        raise AssertionError("nothing waits here")


class Deployment:
    """A root, a worker, and what lies between them."""

    def __init__(self) -> None:
        self.shelf, self.clock, self.root, self.worker = PaperShelf(), Ticking(), Signer.generate(), Signer.generate()
        self.room = KeyRoom(self.shelf, self.root, self.clock)
        self.theirs = KeyRoom(self.shelf, self.worker, self.clock, self.root.did)
        self.line = SealedLine(self.room, self.root, self.clock, "default")
        self.sender = SealedLine(self.theirs, self.worker, self.clock, "default")

    def later(self, ms: int = FRESH_MS) -> None:
        self.clock.at_ms += ms

    async def refused(self, subject: str, body: bytes, headers: dict[str, str]) -> str:
        with pytest.raises(RequestRejected) as refusal:
            await self.line.check(subject, body, headers)
        return refusal.value.code


def played(story: Callable[[Deployment], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story(Deployment()))


@pytest.mark.req("3.27")
def test_what_an_admitted_key_signs_is_believed_once_and_within_what_it_may_send() -> None:
    async def story(house: Deployment) -> None:
        sealed = house.sender.sign("agent.task.t1", b"{}")
        assert await house.refused("agent.task.t1", b"{}", sealed) == "ENVELOPE_SENDER_UNKNOWN"
        await house.room.admit(house.worker.did, may=ROLES["agent"], tenant="default", name="desk")
        house.later()
        opened = await house.line.check("agent.task.t1", b"{}", sealed)
        assert (opened.seal.sender, opened.capability.tenant) == (house.worker.did, "default")
        assert await house.refused("agent.task.t1", b"{}", sealed) == "ENVELOPE_REPLAYED"
        assert (await house.line.check("agent.task.t1", b"{}", sealed, is_redelivery=True)).is_again
        assert await house.refused("agent.task.t1", b"{}", {}) == "ENVELOPE_MALFORMED"
        again = house.sender.sign("agent.task.t2", b"{}")
        assert await house.refused("agent.task.t2", b"[]", again) == "ENVELOPE_FORGED"
        assert await house.refused("agent.task.t3", b"{}", again) == "ENVELOPE_READDRESSED"
        beyond = house.sender.sign("agent.report.x", b"{}")
        assert await house.refused("agent.report.x", b"{}", beyond) == "CAPABILITY_LACKING"
        (known,) = await house.room.listed()
        assert (known.name, known.is_revoked, known.may) == ("desk", False, ROLES["agent"])

    played(story)


@pytest.mark.req("3.27")
def test_a_key_that_was_revoked_is_believed_nothing_whenever_it_says_that_it_spoke() -> None:
    async def story(house: Deployment) -> None:
        await house.room.admit(house.worker.did, may=ROLES["agent"])
        before = house.sender.sign("agent.task.t1", b"{}")
        await house.room.revoke(house.worker.did, why="stolen")
        house.later()
        assert await house.refused("agent.task.t1", b"{}", before) == "ENVELOPE_REVOKED"
        assert [key.is_revoked for key in await house.room.listed()] == [True]
        # It is not admitted again: the thief still has it.
        for role in ROLES:
            with pytest.raises(RequestRejected, match="KEYS_REVOKED"):
                await house.room.admit(house.worker.did, may=ROLES[role])
        assert [key.is_revoked for key in await house.room.listed()] == [True]
        house.later()
        assert await house.refused("agent.task.t1", b"{}", before) == "ENVELOPE_REVOKED"

    played(story)


def test_only_the_root_admits_and_revokes_and_a_holder_may_give_up_their_own_key() -> None:
    async def story(house: Deployment) -> None:
        with pytest.raises(RequestRejected, match="KEYS_NOT_ROOT"):
            await house.theirs.admit(house.worker.did, may=["agent.>"])
        with pytest.raises(RequestRejected, match="KEYS_NOT_ROOT"):
            await house.theirs.revoke(house.root.did, why="mine now")
        for wrong in (house.room.admit("bob", may=["x"]), house.room.admit(house.worker.did, may=["x"], days=0)):
            with pytest.raises(RequestRejected, match="KEYS_UNKNOWN"):
                await wrong
        with pytest.raises(RequestRejected, match="KEYS_UNKNOWN"):
            await house.room.revoke(house.worker.did, why="never seen")
        # What others write is believed nothing: statements of their own, revocations of the root, nonsense.
        own = KeyRoom(house.shelf, house.worker, house.clock)
        await own.admit(house.worker.did, may=["agent.>"])
        forged = revoke(house.worker, house.root.did, at_ms=1, why="mine now")
        await house.shelf.keep("x", encode_record(KeyEntry(revocation=forged)))
        await house.shelf.keep("y", b"nonsense")
        trusted = await house.room.trusted()
        assert (dict(trusted.chains), trusted.revoked, await house.room.listed()) == ({}, frozenset(), [])
        await house.room.admit(house.worker.did, may=["agent.>"])
        await house.theirs.revoke(house.worker.did, why="lost")
        assert house.worker.did in (await house.room.trusted()).revoked

    played(story)


def test_who_cannot_look_for_revocations_believes_nothing_after_a_while() -> None:
    async def story(house: Deployment) -> None:
        await house.room.admit(house.worker.did, may=ROLES["agent"])
        await house.line.check("agent.task.t1", b"", house.sender.sign("agent.task.t1", b""))
        house.shelf.is_away = True
        house.later()
        await house.line.check("agent.task.t2", b"", house.sender.sign("agent.task.t2", b""))
        house.later(STALE_MS_MAX)
        with pytest.raises(StoreUnusable, match="KEYS_STALE"):
            await house.line.check("agent.task.t3", b"", house.sender.sign("agent.task.t3", b""))

    played(story)


def test_a_sealed_gateway_starts_what_an_admitted_key_signed_and_nothing_else() -> None:
    async def story(house: Deployment) -> None:
        await house.room.admit(house.worker.did, may=ROLES["agent"])
        async with remit.open(memory=True) as system:
            broker = PaperBroker()
            work = WireWork(kit_of({"text": "done"}), rules=RULES)
            gateway = Gateway(system, broker, work, clock=WallClock(), line=house.line)
            await gateway.start()
            body = json.dumps({"task_id": "t1", "prompt": "x"}).encode()
            bare = HandedMessage(subject="agent.task.t1", data=body, place=1)
            await gateway.carry_out(bare)
            sealed = HandedMessage(
                subject="agent.task.t1", data=body, headers=house.sender.sign("agent.task.t1", body), place=2
            )
            await gateway.carry_out(sealed)
            await broker.said_under("agent.complete.")
            await gateway.carry_out(HandedMessage(subject=sealed.subject, data=body, headers=sealed.headers, place=3))
            assert broker.dead == {1: "ENVELOPE_MALFORMED", 3: "ENVELOPE_REPLAYED"}
            assert broker.ended == {2: "done"}
            await gateway.close()

    played(story)


def bad_names() -> list[str]:
    good = Signer.generate().did
    return ["did:key:zzz", f"{good},", good[:-1], "nonsense", ""]


@pytest.mark.parametrize("name", bad_names(), ids=["short", "with a comma", "cut", "no did", "empty"])
def test_what_spells_no_key_is_not_admitted(name: str) -> None:
    deployment = Deployment()
    with pytest.raises(RequestRejected) as refused:
        asyncio.run(deployment.room.admit(name, may=("agent.task.*",)))
    assert refused.value.code == "KEYS_UNKNOWN"
    assert not deployment.shelf.entries


def test_a_name_that_was_admitted_and_spells_no_key_is_left_out_of_accounts_and_can_be_taken_back() -> None:
    deployment = Deployment()

    async def story() -> None:
        now_ms = deployment.clock.now_ms()
        stated = issue(
            deployment.root,
            "did:key:zzz",
            capability_id="c",
            tenant="*",
            may=("agent.task.*",),
            not_before_ms=now_ms,
            expires_at_ms=now_ms + 60_000,
        )
        await deployment.shelf.keep("did:key:zzz", encode_record(KeyEntry(name="typo", statement=stated)))
        listed = await deployment.room.listed()
        assert [key.did for key in listed] == ["did:key:zzz"]
        assert account_text("t", deployment.root.did, listed).count("nkey:") == 1
        await deployment.room.revoke("did:key:zzz", why="typo")
        assert [key.is_revoked for key in await deployment.room.listed()] == [True]

    asyncio.run(story())
