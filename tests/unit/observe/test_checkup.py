"""Check-ups of the interpreter, the package, its extras and the secrets of tools."""

from importlib.metadata import distribution, version

from remit.core.failure import RequestRejected
from remit.observe.checkup import (
    Check,
    CheckState,
    check_house,
    check_install,
    check_package,
    check_python,
    check_secrets,
)
from remit.tool.secrets.vault import NO_SECRETS, Vault

REACHES = [CheckState]


def test_this_python_and_this_package_are_fine() -> None:
    python, package = check_house()
    assert (python.state, package.state) == (CheckState.OK, CheckState.OK)
    assert package.seen.startswith(version("remit"))


def test_an_old_python_is_a_problem_with_a_way_out() -> None:
    found = check_python((3, 10, 9))
    assert (found.state, found.seen) == (CheckState.PROBLEM, "3.10.9")
    assert "3.11" in found.way_out


def test_a_package_is_told_from_a_folder_that_is_worked_on() -> None:
    assert check_install(distribution("remit")).seen.endswith("editable, from a folder")
    assert check_install(distribution("msgspec")).seen.endswith("a package")


def test_an_optional_package_is_there_or_missing_and_never_loaded() -> None:
    there = check_package("it", "msgspec", needed_for="records", way_out="pip install it")
    assert (there.state, there.seen, there.way_out) == (CheckState.OK, f"msgspec {version('msgspec')}", "")
    gone = check_package("it", "nothing_of_this_name", needed_for="nothing", way_out="pip install it")
    assert (gone.state, gone.way_out) == (CheckState.MISSING, "pip install it")
    own = check_package("it", "tests", needed_for="proofs", way_out="")
    assert (own.state, own.seen) == (CheckState.OK, "tests")


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
