"""Plans and votes driven by hand: nodes as a plan's graph has them, and what their code and children report."""

from typing import Any

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import CodeReturned, Election
from remit.core.journal.commands import CallCode, StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.turn import Turn
from remit.core.run.manifest import Manifest
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import STANDARD_RULES, Edge, Graph, Node, NodeKind, NodeOutcome, StepInput
from remit.core.work.values import ValueKind
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from tests.unit.kernel.builders import Run, in_line, manifest_of

INNER = chat_graph(tool_rounds_max=2)
SCHEMA = '{"type":"object"}'
GIVEN = StepInput(kind="text", value="the words of the plan")


def code_step(name: str, source: str = "", *, takes: str = "", visits_max: int = 1, timeout_ms: int = 0) -> Node:
    """A step of the user's own code."""
    feed = StepInput(takes, source=source) if source else StepInput(takes, kind=GIVEN.kind, value=GIVEN.value)
    return Node(name, NodeKind.DECIDE, code="step:custom", visits_max=visits_max, timeout_ms=timeout_ms, feed=feed)


def child_step(name: str, source: str = "", *, visits_max: int = 1, timeout_ms: int = 0) -> Node:
    """A step that a model works on, in a run of its own."""
    feed = (
        StepInput("messages", "text", source=source)
        if source
        else StepInput("messages", "text", GIVEN.kind, GIVEN.value)
    )
    return Node(name, NodeKind.CHILD, inner=INNER, visits_max=visits_max, timeout_ms=timeout_ms, feed=feed)


def validate_step(name: str, source: str, *, visits_max: int = 1) -> Node:
    """A step that looks at what another gave."""
    return Node(
        name, NodeKind.VALIDATE, code="step:validate", visits_max=visits_max, feed=StepInput("text", source=source)
    )


def tool_step(name: str, *, visits_max: int = 1) -> tuple[Node, Node]:
    """A step that calls a tool: what makes the call of its arguments, and the call itself."""
    arguments = StepInput("object", kind="object", value='{"n":1}')
    entrance = Node(f"{name}:arguments", NodeKind.DECIDE, code="call:look", visits_max=visits_max, feed=arguments)
    given = StepInput(gives="result")
    return entrance, Node(name, NodeKind.TOOL, rules=STANDARD_RULES, visits_max=visits_max, feed=given)


def plan_of(*nodes: Node, edges: tuple[Edge, ...] = ()) -> Graph:
    """Steps one after the other, then a check of the whole."""
    return in_line(*nodes, Node("check", NodeKind.VALIDATE, visits_max=1), edges=edges)


def retried(node: Node, *, at: str = "") -> Edge:
    """The edge by which a step that failed is tried again."""
    return Edge(node.name, at or node.name, NodeOutcome.FAILED, f"visits < {node.visits_max}")


def vote_of(n: int = 3, **redundancy: Any) -> Manifest:
    """A redundant run, under the standard budget."""
    return manifest_of(graph=redundant_graph(SCHEMA, "", Redundancy(n, **redundancy)))


class PlanRun(Run):
    """A run whose commands are those of plans and votes."""

    def gives(self, value: str, kind: str = ValueKind.TEXT) -> Turn:
        """The code of a step returns a value."""
        return self.take(CodeReturned(self.open(CallCode)[0].id, value, kind=kind))

    def calls(self, *calls: ProposedCall) -> Turn:
        """The code of a tool step makes a call of its arguments."""
        return self.take(CodeReturned(self.open(CallCode)[0].id, calls=calls))

    def raises(self, code: ErrorCode = ErrorCode.TOOL_EXECUTION_FAILED) -> Turn:
        """The code of a step, or of a voter, fails."""
        return self.take(arrivals.CodeFailed(self.open(CallCode)[0].id, "it broke", code))

    def elects(self, winner: int, votes: int = 2, ppm: int = 666_667, *, is_settled: bool = True) -> Turn:
        """The voter names a winner."""
        return self.take(
            CodeReturned(self.open(CallCode)[0].id, election=Election(winner, votes, ppm, is_settled=is_settled))
        )

    def answers(self, text: str, *, place: int = 0) -> Turn:
        """The child at this place among the open ones answers."""
        return self.ends(Ending.SUCCESS, text=text, place=place)

    def ends(
        self, ending: Ending, *, text: str = "", error: ErrorCode | None = None, message: str = "", place: int = 0
    ) -> Turn:
        """The child at this place among the open ones ends, having spent nothing."""
        child = self.open(StartChild)[place]
        usage = TokenUsage(prompt_tokens=5, output_tokens=2)
        return self.take(
            arrivals.ChildEnded(child.id, ending, text, tokens_bound=25, error=error, message=message, usage=usage)
        )

    def vanishes(self, *, place: int = 0) -> Turn:
        """The child at this place among the open ones is lost."""
        return self.take(arrivals.ChildLost(self.open(StartChild)[place].id))

    def pauses(self) -> Turn:
        """A person pauses the run."""
        return self.take(arrivals.PauseRequested("ada"))

    def resumes(self) -> Turn:
        """A person lets the run go on."""
        return self.take(arrivals.ResumeRequested("ada"))
