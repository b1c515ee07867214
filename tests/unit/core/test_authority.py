"""The options of a boundary: safe by default, read exactly, refused by name."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.authority import (
    AUTHORITY_INVALID,
    Authority,
    Beyond,
    Inference,
    Maker,
    OptionReach,
    PlanSource,
    Stakes,
    authority_json,
    authority_of,
    reaches,
)


def test_every_default_is_the_safe_one() -> None:
    assert authority_of(None) == authority_of({}) == Authority()
    assert authority_json(Authority()) == {
        "infer_fields": "off",
        "closed_set": "off",
        "named_source": "off",
        "derive": "on",
        "tripwire": True,
        "plan": "words",
    }


def test_true_and_false_stand_for_the_usual_ends() -> None:
    wide = authority_of(
        {"infer_fields": True, "closed_set": True, "named_source": True, "derive": False, "plan": False}
    )
    assert (wide.infer_fields, wide.closed_set, wide.named_source) == (
        Inference.IDENTITY,
        OptionReach.ON,
        OptionReach.ON,
    )
    assert (wide.derive, wide.plan) == (OptionReach.OFF, PlanSource.OFF)
    assert authority_of({"infer_fields": False}).infer_fields is Inference.OFF


def test_options_survive_being_written_and_read() -> None:
    wide = Authority(
        Inference.TYPED, OptionReach.ALL, OptionReach.ON, OptionReach.OFF, tripwire=False, plan=PlanSource.MODEL
    )
    assert authority_of(authority_json(wide)) == wide
    ordered = Authority(orders=Maker.MODEL, beyond=Beyond.REFUSE)
    assert authority_of(authority_json(ordered)) == ordered


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ([], "authority"),
        ({"trip": 1}, "authority"),
        ({"infer_fields": "all"}, "infer_fields"),
        ({"closed_set": 1}, "closed_set"),
        ({"named_source": "some"}, "named_source"),
        ({"derive": None}, "derive"),
        ({"tripwire": "on"}, "tripwire"),
        ({"plan": True}, "plan"),
        ({"orders": True}, "orders"),
        ({"beyond": "allow"}, "beyond"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_by_name(options: Any, key: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        authority_of(options)
    assert (caught.value.code, caught.value.details["key"]) == (AUTHORITY_INVALID, key)


def test_on_leaves_out_money_rights_deletion_and_what_nobody_declared() -> None:
    assert [stakes for stakes in Stakes if reaches(OptionReach.ON, stakes)] == [Stakes.NONE]
    assert [stakes for stakes in Stakes if reaches(OptionReach.ALL, stakes)] == list(Stakes)
    assert not any(reaches(OptionReach.OFF, stakes) for stakes in Stakes)


def test_a_plan_comes_from_the_words_unless_the_user_says_otherwise() -> None:
    assert Authority().plan is PlanSource.WORDS
    assert authority_of({"plan": "words"}).plan is PlanSource.WORDS
    assert authority_of({"plan": False}).plan is PlanSource.OFF


def test_orders_replace_the_plan_and_boundaries_with_a_plan_still_load() -> None:
    assert authority_of({"orders": "off"}).plan is PlanSource.OFF
    assert authority_of({"plan": "off"}).orders is Maker.WORDS
    said = {"orders": "model", "confirm": "before", "beyond": "refuse", "stands_for": "four_eyes"}
    assert authority_json(authority_of(said)).items() >= said.items()
    assert authority_of(authority_json(authority_of(said))) == authority_of(said)
