"""Queries: a user's words as an expression of FTS5 that holds nothing but words.

Rule 1: words are data. Each is quoted, so no operator, column, bracket or quotation mark of a user ever reaches the engine
        as one.
Rule 2: any of the words may be found; how many were, and how rare they are, decides the order.
Rule 3: a query is bounded: of a long text, its first telling words are looked for.
"""

from itertools import groupby
from unicodedata import category

# A page: what somebody asks is shorter, and what somebody pastes says what it is about at its beginning.
QUERY_CHARS_MAX = 4_000
# Each word is a walk through the index.
QUERY_WORDS_MAX = 32
# Longer words are addresses and hashes; they are looked for by their beginning nowhere, and whole never found.
WORD_CHARS_MAX = 64

# Letters, numbers and the marks on them; everything else stands between words, as for the tokenizer of the index.
_IN_WORDS = frozenset("LNM")


# Words of English that every question has and no answer is found by. They are looked for when there are no others.
_EMPTY_WORDS_TEXT = """
    a about an and any are as at be by can could did do does for from had has have how i if in is it its me my of on or our
    please shall should so tell that the their them then there these they this those to was we were what when where which
    who whom why will with would you your
"""
_EMPTY_WORDS = frozenset(_EMPTY_WORDS_TEXT.split())


def words_of(text: str) -> tuple[str, ...]:
    """The different words of a text that say something, in its order."""
    runs = groupby(text[:QUERY_CHARS_MAX], key=lambda letter: category(letter)[0] in _IN_WORDS)
    words = ("".join(letters).casefold() for is_word, letters in runs if is_word)
    different = dict.fromkeys(word for word in words if len(word) <= WORD_CHARS_MAX)
    telling = [word for word in different if word not in _EMPTY_WORDS]
    return tuple(telling or different)[:QUERY_WORDS_MAX]


def expression_of(words: tuple[str, ...]) -> str:
    """The expression that finds any of the words."""
    return " OR ".join(quoted(word) for word in words)


def quoted(word: str) -> str:
    """A word as a string of FTS5."""
    return '"' + word.replace('"', '""') + '"'
