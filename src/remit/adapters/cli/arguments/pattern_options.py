"""The options of the patterns: plan files, votes and rules, as `remit run` takes them.

Rule 1: an option that the chosen mode would not read is refused, never ignored.
Rule 2: whatever a command line names that cannot be used is wrong usage, and is found before a store is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import InputUnusable, as_usage, prompt_from, wrong_usage
from remit.adapters.cli.arguments.options import whole_number
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import FIELDS, Budget, Dimension, assign
from remit.core.limits.profiles import PROFILES, STANDARD
from remit.core.run.contract import Mode, SystemRequest
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.work.plan import RUN_THE_PLAN

if TYPE_CHECKING:
    from remit.assemble import RunWork

# Three is the least that can outvote one.
REPLICAS_DEFAULT = 3
VOTING_DEFAULT = "majority"

_IN_THE_STEPS = "is nothing a plan reads; say it in the steps of the plan file"
_IN_THE_FILE = "is nothing a plan reads; name a rule file in the plan file"
_RULES_ELSEWHERE = "is nothing a vote reads; rules are heard with --mode chat and --mode structured"
_NO_TOOLS = "is nothing a vote reads: its replicas are offered no tools; leave it out, or say --mode structured"
# What a mode does not read of the options that others do, and the way out.
_UNREAD: Mapping[Mode, Mapping[str, str]] = MappingProxyType(
    {
        Mode.PLAN: {
            "--schema": _IN_THE_STEPS,
            "--grammar": _IN_THE_STEPS,
            "--graph": _IN_THE_STEPS,
            "--router": "is nothing a plan reads: its steps name the tools that they call; leave it out",
            "--rules": _IN_THE_FILE,
            "--judge": _IN_THE_FILE,
        },
        Mode.REDUNDANT: {
            "--graph": "takes the place of the vote; leave out one of --graph and --mode redundant",
            "--tools": _NO_TOOLS,
            "--router": _NO_TOOLS,
            "--rules": _RULES_ELSEWHERE,
            "--judge": _RULES_ELSEWHERE,
        },
    }
)
# Of what there are too few for a plan or a vote, by the code of the refusal.
_TOO_FEW = MappingProxyType({"CHILD_RUNS_TOO_FEW": Dimension.CHILD_RUNS, "STEPS_TOO_FEW": Dimension.STEPS})


GoalFile: TypeAlias = Annotated[
    Path | None, Parameter(help="A YAML or JSON file with what the run must have done to end as SUCCESS.")
]


class Wanted(NamedTuple):
    """What the options of every mode say about how to run."""

    engine: str
    tools: Sequence[str]
    boundary: Boundary
    budget: Budget
    graph: Path | None
    router: Routing
    # Which model is asked when money runs short; empty for none.
    downgrade: str = ""
    role: str = AgentRole.GENERAL


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options of single modes."""

    plan: Annotated[Path | None, Parameter(help="A YAML file with the steps to run, for --mode plan.")] = None
    n: Annotated[
        int | None,
        Parameter(converter=whole_number, help="How many answers to ask for, with --mode redundant; 3 unless said."),
    ] = None
    voting: Annotated[
        str,
        Parameter(
            help="Who counts them: majority unless said, unanimity, similarity, or a function of yours, FILE.py:NAME."
        ),
    ] = ""
    early_stop: Annotated[bool, Parameter(help="Stop asking once no answer to come can change the vote.")] = False
    parallel: Annotated[bool, Parameter(help="Ask for all answers at once, where the engine can.")] = False
    rules: Annotated[
        Path | None, Parameter(help="A YAML file with rules that the answer must keep, for chat and structured.")
    ] = None
    judge: Annotated[
        str, Parameter(help="Which model answers the rules' questions of meaning; --engine's unless said.")
    ] = ""
    goal: GoalFile = None

    def check(self, mode: Mode, others: Mapping[str, object]) -> None:
        """Refuse what the mode does not read, and what it lacks; `others` are options that every mode has."""
        votes = [name for name, value in self._votes().items() if value]
        if votes and mode is not Mode.REDUNDANT:
            raise wrong_usage(f"{votes[0]} is about votes and needs --mode redundant, not {mode.value}")
        if (self.plan is not None) != (mode is Mode.PLAN):
            raise wrong_usage("--mode plan and --plan FILE belong together; say both, or none")
        if self.early_stop and self.parallel:
            raise wrong_usage("--early-stop asks one after the other and --parallel all at once; say one of them")
        given: Mapping[str, object] = {**others, "--rules": self.rules, "--judge": self.judge or None}
        said = [name for name, value in given.items() if value is not None]
        for name in said:
            if name in _UNREAD.get(mode, ()):
                raise wrong_usage(f"{name} {_UNREAD[mode][name]}")
        if self.judge and self.rules is None:
            raise wrong_usage("--judge answers questions of --rules FILE, which is missing; say both, or none")
        if self.rules is not None and "--graph" in said:
            raise wrong_usage("--rules are heard by the graph of the mode; leave out one of --rules and --graph")
        if mode in (Mode.STRUCTURED, Mode.REDUNDANT) and "--schema" not in said:
            message = f"--mode {mode.value} needs --schema, which is missing; name a file with the answer's JSON Schema"
            raise InputUnusable(ErrorCode.CONFIG_SCHEMA_REQUIRED, message)

    def _votes(self) -> Mapping[str, object]:
        return {
            "--n": self.n is not None,
            "--voting": self.voting,
            "--early-stop": self.early_stop,
            "--parallel": self.parallel,
        }

    def prompt(self, words: str, file: Path | None) -> str:
        """What the run is asked. A plan whose first step has its input needs no prompt."""
        if self.plan is None or words or file is not None:
            return prompt_from(words, file)
        from remit.assemble import plan_from_file

        with as_usage():
            steps = plan_from_file(self.plan).plan.steps
        if steps and steps[0].input is None:
            raise wrong_usage(f"step {steps[0].name!r} of the plan has no input; give it one, or give a PROMPT")
        return RUN_THE_PLAN

    def work(self, wanted: Wanted, request: SystemRequest, prompt: str) -> "RunWork":
        """What the run works with, and on which terms, these options included."""
        from remit.assemble import check_work

        with as_usage():
            work = self._work(wanted, prompt)
            try:
                check_work(work, request)
            except RequestRejected as error:
                if error.code not in _TOO_FEW:
                    raise
                message = _too_few(error, request.mode, wanted)
                raise RequestRejected(error.code, message, error.details) from error
        return work

    def _work(self, wanted: Wanted, prompt: str) -> "RunWork":
        from remit.assemble import (
            RunWork,
            graph_in,
            kit_for,
            kit_for_plan,
            plan_from_file,
            planned_work,
            ruled_work,
            terms_for,
            voted_work,
        )
        from remit.orchestrate.drafts import goal_at

        base = Path.cwd()
        graph = None if wanted.graph is None else graph_in(wanted.graph)
        limits = terms_for(wanted.boundary, wanted.budget, graph=graph, router=wanted.router, role=wanted.role)
        terms = replace(limits, goal=goal_at(self.goal))
        if self.plan is not None:
            file = plan_from_file(self.plan)
            return planned_work(
                RunWork(kit_for_plan(file, wanted.engine, wanted.tools, base=base), terms), file, prompt
            )
        work = RunWork(kit_for(wanted.engine, wanted.tools, base=base, downgrade=wanted.downgrade), terms)
        if self.rules is not None:
            work = ruled_work(work, self.rules, self.judge, base=base)
        n, voting = REPLICAS_DEFAULT if self.n is None else self.n, self.voting or VOTING_DEFAULT
        return voted_work(work, n, voting, early_stop=self.early_stop, is_parallel=self.parallel, base=base)


NO_OPTIONS = PatternOptions()


def _too_few(error: RequestRejected, mode: Mode, wanted: Wanted) -> str:
    """Why a plan or a vote has too little to begin with, and what a command line can do about it."""
    dimension, needed = _TOO_FEW[str(error.code)], error.details["needed"]
    field, name = FIELDS[dimension], wanted.boundary.name
    fewer = "ask for fewer answers with --n" if mode is Mode.REDUNDANT else "plan fewer steps"
    roomy = [known.name for known in (STANDARD, *PROFILES.values()) if assign(known.budget)[dimension] >= needed]
    if name in roomy:
        way_out = f"{fewer}, or allow {field}={needed} with --budget"
    else:
        way_out = f"{fewer}, or name a boundary that allows more: {', '.join(roomy)}" if roomy else fewer
    allowed = error.details["allowed"]
    by = "--budget" if allowed < assign(wanted.boundary.budget)[dimension] else f"boundary {name!r}"
    return f"this takes at least {needed} {field.replace('_', ' ')}, and {by} allows {allowed}; {way_out}"
