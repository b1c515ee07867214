"""Filters of the user: how they are called, what they are told, and the calls that they see just before they are made.

Rule 1: a filter that takes one argument is shown the call, one that takes two is shown the context as well.
Rule 2: a call that the model did not propose so, because a person gave it other arguments or it stands in for another tool, is
        shown to every filter before it goes out. It was approved or judged as it is, so a filter can only turn it away.
Rule 3: a filter that breaks lets nothing through.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from remit.core.journal.commands import CallTool
from remit.core.limits.tools import ToolCall
from remit.core.raised import raised
from remit.core.record import JsonObject
from remit.core.run.manifest import CODE_TIMEOUT_MS
from remit.kernel.state import RunState
from remit.orchestrate.executors.errands import Sender, ToolErrand
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.orchestrate.setup.kit import FilterContext, ToolCallFilter
from remit.tool.call.threads import call_user_code

MODIFIED, FALLBACK = "a person gave it other arguments", "it is called in the place of a tool that is unavailable"


def context_of(sender: Sender, node: str, calls: tuple[ToolCall, ...], why: str = "") -> FilterContext:
    """What a filter is told of the place where these calls were proposed."""
    return FilterContext(
        run_id=sender.run_id,
        tenant_id=sender.tenant_id,
        user_id=sender.user_id,
        session_id=sender.session_id,
        node=node,
        calls=calls,
        why=why,
    )


async def looked(tool_filter: ToolCallFilter, call: ToolCall, context: FilterContext) -> Any:
    """The answer of a filter about a call."""
    given = (call, context) if takes_context(tool_filter) else (call,)
    return await call_user_code(tool_filter, *given)


def takes_context(tool_filter: Callable[..., Any]) -> bool:
    """Whether a filter asks for the context: it takes a second argument that it does not have already."""
    try:
        parameters = inspect.signature(tool_filter).parameters.values()
    except (TypeError, ValueError):
        return False
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    has_rest = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return has_rest or sum(one.default is one.empty for one in places) > 1


def unseen_because(state: RunState, command: CallTool) -> str:
    """Why no filter has seen a call as it is made; empty when all have."""
    same = [call for call in state.calls.proposed if call.call_id == command.call_id]
    if any((call.tool, call.arguments_hash) == (command.tool, command.arguments_hash) for call in same):
        return ""
    return MODIFIED if any(call.tool == command.tool for call in same) else FALLBACK


async def turned_away(filters: Mapping[str, ToolCallFilter], errand: ToolErrand, arguments: JsonObject) -> str:
    """Why a filter does not want a call that none has seen so; empty when every filter lets it pass."""
    command, why = errand.command, errand.unseen
    for name, tool_filter in filters.items():
        # Made anew for every filter: what a filter does to what it is shown changes nothing.
        call, beside = (
            ToolCall(command.call_id, command.tool, *deepcopy((arguments, errand.metadata))) for _ in range(2)
        )
        try:
            answer = await within(
                CODE_TIMEOUT_MS, looked(tool_filter, call, context_of(errand.sender, errand.node, (beside,), why))
            )
        except TimeRanOut:
            return f"filter {name} failed: it took longer than timeout_ms={CODE_TIMEOUT_MS}"
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # whatever the user's code raises lets nothing through
            return f"filter {name} failed: {raised(error)}"
        if isinstance(answer, str) and answer:
            return f"filter {name}: {answer}"
        as_is = (command.call_id, command.tool, arguments)
        if answer is not None and (
            not isinstance(answer, ToolCall) or (answer.id, answer.name, answer.arguments) != as_is
        ):
            return f"filter {name} wants it changed, and {why}: propose it with the arguments that the filter wants"
    return ""
