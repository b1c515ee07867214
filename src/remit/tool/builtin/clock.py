"""The clock: the present time, in UTC and in one named zone.

Rule 1: a zone is a name of the IANA database and nothing else; what the name may be is asked of the standard library.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import Field

from remit.core.tools import Effect, ToolCategory
from remit.tool.builtin.refusing import ToolRefused, shown
from remit.tool.declare import Tool, tool

CLOCK_ZONE_UNKNOWN = "CLOCK_ZONE_UNKNOWN"
CLOCK_ZONES_MISSING = "CLOCK_ZONES_MISSING"

# The longest name of the database has half as many.
ZONE_CHARS_MAX = 64
# Reading one small file; a second covers a disk that is busy.
TIMEOUT_MS = 1_000

ZONE = "The IANA name of the zone, for example Europe/Berlin or America/New_York."


@dataclass(frozen=True, slots=True)
class Moment:
    """The present time twice: in UTC and in the zone, each to the second in ISO 8601."""

    utc: str
    zone: str
    local: str
    weekday: str


def clock_tool(*, now: Callable[[], datetime] | None = None) -> Tool:
    """The tool `clock`. `now` tells the time, with a zone; without it the machine does."""

    @tool(
        effect=Effect.READ,
        category=ToolCategory.READ_ONLY_LOOKUP,
        idempotent=True,
        untrusted_output=False,
        timeout_ms=TIMEOUT_MS,
    )
    def clock(
        zone: Annotated[str, Field(min_length=1, max_length=ZONE_CHARS_MAX, description=ZONE)] = "UTC",
    ) -> Moment:
        """Tell the present date and time, in UTC and in a time zone."""
        present = datetime.now(UTC) if now is None else now()
        return moment(present, zone)

    return clock


def moment(present: datetime, zone: str) -> Moment:
    """A moment as UTC and as the zone tells it."""
    utc = present.astimezone(UTC)
    local = utc if zone == "UTC" else utc.astimezone(_found(zone))
    return Moment(
        utc=utc.isoformat(timespec="seconds"),
        zone=zone,
        local=local.isoformat(timespec="seconds"),
        weekday=WEEKDAYS[local.weekday()],
    )


# Spelled out here, since a locale would spell them otherwise.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _found(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        # A folder of the database, a path out of it and a name that is no text of a path end here too.
        raise _unknown(zone) from error


def _unknown(zone: str) -> ToolRefused:
    known = available_timezones()
    if not known:
        message = "this machine has no time zone database, so only UTC is known; its operator can install 'tzdata'"
        return ToolRefused(CLOCK_ZONES_MISSING, message)
    near = get_close_matches(zone, sorted(known), n=1)
    way_out = f"did you mean {near[0]!r}?" if near else "use an IANA name such as 'Europe/Berlin'"
    return ToolRefused(CLOCK_ZONE_UNKNOWN, f"there is no time zone {shown(zone)}; {way_out}")
