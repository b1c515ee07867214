"""Votes: when the children of a node may be counted, and what a count comes to.

Rule 1: a child that failed has no vote, nor has one that could not be started; more than half of all replicas must have
        answered, or there is no consensus.
Rule 2: when none answered, the run fails as the last of them did, an inference error first; when none was even started,
        its budget is exhausted.
Rule 3: a vote that may stop early is counted after every answer, and ends as soon as nothing to come can change it.
Rule 4: code picks the winner, and that is recorded; the answer of the run is the winner's own words.
"""

from remit.core.failure import ANSWERED, ERRORS, Ending, ErrorCode
from remit.core.failure_families import FailureCategory
from remit.core.journal.arrivals import CodeReturned, Election
from remit.core.journal.commands import CallCode, place_in_journal
from remit.core.journal.rulings import VoteCounted
from remit.core.run.manifest import CODE_TIMEOUT_MS
from remit.core.work.goal import PPM
from remit.core.work.graph import Ballot, Node, NodeOutcome
from remit.kernel.children import fail_as
from remit.kernel.results.endings import head_for
from remit.kernel.tally import Tally
from remit.kernel.traces import ChildTrace

# Fewer than two answers leave nothing to compare.
_COMPARABLE = 2


def enter_vote(tally: Tally, node: Node, ballot: Ballot) -> str | None:
    """Have the answers counted, if there are enough of them."""
    replicas = replicas_of(tally, ballot)
    answers = voting_answers(replicas)
    to_come = _to_come(tally, ballot, replicas)
    if ballot.early_stop and not _is_quorate(len(answers) + to_come, ballot):
        to_come = 0
    if to_come and (not ballot.early_stop or len(answers) < _COMPARABLE):
        return NodeOutcome.UNDECIDED
    if not to_come and not _is_quorate(len(answers), ballot):
        return _fall_short(tally, ballot, replicas, answers)
    tally.issue(CallCode(tally.next_id(), node.code, "", node.timeout_ms or CODE_TIMEOUT_MS))
    return None


def on_counted(tally: Tally, ballot: Ballot, arrival: CodeReturned) -> str:
    """Take the winner's words for the answer, wait for more of them, or end without a consensus."""
    replicas = replicas_of(tally, ballot)
    answers = voting_answers(replicas)
    election = arrival.election
    if election is None:
        return _no_consensus(tally, "; ".join(arrival.problems) or "the vote named no winner")
    if _to_come(tally, ballot, replicas) and not (election.is_settled and _is_quorate(len(answers), ballot)):
        return NodeOutcome.UNDECIDED
    if not _is_possible(election, len(answers)):
        message = f"the vote named answer {election.winner} of {len(answers)}, with {election.votes} votes"
        return _no_consensus(tally, message)
    winner = answers[election.winner]
    tally.rule(VoteCounted(winner.command_id, election.votes, len(answers), election.confidence_ppm))
    tally.answer, tally.answer_violations = winner.text, ()
    tally.unsupported = ()
    return NodeOutcome.RETURNED


def replicas_of(tally: Tally, ballot: Ballot) -> list[ChildTrace]:
    """The children that have ended so far, in the order in which they did."""
    ended = (*tally.state.children.ended, *(() if tally.child is None else (tally.child,)))
    return [child for child in ended if child.node == ballot.source]


def voting_answers(replicas: list[ChildTrace]) -> list[ChildTrace]:
    """The replicas that may vote, in the order in which they were started, so that a tie does not depend on who was faster."""
    return [child for child in in_order(replicas) if child.ending in ANSWERED]


def in_order(replicas: list[ChildTrace]) -> list[ChildTrace]:
    """All of them in the order in which they were started."""
    return sorted(replicas, key=lambda child: place_in_journal(child.command_id))


def _is_possible(election: Election, answered: int) -> bool:
    """Whether a winner is among the answers, with its own vote at least, and no surer than sure."""
    is_there = 0 <= election.winner < answered and 0 < election.votes <= answered
    return is_there and 0 <= election.confidence_ppm <= PPM


def _to_come(tally: Tally, ballot: Ballot, replicas: list[ChildTrace]) -> int:
    """How many more may be started: none where no edge leads back to them, or their node was entered too often."""
    missing = ballot.replicas - len(replicas)
    if missing <= 0 or not tally.graph.has_edge_for(tally.node, NodeOutcome.UNDECIDED):
        return 0
    source = tally.graph.index[ballot.source]
    visits = tally.state.place.visits[source] + tally.visits.count(source)
    # A visit that could not start its replica is used up all the same.
    return min(missing, tally.graph.nodes[source].visits_max - visits)


def _is_quorate(answered: int, ballot: Ballot) -> bool:
    return 2 * answered > ballot.replicas


def _fall_short(tally: Tally, ballot: Ballot, replicas: list[ChildTrace], answers: list[ChildTrace]) -> str:
    if not replicas:
        message = f"none of {ballot.replicas} replicas could be started with what is left of the budget"
        return head_for(tally, Ending.BUDGET_EXHAUSTED, message=message)
    if not answers:
        return fail_as(tally, _failure_to_show(replicas))
    message = f"only {len(answers)} of {ballot.replicas} replicas answered, and it takes more than half"
    return _no_consensus(tally, message)


def _failure_to_show(replicas: list[ChildTrace]) -> ChildTrace:
    inference = [c for c in replicas if c.error is not None and ERRORS[c.error].category is FailureCategory.INFERENCE]
    return (inference or replicas)[-1]


def _no_consensus(tally: Tally, message: str) -> str:
    return head_for(tally, Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_NO_CONSENSUS, message)
