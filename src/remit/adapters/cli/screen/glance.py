"""A run at a glance: what was asked, how it stands and what to type next, what it did and spent, and its answer.

Rule 1: everything is read off the run; nothing is repaired and no run is driven.
Rule 2: whatever is long is cut, counted, or named by where the rest stands.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from remit.adapters.cli.screen.amounts import usage
from remit.adapters.cli.screen.bars import budget_lines
from remit.adapters.cli.screen.colours import Ink, Line, wrapped_lines
from remit.adapters.cli.screen.response_lines import question_lines, time_text
from remit.adapters.cli.screen.terminal import Terminal, json_line
from remit.core.journal.storage import RunEntry, SignedHead
from remit.core.record import JsonObject, Record
from remit.core.run.contract import GUARD_MODE, ExecutionContext, SystemResponse, ToolCallMade
from remit.core.run.lifecycle import LoopState
from remit.core.run.manifest import Manifest
from remit.core.work.goal import PPM
from remit.core.work.plan import PlanTrace
from remit.observe.node_names import percent
from remit.observe.plain import by_whom, printable_line
from remit.observe.steps import CUT_OFF, FAILED, UNDER_WAY, PerformedStep
from remit.observe.views.explain import Explanation, RunStanding
from remit.observe.views.plans_and_votes import FINISHED, NOT_BEGUN, SENT_BACK, StepTold
from remit.observe.views.sentence import said_needs, said_stopped, said_task
from remit.observe.views.trace import shown_line

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

# Enough to recognise something; `remit trace` and `remit show RUN --turn N` have the rest.
TEXT_CHARS_MAX = 300
NAME_CHARS_MAX = 80
ARGUMENTS_CHARS_MAX = 120
# A screenful of each; the trace has all of them.
LISTED_MAX = 20
PATH_NODES_MAX = 12
VERSION_CHARS = 12
OUTPUT_CHARS_MAX = 120
# The word before each fact, and the room that it has.
WORD_CHARS = 12
PAUSED, HALTED, OPEN = "paused", "halted", "open"
_STEP_INKS = {FINISHED: Ink.GOOD, FAILED: Ink.BAD, CUT_OFF: Ink.BAD, UNDER_WAY: Ink.WAITS, NOT_BEGUN: Ink.FAINT}


class Glance(Record):
    """Everything that is shown of one run."""

    entry: RunEntry
    manifest: Manifest
    explanation: Explanation
    response: SystemResponse
    failed: tuple[PerformedStep, ...]
    asked: tuple[Line, ...]
    children: tuple[RunEntry, ...]
    heads: tuple[SignedHead, ...]
    execution: ExecutionContext
    # The loop states it went through, the last of which is where it stands.
    loop: tuple[LoopState, ...] = ()


async def glance_at(system: "System", run_id: str, *, is_full: bool = False) -> Glance:
    """A run with what the store knows about it, and with all of what it asks where that is wanted."""
    told = await system.archive.told(run_id)
    response = await system.result(run_id)
    beneath = set(await system.archive.family(run_id)) - {run_id}
    children = await system.archive.runs(with_children=True) if beneath else []
    return Glance(
        entry=told.entry,
        manifest=told.manifest,
        explanation=told.explanation,
        response=response,
        failed=told.failed,
        asked=() if response.waiting_for is None else tuple(await question_lines(system, run_id, is_full=is_full)),
        children=tuple(entry for entry in reversed(children) if entry.run_id in beneath),
        heads=tuple(await system.store.catalogue.heads(run_id)),
        execution=await system.execution(run_id),
        loop=told.loop,
    )


def glance_values(seen: Glance) -> JsonObject:
    """A glance as values, for programs."""
    return {
        "entry": seen.entry,
        "response": seen.response,
        "execution": seen.execution,
        "explanation": seen.explanation,
        "role": seen.manifest.role,
        "loop_states": seen.loop,
        "versions": seen.manifest.versions,
        "plan": seen.manifest.plan,
        "children": seen.children,
        "signed_turns": _signed_turns(seen),
        "signers": sorted({head.signer for head in seen.heads}),
        "next": list(next_commands(seen.entry, seen.explanation.standing, seen.response)),
    }


def glance_lines(terminal: Terminal, seen: Glance) -> Iterator[Line]:
    """A glance as lines for people, without the answer; what does not fit a line goes on in the next."""
    return wrapped_lines(terminal, _lines(terminal, seen), WORD_CHARS)


def _lines(terminal: Terminal, seen: Glance) -> Iterator[Line]:
    manifest, explained = seen.manifest, seen.explanation
    standing = explained.standing
    yield _fact("run", printable_line(seen.entry.run_id, NAME_CHARS_MAX), Ink.BOLD)
    yield _fact("request", shown_line(manifest.request.messages[-1].content, TEXT_CHARS_MAX))
    yield _fact(
        "started", f"{time_text(seen.entry.listing.started_at_ms)} for {_name(manifest.request.user_id, 'no user')}"
    )
    yield _fact("role", _loop(seen))
    yield _fact("stands", standing_in_words(seen.entry, standing), _ink(seen.entry))
    for line in seen.asked:
        yield (*_fact("asks" if line is seen.asked[0] else "", ""), *line)
    if not seen.asked:
        for command in next_commands(seen.entry, standing, seen.response):
            yield _fact("next", command)
    if explained.stopped is not None:
        yield _fact("stopped", f"early: {said_stopped(explained.stopped)}", Ink.BAD)
    if explained.needs:
        yield _fact("needs", said_needs(explained.needs))
    yield from _circumstances(seen)
    yield from _deeds(seen)
    for warning in seen.response.warnings[:LISTED_MAX]:
        yield _fact("warning", printable_line(warning, TEXT_CHARS_MAX), Ink.WAITS)
    yield from _figures(seen.response)
    yield _fact("budget", "used of its cap")
    yield from budget_lines(terminal, explained.spent)
    yield _fact("signed", _signed(seen))
    yield _fact("proof", f"remit verify {printable_line(seen.entry.run_id, NAME_CHARS_MAX)}")


def _loop(seen: Glance) -> str:
    """What the agent is there for, and the loop states it went through."""
    return f"{seen.manifest.role.value}: {_path(tuple(state.value for state in seen.loop))}"


def standing_in_words(entry: RunEntry, standing: RunStanding) -> str:
    """How a run stands, and why."""
    if entry.ending:
        reason = printable_line(standing.reason, TEXT_CHARS_MAX)
        return f"{entry.ending}: {reason}" if reason else entry.ending
    where = f" at {_name(standing.node)}" if standing.node else ""
    if standing.status == HALTED:
        reason = printable_line(standing.reason, TEXT_CHARS_MAX)
        return f"halted{where}: {_name(standing.error)} is halted by {_name(standing.by)}: {reason}"
    if entry.waiting_for and standing.paused:
        beneath = zip_longest(standing.paused, standing.paused_by, fillvalue="")
        runs = ", ".join([f"{_name(run)}{by_whom(by)}" for run, by in beneath])
        return f"waits: {entry.waiting_for}{where}; paused beneath it: {runs}"
    if entry.waiting_for:
        return f"waits: {entry.waiting_for}{where}"
    return f"{standing.status}{where}{by_whom(standing.by)}"


def next_commands(entry: RunEntry, standing: RunStanding, response: SystemResponse) -> Iterator[str]:
    """What can be typed next to get on with a run."""
    run_id = printable_line(entry.run_id, NAME_CHARS_MAX)
    if response.halted is not None:
        yield "remit halt --list"
        yield f"remit resume {run_id}"
    elif response.waiting_for is not None:
        for packet in response.waiting_for.packet_ids:
            yield f"remit approve {printable_line(packet, NAME_CHARS_MAX)}"
        for paused in response.waiting_for.paused:
            yield f"remit resume {printable_line(paused, NAME_CHARS_MAX)}"
    elif standing.status == PAUSED:
        yield f"remit resume {run_id}"
    elif entry.listing.mode == GUARD_MODE:
        # Only the agent elsewhere goes on with its conversation; others may end it.
        if standing.status == OPEN:
            yield f"remit signal {run_id} cancel"
    elif standing.status == OPEN:
        yield f"remit resume {run_id}"
    elif response.error is not None and response.error.retryable:
        yield f"remit signal {run_id} retry"


def _circumstances(seen: Glance) -> Iterator[Line]:
    """Where it came from, within which limits it runs, and on which versions."""
    manifest, allowed = seen.manifest, seen.explanation.allowed
    if manifest.request.session_id:
        place = "" if manifest.session is None else f", exchange {manifest.session.ordinal}"
        yield _fact("session", f"{_name(manifest.request.session_id)}{place}")
    for word, origin in (("parent", manifest.parent), ("fork of", manifest.forked_from)):
        if origin is not None:
            yield _fact(word, f"{_name(origin.run_id)} turn {origin.seq}" if origin.seq else _name(origin.run_id))
            if origin.by:
                why = f": {printable_line(origin.why, TEXT_CHARS_MAX)}" if origin.why else ""
                yield _fact("forked by", f"{_name(origin.by)}{why}")
    tools = ", ".join(map(_name, allowed.tools[:LISTED_MAX])) or "no tools"
    more = f" and {len(allowed.tools) - LISTED_MAX} more" if len(allowed.tools) > LISTED_MAX else ""
    yield _fact("boundary", f"{_name(allowed.boundary)} ({tools}{more})")
    if (task := seen.explanation.task) is not None:
        yield _fact("task", said_task(task))
    yield _fact("models", ", ".join(map(_name, seen.explanation.models)) or "none")
    versions = manifest.versions
    named = (("boundary", versions.boundary), ("graph", versions.graph), ("tools", versions.tools))
    yield _fact("versions", ", ".join(f"{what} {version[:VERSION_CHARS]}" for what, version in named))


def _deeds(seen: Glance) -> Iterator[Line]:
    """Which way it went, what it called, and what of it counts."""
    explained = seen.explanation
    yield _fact("path", _path(explained.path))
    made = seen.response.tool_calls_made
    for call in made[:LISTED_MAX]:
        yield _fact("call", _call(call))
    if len(made) > LISTED_MAX:
        yield _fact(
            "",
            f"and {len(made) - LISTED_MAX} calls more: remit trace {printable_line(seen.entry.run_id, NAME_CHARS_MAX)}",
        )
    for failed in seen.failed[-LISTED_MAX:]:
        yield _fact("failed", f"{failed.code}: {printable_line(failed.reason, TEXT_CHARS_MAX)}", Ink.BAD)
    committed = dict.fromkeys(observation.tool for observation in explained.observations)
    if committed:
        yield _fact("committed", _names(committed), Ink.GOOD)
    if explained.uncommitted:
        yield _fact("uncommitted", _names(explained.uncommitted), Ink.BAD)
    if explained.unverified:
        yield _fact("unverified", _names(explained.unverified), Ink.BAD)
    if (made_by := seen.manifest.plan) is not None:
        yield _fact("plan", _plan(made_by))
    yield from _steps(explained.steps)
    named = {child.run_id: child.name for child in explained.children}
    for child in seen.children[:LISTED_MAX]:
        stands = child.ending or child.waiting_for or OPEN
        known = f"  {_name(named[child.run_id])}" if named.get(child.run_id) else ""
        yield _fact("child", f"{_name(child.run_id)}  {stands}{known}")
    if len(seen.children) > LISTED_MAX:
        yield _fact("", f"and {len(seen.children) - LISTED_MAX} children more")


def _plan(trace: PlanTrace) -> str:
    """Who made a plan, of how many steps, and why these."""
    why = printable_line(trace.rationale, TEXT_CHARS_MAX)
    count = f"{trace.step_count} step{'s' if trace.step_count != 1 else ''}"
    return f"by {_name(trace.planner_id)}: {count}{f', {why}' if why else ''}"


def _steps(steps: tuple[StepTold, ...]) -> Iterator[Line]:
    """What each step of a plan gave, and which of them are finished."""
    for place, step in enumerate(steps[:LISTED_MAX]):
        stands = f"gave {step.gave}: {shown_line(step.begins, OUTPUT_CHARS_MAX)}" if step.gave else step.status
        tries = f", begun {step.begun} times" if step.begun > 1 else ""
        back = f", sent back {step.sent_back}" if step.sent_back and step.status != SENT_BACK else ""
        text = f"{_name(step.name)} ({_name(step.type)}{tries}{back}) {stands}"
        yield _fact("" if place else "steps", text, _STEP_INKS.get(step.status, Ink.PLAIN))
    if len(steps) > LISTED_MAX:
        yield _fact("", f"and {len(steps) - LISTED_MAX} steps more")


def _figures(response: SystemResponse) -> Iterator[Line]:
    """How surely the answer stands, and what the models used, with their rate where it was measured."""
    if response.confidence is not None:
        said = percent(round(response.confidence * PPM))
        yield _fact("confidence", f"{said} by {response.confidence_source}")
    if said := usage(response.token_usage):
        yield _fact("usage", said)


def _call(call: ToolCallMade) -> str:
    came = f", {printable_line(call.error, TEXT_CHARS_MAX)}" if call.is_late else ""
    return f"{_name(call.name)} {printable_line(json_line(call.arguments), ARGUMENTS_CHARS_MAX)}: {call.status.value}{came}"


def _path(path: tuple[str, ...]) -> str:
    nodes = [_name(node) for node in path]
    if len(nodes) > PATH_NODES_MAX:
        half = PATH_NODES_MAX // 2
        nodes = [*nodes[:half], f"({len(nodes) - 2 * half} more)", *nodes[-half:]]
    return " > ".join(nodes)


def _signed_turns(seen: Glance) -> int:
    return max((head.seq + 1 for head in seen.heads), default=0)


def _signed(seen: Glance) -> str:
    """Who vouches for how much, as far as the heads say; only verifying proves it."""
    signers = ", ".join(sorted({_name(head.signer) for head in seen.heads})) or "no signer"
    return f"{_signed_turns(seen)} of {seen.entry.turns} turns by {signers}"


def _ink(entry: RunEntry) -> Ink:
    if not entry.ending:
        return Ink.WAITS
    return Ink.GOOD if entry.ending == "SUCCESS" else Ink.BAD


def _fact(word: str, text: str, ink: Ink = Ink.PLAIN) -> Line:
    return ((f"{word:<{WORD_CHARS}}", Ink.FAINT), (text, ink))


def _name(text: str, otherwise: str = "") -> str:
    return printable_line(text, NAME_CHARS_MAX) or otherwise


def _names(names: Iterable[str]) -> str:
    every = [_name(name) for name in names]
    more = [f"{len(every) - LISTED_MAX} more"] if len(every) > LISTED_MAX else []
    return ", ".join([*every[:LISTED_MAX], *more])
