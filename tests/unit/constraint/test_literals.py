"""Literals: one value for every way in which true, false and null are written, and none for words that have none."""

import pytest

from remit.constraint.reading.literals import is_literal, read_beginning, read_literal, refuse_no_value
from remit.constraint.reading.repair_log import Reason, Repair, RepairCode, RepairLog, Unreadable


@pytest.mark.parametrize(("word", "value"), [("true", True), ("false", False), ("null", None)])
def test_a_literal_of_json_needs_no_repair(word: str, value: bool | None) -> None:
    log = RepairLog()
    assert is_literal(word)
    assert read_literal(word, 3, log) is value
    assert log.repairs == ()


def test_a_literal_of_another_language_is_recorded_as_the_one_of_json() -> None:
    log = RepairLog()
    assert read_literal("None", 3, log) is None
    assert log.repairs == (Repair(RepairCode.LITERAL_REPLACED, 3, "", "None", "null"),)
    assert not is_literal("none")


def test_the_beginning_of_a_literal_is_enough_when_it_tells_it_from_the_others() -> None:
    log = RepairLog()
    assert [read_beginning(word, 0, log) for word in ("tr", "fals", "nu")] == [True, False, None]
    assert [repair.became for repair in log.repairs] == ["true", "false", "null"]
    for word in ("t", "no"):
        with pytest.raises(Unreadable) as raised:
            read_beginning(word, 7, log)
        assert (raised.value.reason, raised.value.at) == (Reason.CUT_OFF, 7)


def test_a_word_that_is_no_value_is_refused_and_others_are_not() -> None:
    with pytest.raises(Unreadable) as raised:
        refuse_no_value("undefined", 5)
    assert (raised.value.reason, raised.value.at) == (Reason.NO_NUMBER, 5)
    refuse_no_value("defined", 5)
