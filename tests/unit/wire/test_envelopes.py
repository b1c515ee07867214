"""A sealed message is opened once, where it was sent to, by whom it was sent to, and as it was sent."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.journal.signing import Signer
from remit.core.record import replace
from remit.wire.credentials import CAPABILITY_EXPIRED, CAPABILITY_LACKING, CAPABILITY_REVOKED, TrustedSenders, issue
from remit.wire.envelopes import (
    ENVELOPE_CROWDED,
    ENVELOPE_EARLY,
    ENVELOPE_EXPIRED,
    ENVELOPE_FORGED,
    ENVELOPE_MALFORMED,
    ENVELOPE_OUT_OF_ORDER,
    ENVELOPE_READDRESSED,
    ENVELOPE_REPLAYED,
    ENVELOPE_REVOKED,
    ENVELOPE_SENDER_UNKNOWN,
    ENVELOPE_TOO_LARGE,
    LANES_SWEPT_AT,
    SEAL_BYTES_MAX,
    SKEW_MS_MAX,
    VALID_MS_MAX,
    SealedInbox,
    SealedOutbox,
    read_seal,
    written_seal,
)
from remit.wire.payloads import MESSAGE_BYTES_MAX

ROOT, WORKER, OTHER = (Signer.from_bytes(bytes([number]) * 32) for number in range(1, 4))
NOW = 1_773_396_672_000
SUBJECT, BODY = "tool.result.c1", b'{"call_id":"c1"}'


def trusted(**changes: Any) -> TrustedSenders:
    chain = issue(
        ROOT,
        WORKER.did,
        capability_id="k1",
        tenant="acme",
        may=("tool.result.*", "agent.signal.*"),
        not_before_ms=0,
        expires_at_ms=NOW * 2,
    )
    said = {"root": ROOT.did, "chains": {WORKER.did: (chain,)}}
    return TrustedSenders(**said | changes)


def outbox(signer: Signer = WORKER, epoch: str = "e1", **changes: Any) -> SealedOutbox:
    return SealedOutbox(signer, **{"audience": ROOT.did, "tenant": "acme", "epoch": epoch} | changes)


def inbox(**changes: Any) -> SealedInbox:
    return SealedInbox(trusted(**changes), tenant="acme")


def refused(at: SealedInbox, header: str, body: bytes = BODY, **changes: Any) -> str:
    said: dict[str, Any] = {"subject": SUBJECT, "at_ms": NOW} | changes
    with pytest.raises(RequestRejected) as rejected:
        at.open(header, body, **said)
    return rejected.value.code


def test_a_sealed_message_is_opened_and_names_its_sender_and_what_it_may() -> None:
    opened = inbox().open(outbox().sealed(SUBJECT, BODY, at_ms=NOW), BODY, subject=SUBJECT, at_ms=NOW + 1_000)
    assert (opened.seal.sender, opened.capability.id, opened.is_again) == (WORKER.did, "k1", False)


def test_a_message_that_was_changed_or_sealed_by_a_stranger_is_forged() -> None:
    header = outbox().sealed(SUBJECT, BODY, at_ms=NOW)
    assert refused(inbox(), header, BODY + b" ") == ENVELOPE_FORGED
    seal = read_seal(header)
    pretending = replace(read_seal(outbox(OTHER).sealed(SUBJECT, BODY, at_ms=NOW)), sender=WORKER.did)
    for forged in (
        pretending,
        replace(seal, sequence=2),
        replace(seal, epoch="e2"),
        replace(seal, expires_at_ms=seal.expires_at_ms - 1),
        replace(seal, signature="00" * 64),
        replace(seal, signature="no hex"),
        replace(seal, signature=""),
        replace(seal, sequence=2**60),
    ):
        assert refused(inbox(), written_seal(forged)) == ENVELOPE_FORGED


@pytest.mark.parametrize(
    ("sealed_for", "came_as"),
    [
        ({}, {"subject": "tool.result.c2"}),
        ({"tenant": "globex"}, {}),
        ({"audience": OTHER.did}, {}),
    ],
)
def test_a_message_for_another_subject_tenant_or_deployment_is_refused(
    sealed_for: dict[str, Any], came_as: dict[str, Any]
) -> None:
    header = outbox(**sealed_for).sealed(SUBJECT, BODY, at_ms=NOW)
    assert refused(inbox(), header, **came_as) == ENVELOPE_READDRESSED


def test_a_replayed_message_is_refused_and_one_that_the_broker_delivers_again_is_known() -> None:
    at, header = inbox(), outbox().sealed(SUBJECT, BODY, at_ms=NOW)
    at.open(header, BODY, subject=SUBJECT, at_ms=NOW)
    assert refused(at, header) == ENVELOPE_REPLAYED
    again = at.open(header, BODY, subject=SUBJECT, at_ms=NOW, is_redelivery=True)
    assert again.is_again


def test_a_number_that_is_used_twice_is_a_replay_even_when_the_broker_delivers_again() -> None:
    at, other = inbox(), b'{"call_id":"c1","content":"x"}'
    at.open(outbox().sealed(SUBJECT, BODY, at_ms=NOW), BODY, subject=SUBJECT, at_ms=NOW)
    assert refused(at, outbox().sealed(SUBJECT, other, at_ms=NOW), other, is_redelivery=True) == ENVELOPE_REPLAYED


def test_messages_of_a_lane_come_in_order_and_those_of_a_queue_once_each() -> None:
    sender = outbox()
    first, second = (sender.sealed(SUBJECT, BODY, at_ms=NOW) for _ in range(2))
    at = inbox()
    at.open(second, BODY, subject=SUBJECT, at_ms=NOW)
    assert refused(at, first) == ENVELOPE_OUT_OF_ORDER
    at.open(first, BODY, subject=SUBJECT, at_ms=NOW, is_queue=True)
    assert refused(at, first, is_queue=True) == ENVELOPE_REPLAYED


def test_a_sender_that_started_anew_begins_to_count_anew() -> None:
    at = inbox()
    for epoch in ("e1", "e2"):
        at.open(outbox(epoch=epoch).sealed(SUBJECT, BODY, at_ms=NOW), BODY, subject=SUBJECT, at_ms=NOW)


def test_a_seal_holds_in_its_time_alone() -> None:
    header = outbox().sealed(SUBJECT, BODY, at_ms=NOW, valid_ms=60_000)
    inbox().open(header, BODY, subject=SUBJECT, at_ms=NOW - SKEW_MS_MAX)
    assert refused(inbox(), header, at_ms=NOW - SKEW_MS_MAX - 1) == ENVELOPE_EARLY
    assert refused(inbox(), header, at_ms=NOW + 60_000) == ENVELOPE_EXPIRED
    assert (
        read_seal(outbox().sealed(SUBJECT, BODY, at_ms=NOW, valid_ms=VALID_MS_MAX * 2)).expires_at_ms
        == NOW + VALID_MS_MAX
    )


def test_a_message_is_refused_after_it_was_forgotten_too() -> None:
    at, sender = inbox(), outbox()
    old = sender.sealed(SUBJECT, BODY, at_ms=NOW, valid_ms=1_000)
    at.open(old, BODY, subject=SUBJECT, at_ms=NOW)
    later = NOW + 5_000
    at.open(outbox(epoch="e2").sealed(SUBJECT, BODY, at_ms=later), BODY, subject=SUBJECT, at_ms=later)
    assert refused(at, old, at_ms=later) == ENVELOPE_EXPIRED


def test_what_comes_later_on_a_lane_holds_as_long_as_what_came_before() -> None:
    sender = outbox()
    first = read_seal(sender.sealed(SUBJECT, BODY, at_ms=NOW, valid_ms=60_000))
    second = read_seal(sender.sealed(SUBJECT, BODY, at_ms=NOW, valid_ms=1))
    assert second.expires_at_ms >= first.expires_at_ms


def test_a_sender_forgets_lanes_that_no_receiver_remembers() -> None:
    sender = outbox()
    for number in range(LANES_SWEPT_AT):
        sender._sent[f"tool.result.c{number}"] = (1, NOW - VALID_MS_MAX)  # sealing so many takes seconds
    assert read_seal(sender.sealed("tool.result.c0", BODY, at_ms=NOW)).sequence == 1


@pytest.mark.parametrize("when_ms", [NOW, NOW - 1, NOW + 3_600_000])
def test_a_revoked_key_is_believed_nothing_whenever_it_says_that_it_spoke(when_ms: int) -> None:
    header = outbox().sealed(SUBJECT, BODY, at_ms=when_ms)
    assert refused(inbox(revoked=frozenset({WORKER.did})), header, at_ms=when_ms) == ENVELOPE_REVOKED
    assert refused(inbox(revoked=frozenset({"k1"})), header, at_ms=when_ms) == CAPABILITY_REVOKED


def test_a_sender_without_a_statement_or_with_that_of_another_is_unknown() -> None:
    header = outbox(OTHER).sealed(SUBJECT, BODY, at_ms=NOW)
    assert refused(inbox(), header) == ENVELOPE_SENDER_UNKNOWN
    borrowed = {OTHER.did: trusted().chains[WORKER.did]}
    assert refused(inbox(chains=borrowed), header) == ENVELOPE_SENDER_UNKNOWN


def test_a_worker_sends_only_where_its_statement_lets_it_and_while_that_holds() -> None:
    header = outbox().sealed("agent.response.r1", BODY, at_ms=NOW)
    assert refused(inbox(), header, subject="agent.response.r1") == CAPABILITY_LACKING
    late = outbox().sealed(SUBJECT, BODY, at_ms=NOW * 2)
    assert refused(inbox(), late, at_ms=NOW * 2) == CAPABILITY_EXPIRED


def test_what_is_too_large_is_neither_sealed_nor_opened() -> None:
    large = b"x" * (MESSAGE_BYTES_MAX + 1)
    with pytest.raises(RequestRejected) as rejected:
        outbox().sealed(SUBJECT, large, at_ms=NOW)
    assert rejected.value.code == ENVELOPE_TOO_LARGE
    header = outbox().sealed(SUBJECT, BODY, at_ms=NOW)
    assert refused(inbox(), header, large) == ENVELOPE_TOO_LARGE
    assert refused(inbox(), header + " " * SEAL_BYTES_MAX) == ENVELOPE_TOO_LARGE


@pytest.mark.parametrize("header", ["", "{}", "[]", '{"sender": 1}', "\ud800"])
def test_a_header_that_is_no_seal_is_malformed(header: str) -> None:
    assert refused(inbox(), header) == ENVELOPE_MALFORMED


def test_a_seal_with_a_key_twice_an_unknown_key_or_senseless_figures_is_malformed() -> None:
    header = outbox().sealed(SUBJECT, BODY, at_ms=NOW)
    assert refused(inbox(), header.replace('{"sender"', '{"sender":"x","sender"', 1)) == ENVELOPE_MALFORMED
    assert refused(inbox(), header.replace("{", '{"more":1,', 1)) == ENVELOPE_MALFORMED
    seal = read_seal(header)
    for senseless in (
        replace(seal, sequence=0),
        replace(seal, expires_at_ms=seal.sent_at_ms),
        replace(seal, expires_at_ms=seal.sent_at_ms + VALID_MS_MAX + 1),
    ):
        assert refused(inbox(), written_seal(senseless)) == ENVELOPE_MALFORMED


def test_no_sender_fills_the_memory_of_a_receiver_beyond_its_share() -> None:
    at, sender = SealedInbox(trusted(), tenant="acme", remembered_max=2), outbox()
    for _ in range(2):
        at.open(sender.sealed(SUBJECT, BODY, at_ms=NOW, valid_ms=1_000), BODY, subject=SUBJECT, at_ms=NOW)
    assert refused(at, sender.sealed(SUBJECT, BODY, at_ms=NOW)) == ENVELOPE_CROWDED
    later = NOW + 10_000
    at.open(sender.sealed(SUBJECT, BODY, at_ms=later), BODY, subject=SUBJECT, at_ms=later)
