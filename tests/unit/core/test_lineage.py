"""Ids of runs, and the lineage of a run."""

from typing import Any

import pytest

from remit.backend.clock import new_run_id
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.record import replace
from remit.core.run.lineage import ID_CHARS_MAX, ID_LETTERS, derived_id, is_safe_id, letters, lifted
from remit.core.run.manifest import MANIFEST_INVALID, Origin, lineage_of, lineage_root, make_manifest
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import MODEL
from tests.unit.kernel.builders import QUESTION, manifest_of


def test_an_id_is_derived_the_same_for_ever() -> None:
    """What is written down names it; another answer would lose every child of an open run."""
    assert derived_id("run", "1.2") == "3dez3zgjq8gcrsx2"


def test_a_derived_id_is_as_long_as_a_new_one() -> None:
    assert len(derived_id("run", "1.2")) == len(new_run_id()) == ID_LETTERS


def test_letters_are_those_of_the_lowest_bits() -> None:
    assert [letters(number, 2) for number in (0, 31, 32, 1023, 1024)] == ["00", "0z", "10", "zz", "00"]


@pytest.mark.parametrize("run_id", ["run", "1m7j9tm8k9d5dzyb", "a-b_C", "-", "x" * ID_CHARS_MAX])
def test_a_word_is_a_safe_id(run_id: str) -> None:
    assert is_safe_id(run_id)


_SIGNS = [chr(code) for code in range(128) if not (chr(code).isalnum() or chr(code) in "-_")]


@pytest.mark.parametrize(
    "run_id", [*(f"a{sign}b" for sign in _SIGNS), "", "a\n", "ä", "٣", "..", "x" * (ID_CHARS_MAX + 1)]
)
def test_a_run_may_not_begin_under_an_id_that_is_no_word(run_id: str) -> None:
    assert not is_safe_id(run_id)
    _is_refused(run_id)


@pytest.mark.parametrize("run_id", [5, None, b"run", ["run"]], ids=str)
def test_an_id_of_another_type_is_refused_like_any_other(run_id: Any) -> None:
    _is_refused(run_id)


def _is_refused(run_id: Any) -> None:
    with pytest.raises(
        RequestRejected, match="is no id; take 1 to 200 letters, digits, dashes and underscores"
    ) as refused:
        make_manifest(run_id=run_id, request=QUESTION, boundary=Boundary(), graph=chat_graph(), models=(MODEL,))
    assert refused.value.code == MANIFEST_INVALID
    assert refused.value.message.startswith(f"run_id={repr(run_id)[:40]}")


@pytest.mark.parametrize(
    ("run_id", "lineage"),
    [
        ("run", ()),
        ("run.1.2", ("run",)),
        ("run.1.2.10.3", ("run", "run.1.2")),
        ("run.1", ()),
        ("run.one.two", ()),
    ],
)
def test_the_lineage_of_a_run_that_was_named_after_it_is_lifted(run_id: str, lineage: tuple[str, ...]) -> None:
    assert lifted(run_id) == lineage


def test_a_pinned_lineage_is_taken_as_it_is() -> None:
    child = replace(manifest_of(), parent=Origin("mother", "1.2"), lineage=("first", "mother"))
    assert (lineage_of(child), lineage_root(child)) == (("first", "mother"), "first")


def test_a_run_that_nobody_ordered_has_no_lineage_whatever_its_id() -> None:
    root = replace(manifest_of(), run_id="a.1.2")
    assert (lineage_of(root), lineage_root(root)) == ((), "a.1.2")


def test_an_old_child_and_an_old_retry_came_from_the_run_that_they_name() -> None:
    old = replace(manifest_of(), run_id="a.1.2.3.4")
    child = replace(old, parent=Origin("a.1.2", "3.4"))
    retried = replace(old, forked_from=Origin("a.1.2", "3.4", 5))
    assert lineage_of(child) == lineage_of(retried) == ("a", "a.1.2")
    assert lineage_root(child) == "a"


def test_a_fork_that_no_retry_ordered_begins_a_family() -> None:
    fork = replace(manifest_of(), run_id="other", forked_from=Origin("a.1.2", "", 5))
    assert (lineage_of(fork), lineage_root(fork)) == ((), "other")
