"""Principals: who can act, what they may do, and in whose name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.record import replace
from remit.core.run.manifest import acting_for, may_approve_own, permissions_of
from remit.core.run.principal import (
    EVERY_SCOPE,
    EVERY_TENANT,
    LOCAL,
    NAME_CHARS_MAX,
    NO_TENANT,
    PRINCIPAL_FOREIGN,
    PRINCIPAL_INVALID,
    SCOPE_LACKING,
    SCOPES_MAX,
    Principal,
    Scope,
    check_principal,
    expect_permissions,
    expect_scope,
    may,
    person_for,
    sees,
    tenant_for,
    tenant_problem,
    tenant_seen,
)
from tests.unit.kernel.builders import manifest_of

REACHES = [Scope]
ADA = Principal("acme", "ada", (Scope.READ, "email.read"))
OPERATOR = Principal(EVERY_TENANT, "op", (Scope.OPERATE, Scope.READ))

NAMES = st.sampled_from([*Scope, "email.read", "vault.open", EVERY_SCOPE])


def refusal(act: object, *arguments: object, **named: object) -> RequestRejected:
    """What is raised."""
    with pytest.raises(RequestRejected) as refused:
        act(*arguments, **named)  # type: ignore[operator]
    return refused.value


@pytest.mark.parametrize(
    ("principal", "field"),
    [
        (Principal("", "ada"), "tenant_id"),
        (Principal("acme", ""), "user_id"),
        (Principal("a\nb", "ada"), "tenant_id"),
        (Principal("x" * (NAME_CHARS_MAX + 1), "ada"), "tenant_id"),
        (Principal(7, "ada"), "tenant_id"),  # type: ignore[arg-type]
        (Principal("acme", "ada", name="\x1b[31m"), "name"),
        (Principal("acme", "ada", channel="\n"), "channel"),
        (Principal("acme", "ada", agent="a" * 300), "agent"),
        (Principal("acme", "ada", ("",)), "scopes"),
        (Principal("acme", "ada", (7,)), "scopes"),  # type: ignore[arg-type]
        (Principal("acme", "ada", ["runs.read"]), "scopes"),  # type: ignore[arg-type]
        (Principal("acme", None), "user_id"),  # type: ignore[arg-type]
        (Principal("acme", "ada", tuple(map(str, range(SCOPES_MAX + 1)))), "scopes"),
        (Principal(EVERY_TENANT, "ada", (Scope.ADMIN,)), "tenant_id"),
        (LOCAL, "user_id"),
        (Principal("acme.*", "ada"), "tenant_id"),
    ],
)
def test_nobody_acts_for_a_principal_that_is_none(principal: Principal, field: str) -> None:
    error = refusal(check_principal, principal)
    assert (error.code, error.details["field"]) == (PRINCIPAL_INVALID, field)


def test_a_user_whose_name_hides_something_is_refused() -> None:
    assert refusal(check_principal, Principal("acme", "\u0430da")).code == "PERSON_INVALID"


def test_a_principal_keeps_each_scope_once() -> None:
    assert check_principal(Principal("acme", "ada", ("a", "b", "a"))).scopes == ("a", "b")
    assert check_principal(OPERATOR) == OPERATOR


@given(st.lists(NAMES), NAMES)
def test_no_scope_implies_another_and_a_tenant_never_operates(scopes: list[str], scope: str) -> None:
    ada = Principal("acme", "ada", tuple(scopes))
    assert may(ada, scope) is (scope != Scope.OPERATE and (scope in scopes or EVERY_SCOPE in scopes))
    op = Principal(EVERY_TENANT, "op", tuple(scopes))
    assert may(op, scope) is (scope in scopes or EVERY_SCOPE in scopes)


def test_a_verb_without_its_scope_says_which_it_takes() -> None:
    expect_scope(ADA, Scope.READ, "result")
    error = refusal(expect_scope, ADA, Scope.START, "submit")
    assert error.code == SCOPE_LACKING
    assert error.details == {"verb": "submit", "scope": "runs.start"}
    assert "'ada' of tenant 'acme'" in error.message
    assert "only the operator of the store" in refusal(expect_scope, ADA, Scope.OPERATE, "rebuild").message
    assert "act for a user" in refusal(expect_scope, OPERATOR, Scope.ADMIN, "delete").message


def test_a_copy_takes_every_permission_of_its_origin() -> None:
    expect_permissions(ADA, ("email.read",), "r")
    expect_permissions(LOCAL, ("email.read", "vault.open"), "r")
    assert refusal(expect_permissions, ADA, ("email.read", "vault.open"), "r").details == {
        "run_id": "r",
        "scope": "vault.open",
    }


def test_only_the_operator_of_the_store_sees_every_tenant() -> None:
    assert [sees(one, "acme") for one in (ADA, OPERATOR, LOCAL)] == [True, True, True]
    assert [sees(one, "globex") for one in (ADA, OPERATOR, LOCAL)] == [False, True, True]


def test_a_principal_says_no_other_tenant_and_no_other_name() -> None:
    assert (tenant_for(ADA, ""), tenant_for(ADA, "acme"), tenant_for(LOCAL, "any")) == ("acme", "acme", "any")
    assert (person_for(ADA, ""), person_for(ADA, "Ada"), person_for(LOCAL, "bob")) == ("ada", "ada", "bob")
    assert refusal(tenant_for, ADA, "globex").code == PRINCIPAL_FOREIGN
    assert [tenant_seen(ADA, said) for said in ("", "acme", "globex")] == ["acme", "acme", NO_TENANT]
    assert tenant_seen(LOCAL, "globex") == "globex"
    assert tenant_problem(NO_TENANT)
    error = refusal(person_for, ADA, "bob", "user_id")
    assert (error.code, error.details) == (PRINCIPAL_FOREIGN, {"field": "user_id", "said": "bob"})


@given(st.text(max_size=20))
def test_what_is_said_of_another_tenant_does_not_depend_on_whether_there_is_one(said: str) -> None:
    if said in ("", "acme"):
        return
    error, other = refusal(tenant_for, ADA, said), refusal(tenant_for, ADA, "nobody")
    assert error.message.replace(repr(said), "") == other.message.replace("'nobody'", "")


@pytest.mark.parametrize("agent", ["", "clerk"])
def test_a_run_of_a_principal_names_it_and_the_program_that_speaks_for_it(agent: str) -> None:
    manifest = replace(manifest_of(boundary=Boundary(permissions=("email.read", "vault.open"))), owner="ada")
    acting = acting_for(manifest, replace(ADA, agent=agent), "503")
    assert (acting.agents, acting.policy_fault) == ((agent,) if agent else (), "503")
    # A user who is named like the owner of the store is not the owner.
    assert (acting.owner, may_approve_own(acting, "ada")) == ("", False)
    assert (permissions_of(manifest), permissions_of(acting)) == (("email.read", "vault.open"), ("email.read",))


@pytest.mark.parametrize("given", ["ann", None, {"tenant_id": "acme"}])
def test_what_is_no_principal_acts_for_nobody(given: object) -> None:
    with pytest.raises(RequestRejected, match="is no Principal"):
        check_principal(given)  # type: ignore[arg-type]
