"""What every command can be told: where runs are kept, in which form to answer, what to log.

Rule 1: --home wins over REMIT_HOME, and --store over REMIT_STORE; only the assembly reads those.
Rule 2: without a name the person is the user of the operating system.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter, Token

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.run.contract import ExecutionHints
from remit.core.run.lifecycle import AgentRole
from remit.observe.plain import printable_line

if TYPE_CHECKING:
    from remit.assemble import Settings

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]
LogFormat: TypeAlias = Literal["text", "json"]

# No number of a command line is longer, and what is shown of a text that is none.
DIGITS_MAX = 18


def whole_number(wanted: type, tokens: Sequence[Token]) -> int:
    """A whole number as the command line gives it: what has a fraction is refused, and not rounded."""
    said = tokens[0].value.strip()
    digits = said.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= DIGITS_MAX):
        raise _unusable(tokens, f"{printable_line(said, SHOWN_CHARS_MAX)!r} is no whole number, such as 10")
    return int(said)


def person_said(wanted: type, tokens: Sequence[Token]) -> str:
    """A person whom the command line names: an empty name is no way to leave it to the operating system."""
    said = tokens[0].value
    if not said.strip():
        raise _unusable(tokens, "is empty; name a person, or leave it out for the user of the operating system")
    return said


def _unusable(tokens: Sequence[Token], why: str) -> ValueError:
    # What cyclopts tells of it is told like any other command line that cannot be read.
    return ValueError(f"{tokens[0].keyword or 'the number'} {why}")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options of every command."""

    home: Annotated[
        str | None, Parameter(help="Where runs are kept; without it $REMIT_HOME, and without that .remit.")
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
FullOption: TypeAlias = Annotated[
    bool, Parameter(help="Show all that is known of what is asked; without it four lines of each question.")
]
ByWhom: TypeAlias = Annotated[
    str, Parameter(converter=person_said, help="Who says so; without it the user of the operating system.")
]


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
    max_tokens: Annotated[
        int, Parameter(converter=whole_number, help="Tokens that one answer may have; 2048 unless said.")
    ] = 0

    def hints(self, timeout_ms: int) -> ExecutionHints:
        """What a request says of it."""
        return ExecutionHints(
            max_tokens=self.max_tokens, temperature=self.temperature, top_p=self.top_p, timeout_ms=timeout_ms
        )


NO_SAMPLING = SamplingOptions()


def keyboard_user() -> str:
    """The name of the user at the keyboard, as far as the operating system knows."""
    from remit.assemble import os_user

    return os_user()


RoleName: TypeAlias = Annotated[
    str, Parameter(name="--role", help=f"What the agent is there for: {', '.join(AgentRole)}; `general` unless said.")
]
