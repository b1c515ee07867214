"""The words of tools: the stems that each is asked with, before a user has asked.

Rule 1: they are made of the declarations alone, so runs with the same tools share them.
Rule 2: a tool's own words are what it declares it is asked with, the verb its name begins with, and the verbs its
        description begins its sentences with. Its wide words are all words of its name and description.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.vocabulary import FUNCTION_WORDS, SUPERLATIVES, name_stems, name_words, stem, word_stems

# A description that begins with "This tool" or "Use this to" names its verb within a few words.
_VERB_WORDS_MAX = 3
_SENTENCE = regex(r"[.!?\n]+\s*")
_WORD = regex(r"[A-Za-z][A-Za-z'-]*")
# What introduces a quotation as something to be said, whatever the tools call it.
_SAYING = frozenset({"saying"})


class ToolWords:
    """The words of a list of tools."""

    def __init__(self, tools: Mapping[str, Declaration]) -> None:
        """Find the words of each tool."""
        self.actions = {name: action_stems(declaration) for name, declaration in tools.items()}
        self.known = frozenset(action for stems in self.actions.values() for action in stems)
        # Of the tools that change something: all their words, and the things in their names.
        self.wide = {name: _wide_stems(one) for name, one in tools.items() if one.effect.is_mutating}
        self.objects = {name: _stems(name_words(name)[1:]) - FUNCTION_WORDS for name in self.wide}
        # A word that is a thing in the name of some tool asks only where the sentence puts it as an order.
        self.things = frozenset[str]().union(*(_stems(name_words(name)[1:]) for name in tools))
        # What tools are called by names no thing of the user's.
        self.called = SUPERLATIVES.union(*(word_stems(name) for name in tools))
        self.introducing = _SAYING.union(*({name.lower() for name in tool.payload_args} for tool in tools.values()))
        # What a look-up reads: things in the name of its tool, and the words that it is asked with.
        self.about = {
            name: (_stems(name_words(name)[1:]) - FUNCTION_WORDS) | asked_stems(tool) for name, tool in tools.items()
        }
        # The words that ask for one tool and no other.
        shared = Counter(action for stems in self.actions.values() for action in stems)
        self.alone = {name: frozenset(one for one in stems if shared[one] == 1) for name, stems in self.actions.items()}
        self._sharing: dict[str, list[str]] = {}
        for name in self.objects:
            for action in self.actions[name]:
                self._sharing.setdefault(action, []).append(name)

    def is_meant(self, name: str, action: str, said: frozenset[str]) -> bool:
        """Of the tools that share a verb, those whose thing is said with it; when no thing is said, all.

        A tool in whose name the word is a thing steps back behind one whose name begins with it: `post_x` before
        `read_post`.
        """
        objects, said = self.objects, said - {action}
        own = objects[name] - {action}
        if not own.isdisjoint(said):
            return True
        others = [other for other in self._sharing.get(action, ()) if other != name]
        if any(not objects[other].isdisjoint(said) for other in others):
            return not own
        is_thing = any(stem(word) == action for word in name_words(name)[1:])
        return not is_thing or not any(_verb(other) == action for other in others)


def action_stems(declaration: Declaration) -> frozenset[str]:
    """The stems with which a tool may be asked for anywhere in a sentence."""
    stems = asked_stems(declaration) | _stems(name_words(declaration.name)[:1])
    for sentence in _SENTENCE.split(declaration.description):
        words = [word.lower() for word in _WORD.findall(sentence)[: 3 * _VERB_WORDS_MAX]]
        if not words:
            continue
        verbs = [word for word in words if word not in FUNCTION_WORDS][:_VERB_WORDS_MAX]
        stems |= _stems(verbs if words[0] in FUNCTION_WORDS or words[0] == "use" else words[:1])
    return stems - FUNCTION_WORDS


def asked_stems(declaration: Declaration) -> frozenset[str]:
    """The stems of the words that a tool declares it is asked with."""
    return _stems(word for phrase in declaration.asks for word in _WORD.findall(phrase))


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in words)


def _wide_stems(declaration: Declaration) -> frozenset[str]:
    said = _stems(word for word in _WORD.findall(declaration.description) if word.lower() not in FUNCTION_WORDS)
    return said | name_stems(declaration.name) | action_stems(declaration)


def _verb(name: str) -> str:
    return stem((name_words(name) or ("",))[0])
