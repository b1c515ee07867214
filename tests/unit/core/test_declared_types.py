"""A record against the types that it declares: itself, as it is meant, or refused with its place."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest

from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.record import Record

Name = Annotated[str, msgspec.Meta(min_length=1)]


class Colour(StrEnum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Leaf(Record):
    """A part."""

    name: Name
    colour: Colour = Colour.RED


class Tree(Record):
    """A whole."""

    leaves: tuple[Leaf, ...] = ()
    size: int | None = None
    note: Any = None
    table: dict[str, int] = {}
    pairs: tuple[tuple[str, int], ...] = ()
    share: float = 0.5


class Sulking:
    """Something that does not show itself."""

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        raise ValueError


def refused(tree: object) -> str:
    with pytest.raises(RequestRejected) as error:
        as_declared(tree, Tree, "tree", "TREE_INVALID")
    assert error.value.code == "TREE_INVALID"
    return error.value.message


def read(tree: object) -> Tree:
    return as_declared(tree, Tree, "tree", "TREE_INVALID")


def test_what_fits_is_the_very_same_record() -> None:
    for tree in (
        Tree(),
        Tree(share=1),
        Tree(note="x\ud800"),
        Tree((Leaf("a"),), 3, Leaf("anything"), {"a": 1}, (("a", 1),)),
    ):
        assert read(tree) is tree


def test_what_can_only_mean_one_thing_is_taken_as_meant() -> None:
    meant = Tree((Leaf("a", Colour.BLUE),), note="n", pairs=(("a", 1),))
    assert read({"leaves": [{"name": "a", "colour": "blue"}], "note": "n", "pairs": [["a", 1]]}) == meant
    assert read(Tree([Leaf("a", "blue")], note="n", pairs=[["a", 1]])) == meant  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (7, "tree=7 cannot be used; it takes Tree"),
        (Tree(("a",)), "tree.leaves[0]='a' cannot be used; it takes Leaf"),  # type: ignore[arg-type]
        (Tree(size="a"), "tree.size='a' cannot be used; it takes int or None"),  # type: ignore[arg-type]
        (Tree((Leaf("a", "green"),)), "tree.leaves[0].colour='green' cannot be used; it takes one of red, blue"),  # type: ignore[arg-type]
        (Tree((Leaf(""),)), "tree.leaves[0].name='' cannot be used; it takes str"),
        (Tree(7), "tree.leaves=7 cannot be used; it takes tuple of Leaf"),  # type: ignore[arg-type]
        (Tree(table={"a": "b"}), "tree.table[...]='b' cannot be used; it takes int"),  # type: ignore[dict-item]
        (Tree(pairs=(("a", "b"),)), "tree.pairs[0][1]='b' cannot be used; it takes int"),  # type: ignore[arg-type]
        (Tree(note=object), "tree.note=<class 'object'> cannot be used; it takes Any"),
        (Tree(note={"a": [Leaf, 1]}), f"tree.note['a'][0]={Leaf!r} cannot be used; it takes Any"),
        (Tree((Leaf, 1)), f"tree.leaves[0]={Leaf!r} cannot be used; it takes Leaf"),  # type: ignore[arg-type]
        (Tree(note=Sulking()), "tree.note=Sulking cannot be used; it takes Any"),
        (Tree(size=2**70), f"tree.size={2**70} cannot be used; it takes int or None"),
        ({"leaves": 7}, "tree.leaves=7 cannot be used; it takes tuple of Leaf"),
        ({"leaves": [{}]}, "tree.leaves[0]={} cannot be used; it takes Leaf"),
    ],
)
def test_a_refusal_names_the_place_what_stands_there_and_what_may(tree: object, said: str) -> None:
    assert refused(tree) == said


def test_what_has_no_end_is_refused() -> None:
    deep: list[Any] = []
    deep.append(deep)
    assert refused(Tree(note=deep)).startswith("tree.note=")
