"""The command that teaches a shell to complete the commands and options of remit.

Rule 1: the script is made from the commands themselves, so it knows those of this version and no others.
"""

from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK

Shell: TypeAlias = Literal["bash", "zsh", "fish"]


def completion(
    shell: Annotated[Shell, Parameter(name="SHELL", help="For which shell.")],
    /,
    *,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Print what makes a shell complete the commands of remit."""
    from remit.adapters.cli.main import build_app

    script = build_app().generate_completion(shell=shell)
    if terminal.is_json:
        terminal.values({"shell": shell, "script": script})
    else:
        terminal.text(script)
    return EXIT_OK
