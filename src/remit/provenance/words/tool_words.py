"""The words of tools: the stems that each is asked with, before a user has asked.

Rule 1: they are made of the declarations alone, so runs with the same tools share them.
Rule 2: a tool's own words are what it declares it is asked with, and the verb its name begins with, together with the
        thing in its name. A description is for the model and asks for nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Repeat
from remit.core.record import JsonObject, Record
from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import NUMBERS, UNSAYING
from remit.provenance.words.vocabulary import (
    FUNCTION_WORDS,
    PREPOSITIONS,
    STATES,
    SUPERLATIVES,
    name_stems,
    name_words,
    stem,
    word_stems,
)

_WORD = regex(r"[A-Za-z][A-Za-z'-]*")
# What parts the verb of a name from a thing that the order need not fall on: `add_to_cart`.
_BETWEEN = PREPOSITIONS - {"and", "or"}
# What introduces a quotation as something to be said, whatever the tools call it.
_SAYING = frozenset({"saying"})
# Deeper objects than people declare are one argument.
_DEPTH_MAX = 4
_FOLDERS = frozenset({"folder", "directory", "dir"})
_PATHS = frozenset({"path", "file", "folder", "filename"})
# What a path leads to.
_PLACES = frozenset(map(stem, ("folder", "directory", "file", "document", "path")))


class Lexicon(Record):
    """What the clauses that order one tool may be made of."""

    # The stems of nouns, and of those that are the tool's own.
    nouns: frozenset[str]
    own: frozenset[str]
    # The stems of what it is called, and the names of its arguments as they are spelled.
    called: frozenset[str]
    # The stems of the verbs that it is asked with.
    verbs: frozenset[str]
    names: frozenset[str]
    # The stems of choices and of switches.
    chosen: frozenset[str]
    # What stands behind the first word of what the tool is asked with: "up" of "set up".
    rests: tuple[tuple[str, ...], ...] = ()
    is_telling: bool = False
    # Whether it declares that nothing is at stake.
    is_mild: bool = False
    # Whether it deletes: that happens once.
    is_final: bool = False
    # Whether one of its arguments is a number.
    takes_numbers: bool = False
    # What its texts are called, and the arguments that take a choice.
    texts: frozenset[str] = frozenset()
    choosing: frozenset[str] = frozenset()


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
        # The nouns of all tools: the things in their names, what their arguments are called, and the kinds of these.
        self.things = (
            frozenset(
                stem(word)
                for name, one in tools.items()
                for word in (*name_words(name)[1:], *_nouns(one))
                if len(word) > 1
            )
            - FUNCTION_WORDS
            - UNSAYING
        )
        # How many values each tool cannot do without.
        self.needed = {name: len(_required(one) - set(one.payload_args)) for name, one in tools.items()}
        self.actions = {name: (stems | {_verb(name)}) - FUNCTION_WORDS - {""} for name, stems in self.asked.items()}
        self.known = frozenset(action for stems in self.actions.values() for action in stems)
        self.known |= {stem(phrase[0]) for phrases in self.phrases.values() for phrase in phrases}
        self.bases = _bases(tools)
        self.effects = frozenset(
            action for name, stems in self.actions.items() if tools[name].effect.is_mutating for action in stems
        ) | {stem(phrase[0]) for phrases in self.phrases.values() for phrase in phrases}
        # Of the tools that change something: the things in their names.
        self.objects = {
            name: _stems(name_words(name)[1:]) - FUNCTION_WORDS for name, one in tools.items() if one.effect.is_mutating
        }
        # What may be repeated at will prepares what others do, where it declares their words: a folder for a download.
        self.preparing = frozenset(name for name, one in tools.items() if one.repeat is Repeat.FREE)
        # So does what makes a folder, by whatever it is called.
        self.making = frozenset(name for name, one in tools.items() if one.effect.is_mutating and _makes_folder(name))
        self.preparing |= self.making
        self.takes_path = frozenset(
            name for name, one in tools.items() if any(kind == "path" for _, kind in one.control_args)
        )
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

        self.lexicons = self._lexicons(tools)

    def _lexicons(self, tools: Mapping[str, Declaration]) -> dict[str, Lexicon]:
        """What the clauses that order each tool may be made of."""
        told = frozenset(
            stem(word) for one in tools.values() for field in one.result for word in name_words(field.name)
        )
        return {name: _lexicon(one, self.things | told) for name, one in tools.items() if one.effect.is_mutating}

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


def _nouns(tool: Declaration) -> Iterator[str]:
    """What the arguments of a tool are called, by their last word, and the spaces of their kinds."""
    properties = tool.parameters.get("properties")
    for argument in properties if isinstance(properties, dict) else ():
        yield from [word for word in name_words(argument) if stem(word) not in UNSAYING][-1:]
    for _, kind in tool.control_args:
        yield from name_words(kind)


def _makes_folder(name: str) -> bool:
    said = name_words(name)
    return said == ("mkdir",) or (len(said) == 2 and said[0] in ("make", "create") and said[1] in _FOLDERS)


def _lexicon(tool: Declaration, things: frozenset[str]) -> Lexicon:
    """The nouns, choices and switches of a tool; `things` are the nouns of all tools."""
    own = _stems((*name_words(tool.name), *(word for phrase in tool.asks for word in _WORD.findall(phrase))))
    chosen, names, choosing, states = set[str](), set[str](), set[str](), set[str]()
    takes_numbers = any(kind.partition(":")[0] in NUMBERS for _, kind in tool.control_args)
    for name, schema in _properties(tool.parameters, 0):
        names.add(name.lower())
        takes_numbers = takes_numbers or (schema.get("type") in ("integer", "number") and stem(name) not in UNSAYING)
        choices = schema.get("enum")
        states |= (
            {name.removeprefix("is_"), *map(str, choices or ())}
            if choices or schema.get("type") == "boolean"
            else set()
        )
        if schema.get("type") == "boolean":
            chosen |= name_stems(name)
            continue
        own |= _stems(name_words(name))
        choosing |= {name} if choices else set()
        for choice in choices if isinstance(choices, (list, tuple)) else ():
            chosen |= word_stems(choice) if isinstance(choice, str) else set()
    for _, kind in tool.control_args:
        own |= _stems(name_words(kind))
    called = _stems(name_words(tool.name))
    chosen_states = not STATES.keys().isdisjoint(states)
    takes_path = any(kind == "path" for _, kind in tool.control_args) or not names.isdisjoint(_PATHS)
    rests = tuple(tuple(phrase.lower().split()[1:]) for phrase in tool.asks if " " in phrase)
    is_telling = bool(set(tool.payload_args) & _required(tool)) and tool.stakes in (Stakes.UNKNOWN, Stakes.NONE)
    return Lexicon(
        nouns=things | own | (_PLACES if takes_path else frozenset()),
        own=own,
        called=called,
        verbs=_stems((*name_words(tool.name)[:1], *(phrase.split()[0] for phrase in tool.asks if phrase.strip()))),
        names=frozenset(names),
        chosen=frozenset(chosen) - called,
        rests=(*rests, *(((state,) for state in STATES) if chosen_states else ())),
        is_telling=is_telling,
        is_mild=tool.stakes is Stakes.NONE,
        is_final=tool.stakes is Stakes.DELETION,
        takes_numbers=takes_numbers,
        texts=_stems(tool.payload_args),
        choosing=frozenset(choosing),
    )


def _properties(schema: JsonObject, depth: int) -> Iterator[tuple[str, JsonObject]]:
    """The arguments of a schema, those within others included."""
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) and depth < _DEPTH_MAX else ():
        if isinstance(inner, dict):
            items = inner.get("items")
            yield name, inner
            if isinstance(items, dict):
                yield name, items
                yield from _properties(items, depth + 1)
            yield from _properties(inner, depth + 1)


def _required(tool: Declaration) -> set[str]:
    needed = tool.parameters.get("required")
    return {name for name in needed if isinstance(name, str)} if isinstance(needed, (list, tuple)) else set()


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in words)


def _bases(tools: Mapping[str, Declaration]) -> frozenset[str]:
    """The verbs of tools as they are spelled, but for the inflections of others: "shred", and not "mailed" beside "mail"."""
    said = {word.lower() for one in tools.values() for phrase in one.asks for word in phrase.split()[:1]}
    said |= {name_words(name)[0] for name in tools if name_words(name)}
    return frozenset(word for word in said if said.isdisjoint((word[:-1], word[:-2], word[:-3], f"{word[:-3]}e")))


def _verb(name: str) -> str:
    return stem((name_words(name) or ("",))[0])
