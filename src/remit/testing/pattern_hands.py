"""What the code and the children of plans and votes do in a simulated world: well, badly, or not at all.

Rule 1: votes are counted by the strategies that are shipped; what goes wrong with them is added here.
Rule 2: what a step gives depends on the seed and not on its input, so that every kind meets every step.
"""

from collections.abc import Callable
from random import Random

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import CodeFailed, CodeReturned, Election
from remit.core.journal.codec import read_json, to_json
from remit.core.journal.commands import CallCode, StartChild
from remit.core.limits.tools import ToolCall
from remit.core.record import Text
from remit.core.run.manifest import Manifest
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.goal import JUDGE_MARK, PPM
from remit.core.work.graph import Ballot, schema_text
from remit.core.work.plan import RerankInput
from remit.core.work.values import ValueKind
from remit.kernel.results.notices import correction
from remit.kernel.results.votes import in_order, voting_answers
from remit.kernel.state import RunState, graph_of_run, pinned, standing_at
from remit.orchestrate.executors.reports import CodeProposed, Report
from remit.orchestrate.loop.offspring import child_manifest, judge_request, replica_request, step_request
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.plan_graph import CALL_MARK, STEP_MARK
from remit.orchestrate.patterns.redundant_graph import VOTE_MARK
from remit.orchestrate.patterns.step_values import shown_to_model
from remit.orchestrate.patterns.structured_graph import structured_graph
from remit.orchestrate.patterns.voters import STRATEGIES, NoConsensus, elect, settled
from remit.validate.rule_set import SemanticCheck
from remit.validate.semantic import ask_of

# A text in full, wherever it lives.
Read = Callable[[Text], str]

_MARKS = (VOTE_MARK, CALL_MARK, STEP_MARK)

_FOUND = to_json(RerankInput("what is there", (Candidate("it is there", "a.txt", 0.5, ScoreMaker.RETRIEVAL),)))
# What code of the user's own may give: each kind, and one that is unknown.
_VALUES = (
    ("text", "some words"),
    ("text", "some words"),
    ("object", '{"n":1}'),
    ("object", '{"n":1}'),
    ("object", '{"n":"many"}'),
    ("json", "[1,2]"),
    ("candidates", _FOUND),
    ("riddle", "what is it"),
)


def is_of_a_pattern(command: CallCode) -> bool:
    """Whether code belongs to a plan or a vote, and is not a validator of the user."""
    return command.name.startswith(_MARKS)


def said_by_code(state: RunState, command: CallCode, read: Read, chance: Random, trouble: float) -> Report:
    """What code of a plan or a vote reports; in so much trouble it fails, or says what cannot be."""
    if chance.random() < trouble:
        codes = (ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_TIMEOUT, ErrorCode.ORCHESTRATION_STEP_MISMATCH)
        return CodeFailed(command.id, "it broke", chance.choice(codes))
    if command.name.startswith(VOTE_MARK):
        ballot = standing_at(state).ballot
        # One that is performed again after its run has moved on is not heard.
        return CodeReturned(command.id) if ballot is None else _counted(state, command, ballot, read, chance, trouble)
    if command.name.startswith(CALL_MARK):
        arguments = read_json(read(command.input))
        call = ToolCall(f"step-{command.id}", command.name.removeprefix(CALL_MARK), arguments)
        return CodeProposed(command.id, (call,))
    return _stepped(command, chance)


def _counted(
    state: RunState, command: CallCode, ballot: Ballot, read: Read, chance: Random, trouble: float
) -> CodeReturned:
    if chance.random() < trouble / 2:
        made_up = Election(chance.randint(-1, 4), chance.randrange(4), chance.choice((-1, 500_000, 2_000_000)))
        return CodeReturned(command.id, election=made_up)
    strategy = STRATEGIES[command.name.removeprefix(VOTE_MARK)]
    replicas = [child for child in state.children.ended if child.node == ballot.source]
    answers, order = voting_answers(replicas), in_order(replicas)
    texts, places = [read(child.text) for child in answers], [order.index(child) for child in answers]
    to_come = ballot.replicas - len(replicas)
    is_settled = to_come <= 0 or settled(strategy, texts, to_come, replicas=places)
    try:
        poll = elect(strategy, texts, replicas=places)
    except NoConsensus as none:
        if not is_settled:
            return CodeReturned(command.id, election=Election(0, 0, 0, is_settled=False))
        return CodeReturned(command.id, problems=(none.message,))
    election = Election(poll.winner, poll.votes, round(poll.confidence * PPM), is_settled)
    return CodeReturned(command.id, election=election)


def _stepped(command: CallCode, chance: Random) -> CodeReturned:
    """What a step gives by its type: evidence, an opinion, or anything."""
    match command.name.removeprefix(STEP_MARK):
        case "retrieve" | "rerank":
            return CodeReturned(command.id, _FOUND, kind=ValueKind.CANDIDATES)
        case "validate" if chance.random() < 0.45:
            problems, is_final = ("it is not good enough",), chance.random() < 0.1
            return CodeReturned(command.id, problems=problems, checks_failed=1, is_final=is_final)
        case "validate":
            return CodeReturned(command.id, checks_passed=1, warnings=("it could be better",))
    kind, text = chance.choice(_VALUES)
    return CodeReturned(command.id, text, kind=kind)


def manifest_of_child(state: RunState, command: StartChild, read: Read) -> Manifest:
    """What a child is started with: the graph and the request of its node, a judge's, or a chat about its prompt."""
    parent, graph = pinned(state), graph_of_run(state)
    node = graph.nodes[graph.index[command.node]] if command.node else None
    if command.kind.startswith(JUDGE_MARK):
        asked = ask_of(SemanticCheck("judge", "Is it good?"), read(command.prompt))
        judging = structured_graph(schema_text(asked.schema), is_prepared=True)
        return child_manifest(parent, command, judging, judge_request(parent.request, asked.messages, asked.schema))
    if node is None or node.inner is None:
        return child_manifest(parent, command, chat_graph(tool_rounds_max=3))
    if node.feed is None:
        return child_manifest(parent, command, node.inner, replica_request(parent.request, read(state.talk.ephemeral)))
    told = (correction(command.problems),) if command.problems else ()
    fed = shown_to_model(command.kind, read(command.prompt))
    return child_manifest(parent, command, node.inner, step_request(parent.request, node, (*fed, *told)))
