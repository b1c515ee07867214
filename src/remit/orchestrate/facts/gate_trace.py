"""The trace of a run: the gate of provenance follows it, so that each proposed call is judged by where its values come from.

Rule 1: the gate is a function of the run's turns and the texts they name. It is no state of its own: a process that loses it
        makes it again from the journal, and an audit does the same. So calls are judged as they are written down.
Rule 2: a run is traced where a tool of it reads what may be outside, and where its boundary says so and a tool of it
        changes something; any other run pays nothing. Where the boundary has no `authority`, only such reads are
        judged: every change is for a person there.
Rule 3: the user's words are those of a root run. A child's prompt is text of a model: it binds nothing, so every effect
        of a child is for a person. What a child says may be anything that it could have read.
Rule 4: what the kernel made of a call is told to the gate: refused, held for another reason, approved, let pass by a
        boundary that only audits.
Rule 5: where a text is gone, it is unknown what the model has read: no checked call passes without a person any more.
Rule 6: structure counts where a tool returned what it promised. An error, or a result that failed its check, is text.
"""

from collections.abc import Callable, Iterable
from typing import Any

from remit.core.failure import Refusal
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival, Happened
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import AskHuman, StartChild
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import ToolCallRefused
from remit.core.journal.turn import Turn
from remit.core.limits.authority import Authority
from remit.core.limits.queue import QUEUE_MARK
from remit.core.limits.tool_trust import READS_RANK, Reads
from remit.core.limits.tools import Effect, ToolCall
from remit.core.record import JsonObject, Record, Text, replace
from remit.core.run.manifest import Manifest, has_orders
from remit.core.run.messages import Role
from remit.core.schema.json_text import parse_json
from remit.core.work.orders import (
    CONFIRM,
    LOOK_UP_ID,
    MADE,
    LeasedOrders,
    Order,
    orders_of,
    reads_of,
)
from remit.kernel.rules.tool import leaves_open
from remit.orchestrate.facts.decided_calls import Ordered, Proposals, calls_in
from remit.orchestrate.facts.gate_facts import declared, found, usable_by
from remit.orchestrate.facts.order_leases import used_by
from remit.orchestrate.facts.texts import Read
from remit.provenance.call_log import Call
from remit.provenance.gate import Gate, is_object, start
from remit.provenance.gate_verdict import SILENCE, Decision, GateVerdict, Objection
from remit.provenance.order_book import OrderBook, leased_book
from remit.provenance.order_checks import check_orders
from remit.provenance.origins.handles import HANDLE_SIGN, resolve

# Who answers where no person does.
_AUDIT = "audit"
_DELEGATED = "a child of this run may have done it already; approve the call, or let one run do both"
# Where a boundary traces nothing: reads that may be outside are judged, and a call that waits for a person stops none.
READS_ALONE = Authority(tripwire=False)


class Tracer:
    """The gate of one run, and which of its calls are which."""

    def __init__(self, manifest: Manifest, read: Read) -> None:
        """Follow a run from its beginning."""
        self.seq = -1
        self._manifest = manifest
        said = [read(message.content) for message in manifest.request.messages if message.role is Role.USER]
        # A fork of a child has no parent any more, but its words are still those of a model or a graph.
        is_beneath = manifest.is_delegated or manifest.parent is not None or manifest.depth > 0
        words = [] if is_beneath else [text for text in said if text is not None]
        # Whether a text is not kept any more; and whether, for that or because its host says so, it is unknown what was read.
        self.is_gone = self.is_lost = not is_beneath and len(words) < len(said)
        messages: list[JsonObject] = [{"role": "user", "content": text} for text in words]
        # What else stood before the model at the beginning: instructions, earlier exchanges, the prompt of a child.
        self._told = [read(message.content) or "" for message in manifest.request.messages]
        boundary, tools = manifest.boundary, [declared(tool) for tool in manifest.tools]
        self._judges_changes = boundary.authority is not None or has_orders(manifest)
        self._gate = start(
            messages,
            tools,
            boundary.authority or READS_ALONE,
            plan=None if manifest.host is None or manifest.host.plan is None else dict(manifest.host.plan),
            read=_read_before(manifest),
            trusted_hosts=boundary.trusted_hosts,
            orders=manifest.request.orders,
        )
        if manifest.leased is not None:
            self._gate.book = leased_book(manifest.leased, self._gate.tools)
        # What children were leased, by the command that started each; the run itself does none of it meanwhile.
        self.leases: dict[str, LeasedOrders] = {}
        # The latest verdict in full, for callers that show more of it than a call keeps.
        self.verdict: GateVerdict | None = None
        self._proposals = Proposals()
        # Whether a child was started that may do what this run is asked for; what it did is not known here.
        self._has_delegated = False
        # Whether each yes to a question was to the values of its call, too.
        self._for_values: dict[str, list[bool]] = {}
        # What people are offered to choose from, by the question.
        self._options: dict[str, tuple[str, ...]] = {}
        self._at_ms = 0
        # The question whether the orders that a model made are wanted.
        self._confirming = ""
        self._filters_left = 0
        # Calls of a turn that is not written yet, and those that the gate let pass when it judged them.
        self._judged: set[str] = set()
        self._let: set[str] = set()

    @property
    def gate(self) -> Gate:
        """The gate that follows the run, for callers that show what it found."""
        return self._gate

    @property
    def listed_orders(self) -> str:
        """The orders as a person reads them, with what was looked up for them; empty where there are none."""
        book = self._gate.book
        return "" if book is None else "\n".join(book.lines())

    @property
    def order_reads(self) -> tuple[ToolCall, ...]:
        """The reads that fill the orders of the run."""
        book = self._gate.book
        reads = () if book is None else reads_of(book.orders)
        return tuple([ToolCall(f"{LOOK_UP_ID}{place}", *read) for place, read in enumerate(_parsed(reads), 1)])

    def with_orders(self, orders: tuple[Order, ...]) -> OrderBook:
        """The book with these orders in place of others; raises RequestRejected for what no tool could carry out."""
        check_orders(orders, self._gate.tools)
        return self._amended(orders)

    def _amended(self, orders: tuple[Order, ...]) -> OrderBook:
        """The book with these orders in place of others, filled from what was looked up."""
        book = self._gate.book
        return OrderBook(orders, self._gate.tools, is_confirmed=False) if book is None else book.amended(orders)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all that was read so far, asked for or not: a run that goes on from here begins with them."""
        return self._gate.grounds.has_read

    def is_at(self, seq: int) -> bool:
        """Whether it has followed the run up to this turn and knows of nothing that came to nothing after it."""
        return self.seq == seq and not self._judged

    def resolved(self, arguments: Any, canonical: bytes = HANDLE_SIGN) -> Any:
        """The arguments with every handle replaced by the value it names; their canonical form tells that there is none."""
        if HANDLE_SIGN not in canonical or not self._judges_changes or not is_object(arguments):
            return arguments
        return resolve(arguments, self._gate.grounds.index)[0]

    def unseen_links(self, text: str) -> tuple[str, ...]:
        """The links in a text that neither a message nor any result has shown."""
        return self._gate.grounds.unseen_links(text, self._told)

    def traced(self, call: ProposedCall, read: Read, *, seq: int, place: int) -> ProposedCall:
        """A call with what the gate finds about it: the call at this place of the answer that turn `seq` brings."""
        if call.violations or call.filtered or call.tool not in self._gate.tools:
            return call
        text = read(call.said or call.arguments)
        if text is None:
            self._miss()
            return call
        if self.is_lost:
            # It is unknown what it was.
            self._gate.grounds.has_private = True
        verdict = self._judge(_name(seq, place), call.tool, text)
        self._judged.add(_name(seq, place))
        is_read = not self._is_mutating(call.tool)
        if not (is_read or self._judges_changes):
            return call
        if verdict.is_free:
            # Conditions look at what was read before any call, a read among them.
            return replace(call, labels=verdict.labels) if verdict.labels and self._judges_changes else call
        judged = replace(call, **found(verdict, is_lost=self.is_lost))
        is_bound = judged.provenance is Provenance.BOUND and verdict.order is None
        if self._has_delegated and is_bound and self._is_mutating(call.tool):
            return replace(
                judged, provenance=Provenance.UNBOUND, objection=Objection.REPEAT.value, reasons=(_DELEGATED,)
            )
        return judged

    def follow(self, turn: Turn, read: Read) -> None:
        """Tell the gate what a turn made of the calls it judged, and show it what the turn brought."""
        arrival, self._at_ms = turn.arrival, turn.at_ms
        if (calls := calls_in(arrival)) is not None:
            names = [_name(turn.seq, place) for place in range(len(calls))]
            self._proposals.bring(calls, [name if name in self._judged else "" for name in names])
            self._judged.difference_update(names)
        if isinstance(arrival, arrivals.ApprovalGiven):
            self._note_yes(arrival, turn, read)
        if isinstance(arrival, arrivals.ChildEnded):
            self._end_lease(arrival)  # What comes back may be leased to the next child in the same turn.
        for decision, name in self._proposals.decided(turn.decisions):
            if isinstance(decision, ToolCallRefused):
                self._note_refused(name, decision, arrival)
            elif isinstance(decision, AskHuman) and decision.packet is not None:
                self._note_held(name)
            else:
                self._note_made(name, decision.tool, arrival)
        for decided in turn.decisions:
            if isinstance(decided, StartChild):
                self._proposals.order(decided.id, Ordered("", self._most_private(decided)))
                usable = usable_by(decided, self._manifest)
                self._lease(decided.id, [tool.name for tool in usable])
                self._has_delegated = self._has_delegated or any(tool.effect.is_mutating for tool in usable)
            elif isinstance(decided, AskHuman) and decided.question == CONFIRM and decided.answer:
                self._confirming = decided.id
            elif isinstance(decided, AskHuman) and decided.options:
                self._options[decided.id] = tuple([option.strip() for option in decided.options])
        hear = HEARD.get(type(arrival))
        if hear is not None:
            hear(self, arrival, read)
        self.seq = turn.seq

    def _note_yes(self, arrival: arrivals.ApprovalGiven, turn: Turn, read: Read) -> None:
        """A person agrees: to the orders that a model made, or to a call, perhaps with other arguments."""
        if arrival.command_id == self._confirming:
            said = read(arrival.orders)
            if said is None:
                self._miss()
            elif said:
                self._gate.book = self._amended(orders_of(parse_json(said)))
            self._gate.confirm(arrival.by, turn.at_ms)
        if self._manifest.host is not None:
            self._for_values.setdefault(arrival.command_id, []).append(arrival.for_values)
        if arrival.modified is not None:
            self._note_changed(arrival.command_id, arrival.modified, turn, read)

    def retrace(self, turn: Turn, read: Read) -> None:
        """Follow a turn that was judged elsewhere, from the journal: judge its calls again first."""
        for place, call in enumerate(self._to_judge(turn.arrival)):
            self.traced(replace(call, provenance=Provenance.UNTRACED), read, seq=turn.seq, place=place)
        self.follow(turn, read)

    def _judge(self, name: str, tool: str, text: str) -> GateVerdict:
        self.verdict = verdict = self._gate.verdict_on(name, tool, arguments_in(text))
        if verdict.decision is Decision.ALLOW:
            self._let.add(name)
        return verdict

    def _to_judge(self, arrival: Arrival) -> tuple[ProposedCall, ...]:
        """The calls of an arrival that the gate judges: those of an answer, or what the last filter made of them."""
        calls = calls_in(arrival)
        if calls is None:
            return ()
        is_filtered = isinstance(arrival, arrivals.CodeReturned) and arrival.is_filtered
        self._filters_left = self._filters_left - 1 if is_filtered else len(self._manifest.filters)
        return () if self._filters_left else calls

    def _note_made(self, name: str, tool: str, arrival: Arrival) -> None:
        """A call is ordered. What was held counts as made at once: a second one on the same target is a repetition."""
        ledger = self._gate.ledger
        held = ledger.held(name)
        if held is not None:
            if isinstance(arrival, arrivals.ApprovalGiven) and all(self._for_values.pop(arrival.command_id, (False,))):
                self._gate.grounds.approved |= {(held.tool, kind, value) for kind, value in held.unbound}
            ledger.approve(held, arrival.by if isinstance(arrival, arrivals.ApprovalGiven) else _AUDIT)
            ledger.spend_approval(held)
            if name not in self._let and isinstance(arrival, arrivals.ApprovalGiven):
                self._gate.cover(held.tool)
            if name not in self._let and self._is_mutating(held.tool):
                ledger.uses_of(held.tool).add(held.targets)
        elif (made := ledger.open.get(name)) is not None and made.tool != tool and self._is_mutating(tool):
            ledger.uses_of(tool).add(made.targets)  # An equivalent tool performs it, and has then done so.

    def _note_held(self, name: str) -> None:
        """A person is asked about a call. Where the gate would have let it pass, another check objects."""
        ledger = self._gate.ledger
        if ledger.held(name) is None and (made := ledger.open.pop(name, None)) is not None:
            is_checked = self._gate.tools[made.tool].is_checked
            ledger.hold(made, trips=self._gate.authority.tripwire and is_checked)

    def _note_refused(self, name: str, refusal: ToolCallRefused, arrival: Arrival) -> None:
        """A call is turned away: by a person or by silence for the rest of the run, by anything else for now."""
        ledger = self._gate.ledger
        held = ledger.held(name)
        if refusal.code in (Refusal.APPROVAL_REJECTED, Refusal.APPROVAL_EXPIRED):
            if held is not None:
                self._note_no(held, arrival)
        elif held is None or refusal.code != Refusal.BUDGET_EXHAUSTED:
            # Where no person may be asked any more, what is held stays so for good, and so does the wire.
            self._take_back(name, refusal.tool)

    def _note_no(self, held: Call, arrival: Arrival) -> None:
        """A call that was held is not to be made. Only a person's answer re-arms the wire: silence and a full queue do not."""
        ledger = self._gate.ledger
        by = arrival.by if isinstance(arrival, arrivals.ApprovalRefused) else SILENCE
        tripped = ledger.tripped
        if by.startswith(QUEUE_MARK):
            ledger.take_back(held.call_id, is_counted=held.call_id in self._let and self._is_mutating(held.tool))
        else:
            ledger.reject(held, by)
        if by == SILENCE or by.startswith(QUEUE_MARK):
            ledger.tripped = tripped

    def _note_changed(self, question_id: str, call: ProposedCall, turn: Turn, read: Read) -> None:
        """A person gave other arguments: what is called is theirs and counts; what was held was never made."""
        held = self._proposals.asked(question_id)
        if not held or any(isinstance(decision, ToolCallRefused) for decision in turn.decisions):
            return
        self._take_back(held, call.tool)
        name, text = _name(turn.seq, 0), read(call.arguments)
        self._proposals.change(question_id, name)
        if text is None:
            self._miss()
        elif (verdict := self._judge(name, call.tool, text)).decision is Decision.REFUSE:
            # A person said no to these bytes once; the person who gives them now says yes.
            self._gate.ledger.rejected.pop(verdict.digest, None)
            self._judge(name, call.tool, text)

    def _take_back(self, name: str, tool: str) -> None:
        self._gate.ledger.take_back(name, is_counted=name in self._let and self._is_mutating(tool))

    def _is_mutating(self, tool: str) -> bool:
        return self._gate.tools[tool].effect.is_mutating

    def _most_private(self, child: StartChild) -> str:
        """The tool by which a child could have read the most private things; empty where it could read none."""
        reads = {
            tool.name: READS_RANK[tool.trust.reads]
            for tool in usable_by(child, self._manifest)
            if tool.effect is Effect.READ and tool.trust.reads is not Reads.PUBLIC
        }
        return max(reads, key=lambda name: reads[name], default="")

    def hear_result(self, arrival: arrivals.ToolReturned | arrivals.ToolReconciled, read: Read) -> None:
        """Index what a tool returned: structure it declared, and everything else as text."""
        if isinstance(arrival, arrivals.ToolReturned) and arrival.is_shared:
            return  # What was read is shown by itself, once.
        name, tool = self._proposals.ordered(arrival.command_id)
        is_refuted = isinstance(arrival, arrivals.ToolReturned) and bool(arrival.refuted)
        is_denied = isinstance(arrival, arrivals.ToolReconciled) and arrival.happened is not Happened.YES
        is_promised = not (arrival.violations or is_refuted or is_denied)
        self._show(name if is_promised else "", tool, read(arrival.whole or arrival.content))
        if isinstance(arrival, arrivals.ToolReconciled):
            self._note_outcome(name, tool, arrival.happened)

    def hear_failure(self, arrival: arrivals.ToolFailed, read: Read) -> None:
        """Note the error of a tool, which may tell what was read; that was asked for if the call was."""
        if arrival.is_shared:
            return
        name, tool = self._proposals.ordered(arrival.command_id)
        made = self._gate.ledger.open.get(name)
        self._show("", "" if made is not None and made.asked else tool, read(arrival.error))
        if not leaves_open(arrival):
            self._note_outcome(name, tool, Happened.NO)
        elif made is not None and self._is_idempotent(tool):
            self._gate.ledger.let_again(name)

    def hear_judged(self, arrival: arrivals.OutcomeJudged, read: Read) -> None:
        """Note what a person says became of a call."""
        self._note_outcome(*self._proposals.ordered(arrival.command_id), arrival.happened)

    def _note_outcome(self, name: str, tool: str, happened: Happened) -> None:
        """A call that did nothing was not used: to make it again repeats nothing."""
        if happened is Happened.NO and name and self._is_mutating(tool):
            self._gate.ledger.undo(name)

    def _is_idempotent(self, tool: str) -> bool:
        return any(one.name == tool and one.idempotent for one in self._manifest.tools)

    def _lease(self, command_id: str, tools: Iterable[str]) -> None:
        book, closed = self._gate.book, self._gate.ledger.carried_out
        leased = None if book is None else book.lease(frozenset(tools), closed)
        if book is not None and leased is not None:
            self.leases[command_id] = leased
            closed.update(leased.numbers)
            book.leased.update(leased.numbers)

    def _end_lease(self, arrival: arrivals.ChildEnded) -> None:
        """Take back what a child was leased and has not used up."""
        leased, book = self.leases.pop(arrival.command_id, None), self._gate.book
        if leased is None or book is None:
            return
        book.leased.difference_update(leased.numbers)
        self._gate.ledger.carried_out.difference_update(set(leased.numbers).difference(used_by(arrival, leased)))

    def hear_child(self, arrival: arrivals.ChildEnded, read: Read) -> None:
        """Note what a child said: text, and as private as anything it could have read."""
        self._show("", self._proposals.ordered(arrival.command_id).tool, read(arrival.text))

    def hear_code(self, arrival: arrivals.CodeReturned, read: Read) -> None:
        """Note what code returned: orders that a model made, or a text that nothing vouches for."""
        said = read(arrival.value) if arrival.kind == MADE else None
        if said is None:
            self.hear_text(arrival.value, read)
        else:
            self._gate.take_orders(orders_of(parse_json(said)))

    def hear_text(self, text: Text, read: Read) -> None:
        """Note that the model was shown a text that no source vouches for."""
        if text:
            self._show("", "", read(text))

    def hear_shown(self, arrival: arrivals.TextShown, read: Read) -> None:
        """Note what an agent elsewhere was shown. Of several calls the gate takes one, and trusts no choice of it."""
        if arrival.is_lost:
            self.is_lost = True
        elif arrival.orders:
            self._hear_orders(arrival, read)
        else:
            self._show(None if arrival.is_shared else "", arrival.tool, read(arrival.text))

    def _hear_orders(self, arrival: arrivals.TextShown, read: Read) -> None:
        said = read(arrival.orders)
        if said is None:
            self._miss()
            return
        self._gate.book = self._amended(orders_of(parse_json(said)))
        if arrival.by:
            self._gate.confirm(arrival.by, self._at_ms)

    def hear_answer(self, arrival: arrivals.QuestionAnswered, read: Read) -> None:
        """Take in what a person answered. An answer that picks an option is the model's words, which bind nothing."""
        said = read(arrival.text)
        if said is not None and said.strip() in self._options.pop(arrival.command_id, ()):
            self._show("", "", said)
        else:
            self.hear_person(arrival.text, read)

    def hear_person(self, text: Text, read: Read) -> None:
        """Take in words that a person added to the user's own."""
        said = read(text)
        if said is None:
            self._miss()
        else:
            self._gate.hear(said)

    def _miss(self) -> None:
        self.is_gone = self.is_lost = True

    def _show(self, name: str | None, tool: str, text: str | None) -> None:
        """Have the gate observe a text. One that is gone keeps its number, so that handles name what they named."""
        if text is None:
            self._miss()
            name, tool, text = "", "", ""
        self._gate.observe(name, tool, text)


def _read_before(manifest: Manifest) -> tuple[str, ...]:
    """Labels of what was read before the run began: by the run above it, and in earlier exchanges of its session.

    Context that is looked up for the run has no tool that could say whose knowledge it is, so it counts as private.
    """
    earlier = () if manifest.session is None else manifest.session.read
    context = (Reads.PRIVATE.value,) if manifest.retrieves_context else ()
    return (*manifest.read, *earlier, *context)


def _parsed(reads: Iterable[tuple[str, str]]) -> Iterable[tuple[str, JsonObject]]:
    return ((tool, parse_json(arguments)) for tool, arguments in reads)


def _name(seq: int, place: int) -> str:
    return f"{seq}/{place}"


# What arrivals bring that the model will read, or that a person said.
HEARD: dict[type[Arrival], Callable[[Tracer, Any, Read], None]] = {
    arrivals.ToolReturned: Tracer.hear_result,
    arrivals.ToolReconciled: Tracer.hear_result,
    arrivals.ToolFailed: Tracer.hear_failure,
    arrivals.ChildEnded: Tracer.hear_child,
    arrivals.ContextFound: lambda tracer, arrival, read: tracer.hear_text(arrival.text, read),
    arrivals.CodeReturned: Tracer.hear_code,
    arrivals.QuestionAnswered: Tracer.hear_answer,
    arrivals.OutcomeJudged: Tracer.hear_judged,
    arrivals.TextShown: Tracer.hear_shown,
    arrivals.FeedbackGiven: lambda tracer, arrival, read: tracer.hear_person(arrival.text, read),
}


def part_shown(turn: Turn) -> Record:
    """The part of a turn in which everything stands that a gate is shown of it."""
    arrival = turn.arrival
    return arrival.manifest.request if isinstance(arrival, arrivals.RunStarted) else arrival


def traced(manifest: Manifest, turns: Iterable[Turn], read: Read) -> Tracer:
    """The tracer of a run, made from its turns."""
    tracer = Tracer(manifest, read)
    for turn in turns:
        tracer.retrace(turn, read)
    return tracer
