"""The clock tells the time in any zone that the database knows, and says so when there is none."""

import re
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.world_clock import (
    CLOCK_ZONE_UNKNOWN,
    CLOCK_ZONES_MISSING,
    WEEKDAYS,
    Moment,
    clock_tool,
    zoned_moment,
)
from tests.unit.tool.watching import content

NOON = datetime(2024, 7, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def no_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a database of zones, and without the package that stands in for one."""
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath(to=[])
    yield
    zoneinfo.reset_tzpath()


def test_a_moment_is_told_in_utc_and_in_a_zone() -> None:
    expected = Moment("2024-07-01T12:00:00+00:00", "Europe/Berlin", "2024-07-01T14:00:00+02:00", "Monday")
    assert zoned_moment(NOON, "Europe/Berlin") == expected


def test_the_weekday_is_that_of_the_zone() -> None:
    late = datetime(2024, 7, 1, 23, 0, 0, tzinfo=UTC)
    assert zoned_moment(late, "UTC").weekday == "Monday"
    assert zoned_moment(late, "Asia/Tokyo").weekday == "Tuesday"
    assert len(WEEKDAYS) == 7


def test_the_tool_tells_the_time_that_it_is_given() -> None:
    tool = clock_tool(now=lambda: NOON)
    assert '"utc":"2024-07-01T12:00:00+00:00"' in content(tool)
    assert '"local":"2024-07-01T08:00:00-04:00"' in content(tool, zone="America/New_York")
    assert tool.definition.effect is Effect.READ
    assert tool.definition.category is ToolCategory.READ_ONLY_LOOKUP


def test_without_anybody_to_ask_the_tool_tells_the_time_of_the_machine() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    told = datetime.fromisoformat(clock_tool().function().utc)
    assert before <= told <= datetime.now(UTC)


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "America", "../../../etc/passwd", "/etc/localtime", "a\0b", "Z" * 64, "\ud800", "", "."]
)
def test_a_name_that_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(ToolRefused) as caught:
        zoned_moment(NOON, zone)
    assert caught.value.code == CLOCK_ZONE_UNKNOWN


def test_a_misspelt_zone_is_answered_with_the_nearest() -> None:
    with pytest.raises(ToolRefused, match="Europe/Berlin"):
        zoned_moment(NOON, "Europe/Brlin")


@pytest.mark.usefixtures("no_zones")
def test_a_machine_without_zones_says_what_is_missing_and_still_knows_utc() -> None:
    assert zoned_moment(NOON, "UTC").local == "2024-07-01T12:00:00+00:00"
    with pytest.raises(ToolRefused) as caught:
        zoned_moment(NOON, "Europe/Berlin")
    assert caught.value.code == CLOCK_ZONES_MISSING
    assert "tzdata" in caught.value.message


@pytest.mark.parametrize(("city", "zone"), [("Tokyo", "Asia/Tokyo"), ("new york", "America/New_York"), ("UTC", "UTC")])
def test_a_city_stands_for_the_zone_that_is_named_after_it(city: str, zone: str) -> None:
    assert zoned_moment(NOON, city).zone == zone


def test_a_name_that_two_zones_end_with_stands_for_neither() -> None:
    with pytest.raises(ToolRefused):
        zoned_moment(NOON, "Louisville")


def test_a_number_is_no_zone_that_a_model_could_write() -> None:
    zone = clock_tool().definition.parameters["properties"]["zone"]
    assert re.match(zone["pattern"], "Europe/Berlin")
    assert not re.match(zone["pattern"], "23.00")
