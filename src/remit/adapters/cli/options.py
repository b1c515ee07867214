"""What every command can be told: where runs are kept, in which form to answer, what to log.

Rule 1: --home wins over REMIT_HOME, and --store over REMIT_STORE; only the assembly reads those.
Rule 2: without a name the person is the user of the operating system.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter

from remit.core.run.contract import ExecutionHints
from remit.core.run.lifecycle import AgentRole

if TYPE_CHECKING:
    from remit.assemble import Settings

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]
LogFormat: TypeAlias = Literal["text", "json"]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options of every command."""

    home: Annotated[
        Path | None, Parameter(help="Where runs are kept; without it $REMIT_HOME, and without that .remit.")
    ] = None
    store: Annotated[
        str,
        Parameter(help="The NATS servers that keep runs, nats://HOST:PORT; without it $REMIT_STORE, else the folder."),
    ] = ""
    json: Annotated[bool, Parameter(help="Print JSON, one object or one a line.")] = False
    log_level: Annotated[LogLevel, Parameter(help="From which level on to log, to stderr; `warning` unless said.")] = (
        "warning"
    )
    log_format: Annotated[LogFormat, Parameter(help="How log lines are written; `text` unless said.")] = "text"

    def settings(self) -> "Settings":
        """The settings they amount to."""
        from remit.assemble import settings_of

        return settings_of(home=self.home, store=self.store)


COMMON = CommonOptions()

# The engine that needs nothing but this machine.
LOCAL = "local"

RunName: TypeAlias = Annotated[
    str, Parameter(name="RUN", help="The id of a run, the beginning of it where that is unique, or `last`.")
]
Full: TypeAlias = Annotated[
    bool, Parameter(help="Show all that is known of what is asked; without it four lines of each question.")
]
ByWhom: TypeAlias = Annotated[str, Parameter(help="Who says so; without it the user of the operating system.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How models are sampled, and how much they may say at once."""

    temperature: Annotated[
        float | None, Parameter(help="How freely the model chooses, 0 for not at all; its engine's own unless said.")
    ] = None
    top_p: Annotated[
        float, Parameter(help="From how much of the likely words it chooses, up to 1; its engine's own unless said.")
    ] = 0.0
    max_tokens: Annotated[int, Parameter(help="Tokens that one answer may have; 2048 unless said.")] = 0

    def hints(self, timeout_ms: int) -> ExecutionHints:
        """What a request says of it."""
        return ExecutionHints(
            max_tokens=self.max_tokens, temperature=self.temperature, top_p=self.top_p, timeout_ms=timeout_ms
        )


NO_SAMPLING = SamplingOptions()


def os_user() -> str:
    """Who is at the keyboard, as far as the operating system knows."""
    from remit.assemble import os_user

    return os_user()


RoleName: TypeAlias = Annotated[
    str, Parameter(name="--role", help=f"What the agent is there for: {', '.join(AgentRole)}; `general` unless said.")
]
