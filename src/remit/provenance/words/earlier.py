"""Earlier exchanges: which messages of a conversation may still supply values to the exchange that goes on now.

Rule 1: an earlier message asks for nothing. It may supply values where this exchange names something that the message
        names, too; where it names nothing itself, the last message that names anything may. A user who names a new person
        has left the earlier ones behind.
Rule 2: a name is what is written as one, and a plain word to which an order turns: "dm kofi", "to kofi".
Rule 3: what is too much to be kept is forgotten from the oldest message on, so that there is room for the last one.
"""

from collections.abc import Iterator

from remit.core.regex import regex
from remit.provenance.words.asked_effects import Plan
from remit.provenance.words.moments import MONTHS, WEEKDAYS
from remit.provenance.words.tool_words import ToolWords
from remit.provenance.words.user_words import Words, words_of_user
from remit.provenance.words.vocabulary import CURRENCIES, PAIRS, is_plain_word, stem

# Of earlier messages this much is kept: half of what a prompt may have.
EARLIER_CHARS_MAX = 100_000
# "20€" and "9:30" are written like names, and name nothing.
_COMMON = CURRENCIES | MONTHS.keys() | frozenset(WEEKDAYS)
_FIGURE = regex(r"\W*\d[\d.,:]*[^\w\s]*[A-Za-z]{0,3}\W*")


def forgotten(earlier: list[str]) -> int:
    """How many of the earlier messages, from the oldest on, are too much to be kept."""
    chars = 0
    for number in reversed(range(len(earlier))):
        chars += len(earlier[number])
        if chars > EARLIER_CHARS_MAX:
            return number + 1
    return 0


def supplying(earlier: list[str], asking: Words, plan: Plan, tools: ToolWords) -> frozenset[int]:
    """The earlier messages, by number, that may supply values to what is asked now."""
    named = [*_names(asking), *_addressed(asking, plan, tools)]
    if named:
        return frozenset([number for number, text in enumerate(earlier) if _names_one(words_of_user([text]), named)])
    for number in reversed(range(len(earlier))):
        said = words_of_user([earlier[number]])
        if _names(said) or said.numbers:
            return frozenset({number})
    return frozenset()


def _names(words: Words) -> list[str]:
    """The names of the words that tell one thing from another: no figures, currencies or days."""
    return [name for name in words.names if not _FIGURE.fullmatch(name) and name.lower() not in _COMMON]


def _names_one(said: Words, names: list[str]) -> bool:
    return any(said.span_of(name) is not None for name in names)


def _addressed(asking: Words, plan: Plan, tools: ToolWords) -> Iterator[str]:
    """The plain words to which an order turns, and that are no words of the tools."""
    orders = {place for asked in plan.asked.values() for place in asked.places}
    known = tools.known.union(*tools.objects.values())
    tokens = asking.tokens
    for place in range(1, len(tokens)):
        word, before = tokens[place].text, tokens[place - 1].text.lower()
        behind = place - 2 if before in PAIRS else place - 1
        is_turned_to = behind in orders or before == "to"
        is_own = stem(word) not in known and word not in tools.introducing
        if is_turned_to and is_plain_word(word) and is_own and not tokens[place].opens:
            yield word
