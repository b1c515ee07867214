"""Limits of an endpoint in a spec: `openai:MODEL?concurrency=4&rpm=60&breaker=5/30`.

Rule 1: they may stand among the options of any engine that asks a url, and are taken out before that engine reads them.
Rule 2: an engine without any of them is asked without limits.
"""

from typing import NamedTuple, NoReturn
from urllib.parse import parse_qsl

from remit.core.failure import ErrorCode, RequestRejected

# More than any server answers at once, and than any vendor allows in a minute.
CONCURRENCY_MAX = 1_000
RPM_MAX = 1_000_000
# More failures in a row than an operator watches, and an hour of leaving alone.
FAILURES_MAX = 1_000
PAUSE_S_MAX = 3_600

# A run tries three or four times on its own: one run alone does not close an endpoint to all others.
FAILURES_DEFAULT = 5
# As long as the longest pause between two attempts of a run.
PAUSE_S_DEFAULT = 30

NAMES = ("concurrency", "rpm", "breaker")


class EndpointLimits(NamedTuple):
    """How much an endpoint may be asked; 0 is no limit. After so many failures in a row, it is left alone for a pause."""

    concurrency: int = 0
    rpm: int = 0
    failures_max: int = FAILURES_DEFAULT
    pause_s: int = PAUSE_S_DEFAULT

    def written_behind(self, spec: str) -> str:
        """A spec with these limits among its options."""
        written = [f"concurrency={self.concurrency}"] if self.concurrency else []
        written += [f"rpm={self.rpm}"] if self.rpm else []
        # Always written: it is what says that there are limits at all.
        written.append(f"breaker={self.failures_max}/{self.pause_s}")
        return f"{spec}{'&' if '?' in spec else '?'}{'&'.join(written)}"


def take_limits(spec: str) -> tuple[str, EndpointLimits | None]:
    """A spec without its limits, and the limits; None where it names none."""
    named, mark, query = spec.partition("?")
    options = query.split("&") if mark else []
    wanted = [option.partition("=")[::2] for option in options if option.partition("=")[0] in NAMES]
    if not wanted:
        return spec, None
    values = dict(wanted)
    if len(values) < len(wanted):
        _reject(named, "has a limit more than once; keep one")
    failures_max, pause_s = FAILURES_DEFAULT, PAUSE_S_DEFAULT
    if "breaker" in values:
        failures, slash, pause = values["breaker"].partition("/")
        failures_max = _whole(named, "breaker", failures, FAILURES_MAX)
        pause_s = _whole(named, "breaker", pause, PAUSE_S_MAX) if slash else PAUSE_S_DEFAULT
    limits = EndpointLimits(
        _whole(named, "concurrency", values["concurrency"], CONCURRENCY_MAX) if "concurrency" in values else 0,
        _whole(named, "rpm", values["rpm"], RPM_MAX) if "rpm" in values else 0,
        failures_max,
        pause_s,
    )
    rest = "&".join(option for option in options if option.partition("=")[0] not in NAMES)
    return f"{named}?{rest}" if rest else named, limits


def url_in(spec: str) -> str:
    """The url that a spec names, or the spec itself."""
    return dict(parse_qsl(spec.partition("?")[2])).get("url", spec)


def _whole(named: str, option: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        example = f"{FAILURES_DEFAULT}/{PAUSE_S_DEFAULT}" if option == "breaker" else "4"
        _reject(
            named, f"{option}: {text!r:.40} is no whole number from 1 to {most}; write for example {option}={example}"
        )
    return int(text)


def _reject(named: str, problem: str) -> NoReturn:
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, f"engine {named!r:.120}: {problem}")
