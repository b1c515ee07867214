"""Tracing: the gate of provenance follows a run, so that each proposed call is judged by where its values come from.

Rule 1: the gate is a function of the run's turns and the texts they name. It is no state of its own: whoever loses it
        makes it again from the journal, and an audit does the same.
Rule 2: a run is traced where its boundary says so and a tool of it changes something or reads over the network; any
        other run pays nothing.
Rule 3: the user's words are those of a root run. A child's prompt is text of a model: it binds nothing, so every effect
        of a child is for a person.
Rule 4: what the kernel made of a call is told to the gate: refused, held for another reason, approved, let pass by a
        boundary that only audits.
Rule 5: where a text is gone, nobody knows what the model has read: no checked call passes without a person any more.
"""

from collections.abc import Callable, Iterable
from typing import Any

from remit.core import arrivals
from remit.core.arrivals import Arrival, ProposedCall, Provenance, ValueOrigin
from remit.core.codec import arguments_in
from remit.core.commands import AskHuman, CallTool
from remit.core.events import Turn
from remit.core.failure import Refusal
from remit.core.manifest import Manifest
from remit.core.messages import Role
from remit.core.record import JsonObject, Text, replace
from remit.core.rulings import ToolCallRefused
from remit.core.tools import ToolDefinition
from remit.provenance.gate import Gate, start
from remit.provenance.handles import as_handle, resolve
from remit.provenance.verdicts import Argument, Decision, Verdict, shown_value

# What the gate says to a run in which a text was lost.
RESULT_LOST = "RESULT_LOST"
# Who answers where no person does.
_AUDIT, _SILENCE = "audit", "silence"
# As many values of a call as a person looks at; the rest of a long list is judged and not shown.
ORIGINS_SHOWN_MAX = 40

# The id that a model gave a call, its tool, and the hash of its arguments.
CallName = tuple[str, str, bytes]
# A text in full; None when it is not kept any more.
Read = Callable[[Text], str | None]


def declared(tool: ToolDefinition) -> JsonObject:
    """What a tool tells the gate, in the words of its protocol."""
    trust = tool.trust
    said: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "effect": tool.effect.value,
        "network": tool.network,
        "destructive": tool.destructive,
        "repeat": trust.repeat.value,
        "reads": trust.reads.value,
        "directory": trust.directory,
        "author": trust.author,
        "readers": trust.readers,
        "payload_args": list(trust.payload_args),
        "locator_args": list(trust.locator_args),
    }
    optional: JsonObject = {
        "category": tool.category and tool.category.value,
        "stakes": trust.stakes and trust.stakes.value,
        "control_args": dict(tool.control_args) or None,
        "result": dict(trust.fields) or None,
        "asks": list(trust.asks) or None,
    }
    return said | {key: value for key, value in optional.items() if value is not None}


class Tracer:
    """The gate of one run, and which of its calls are which."""

    def __init__(self, manifest: Manifest, read: Read) -> None:
        assert manifest.boundary.authority is not None, "only a traced run has a tracer"
        self.seq = -1
        self._is_lost = False
        said = [read(message.content) for message in manifest.request.messages if message.role is Role.USER]
        words = [] if manifest.parent is not None else [text for text in said if text is not None]
        messages: list[JsonObject] = [{"role": "user", "content": text} for text in words]
        self._gate: Gate = start(messages, [declared(tool) for tool in manifest.tools], manifest.boundary.authority)
        self._filters = len(manifest.filters)
        self._seen = 0
        # The gate's name of a call: by the id the model gave it, its tool and its bytes, since models repeat their ids;
        # and by the command that ordered it.
        self._proposed: dict[CallName, str] = {}
        self._ordered: dict[str, tuple[str, str]] = {}
        self._asked: dict[str, str] = {}
        self._let: set[str] = set()

    def resolved(self, arguments: Any) -> Any:
        """The arguments with every handle replaced by the value it names."""
        if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
            return arguments
        return resolve(arguments, self._gate.evidence.index)[0]

    def judged(self, call: ProposedCall, arguments: Any, *, seq: int, place: int) -> ProposedCall:
        """A proposed call with what the gate finds about it. Arguments are as the model gave them, handles and all."""
        if call.violations or call.filtered or call.tool not in self._gate.tools:
            return call
        name = f"{seq}/{place}"
        verdict = self._gate.judge(name, call.tool, arguments)
        self._proposed[call.call_id, call.tool, call.arguments_hash] = name
        if verdict.decision is Decision.ALLOW:
            self._let.add(name)
        if not self._gate.tools[call.tool].is_checked:
            return replace(call, labels=verdict.labels) if verdict.labels else call
        return replace(call, **self._facts(verdict))

    def _facts(self, verdict: Verdict) -> JsonObject:
        provenance = {
            Decision.ALLOW: Provenance.BOUND,
            Decision.ASK: Provenance.UNBOUND,
            Decision.REFUSE: Provenance.REFUSED,
        }[verdict.decision]
        objection, reasons = verdict.code.value if verdict.code else "", verdict.reasons
        if self._is_lost and provenance is Provenance.BOUND:
            provenance, objection = Provenance.UNBOUND, RESULT_LOST
            reasons = ("a text of this run is gone, so nobody knows what was read",)
        if verdict.fix:
            reasons = (*reasons, verdict.fix)
        return {
            "provenance": provenance,
            "objection": objection,
            "reasons": reasons,
            "labels": verdict.labels,
            "origins": tuple(_origin(argument) for argument in verdict.args[:ORIGINS_SHOWN_MAX]),
        }

    def follow(self, turn: Turn, read: Read) -> None:
        """Tell the gate what a turn made of the calls it judged, and show it what the turn brought."""
        arrival = turn.arrival
        if isinstance(arrival, arrivals.ApprovalGiven) and arrival.modified is not None:
            self._note_changed(arrival.command_id, arrival.modified, turn, read)
        for decision in turn.decisions:
            if isinstance(decision, CallTool):
                self._note_ordered(decision)
            elif isinstance(decision, AskHuman):
                self._note_asked(decision)
            elif isinstance(decision, ToolCallRefused):
                self._note_refused(decision)
        hear = HEARD.get(type(arrival))
        if hear is not None:
            hear(self, arrival, read)
        self.seq = turn.seq

    def retrace(self, turn: Turn, read: Read) -> None:
        """Follow a turn that was judged elsewhere, from the journal: judge its calls again first."""
        for place, call in enumerate(self.to_judge(turn.arrival)):
            text = read(call.said or call.arguments)
            if text is None:
                self._is_lost = True
            else:
                self.judged(
                    replace(call, provenance=Provenance.UNTRACED), arguments_in(text), seq=turn.seq, place=place
                )
        self.follow(turn, read)

    def to_judge(self, arrival: Arrival) -> tuple[ProposedCall, ...]:
        """The calls of an arrival that the gate judges: those of an answer, or what the last filter made of them."""
        if isinstance(arrival, arrivals.ModelAnswered):
            self._seen = 0
            return () if self._filters else arrival.calls
        if isinstance(arrival, arrivals.CodeReturned) and arrival.calls:
            if arrival.is_filtered:
                self._seen += 1
                return arrival.calls if self._seen == self._filters else ()
            return () if self._filters else arrival.calls
        return ()

    def _note_ordered(self, command: CallTool) -> None:
        name = self._proposed.get((command.call_id, command.tool, command.arguments_hash))
        if name is None:
            return
        self._ordered[command.id] = (name, command.tool)
        waiting = self._gate.ledger.held(name)
        if waiting is not None:
            self._count_as_made(name, command.approved_by or _AUDIT)

    def _note_asked(self, question: AskHuman) -> None:
        if question.packet is None or question.packet.about:
            return
        call = question.packet.call
        name = self._proposed.get((call.call_id, call.tool, call.arguments_hash))
        if name is None:
            return
        self._asked[question.id] = name
        ledger = self._gate.ledger
        if ledger.held(name) is None and (made := ledger.open.pop(name, None)) is not None:
            # The gate would have let it pass, and somebody else objects.
            is_checked = self._gate.tools[made.tool].is_checked
            ledger.hold(made, trips=self._gate.authority.tripwire and is_checked)

    def _note_refused(self, refusal: ToolCallRefused) -> None:
        name = self._proposed.get((refusal.call_id, refusal.tool, refusal.arguments_hash))
        if name is None:
            return
        ledger = self._gate.ledger
        if refusal.code in (Refusal.APPROVAL_REJECTED, Refusal.APPROVAL_EXPIRED):
            if (held := ledger.held(name)) is not None:
                ledger.reject(held, _SILENCE)
            return
        ledger.take_back(name, is_counted=name in self._let and self._is_mutating(refusal.tool))

    def _note_changed(self, question_id: str, call: ProposedCall, turn: Turn, read: Read) -> None:
        """A person gave other arguments: what is called is theirs and counts; what was held was never made."""
        if not any(isinstance(decision, CallTool) for decision in turn.decisions):
            return
        held, text = self._asked.pop(question_id, None), read(call.arguments)
        if held is not None:
            self._gate.ledger.take_back(held, is_counted=held in self._let and self._is_mutating(call.tool))
        if text is None:
            self._is_lost = True
            return
        name = f"{turn.seq}/{question_id}"
        self._proposed[call.call_id, call.tool, call.arguments_hash] = name
        if self._gate.judge(name, call.tool, arguments_in(text)).decision is Decision.ALLOW:
            self._let.add(name)

    def _count_as_made(self, name: str, by: str) -> None:
        """Spend an approval at once, so that a second call on the same target is a repetition from now on."""
        ledger = self._gate.ledger
        waiting = ledger.held(name)
        assert waiting is not None, "only a held call is approved"
        ledger.approve(waiting, by)
        is_spent = bool(ledger.spend_approval(waiting))
        if is_spent and name not in self._let and self._is_mutating(waiting.tool):
            ledger.uses_of(waiting.tool).add(waiting.targets)

    def _is_mutating(self, tool: str) -> bool:
        declaration = self._gate.tools.get(tool)
        return declaration is not None and declaration.effect.is_mutating

    def hear_result(self, arrival: arrivals.ToolReturned | arrivals.ToolReconciled, read: Read) -> None:
        """Index what a tool returned: structure it declared, and everything else as text."""
        name, tool = self._ordered.pop(arrival.command_id, ("", ""))
        text = read(arrival.whole or arrival.content)
        if text is None:
            self._is_lost = True
            return
        self._gate.observe(name, tool, text)

    def hear_text(self, text: Text, read: Read) -> None:
        """Note that the model was shown a text that nobody vouches for."""
        said = read(text)
        if said is None:
            self._is_lost = True
        elif said:
            self._gate.observe("", "", said)

    def hear_person(self, text: Text, read: Read) -> None:
        """Take in words that a person added to the user's own."""
        said = read(text)
        if said is None:
            self._is_lost = True
        else:
            self._gate.hear(said)


def _origin(argument: Argument) -> ValueOrigin:
    where = ""
    if argument.span is not None:
        where = f"request[{argument.span[0]}:{argument.span[1]}]"
    elif argument.origin is not None:
        where = as_handle(argument.origin)
    value = shown_value(argument.value)
    code = argument.code.value if argument.code is not None else ""
    return ValueOrigin(
        argument.path, value if isinstance(value, str) else str(value)[:200], argument.bound_by, where, code
    )


# What arrivals bring that the model will read, or that a person said.
HEARD: dict[type[Arrival], Callable[[Tracer, Any, Read], None]] = {
    arrivals.ToolReturned: Tracer.hear_result,
    arrivals.ToolReconciled: Tracer.hear_result,
    arrivals.ToolFailed: lambda tracer, arrival, read: tracer.hear_text(arrival.error, read),
    arrivals.ContextFound: lambda tracer, arrival, read: tracer.hear_text(arrival.text, read),
    arrivals.ChildEnded: lambda tracer, arrival, read: tracer.hear_text(arrival.text, read),
    arrivals.CodeReturned: lambda tracer, arrival, read: tracer.hear_text(arrival.value, read),
    arrivals.QuestionAnswered: lambda tracer, arrival, read: tracer.hear_person(arrival.text, read),
    arrivals.FeedbackGiven: lambda tracer, arrival, read: tracer.hear_person(arrival.text, read),
}


def traced(manifest: Manifest, turns: Iterable[Turn], read: Read) -> Tracer:
    """The tracer of a run, made from its turns."""
    tracer = Tracer(manifest, read)
    for turn in turns:
        tracer.retrace(turn, read)
    return tracer
