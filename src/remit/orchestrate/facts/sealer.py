"""The sealer of secrets: what looks like one is sealed beside the journal behind a handle, and values of the vault are masked.

Rule 1: every text is looked at before anything is made of it that is written: requests at their start, reports before
        they become arrivals, signals before they are left for another process.
Rule 2: a value that was sealed once is known in its run, in those beneath it and in the next of its session: it is found
        again wherever it stands, in whatever way it is commonly written.
Rule 3: a handle is filled in just before a call is made, and only where its value is known. One whose value is gone is
        never sent as if it were the value.
Rule 4: a handle that comes in, and was given out neither here nor in what the run has shown, is made up; it is written as
        one of the kind `unknown`, so that no run waits for a value that never was.
Rule 5: a value of the vault that a person tells is a secret like any other.
Rule 6: no value of the vault stands in an arrival. A tool's report is masked by its executor, which may tell it late;
        every other report where it is received. What a model said is marked apart: it should never have had a secret, so a
        call with such an argument is not made, and an answer with one is none.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any, TypeVar

from remit.core.journal.arrivals import RunHalted, RunStarted
from remit.core.limits.tools import ToolCall
from remit.core.record import Record, replace, text_paths
from remit.core.run.manifest import Manifest, Origin, lineage_root
from remit.core.run.messages import Message
from remit.core.run.signals import UserSignal
from remit.core.secrets.seal import DIGITS_MIN
from remit.core.secrets.secret_names import COOKIE_JARS, NAME_MEMBERS, VALUE_MEMBERS, means_a_secret, secret_of_named
from remit.core.secrets.secret_search import CHARS_MIN, HANDLE, covered, secrets_in, without_secrets
from remit.core.work.graph import Graph, graph_version
from remit.orchestrate.executors.reports import ModelSaid, Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Seals
from remit.tool.secrets.secret_masks import forms_of
from remit.tool.secrets.vault import NO_SECRETS, Vault

R = TypeVar("R", bound=Record)

# The first word of what is reported of a call whose handle cannot be filled in.
SECRET_GONE = "SECRET_GONE"  # noqa: S105  # a code, and no password

# How every handle begins.
HANDLE_MARK = "secret:"

# The kind of a value of the vault; that of a handle which was made up; and those of which no value was ever kept: what was
# redacted is gone for good.
VAULT_KIND = "vault"
MADE_UP_KIND = "unknown"
_WITHOUT_VALUE = (MADE_UP_KIND, "redacted")

# A shorter value would be found in many words.
KNOWN_CHARS_MIN = 8
# Longer words of a list are no words of a command.
WORD_CHARS_MAX = 400
# No text stands in these.
_WITHOUT_TEXT = frozenset({int, float, bool, bytes})
# What almost every report and request is or holds, with what reads all of its texts at once. What stands where a number or
# an enum is declared need not be looked at: facts make numbers of it, or leave it out.
_TEXTS_OF: Mapping[type, Callable[[Any], tuple[Any, ...]]] = MappingProxyType(
    {kind: attrgetter(*text_paths(kind)) for kind in (ModelSaid, ToolSaid, ToolCall, Message)}
)
_LISTS = (tuple, list)
_TEXT = frozenset({str})
# For so many forms of values every text of a run is searched: those of some sixty. A run with more has read a list.
FORMS_MAX = 1000
# So many texts of a run are known to be plain, and none that is longer.
PLAIN_MAX = 64
PLAIN_CHARS_MAX = 64
# Of so many runs what is known is kept at hand.
RUNS_REMEMBERED_MAX = 256
# Graphs that the runs of one process share.
GRAPHS_REMEMBERED_MAX = 64


class SecretGone(Exception):
    """The value behind a handle is not there."""

    def __init__(self, handle: str) -> None:
        super().__init__(handle)
        self.handle = handle


class _Scope:
    """What is known in one run and those beneath it."""

    __slots__ = ("forms", "name", "plain")

    def __init__(self, name: str) -> None:
        self.name = name
        # Short texts of late in which nothing was found: ids and names come again with every call.
        self.plain: set[str] = set()
        # Every way of writing a known value, with the value's kind.
        self.forms: dict[str, str] = {}

    def learn(self, kind: str, value: str) -> None:
        """Look for a value from now on."""
        if len(value) >= KNOWN_CHARS_MIN and value not in self.forms and len(self.forms) < FORMS_MAX:
            self.forms |= {form: kind for form in forms_of(value) if len(form) >= KNOWN_CHARS_MIN}
            self.plain.clear()

    def note_plain(self, text: str) -> None:
        """Remember that nothing was found in a text."""
        if len(text) <= PLAIN_CHARS_MAX and HANDLE_MARK not in text:
            if len(self.plain) >= PLAIN_MAX:
                self.plain.clear()
            self.plain.add(text)


class _Look(Record):
    """Where secrets are looked for: what is known there, and the messages that stand in its context already.

    `has_all` says that every handle that was given out there is known, or among these messages. A text of fewer than
    `chars_min` letters holds nothing that is looked for; ids and names of tools are so short. Nor does one of `plain`,
    which is empty where the vault has secrets: those change.
    """

    scope: _Scope
    shown: Sequence[Message]
    has_all: bool
    chars_min: int
    plain: Collection[str]


class Sealer:
    """Takes secrets out of what is written, and fills them in where they are needed."""

    def __init__(self, seals: Seals, vault: Vault = NO_SECRETS) -> None:
        self._seals = seals
        self._vault = vault
        self._scopes: dict[str, _Scope] = {}
        # Graphs without anything that looks like a secret or a handle, in the order in which they were met.
        self._plain: dict[Graph, None] = {}

    def manifest(self, manifest: Manifest) -> Manifest:
        """A manifest whose request, session, goal, plan and graph hold no secret."""
        if manifest.session is not None and manifest.session.previous_run_id:
            # What was said in a session may be meant in its next run.
            self._seals.adopt(lineage_root(manifest), manifest.session.previous_run_id)
        is_first = manifest.parent is None and (manifest.session is None or not manifest.session.previous_run_id)
        look = self._look_into(lineage_root(manifest), has_all=is_first)
        request = self._record(look, manifest.request, ("messages", "metadata", "hints"))
        if request is not manifest.request:
            manifest = replace(manifest, request=request)
        graph = self._graph(look, manifest.graph)
        if graph is not manifest.graph:
            manifest = replace(manifest, graph=graph, versions=replace(manifest.versions, graph=graph_version(graph)))
        return self._record(look, manifest, ("session", "goal", "plan"))

    def _graph(self, look: _Look, graph: Graph) -> Graph:
        """A graph without a secret. A plain one is looked at again only for values that are known: most runs share theirs."""
        knows_values = bool(look.scope.forms or self._vault.masker.names)
        if not knows_values and graph in self._plain:
            return graph
        changed: Graph = self._changed(look, graph)
        if not knows_values and changed is graph and HANDLE_MARK not in str(graph):
            self._plain[graph] = None
            if len(self._plain) > GRAPHS_REMEMBERED_MAX:
                del self._plain[next(iter(self._plain))]
        return changed

    def report(self, live: Live, report: Report) -> Report:
        """A report without a secret, as it may become an arrival."""
        if type(report) is RunStarted:
            return report
        # What is said to a run that never began is refused, and looked at all the same.
        family = live.state.derived.family or live.run_id
        sealed: Report = self._changed(self._look_into(family, live.conversation.messages, has_all=True), report)
        return sealed

    def origin(self, origin: Origin, fork_id: str, family: str) -> Origin:
        """Where a fork comes from, and why, without a secret; what was sealed for its origin's family is known in it."""
        self._seals.adopt(fork_id, family)
        sealed: Origin = self._changed(self._look_into(fork_id), origin)
        return sealed

    def covered(self, text: str) -> str:
        """A text with a mark in place of every secret, for what belongs to no run that could keep its value."""
        return self._vault.masker.masked(covered(text))

    def signal(self, signal: UserSignal, family: str) -> UserSignal:
        """A signal to a run of this family as it may be left for another process."""
        sealed: UserSignal = self._changed(self._look_into(family), signal)
        return sealed

    def text(self, family: str, shown: Sequence[Message], text: str) -> str:
        """A text without a secret, for those who listen to a model that was shown these messages."""
        return self._replaced(self._look_into(family, shown, has_all=True), text)

    def filled(self, family: str, value: Any) -> Any:
        """The value with what stands behind the handles of a family; raises SecretGone where that is not there."""
        if type(value) is str:
            return _filled(value, self._seals.values(family)) if HANDLE_MARK in value else value
        if isinstance(value, dict):
            return {self.filled(family, key): self.filled(family, part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)([self.filled(family, part) for part in value])
        return value

    def _look_into(self, family: str, shown: Sequence[Message] = (), *, has_all: bool = False) -> _Look:
        scope = self._scopes.get(family) or self._scope(family)
        if self._vault.masker.names:
            return _Look(scope, shown, has_all, 0, ())
        return _Look(scope, shown, has_all, CHARS_MIN, scope.plain)

    def _scope(self, name: str) -> _Scope:
        """Load the handles of a family, once: of a run, those beneath it and those that it was tried again as."""
        scope = self._scopes.get(name)
        if scope is None:
            scope = self._scopes[name] = _Scope(name)
            for handle, value in self._seals.values(name).items():
                scope.learn(_kind(handle), value)
            if len(self._scopes) > RUNS_REMEMBERED_MAX:
                del self._scopes[next(iter(self._scopes))]
        return scope

    def _sealed(self, scope: _Scope, kind: str, value: str) -> str:
        handle = self._seals.seal(scope.name, kind, value)
        scope.learn(kind, value)
        return handle

    def _replaced(self, look: _Look, text: str) -> str:
        scope = look.scope
        if len(text) < look.chars_min or text in look.plain:
            return text
        said = text
        if look.has_all and HANDLE_MARK in text:
            text = _without_made_up(text, self._seals.values(scope.name), look.shown)
        if self._vault.masker.names:
            text = self._vault.masker.without(text, partial(self._sealed, scope, VAULT_KIND))
        if scope.forms:
            for form in _forms_in(text, scope.forms):
                text = text.replace(form, self._sealed(scope, scope.forms[form], form))
        text = without_secrets(text, partial(self._sealed, scope))
        if text is said and look.chars_min:
            scope.note_plain(text)
        return text

    def _named(self, look: _Look, name: str, value: Any) -> Any:
        """The value of a field, which may be or hold a secret by the name that it has.

        One that stands in the context as it is was no secret there, and is the same value in every comparison.
        """
        if type(value) in _WITHOUT_TEXT:
            return value
        if type(value) is not str:
            return self._changed(look, value, name if means_a_secret(name) else "")
        found = secret_of_named(name, value)
        if found is not None:
            kind, start, end = found
            secret = value[start:end]
            if not any(type(shown.content) is str and secret in shown.content for shown in look.shown):
                value = value[:start] + self._sealed(look.scope, kind, secret) + value[end:]
        return self._replaced(look, value)

    def _changed(self, look: _Look, value: Any, name: str = "") -> Any:
        """The value with every text in it looked at; the very same where nothing was found.

        `name` is that of the field it stands in, if that means a secret: lists and members that hold a value have it, too.
        """
        kind = type(value)
        if kind is str:
            return self._named(look, name, value) if name else self._replaced(look, value)
        if (texts := _TEXTS_OF.get(kind)) is not None and self._is_plain(look, value, texts):
            return value
        if isinstance(value, dict):
            return self._members(look, value, name)
        if isinstance(value, _LISTS):
            return self._parts(look, value, name)
        return self._record(look, value) if isinstance(value, Record) else value

    def _parts(self, look: _Look, value: Sequence[Any], name: str) -> Sequence[Any]:
        parts = [self._changed(look, part, name) for part in self._line(look, value)]
        changed: Sequence[Any] = value if all(map(is_, parts, value)) else type(value)(parts)  # type: ignore[call-arg]
        return changed

    def _record(self, look: _Look, value: R, fields: Iterable[str] = ()) -> R:
        """A record with these fields looked at, all of them unless some are named."""
        changes = {}
        for field in fields or value.__struct_fields__:
            old = getattr(value, field)
            if old and type(old) not in _WITHOUT_TEXT and (new := self._changed(look, old)) is not old:
                changes[field] = new
        return replace(value, **changes) if changes else value

    def _is_plain(self, look: _Look, value: Record, texts: Callable[[Any], tuple[Any, ...]]) -> bool:
        """Whether nothing is found in any text of a record. Most texts are empty or short, and every report comes by here."""
        try:
            found = texts(value)
        except AttributeError:  # A field does not hold what is declared.
            return False
        chars_min, plain = look.chars_min, look.plain
        for text in filter(None, found):
            if type(text) is not str:
                if self._changed(look, text) is not text:
                    return False
            elif len(text) >= chars_min and text not in plain and self._replaced(look, text) is not text:
                return False
        return True

    def _members(self, look: _Look, value: dict[Any, Any], name: str) -> dict[Any, Any]:
        """A structure with every member looked at under the name that tells what it is."""
        if _WITHOUT_TEXT.issuperset(map(type, value.values())) and _is_short(value, look.chars_min):
            return value
        for key, part in value.items():
            if type(part) is str and str(key).casefold() in NAME_MEMBERS and means_a_secret(part):
                name = part
                break
        items, is_same = [], True
        for key, part in value.items():
            is_value = name and (str(key).casefold() in VALUE_MEMBERS or name.casefold() in COOKIE_JARS)
            new_key = key if type(key) is str and len(key) < look.chars_min else self._changed(look, key)
            new = part if type(part) in _WITHOUT_TEXT else self._named(look, name if is_value else str(key), part)
            items.append((new_key, new))
            is_same = is_same and new is part and new_key == key
        return value if is_same else dict(items)

    def _line(self, look: _Look, words: Sequence[Any]) -> Sequence[Any]:
        """A list as a command line, or as a name with its value: the words without the secrets that those before them tell."""
        if len(words) < 2 or not all(type(word) is str and len(word) <= WORD_CHARS_MAX for word in words):
            return words
        if len(words) == 2 and means_a_secret(words[0]):
            return words[0], self._named(look, words[0], words[1])
        if not any(word.startswith("-") for word in words):
            return words
        changed = list(words)
        for at, (before, word) in enumerate(pairwise(words), 1):
            if before.startswith("-") and not word.startswith("-"):
                changed[at] = self._named(look, before.lstrip("-"), word)
        return self._joined(look, changed)

    def _joined(self, look: _Look, words: list[str]) -> list[str]:
        """The words, looked at as one line."""
        line, begin = " ".join(words), 0
        found = secrets_in(line)
        changed = []
        for word in words:
            end = begin + len(word)
            inside = [each for each in found if begin <= each.start and each.end <= end]
            for kind, start, stop in reversed(inside):
                secret = line[start:stop]
                word = word[: start - begin] + self._sealed(look.scope, kind, secret) + word[stop - begin :]
            changed.append(word)
            begin = end + 1
        return changed


def _is_short(words: Collection[Any], chars_min: int) -> bool:
    """Whether these are texts, each with fewer letters."""
    return _TEXT.issuperset(map(type, words)) and max(map(len, words), default=0) < chars_min


def _forms_in(text: str, forms: Iterable[str]) -> list[str]:
    """The forms that stand in a text, the longest first: a value may be the beginning of another one."""
    return sorted([form for form in forms if form in text], key=len, reverse=True)


def waits_for(handle: str, what: str, command_id: str) -> RunHalted:
    """The report that pauses a run because the sealed value of a handle is missing; the run goes on once it is back."""
    why = (
        f"{SECRET_GONE}: the value of {handle} is not in the store's folder `sealed`; put that back, or cancel the run"
    )
    return RunHalted("remit", 0, what, why, (command_id,))


def is_lost(handle: str) -> bool:
    """Whether a handle without a value was given out once: its value was kept, and may be brought back."""
    return _kind(handle) not in _WITHOUT_VALUE


def _filled(text: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        handle = _known(found, values)
        if handle is None:
            raise SecretGone(found[0])
        return values[handle] + found[0][len(handle) :]

    return HANDLE.sub(value, text)


def _without_made_up(text: str, values: Mapping[str, str], shown: Sequence[Message]) -> str:
    """The text with handles that were never given out as what they are."""

    def checked(found: re.Match[str]) -> str:
        is_given = _known(found, values) is not None or found[1] in _WITHOUT_VALUE
        if is_given or any(found[0] in str(message) for message in shown):
            return found[0]
        return f"{HANDLE_MARK}{MADE_UP_KIND}#{found[2]}"

    return HANDLE.sub(checked, text)


def _known(found: re.Match[str], values: Mapping[str, str]) -> str | None:
    """The handle with which what was found begins, if that is known: digits that follow it may read as its own."""
    parts = (found[0][:end] for end in range(len(found[0]), len(found[0]) - len(found[2]) + DIGITS_MIN - 1, -1))
    return next((each for each in parts if each in values), None)


def _kind(handle: str) -> str:
    found = HANDLE.fullmatch(handle)
    return "secret" if found is None else found[1]


# Reports of tools, which their executors have masked.
OF_TOOLS = (ToolSaid, ToolBroke, ToolAccounted)


def masked(report: Report, vault: Vault) -> Report:
    """The report without any value of the vault."""
    masker = vault.masker
    if not masker.names:
        return report
    if not isinstance(report, ModelSaid):
        found: Report = _changed(report, masker.masked)
        return found

    def exposed(text: str) -> str:
        if name := masker.value_in(text):
            # A model that can say it knows it. That is certain, so the secret is revoked.
            vault.revoke(name)
        return masker.exposed(text)

    known = masker.value_in(report.result.content) or masker.value_in(report.result.reasoning)
    said: ModelSaid = _changed(report, exposed)
    return replace(said, exposed=known) if known else said


def received(report: Report, vault: Vault) -> Report:
    """The report of an executor as it is received: without any value of the vault; those of tools come masked."""
    return report if isinstance(report, OF_TOOLS) else masked(report, vault)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; a code is no text, though it is written as one."""
    if type(value) is str:
        return change(value)
    if isinstance(value, Record):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        changes = {name: new for name, old in fields if (new := _changed(old, change)) is not old}
        return replace(value, **changes) if changes else value
    if isinstance(value, tuple | list):
        parts = [_changed(part, change) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    if isinstance(value, dict):
        return {_changed(key, change): _changed(part, change) for key, part in value.items()}
    return value
