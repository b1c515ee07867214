"""Write the golden journals: small runs whose stored bytes every later version must still be able to read.

Rule 1: what the world says is written here, word for word; the runner, the facts and the kernel are the real ones.
Rule 2: there is no chance and no real clock, so the same code makes the same bytes every time.
Rule 3: each version of the kernel has a folder of its own, and only today's is written. In it only missing files are
        written; --force makes the others anew, which is for a version that is not released yet.
"""

import argparse
import asyncio
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from remit.core.failure import Denials, Ending, ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Happened
from remit.core.journal.codec import decode_turn
from remit.core.journal.turn import KERNEL_VERSION
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import FIELDS, Budget
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import JsonObject, digest_of, replace
from remit.core.run.contract import OutputContract, SystemRequest
from remit.core.run.manifest import Host, Manifest, Source, make_manifest
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.goal import Criterion, Goal, RequiredAction
from remit.core.work.graph import Edge, Graph, JoinRule, Node, NodeKind, schema_text
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.core.work.values import ValueKind
from remit.kernel.state import pinned, standing_at
from remit.orchestrate.executors import reports
from remit.orchestrate.guard.begin_run import HOST_GRAPH
from remit.orchestrate.history.fork_run import fork
from remit.orchestrate.loop.offspring import child_manifest, spent_by
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.handlers import Handler, ToolHandler, ValidateHandler
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.testing.runs import fold_journal
from remit.testing.scripts import proposes, proposes_all, says
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
from scripts.golden_authority import GOVERNED
from scripts.golden_stage import DONE, Stage, asked
from tests.simulation.scenarios import LEASE, MODEL, RESULT, TOOLS, review_graph

# Where children may change something.
DESK = Boundary(name="golden", budget=Budget(side_effects=9))
GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"


def chat(
    run_id: str,
    *tools: str,
    graph: Graph | None = None,
    boundary: Boundary = Boundary(name="golden"),
    budget: Budget = Budget(),
    goal: Goal | None = None,
    schema: JsonObject | None = None,
    retrieves_context: bool = False,
) -> Manifest:
    """A chat with these tools of the scenarios, unless a graph says otherwise."""
    return make_manifest(
        run_id=run_id,
        request=SystemRequest(messages=(user_message("please"),), output=OutputContract(schema=schema)),
        boundary=boundary,
        budget=budget,
        graph=graph or chat_graph(),
        models=(MODEL,),
        tools=tuple(tool for tool in TOOLS if tool.name in tools),
        goal=goal,
        retrieves_context=retrieves_context,
    )


# One function per script. Its docstring says what its journals keep for later versions to read.


async def chat_with_a_read(stage: Stage) -> None:
    """A chat that looks two things up, one of them with a tool that is not there."""
    live = await stage.start("chat_with_a_read", chat("chat", "look"))
    await stage.answer(live, proposes_all(("look", {"n": 1}), ("no_such_tool", {})))
    await stage.give(live)
    await stage.answer(live, says("It is there."))


async def write_approved(stage: Stage) -> None:
    """A write that a person approves with arguments of their own."""
    live = await stage.start("write_approved", chat("write", "write"))
    await stage.answer(live, proposes("write", {"n": 1, "note": "the first"}))
    await stage.approve(live, {"n": 2, "note": "the second"})
    await stage.give(live)
    await stage.answer(live, says("It is written."))


async def write_rejected(stage: Stage) -> None:
    """A write that a person rejects; the model says it was done all the same."""
    live = await stage.start("write_rejected", chat("rejected", "write"))
    await stage.answer(live, proposes("write", {"n": 1}))
    await stage.hear(live, arrivals.ApprovalRefused(asked(live, commands.AskHuman).id, "ada", "not today"))
    await stage.answer(live, says("It is written."))


async def doubt_reconciled(stage: Stage) -> None:
    """A payment that ran out of time; its tool knows that it happened."""
    live = await stage.start("doubt_reconciled", chat("reconciled", "pay"))
    await stage.answer(live, proposes("pay", {"n": 5}))
    await stage.approve(live)
    await stage.lose_track(live)
    await stage.hear(live, reports.ToolAccounted(asked(live, commands.ReconcileTool).id, Happened.YES, DONE))
    await stage.answer(live, says("It is paid."))


async def doubt_contradicted(stage: Stage) -> None:
    """A payment that its tool said did not happen, proposed again; the first returns while a person is asked about the second."""
    live = await stage.start("doubt_contradicted", chat("contradicted", "pay"))
    await stage.answer(live, proposes("pay", {"n": 5}))
    await stage.approve(live)
    first = asked(live, commands.CallTool)
    await stage.lose_track(live)
    await stage.hear(live, reports.ToolAccounted(asked(live, commands.ReconcileTool).id, Happened.NO))
    await stage.answer(live, proposes("pay", {"n": 5}))
    await stage.hear(live, reports.ToolSaid(first.id, ToolResult(first.call_id, first.tool, DONE), duration_ms=40))
    await stage.hear(live, arrivals.ApprovalRefused(asked(live, commands.AskHuman).id, "ada", "it is paid"))
    await stage.answer(live, says("It is paid."))


async def doubt_judged(stage: Stage) -> None:
    """A write whose outcome a crash swallowed; a person knows that it did not happen, and it is done again."""
    live = await stage.start("doubt_judged", chat("judged", "write"))
    await stage.answer(live, proposes("write", {"n": 1}))
    await stage.approve(live)
    await stage.hear(live, arrivals.ToolOutcomeLost(asked(live, commands.CallTool).id))
    await stage.hear(live, arrivals.OutcomeJudged(asked(live, commands.AskHuman).id, "ada", Happened.NO))
    await stage.answer(live, proposes("write", {"n": 1}))
    await stage.approve(live)
    await stage.give(live)
    await stage.answer(live, says("It is written."))


async def broke_within(stage: Stage) -> None:
    """Two tools that raise after they were entered: of one a person knows, the other is called again with the same key."""
    live = await stage.start("broke_within", chat("broken", "write", "put"))
    for named in ("write", "put"):
        await stage.answer(live, proposes(named, {"n": 1}))
        await stage.approve(live)
        broke = reports.ToolBroke(
            asked(live, commands.CallTool).id, ErrorCode.TOOL_EXECUTION_FAILED, "cut", is_unknown=True
        )
        await stage.hear(live, broke)
        if named == "write":
            await stage.hear(live, arrivals.OutcomeJudged(asked(live, commands.AskHuman).id, "ada", Happened.YES))
    await stage.answer(live, proposes("put", {"n": 1}))
    await stage.approve(live)
    await stage.give(live)
    await stage.answer(live, says("It is written and put."))


async def cancelled_in_doubt(stage: Stage) -> None:
    """A run cancelled while it pays; the outcome comes after the ending."""
    live = await stage.start("cancelled_in_doubt", chat("cancelled", "pay"))
    await stage.answer(live, proposes("pay", {"n": 5}))
    await stage.approve(live)
    await stage.hear(live, arrivals.CancelRequested("ada", "enough"))
    await stage.give(live)


async def budget_exhausted(stage: Stage) -> None:
    """A run whose second model call would not fit its tokens."""
    live = await stage.start("budget_exhausted", chat("exhausted", "look", budget=Budget(input_tokens=250)))
    await stage.answer(live, proposes("look", {"n": 1}))
    await stage.give(live)


async def usage_exceeded(stage: Stage) -> None:
    """A run that finds no context, and a model that used more than was reserved for it."""
    live = await stage.start("usage_exceeded", chat("exceeded", retrieves_context=True))
    await stage.hear(live, arrivals.ContextFailed(asked(live, commands.Retrieve).id, "nothing to be found"))
    await stage.answer(live, says("So much to say.", usage=TokenUsage(prompt_tokens=10, output_tokens=9_000)))


async def child_of_a_call(stage: Stage) -> None:
    """A run that delegates to a child by a tool call, and that child."""
    live = await stage.start("parent_of_a_child", chat("parent", "look", "ask_child"))
    await stage.answer(live, proposes("ask_child", {"n": 1, "note": "look around"}))
    command = asked(live, commands.StartChild)
    manifest = child_manifest(pinned(live.state), command, chat_graph(tool_rounds_max=3))
    child = await stage.start("child_of_a_call", manifest)
    await stage.answer(child, proposes("look", {"n": 1}))
    await stage.give(child)
    await stage.answer(child, says("All is well."))
    assert child.state.end.ending is not None
    text, spent = await stage.runner.text(child.state.result.answer), spent_by(child.state)
    await stage.hear(live, reports.ChildSaid(command.id, child.state.end.ending, text, spent))
    await stage.answer(live, says("The child says that all is well."))


async def delegations_left(stage: Stage) -> None:
    """What was delegated with side effects fails, denied; another makes it good, less what was refused; a third is lost."""
    live = await stage.start("delegations_left", chat("left", "send_child", "write", boundary=DESK))
    await stage.answer(live, proposes("send_child", {"n": 1}))
    report = reports.ChildSaid(asked(live, commands.StartChild).id, Ending.PERMISSION_DENIED, "I may not.")
    refused = (("write", digest_of(b'{"n":1}')),)
    await stage.hear(live, replace(report, denials=Denials(answers=1, approvals=1), refused=refused))
    await stage.answer(live, proposes("send_child", {"n": 2}))
    report = reports.ChildSaid(asked(live, commands.StartChild).id, Ending.SUCCESS, "It is sent.")
    await stage.hear(live, replace(report, observed=(("write", 1),)))
    await stage.answer(live, proposes("send_child", {"n": 3}))
    await stage.hear(live, arrivals.ChildLost(asked(live, commands.StartChild).id))
    await stage.answer(live, says("All is sent."))


async def child_waits(stage: Stage) -> None:
    """A child waits for a person, meanwhile its parent's clock stands still; then a session entry and changed code."""
    live = await stage.start("parent_of_a_waiting_child", chat("waiting", "look", "ask_child"))
    await stage.answer(live, proposes("ask_child", {"n": 1, "note": "look around"}))
    command = asked(live, commands.StartChild)
    await stage.hear(
        live,
        arrivals.ChildSuspended(command.id, Ending.CONFIRM_REQUIRED),
        arrivals.SessionNoted("ada", "language", '"de"'),
        arrivals.SourcesAccepted("ada", (Source("look", "/tools.py", "look", "0f"),)),
        reports.ChildSaid(command.id, Ending.SUCCESS, "All is well."),
    )
    await stage.answer(live, says("The child says that all is well."))


async def taken_over(stage: Stage) -> None:
    """A driver whose lease expired is kept from writing by the turn of the next, which finishes the run."""
    live = await stage.start("taken_over", chat("taken_over", "look"))
    await stage.hear(live, arrivals.RunTaken(2))
    await stage.answer(live, says("All is well."))


async def guarded(stage: Stage) -> None:
    """An agent elsewhere reads, is shown a text, and writes what a person approved while it did not wait."""
    live = await stage.start(
        "guarded", replace(chat("guarded", "look", "write", graph=HOST_GRAPH), host=Host("talk 1"))
    )
    await stage.hear(live, reports.HostProposed(ToolCall("a", "look", {"n": 1})))
    await stage.give(live)
    await stage.hear(live, arrivals.TextShown("look", "and more"))
    write = reports.HostProposed(ToolCall("b", "write", {"n": 1}))
    await stage.hear(live, write)
    await stage.approve(live)
    await stage.hear(live, write)
    await stage.give(live)
    await stage.hear(live, arrivals.HostFinished())


async def unallowed(stage: Stage) -> None:
    """An agent elsewhere tells of an effect that a person was still asked about."""
    live = await stage.start(
        "unallowed", replace(chat("unallowed", "look", "write", graph=HOST_GRAPH), host=Host("talk 2", model="m"))
    )
    await stage.hear(live, reports.HostProposed(ToolCall("a", "write", {"n": 1})))
    asking = asked(live, commands.AskHuman)
    assert asking.packet is not None, "a call is held"
    await stage.hear(live, arrivals.TextShown("write", "written", made=asking.packet.call))


async def children_lost(stage: Stage) -> None:
    """A graph that starts two children; one is never heard of again, one answers, and that is enough."""
    fan = Node("fan", NodeKind.MAP, prompt="look around", children=2, join=JoinRule.ANY, lease=LEASE, visits_max=1)
    line = chat_graph()
    graph = Graph("fan", "fan", (fan, *line.nodes), (Edge("fan", "prepare"), *line.edges), line.exits)
    live = await stage.start("children_lost", chat("fan", graph=graph))
    await stage.hear(live, arrivals.ChildLost(asked(live, commands.StartChild).id))
    command = asked(live, commands.StartChild)
    steps = FIELDS.index("steps")
    await stage.hear(live, reports.ChildSaid(command.id, Ending.SUCCESS, "All is well.", ((steps, 3),)))
    await stage.answer(live, says("One of them says that all is well."))


async def paused_and_resumed(stage: Stage) -> None:
    """A run paused while the model thinks: its answer is kept for the resume, and so is a word of a person."""
    live = await stage.start("paused_and_resumed", chat("paused", "look"))
    await stage.hear(live, arrivals.PauseRequested("ada"))
    await stage.answer(live, proposes("look", {"n": 1}))
    await stage.hear(live, reports.PersonSaid("ada", "and be quick"), arrivals.ResumeRequested("ada"))
    await stage.give(live)
    await stage.answer(live, says("It is there."))


async def halted_and_resumed(stage: Stage) -> None:
    """A run that a halt of dispatch held back before its write was made, and that made it once it was resumed."""
    live = await stage.start("halted_and_resumed", chat("halted", "write"))
    await stage.answer(live, proposes("write", {"n": 1}))
    question = asked(live, commands.AskHuman)
    await stage.hear(live, reports.PersonApproved(question.id, "ada"))
    call = asked(live, commands.CallTool)
    await stage.hear(live, arrivals.RunHalted("eve", 1, "tool write", "it misbehaves", (call.id,)))
    await stage.hear(live, arrivals.ResumeRequested("bob"))
    await stage.give(live)
    await stage.answer(live, says("It is written."))


async def retried(stage: Stage) -> None:
    """A run whose model fails twice, and the fork of it that a retry makes and that succeeds."""
    live = await stage.start("retried", chat("retried", budget=Budget(retries=1)))
    failed, thinking = ErrorCode.INFERENCE_ENGINE_ERROR, asked(live, commands.CallModel)
    await stage.hear(live, arrivals.ModelFailed(thinking.id, failed, "the engine is down", was_cut=True))
    timers = (command for command in live.state.commands.open.values() if isinstance(command, commands.SetTimer))
    pause = next(timer for timer in timers if timer.purpose is commands.TimerPurpose.RETRY)
    await stage.hear(live, arrivals.TimerFired(pause.id))
    await stage.hear(live, arrivals.ModelFailed(asked(live, commands.CallModel).id, failed, "the engine is down"))
    await stage.hear(live, arrivals.RetryRequested("ada"))
    command = next(command for command in live.state.commands.parting if isinstance(command, commands.ForkRun))
    stage.names["fork_of_retried"] = command.run_id
    await stage.answer(await fork(stage.runner, live.run_id, command), says("The engine is back."))


async def retried_with_a_child(stage: Stage) -> None:
    """A run that is cancelled while its child waits for a person, and the fork that a retry makes, whose child waits anew."""
    live = await stage.start("cancelled_while_waiting", chat("left_waiting", "ask_child"))
    await stage.answer(live, proposes("ask_child", {"n": 1, "note": "look around"}))
    child = asked(live, commands.StartChild).id
    waits = arrivals.ChildSuspended(child, Ending.CONFIRM_REQUIRED)
    await stage.hear(live, waits, arrivals.CancelRequested("ada"), arrivals.RetryRequested("ada"))
    command = next(command for command in live.state.commands.parting if isinstance(command, commands.ForkRun))
    stage.names["fork_of_a_waiting_run"] = command.run_id
    again = await fork(stage.runner, live.run_id, command)
    await stage.hear(again, waits, reports.ChildSaid(child, Ending.SUCCESS, "All is well.", stood_ms=600))
    await stage.answer(again, says("The child says that all is well."))


async def reviewed_by_condition(stage: Stage) -> None:
    """A graph whose condition sends an answer with something behind it to a person, who has a wish."""
    live = await stage.start("reviewed_by_condition", chat("reviewed", "look", graph=review_graph()))
    await stage.answer(live, proposes("look", {"n": 1}))
    await stage.give(live)
    await stage.answer(live, says("It is there."))
    await stage.hear(live, reports.PersonSaid("ada", "forty-two", asked(live, commands.AskHuman).id))


async def output_repaired(stage: Stage) -> None:
    """An answer that breaks the output contract once and keeps it the second time."""
    live = await stage.start("output_repaired", chat("repaired", schema=RESULT))
    await stage.answer(live, says("It is there."), says(DONE))


async def answer_validated(stage: Stage) -> None:
    """An answer with context behind it, judged by two validators, one of which breaks the first time."""
    goal = Goal("be polite", (Criterion("polite", validator="polite"), Criterion("brief", validator="brief")))
    live = await stage.start("answer_validated", chat("validated", goal=goal, retrieves_context=True))
    await stage.hear(live, reports.ContextSaid(asked(live, commands.Retrieve).id, "evidence"))
    await stage.answer(live, says("No."))
    await stage.hear(live, arrivals.CodeReturned(asked(live, commands.CallCode).id, problems=("not polite",)))
    await stage.hear(live, arrivals.CodeFailed(asked(live, commands.CallCode).id, "it broke"))
    await stage.answer(live, says("No, thank you."))
    await stage.hear(live, arrivals.CodeReturned(asked(live, commands.CallCode).id))
    await stage.hear(live, arrivals.CodeReturned(asked(live, commands.CallCode).id))


async def never_observed(stage: Stage) -> None:
    """An answer that claims what its goal requires and no tool observed."""
    goal = Goal("look at it", required_actions=(RequiredAction("look"),))
    live = await stage.start("never_observed", chat("claimed", "look", goal=goal, graph=chat_graph(repairs_max=0)))
    await stage.answer(live, says("I looked at it."))


async def counted(stage: Stage) -> None:
    """A vote of three: one replica fails, two agree, and the first of them wins."""
    graph = redundant_graph(schema_text(RESULT), "", Redundancy())
    live = await stage.start("counted", chat("counted", graph=graph, schema=RESULT))
    failed = reports.ChildSaid(
        asked(live, commands.StartChild).id, Ending.UNAVAILABLE_DEP, error=ErrorCode.INFERENCE_ENGINE_ERROR
    )
    await stage.hear(live, failed)
    for _ in range(2):
        usage = TokenUsage(prompt_tokens=9, output_tokens=3)
        await stage.hear(
            live, reports.ChildSaid(asked(live, commands.StartChild).id, Ending.SUCCESS, DONE, usage=usage)
        )
    election = arrivals.Election(0, 2, 1_000_000)
    await stage.hear(live, arrivals.CodeReturned(asked(live, commands.CallCode).id, election=election))


def is_said(text: str) -> bool:
    """Whether there is a text at all."""
    return bool(text)


async def planned(stage: Stage) -> None:
    """A plan: code makes arguments, a tool is called with them, a validator looks at the result."""
    plan = ExecutionPlan((Step("make", "make", "order 1"), Step("read", "tool", tool="look"), Step("look", "validate")))
    tools = Registry([look])
    handlers: dict[str, Handler] = {"make": make, "tool": ToolHandler(tools), "validate": ValidateHandler(is_said)}
    graph = plan_graph(plan, PlanPolicy(), handlers)
    live = await stage.start("planned", chat("planned", "look", graph=graph))
    made = arrivals.CodeReturned(asked(live, commands.CallCode).id, '{"n":1}', kind=ValueKind.OBJECT)
    await stage.hear(live, made)
    proposed = reports.CodeProposed(asked(live, commands.CallCode).id, (ToolCall("step", "look", {"n": 1}),))
    await stage.hear(live, proposed)
    await stage.give(live)
    judged = arrivals.CodeReturned(asked(live, commands.CallCode).id, checks_passed=2, warnings=("it is short",))
    await stage.hear(live, judged)


async def judged(stage: Stage) -> None:
    """An answer that a judge objects to once."""
    goal = Goal("be kind", (Criterion("kind", judge="Is it kind?"),))
    live = await stage.start("judged", chat("judged", goal=goal))
    await stage.answer(live, says("No."))
    objection = '{"holds": false, "problems": ["it is curt"]}'
    await stage.hear(live, reports.ChildSaid(asked(live, commands.StartChild).id, Ending.SUCCESS, objection))
    await stage.answer(live, says("No, thank you."))
    assent = '{"holds": true, "problems": []}'
    await stage.hear(live, reports.ChildSaid(asked(live, commands.StartChild).id, Ending.SUCCESS, assent))


@tool(effect="read")
def look(n: int) -> JsonObject:
    """Look at something; here no executor performs it."""
    raise NotImplementedError


def make(step: Step) -> JsonObject:
    """Make arguments; here no executor performs it."""
    raise NotImplementedError


SCRIPTS: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    chat_with_a_read,
    write_approved,
    write_rejected,
    doubt_reconciled,
    doubt_contradicted,
    doubt_judged,
    broke_within,
    cancelled_in_doubt,
    budget_exhausted,
    usage_exceeded,
    child_of_a_call,
    delegations_left,
    child_waits,
    taken_over,
    guarded,
    unallowed,
    children_lost,
    paused_and_resumed,
    halted_and_resumed,
    retried,
    retried_with_a_child,
    reviewed_by_condition,
    output_repaired,
    answer_validated,
    never_observed,
    counted,
    planned,
    judged,
    *GOVERNED,
)

# How the runs end that do not succeed.
ENDINGS = {
    "delegations_left": Ending.REVIEW_REQUIRED,
    "chat_with_a_read": Ending.PARTIAL_SUCCESS,
    "budget_exhausted": Ending.BUDGET_EXHAUSTED,
    "stopped_early": Ending.BUDGET_EXHAUSTED,
    "last_words": Ending.BUDGET_EXHAUSTED,
    "cancelled_in_doubt": Ending.USER_CANCEL,
    "cancelled_while_waiting": Ending.USER_CANCEL,
    "never_observed": Ending.VALIDATION_FAIL,
    "retried": Ending.UNAVAILABLE_DEP,
    "unallowed": Ending.UNSAFE_DETECTION,
    "usage_exceeded": Ending.BUDGET_EXHAUSTED,
    "write_rejected": Ending.PERMISSION_DENIED,
    "doubt_contradicted": Ending.PARTIAL_SUCCESS,
}


def summary_of(journal: Sequence[bytes]) -> JsonObject:
    """What a journal folds to, as far as no version may ever read it differently. A long answer is named by its digest."""
    state = fold_journal(journal)
    return {
        "answer": state.result.answer if isinstance(state.result.answer, str) else state.result.answer.digest.hex(),
        "committed": dict(sorted(state.effects.committed.items())),
        "ending": state.end.ending,
        "head": state.head.hex(),
        "kernel": max(decode_turn(data).kernel for data in journal),
        "messages": len(state.talk.context),
        "node": standing_at(state).name,
        "seq": state.seq,
        "used": {field: amount for field, amount in zip(FIELDS, state.used, strict=True) if amount},
    }


def read_journal(path: Path) -> tuple[bytes, ...]:
    """The turns in a stored journal."""
    return tuple(b64decode(line, validate=True) for line in path.read_text(encoding="ascii").splitlines())


def files() -> dict[str, str]:
    """Every file by its path below tests/golden/: one line of base64 per turn, and beside it the summary."""
    made: dict[str, str] = {}
    for script in SCRIPTS:
        for name, journal in asyncio.run(_played(script)).items():
            made[f"v{KERNEL_VERSION}/{name}.journal"] = "".join(f"{b64encode(data).decode()}\n" for data in journal)
            made[f"v{KERNEL_VERSION}/{name}.json"] = json.dumps(summary_of(journal), indent=2) + "\n"
    return made


async def _played(script: Callable[[Stage], Awaitable[None]]) -> Mapping[str, Sequence[bytes]]:
    stage = Stage()
    await script(stage)
    journals = {name: await stage.journal.read(run_id) for name, run_id in stage.names.items()}
    for name, journal in journals.items():
        ending = fold_journal(journal).end.ending
        assert ending is ENDINGS.get(name, Ending.SUCCESS), f"{name} ended as {ending}; its script no longer shows that"
    return journals


def write(folder: Path, *, force: bool) -> list[str]:
    """Write what is missing, and with force also what differs; the paths that differ and were left alone."""
    refused: list[str] = []
    for name, text in files().items():
        path = folder / name
        is_there = path.exists()
        if is_there and path.read_text(encoding="ascii") == text:
            continue
        if is_there and not force:
            refused.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        print(f"tests/golden/{name}")
    return refused


def main() -> int:
    """Write the golden journals; the exit code says whether one was left alone although it differs."""
    parser = argparse.ArgumentParser(prog="python -m scripts.make_golden", description="Write the golden journals.")
    parser.add_argument("--force", action="store_true", help="overwrite stored journals that differ")
    refused = write(GOLDEN, force=parser.parse_args().force)
    for name in refused:
        print(f"tests/golden/{name} differs and was left as it is; use --force to overwrite it", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
