"""Steps and replicas, told as they happen."""

from remit.adapters.cli.screen.step_lines import RunTeller, WorkTeller
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import Ending, ErrorCode
from remit.core.failure_families import FailureCategory
from remit.core.journal.arrivals import (
    Arrival,
    ChildEnded,
    ChildLost,
    CodeFailed,
    CodeReturned,
    PauseRequested,
    RunStarted,
    ToolFailed,
    ToolReturned,
)
from remit.core.journal.codec import to_json
from remit.core.journal.commands import CallCode, StartChild
from remit.core.journal.rulings import CheckFailed, NodeEntered, StepFinished, ToolCallRefused, VoteCounted
from remit.core.journal.turn import Decision, Turn
from remit.core.limits.profiles import STANDARD
from remit.core.record import BlobRef, replace
from remit.core.run.contract import ConfidenceSource, Mode, OutputContract, SystemRequest, SystemResponse
from remit.core.run.contract import SystemError as Failed
from remit.core.run.manifest import make_manifest
from remit.core.run.messages import user_message
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.graph import Graph
from remit.core.work.plan import ContextFor, ExecutionPlan, PlanPolicy, RerankInput, Step
from remit.core.work.values import ValueKind
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.handlers import ToolHandler
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_for
from remit.tool.declare.decorator import tool

HOSTILE = "\x1b[2J\u202e"
NOTHING = PauseRequested("ann")
MODEL = ScriptedEngine([{"text": "x"}]).model_info()


@tool(effect="read")
def look(place: str) -> str:
    """Look somewhere."""
    return place


STEPS = (Step("find", "search", "tea"), Step("call", "tool", {"place": "here"}, tool="look"))
PLAN = plan_graph(ExecutionPlan(STEPS), PlanPolicy(), {"search": print, "tool": ToolHandler([look])})
REQUEST = SystemRequest((user_message("hi"),), Mode.REDUNDANT, output=OutputContract(schema={"type": "object"}))
VOTE = redundant_for(REQUEST, Redundancy(3))
RESPONSE = SystemResponse("q", "s", "r1")


# What is under way: code of a step or of a vote, and a run that works for a step.
CODE, BENEATH = CallCode("1.9", "code", "x", 1), StartChild("0.9", "r1.0.9", "hi", (), 0, 0, (), call_id="c", tool="t")


def turn(arrival: Arrival, *decisions: Decision, at_ms: int = 0) -> Turn:
    return Turn(seq=1, at_ms=at_ms, previous=b"", kernel=1, arrival=arrival, decisions=decisions)


def said(teller: WorkTeller | RunTeller, arrival: Arrival, *decisions: Decision, at_ms: int = 0) -> list[str]:
    """The lines of a turn, without their colours."""
    told = teller.lines(turn(arrival, *decisions, at_ms=at_ms))
    return ["".join(text for text, _ in line) for line in told]


def begun(graph: Graph) -> WorkTeller:
    """A watcher who has heard of the beginning of a run."""
    teller = WorkTeller()
    manifest = make_manifest(run_id="r1", request=REQUEST, boundary=STANDARD, graph=graph, models=(MODEL,))
    assert said(teller, RunStarted(manifest, 0), CODE, BENEATH) == []
    return teller


def finished(step: str, kind: ValueKind = ValueKind.TEXT) -> StepFinished:
    return StepFinished(step, kind, "1.9")


def child(command_id: str) -> StartChild:
    return StartChild(command_id, f"r1.{command_id}", "hi", (), 0, 0, (), node="replica")


def test_a_step_is_told_when_it_begins_and_what_it_gave_with_its_time() -> None:
    teller = begun(PLAN)
    assert said(teller, NOTHING, NodeEntered("find", "x"), at_ms=10) == ["  -> find (search, 1 of 2)"]
    given = CodeReturned("1.9", "two\neuros", kind=ValueKind.TEXT)
    assert said(teller, given, finished("find"), at_ms=1510) == ["  <- find 1.5 s  two euros"]


def test_a_step_that_calls_a_tool_begins_once_although_it_has_two_nodes() -> None:
    teller = begun(PLAN)
    assert said(teller, NOTHING, NodeEntered("call:arguments", "x")) == ["  -> call (tool, 2 of 2)"]
    assert said(teller, NOTHING, NodeEntered("call", "x")) == []
    returned = ToolReturned("1.9", "a book", b"")
    assert said(teller, returned, finished("call", ValueKind.RESULT)) == ["  <- call a book"]


def test_evidence_is_told_by_its_number_and_sources() -> None:
    teller = begun(PLAN)
    found = RerankInput("tea", (Candidate("Tea\ncosts two.", "tea.md", 1.0, ScoreMaker.RETRIEVAL),))
    given = CodeReturned("1.9", to_json(found), kind=ValueKind.CANDIDATES)
    assert said(teller, given, finished("find", ValueKind.CANDIDATES)) == [
        "  <- find 1 candidate: tea.md: Tea costs two."
    ]
    nothing = CodeReturned("1.9", to_json(RerankInput("tea")), kind=ValueKind.CANDIDATES)
    assert said(teller, nothing, finished("find", ValueKind.CANDIDATES)) == ["  <- find 0 candidates"]
    messages = CodeReturned("1.9", to_json(ContextFor("tea", (user_message("Tea."),))), kind=ValueKind.MESSAGES)
    assert said(teller, messages, finished("find", ValueKind.MESSAGES)) == ["  <- find 1 message: Tea."]


def test_what_is_too_long_for_a_turn_is_told_by_its_size_and_what_was_only_looked_at_has_passed() -> None:
    teller = begun(PLAN)
    large = CodeReturned("1.9", BlobRef(b"", 70_000), kind=ValueKind.TEXT)
    assert said(teller, large, finished("find")) == ["  <- find <70000 bytes>"]
    passed = StepFinished("find", ValueKind.TEXT, "1.9", is_passed_on=True)
    assert said(teller, CodeReturned("1.9", checks_passed=2), passed) == ["  <- find passed 2 checks"]
    assert said(teller, CodeReturned("1.9", checks_passed=1), passed) == ["  <- find passed 1 check"]
    assert said(teller, NOTHING, passed) == ["  <- find passed"]


def test_what_goes_wrong_with_a_step_is_told_with_its_code() -> None:
    teller = begun(PLAN)
    said(teller, NOTHING, NodeEntered("find", "x"))
    assert said(teller, CodeFailed("1.9", "no")) == ["  !! find failed (TOOL_EXECUTION_FAILED): no"]
    assert said(teller, ToolFailed("1.9", ErrorCode.TOOL_TIMEOUT, "late")) == ["  !! find failed (TOOL_TIMEOUT): late"]
    assert said(teller, NOTHING, CheckFailed(("too long", "rude"))) == ["  !! find sends it back: too long; rude"]
    refused = ToolCallRefused("c", "look", "PERMISSION_DENIED", "not allowed")
    assert said(teller, NOTHING, refused) == ["  !! find look was refused (PERMISSION_DENIED): not allowed"]
    ended = ChildEnded("0.9", Ending.UNAVAILABLE_DEP, error=ErrorCode.INFERENCE_ENGINE_ERROR, message="gone")
    assert said(teller, ended) == ["  !! find ended as INFERENCE_ENGINE_ERROR: gone"]
    assert said(teller, ChildLost("0.9")) == ["  !! find was lost"]
    assert said(teller, ChildEnded("0.9", Ending.SUCCESS, "fine")) == []


def test_replicas_are_numbered_as_they_are_asked() -> None:
    teller = begun(VOTE)
    assert said(teller, NOTHING, child("1.0"), child("1.1"), child("1.2")) == [
        "  -> replica 1 of 3",
        "  -> replica 2 of 3",
        "  -> replica 3 of 3",
    ]
    assert said(teller, ChildEnded("1.1", Ending.SUCCESS, '{"a":\n1}')) == ['  <- replica 2 of 3 {"a": 1}']
    failed = ChildEnded("1.0", Ending.TIMEOUT, message="too slow")
    assert said(teller, failed) == ["  !! replica 1 of 3 ended as TIMEOUT: too slow"]
    assert said(teller, ChildLost("1.2")) == ["  !! replica 3 of 3 was lost"]
    assert said(teller, CodeFailed("1.9", "no")) == ["  !! the vote failed (TOOL_EXECUTION_FAILED): no"]


def concluded(teller: WorkTeller, confidence: float) -> str:
    return teller.conclusion(
        replace(
            RESPONSE, confidence=confidence, confidence_source=ConfidenceSource.VOTING, terminal_code=Ending.SUCCESS
        )
    )


def test_a_vote_is_concluded_with_how_many_agree_and_how_many_were_not_asked() -> None:
    teller = begun(VOTE)
    assert concluded(teller, 0.5) == "confidence 50 %"
    said(teller, NOTHING, child("1.0"), VoteCounted("1.0", 2, 3, 666_667))
    assert concluded(teller, 2 / 3) == "2 of 3 agree, confidence 67 %"
    said(teller, ChildEnded("1.0", Ending.TIMEOUT), VoteCounted("1.1", 1, 1, 1_000_000))
    assert concluded(teller, 1.0) == "1 of 1 agree, 1 not asked, confidence 100 %"


def test_a_plan_that_failed_is_concluded_with_what_was_finished_and_one_that_did_not_with_nothing() -> None:
    teller = begun(PLAN)
    failure = Failed("TOOL_TIMEOUT", FailureCategory.TOOL, retryable=False, message="late")
    assert teller.conclusion(RESPONSE) == ""
    said(teller, CodeReturned("1.9", "x"), finished("find"))
    said(teller, CodeReturned("1.9", "y"), finished("find"))
    assert teller.finished == ["find"]
    assert teller.conclusion(replace(RESPONSE, error=failure)) == (
        "1 of 2 steps were finished: find; what they gave: remit show r1"
    )


def test_what_another_watcher_was_told_is_caught_up_with_in_silence() -> None:
    manifest = make_manifest(run_id="r1", request=REQUEST, boundary=STANDARD, graph=PLAN, models=(MODEL,))
    teller = RunTeller(Terminal(None, None))
    teller.catch_up([turn(RunStarted(manifest, 0), CODE), turn(NOTHING, NodeEntered("find", "x"))])
    assert said(teller, CodeReturned("1.9", "x"), finished("find")) == ["  <- find x"]


def test_of_any_other_run_nothing_is_told() -> None:
    teller = begun(chat_graph())
    assert said(teller, ChildEnded("1.0", Ending.TIMEOUT), child("1.0"), NodeEntered("think", "x")) == []
    assert not WorkTeller.tells(chat_graph())
    assert WorkTeller.tells(PLAN)
    assert WorkTeller.tells(VOTE)


def test_names_and_outputs_are_escaped_and_cut() -> None:
    graph = plan_graph(ExecutionPlan((Step(HOSTILE, HOSTILE, "x"),)), PlanPolicy(), {HOSTILE: print})
    teller = begun(graph)
    lines = said(teller, NOTHING, NodeEntered(HOSTILE, "x"))
    lines += said(teller, CodeReturned("1.9", HOSTILE + "y" * 1000), finished(HOSTILE))
    assert all(line.isprintable() and len(line) < 200 for line in lines)
