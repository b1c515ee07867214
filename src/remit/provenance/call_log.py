"""Calls: what became of each call: let through, held, approved or rejected; and what a lookup's arguments rest on.

Rule 1: an approval is named by the hash of tool and arguments, is spent once, and says who gave it.
Rule 2: the wire is tripped by the first call that is held and re-armed by the answer to that call.
Rule 3: a host may run an approved call at once and report its result, or propose it again; either spends the approval.
Rule 4: a result belongs to its call by id; without one, to the latest call of its tool that waits for a result. Where
        two calls could be meant, the result belongs to one of them and selects nothing.
Rule 5: a call that did nothing was not used. One that failed and may be repeated under its key is let through again, as it
        was, and counts once.
"""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256

from remit.core.journal.canonical import canonical_json
from remit.core.limits.authority import Inference
from remit.core.limits.tools import Effect
from remit.core.record import JsonObject, Record, replace
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument
from remit.provenance.kinds import ANY, LABEL, TEXT, is_target
from remit.provenance.origins.records import OwnTexts
from remit.provenance.origins.windows import Window
from remit.provenance.repeated_effects import Uses
from remit.provenance.toolbox import GatedTool
from remit.provenance.values.grounds import Grounds
from remit.provenance.words.vocabulary import stem, word_stems

# Calls whose results never came. A run that has more of them open has lost its results; the oldest are forgotten.
OPEN_CALLS_MAX = 1_000
# Kinds that say nothing about what a value is.
_LOOSE = frozenset({ANY, LABEL, TEXT})
# What vouches for a value of the words: of this exchange, or of an earlier one.
_SAID = frozenset({"words", "earlier"})


class ApprovalScope(StrEnum):
    """What an approval covers: this call once, or its unbound values for this tool and kind for the whole run too."""

    CALL = "call"
    VALUE = "value"


def call_bytes(tool: str, arguments: JsonObject) -> bytes:
    """The bytes of a call, by whose hash approvals, held calls and the reads of orders are told apart."""
    return canonical_json([tool, arguments])


def call_digest(data: bytes) -> str:
    """The hash of a call."""
    return sha256(data).hexdigest()


class Call(Record):
    """One call: its bytes by hash, its targets, and what its arguments rest on."""

    call_id: str
    tool: str
    digest: str
    targets: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    unbound: tuple[tuple[str, str], ...] = ()
    chosen: bool = False
    # So many records are too many for a whole listing; 0 for any number.
    bound: int = 0
    is_earlier: bool = False
    located: bool = False
    asked: bool = False
    names: tuple[str, ...] = ()
    # The texts among its arguments that neither the user's words, an order nor a person accounts for.
    written: tuple[str, ...] = ()
    # The order that it equals, from 1; 0 for none, and why not.
    order: int = 0
    beyond: str = ""


class CallLog:
    """The calls of one run and what people said about them."""

    def __init__(self) -> None:
        self.count = 0
        self.tripped = ""
        self.open: dict[str, Call] = {}
        self.waiting: dict[str, Call] = {}
        self.approvals: dict[str, str] = {}
        self.rejected: dict[str, str] = {}
        self.uses: dict[str, Uses] = {}
        # The orders that were used up.
        self.carried_out: set[int] = set()
        # Bytes that may be called again without counting again, and the calls that were let through for that.
        self.again: set[str] = set()
        self.retries: set[str] = set()
        self.written = OwnTexts()

    def name_call(self, call_id: str | None) -> str:
        """The id of a call; one that has none gets the next free name."""
        self.count += 1
        return call_id if isinstance(call_id, str) and call_id else f"call-{self.count}"

    def uses_of(self, tool: str) -> Uses:
        """How often a tool was let through so far."""
        found = self.uses.get(tool)
        if found is None:
            found = self.uses[tool] = Uses()
        return found

    def let_through(self, call: Call) -> None:
        """Note that a call may happen, and await its result."""
        known = self.open.get(call.call_id)
        self.open[call.call_id] = call if known is None or known.digest == call.digest else _aimless(call)
        if len(self.open) > OPEN_CALLS_MAX:
            self.open.pop(next(iter(self.open)))

    def hold(self, call: Call, *, trips: bool) -> None:
        """Hold a call for a person."""
        self.waiting[call.call_id] = call
        if trips and not self.tripped:
            self.tripped = call.call_id

    def held(self, call_id: str) -> Call | None:
        """The held call of this id."""
        return self.waiting.get(call_id)

    def held_ids(self) -> tuple[str, ...]:
        """The ids of all calls that wait for a person."""
        return tuple(self.waiting)

    def approve(self, call: Call, by: str) -> None:
        """Let exactly these bytes pass once."""
        self._answered(call)
        self.written.note(call.written)
        self.approvals[call.digest] = by
        self.rejected.pop(call.digest, None)
        self.open[call.call_id] = call

    def reject(self, call: Call, by: str) -> None:
        """Turn these bytes away for the rest of the run."""
        self._answered(call)
        self.rejected[call.digest] = by

    def _answered(self, call: Call) -> None:
        del self.waiting[call.call_id]
        if self.tripped == call.call_id:
            self.tripped = ""

    def take_back(self, call_id: str, *, is_counted: bool) -> None:
        """Forget a call that was let through or held and will not be made; `is_counted` says that it counts as used."""
        call = self.open.pop(call_id, None) or self.waiting.pop(call_id, None)
        if self.tripped == call_id:
            self.tripped = ""
        if call is not None and is_counted:
            self._uncount(call)

    def undo(self, call_id: str) -> None:
        """Forget that a call was used which was made and did nothing."""
        if (call := self.open.pop(call_id, None)) is not None:
            self._uncount(call)

    def let_again(self, call_id: str) -> None:
        """Let a call that failed pass once more, as it was."""
        if (call := self.open.pop(call_id, None)) is not None:
            self.again.add(call.digest)

    def use(self, call: Call) -> None:
        """Count a call that is let through, unless it repeats one that counts already."""
        self.written.note(call.written)
        if call.digest in self.again:
            self.again.remove(call.digest)
            self.retries.add(call.call_id)
        else:
            self.uses_of(call.tool).add(call.targets)
            if call.order:
                self.carried_out.add(call.order)

    def _uncount(self, call: Call) -> None:
        if call.call_id in self.retries:
            self.retries.remove(call.call_id)
            self.again.add(call.digest)
        else:
            self.uses_of(call.tool).take_back(call.targets)
            self.carried_out.discard(call.order)

    def spend_approval(self, call: Call) -> str:
        """Who approved these bytes, if a person did and it was not used yet."""
        return self.approvals.pop(call.digest, "")

    def returned(self, call_id: str | None, tool: str) -> Call | None:
        """The call that a result belongs to, if it was let through; an approval that the host acted on is spent."""
        call = self._latest(tool) if call_id is None else self.open.get(call_id)
        if call is None or call.tool != tool:
            return None
        self.open.pop(call.call_id, None)
        if self.spend_approval(call):
            self.uses_of(tool).add(call.targets)
        return call

    def _latest(self, tool: str) -> Call | None:
        waiting = [call for call in self.open.values() if call.tool == tool]
        for call in waiting:
            del self.open[call.call_id]
        if not waiting:
            return None
        return waiting[-1] if len(waiting) == 1 else _aimless(waiting[-1])


def _aimless(call: Call) -> Call:
    """A call whose result may be another's: nothing is known of what its arguments rest on."""
    return replace(call, chosen=False, located=False, asked=False, names=())


def lookup_of(
    call: Call,
    tool: GatedTool,
    arguments: tuple[Argument, ...],
    grounds: Grounds,
    *,
    targets: tuple[str, ...] = (),
) -> Call:
    """The call with what its arguments rest on, which decides what its result may select."""
    declaration, window = tool.declaration, tool.window
    if not tool.has_records and tool.is_mutating and grounds.authority.infer_fields is not Inference.IDENTITY:
        # Its result is text, of which nothing is selected, and which was asked for with the effect.
        return replace(
            call,
            targets=targets,
            located=_is_located(declaration, arguments),
            asked=True,
            written=_written(arguments),
        )
    said = [one for one in arguments if one.bound_by in _SAID]
    is_earlier = "earlier" in [one.bound_by for one in said]
    given = tuple([one.path for one in arguments if one.bound_by != "default"])
    # What a tool without a schema could have been asked is unknown.
    chosen = tool.has_schema and not any(_is_made_up(one, window, grounds) for one in arguments)
    return Call(
        call.call_id,
        call.tool,
        call.digest,
        targets=targets,
        arguments=given,
        chosen=chosen,
        bound=window.bound(arguments, [one.path for one in said]),
        is_earlier=is_earlier,
        located=_is_located(declaration, arguments),
        asked=_is_asked(declaration, grounds, arguments if chosen and not is_earlier else ()),
        names=_names_in(arguments, declaration, grounds),
        written=_written(arguments) if declaration.effect.is_mutating else (),
        order=call.order,
        beyond=call.beyond,
    )


def _is_located(declaration: Declaration, arguments: Iterable[Argument]) -> bool:
    """Whether the words name everything by which a tool finds its source."""
    if not declaration.locator_args:
        return False
    said = {one.path.partition("[")[0] for one in arguments if one.bound_by == "words"}
    return said.issuperset(declaration.locator_args)


def _is_made_up(argument: Argument, window: Window, grounds: Grounds) -> bool:
    """Whether nothing vouches for an argument that decides what is found, or what vouches for it would fit anything."""
    if argument.code is not None and not window.is_limit(argument) and not _is_wide(argument, grounds):
        return True
    if argument.bound_by not in _SAID:
        return False
    is_anything = isinstance(argument.value, str) and _is_anything(argument, grounds)
    return is_anything or window.is_guessed(argument, grounds.words)


def _written(arguments: Iterable[Argument]) -> tuple[str, ...]:
    """The values of a call that the model made up: prose, and what a person would have to let pass."""
    made = [one.value for one in arguments if one.code is not None or one.bound_by in ("prose", "typed")]
    return tuple([str(value) for value in made if value is not None and not isinstance(value, bool)])


def _names_in(arguments: Iterable[Argument], declaration: Declaration, grounds: Grounds) -> tuple[str, ...]:
    """What a call was given that the words use as a name, or as that which an order falls on."""
    words, hints = grounds.words, word_stems(declaration.name)
    return tuple(
        [
            value
            for one in arguments
            if (one.bound_by in _SAID or not one.kind) and (value := str(one.value))
            if (one.bound_by in _SAID and words.is_name(value, hints)) or (not one.kind and _is_ordered(value, grounds))
        ]
    )


def _is_wide(argument: Argument, grounds: Grounds) -> bool:
    """Whether a query finds all that the words may mean: it is empty, or a part of a name or of what an order falls on."""
    value = argument.value
    if value in (None, "", [], {}):
        return True
    if not isinstance(value, str) or argument.kind or not value.strip():
        return False
    sought = f" {value.lower()} "
    if any(sought in name for name in grounds.spaced_names):
        return True
    return _is_ordered(value, grounds)


def _is_anything(argument: Argument, grounds: Grounds) -> bool:
    """Whether a value of the words says nothing, or is a plain word that a model picked from them: it looks up anything."""
    value = argument.value
    if grounds.says_nothing(value):
        return True
    return not argument.kind and value.islower() and value.isalpha() and not _is_wide(argument, grounds)


def _is_ordered(query: str, grounds: Grounds) -> bool:
    """Whether a query is what some order falls on: "buy a red watch" is looked up by "red watch"."""
    first = query.split(None, 1)[:1]
    # Most texts are about something else, which their first words tell.
    if not first or stem(first[0]) not in grounds.plan.things:
        return False
    parts = [stem(word) for word in query.split()]
    return any(things.issuperset(parts) for things in grounds.plan.falls_on)


def _is_asked(declaration: Declaration, grounds: Grounds, named: tuple[Argument, ...]) -> bool:
    """Whether the words ask for what is read: they speak of it, name where it stands, or name it and ask for the tool.

    `named` are the arguments of a call whose every argument came from the user. That alone asks for nothing: any word of
    a request can be looked up in anything, and a verb that many tools share ("read") asks for none of them.
    """
    if declaration.effect is not Effect.READ:
        return True
    said, tools = grounds.asking.stems, grounds.tool_words
    if not said.isdisjoint(tools.about[declaration.name]):
        return True
    given = [one for one in named if one.bound_by != "default"]
    if any(one.code is None and _is_thing(one, declaration) for one in given):
        return True
    return bool(given) and not said.isdisjoint(tools.alone[declaration.name])


def _is_thing(argument: Argument, declaration: Declaration) -> bool:
    """Whether an argument names one thing: its kind is declared, or it says where something stands."""
    if argument.path.partition("[")[0] in declaration.locator_args:
        return True
    return argument.kind not in _LOOSE and is_target(argument.kind)
