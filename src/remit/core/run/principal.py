"""Principals: for whom a caller acts on a store, and what they may do there.

Rule 1: a principal is one user of one tenant. Only the operator of the store acts for every tenant of it.
Rule 2: scopes say which verbs a principal may use, and which permissions tools of its runs may need. No scope implies
        another, and a tenant's principal never operates the store, whatever its scopes say.
Rule 3: a run that a principal starts, and every run beneath it, has at most the permissions that its scopes name.
Rule 4: what belongs to another tenant does not exist for a principal: it is refused like what was never started, and what is
        looked up in another tenant is looked up in one that has nothing. To act for another tenant is refused.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.record import Record, replace
from remit.core.run.person import check_no_secret, check_person, is_same_person

PRINCIPAL_INVALID = "PRINCIPAL_INVALID"
PRINCIPAL_FOREIGN = "PRINCIPAL_FOREIGN"
SCOPE_LACKING = "SCOPE_LACKING"

# The tenant of the operator of a store: all of them. No principal has it without the scope of the same meaning.
EVERY_TENANT = "*"
# Every scope there is, and every permission that tools need.
EVERY_SCOPE = "*"
# As many roles and permissions as a token of an identity provider carries; a longer list was not granted by a person.
SCOPES_MAX = 1_000
# Room for an address of mail, a channel or the name of an agent.
NAME_CHARS_MAX = 256
# What stands for more than one name where tenants are looked up or subscribed to, and what ends a name there.
_NO_NAME = frozenset("*>? \t")
# What is looked up where a principal names another tenant: no tenant has such a name, so nothing is found.
NO_TENANT = "*>"
# The people who use a deployment within an hour or so.
PRINCIPALS_KEPT_MAX = 4096


class Scope(StrEnum):
    """Which verbs of a system a principal may use. Tools may need permissions of any other name."""

    READ = "runs.read"
    START = "runs.start"
    SIGNAL = "runs.signal"
    APPROVE = "approve"
    ADMIN = "admin"
    OPERATE = "operate"


class Principal(Record):
    """A user of a tenant and their scopes.

    `name` is how people know the user, such as an address of mail; `channel` how they reach the house, such as
    interactive, api or background; `agent` the program that speaks for them. A run keeps all of it.
    """

    tenant_id: str
    user_id: str
    scopes: tuple[str, ...] = ()
    name: str = ""
    channel: str = ""
    agent: str = ""


# The process that opened the store: sees every tenant of it, and says of themselves and of others who they are.
LOCAL = Principal(EVERY_TENANT, "", (EVERY_SCOPE,))


def tenant_problem(name: str) -> str:
    """Why no tenant may have this name: it would stand for several, or for another, in a list or at a broker."""
    if any(sign in name for sign in _NO_NAME) or name != name.strip():
        return "has a sign that stands for many names (*, >, ?), or a blank; name one tenant"
    return ""


def check_principal(principal: Principal) -> Principal:
    """The principal, if a caller can act for it; raises RequestRejected naming what is wrong."""
    given: object = principal
    if not isinstance(given, Principal):
        raise _invalid("principal", given, "is no Principal")
    # Python does not check what a record is given, and only texts can be looked up below.
    for field in ("tenant_id", "user_id", "name", "channel", "agent"):
        _check_text(field, getattr(principal, field), 0)
    scopes: object = principal.scopes
    if not isinstance(scopes, tuple) or len(scopes) > SCOPES_MAX:
        raise _invalid("scopes", scopes, f"is no tuple of at most {SCOPES_MAX} names")
    for scope in scopes:
        _check_text("scopes", scope, 1)
    return _checked(principal)


def _check_text(field: str, value: object, chars_min: int) -> None:
    if not isinstance(value, str) or not chars_min <= len(value) <= NAME_CHARS_MAX or not value.isprintable():
        raise _invalid(field, value, f"is no text of {chars_min} to {NAME_CHARS_MAX} printable characters")


# A pure memo: a door acts for the same people all day, and looking for secrets in names takes a while.
@lru_cache(maxsize=PRINCIPALS_KEPT_MAX)
def _checked(principal: Principal) -> Principal:
    if not principal.tenant_id:
        raise _invalid("tenant_id", "", "names no tenant; a principal belongs to one")
    if not principal.user_id:
        raise _invalid("user_id", "", "is empty; a principal names a user, and is never taken for another")
    for field in ("tenant_id", "name", "channel", "agent"):
        check_no_secret(field, getattr(principal, field))
    check_person(principal.user_id, "user_id")
    if principal.tenant_id == EVERY_TENANT and not may(principal, Scope.OPERATE):
        raise _invalid("tenant_id", EVERY_TENANT, f"is every tenant, which takes the scope {Scope.OPERATE}; name one")
    if principal.tenant_id != EVERY_TENANT and (problem := tenant_problem(principal.tenant_id)):
        raise _invalid("tenant_id", principal.tenant_id, problem)
    return replace(principal, scopes=tuple(dict.fromkeys(principal.scopes)))


def may(principal: Principal, scope: str) -> bool:
    """Whether a principal has a scope; a tenant's principal never has the one that operates the store."""
    if scope == Scope.OPERATE and principal.tenant_id != EVERY_TENANT:
        return False
    return scope in principal.scopes or EVERY_SCOPE in principal.scopes


def expect_scope(principal: Principal, scope: Scope, verb: str) -> None:
    """Refuse a verb to a principal that lacks its scope."""
    if may(principal, scope):
        return
    is_operators = scope is Scope.OPERATE and principal.tenant_id != EVERY_TENANT
    way = "only the operator of the store has it" if is_operators else "act for a user who has it"
    message = f"{verb} takes the scope {scope}, which {_said(principal)} lacks; {way}"
    raise RequestRejected(SCOPE_LACKING, message, {"verb": verb, "scope": str(scope)})


def expect_permissions(principal: Principal, permissions: Iterable[str], run_id: str) -> None:
    """Refuse to let a principal go on with a copy of a run that may do what the principal may not."""
    lacked = [permission for permission in permissions if not may(principal, permission)]
    if lacked:
        message = (
            f"run {run_id} may use the permission {lacked[0]}, which {_said(principal)} lacks; have a user copy it "
            "who has it"
        )
        raise RequestRejected(SCOPE_LACKING, message, {"run_id": run_id, "scope": lacked[0]})


def sees(principal: Principal, tenant_id: str) -> bool:
    """Whether something of a tenant exists for a principal."""
    return principal.tenant_id in (EVERY_TENANT, tenant_id)


def tenant_for(principal: Principal, said: str) -> str:
    """The tenant that a principal acts for who says this one; its own where it says none. Another's is refused."""
    if principal.tenant_id == EVERY_TENANT:
        return said
    if said not in ("", principal.tenant_id):
        raise _foreign("tenant", said, f"{_said(principal)} acts for no other tenant")
    return principal.tenant_id


def tenant_seen(principal: Principal, said: str) -> str:
    """The tenant that is looked up where a principal names one: its own where it names none, and none where another's."""
    if principal.tenant_id == EVERY_TENANT:
        return said
    return principal.tenant_id if said in ("", principal.tenant_id) else NO_TENANT


def person_for(principal: Principal, said: str, field: str = "by") -> str:
    """In whose name a principal acts: its own, whatever name is given. The local one acts for the name it gives."""
    if not principal.user_id:
        return said
    if said and not is_same_person(said, principal.user_id):
        raise _foreign(field, said, f"{_said(principal)} acts in no other name")
    return principal.user_id


def _said(principal: Principal) -> str:
    return f"user {principal.user_id!r} of tenant {principal.tenant_id!r}"


def _foreign(field: str, said: str, why: str) -> RequestRejected:
    message = f"{field}={said[:80]!r} is not theirs to say: {why}; leave it out"
    return RequestRejected(PRINCIPAL_FOREIGN, message, {"field": field, "said": said[:80]})


def _invalid(field: str, value: object, problem: str) -> RequestRejected:
    return RequestRejected(PRINCIPAL_INVALID, f"{field}={clipped(value)} {problem}", {"field": field})
