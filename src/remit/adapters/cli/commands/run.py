"""The command that starts a run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.answers.attendance import attend
from remit.adapters.cli.arguments.inputs import (
    boundary_given,
    budget_from,
    grammar_in,
    schema_in,
    timeout_ms_from,
    usable,
)
from remit.adapters.cli.arguments.options import (
    COMMON,
    LOCAL,
    NO_SAMPLING,
    CommonOptions,
    FullOption,
    RoleName,
    SamplingOptions,
    keyboard_user,
    person_said,
)
from remit.adapters.cli.arguments.pattern_options import NO_OPTIONS, PatternOptions, Wanted
from remit.adapters.cli.arguments.told_options import NOTHING_TOLD, ToldOptions
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.step_lines import RunTeller, answer_with_steps
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.record import replace
from remit.core.run.contract import Mode, OutputContract, SystemRequest
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import user_message

if TYPE_CHECKING:
    from remit.assemble import RunWork


ModeName: TypeAlias = Literal["chat", "structured", "plan", "redundant"]


PatternName: TypeAlias = Annotated[
    ModeName,
    Parameter(
        help="Which pattern runs: `chat` unless said; `structured` and `redundant` need --schema, `plan` needs --plan."
    ),
]


PromptFile: TypeAlias = Annotated[
    Path | None, Parameter(allow_leading_hyphen=True, help="A file with the prompt; `-` reads it from stdin.")
]


RouterName: TypeAlias = Literal["auto", "embedding", "none"]


WorkTime: TypeAlias = Annotated[
    str,
    Parameter(
        help="How long the run may work: seconds, or 5min, 2h; 120 s unless boundary or budget say, 0 leaves it to them."
    ),
]


NoForesee: TypeAlias = Annotated[
    bool, Parameter(help="Let the run spend its budget, although it may be foreseen that it cannot finish.")
]


Downgrade: TypeAlias = Annotated[
    str, Parameter(help="Which model to ask when money runs short and the boundary says `downgrade`.")
]


# Two minutes: as long as a person watches a terminal. A boundary or a budget that names a wall clock knows better.
TIMEOUT_S_DEFAULT = 120


Caps: TypeAlias = Annotated[
    list[str] | None, Parameter(help="Caps such as tool_calls=5,steps=20. May be said several times.")
]


GraphFile: TypeAlias = Annotated[
    Path | None, Parameter(help="A YAML file with the graph to run, in place of the pattern's.")
]


def run(
    prompt: Annotated[str, Parameter(name="PROMPT", help="What is wanted.")] = "",
    /,
    *,
    file: PromptFile = None,
    mode: PatternName = "chat",
    engine: Annotated[str, Parameter(help="Which model to ask, such as scripted:FILE; `local` unless said.")] = LOCAL,
    downgrade: Downgrade = "",
    schema: Annotated[Path | None, Parameter(help="A file with the JSON Schema that the answer must fit.")] = None,
    grammar: Annotated[Path | None, Parameter(help="A file with the grammar that the answer must follow.")] = None,
    tools: Annotated[
        list[str] | None, Parameter(help="FILE.py, module:NAME or builtin:clock,calculator. May be said several times.")
    ] = None,
    boundary: Annotated[
        str, Parameter(help="What the run may do: the name of a boundary, or a file with one; `standard` unless said.")
    ] = "standard",
    budget: Caps = None,
    graph: GraphFile = None,
    role: RoleName = AgentRole.GENERAL,
    router: Annotated[
        RouterName | None,
        Parameter(help="Who shortlists the tools for the model; `auto` unless said, `none` offers all."),
    ] = None,
    session: Annotated[str, Parameter(help="The session that the run continues, or begins.")] = "",
    timeout: WorkTime = "",
    no_foresee: NoForesee = False,
    user: Annotated[
        str, Parameter(converter=person_said, help="For whom it runs; without it the user of the operating system.")
    ] = "",
    tenant: Annotated[str, Parameter(help="Whose quotas it counts against.")] = "",
    full: FullOption = False,
    told: ToldOptions = NOTHING_TOLD,
    sampling: SamplingOptions = NO_SAMPLING,
    pattern: PatternOptions = NO_OPTIONS,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Start a run and wait until it has ended or waits for a person."""
    others = {"--schema": schema, "--grammar": grammar, "--graph": graph, "--tools": tools, "--router": router}
    pattern.check(Mode(mode), others)
    told.check(Mode(mode), file)
    limits, caps = _limits(boundary, is_foreseen=not no_foresee), budget_from(budget or ())
    asked = pattern.prompt(prompt, file)
    request = usable(
        SystemRequest(
            messages=(*told.messages(), user_message(asked)),
            mode=Mode(mode),
            session_id=session,
            hints=sampling.hints(_timeout_ms(timeout, limits, caps)),
            output=OutputContract(schema=schema_in(schema), grammar=grammar_in(grammar)),
            user_id=user or keyboard_user(),
            user_assumed=not user,
            tenant_id=tenant,
            orders=told.ordered(),
        )
    )
    routing = Routing(router or Routing.AUTO)
    wanted = Wanted(engine, tools or (), limits, caps, graph=graph, router=routing, downgrade=downgrade, role=role)
    return _played(terminal, common, request, lambda: told.work(pattern.work(wanted, request, asked)), is_full=full)


def _limits(boundary: str, *, is_foreseen: bool) -> Boundary:
    """The boundary of a run, which may be told to spend its budget to the end."""
    limits = boundary_given(boundary)
    return limits if is_foreseen else replace(limits, stops_early=False)


def _played(
    terminal: Terminal, common: CommonOptions, request: SystemRequest, ready: Callable[[], "RunWork"], *, is_full: bool
) -> int:
    """Run a request and answer with what it came to."""
    teller = RunTeller(terminal)
    narrator = Narrator(terminal, teller=None if terminal.is_json else teller)

    async def play() -> int:
        from remit.assemble import opened_system

        # Graph, tools and engine come first: a store is not made for a run that cannot begin.
        kit, terms = ready()
        async with opened_system(common.settings(), watcher=narrator) as system:
            begun = await system.run(request, kit, terms)
            response, left = await attend(terminal, system, begun, narrator, by=keyboard_user(), is_full=is_full)
            return await answer_with_steps(
                terminal, system, response, teller, said=narrator.shown, is_full=is_full, seen=left
            )

    return narrated(narrator, play())


def _timeout_ms(said: str, boundary: Boundary, budget: Budget) -> int:
    """The wall clock that the request asks for; 0 leaves it to the boundary and the budget."""
    if said:
        return timeout_ms_from(said)
    has_clock = boundary.budget.wall_clock_ms is not None or budget.wall_clock_ms is not None
    return 0 if has_clock else TIMEOUT_S_DEFAULT * 1000
