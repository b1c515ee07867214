"""Tasks: what kind of task a run is, whether its answer rests on what was observed, and whether a person has to review it.

Rule 1: what the caller or the boundary says decides; what was inferred from the user's words only warns.
Rule 2: a fact of the world is grounded by a committed observation of a tool whose category can tell it.
Rule 3: an answer that states a value which no such observation has is no better grounded than a guess.
Rule 4: an answer of high stakes is let stand by a person.
"""

from collections.abc import Iterator

from remit.core.journal.rulings import GroundingViolated
from remit.core.limits.tools import ToolCategory
from remit.core.run.manifest import Manifest
from remit.core.work.goal import GROUNDS, NEEDS_OBSERVATION, Task, TaskClass, TaskSource, can_ground
from remit.core.work.graph import EndingClass, Node
from remit.kernel.results.supporting_calls import telling
from remit.kernel.tally import Tally

NEEDS_REVIEW = "a task of class high_stakes needs a person to look at its answer"


def task_of(manifest: Manifest) -> Task | None:
    """The task of a run: as its caller says, as its boundary says, or as its words were taken."""
    goal = manifest.goal
    if goal is not None and goal.task_class is not None:
        return Task(goal.task_class, TaskSource.CALLER, grounds=goal.grounds)
    return manifest.task


def deciding_task(manifest: Manifest) -> Task | None:
    """The task, unless it was only inferred."""
    task = task_of(manifest)
    return None if task is None or task.said_by is TaskSource.INFERRED else task


def ungrounded(tally: Tally, task: Task) -> Iterator[str]:
    """Why the answer does not rest on what was observed, if it should."""
    if not NEEDS_OBSERVATION[task.task_class]:
        return
    if not _is_grounded(tally, task):
        known = ", ".join(task.grounds or sorted(GROUNDS[task.task_class]))
        whose = ", by a call that names the account" if task.task_class is TaskClass.ACCOUNT_STATUS else ""
        yield (
            f"a task of class {task.task_class} needs an observation of a tool that can tell it ({known}){whose};"
            " answering from reasoning is not enough"
        )
    elif tally.unsupported:
        named = ", ".join(repr(value) for value in tally.unsupported)
        yield f"the answer states {named}, which nothing that was observed says; state what was observed, or look it up"


def warn_of_task(tally: Tally, node: Node) -> None:
    """Say at a success what a task that was only inferred would have needed."""
    task = tally.manifest.task
    if node.ending is not EndingClass.SUCCESS or task is None or deciding_task(tally.manifest) is not None:
        return
    found = [*ungrounded(tally, task), *([NEEDS_REVIEW] if task.task_class is TaskClass.HIGH_STAKES else [])]
    if found:
        taken = f"taken for a task of class {task.task_class} ({task.why!r})"
        tally.rule(GroundingViolated(tuple(f"{taken}: {claim}" for claim in found), only_warns=True))


def _is_grounded(tally: Tally, task: Task) -> bool:
    """Whether an observation was committed that can tell what the task asks for; evidence that was found is one, too."""
    state = tally.state
    if telling(state, task):
        return True
    # What this turn settled, and what runs beneath have seen, is known by its tool alone.
    names = {*tally.committed, *state.effects.observed_below, *tally.observed_below}
    if any(can_ground(state.derived.tools[name], task) for name in names if name in state.derived.tools):
        return True
    grounds = task.grounds or GROUNDS[task.task_class]
    return bool(state.talk.ephemeral) and ToolCategory.RETRIEVAL in grounds
