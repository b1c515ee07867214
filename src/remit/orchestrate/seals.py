"""Keeping secrets out: what looks like one is sealed beside the journal, and a handle stands in its place.

Rule 1: every text is looked at before anything is made of it that is written: requests at their start, reports before
        they become arrivals, signals before they are left for another process.
Rule 2: a value that was sealed once is known in its run, in those beneath it and in the next of its session: it is found
        again wherever it stands, in whatever way it is commonly written.
Rule 3: a handle is filled in just before a call is made, and only where its value is known. One whose value is gone is
        never sent as if it were the value.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from remit.core.arrivals import RunStarted
from remit.core.graph import graph_version
from remit.core.manifest import Manifest
from remit.core.record import Record, replace
from remit.core.secret_search import HANDLE, without_secrets
from remit.core.secret_values import kind_of_named
from remit.core.signals import UserSignal
from remit.orchestrate.ports import Live, Seals
from remit.orchestrate.reports import Report
from remit.tool.redaction import forms_of

# The first word of what is reported of a call whose handle cannot be filled in.
SECRET_GONE = "SECRET_GONE"  # noqa: S105  # a code, and no password

# How every handle begins.
HANDLE_MARK = "[secret:"

# A shorter value would be found in many words.
KNOWN_CHARS_MIN = 8
# For so many forms of values every text of a run is searched: those of some sixty. A run with more has read a list.
FORMS_MAX = 1000
# Of so many runs what is known is kept at hand.
RUNS_REMEMBERED_MAX = 256


class SecretGone(Exception):
    """The value behind a handle is not there."""

    def __init__(self, handle: str) -> None:
        super().__init__(handle)
        self.handle = handle


class _Scope:
    """What is known in one run and those beneath it."""

    __slots__ = ("forms", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        # Every way of writing a known value, with the value's kind.
        self.forms: dict[str, str] = {}

    def learn(self, kind: str, value: str) -> None:
        """Look for a value from now on."""
        if len(value) >= KNOWN_CHARS_MIN and value not in self.forms and len(self.forms) < FORMS_MAX:
            self.forms |= {form: kind for form in forms_of(value) if len(form) >= KNOWN_CHARS_MIN}


class Sealer:
    """Takes secrets out of what is written, and fills them in where they are needed."""

    def __init__(self, seals: Seals) -> None:
        self._seals = seals
        self._scopes: dict[str, _Scope] = {}

    def manifest(self, manifest: Manifest) -> Manifest:
        """A manifest whose request, session, goal, plan and graph hold no secret."""
        if manifest.session is not None and manifest.session.previous_run_id:
            # What was said in a session may be meant in its next run.
            self._seals.adopt(_family(manifest.run_id), _family(manifest.session.previous_run_id))
        scope = self._scope(manifest.run_id)
        request = manifest.request
        changed = self._changed(scope, request.messages), self._changed(scope, request.metadata)
        if changed != (request.messages, request.metadata):
            request = replace(request, messages=changed[0], metadata=changed[1])
        hints = self._changed(scope, request.hints)
        request = request if hints is request.hints else replace(request, hints=hints)
        graph = self._changed(scope, manifest.graph)
        if graph is not manifest.graph:
            manifest = replace(manifest, graph=graph, versions=replace(manifest.versions, graph=graph_version(graph)))
        parts = {name: self._changed(scope, getattr(manifest, name)) for name in ("session", "goal", "plan")}
        return replace(manifest, request=request, **parts)

    def report(self, live: Live, report: Report) -> Report:
        """A report without a secret, as it may become an arrival."""
        if type(report) is RunStarted:
            return report
        sealed: Report = self._changed(self._scope(live.run_id), report)
        return sealed

    def signal(self, signal: UserSignal) -> UserSignal:
        """A signal as it may be left for another process."""
        sealed: UserSignal = self._changed(self._scope(signal.run_id), signal)
        return sealed

    def text(self, live: Live, text: str) -> str:
        """A text without a secret, for those who listen."""
        return self._replaced(self._scope(live.run_id), text)

    def filled(self, live: Live, value: Any) -> Any:
        """The value with what stands behind its handles; raises SecretGone where that is not there."""
        if type(value) is str:
            return _filled(value, self._seals.values(_family(live.run_id))) if HANDLE_MARK in value else value
        if isinstance(value, dict):
            return {self.filled(live, key): self.filled(live, part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)([self.filled(live, part) for part in value])
        return value

    def _scope(self, run_id: str) -> _Scope:
        """What is known in a run, those beneath it and those that were forked from it."""
        name = _family(run_id)
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

    def _replaced(self, scope: _Scope, text: str) -> str:
        if scope.forms:
            # The longest first: a value may be the beginning of another one.
            found = sorted([form for form in scope.forms if form in text], key=len, reverse=True)
            for form in found:
                text = text.replace(form, self._sealed(scope, scope.forms[form], form))
        return without_secrets(text, lambda kind, value: self._sealed(scope, kind, value))

    def _named(self, scope: _Scope, name: object, value: Any) -> Any:
        """The value of a field, which may be a secret by the name that it has."""
        if type(value) is str and type(name) is str and "[secret" not in value and (kind := kind_of_named(name, value)):
            return self._sealed(scope, kind, value)
        return self._changed(scope, value)

    def _changed(self, scope: _Scope, value: Any) -> Any:
        """The value with every text in it looked at; the very same where nothing was found."""
        if type(value) is str:
            return self._replaced(scope, value)
        if isinstance(value, Record):
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            changes = {name: new for name, old in fields if (new := self._changed(scope, old)) is not old}
            return replace(value, **changes) if changes else value
        if isinstance(value, tuple | list):
            parts = [self._changed(scope, part) for part in value]
            return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
        if isinstance(value, dict):
            items = [(self._changed(scope, key), self._named(scope, key, part)) for key, part in value.items()]
            is_same = all(new is old for (_, new), old in zip(items, value.values(), strict=True))
            return value if is_same and [key for key, _ in items] == list(value) else dict(items)
        return value


def handles_in(value: str) -> Iterable[str]:
    """The handles in a text."""
    return (found[0] for found in HANDLE.finditer(value))


def _filled(text: str, values: Mapping[str, str]) -> str:
    for handle in handles_in(text):
        if handle not in values:
            raise SecretGone(handle)
    return HANDLE.sub(lambda found: values[found[0]], text)


def _family(run_id: str) -> str:
    """The run that a run came from: children and forks are named after it."""
    return run_id.partition(".")[0]


def _kind(handle: str) -> str:
    found = HANDLE.fullmatch(handle)
    return "secret" if found is None else found[1]
