"""Ids hold nothing that anybody would take apart, and are derived without chance."""

from hypothesis import given
from hypothesis import strategies as st

from remit.backend.clock import new_run_id
from remit.core.run.lineage import derived_id, is_safe_id, lifted

SEPARATORS = set(".*> /\\\t\r\n")
command_ids = st.tuples(st.integers(0, 10**9), st.integers(0, 10**4)).map(lambda place: f"{place[0]}.{place[1]}")
# Whatever stands in an old journal, and what is derived from it again and again.
run_ids = st.one_of(st.text(min_size=1), st.text("ab.19", min_size=1), st.builds(derived_id, st.text(), command_ids))


@given(run_ids, command_ids)
def test_every_derived_id_is_safe(run_id: str, command_id: str) -> None:
    derived = derived_id(run_id, command_id)
    assert is_safe_id(derived)
    assert SEPARATORS.isdisjoint(derived)
    assert lifted(derived) == ()


def test_every_new_id_is_safe() -> None:
    assert all(is_safe_id(new_run_id()) for _ in range(100))


@given(run_ids, command_ids, run_ids, command_ids)
def test_ids_are_equal_for_equal_orders_and_different_for_others(
    run_id: str, command_id: str, other_run_id: str, other_command_id: str
) -> None:
    is_same = (run_id, command_id) == (other_run_id, other_command_id)
    assert (derived_id(run_id, command_id) == derived_id(other_run_id, other_command_id)) is is_same


@given(st.text(), st.text(min_size=1))
def test_where_an_id_ends_and_a_command_begins_makes_a_difference(text: str, more: str) -> None:
    assert derived_id(text + more, "1.2") != derived_id(text, more + "1.2")


@given(st.lists(command_ids, max_size=6))
def test_the_lineage_of_an_old_name_is_every_run_on_the_way(orders: list[str]) -> None:
    names = ["run"]
    for command_id in orders:
        names.append(f"{names[-1]}.{command_id}")
    assert lifted(names[-1]) == tuple(names[:-1])
