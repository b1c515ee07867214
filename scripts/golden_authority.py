"""Golden journals of runs under a boundary that audits, filters, counts, foresees and finds other ways than to stop."""

from collections.abc import Awaitable, Callable

from remit.core.failure import ErrorCode
from remit.core.journal import commands
from remit.core.limits.boundary import Boundary, BoundaryMode, Exhaustion
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolCall, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.core.work.goal import Goal, RequiredAction
from remit.orchestrate.executors import reports
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.scripts import proposes, says
from scripts.golden_stage import Stage, asked
from tests.simulation.authority_scenarios import CHEAP
from tests.simulation.scenarios import MODEL, TOOLS

_KNOWN = {tool.name: tool for tool in TOOLS}
_LONG = '{"ok": true, "text": "' + "x" * 900 + '"}'


def _governed(
    run_id: str,
    boundary: Boundary,
    *tools: ToolDefinition,
    goal: Goal | None = None,
    filters: tuple[str, ...] = (),
) -> Manifest:
    return make_manifest(
        run_id=run_id,
        request=SystemRequest((user_message("please"),)),
        boundary=boundary,
        graph=chat_graph(),
        models=(MODEL, CHEAP),
        tools=tools,
        goal=goal,
        filters=filters,
        cheaper=1,
    )


async def audited(stage: Stage) -> None:
    """A write that a boundary only notes: it would have asked."""
    boundary = Boundary(name="audit", mode=BoundaryMode.AUDIT, budget=Budget(side_effects=1))
    live = await stage.start("audited", _governed("audited", boundary, _KNOWN["write"]))
    await stage.answer(live, proposes("write", {"n": 1}))
    await stage.give(live)
    await stage.answer(live, says("It is written."))


async def sifted(stage: Stage) -> None:
    """A look-up whose arguments a filter changes."""
    live = await stage.start("sifted", _governed("sifted", Boundary(name="plain"), _KNOWN["look"], filters=("mask",)))
    await stage.answer(live, proposes("look", {"n": 1, "note": "mine"}))
    code = asked(live, commands.CallCode)
    call = live.state.calls.proposed[0]
    changed = reports.SiftedCall(ToolCall(call.call_id, call.tool, {"n": 1}))
    await stage.hear(live, reports.FilterSaid(code.id, (changed,)))
    await stage.give(live)
    await stage.answer(live, says("It is there."))


async def fallen_back(stage: Stage) -> None:
    """A look-up that is unavailable; its equal is asked."""
    look = replace(_KNOWN["look"], fallback="twin")
    twin = replace(_KNOWN["look"], name="twin")
    live = await stage.start("fallen_back", _governed("fallback", Boundary(name="plain"), look, twin))
    await stage.answer(live, proposes("look", {"n": 1}))
    call = asked(live, commands.CallTool)
    await stage.hear(live, reports.ToolBroke(call.id, ErrorCode.TOOL_UNAVAILABLE, "it is not there"))
    await stage.give(live)
    await stage.answer(live, says("It is there."))


async def seen_by_two(stage: Stage) -> None:
    """A payment that two people approve."""
    pay = replace(_KNOWN["pay"], category=ToolCategory.PAYMENT)
    boundary = Boundary(name="eyes", four_eyes=(ToolCategory.PAYMENT,))
    live = await stage.start("seen_by_two", _governed("eyes", boundary, pay))
    await stage.answer(live, proposes("pay", {"n": 5}))
    question = asked(live, commands.AskHuman).id
    await stage.hear(live, reports.PersonApproved(question, "ada"), reports.PersonApproved(question, "bob"))
    await stage.give(live)
    await stage.answer(live, says("It is paid."))


async def stopped_early(stage: Stage) -> None:
    """A run that can no longer do what its goal requires."""
    goal = Goal("look twice", required_actions=(RequiredAction("look", 3),))
    boundary = Boundary(name="short", budget=Budget(tool_calls=2))
    await stage.start("stopped_early", _governed("short", boundary, _KNOWN["look"], goal=goal))


async def last_words(stage: Stage) -> None:
    """A run whose calls are spent, and which says its last words."""
    boundary = Boundary(
        name="words", budget=Budget(tool_calls=1), exhaustion=(("tool_calls", Exhaustion.WRAP_UP),), stops_early=False
    )
    live = await stage.start("last_words", _governed("words", boundary, _KNOWN["look"]))
    await stage.answer(live, proposes("look", {"n": 1}))
    await stage.give(live)
    await stage.answer(live, proposes("look", {"n": 2}), says("That is all I have."))


async def downgraded(stage: Stage) -> None:
    """A run that cannot pay its first model and asks a cheaper one."""
    boundary = Boundary(
        name="frugal",
        budget=Budget(inference_cost_microusd=2_000),
        exhaustion=(("inference_cost_microusd", Exhaustion.DOWNGRADE),),
    )
    live = await stage.start("downgraded", _governed("frugal", boundary))
    await stage.answer(live, says("I am cheap."))


async def compressed(stage: Stage) -> None:
    """A run whose earlier results are shown by their digest."""
    boundary = Boundary(
        name="full", budget=Budget(context_tokens=3_500), exhaustion=(("context_tokens", Exhaustion.COMPRESS),)
    )
    look = replace(_KNOWN["look"], result={})
    live = await stage.start("compressed", _governed("full", boundary, look))
    for n in range(3):
        await stage.answer(live, proposes("look", {"n": n}))
        await stage.give(live, _LONG)
    await stage.answer(live, says("I have read it all."))


GOVERNED: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    audited,
    sifted,
    fallen_back,
    seen_by_two,
    stopped_early,
    last_words,
    downgraded,
    compressed,
)
