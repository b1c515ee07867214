"""Sought: what the finder of a value is told of the schema."""

from collections.abc import Collection
from typing import NamedTuple


class Sought(NamedTuple):
    """What a schema wants.

    `kinds` are the types that it admits at its root, none meaning any; `words` the only texts, if they are known; `names`
    are nouns by which the value may be called; `choices` are plain forms of the words that it lists anywhere.
    """

    kinds: Collection[str] = ()
    words: Collection[str] = ()
    names: Collection[str] = ()
    choices: Collection[str] = ()
