"""What may name the folder of a store."""

from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.home import HOME_INVALID, STORE_ENTERED, entered_twice, expect_place


@pytest.mark.parametrize("home", [None, ".", "here", Path("here"), "nats://host:1"])
def test_a_place_and_none_at_all_may_stand(home: Any) -> None:
    expect_place(home)


@pytest.mark.parametrize("home", ["", " ", "a\0b", "\ud800", Path(), 5, b"here"])
def test_what_was_left_empty_names_no_folder(home: Any) -> None:
    with pytest.raises(RequestRejected) as caught:
        expect_place(home)
    assert caught.value.code == HOME_INVALID


def test_a_door_is_entered_once() -> None:
    assert entered_twice().code == STORE_ENTERED
