"""A plan with every kind of step, in a process of its own: it is begun and hangs where it is told to, or it is resumed.

    python -m tests.e2e.plan_errand FOLDER begin PLACE
    python -m tests.e2e.plan_errand FOLDER plan PLACE      (a planner makes the plan)
    python -m tests.e2e.plan_errand FOLDER resume

Whatever a step does is a line of the log: `+ PLACE` when it begins, `- PLACE` when it is done.
"""

import asyncio
import json
import sys
from pathlib import Path
from threading import Event
from typing import Any

from remit import (
    ExecutionPlan,
    InferHandler,
    PlanExecutor,
    RedundantLoop,
    Step,
    SystemRequest,
    ToolHandler,
    ValidateHandler,
    tool,
)
from remit.assemble import reopened, settings_of
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.inference.engine import StreamHandler
from remit.inference.scripted.script import FREE

LOG, HANGING, STORE = "log.txt", "hanging", "store"
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
PLAN = (
    Step("code", "code", "begin"),
    Step("infer", "infer"),
    Step("object", "object"),
    Step("tool", "tool", tool="look"),
    Step("validate", "validate"),
    Step("vote", "vote"),
    Step("last", "code"),
)
# Where it can be killed; a vote has three replicas.
PLACES = ("code", "infer", "object", "tool", "validate", "vote-1", "vote-2", "vote-3", "last")


class Log:
    """What was done, in the order in which it was."""

    def __init__(self, folder: Path, hangs_at: str) -> None:
        self.folder, self.hangs_at = folder, hangs_at

    def done(self, place: str) -> None:
        """Begin something, hang if it is its turn, and be done."""
        self._write(f"+ {place}")
        if place == self.hangs_at:
            (self.folder / HANGING).touch()
            Event().wait()
        self._write(f"- {place}")

    def _write(self, line: str) -> None:
        with (self.folder / LOG).open("a") as file:
            file.write(line + "\n")

    def count(self, line: str) -> int:
        """How often a line was written."""
        path = self.folder / LOG
        return path.read_text().splitlines().count(line) if path.exists() else 0


class Model:
    """A model that says what it was made to say."""

    def __init__(self, name: str, log: Log, says: str) -> None:
        self.name, self.log, self.says = name, log, says

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What it says, once it is done."""
        place = self.name if self.name == "infer" else f"{self.name}-{self._replica()}"
        await asyncio.to_thread(self.log.done, place)
        return ModelResult(self.says, model=self.name)

    def _replica(self) -> int:
        """Which replica is asked: the one after those that have answered."""
        return 1 + sum(self.log.count(f"- {self.name}-{number}") > 0 for number in (1, 2, 3))

    def model_info(self) -> ModelInfo:
        """Who it is."""
        return ModelInfo(self.name, context_window=4096, price=FREE)


class Plans:
    """A planner that takes its time."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """The plan, once it is made."""
        self.log.done("planner")
        return ExecutionPlan(PLAN)


def plans(log: Log, home: Path) -> PlanExecutor:
    """The executor of the plan, the same in every process."""

    @tool(effect="read")
    def look(at: str) -> str:
        """Look at something."""
        log.done("tool")
        return f"seen {at}"

    def code(step: Step) -> str:
        log.done(step.name)
        return f"{step.name} of {str(step.input)[:20]}"

    def make_object(step: Step) -> dict[str, Any]:
        log.done("object")
        return {"at": step.input}

    handlers: dict[str, Any] = {
        "code": code,
        "infer": InferHandler(Model("infer", log, "an answer")),
        "object": make_object,
        "tool": ToolHandler([look]),
        "validate": ValidateHandler(lambda text: log.done("validate")),
        "vote": RedundantLoop(Model("vote", log, '{"ok":true}'), schema=SCHEMA),
    }
    return PlanExecutor(handlers, planner=Plans(log), home=home)


async def resume(log: Log, home: Path) -> None:
    """Go on with the only plan there is, and tell what came of it."""
    async with reopened(settings_of(home=home)) as system:
        (run,) = await system.archive.runs()
    result = await plans(log, home).resume(run.run_id)
    async with reopened(settings_of(home=home)) as system:
        verified = (await system.archive.verify(run.run_id)).ok
        replayed = (await system.archive.replay(run.run_id)).verdict
    told = {
        "ending": result.response.terminal_code,
        "outputs": dict(result.outputs),
        "verified": verified,
        "replayed": replayed,
    }
    sys.stdout.write(json.dumps(told) + "\n")


def main(folder: Path, deed: str, place: str = "") -> None:
    """Begin the plan, or resume it."""
    log, home = Log(folder, place), folder / STORE
    if deed == "resume":
        asyncio.run(resume(log, home))
    else:
        asyncio.run(plans(log, home).execute(PLAN if deed == "begin" else None))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
