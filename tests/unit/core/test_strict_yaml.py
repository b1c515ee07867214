"""Strict YAML: bounded, once said, and located."""

from pathlib import Path

import pytest
import yaml

from remit.core.failure import RequestRejected
from remit.core.schema import yaml_values
from remit.core.schema.strict_yaml import YAML_BYTES_MAX, YAML_DEPTH_MAX, YamlFault, parse_yaml, read_yaml, write_yaml


@pytest.fixture(params=["in C", "in Python"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds for both loaders of the package; which one is there depends on how it was built."""
    if request.param == "in Python":
        monkeypatch.setattr(yaml_values, "_LOADER", yaml.SafeLoader)


def rejection_of(text: str) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        parse_yaml(text, "some.yaml")
    return caught.value


def test_values_are_read_as_yaml_reads_them() -> None:
    document = parse_yaml('a: 1\nb: [x, 2.5, true, null, "no"]\nc: {d: ""}\n', "some.yaml")
    assert document.value == {"a": 1, "b": ["x", 2.5, True, None, "no"], "c": {"d": ""}}


def test_every_value_has_the_line_of_its_key() -> None:
    lines = parse_yaml("a:\n  b: 1\n  c:\n    - x\n    - y\n", "some.yaml").lines
    assert [lines["a",], lines["a", "b"], lines["a", "c"], lines["a", "c", 1]] == [1, 2, 3, 5]


def test_a_place_without_a_line_is_reported_where_its_surroundings_stand() -> None:
    document = parse_yaml("a:\n  b: 1\n", "some.yaml")
    with pytest.raises(RequestRejected) as caught:
        document.reject(YamlFault.KEY_UNKNOWN, "is wrong", ("a", "b", "c", 3))
    assert str(caught.value) == "FILE_KEY_UNKNOWN: some.yaml:2: is wrong"


@pytest.mark.parametrize(
    ("text", "fault", "line"),
    [
        ("a: ]", YamlFault.NOT_YAML, 1),
        ("a: 1\n b: 2", YamlFault.NOT_YAML, 2),
        ("a: \x00", YamlFault.NOT_YAML, 0),
        ("a: 1\n---\nb: 2\n", YamlFault.NOT_YAML, 2),
        ("a: \ud800", YamlFault.UNREADABLE, 0),
        ("a: &x 1\nb: 2", YamlFault.HAS_ALIAS, 1),
        ("a: 1\nb: *x", YamlFault.HAS_ALIAS, 2),
        ("a: !!python/object:os.system x", YamlFault.HAS_TAG, 1),
        ("a: !mine {b: 1}", YamlFault.HAS_TAG, 1),
        ("a: !mine [b]", YamlFault.HAS_TAG, 1),
        ("a: !!binary aGk=", YamlFault.HAS_TAG, 1),
        ("a: 2024-01-01", YamlFault.HAS_TAG, 1),
        ("a: !!int many", YamlFault.VALUE_INVALID, 1),
        ("a: " + "9" * 5000, YamlFault.VALUE_INVALID, 1),
        ("a: 1\nno: 2", YamlFault.VALUE_INVALID, 2),
        ("a: 1\n<<: {b: 1}", YamlFault.VALUE_INVALID, 2),
        ("[a, b]: 1", YamlFault.VALUE_INVALID, 1),
        ("a: 1\nb: 2\na: 3", YamlFault.KEY_REPEATED, 3),
        ('"a": 1\na: 3', YamlFault.KEY_REPEATED, 2),
        ("[" * 9 + "]" * 9, YamlFault.TOO_DEEP, 1),
        ("x" * (YAML_BYTES_MAX + 1), YamlFault.TOO_LARGE, 0),
    ],
)
def test_whatever_is_not_plain_is_rejected_with_a_code_and_a_line(text: str, fault: YamlFault, line: int) -> None:
    rejected = rejection_of(text)
    assert (rejected.code, rejected.details["line"]) == (fault, line)


def test_a_file_may_be_as_deep_as_the_limit() -> None:
    assert parse_yaml("[" * YAML_DEPTH_MAX + "]" * YAML_DEPTH_MAX, "some.yaml").value


def test_a_shape_that_a_user_wrote_may_have_a_depth_of_its_own() -> None:
    deep = "[" * (YAML_DEPTH_MAX + 1) + "]" * (YAML_DEPTH_MAX + 1)
    assert parse_yaml(deep, "some.yaml", depth_max=YAML_DEPTH_MAX + 1).value
    with pytest.raises(RequestRejected, match="file_depth_max=9"):
        parse_yaml(f"[{deep}]", "some.yaml", depth_max=YAML_DEPTH_MAX + 1)


def test_an_empty_file_holds_nothing() -> None:
    assert parse_yaml("# nothing yet\n", "some.yaml").value is None


def test_a_bomb_is_refused_before_it_goes_off() -> None:
    laughs = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)
    )
    assert rejection_of(laughs).code == YamlFault.HAS_ALIAS
    assert rejection_of("[" * 400_000).code == YamlFault.TOO_DEEP


@pytest.mark.parametrize(
    ("data", "fault"),
    [(b"a: \xff", YamlFault.UNREADABLE), ("é".encode() * YAML_BYTES_MAX, YamlFault.TOO_LARGE)],
)
def test_a_file_of_wrong_bytes_or_too_many_is_rejected(tmp_path: Path, data: bytes, fault: YamlFault) -> None:
    path = tmp_path / "some.yaml"
    path.write_bytes(data)
    with pytest.raises(RequestRejected) as caught:
        read_yaml(path)
    assert caught.value.code == fault


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(path).value == {"a": 1}


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as caught:
        read_yaml(tmp_path)
    assert caught.value.code == YamlFault.UNREADABLE


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [1, 2.5, True, None, "x"]},
        {"lines": "a\nb\r\nc\x85d\u2028e", "words": ["off", "1", "", " ", "ü", "\x1b[0m", "\U0001f600"]},
        {"deep": [{"a": [[1], []]}, {}]},
    ],
)
def test_what_is_written_reads_back_as_the_same_value(value: object) -> None:
    assert parse_yaml(write_yaml(value), "again").value == value


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    twice = ["a"]
    assert write_yaml({"b": twice, "a": twice}) == "b: [a]\na: [a]\n"
