"""The clock: the present time, in UTC and in one named zone.

Rule 1: a zone is a name of the IANA database and nothing else; what the name may be is asked of the standard library.
Rule 2: a city stands for the one zone that is named after it; a name that two zones end with stands for neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import Field

from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.declare.decorator import Tool, tool

CLOCK_ZONE_UNKNOWN = "CLOCK_ZONE_UNKNOWN"
CLOCK_ZONES_MISSING = "CLOCK_ZONES_MISSING"

# The longest name of the database has half as many.
ZONE_CHARS_MAX = 64
# Reading one small file; a second covers a disk that is busy.
TIMEOUT_MS = 1_000

ZONE = "A city or the IANA name of a zone: Tokyo, New York, Europe/Berlin, UTC."
# Letters: small models are held to this while they write, and cannot answer with a number. The few names that have
# digits are offsets, which no caller asks for by name.
ZONE_PATTERN = "^[A-Za-z][A-Za-z_/ ]*$"


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
        network=False,
        reads=Reads.PUBLIC,
        idempotent=True,
        untrusted_output=False,
        timeout_ms=TIMEOUT_MS,
    )
    def clock(
        zone: Annotated[str, Field(max_length=ZONE_CHARS_MAX, pattern=ZONE_PATTERN, description=ZONE)] = "UTC",
    ) -> Moment:
        """Tell the present date and time, in UTC and in a time zone."""
        present = datetime.now(UTC) if now is None else now()
        return zoned_moment(present, zone)

    return clock


def zoned_moment(present: datetime, zone: str) -> Moment:
    """A moment as UTC and as the zone tells it."""
    utc = present.astimezone(UTC)
    zone = _of_city(zone) or zone
    local = utc if zone == "UTC" else utc.astimezone(_found(zone))
    return Moment(
        utc=utc.isoformat(timespec="seconds"),
        zone=zone,
        local=local.isoformat(timespec="seconds"),
        weekday=WEEKDAYS[local.weekday()],
    )


# Spelled out here, since a locale would spell them otherwise.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _of_city(name: str) -> str:
    """The zone that is named after a city, or nothing."""
    if "/" in name or name == "UTC":
        return ""
    city = f"/{name.strip().replace(' ', '_').lower()}"
    found = [zone for zone in available_timezones() if zone.lower().endswith(city)]
    return found[0] if len(found) == 1 else ""


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
    return ToolRefused(CLOCK_ZONE_UNKNOWN, f"there is no time zone {quoted_value(zone)}; {way_out}")
