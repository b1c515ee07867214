"""The redundant graph: what it asks, what it refuses, and what the facade makes of it."""

from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.record import replace
from remit.core.run.contract import ConfidenceSource, Mode, OutputContract
from remit.core.run.lifecycle import LifecycleState
from remit.core.work.graph import JoinRule, NodeKind
from remit.kernel.graph.compiled import compile_graph
from remit.orchestrate.patterns.redundant_graph import REPLICAS_INVALID, Redundancy, redundant_for
from remit.orchestrate.setup.kit import Terms
from tests.unit.orchestrate.house import in_memory, request, scripted
from tests.unit.orchestrate.stage import play

OUTPUT = OutputContract({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
ASKED = replace(request("How many?"), mode=Mode.REDUNDANT, output=OUTPUT)


@pytest.mark.req("0.21")
@pytest.mark.parametrize("redundancy", [Redundancy(), Redundancy(is_parallel=True), Redundancy(5, early_stop=True)])
def test_every_form_of_the_graph_compiles_and_passes_through_the_lifecycle(redundancy: Redundancy) -> None:
    compiled = compile_graph(redundant_for(ASKED, redundancy))
    states = {node.lifecycle for node in compiled.nodes if node.kind is not NodeKind.TERMINAL}
    assert states == {LifecycleState.PREPARE, LifecycleState.EXECUTE, LifecycleState.VALIDATE}


def test_replicas_beside_each_other_are_a_map_and_a_vote_that_may_stop_early_asks_in_turn() -> None:
    def replica(redundancy: Redundancy) -> Any:
        return next(node for node in redundant_for(ASKED, redundancy).nodes if node.name == "replica")

    together = replica(Redundancy(4, is_parallel=True, timeout_ms=9))
    assert (together.kind, together.children, together.join, together.timeout_ms) == (NodeKind.MAP, 4, JoinRule.ANY, 9)
    in_turn = replica(Redundancy(4, is_parallel=True, early_stop=True))
    assert (in_turn.kind, in_turn.visits_max) == (NodeKind.CHILD, 4)


@pytest.mark.parametrize("redundancy", [Redundancy(0), Redundancy(101), Redundancy(timeout_ms=-1)])
def test_numbers_that_no_vote_could_be_taken_with_are_refused(redundancy: Redundancy) -> None:
    with pytest.raises(RequestRejected) as refused:
        redundant_for(ASKED, redundancy)
    assert refused.value.code == REPLICAS_INVALID


@pytest.mark.req("0.13", "0.14", "2.28")
def test_mode_redundant_asks_three_times_and_votes() -> None:
    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(ASKED, scripted({"text": '{"a":7}'}))
            assert (response.content, response.structured_output) == ('{"a":7}', {"a": 7})
            assert (response.confidence, response.confidence_source) == (1.0, ConfidenceSource.VOTING)
            assert len((await system.state_of(response.run_id)).children.ended) == 3

    play(story())


def test_a_vote_that_nobody_knows_how_to_count_finds_no_consensus() -> None:
    async def story() -> None:
        async with in_memory() as system:
            terms = Terms(redundancy=Redundancy(voting="loudest"))
            response = await system.run(ASKED, scripted({"text": '{"a":7}'}), terms)
            assert response.terminal_code is Ending.IMPOSSIBLE
            assert response.error is not None
            assert response.error.code == ErrorCode.ORCHESTRATION_NO_CONSENSUS
            assert response.error.message.startswith("there is no code here named 'vote:loudest'")

    play(story())
