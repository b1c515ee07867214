"""The gate: one run's judge over calls. It is pure and deterministic: the same sequence gives the same verdicts and state.

Rule 1: what a model says is no evidence. A call passes when every control value is bound, its payload points nowhere
        unbound, the words ask for it, it repeats nothing, and no other call is held.
Rule 2: effect `none` and reads that stay on the machine pass, unless they have no schema and are given arguments: what these
        steer is then not known. One of effect `none` only computes. Reads over the network pass until something private was
        read; from then on they are judged like effects, because a link can carry data out, unless all they reach are
        hosts that the operator trusts. So is a read that does not say whether it leaves, where its arguments hold
        something to carry; one yes of a person covers such a tool for the run.
Rule 3: the first held call trips the wire: until a person answers it, no effect happens unattended.
Rule 4: an approval covers exactly the bytes that were held, once. A refusal by a person holds for the run.
Rule 5: a result counts as trusted structure only when its call was let through; any other result is text.
Rule 6: where the run has orders, an effect is compared with them: one that equals an open order passes and uses it up, and
        the words are not read. Unconfirmed orders narrow what the words allow, and widen nothing.
Rule 7: of a list of messages the last one of the user asks; those before it were answered, and ask for nothing again.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.proposed_call import NOBODY_ANSWERED, SAID_NO
from remit.core.limits.authority import Authority, Beyond, PlanSource, authority_json, reaches
from remit.core.limits.tool_trust import Repeat
from remit.core.limits.tools import Effect
from remit.core.record import JsonObject, replace
from remit.core.work.orders import Order, told_order
from remit.provenance.call_log import ApprovalScope, Call, CallLog, call_bytes, call_digest, lookup_of
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import (
    FIXES,
    SILENCE,
    Argument,
    Decision,
    GateVerdict,
    Objection,
    PlanShown,
    shown_value,
)
from remit.provenance.order_book import OrderBook, reads_privately
from remit.provenance.origins.closed_set import close_set
from remit.provenance.origins.handles import HANDLE_SIGN, resolve
from remit.provenance.origins.labels import Observation, OriginPlace, index_key
from remit.provenance.origins.records import groups_along, read_content, readers_of, references_of
from remit.provenance.origins.windows import is_whole
from remit.provenance.repeated_effects import objection_to, targets_of
from remit.provenance.toolbox import GatedTool, Toolbox, toolbox_of
from remit.provenance.values.binding import bind
from remit.provenance.values.grounds import LABELS, Grounds
from remit.provenance.values.leaves import LEAVES_MAX, Leaf
from remit.provenance.values.left_out import left_out
from remit.provenance.values.outward import CARRIED_CHARS_MAX, goes_to_trusted, holds_something_to_carry, repeats_in
from remit.provenance.values.payload import check_payload, is_own, is_private_flow
from remit.provenance.values.understood import not_understood
from remit.provenance.words.asked_effects import Asked

# Counts up when a rule changes what is allowed, so that the hash in a verdict names the rules it was made by.
RULES_VERSION = 8

GATE_INVALID = "GATE_INVALID"
CALL_NOT_HELD = "CALL_NOT_HELD"

_PLAIN_NAMES = frozenset({str})
_NO_HANDLES: Mapping[str, OriginPlace] = MappingProxyType({})
# The order in which objections speak: what the call is, what it says, what it carries, whether it was asked for.
_BY_WEIGHT = (
    Objection.UNDECLARED,
    Objection.KIND_MISMATCH,
    Objection.PROVENANCE_UNBOUND,
    Objection.RECORD_AMBIGUOUS,
    Objection.PAYLOAD_REFERENCE,
)
_REPEATING = (Objection.REPEAT, Objection.QUOTA, Objection.BEYOND_ORDERS)


class Gate:
    """The state of one run: its evidence, what was let through, what is held and what people said."""

    def __init__(
        self,
        prompts: list[str],
        tools: list[JsonObject],
        authority: Authority,
        plan: dict[str, int] | None = None,
        *,
        earlier: int = 0,
        read: tuple[str, ...] = (),
        trusted_hosts: tuple[str, ...] = (),
        orders: tuple[Order, ...] = (),
    ) -> None:
        toolbox = opened_tools(tools)
        self.tools_json = tools
        self.tools: dict[str, Declaration] = toolbox.declarations
        self.authority = authority
        self.model_plan = dict(plan or {})
        self.grounds = Grounds(prompts, self.tools, toolbox.words, authority, earlier=earlier, read=read)
        self.ledger = CallLog()
        self.trusted_hosts = trusted_hosts
        # Reads that do not say whether they leave, and that a person let pass once.
        self.covered: set[str] = set()
        # What the caller of the run wants done, where that was said as orders.
        self.book = OrderBook(orders, self.tools, is_confirmed=True) if orders else None
        # Whether something private was read that no order lists.
        self._has_unlisted = bool(set(read) - {"untrusted"})
        self.rules = _rules_hash(toolbox, authority, trusted_hosts)
        self._tools = toolbox.tools
        # What of the order of the call at hand is not understood.
        self._note = ""

    @property
    def has_read(self) -> tuple[str, ...]:
        """What was read so far, asked for or not; a host gives it to the gate of the next exchange as `read`."""
        return self.grounds.has_read

    def take_orders(self, orders: tuple[Order, ...]) -> None:
        """Take in orders that a model made of the user's words; until a person confirms them they only narrow."""
        self.book = OrderBook(orders, self.tools, is_confirmed=False)

    def confirm(self, by: str, at_ms: int) -> None:
        """Take in that a person wants these orders."""
        assert self.book is not None, "only orders that were made are confirmed"
        self.book.is_confirmed, self.book.confirmed_by, self.book.confirmed_at_ms = True, by, at_ms

    def hear(self, prompt: str) -> None:
        """Take in a further message that the user wrote."""
        self.grounds.hear(prompt)

    def verdict_on(self, call_id: str | None, tool: str, arguments: Any) -> GateVerdict:
        """Decide on one proposed call."""
        call_id = self.ledger.name_call(call_id)
        known = self._tools.get(tool)
        if known is None:
            return self._refused(call_id, tool, f"tool {shown_value(tool)!r} is not declared")
        if not is_object(arguments):
            return self._refused(call_id, tool, "arguments must be a JSON object")
        try:
            resolved, handles, digest = self._pinned(tool, arguments)
        except (NotCanonical, RecursionError) as error:
            return self._refused(call_id, tool, f"arguments cannot be pinned: {str(error)[:200]}")
        call = Call(call_id, tool, digest)
        held = self.ledger.held(call_id)
        if held is not None and held.digest != digest:
            return self._refused(call_id, tool, f"call {call_id!r} names another call that is held; use an id once")
        if self.book is not None and known.is_mutating:
            matched = self.book.match(tool, resolved, self.ledger.carried_out, has_unlisted=self._has_unlisted)
            call = replace(call, order=matched.number, beyond=matched.why)
        verdict = self._ruled(call, known, known.leaves.of(resolved), handles)
        return replace(verdict, arguments=resolved) if handles else verdict

    def observe(self, call_id: str | None, tool: str, content: Any) -> int:
        """Take in the result of a call and give its number, which handles name: `$obs0`."""
        known = self._tools.get(tool)
        call = self.ledger.returned(call_id, tool)
        if known is None or call is None:
            return self._observe_text(call_id or "", tool, content)
        parsed = read_content(content)
        groups, texts = groups_along(known.layout, parsed, self.authority.infer_fields)
        is_whole_listing = is_whole(call.bound, groups.values())
        is_written = self.ledger.written.taken_from(groups, self.grounds.words, self.grounds.index)
        observation = Observation(
            call.call_id,
            tool,
            groups,
            references_of(texts),
            chosen=call.chosen and is_whole_listing,
            asked=call.asked,
            is_earlier=call.is_earlier,
            located=call.located,
            untrusted=bool(texts) or is_written,
            arguments=call.arguments,
            readers=readers_of(known.declaration, parsed),
            names=call.names,
        )
        if self.book is not None:
            self._book_result(call, known.declaration, observation)
        return self.grounds.add(observation)

    def answer(self, call_id: str, approve: bool, by: str, scope: ApprovalScope = ApprovalScope.CALL) -> None:  # noqa: FBT001
        """Take in a person's answer to a held call; it holds for exactly the bytes that were held."""
        if not by:
            raise RequestRejected(GATE_INVALID, f"answer to call {call_id[:80]!r}: by='' is empty; say who answers")
        call = self.ledger.held(call_id)
        if call is None:
            message = f"call {call_id[:80]!r} is not held; answer one of {', '.join(self.ledger.held_ids()) or 'none'}"
            raise RequestRejected(CALL_NOT_HELD, message)
        if not approve:
            self.ledger.reject(call, by)
            return
        self.ledger.approve(call, by)
        self.cover(call.tool)
        if scope is ApprovalScope.VALUE:
            self.grounds.approved |= {(call.tool, kind, value) for kind, value in call.unbound}

    def cover(self, tool: str) -> None:
        """Take in a yes of a person to a call that was held: it covers a tool that does not say whether it leaves."""
        declaration = self.tools[tool]
        if declaration.may_carry and not declaration.network:
            self.covered.add(tool)

    def _pinned(self, tool: str, arguments: JsonObject) -> tuple[JsonObject, Mapping[str, OriginPlace], str]:
        """The arguments with their handles replaced, the origins of these, and the hash of the call as it will be made."""
        data, handles = call_bytes(tool, arguments), _NO_HANDLES
        if HANDLE_SIGN in data:
            arguments, handles = resolve(arguments, self.grounds.index)
            data = call_bytes(tool, arguments)
        return arguments, handles, call_digest(data)

    def _ruled(self, call: Call, tool: GatedTool, leaves: tuple[Leaf, ...], handles: Any) -> GateVerdict:
        grounds, declaration, self._note = self.grounds, tool.declaration, ""
        is_read = not tool.is_mutating and not self._may_carry_out(declaration, leaves)
        # An argument that no schema names is undeclared, of a tool with a schema as of one without.
        is_named = tool.has_schema and all(leaf.is_known for leaf in leaves)
        if is_read and (is_named or not leaves or declaration.effect is Effect.NONE):
            return self._looked_up(call, tool, leaves, handles)
        if self._is_ordered(call) and call.digest not in self.ledger.rejected:
            ordered = self._ordered(call, leaves)
            return self._let_through(lookup_of(call, tool, ordered, grounds), tool, ordered)
        control = [
            bind(leaf, grounds, declaration, handles.get(leaf.path) if handles else None)
            for leaf in leaves
            if not leaf.is_payload
        ]
        payload = [leaf for leaf in leaves if leaf.is_payload]
        if reaches(self.authority.closed_set, declaration.stakes) and self._is_own(payload):
            control = close_set(control, [leaf.value for leaf in payload], grounds, declaration.name)
        arguments = (*control, *[check_payload(leaf, grounds, declaration) for leaf in payload])
        # A tool that may repeat itself at will has no targets to compare with earlier calls.
        targets = () if declaration.repeat is Repeat.FREE else targets_of(control, grounds.words)
        call = lookup_of(call, tool, arguments, grounds, targets=targets)
        by = self.ledger.spend_approval(call)
        if by:
            return self._let_through(call, tool, arguments, approved_by=by)
        code = self._objection(tool, arguments, len(control))
        if call.beyond and (code is None or self._is_comparing):
            code = Objection.BEYOND_ORDERS
        if code in _REPEATING and call.digest in self.ledger.again:
            code = None
        if call.digest in self.ledger.rejected:
            verdict = self._verdict(call, Decision.REFUSE, code or Objection.NOT_ASKED, arguments)
            by_person = self.ledger.rejected[call.digest] != SILENCE
            return replace(verdict, reasons=(SAID_NO if by_person else NOBODY_ANSWERED,))
        if code is None and self.ledger.tripped:
            code = Objection.TRIPPED
        if code is None:
            return self._let_through(call, tool, arguments)
        if code is Objection.BEYOND_ORDERS and self.authority.beyond is Beyond.REFUSE:
            return self._verdict(call, Decision.REFUSE, code, arguments)
        unbound = tuple((one.kind, index_key(one.value)) for one in arguments if one.code and _is_scalar(one.value))
        self.ledger.hold(replace(call, unbound=unbound), trips=self.authority.tripwire and tool.is_checked)
        return self._verdict(call, Decision.ASK, code, arguments)

    @property
    def _is_comparing(self) -> bool:
        """Whether effects are compared with orders that were confirmed, so that the words are not read."""
        return self.book is not None and self.book.is_confirmed

    def _is_ordered(self, call: Call) -> bool:
        return bool(call.order) and self._is_comparing

    def _ordered(self, call: Call, leaves: tuple[Leaf, ...]) -> tuple[Argument, ...]:
        """The arguments of an effect that equals an order: it is what supplies each of them, and no word is read for them."""
        assert self.book is not None, "only a run with orders compares with them"
        bound_by = told_order(self.book.used(call.order))
        return tuple([Argument(leaf.path, leaf.value, bound_by, kind=leaf.kind) for leaf in leaves])

    def _book_result(self, call: Call, declaration: Declaration, observation: Observation) -> None:
        """Fill the orders with a result, and note what was read that none of them lists."""
        assert self.book is not None, "only a run with orders fills them"
        self.book.note(call.digest, call.order, observation, self.ledger.carried_out)
        # What an ordered effect returns is part of the order.
        if reads_privately(declaration) and not call.order and not self.book.lists(declaration.name):
            self._has_unlisted = True

    def _objection(self, tool: GatedTool, arguments: tuple[Argument, ...], control: int) -> Objection | None:
        """The first objection to a call, in the order in which they weigh. The first `control` arguments are no payload."""
        if len(arguments) > LEAVES_MAX or tool.declaration.is_bare or not tool.has_schema:
            return Objection.UNDECLARED
        if codes := [argument.code for argument in arguments if argument.code is not None]:
            return min(codes, key=_BY_WEIGHT.index)
        if tool.may_leave and is_private_flow(arguments, arguments[control:], self.grounds):
            return Objection.PRIVATE_FLOW
        if not tool.is_mutating:
            # Each of them is bound, and so many of them spell something.
            is_spelled = repeats_in([argument.value for argument in arguments]) > CARRIED_CHARS_MAX
            return Objection.PRIVATE_FLOW if is_spelled else None
        declaration = tool.declaration
        asked = self._asked(declaration)
        if not asked.count:
            return Objection.NOT_ASKED
        if not any(one.bound_by != "default" for one in arguments[:control]) and not all(
            map(is_own, arguments[control:])
        ):
            return Objection.PROVENANCE_UNBOUND
        if tool.choosable and any(left_out(tool.choosable, arguments, declaration, self.grounds)):
            return Objection.PROVENANCE_UNBOUND
        uses = self.ledger.uses_of(declaration.name)
        # A tool that may repeat itself at will prepares what another does: a folder for a download.
        rivals = [other for other in asked.others if other not in self.grounds.tool_words.preparing]
        others = [self.ledger.uses_of(other) for other in rivals]
        return objection_to(
            arguments[:control], declaration, uses, asked, self.grounds.asking, others
        ) or self._not_understood(arguments, control, declaration)

    def _not_understood(
        self, arguments: tuple[Argument, ...], control: int, declaration: Declaration
    ) -> Objection | None:
        """The objection to a call whose order is not understood whole; what of it is not, the verdict tells."""
        self._note = not_understood(arguments[:control], arguments[control:], declaration, self.grounds)
        return Objection.PROVENANCE_UNBOUND if self._note else None

    def _asked(self, declaration: Declaration) -> Asked:
        """What the plan asks of a tool; without a plan every tool is asked for once."""
        asked = self.grounds.plan.of(declaration.name)
        if self.authority.plan is PlanSource.WORDS:
            return asked
        if self.authority.plan is PlanSource.MODEL:
            return replace(asked, count=self.model_plan.get(declaration.name, 0))
        return replace(asked, count=max(asked.count, 1))

    def _is_own(self, payload: list[Leaf]) -> bool:
        return all(isinstance(leaf.value, str) and self.grounds.asking.owns(leaf.value) for leaf in payload)

    def _may_carry_out(self, declaration: Declaration, leaves: tuple[Leaf, ...]) -> bool:
        """Whether a read is to be judged by what it would carry out of the machine."""
        if not declaration.may_carry or not self.grounds.has_private:
            return False
        if goes_to_trusted(leaves, declaration.hosts, self.trusted_hosts):
            return False
        if declaration.network:
            return True
        return declaration.name not in self.covered and holds_something_to_carry(leaves, self.grounds.asking)

    def _looked_up(self, call: Call, tool: GatedTool, leaves: tuple[Leaf, ...], handles: Any) -> GateVerdict:
        """A read on this machine passes; what its arguments rest on decides what its result may select."""
        declaration = tool.declaration
        if declaration.effect is Effect.NONE and not leaves:
            arguments: tuple[Argument, ...] = ()
        else:
            known = [leaf if leaf.is_known else replace(leaf, is_known=True) for leaf in leaves[:LEAVES_MAX]]
            arguments = tuple([bind(leaf, self.grounds, declaration, handles.get(leaf.path)) for leaf in known])
        call = lookup_of(call, tool, arguments, self.grounds)
        self.ledger.let_through(call)
        return replace(self._verdict(call, Decision.ALLOW, None, arguments), is_free=True)

    def _let_through(
        self, call: Call, tool: GatedTool, arguments: tuple[Argument, ...], *, approved_by: str = ""
    ) -> GateVerdict:
        verdict = self._verdict(call, Decision.ALLOW, None, arguments)
        self.ledger.let_through(call)
        if tool.is_mutating:
            self.ledger.use(call)
        return replace(verdict, approved_by=approved_by) if approved_by else verdict

    def _verdict(
        self, call: Call, decision: Decision, code: Objection | None, arguments: tuple[Argument, ...]
    ) -> GateVerdict:
        asked = self.grounds.plan.of(call.tool)
        return GateVerdict(
            call_id=call.call_id,
            tool=call.tool,
            decision=decision,
            code=code,
            reasons=(call.beyond,) if code is Objection.BEYOND_ORDERS else _reasons(code, arguments, self._note),
            args=arguments,
            plan=PlanShown(asked.count, self.ledger.uses_of(call.tool).calls, asked.words),
            labels=self.grounds.labels,
            rules=self.rules,
            digest=call.digest,
            fix=FIXES[code] if code else "",
            order=self.book.used(call.order) if self.book is not None and self._is_ordered(call) else None,
        )

    def _refused(self, call_id: str, tool: str, reason: str) -> GateVerdict:
        return GateVerdict(
            call_id,
            tool[:200],
            Decision.REFUSE,
            Objection.UNDECLARED,
            (reason,),
            labels=self.grounds.labels,
            rules=self.rules,
            fix=FIXES[Objection.UNDECLARED],
        )

    def _observe_text(self, call_id: str, tool: str, content: Any) -> int:
        """A result whose call was never let through is text, whatever it looks like."""
        texts = list(_texts(content))
        return self.grounds.add(Observation(call_id, tool, {}, references_of(texts), untrusted=True))


def start(
    prompt: str | list[JsonObject],
    tools: list[JsonObject],
    authority: Authority | None = None,
    *,
    plan: dict[str, int] | None = None,
    read: Iterable[str] = (),
    trusted_hosts: tuple[str, ...] = (),
    orders: tuple[Order, ...] = (),
) -> Gate:
    """Open the gate for a run: the user's prompt or messages, the tools as they declare themselves, the options.

    Of messages, the last one of the user is this exchange; `read` are the labels of what was read in earlier ones:
    `untrusted`, `private`, `secret`.
    """
    prompts = prompts_of(prompt)
    labels = tuple(sorted(set(read)))
    if unknown := [label for label in labels if label not in LABELS]:
        message = f"read={unknown[0][:80]!r} is no label; use {', '.join(sorted(LABELS))}"
        raise RequestRejected(GATE_INVALID, message)
    earlier = max(len(prompts) - 1, 0)
    return Gate(
        prompts,
        tools,
        authority or Authority(),
        plan,
        earlier=earlier,
        read=labels,
        trusted_hosts=trusted_hosts,
        orders=orders,
    )


def prompts_of(prompt: Any) -> list[str]:
    """What the user wrote: of messages, the texts of those whose role is `user`. One that is no text says nothing."""
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not all(isinstance(message, dict) for message in prompt):
        raise RequestRejected(GATE_INVALID, f"prompt={repr(prompt)[:80]} is neither a text nor a list of messages")
    contents = [message.get("content") for message in prompt if message.get("role") == "user"]
    return [content if isinstance(content, str) else "" for content in contents]


def opened_tools(tools: list[JsonObject]) -> Toolbox:
    """The tools of a gate; raises RequestRejected for a list that none could be opened with."""
    try:
        return toolbox_of(tools)
    except NotCanonical as error:
        raise RequestRejected(GATE_INVALID, f"the tools have no canonical form: {str(error)[:200]}") from None


def _rules_hash(toolbox: Toolbox, authority: Authority, trusted_hosts: tuple[str, ...]) -> str:
    """The hash of the canonical form of rules, options, trusted hosts and tools, as one list."""
    options, hosts = canonical_json(authority_json(authority)), canonical_json(list(trusted_hosts))
    return sha256(b"[%d,%b,%b,%b]" % (RULES_VERSION, options, hosts, toolbox.canonical)).hexdigest()


def _reasons(code: Objection | None, arguments: tuple[Argument, ...], note: str = "") -> tuple[str, ...]:
    if code is None:
        return ()
    if note:
        return (f"{code.value}: {note}",)
    about = [
        f"{one.code.value}: {one.path}={shown_value(one.value)!r}{one.note and f' ({one.note})'}"
        for one in arguments
        if one.code is not None
    ]
    return tuple(about) or (code.value,)


def is_object(arguments: Any) -> bool:
    """Whether arguments are what a JSON object can be."""
    if not isinstance(arguments, dict):
        return False
    return _PLAIN_NAMES.issuperset(map(type, arguments)) or all(isinstance(name, str) for name in arguments)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _texts(content: Any, depth: int = 0) -> Any:
    if isinstance(content, str):
        yield content
    elif isinstance(content, (dict, list, tuple)) and depth < 64:
        for inner in content.values() if isinstance(content, dict) else content:
            yield from _texts(inner, depth + 1)
