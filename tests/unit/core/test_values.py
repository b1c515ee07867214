"""What the steps of a plan hand on: kinds, and which of them can be made of which."""

import pytest

from remit.core.work.values import CONVERTIBLE, Output, ValueKind, is_convertible

REACHES = [ValueKind]


@pytest.mark.parametrize("kind", ValueKind)
def test_every_kind_serves_a_step_that_needs_just_that(kind: ValueKind) -> None:
    assert is_convertible(kind, kind)


@pytest.mark.parametrize("kind", ValueKind)
def test_a_step_that_names_no_need_takes_whatever_comes(kind: ValueKind) -> None:
    assert is_convertible(kind, "")


@pytest.mark.parametrize("kind", ValueKind)
def test_a_model_can_be_shown_every_kind(kind: ValueKind) -> None:
    assert is_convertible(kind, ValueKind.MESSAGES)


@pytest.mark.parametrize(
    ("needed", "found"),
    [
        (ValueKind.TEXT, {"text", "messages", "object", "json", "result"}),
        (ValueKind.CANDIDATES, {"candidates", "messages"}),
        (ValueKind.OBJECT, {"object"}),
        (ValueKind.JSON, {"object", "json"}),
        (ValueKind.RESULT, {"result"}),
    ],
)
def test_the_table_of_conversions_is_closed(needed: ValueKind, found: set[str]) -> None:
    assert {kind.value for kind in ValueKind if is_convertible(kind, needed)} == found


def test_evidence_is_no_statement() -> None:
    assert not is_convertible(ValueKind.CANDIDATES, ValueKind.TEXT)


def test_a_text_never_becomes_arguments_however_it_looks() -> None:
    assert not is_convertible(ValueKind.TEXT, ValueKind.OBJECT)


def test_a_kind_that_nobody_knows_serves_nobody() -> None:
    assert not any(is_convertible("riddle", kind) for kind in ValueKind)


def test_every_kind_has_its_row() -> None:
    assert set(CONVERTIBLE) == set(ValueKind)


def test_an_output_knows_its_kind_its_text_and_the_command_it_came_of() -> None:
    assert Output(ValueKind.TEXT, "words", "3.1") == Output(ValueKind.TEXT, "words", command_id="3.1")
    assert Output.__struct_fields__ == ("kind", "text", "command_id")
