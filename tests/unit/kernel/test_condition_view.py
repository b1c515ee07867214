"""The view: what conditions look at, true at the moment they are asked."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.commands import Retrieve
from remit.core.limits.budget import Budget, Dimension
from remit.core.record import BlobRef, replace, size_bytes
from remit.core.run.contract import OutputContract, SystemRequest
from remit.core.run.messages import user_message
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Edge, Graph, Node, NodeKind
from remit.kernel.graph.condition_view import clock_ms_used, view_of
from remit.kernel.graph.edge_conditions import GUARD_VIEW
from remit.kernel.graph.expressions import GuardType
from remit.kernel.state import CONTEXT_FAILED
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import LEASE
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

PYTHON_TYPES = {GuardType.STRING: str, GuardType.INT: int, GuardType.BOOL: bool}


def seen(run: Run, name: str) -> object:
    return view_of(run.tally(), "answered")[name]


def test_the_view_has_exactly_the_documented_names_and_types() -> None:
    view = view_of(Run().tally(), "answered")
    assert list(view) == list(GUARD_VIEW)
    assert {name: type(value) for name, value in view.items()} == {
        name: PYTHON_TYPES[kind] for name, kind in GUARD_VIEW.items()
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outcome", "answered"),
        ("node", "think"),
        ("lifecycle", "EXECUTE"),
        ("loop_state", "executing"),
        ("visits", 2),
        ("iterations", 1),
        ("attempt", 1),
        ("turns", 3),
        ("answer_bytes", 10),
        ("proposed_calls", 2),
        ("refused_calls", 1),
        ("failed_calls", 1),
        ("committed_observations", 0),
        ("uncommitted_effects", 1),
        ("approvals_pending", 0),
        ("children_open", 0),
        ("children_failed", 0),
        ("depth", 1),
        ("wall_clock_ms_used", 20),
        ("last_tool", "look"),
        ("last_error", "TOOL_EXECUTION_FAILED"),
        ("ending", ""),
        ("repaired", False),
        ("has_schema", True),
        ("left_tool_calls", 49),
        ("left_output_tokens", 60_000 - 4 - 2048),
        ("left_wall_clock_ms", 600_000 - 20),
        ("left_depth", 2),
    ],
)
def test_each_name_has_the_value_its_meaning_promises(name: str, value: object) -> None:
    request = SystemRequest((user_message("please"),), output=OutputContract(schema={"type": "object"}))
    run = Run(replace(manifest_of(request=request), depth=1))
    run.proposes(wants("look"), wants("nothing"), text="let me see")
    run.fails("look")
    assert seen(run, name) == value


def test_questions_and_effects_that_wait_are_seen() -> None:
    run = Run()
    run.proposes(wants("write"), wants("pay"))
    assert (seen(run, "approvals_pending"), seen(run, "uncommitted_effects")) == (2, 2)


def test_a_repaired_answer_is_the_next_attempt() -> None:
    run = Run()
    run.says("{}", violations=(Violation("/n", "type", "is not a number"),))
    assert (seen(run, "attempt"), seen(run, "repaired")) == (2, True)


def test_children_are_seen_open_and_failed() -> None:
    run = Run(manifest_of(graph=in_line(Node("fan", NodeKind.MAP, prompt="go", children=3))))
    run.heard_from_child(Ending.IMPOSSIBLE)
    assert (seen(run, "children_open"), seen(run, "children_failed")) == (2, 1)


def test_a_long_text_counts_with_the_size_it_has_in_blobs() -> None:
    assert (size_bytes("äö"), size_bytes(BlobRef(b"digest", 5000))) == (4, 5000)


def test_the_clock_that_stands_still_uses_nothing() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.now_ms += 5_000
    assert clock_ms_used(run.tally()) == 10
    run.take(arrivals.ResumeRequested("ada"), after_ms=0)
    run.now_ms += 7
    assert clock_ms_used(run.tally()) == 17


# A condition is asked in the turn that settles something, before that turn is folded.


def conditional(source: str, condition: str) -> Graph:
    chat = chat_graph()
    return Graph("seeing", chat.start, chat.nodes, (Edge(source, "done", condition=condition), *chat.edges), chat.exits)


@pytest.mark.parametrize("condition", ["failed_calls == 1", "last_error == 'TOOL_EXECUTION_FAILED'"])
def test_a_condition_sees_the_call_that_just_failed(condition: str) -> None:
    run = Run(manifest_of(graph=conditional("act", condition)))
    run.proposes(wants("look"))
    run.fails("look")
    assert run.path()[-1] == "done"


@pytest.mark.parametrize("condition", ["refused_calls == 1", "last_error == 'TOOL_NOT_FOUND'", "failed_calls == 0"])
def test_a_condition_sees_the_call_that_was_just_refused(condition: str) -> None:
    run = Run(manifest_of(graph=conditional("act", condition)))
    run.proposes(wants("nothing"))
    assert run.path()[-1] == "done"


@pytest.mark.parametrize("condition", ["committed_observations == 1", "failed_calls == 0 && refused_calls == 0"])
def test_a_condition_sees_the_observation_that_was_just_committed(condition: str) -> None:
    run = Run(manifest_of(graph=conditional("act", condition)))
    run.proposes(wants("look"))
    run.returns()
    assert run.path()[-1] == "done"


@pytest.mark.parametrize("condition", ["iterations == 1", "proposed_calls == 0 && answer_bytes == 2"])
def test_a_condition_sees_the_answer_it_follows(condition: str) -> None:
    graph = in_line(Node("think", NodeKind.MODEL), edges=(Edge("think", "escalated", "answered", condition),))
    run = Run(manifest_of(graph=graph))
    run.says("hi")
    assert run.path()[-1] == "escalated"


def test_a_condition_does_not_count_the_question_just_answered() -> None:
    ask = Node("ask", NodeKind.HUMAN, prompt="Which city?")
    graph = in_line(ask, edges=(Edge("ask", "escalated", "answered", "approvals_pending == 0"),))
    run = Run(manifest_of(graph=graph))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 20))
    assert run.path()[-1] == "escalated"


@pytest.mark.parametrize("condition", ["children_open == 0", "children_failed == 1", "last_error == 'IMPOSSIBLE'"])
def test_a_condition_sees_the_child_that_just_ended(condition: str) -> None:
    child = Node("child", NodeKind.CHILD, prompt="go", lease=LEASE)
    graph = in_line(child, edges=(Edge("child", "escalated", "failed", condition), Edge("child", "done", "failed")))
    run = Run(manifest_of(graph=graph))
    run.heard_from_child(Ending.IMPOSSIBLE)
    assert run.path()[-1] == "escalated"


def test_a_condition_sees_how_a_failed_run_is_about_to_end() -> None:
    condition = "ending == 'UNAVAILABLE_DEP' && last_error == 'INFERENCE_ENGINE_ERROR'"
    edges = (Edge("think", "escalated", "failed", condition), Edge("think", "done", "failed"))
    run = Run(manifest_of(graph=in_line(Node("think", NodeKind.MODEL), edges=edges), budget=Budget(retries=0)))
    run.breaks(ErrorCode.INFERENCE_ENGINE_ERROR)
    assert run.path()[-1] == "escalated"


def test_a_condition_sees_that_no_context_was_found() -> None:
    edges = (Edge("find", "escalated", "found", f"last_error == '{CONTEXT_FAILED}'"),)
    run = Run(manifest_of(graph=in_line(Node("find", NodeKind.RETRIEVE), edges=edges), retrieves_context=True))
    run.take(arrivals.ContextFailed(run.open(Retrieve)[0].id))
    assert run.path()[-1] == "escalated"


def test_what_this_turn_promised_is_left_no_more() -> None:
    tally = Run().tally()
    tally.left[Dimension.TOOL_CALLS] -= 3
    assert view_of(tally, "")["left_tool_calls"] == 47
