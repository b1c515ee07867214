"""Standing grants at work: given, listed, revoked, and drawn from where a run would wait for a person.

Rule 1: a grant answers a question as the person who gave it: it is refused wherever that person would be.
Rule 2: it is drawn first, in the journal of the store, and approves then. A process that dies between leaves a question that
        has drawn; the process that takes the run up finds it so, and draws nothing more.
Rule 3: what a call says must equal the grant, argument by argument; free text stays in once something private was read, or
        where what was is unknown.
Rule 4: questions are taken in the order in which they were asked. What is behind a held call that no grant covers waits
        with it, in a run beneath it too, unless the boundary has no tripwire: a person looks at both.
Rule 5: where the journal of the store does not add up, nothing is drawn.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from remit.core.declared_arguments import checks_arguments
from remit.core.failure import InvariantBroken, Refusal, RequestRejected
from remit.core.journal.codec import arguments_in, decode_turn
from remit.core.journal.commands import AskHuman, AskPurpose, question_version
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import Answer, QuestionSettled
from remit.core.journal.storage import AppendConflict
from remit.core.limits.grant import (
    GRANT_UNKNOWN,
    Grant,
    GrantDeed,
    GrantEntry,
    GrantStanding,
    check_grant,
    hash_of_tool,
    told_grant,
)
from remit.core.limits.purchases import MAJOR, MINOR, amount_in
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, Text
from remit.core.run.halt import HaltStanding
from remit.core.run.manifest import Manifest, askers_of, may_approve_own
from remit.core.run.person import check_person, is_among
from remit.core.run.principal import LOCAL, Principal, Scope, expect_scope, person_for, sees, tenant_for
from remit.core.run.signals import PACKET_MARK, PACKET_UNKNOWN, Signal, UserSignal, packet_id
from remit.core.work.orders import Order, defaults_of, orders_of
from remit.kernel.authority.authorize import is_grantable
from remit.kernel.people.questions import released_by
from remit.kernel.state import RunState, pinned, questions
from remit.kernel.tally import Tally
from remit.observe.linked_turns import fold, read_history
from remit.observe.logs import run_fields
from remit.orchestrate.executors.reports import PersonApproved
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.ports import Clock, ReadableStore

if TYPE_CHECKING:
    from remit.provenance.order_book import OrderBook

_log = logging.getLogger(__name__)

CheckAnswer = Callable[[RunState, UserSignal], Awaitable[None]]


# So many of the latest runs are looked through for the same approval; a person who answers waits for it.
LOOKED_AT_MAX = 50


@checks_arguments("order")
class Grants:
    """The standing grants of a store."""

    def __init__(
        self,
        halts: Halts,
        clock: Clock,
        fetch: Callable[[Text], Awaitable[str]],
        check_answer: CheckAnswer,
        past: ReadableStore,
        principal: Principal = LOCAL,
        expect_open: Callable[[], None] = lambda: None,
    ) -> None:
        self._halts = halts
        self._expect_open = expect_open
        self._clock = clock
        self._fetch = fetch
        self._check_answer = check_answer
        self._past = past
        self._principal = principal

    def acting_for(self, principal: Principal, past: ReadableStore, expect_open: Callable[[], None]) -> "Grants":
        """The grants for a principal: those of its tenant, in its own name, and what was asked in the runs it sees.

        `expect_open` raises where the system was closed.
        """
        return Grants(
            self._halts,
            self._clock,
            fetch=self._fetch,
            check_answer=self._check_answer,
            past=past,
            principal=principal,
            expect_open=expect_open,
        )

    def _expect_scope(self, scope: Scope, verb: str) -> None:
        expect_scope(self._principal, scope, verb)
        self._expect_open()

    @property
    def now_ms(self) -> int:
        """The moment by which grants expire."""
        return self._clock.now_ms()

    async def standings(self) -> list[GrantStanding]:
        """Every grant that was given, the oldest first, with what was drawn from it."""
        self._expect_scope(Scope.READ, "grants")
        return await self._known()

    async def _known(self) -> list[GrantStanding]:
        await self._halts.refresh()
        return [one for one in self._halts.standing.grants.values() if sees(self._principal, one.grant.tenant_id)]

    async def give(
        self,
        order: Order | JsonObject,
        *,
        until_ms: int,
        times: int = 1,
        amount: int = 0,
        who: str = "",
        tenant: str = "",
        by: str = "",
    ) -> GrantStanding:
        """Approve an effect beforehand, so often or for so much; raises GRANT_INVALID for what says too little or too much."""
        self._expect_scope(Scope.APPROVE, "giving a grant")
        (wanted,) = orders_of([order])
        tenant_id, person = tenant_for(self._principal, tenant), check_person(person_for(self._principal, by))
        given = Grant(
            wanted,
            until_ms,
            who=check_person(who, "who") if who else "",
            tenant_id=tenant_id,
            times_max=times,
            amount_max=amount,
        )
        entry = GrantEntry(GrantDeed.GIVEN, grant=check_grant(given, self._clock.now_ms()))
        standing = await self._halts.decide(lambda _: entry, by=person)
        return next(one for one in [*standing.grants.values()][::-1] if one.grant == given and one.by == person)

    async def revoke(self, grant_id: str, *, by: str = "") -> GrantStanding:
        """Revoke a grant: nothing is drawn from it any more. What it has approved stays approved."""
        self._expect_scope(Scope.APPROVE, "revoking a grant")
        if (found := {one.id: one for one in await self._known()}.get(grant_id)) is None:
            raise RequestRejected(GRANT_UNKNOWN, f"grant {grant_id[:80]!r} was never given; `remit grants` lists them")
        if found.revoked_by:
            return found
        entry = GrantEntry(GrantDeed.REVOKED, grant_id)
        standing = await self._halts.decide(lambda _: entry, by=check_person(person_for(self._principal, by)))
        return standing.grants[grant_id]

    async def approve(self, state: RunState, *, is_awaited: bool = False) -> PersonApproved | None:
        """The approval that a grant gives to what a run asks; None where none covers any of it."""
        try:
            if not self._halts.standing.grants:
                return None  # Without grants this costs a look at what is at hand.
            return await self._approval(state, is_awaited=is_awaited)
        except (RequestRejected, AppendConflict, InvariantBroken) as error:
            _log.warning("no grant was drawn from, so a person is asked: %s", error, extra=run_fields(state.run_id))
            return None

    async def _approval(self, state: RunState, *, is_awaited: bool) -> PersonApproved | None:
        held = [one for one in questions(state) if one.purpose is AskPurpose.APPROVAL and one.packet is not None]
        authority = pinned(state).boundary.authority
        if held and (authority is None or authority.tripwire):
            held = [] if await self._is_behind(state) else sorted(held, key=_is_asked_first)[:1]
        for question in held:
            if (drawn := await self._drawn(state, question)) is not None:
                told = told_grant(drawn, packet_id(state.run_id, question.id))
                shown = question_version(question)
                return PersonApproved(question.id, drawn.by, packet=shown, is_awaited=is_awaited, grant=told)
        return None

    async def _is_behind(self, state: RunState) -> bool:
        """Whether a person has yet to answer a run above this one, or did not answer this one or one above it."""
        if _is_silenced(state):
            return True
        origin = pinned(state).parent
        while origin is not None:
            above = fold(read_history(origin.run_id, await self._past.journal.read(origin.run_id)))
            if above.manifest is None or above.people.asking or _is_silenced(above):
                return True  # What a run asked that is gone is unknown.
            origin = pinned(above).parent
        return False

    async def like(self, name: str) -> Order:
        """The order that a grant like a question would hold: its call as it was asked about, with the defaults of its tool."""
        self._expect_scope(Scope.READ, "grants")
        run_id, _, command_id = name.rpartition(PACKET_MARK)
        for question in await self._asked_in(run_id):
            if question.id == command_id and question.packet is not None:
                arguments = arguments_in(await self._fetch(question.packet.call.arguments))
                state = fold(read_history(run_id, await self._past.journal.read(run_id)))
                arguments = defaults_of(state.derived.tools[question.packet.call.tool].parameters) | arguments
                args = {key: {"literal": value} for key, value in arguments.items()}
                return orders_of([{"tool": question.packet.call.tool, "args": args}])[0]
        raise RequestRejected(
            PACKET_UNKNOWN, f"{name[:80]!r} names no call that was asked about; `remit show` lists them"
        )

    async def same_before(self, name: str) -> str:
        """Which earlier question about exactly the same call was approved; empty where none of the latest runs has one."""
        self._expect_scope(Scope.READ, "grants")
        run_id, _, command_id = name.rpartition(PACKET_MARK)
        asked = {one.id: one.packet.call for one in await self._asked_in(run_id) if one.packet is not None}
        if (call := asked.get(command_id)) is None:
            return ""
        for entry in await self._past.catalogue.entries(limit=LOOKED_AT_MAX):
            if entry.run_id == run_id:
                continue
            for same in await self._asked_in(entry.run_id, Answer.APPROVED):
                found = None if same.packet is None else same.packet.call
                if found is not None and (found.tool, found.arguments_hash) == (call.tool, call.arguments_hash):
                    return packet_id(entry.run_id, same.id)
        return ""

    async def _asked_in(self, run_id: str, answer: Answer | None = None) -> list[AskHuman]:
        """The questions of a run; only those that were answered so."""
        turns = [*map(decode_turn, await self._past.journal.read(run_id))]
        decisions = [one for turn in turns for one in turn.decisions]
        settled = {one.command_id: one.answer for one in decisions if isinstance(one, QuestionSettled)}
        asked = [one for one in decisions if isinstance(one, AskHuman)]
        return [one for one in asked if answer is None or settled.get(one.id) is answer]

    async def _drawn(self, state: RunState, question: AskHuman) -> GrantStanding | None:
        """The grant that a question has drawn from, now or before."""
        assert question.packet is not None, "the caller has looked"
        call, now_ms = question.packet.call, self._clock.now_ms()
        tally = Tally(state, max(now_ms, state.at_ms))
        if tally.paused or now_ms >= question.expires_at_ms or not is_grantable(call, tally):
            return None
        tool, manifest = state.derived.tools[call.tool], pinned(state)
        arguments = arguments_in(await self._fetch(call.arguments))
        amount, name = max(amount_in(arguments, tool), 0), packet_id(state.run_id, question.id)
        tool_hash = hash_of_tool(tool)
        covering = [
            one.id
            for one in self._halts.standing.grants.values()
            if one.is_for_tool(tool_hash)
            and _is_for(one, manifest, question)
            and _covers(one.grant, call, arguments, tool)
        ]
        covering = [one for one in covering if await self._may_answer(state, question, one)]
        if not covering:
            return None

        def draw(standing: HaltStanding) -> GrantEntry | None:
            grants = [standing.grants[one] for one in covering]
            if any(name in dict(grant.draws) for grant in grants):
                return None
            room = [one.id for one in grants if one.is_for_tool(tool_hash) and not one.why_not(amount, now_ms)]
            if not room:
                return None
            return GrantEntry(GrantDeed.DRAWN, room[0], packet_id=name, amount=amount, tool_hash=tool_hash)

        standing = await self._halts.decide(draw, by=state.run_id)
        return next((one for one in map(standing.grants.__getitem__, covering) if name in dict(one.draws)), None)

    async def _may_answer(self, state: RunState, question: AskHuman, grant_id: str) -> bool:
        """Whether the queue of a question hears the person who gave a grant."""
        by = self._halts.standing.grants[grant_id].by
        said = {"packet_id": packet_id(state.run_id, question.id)}
        try:
            await self._check_answer(state, UserSignal("", Signal.APPROVE, state.run_id, by, payload=said))
        except RequestRejected:
            return False
        return True


def _is_silenced(state: RunState) -> bool:
    """Whether a call was refused by silence, which answers nothing."""
    return Refusal.APPROVAL_EXPIRED in state.effects.uncommitted.values()


def _is_asked_first(question: AskHuman) -> int:
    """Questions that were passed on were asked before those that were not."""
    return -question.silences


def _is_for(found: GrantStanding, manifest: Manifest, question: AskHuman) -> bool:
    """Whether a grant is for a run, and its giver one who may approve it."""
    grant, askers = found.grant, askers_of(manifest)
    if grant.tenant_id != manifest.request.tenant_id:
        return False
    # A grant covers what its bytes say: a name that looks like the one of a grant is another user's.
    if grant.who and grant.who != manifest.started_by:
        return False
    releasing = manifest.boundary.release_by if released_by(question) else ()
    if releasing and not is_among(found.by, releasing):
        return False
    return not is_among(found.by, askers) or may_approve_own(manifest, found.by)


def _covers(grant: Grant, call: ProposedCall, arguments: JsonObject, tool: ToolDefinition) -> bool:
    """Whether a call equals a grant, argument by argument; of money that it counts, the amount is not compared."""
    if grant.amount_max:
        if amount_in(arguments, tool) < 0:
            return False
        named = {name for way in (grant.order, *grant.order.either) for name, _ in way.args}
        money = {name for name, kind in tool.control_args if kind in (MINOR, MAJOR)} - named
        arguments = {name: value for name, value in arguments.items() if name not in money}
    is_unknown = call.provenance is Provenance.UNTRACED
    has_unlisted = is_unknown or not {"private", "secret"}.isdisjoint(call.labels)
    try:
        return bool(_book(grant, tool).match(call.tool, arguments, (), has_unlisted=has_unlisted).number)
    except RequestRejected:
        return False  # The tool is not the one that it was given for any more.


def _book(grant: Grant, tool: ToolDefinition) -> "OrderBook":
    # Only a store with grants pays for what compares them.
    from remit.orchestrate.facts.gate_facts import declared
    from remit.provenance.gate import opened_tools
    from remit.provenance.order_book import OrderBook

    return OrderBook((grant.order,), opened_tools([declared(tool)]).declarations, is_confirmed=True, is_strict=True)
