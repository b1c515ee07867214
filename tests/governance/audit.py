"""What the records of the house say of attempts to call tools: one row for each, read off the journals of runs.

Rows are read for each tenant by a principal of it who may read and do nothing else.
"""

from collections.abc import Callable
from typing import Any

from remit.core.journal.arrivals import RunStarted
from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import ToolCallRefused
from remit.core.record import Record
from remit.core.run.manifest import Manifest
from remit.core.run.principal import Principal, Scope
from tests.governance.play import SUBAGENT, Deployment

ALLOW, DENY = "allow", "deny"
# The codes by which a person is told that they may not; a budget that is spent says nothing about rights.
RIGHTS = ("PERMISSION_DENIED", "CONDITION_HELD", "RATE_LIMITED")


class Row(Record):
    """One attempt: who, for whom, through which agents, what, and what was decided."""

    timestamp: int
    tenant: str
    actor_uid: str
    actor_email: str
    tool: str
    decision: str
    reason: str
    trace_id: str
    chain: tuple[str, ...]
    tier: str
    run_id: str
    # Why no policy was read.
    unread: str

    @property
    def extra(self) -> dict[str, Any]:
        """What else is known of the attempt."""
        return {"tier": self.tier, "chain": self.chain, "run_id": self.run_id}


async def rows_of(deployment: Deployment) -> list[Row]:
    """Every attempt that the journals tell of, in the order in which runs began."""
    rows: list[Row] = []
    for tenant_id in deployment.tenants:
        archive = deployment.system.acting_for(Principal(tenant_id, "auditor", (Scope.READ,))).archive
        before = ""
        # Page by page, as an owner of many runs would.
        while page := await archive.runs(with_children=True, before=before, limit=50):
            before = page[-1].run_id
            for entry in page:
                rows += _rows((await archive.history(entry.run_id)).turns, tenant_id)
    return sorted(rows, key=lambda row: (row.timestamp, row.run_id))


def _rows(turns: Any, seen_by: str) -> list[Row]:
    began = turns[0].arrival
    assert isinstance(began, RunStarted)
    assert began.manifest.request.tenant_id == seen_by, "a run is seen by another tenant"
    delegates = {tool.name for tool in began.manifest.tools if tool.delegates}
    rows = []
    for turn in turns:
        for decision in turn.decisions:
            if isinstance(decision, CallTool):
                rows.append(_row(began.manifest, turn.at_ms, decision.tool, ALLOW, "every check agreed"))
            elif isinstance(decision, ToolCallRefused) and decision.tool not in delegates:
                rows.append(
                    _row(began.manifest, turn.at_ms, decision.tool, DENY, f"{decision.code}: {decision.reason}")
                )
    return rows


def _row(manifest: Manifest, at_ms: int, tool: str, decision: str, reason: str) -> Row:
    principal = manifest.principal
    assert principal is not None
    return Row(
        timestamp=at_ms,
        tenant=manifest.request.tenant_id,
        actor_uid=principal.user_id,
        actor_email=principal.name,
        tool=tool,
        decision=decision,
        reason=reason,
        trace_id=manifest.request.trace_id,
        chain=manifest.agents,
        tier=SUBAGENT if manifest.depth else principal.channel,
        run_id=manifest.run_id,
        unread=manifest.policy_fault,
    )


def _matching(rows: list[Row], told: dict[str, Any]) -> list[Row]:
    names = {"as_user": "actor_uid", "actor_uid": "actor_uid", "as_tenant": "tenant", "agent_tier": "tier"}
    wanted = {names.get(key, key): value for key, value in told.items() if key not in ("agent_name", "chain", "fields")}
    found = [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]
    agent = told.get("agent_name")
    return [row for row in found if agent is None or row.chain[-1:] == (agent,)]


def _denied(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    """Refused by a ruling, or at the door, and in no case done."""
    found = _matching(rows, told)
    if any(row.decision == ALLOW for row in found):
        return f"it was done: {found}"
    keys = [key for key in ("tool", "as_user", "agent_name") if key in told]
    at_door = [one for one in deployment.refused if all(one.action.get(key, "") == told[key] for key in keys)]
    if not at_door and not found:
        return "nothing was refused"
    strange = [row.reason for row in found if not row.reason.startswith(RIGHTS)]
    return f"it was refused for something else: {strange}" if strange or not all(one.code for one in at_door) else ""


def _allowed(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    found = _matching(rows, told)
    return "" if any(row.decision == ALLOW for row in found) else f"it was not done: {found or deployment.refused}"


def _has_entry(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    return "" if _matching(rows, told) else f"no row among {rows}"


def _has_fields(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    found = _matching(rows, {"tool": told["tool"]})
    missing = [name for name in told["fields"] for row in found if not getattr(row, name)]
    return f"{missing} are empty" if missing else "" if found else "no row"


def _is_attributed(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    found = _matching(rows, {"tool": told["tool"]})
    wrong = [row.actor_uid for row in found if row.actor_uid != told["actor_uid"]]
    return f"rows name {wrong}" if wrong else "" if found else "no row"


def _has_chain(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    found = _matching(rows, {"tool": told["tool"]})
    wrong = [row.chain for row in found if list(row.chain) != told["chain"]]
    return f"chains are {wrong}" if wrong else "" if found else "no row"


def _leaks_nothing(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    pairs = [(pair["tenant"], pair["tool"]) for pair in told["allowed_pairs"]]
    strange = [row for row in rows if (row.tenant, row.tool) not in pairs]
    users = {user: tenant for user, (tenant, _) in deployment.users.items()}
    foreign = [row for row in rows if users[row.actor_uid] != row.tenant]
    return f"rows {strange or foreign} are of another tenant" if strange or foreign else ""


def _is_within_rate(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    attempts = _matching(rows, told["filter"])
    done = sum(row.decision == ALLOW for row in attempts)
    # No more than the limit, and not fewer either: a person who keeps within it is served.
    expected = min(len(attempts), 60)
    return "" if done <= told["max_allowed"] and done == expected else f"{done} of {len(attempts)} were done"


def _runs_clean(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    return f"{[one.message for one in deployment.refused]}" if deployment.refused else ""


def _is_reachable(deployment: Deployment, rows: list[Row], told: dict[str, Any]) -> str:
    return "" if (not rows[-1].unread) is told["reachable"] else f"the last run says {rows[-1].unread!r}"


Check = Callable[[Deployment, list[Row], dict[str, Any]], str]
# What each kind of expectation asks of the records; gives why it does not hold.
CHECKS: dict[str, Check] = {
    "tool_denied": _denied,
    "tool_allowed": _allowed,
    "audit_has_entry": _has_entry,
    "audit_field_present": _has_fields,
    "audit_attribution": _is_attributed,
    "delegation_chain": _has_chain,
    "no_cross_tenant_leak": _leaks_nothing,
    "rate_limited_count": _is_within_rate,
    "runner_errors_empty": _runs_clean,
    "gateway_reachable": _is_reachable,
}
