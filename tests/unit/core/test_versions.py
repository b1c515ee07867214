"""A version names content: equal content, equal version, whatever was hashed before."""

import pytest

from remit.core.journal import versions
from remit.core.journal.canonical import NotCanonical, canonical_hash
from remit.core.journal.versions import VERSIONS_REMEMBERED_MAX, content_version
from remit.core.limits.boundary import Boundary
from remit.core.record import JsonObject, Record


class Part(Record):
    name: str = ""
    options: JsonObject = {}


def test_a_version_is_the_hash_of_the_canonical_form_the_first_time_and_again() -> None:
    part = Part("a", {"b": [1, 2.5, None]})
    expected = canonical_hash({"name": "a", "options": {"b": [1, 2.5, None]}}).hex()
    assert [content_version(part), content_version(part)] == [expected, expected]


def test_a_map_that_was_changed_behind_its_record_changes_the_version() -> None:
    part = Part("a", {"b": 1})
    before = content_version(part)
    part.options["b"] = 2
    assert content_version(part) == content_version(Part("a", {"b": 2})) != before


def test_the_order_of_keys_does_not_count() -> None:
    assert content_version(Part("a", {"b": 1, "c": 2})) == content_version(Part("a", {"c": 2, "b": 1}))


@pytest.mark.parametrize("value", [float("nan"), "\ud800", 2**70, {1: 2}])
def test_what_has_no_canonical_form_is_refused_each_time(value: object) -> None:
    for _ in range(2):
        with pytest.raises(NotCanonical):
            content_version(Part("a", {"b": value}))


def test_so_many_versions_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered: dict[bytes, str] = {}
    monkeypatch.setattr(versions, "_remembered", remembered)
    monkeypatch.setattr(versions, "VERSIONS_REMEMBERED_MAX", 2)
    wanted = [content_version(Boundary(str(number))) for number in range(3)]
    assert len(remembered) == 1
    assert [content_version(Boundary(str(number))) for number in range(3)] == wanted
    assert VERSIONS_REMEMBERED_MAX > 2
