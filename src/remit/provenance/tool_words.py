"""The words of tools: the stems that each is asked with, before a user has asked.

Rule 1: they are made of the declarations alone, so runs with the same tools share them.
Rule 2: a tool's own words are what it declares it is asked with, and the verb its name begins with, together with the
        thing in its name. A description is for the model and asks for nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from remit.core.limits.trust import Repeat
from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.vocabulary import FUNCTION_WORDS, PREPOSITIONS, SUPERLATIVES, name_words, stem, word_stems

_WORD = regex(r"[A-Za-z][A-Za-z'-]*")
# What parts the verb of a name from a thing that the order need not fall on: `add_to_cart`.
_BETWEEN = PREPOSITIONS - {"and", "or"}
# What introduces a quotation as something to be said, whatever the tools call it.
_SAYING = frozenset({"saying"})


class ToolWords:
    """The words of a list of tools."""

    def __init__(self, tools: Mapping[str, Declaration]) -> None:
        """Find the words of each tool."""
        self.asked = {name: asked_stems(declaration) for name, declaration in tools.items()}
        # What is declared as several words asks as a whole: "out of office".
        self.phrases = {
            name: tuple(tuple(phrase.lower().split()) for phrase in one.asks if " " in phrase)
            for name, one in tools.items()
            if one.effect.is_mutating
        }
        self.actions = {name: (stems | {_verb(name)}) - FUNCTION_WORDS - {""} for name, stems in self.asked.items()}
        self.known = frozenset(action for stems in self.actions.values() for action in stems)
        self.known |= {stem(phrase[0]) for phrases in self.phrases.values() for phrase in phrases}
        # Of the tools that change something: the things in their names.
        self.objects = {
            name: _stems(name_words(name)[1:]) - FUNCTION_WORDS for name, one in tools.items() if one.effect.is_mutating
        }
        # What may be repeated at will prepares what others do, where it declares their words: a folder for a download.
        self.preparing = frozenset(name for name, one in tools.items() if one.repeat is Repeat.FREE)
        # What tools are called by names no thing of the user's.
        self.called = SUPERLATIVES.union(*(word_stems(name) for name in tools))
        self.introducing = _SAYING.union(*({name.lower() for name in tool.payload_args} for tool in tools.values()))
        # What a look-up reads: things in the name of its tool, and the words that it is asked with.
        self.about = {
            name: (_stems([*name_words(name)[1:], *_WORD.findall(" ".join(tool.asks))]) - FUNCTION_WORDS)
            for name, tool in tools.items()
        }
        # The words that ask for one tool and no other.
        shared = Counter(action for stems in self.actions.values() for action in stems)
        self.alone = {name: frozenset(one for one in stems if shared[one] == 1) for name, stems in self.actions.items()}
        self._sharing: dict[str, list[str]] = {}
        for name in self.objects:
            for action in self.actions[name]:
                self._sharing.setdefault(action, []).append(name)

    def is_meant(self, name: str, action: str, heads: frozenset[str], said: frozenset[str]) -> bool:
        """Whether an order means a tool: by a word that it declares, or by its verb and the thing in its name.

        `heads` are the things that the order falls on, `said` all that it speaks of. Where the order names no thing, the
        verb is enough: "delete a.txt", "delete it".
        """
        objects, own = self.objects, self.objects[name] - {action}
        if action not in self.asked[name]:
            if not own or not heads:
                return True
            # What is added to a cart need not be a cart.
            return not own.isdisjoint(said if _BETWEEN.intersection(name_words(name)) else heads)
        if name in self.preparing:
            return True
        # Of the tools that share a declared word, those whose thing is said with it; when no thing is said, all.
        said -= {action}
        others = [other for other in self._sharing[action] if other != name]
        return not own or not own.isdisjoint(said) or all(objects[other].isdisjoint(said) for other in others)


def asked_stems(declaration: Declaration) -> frozenset[str]:
    """The stems of the single words that a tool declares it is asked with."""
    return _stems(word for word in declaration.asks if " " not in word)


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in words)


def _verb(name: str) -> str:
    return stem((name_words(name) or ("",))[0])
