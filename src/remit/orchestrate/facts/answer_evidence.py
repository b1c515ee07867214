"""Evidence: what an answer of a run is compared with, which of its values nothing supports, and what a judge objects to.

Rule 1: only an answer to a task that asks for a fact is compared, and only once something was observed that could tell it;
        what was never observed is a problem of its own.
Rule 2: observations that ground the task count (kernel/results/supporting_calls.py), what was
        computed from them, and evidence that was retrieved. So do the words of people, earlier exchanges among them.
        What the kernel itself told the model counts for nothing, nor does the record of another account.
Rule 3: it is a function of the run as it stands and of the texts it names, so an audit computes it again. Where a text is
        gone, nothing is compared.
"""

from collections.abc import Callable, Iterator

from remit.core.failure import ANSWERED
from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import Rung
from remit.core.limits.tools import ToolCategory
from remit.core.record import BlobRef, Text
from remit.core.run.messages import Message, Role
from remit.core.work.goal import FACTUAL, GROUNDS, JUDGE_MARK, Task, can_ground, computes
from remit.kernel.results.notices import is_correction
from remit.kernel.results.supporting_calls import telling
from remit.kernel.results.tasks import task_of
from remit.kernel.state import RunState, pinned
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facts.texts import note
from remit.validate.rule_set import SemanticCheck
from remit.validate.semantic import verdict_of
from remit.validate.state_words import enums_in
from remit.validate.unsupported import AnswerEvidence

# A text in full; None when it is not kept any more.
Read = Callable[[Text], str | None]


def inline(text: Text) -> str | None:
    """A text that stands for itself; any other is not at hand."""
    return text if isinstance(text, str) else None


def compared_by(state: RunState, report: Report) -> Task | None:
    """The task that the answer in a report is compared for; None where there is nothing to compare."""
    if not isinstance(report, reports.ModelSaid) or not report.result.content or report.result.tool_calls:
        return None
    task = None if state.manifest is None else task_of(state.manifest)
    if task is None or task.task_class not in FACTUAL:
        return None
    return task if any(True for _ in _observed(state, task)) else None


def long_evidence(state: RunState, task: Task) -> Iterator[BlobRef]:
    """The texts that live in Blobs and have to be at hand."""
    for text in (*_observed(state, task), *_said(state)):
        if isinstance(text, BlobRef):
            yield text


def unsupported_in(state: RunState, task: Task, answer: str, read: Read) -> tuple[str, ...]:
    """The values of an answer that nothing supports."""
    observed, said = [read(text) for text in _observed(state, task)], [read(text) for text in _said(state)]
    known = [text for text in observed if text is not None]
    told = [text for text in said if text is not None and not is_correction(text)]
    if len(known) < len(observed) or None in said:
        return ()
    enums = [words for tool in pinned(state).tools if can_ground(tool, task) for words in enums_in(tool.result)]
    return AnswerEvidence(known, told, enums).unsupported(answer)


def _observed(state: RunState, task: Task) -> Iterator[Text]:
    grounded = False
    for trace in telling(state, task):
        if trace.content:
            grounded = True
            yield trace.content
    if state.talk.ephemeral and ToolCategory.RETRIEVAL in (task.grounds or GROUNDS[task.task_class]):
        grounded = True
        yield state.talk.ephemeral
    if grounded:
        for trace in state.calls.made.values():
            tool = state.derived.tools[trace.tool]
            if trace.rung is Rung.COMMITTED and trace.content and computes(tool) and not can_ground(tool, task):
                yield trace.content


def _said(state: RunState) -> Iterator[Text]:
    for entry in state.talk.context:
        if isinstance(entry, Message) and entry.role is not Role.TOOL:
            yield entry.content
    for trace in state.calls.made.values():
        # What a person answered to a question of the model.
        if state.derived.tools[trace.tool].asks_under is not None and trace.content:
            yield trace.content


def objections_of(state: RunState, report: reports.ChildSaid) -> tuple[str, ...]:
    """What a judge objects to, if this child is one; a judge that failed has given no verdict, which is an objection."""
    command = state.commands.open.get(report.command_id)
    if not isinstance(command, StartChild) or not command.kind.startswith(JUDGE_MARK):
        return ()
    check = SemanticCheck(command.kind.removeprefix(JUDGE_MARK), "")
    breaches = verdict_of(check, report.text if report.ending in ANSWERED else None)
    return tuple([note(f"criterion {check.name} {breach.problem}") for breach in breaches])
