"""Play a simulated world and print the turns of its runs: what arrived, what was ruled, what was ordered.

Without an argument it is the demo; with the seed that a broken law names, the scenario that broke it; with two seeds, the
scenarios from the first to before the second, of which one hash over everything that they wrote is printed. With the word
`shell` before them, they are worlds of whole systems, several on one store.

Everything printed is escaped: what a model or a tool says is data, also in a terminal.
"""

import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from remit.core.limits.profiles import PROFILES
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.observe.plain import printable_line
from remit.observe.views.execution import response_of
from remit.observe.views.trace import trace_lines
from remit.orchestrate.patterns.chat_graph import chat_for
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import in_turn, proposes, proposes_all, says
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.every_law import LAWS, keep_the_law
from tests.simulation.laws.shells import SHELL_LAWS
from tests.simulation.laws.shells import keep_the_law as keep_in_shells
from tests.simulation.scenarios import scenario
from tests.simulation.shell_world import ShellWorld, shell_scenario

ORDER = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
REFUND = {"type": "object", "properties": {"refunded": {"const": True}}, "required": ["refunded"]}


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
            ToolDefinition(
                "refund",
                "pay an order back",
                ORDER,
                REFUND,
                effect=Effect.EXTERNAL,
                idempotent=True,
                control_args=(("order_id", "id:order"),),
            ),
        ),
    )


def demo_world() -> SimulatedWorld:
    """A scripted model, two services and a person who approves."""
    return SimulatedWorld(
        model=in_turn(
            proposes_all(("lookup_order", {"order_id": "42"}), ("find_order", {"order_id": "42"})),
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
    return trace_lines(run.turns)


def main(arguments: Sequence[str] = ()) -> int:
    """Play the demo, or the scenario of a seed, and print every run of it; of a range of seeds, print one hash."""
    is_shell, seeds = arguments[:1] == ["shell"], [int(seed) for seed in arguments if seed != "shell"]
    make, keep, laws = (shell_scenario, keep_in_shells, SHELL_LAWS) if is_shell else (scenario, keep_the_law, LAWS)
    if len(seeds) == 2:
        print(hash_of_worlds(range(*seeds), make, keep))
        return 0
    world: Any = make(seeds[0]) if seeds else demo_world()
    if not seeds:
        world.finish(demo_manifest())
    for run_id in world.run_ids():
        _print_run(world, world.run(run_id))
    keep(world)
    print(f"{len(laws)} laws kept, seed {world.seed}")
    return 0


def hash_of_worlds(
    seeds: range, make: Callable[[int], Any] = scenario, keep: Callable[[Any], None] = keep_the_law
) -> str:
    """The hash of every journal of every world of these seeds, each of which has kept the law."""
    digest = sha256()
    for seed in seeds:
        world = make(seed)
        keep(world)
        for run_id in world.run_ids():
            digest.update(run_id.encode())
            for data in world.run(run_id).journal:
                digest.update(data)
    return digest.hexdigest()


def _print_run(world: SimulatedWorld | ShellWorld, run: SimulatedRun) -> None:
    response = response_of(run.state, world.text(run.state.result.answer))
    print("\n".join(lines_of(run)))
    print(f"\n{response.terminal_code or 'open'}: {printable_line(response.content)}")
    print(f"run {run.run_id}: {len(run.turns)} turns, {sum(map(len, run.journal))} bytes\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
