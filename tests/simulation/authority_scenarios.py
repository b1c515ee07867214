"""Scenarios of authority: runs whose boundary asks, counts, filters, foresees and traces in every way it can.

Rule 1: chance comes from a stream of its own, so that worlds without any of this stay as they are.
"""

from collections.abc import Mapping, Sequence
from random import Random

from remit.core.failure import Ending
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import Boundary, BoundaryMode, Condition, Exhaustion, Rate, Then, boundary_version
from remit.core.limits.budget import Budget, assign
from remit.core.limits.tool_trust import Repeat, Trust
from remit.core.limits.tools import Effect, ToolCall, ToolCategory, ToolDefinition, tool_version
from remit.core.record import JsonObject, replace
from remit.core.run.inference import ModelInfo, ModelResult, Price
from remit.core.run.manifest import Manifest, Versions
from remit.core.run.messages import Message, user_message
from remit.core.work.goal import Goal, RequiredAction
from remit.testing.scripts import Breaks, Filter, Model, Stops

# A model of the same kind that costs a tenth.
CHEAP = ModelInfo("cheap", 100_000, Price(100_000, 200_000))

_QUESTION: JsonObject = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "options": {"type": "array"}},
    "required": ["question"],
}
_WORDS = "please write 1, write 2, put 3, pay 4, look 5 and read report 6; then tell me"
_TOLD = (("write", 1), ("write", 2), ("put", 3), ("pay", 4), ("pay", 4), ("look", 5), *[("report", 6)] * 2, ("ask", 0))


def _version(tool: ToolDefinition) -> ToolDefinition:
    return replace(tool, version=tool_version(replace(tool, version="")))


def governed_tools(tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """The tools of a scenario with what an authority asks of them, and a few that only it needs."""
    known = {tool.name: tool for tool in tools}
    trust = Trust(repeat=Repeat.TARGET, asks=("write", "put", "pay"))
    changed = (
        replace(known["look"], fallback="twin", rate_max=6, rate_per_ms=60_000),
        replace(known["fetch"], alternative="look"),
        replace(known["write"], category=ToolCategory.FILE_SYSTEM, trust=trust, control_args=(("n", "number"),)),
        replace(known["put"], category=ToolCategory.DATABASE, trust=trust, rollback="put the value back"),
        replace(known["pay"], category=ToolCategory.PAYMENT, trust=trust, blast_radius="one payment"),
    )
    twin = replace(known["look"], name="twin")
    ask = ToolDefinition("ask", "ask a person", _QUESTION, effect=Effect.NONE, asks_under=Ending.MISSING_INFO)
    report = replace(known["look"], name="report")
    others = tuple(tool for tool in tools if tool.name not in {one.name for one in changed})
    return tuple(_version(tool) for tool in (*others, *changed, twin, report, ask))


def governing(otherwise: Model) -> Model:
    """A model that also asks people and often does as it is told."""

    def answer(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
        said = otherwise(messages, chance)
        if isinstance(said, Breaks) or not said.tool_calls or chance.random() < 0.2:
            return said
        name, n = chance.choice(_TOLD)
        arguments: JsonObject = {"question": "which?", "options": ["this", "that"]} if name == "ask" else {"n": n}
        # Alone as often as beside what was not asked for, which is refused and soon ends the run.
        beside = said.tool_calls if chance.random() < 0.4 else ()
        return replace(said, tool_calls=(*beside, ToolCall(f"told{n}", name, arguments)))

    return answer


def governed(manifest: Manifest, seed: int) -> Manifest:
    """The same run under a boundary that uses everything a boundary can say."""
    chance = Random(f"governed {seed}")
    boundary = _boundary(manifest.boundary, chance)
    goal = manifest.goal
    if chance.random() < 0.3:
        goal = Goal("agree", critical=("ok",), required_actions=(RequiredAction("look", 2),))
    elif chance.random() < 0.2:
        goal = Goal("be sure", confidence_ppm_min=900_000)
    versions = Versions(boundary_version(boundary), manifest.versions.graph, manifest.versions.tools)
    return replace(
        manifest,
        boundary=boundary,
        versions=versions,
        caps=assign(boundary.budget),
        tools=governed_tools(manifest.tools),
        models=(*manifest.models, CHEAP),
        cheaper=1,
        request=replace(manifest.request, messages=(user_message(_WORDS),), tools=()),
        goal=goal,
        filters=tuple(name for name in FILTERS if chance.random() < 0.15),
    )


def _boundary(boundary: Boundary, chance: Random) -> Boundary:
    policies = (
        ("context_tokens", Exhaustion.COMPRESS),
        ("output_tokens", chance.choice((Exhaustion.WRAP_UP, Exhaustion.ASK))),
        ("inference_cost_microusd", chance.choice((Exhaustion.DOWNGRADE, Exhaustion.ASK, Exhaustion.WRAP_UP))),
        ("tool_calls", chance.choice((Exhaustion.ASK, Exhaustion.WRAP_UP, Exhaustion.STOP))),
    )
    conditions = (
        Condition("odd", 'tool == "pay" && args.n % 2 == 1', Then.REFUSE),
        Condition("late", "left_tool_calls < 3 && changes", Then.ASK),
        Condition("undecided", 'tool == "put" && args.missing == 1', Then.ASK),
        Condition("seven", 'tool == "look" && args.n == 7', Then.STOP, "nobody looks at seven"),
    )
    return replace(
        boundary,
        mode=chance.choice((BoundaryMode.ENFORCE, BoundaryMode.ENFORCE, BoundaryMode.ENFORCE, BoundaryMode.AUDIT)),
        approval_effects=() if chance.random() < 0.6 else boundary.approval_effects,
        approval_categories=() if chance.random() < 0.6 else boundary.approval_categories,
        four_eyes=(ToolCategory.PAYMENT,) if chance.random() < 0.5 else (),
        rates=(Rate("*", 12, 600_000),) if chance.random() < 0.3 else (),
        conditions=tuple(condition for condition in conditions if chance.random() < 0.3),
        authority=None if chance.random() < 0.2 else Authority(),
        exhaustion=tuple(policy for policy in policies if chance.random() < 0.6),
        wrap_up_tokens=64,
        on_silence=("supervisor",) if chance.random() < 0.4 else (),
        budget=Budget(
            tool_calls=chance.choice((6, 20, 60)),
            output_tokens=chance.choice((5_000, 60_000, 60_000)),
            # A first call shows about 1,900 tokens: some results fit beside them, or all, and then nothing is spent. It
            # reserves about 6,000 microusd, and a tenth of that with the cheaper model.
            context_tokens=chance.choice((2_600, 4_000, 200_000, 200_000)),
            inference_cost_microusd=chance.choice((4_000, 5_000_000, 5_000_000)),
            side_effects=chance.choice((0, 1, 4, 20)),
            human_reviews=chance.choice((2, 20)),
            external_api_calls=30,
        ),
    )


def _masks(tool: str, arguments: JsonObject) -> tuple[JsonObject, str]:
    return ({**arguments, "note": "masked"}, "") if "note" in arguments else (arguments, "")


def _refuses(tool: str, arguments: JsonObject) -> tuple[JsonObject, str]:
    return arguments, "nobody pays today" if tool == "pay" else ""


def _breaks(tool: str, arguments: JsonObject) -> tuple[JsonObject, str]:
    raise RuntimeError("this filter does not work")


# What each filter makes of a call: other arguments, or a reason not to make it.
FILTERS: Mapping[str, Filter] = {"masks": _masks, "refuses": _refuses, "breaks": _breaks}


def reading_service(arguments: JsonObject) -> str:
    """A result so long that it is worth showing shorter."""
    return '{"ok": true, "report": "' + "all is well. " * 50 + '"}'


def asking_service(arguments: JsonObject) -> str | Stops:
    """Never called: the kernel asks a person instead."""
    raise AssertionError("a tool that asks a person is no function")
