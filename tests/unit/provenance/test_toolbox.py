"""The toolbox: made once for the same tools, and never by another caller's change."""

from copy import deepcopy
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.provenance.gate import start
from remit.provenance.toolbox import TOOLBOX_KEPT_BYTES_MAX, toolbox_of
from tests.unit.provenance.office import TOOLS, declared, parameters


def test_lists_of_the_same_content_share_their_toolbox() -> None:
    assert toolbox_of(deepcopy(TOOLS)) is toolbox_of(deepcopy(TOOLS))


@pytest.mark.parametrize(
    "other",
    [
        [*TOOLS[1:], TOOLS[0]],
        [{**TOOLS[0], "description": "Sends."}, *TOOLS[1:]],
        [dict(reversed(TOOLS[0].items())), *TOOLS[1:]],
    ],
    ids=["order", "words", "order of keys"],
)
def test_lists_that_differ_in_anything_do_not(other: list[Any]) -> None:
    assert toolbox_of(other) is not toolbox_of(TOOLS)


def test_a_list_that_is_changed_afterwards_changes_nothing_for_others() -> None:
    tools = deepcopy(TOOLS)
    first = start("Mail bob@corp.example.", tools)
    tools[0]["parameters"]["properties"].clear()
    again = start("Mail bob@corp.example.", TOOLS)
    call = {"recipients": ["bob@corp.example"], "subject": "", "body": ""}
    assert first.verdict_on("a", "send_mail", call).is_allowed
    assert again.verdict_on("a", "send_mail", call).is_allowed
    assert again.rules == first.rules


def test_a_list_that_json_would_write_like_another_is_read_as_it_is() -> None:
    tool = declared("note", "Notes.", parameters(tags={"type": "array", "default": []}), effect="write")
    plain, paired = [tool], [deepcopy(tool)]
    paired[0]["parameters"]["properties"]["tags"]["default"] = ()
    assert toolbox_of(paired) is not toolbox_of(plain)
    for tools, bound_by in ((plain, "default"), (paired, "")):
        (argument,) = start("Note it.", tools).verdict_on("a", "note", {"tags": []}).args
        assert argument.bound_by == bound_by


def test_a_long_list_is_not_kept() -> None:
    tools = [declared("note", "x" * TOOLBOX_KEPT_BYTES_MAX, parameters())]
    assert toolbox_of(tools) is not toolbox_of(tools)


def test_what_no_json_can_hold_is_refused_for_what_it_is() -> None:
    with pytest.raises(NotCanonical):
        toolbox_of([declared("note", "Notes.", parameters(tags={"default": float("nan")}))])
    with pytest.raises(NotCanonical):
        toolbox_of([declared("note", "Notes.", parameters(tags={"default": {1}}))])
    with pytest.raises(RequestRejected, match="note"):
        toolbox_of([declared("note", "Notes.", parameters()), declared("note", "Notes.", parameters())])
