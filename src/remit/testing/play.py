"""Play a simulated world and print the turns of its runs: what arrived, what was ruled, what was ordered.

Without an argument it is the demo; with the seed that a broken law names, the scenario that broke it.

Everything printed is escaped: what a model or a tool says is data, also in a terminal.
"""

import sys
from collections.abc import Sequence

from remit.core.arrivals import ProposedCall, RunStarted
from remit.core.boundary import PROFILES
from remit.core.budget import FIELDS
from remit.core.commands import COMMANDS, Packet
from remit.core.contract import SystemRequest
from remit.core.events import Turn
from remit.core.inference import ModelInfo, Price
from remit.core.manifest import Manifest, make_manifest
from remit.core.messages import user_message
from remit.core.tools import Effect, ToolDefinition
from remit.observe.execution import response_of
from remit.orchestrate.patterns.chat import chat_for
from remit.testing.laws import LAWS, keep_the_law
from remit.testing.runs import SimulatedRun
from remit.testing.scenarios import scenario
from remit.testing.script import in_turn, proposes, proposes_all, says
from remit.testing.world import SimulatedWorld

ORDER = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
# Wide enough for a line of a terminal, narrow enough to stay one.
LINE_CHARS_MAX = 130

# Fields that speak for themselves, fields that hold charges, and fields that only programs read.
SPEAKING = ("tool", "calls", "arguments", "text", "content", "node", "code", "ending", "packet", "answer", "purpose")
CHARGES = ("reserved", "charged", "releases", "over")
UNSAID = ("tokens_bound", "evidence", "arguments_hash", "version", "usage", "timeout_ms", "key", "model", "call_id")


def demo_manifest() -> Manifest:
    """A support agent that looks an order up, and refunds it when a person approves."""
    request = SystemRequest(messages=(user_message("Order 42 arrived broken. Please refund it."),))
    return make_manifest(
        run_id="demo",
        request=request,
        boundary=PROFILES["customer_support"],
        graph=chat_for(request),
        models=(ModelInfo("scripted", 8192, Price(150_000, 600_000)),),
        tools=(
            ToolDefinition(
                "lookup_order", "look an order up", ORDER, effect=Effect.READ, permissions=("account.read",)
            ),
            ToolDefinition("refund", "pay an order back", ORDER, effect=Effect.EXTERNAL, idempotent=True),
        ),
    )


def demo_world() -> SimulatedWorld:
    """A scripted model, two services and a person who approves."""
    return SimulatedWorld(
        model=in_turn(
            proposes_all(("lookup_order", {"order_id": "42"}), ("drop_tables", {})),
            proposes("refund", {"order_id": "42"}),
            says("Order 42 is refunded."),
        ),
        tools={
            "lookup_order": lambda arguments: f'{{"order_id": "{arguments["order_id"]}", "state": "delivered"}}',
            "refund": lambda arguments: '{"refunded": true}',
        },
        seed=7,
    )


def lines_of(run: SimulatedRun) -> list[str]:
    """The turns of a run: what arrived, then what was ruled, then (after an arrow) what was ordered."""
    return [line for turn in run.turns for line in _lines_of(turn, run.turns[0].at_ms)]


def _lines_of(turn: Turn, began_at_ms: int) -> list[str]:
    lines = [f"{turn.seq:>3} {(turn.at_ms - began_at_ms) / 1000:>8.1f} s  {_shown(turn.arrival)}"]
    for decision in turn.decisions:
        arrow = "-> " if type(decision) in COMMANDS else "   "
        lines.append(f"{'':>14}{arrow}{_shown(decision)}")
    return lines


def _shown(record: object) -> str:
    """A record by its name and the fields that say something."""
    if isinstance(record, RunStarted):
        said = [_escaped(record.manifest.boundary.name), _value(record.manifest.request.messages[-1].content)]
    else:
        fields = (
            (name, getattr(record, name)) for name in getattr(record, "__struct_fields__", ()) if name not in UNSAID
        )
        said = [_field(name, value) for name, value in fields if value not in ("", b"", (), 0, None)]
    text = " ".join([type(record).__name__, *said])
    return text if len(text) <= LINE_CHARS_MAX else f"{text[: LINE_CHARS_MAX - 1]}…"


def _field(name: str, value: object) -> str:
    if name in CHARGES and isinstance(value, tuple):
        return f"{name}={'+'.join(f'{amount} {FIELDS[dimension]}' for dimension, amount in value)}"
    return _value(value) if name in SPEAKING else f"{name}={_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()[:8]
    if isinstance(value, ProposedCall):
        return f"{_escaped(value.tool)}{_value(value.arguments)}"
    if isinstance(value, Packet):
        return f"{_value(value.call)} because {_escaped('; '.join(value.reasons))}"
    if isinstance(value, tuple):
        return ", ".join(_value(item) for item in value)
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode()


def main(arguments: Sequence[str] = ()) -> int:
    """Play the demo, or the scenario of a seed; print every run of it, and check every law."""
    if arguments:
        world = scenario(int(arguments[0]))
    else:
        world = demo_world()
        world.finish(demo_manifest())
    for run_id in world.run_ids():
        _print_run(world, world.run(run_id))
    keep_the_law(world)
    print(f"{len(LAWS)} laws kept, seed {world.seed}")
    return 0


def _print_run(world: SimulatedWorld, run: SimulatedRun) -> None:
    response = response_of(run.state, world.text(run.state.answer))
    print("\n".join(lines_of(run)))
    print(f"\n{response.terminal_code or 'open'}: {_escaped(response.content)}")
    print(f"run {run.run_id}: {len(run.turns)} turns, {sum(map(len, run.journal))} bytes\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
