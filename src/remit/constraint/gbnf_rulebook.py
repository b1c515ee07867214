"""The rules of a GBNF grammar that is being made of a schema, and what it cannot keep to.

Rule 1: a part of the schema that says the same as another shares its rule, so a schema that refers to itself ends.
Rule 2: what is beyond a limit on repetitions is repeated any number of times, and noted; too many rules are refused.
"""

import json
import re
from collections import deque

from remit.constraint.gbnf_json import SHARED, VALUE
from remit.constraint.gbnf_parts import NOTHING, Named, Part, repeated
from remit.constraint.grammar.plain_schema import GBNF_TOO_LARGE, REMARKS, Note, Plain, Plainer
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, Record

# Rules of one grammar; a schema of a hundred properties takes some hundred.
RULES_MAX = 2_000
# Repetitions of one element, and of all together: engines write each of them out.
TIMES_MAX = 1_000
TIMES_ALL_MAX = 20_000
# Letters of the names that undeclared ones are told apart from; each is a rule.
NAME_LETTERS_MAX = 300
_NAME_CHARS_MAX = 30


class Widening(Record):
    """A keyword that the grammar does not keep to, or not in full, and the place of its schema."""

    path: str
    keyword: str


class Rulebook:
    """Rules by name; what is still to be made of a schema waits in `todo` as name, schema and place."""

    def __init__(self, root: JsonObject) -> None:
        self.plainer = Plainer(root)
        self.rules: dict[str, Part] = dict(SHARED)
        self.todo: deque[tuple[str, JsonObject, str]] = deque()
        self.widened: dict[Widening, None] = {}
        self._known: dict[str, str] = {}
        self._made = 0
        self.letters_left = NAME_LETTERS_MAX
        self._times_left = TIMES_ALL_MAX

    def rule(self, schema: Plain, path: str) -> Part:
        """What reads the values of a schema."""
        seen: set[str] = set()
        while reference := self.plainer.reference_in(schema):
            target = self.plainer.target(reference)
            if target is None:
                self.widen(path, "$ref")
                return Named(VALUE)
            if reference in seen:
                return NOTHING
            seen.add(reference)
            schema, path = target, reference[1:]
        if not isinstance(schema, dict):
            return Named(VALUE) if schema else NOTHING
        told = {key: each for key, each in schema.items() if key not in REMARKS}
        if not told:
            return Named(VALUE)
        key = json.dumps(told)
        if key not in self._known:
            self._known[key] = self.new_name(path)
            self.todo.append((self._known[key], schema, path))
        return Named(self._known[key])

    def add(self, part: Part, path: str) -> Part:
        """A rule of its own for a part."""
        name = self.new_name(path)
        self.rules[name] = part
        return Named(name)

    def new_name(self, path: str) -> str:
        """A name for a rule that nobody has, after the last word of its place."""
        self._made += 1
        if self._made > RULES_MAX:
            message = f"the grammar of the schema would have over rules_max={RULES_MAX} rules; demand less"
            raise RequestRejected(GBNF_TOO_LARGE, message, {"limit": RULES_MAX})
        words = re.findall(r"[A-Za-z0-9]+", path.rpartition("/")[2]) or ["schema"]
        # A number behind each, so that no name of a property is taken for the root or for what all grammars share.
        return f"{'-'.join(words)[:_NAME_CHARS_MAX]}-{self._made}"

    def widen(self, path: str, keyword: str) -> None:
        """Note that a keyword is not kept to."""
        self.widened[Widening(path, keyword)] = None

    def noting(self, path: str) -> Note:
        """The same for one place."""
        return lambda keyword: self.widen(path, keyword)

    def times(self, part: Part, fewest: int, largest: int | None, *, path: str, keywords: tuple[str, str]) -> Part:
        """A part so many times, or about so many where it would be too many; the keywords are of the least and most."""
        least, most = min(fewest, TIMES_MAX), largest
        if max(least, most or 0) > min(TIMES_MAX, self._times_left):
            least, most = min(least, self._times_left), None
        self._times_left -= max(least, most or 0)
        if least != fewest:
            self.widen(path, keywords[0])
        if most != largest:
            self.widen(path, keywords[1])
        return repeated(part, least, most)
