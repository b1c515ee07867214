"""A worker is known by its key, may send what statements of the root allow, and nothing once its key is revoked."""

from collections.abc import Sequence
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.journal.signing import Signer
from remit.core.record import replace
from remit.core.run.lifecycle import AgentRole
from remit.wire.credentials import (
    CAPABILITY_EXPIRED,
    CAPABILITY_INVALID,
    CAPABILITY_LACKING,
    CAPABILITY_REVOKED,
    CAPABILITY_WIDENED,
    CHAIN_MAX,
    PATTERNS_MAX,
    Capability,
    TrustedSenders,
    agent_signer,
    check_may,
    covers,
    effective,
    identity_of,
    is_issued,
    issue,
    revoke,
    revoked_by,
)
from remit.wire.payloads import checked_record

ROOT, SITE, WORKER, OTHER = (Signer.from_bytes(bytes([number]) * 32) for number in range(1, 5))
TRUSTED = TrustedSenders(root=ROOT.did)


def statement(issuer: Signer = ROOT, subject: str = WORKER.did, **changes: Any) -> Capability:
    said: dict[str, Any] = {"tenant": "acme", "may": ("tool.result.*",), "not_before_ms": 0, "expires_at_ms": 1_000}
    return issue(issuer, subject, capability_id=f"{issuer.did[-4:]}-{subject[-4:]}", **said | changes)


def code_of(chain: Sequence[Capability], trusted: TrustedSenders = TRUSTED, at_ms: int = 500) -> str:
    with pytest.raises(RequestRejected) as refused:
        effective(chain, trusted, at_ms)
    return refused.value.code


def test_what_the_root_states_holds_and_what_it_hands_on_holds_within_it() -> None:
    site = statement(subject=SITE.did, tenant="*", may=("tool.>", "agent.response.*"))
    worker = statement(SITE, may=("tool.result.*",), not_before_ms=100, expires_at_ms=900)
    assert effective([statement()], TRUSTED, 500) == statement()
    assert effective([site, worker], TRUSTED, 500) == worker


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "globex"},
        {"tenant": "*"},
        {"may": ("tool.result.*", "agent.signal.*")},
        {"may": ("tool.>",)},
        {"may": (">",)},
        {"expires_at_ms": 1_001},
        {"not_before_ms": -1},
    ],
)
def test_nobody_hands_on_more_than_they_hold(changes: dict[str, Any]) -> None:
    site = statement(subject=SITE.did)
    assert code_of([site, statement(SITE, **changes)]) == CAPABILITY_WIDENED


@pytest.mark.parametrize("at_ms", [99, 900])
def test_a_statement_holds_in_its_time_alone(at_ms: int) -> None:
    assert code_of([statement(not_before_ms=100, expires_at_ms=900)], at_ms=at_ms) == CAPABILITY_EXPIRED


def test_a_statement_of_another_signer_or_one_that_was_changed_is_invalid() -> None:
    assert code_of([statement(OTHER)]) == CAPABILITY_INVALID
    assert code_of([statement(subject=SITE.did), statement(OTHER)]) == CAPABILITY_INVALID
    changed = replace(statement(), may=(">",))
    assert not is_issued(changed)
    assert code_of([changed]) == CAPABILITY_INVALID
    assert not is_issued(replace(statement(), tenant="\ud800"))
    assert code_of([]) == CAPABILITY_INVALID
    assert code_of([statement()] * (CHAIN_MAX + 1)) == CAPABILITY_INVALID


@pytest.mark.parametrize(
    "changes",
    [
        {"may": ()},
        {"may": ("a",) * (PATTERNS_MAX + 1)},
        {"may": ("a..b",)},
        {"may": ("a.>.b",)},
        {"may": ("a b",)},
        {"tenant": ""},
        {"expires_at_ms": 0},
    ],
)
def test_a_statement_that_cannot_be_judged_is_not_issued(changes: dict[str, Any]) -> None:
    with pytest.raises(RequestRejected) as refused:
        statement(**changes)
    assert refused.value.code == CAPABILITY_INVALID


@pytest.mark.parametrize("what", [WORKER.did, SITE.did, statement(SITE).id])
def test_a_key_or_a_statement_that_was_revoked_allows_nothing(what: str) -> None:
    chain = [statement(subject=SITE.did), statement(SITE)]
    revoked = revoked_by(ROOT.did, [revoke(ROOT, what, at_ms=700, why="stolen")])
    assert code_of(chain, TrustedSenders(root=ROOT.did, revoked=revoked)) == CAPABILITY_REVOKED


def test_only_the_root_and_the_holder_of_a_key_revoke_it() -> None:
    given_up = revoke(WORKER, WORKER.did, at_ms=1, why="retired")
    grudge = revoke(OTHER, WORKER.did, at_ms=1, why="grudge")
    forged = replace(grudge, issuer=ROOT.did)
    assert revoked_by(ROOT.did, [given_up]) == {WORKER.did}
    assert revoked_by(ROOT.did, [grudge, forged, replace(forged, why="\ud800")]) == frozenset()


def test_a_message_goes_only_where_a_statement_lets_it() -> None:
    check_may(statement(), "tool.result.c1", "acme")
    check_may(statement(tenant="*"), "tool.result.c1", "globex")
    for subject, tenant in (("tool.execute.c1", "acme"), ("tool.result.c1", "globex"), ("tool.result", "acme")):
        with pytest.raises(RequestRejected) as refused:
            check_may(statement(), subject, tenant)
        assert refused.value.code == CAPABILITY_LACKING


@pytest.mark.parametrize(
    ("pattern", "subject", "is_covered"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.*", True),
        ("a.>", "a.b.c", True),
        (">", "a", True),
        ("a.>", "a.>", True),
        ("a.*", "a.b.c", False),
        ("a.*", "a.>", False),
        ("a.b", "a.*", False),
        ("a.>", "a", False),
        ("a.b", "a", False),
        ("*", ">", False),
    ],
)
def test_a_pattern_covers_what_lies_within_it(pattern: str, subject: str, is_covered: bool) -> None:
    assert covers(pattern, subject) is is_covered


@pytest.mark.req("3.27")
def test_an_agent_has_a_key_of_its_own_that_follows_from_its_name() -> None:
    agent = agent_signer(ROOT, "architect")
    assert agent.did == agent_signer(ROOT, "architect").did
    assert len({agent.did, ROOT.did, agent_signer(ROOT, "editor").did, agent_signer(OTHER, "architect").did}) == 4
    identity = checked_record(
        identity_of(agent.did, "architect", role=AgentRole.ARCHITECT, chain=[statement()], created_at_ms=1_000)
    )
    assert identity.did.startswith("did:key:z6Mk")
    assert (identity.internal_role, identity.created) == ("architect", "1970-01-01T00:00:01Z")
    assert identity.credentials[0]["may"] == ["tool.result.*"]
