"""Plays scenarios of governance through the public verbs: principals, policies, tools, delegates and rates.

Every attempt to call a tool is a run: a model that does what it is told proposes the call, for the principal that attempts
it. A delegation is a delegate that the run above calls. Between two actions of a scenario lie ten seconds.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from remit import SystemRequest, tool
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RequestRejected
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import Boundary, Condition, Rate, Then, Whose
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolCall
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Role, system_message, user_message
from remit.core.run.principal import Principal, Scope
from remit.inference.engine import StreamHandler
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.orchestrate.tenants.policies import Policies
from remit.tool.declare.decorator import Tool
from remit.tool.delegate import delegate
from remit.tool.registry import Registry

BEGAN_MS = 1_700_000_000_000
BETWEEN_MS = 10_000
MINUTE_MS = 60_000
# Rights of a person whom the house lets start runs; what else they may do, the scenario says.
STARTER = (Scope.START,)
INTERACTIVE, SUBAGENT = "interactive", "subagent"
LEASE = {
    "input_tokens": 20_000,
    "output_tokens": 5_000,
    "tool_calls": 5,
    "steps": 20,
    "child_runs": 2,
    "side_effects": 3,
}
CHANGING = ("user_action", "admin")


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.at_ms = BEGAN_MS

    def now_ms(self) -> int:
        """The moment."""
        return self.at_ms


class Obedient:
    """A model that proposes the calls of its task, once, and then says that it is done."""

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What its task says."""
        # The person who puts the agent up tells it what to do; an agent beneath is told by the one above it.
        told = next(message for message in request.messages if message.role in (Role.SYSTEM, Role.USER))
        task = json.loads(str(told.content))
        calls = json.loads(task["task"]) if isinstance(task, dict) else task
        if any(message.role is Role.TOOL for message in request.messages):
            return ModelResult("done")
        made = tuple(ToolCall(f"c{place}", call["name"], call["arguments"]) for place, call in enumerate(calls))
        return ModelResult(tool_calls=made)

    def model_info(self) -> ModelInfo:
        """A model with room."""
        return ModelInfo("obedient", 32_768, Price(0, 0))


class Refused:
    """An attempt that became no run: what was asked, and what the door said."""

    def __init__(self, action: dict[str, Any], error: RequestRejected) -> None:
        self.action = action
        self.code = error.code
        self.message = error.message


class Deployment:
    """One store that serves all tenants of a scenario, with a directory of users and policies that can fail."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.clock = Clock()
        self.tenants: dict[str, Any] = {one["id"]: one for one in setup["tenants"]}
        self.users = {user["uid"]: (one["id"], user) for one in setup["tenants"] for user in one["users"]}
        self.tools = [_tool_of(one) for one in setup["tools"]]
        self.permissions = tuple({name for one in setup["tools"] for name in one.get("required_scopes", ())})
        self.failing: tuple[str, int] | None = None
        self.delegations: list[dict[str, Any]] = []
        self.refused: list[Refused] = []
        ids = iter(range(1_000_000))
        self.system = System(
            MemoryStore(),
            clock=self.clock,
            find_kit=self._kit_again,
            new_id=lambda: f"r-{next(ids):06}",
            policies=Policies(self.policy, otherwise=self.stand_in),
        )

    async def play(self, actions: list[dict[str, Any]]) -> None:
        """Every action, in order."""
        for action in actions:
            ((kind, told),) = action.items()
            await getattr(self, f"_{kind}")(told)
            self.clock.at_ms += BETWEEN_MS

    async def _direct_tool_call(self, told: dict[str, Any]) -> None:
        await self._attempt(told, self._chain(told))

    async def _delegation(self, told: dict[str, Any]) -> None:
        self.delegations.append(told)

    async def _policy_change(self, told: dict[str, Any]) -> None:
        policy = self.tenants[told["tenant"]].setdefault("policy", {})
        level = {"permission": told["set_permission"]}
        user, named = told.get("user", ""), told.get("tool", "")
        if user and named:
            policy.setdefault("user_tools", {}).setdefault(user, {}).setdefault(named, {})[told["tier"]] = level
        elif user:
            policy.setdefault("users", {}).setdefault(user, {})[told["tier"]] = level
        else:
            policy.setdefault("tools", {}).setdefault(named, {})[told["tier"]] = level

    async def _gateway_failure(self, told: dict[str, Any]) -> None:
        self.failing = told["mode"], self.clock.at_ms + told["duration_seconds"] * 1_000

    async def _parallel_fan_out(self, told: dict[str, Any]) -> None:
        """Workers of one user, all at once, each call a run of its own."""
        attempts = [
            self._attempt({**told, "agent_name": f"worker-{worker}"}, [])
            for worker in range(told["worker_count"])
            for _ in range(told["calls_per_worker"])
        ]
        await asyncio.gather(*attempts)

    def _chain(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        """The delegations that lead to the agent that calls, the first of them first."""
        chain: list[dict[str, Any]] = []
        agent = told.get("agent_name", "")
        while found := [one for one in self.delegations if one["to_agent"] == agent and one not in chain]:
            chain.insert(0, found[-1])
            agent = found[-1]["from_agent"]
        return chain

    async def _attempt(self, told: dict[str, Any], chain: list[dict[str, Any]]) -> None:
        calls: list[Any] = [{"name": told["tool"], "arguments": told["input"]}]
        for one in reversed(chain):
            calls = [{"name": one["to_agent"], "arguments": {"task": json.dumps(calls)}}]
        values = ", ".join(f'{name} "{value}"' for name, value in told["input"].items())
        asked = user_message(f"Please {_words(told['tool'])} with {values}.")
        request = SystemRequest((system_message(json.dumps(calls)), asked), tenant_id=told.get("as_tenant", ""))
        try:
            acting = self.system.acting_for(self.principal(told, chain))
            await acting.run(request, self._kit(chain))
        except RequestRejected as error:
            self.refused.append(Refused(told, error))

    def principal(self, told: dict[str, Any], chain: list[dict[str, Any]]) -> Principal:
        """The person who attempts something, as the directory knows them; what they claim is in the request alone."""
        tenant_id, user = self.users.get(told["as_user"], (told.get("as_tenant", ""), {}))
        tier = told.get("agent_tier", INTERACTIVE)
        return Principal(
            tenant_id,
            told["as_user"],
            (*STARTER, *user.get("scopes", ())),
            name=user.get("email", ""),
            # Beneath a run the house itself knows who is whose agent.
            channel=INTERACTIVE if chain and tier == SUBAGENT else tier,
            agent=chain[0]["from_agent"] if chain else told.get("agent_name", ""),
        )

    def _kit(self, chain: list[dict[str, Any]]) -> Kit:
        # An agent hands on what it was given to hand on; each grants what the delegation says.
        agents = [
            delegate(one["to_agent"], description=one["task"], lease=_lease(depth), grants=self.grants(one))
            for depth, one in enumerate(reversed(chain))
        ]
        return engine_kit(Obedient(), Registry([*self.tools, *agents]))

    def grants(self, delegation: dict[str, Any]) -> list[str] | None:
        """What a delegation hands on."""
        scopes: list[str] = delegation["delegated_scopes"]
        return scopes

    async def _kit_again(self, state: object) -> Kit:
        return self._kit([])

    async def policy(self, principal: Principal) -> Boundary:
        """What the keeper of policies says, while it can be reached."""
        if self.failing is not None and self.clock.at_ms < self.failing[1]:
            raise ConnectionError(self.failing[0])
        policy = self.tenants[principal.tenant_id].get("policy", {})
        conditions = [
            Condition(f"{tier}-{one.name}", f'tool == "{one.name}" && {where}', Then.REFUSE, f"{tier} calls are denied")
            for one in self.tools
            for tier, where in ((principal.channel, "depth == 0"), (SUBAGENT, "depth > 0"))
            if _level(policy, principal.user_id, one.name, tier).get("permission") == "deny"
        ]
        limit = _level(policy, principal.user_id, "", principal.channel).get("rate_limit_per_minute")
        return self.boundary(
            f"policy-of-{principal.tenant_id}",
            conditions=tuple(conditions),
            rates=(Rate("*", limit, MINUTE_MS, Whose.USER),) if limit else (),
        )

    def stand_in(self, principal: Principal) -> Boundary | None:
        """What holds for a tenant that would rather go on while policies cannot be read."""
        fails_open = self.tenants[principal.tenant_id].get("policy", {}).get("fail_mode") == "fail_open"
        return self.boundary("fail-open") if fails_open else None

    def boundary(self, name: str, **said: Any) -> Boundary:
        """A boundary that leaves what was asked for to the gate, and the rest to what is said."""
        return Boundary(
            name=name,
            permissions=self.permissions,
            approval_effects=(),
            approval_categories=(),
            budget=Budget(side_effects=20),
            authority=Authority(),
            **said,
        )


@asynccontextmanager
async def played(deployment: Deployment, actions: list[dict[str, Any]]) -> AsyncIterator[Deployment]:
    """A deployment in which the actions have happened."""
    try:
        await deployment.play(actions)
        yield deployment
    finally:
        await deployment.system.close()


def _level(policy: dict[str, Any], user: str, tool_name: str, tier: str) -> dict[str, Any]:
    """What a policy says of a tier: the most special place that says anything decides."""
    places = (
        policy.get("user_tools", {}).get(user, {}).get(tool_name, {}),
        policy.get("tools", {}).get(tool_name, {}),
        policy.get("users", {}).get(user, {}),
        policy.get("defaults", {}),
    )
    found: dict[str, Any] = next((place[tier] for place in places if tier in place), {})
    return found


def _lease(depth: int) -> dict[str, int]:
    """Room for so many agents beneath."""
    return {name: amount * (depth + 1) for name, amount in LEASE.items()}


def _tool_of(told: dict[str, Any]) -> Tool:
    def act(mailbox: str = "", path: str = "", content: str = "", scope: str = "", target_user: str = "") -> str:
        """Do what the tool is named for."""
        return f"{told['name']}: done"

    changes = told.get("sensitivity") in CHANGING or told["name"] == "grant_permission"
    return tool(
        name=told["name"],
        description=told.get("description", told["name"]),
        effect="write" if changes else "read",
        network=False,
        permissions=told.get("required_scopes", []),
        asks=[_words(told["name"])],
    )(act)


def _words(name: str) -> str:
    """How a user asks for a tool."""
    return name.replace("_", " ")
