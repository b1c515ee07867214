"""The options of the patterns: plan files and votes, as `remit run` takes them.

Rule 1: an option that the chosen mode would not read is refused, never ignored.
Rule 2: a plan, a voter or a number of replicas that cannot be used is wrong usage, and is found before a store is made.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from remit.adapters.cli.inputs import InputUnusable, prompt_from, wrong_usage
from remit.core.boundary import Boundary
from remit.core.budget import Budget
from remit.core.contract import Mode
from remit.core.failure import RequestRejected
from remit.core.inference import Routing

if TYPE_CHECKING:
    from remit.assemble import Work

# Three is the least that can outvote one.
REPLICAS_DEFAULT = 3
VOTING_DEFAULT = "majority"
# What a plan is told that says everything itself.
RUN_THE_PLAN = "Run the plan."


class Wanted(NamedTuple):
    """What the options of every mode say about how to run."""

    engine: str
    tools: Sequence[str]
    boundary: Boundary
    budget: Budget
    graph: Path | None
    router: Routing
    prompt: str


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options of the modes plan and redundant."""

    plan: Annotated[Path | None, Parameter(help="A YAML file with the steps to run, for --mode plan.")] = None
    n: Annotated[int | None, Parameter(help="How many answers to ask for, with --mode redundant; 3 unless said.")] = (
        None
    )
    voting: Annotated[
        str,
        Parameter(
            help="Who counts them: majority unless said, unanimity, similarity, or a function of yours, FILE.py:NAME."
        ),
    ] = ""
    early_stop: Annotated[bool, Parameter(help="Stop asking once no answer to come can change the vote.")] = False
    parallel: Annotated[bool, Parameter(help="Ask for all answers at once, where the engine can.")] = False

    def check(self, mode: Mode, others: Sequence[tuple[str, object]]) -> None:
        """Refuse what the mode does not read; `others` are options of every mode that a plan says by itself."""
        votes = [name for name, value in self._votes() if value]
        if votes and mode is not Mode.REDUNDANT:
            raise wrong_usage(f"{votes[0]} is about votes and needs --mode redundant, not {mode.value}")
        if (self.plan is not None) != (mode is Mode.PLAN):
            raise wrong_usage("--mode plan and --plan FILE belong together; say both, or none")
        if self.early_stop and self.parallel:
            raise wrong_usage("--early-stop asks one after the other and --parallel all at once; say one of them")
        said = [name for name, value in others if value is not None]
        if said and mode is Mode.PLAN:
            raise wrong_usage(f"{said[0]} is nothing a plan reads; say it in the steps of the plan file")
        if "--graph" in said and mode is Mode.REDUNDANT:
            raise wrong_usage("--graph takes the place of the vote; leave out one of --graph and --mode redundant")

    def _votes(self) -> tuple[tuple[str, object], ...]:
        return (
            ("--n", self.n is not None),
            ("--voting", self.voting),
            ("--early-stop", self.early_stop),
            ("--parallel", self.parallel),
        )

    def prompt(self, words: str, file: Path | None) -> str:
        """What the run is asked. A plan whose first step has its input needs no prompt."""
        if self.plan is None or words or file is not None:
            return prompt_from(words, file)
        from remit.assemble import plan_in

        with as_usage():
            steps = plan_in(self.plan).plan.steps
        if steps and steps[0].input is None:
            raise wrong_usage(f"step {steps[0].name!r} of the plan has no input; give it one, or give a PROMPT")
        return RUN_THE_PLAN

    def work(self, wanted: Wanted) -> "Work":
        """What the run works with, and on which terms, these options included."""
        from remit.assemble import Work, graph_in, kit_for, kit_for_plan, plan_in, planned_work, terms_for, voted_work

        base = Path.cwd()
        graph = None if wanted.graph is None else graph_in(wanted.graph)
        terms = terms_for(wanted.boundary, wanted.budget, graph=graph, router=wanted.router)
        if self.plan is not None:
            with as_usage():
                file = plan_in(self.plan)
            work = Work(kit_for_plan(file, wanted.engine, wanted.tools, base=base), terms)
            with as_usage():
                return planned_work(work, file, wanted.prompt)
        work = Work(kit_for(wanted.engine, wanted.tools, base=base), terms)
        n, voting = REPLICAS_DEFAULT if self.n is None else self.n, self.voting or VOTING_DEFAULT
        with as_usage():
            return voted_work(work, n, voting, early_stop=self.early_stop, is_parallel=self.parallel, base=base)


NO_OPTIONS = PatternOptions()


@contextmanager
def as_usage() -> Iterator[None]:
    """Whatever is refused within is wrong usage: the command line named something that cannot be used."""
    try:
        yield
    except RequestRejected as error:
        raise InputUnusable(error.code, error.message, error.details) from error
