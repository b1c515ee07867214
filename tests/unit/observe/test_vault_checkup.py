"""A check-up names the secrets, and never shows one."""

from remit.core.failure import RequestRejected
from remit.observe.checkup.checkup import Check, CheckState
from remit.observe.checkup.vault_checkup import check_secrets
from remit.tool.secrets.vault import NO_SECRETS, Vault

NOW_MS = 1_893_456_000_000
VALUE = "token-0123456789"


def vault(**expiries: int | None) -> Vault:
    return Vault(
        {name: {"value": VALUE, "expires_at": at_ms} for name, at_ms in expiries.items()}, now_ms=lambda: NOW_MS
    )


def test_nothing_is_said_where_there_are_no_secrets() -> None:
    assert check_secrets(lambda: NO_SECRETS) == []


def test_secrets_that_hold_are_named() -> None:
    assert check_secrets(lambda: vault(B=None, A=NOW_MS + 1)) == [Check("secrets", CheckState.OK, "2: A, B")]


def test_secrets_that_have_expired_are_doubtful() -> None:
    (found,) = check_secrets(lambda: vault(A=None, B=NOW_MS, C=NOW_MS - 1))
    assert (found.state, found.seen) == (CheckState.DOUBTFUL, "3: A, B, C; expired: B, C")
    assert "put new ones in their place" in found.way_out


def test_what_cannot_be_read_is_a_problem_with_its_way_out() -> None:
    def refuse() -> Vault:
        raise RequestRejected("SECRETS_NOT_PRIVATE", "'x' is open to others; type: chmod 600 'x'")

    problem = Check("secrets", CheckState.PROBLEM, "SECRETS_NOT_PRIVATE: 'x' is open to others", "type: chmod 600 'x'")
    assert check_secrets(refuse) == [problem]
