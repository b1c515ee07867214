"""The command that talks: a conversation at a terminal, or through a pipe."""

import asyncio
import shlex
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import as_usage, boundary_given, budget_from, usable
from remit.adapters.cli.arguments.options import COMMON, LOCAL, CommonOptions, RoleName, keyboard_user, person_said
from remit.adapters.cli.arguments.pattern_options import GoalFile
from remit.adapters.cli.arguments.told_options import NOTHING_TOLD, ToldOptions
from remit.adapters.cli.chat import slash
from remit.adapters.cli.chat.chat_session import TerminalChat
from remit.adapters.cli.chat.governed_chat import ChatTerms
from remit.adapters.cli.chat.keyboard import HISTORY_FILE, Keyboard, Pipe
from remit.adapters.cli.event_loop import Interrupted, heeding
from remit.adapters.cli.screen.call_lines import CallTeller
from remit.adapters.cli.screen.narration import Narrator
from remit.adapters.cli.screen.response_lines import give
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_STOPPED, EXIT_WAITING
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.run.contract import SystemRequest
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import user_message

# Of several exchanges, the one that went worst decides.
_WORST_FIRST = (EXIT_FAILED, EXIT_STOPPED, EXIT_WAITING, EXIT_OK)

ExchangeBoundary: TypeAlias = Annotated[
    str,
    Parameter(help="What each exchange may do: the name of a boundary, or a file with one; `standard` unless said."),
]
ExchangeCaps: TypeAlias = Annotated[
    list[str] | None, Parameter(help="Caps of each exchange such as tool_calls=5,steps=20. May be said several times.")
]


def chat(
    *,
    engine: Annotated[str, Parameter(help="Which model to ask, such as scripted:FILE; `local` unless said.")] = LOCAL,
    tools: Annotated[
        list[str] | None, Parameter(help="FILE.py, module:NAME or builtin:clock,calculator. May be said several times.")
    ] = None,
    boundary: ExchangeBoundary = "standard",
    budget: ExchangeCaps = None,
    role: RoleName = AgentRole.GENERAL,
    goal: GoalFile = None,
    told: ToldOptions = NOTHING_TOLD,
    session: Annotated[str, Parameter(help="The session to go on with, or to begin; without it a new one.")] = "",
    user: Annotated[
        str,
        Parameter(converter=person_said, help="Who talks, and approves; without it the user of the operating system."),
    ] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Talk with a model at the terminal; every message is one governed run."""
    limits, caps = boundary_given(boundary), budget_from(budget or ())
    options = _options(
        ("--engine", engine if engine != LOCAL else ""),
        *(("--tools", place) for place in tools or ()),
        ("--boundary", boundary if boundary != "standard" else ""),
        *(("--budget", cap) for cap in budget or ()),
        ("--role", role if role != AgentRole.GENERAL else ""),
        ("--goal", str(goal or "")),
        *told.spelled(),
        ("--user", user),
        ("--home", str(common.home or "")),
    )
    # A first word, to see that everything else may enter.
    usable(SystemRequest((*told.messages(), user_message("hello")), session_id=session, user_id=user))
    is_sitting = terminal.is_live and sys.stdin is not None and sys.stdin.isatty()
    narrator = Narrator(terminal, teller=CallTeller() if is_sitting else None)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            opening = _Opening(engine, tools or (), limits=limits, caps=caps, role=role, goal=goal, told=told)
            conversation = runner.run(heeding(_opened(opening, stack, common, narrator)))
            conversation.session_id, conversation.user = session or conversation.session_id, user or keyboard_user()
            conversation.user_assumed = not user
            if not is_sitting:
                return _listen(terminal, conversation, runner)
            history, cover = common.settings().home / HISTORY_FILE, conversation.system.covered
            with Keyboard(terminal, history, slash.words(), cover) as keyboard:
                terminal_chat = TerminalChat(terminal, conversation, keyboard, runner, options)
                terminal.remark(f"remit chat with {', '.join(conversation.models)}, boundary {limits.name}")
                terminal.remark("/help lists what can be said besides messages; Ctrl-D leaves")
                terminal_chat.enter(conversation.session_id)
                return terminal_chat.last()
        finally:
            runner.run(stack.aclose())


def _options(*said: tuple[str, str]) -> str:
    """What to type behind the command in order to go on as it was begun."""
    return "".join(f" {name} {shlex.quote(value)}" for name, value in said if value)


class _Opening(NamedTuple):
    """The options of the command that say what a conversation is opened with."""

    engine: str
    tools: Sequence[str]
    limits: Boundary
    caps: Budget
    role: str
    goal: Path | None
    told: ToldOptions


async def _opened(opening: _Opening, stack: AsyncExitStack, common: CommonOptions, narrator: Narrator) -> ChatTerms:
    """A conversation in a session of its own, on a store that is closed with the stack."""
    from remit.assemble import RunWork, kit_for, new_run_id, opened_system, terms_for
    from remit.orchestrate.drafts import goal_at

    # Tools and engine come first: a store is not made for a conversation that cannot begin.
    narrator.progress.begin()
    try:
        narrator.loading(f"opening {opening.engine}")
        with as_usage():
            terms = replace(terms_for(opening.limits, opening.caps, role=opening.role), goal=goal_at(opening.goal))
            kit, terms = opening.told.work(RunWork(kit_for(opening.engine, opening.tools, base=Path.cwd()), terms))
        system = await stack.enter_async_context(opened_system(common.settings(), watcher=narrator))
    finally:
        narrator.progress.end()
    return ChatTerms(
        system,
        lambda request: system.run(request, kit, terms),
        tuple(kit.engines),
        kit.tools.definitions,
        narrator,
        session_id=new_run_id(),
        user="",
        instructions=opening.told.messages(),
        orders=opening.told.ordered(),
    )


def _listen(terminal: Terminal, conversation: ChatTerms, runner: asyncio.Runner) -> int:
    """Answer one message a line until there are no more, or a person has to be asked something."""
    pipe, codes = Pipe(), [EXIT_OK]
    while (text := pipe.message()) is not None:
        narrator = conversation.narrator
        try:
            response = runner.run(heeding(conversation.say(text), on_second=narrator.cut_off))
        except Interrupted as stop:
            raise (stop.in_run(narrator.run_id) if narrator.run_id else stop) from None
        codes.append(runner.run(give(terminal, conversation.system, response, said=narrator.shown)))
        if response.waiting_for is not None:
            terminal.remark("whatever else the input holds is left unread until that is answered")
            break
    return next(code for code in _WORST_FIRST if code in codes)
