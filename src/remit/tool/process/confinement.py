"""What a process of a tool may take and is given: limits, and the variables of the environment it sees.

Rule 1: a limit that is not set has a default, which ordinary tools do not reach.
Rule 2: of the environment a process gets what programs need to find their way, and what the tool names; keys of vendors,
        tokens and passwords that stand there by chance are nothing that a tool was given.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from remit.tool.call.outcomes import RESULT_BYTES_MAX
from remit.tool.declare.signature import invalid_definition

# Escaped as JSON, a text takes six times its size at worst, and the frame around it some more.
OUTPUT_BYTES_MAX = 6 * RESULT_BYTES_MAX + 65_536
_MEBIBYTE = 1024 * 1024

# Names of variables that every process of a tool sees, where they are set; those that begin so, too.
PASSED_ON = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ]
)
PASSED_ON_PREFIX = "LC_"
# Tells the process of a tool that it stands in a sandbox already.
BOXED = "boxed"


class Limits(NamedTuple):
    """How much a process of a tool may take.

    `memory_bytes_max` is the address space of each of its processes, `processes_max` how many there may be at a time,
    `output_bytes_max` what they may send back: the result and everything that is printed.
    """

    memory_bytes_max: int = 4096 * _MEBIBYTE
    processes_max: int = 64
    output_bytes_max: int = OUTPUT_BYTES_MAX


LIMITS = Limits()
# Less would not hold the interpreter and what loads the tool; no machine has more.
_RANGES = Limits(256 * _MEBIBYTE, 1, 4096), Limits(1 << 50, 100_000, 1 << 40)


def declared_limits(name: str, given: Mapping[str, int] | None) -> Limits:
    """The limits that a tool declares, the others as they are; refuses what is no limit."""
    if given is None:
        return LIMITS
    if not isinstance(given, Mapping):
        raise invalid_definition(
            name, f"limits is a {type(given).__name__}; give a mapping with {', '.join(Limits._fields)}"
        )
    least, most = (ranges._asdict() for ranges in _RANGES)
    for key, value in given.items():
        if key not in least:
            raise invalid_definition(
                name, f"limits has {str(key)[:80]!r}, which is unknown; use {', '.join(Limits._fields)}"
            )
        if type(value) is not int or not least[key] <= value <= most[key]:
            raise invalid_definition(
                name, f"limits has {key}={str(value)[:80]}, which is not from {least[key]} to {most[key]}"
            )
    return LIMITS._replace(**given)


def variables_of(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """The variables that a tool asks for besides; refuses what is no name of one."""
    names: tuple[Any, ...] = (given,) if isinstance(given, str) else tuple(given)
    for variable in names:
        if not isinstance(variable, str) or not variable.isidentifier() or not variable.isascii():
            raise invalid_definition(name, f"environment has {str(variable)[:80]!r}, which is no name of a variable")
    return names


def environment_for(names: Iterable[str], every: Mapping[str, str]) -> dict[str, str]:
    """What a process sees of an environment."""
    seen = PASSED_ON.union(names)
    return {key: value for key, value in every.items() if key in seen or key.startswith(PASSED_ON_PREFIX)}
