"""Halting dispatch: what may not go out now, in this process and in every other on the store.

Rule 1: whether a command may go out is asked of the journal of halts just before it would; no process keeps its own answer.
Rule 2: a halt holds back whatever is performed: calls of models and tools, code of the user, retrieval, children, and asking
        a tool what became of a call. Timers, questions to people and cancels go on: they move nothing outside.
Rule 3: what was under way is called off. What may be repeated waits for the resume; of a mutating call it is unknown whether
        it happened, so it is in doubt.
Rule 4: nothing begins while everything, its tenant or its model is halted.
Rule 5: a caller that waits for a halt is told of it only when no driver of an affected run is still at a command of that kind.
Rule 6: where an entry was signed and is not here, everything is halted until a person lifts that and so accepts the loss.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.arrivals import RunHalted, RunStarted
from remit.core.journal.codec import NO_HASH, decode_turn, hash_turn
from remit.core.journal.commands import AskHuman, AskPurpose, CallModel, CallTool, Command, ReconcileTool, StartChild
from remit.core.journal.storage import AppendConflict
from remit.core.limits.grant import GrantEntry
from remit.core.record import Record, replace
from remit.core.run.halt import (
    HALT_UNKNOWN,
    HALTED,
    HALTS,
    NAME_CHARS_MAX,
    NOTHING_HALTED,
    WHY_CHARS_MAX,
    Halt,
    HaltKind,
    HaltScope,
    HaltStanding,
    encode_halt,
    halts_after,
    halts_in,
)
from remit.core.run.manifest import Manifest, lineage_of
from remit.core.run.person import check_no_secret, check_person
from remit.core.run.principal import (
    EVERY_TENANT,
    LOCAL,
    Principal,
    Scope,
    expect_scope,
    sees,
    tenant_for,
    tenant_problem,
)
from remit.core.secrets.secret_search import covered
from remit.inference.model_name import model_names
from remit.kernel.state import RunState, pinned
from remit.orchestrate.executors.reports import PERFORMED
from remit.orchestrate.loop.signatures import head_of
from remit.orchestrate.ports import Catalogue, Clock, HaltLog, Leases, SigningKey, Turns
from remit.tool.secrets.vault import NO_SECRETS

if TYPE_CHECKING:
    from remit.orchestrate.loop.runner import Runner

HALT_INVALID = "HALT_INVALID"

# A caller that halts waits so long for other processes to put down what they are at; they look every tenth of a second.
TOLD_WAIT_MS_MAX = 3_000
_TOLD_POLL_MS = 20
# Whether anything has had what is halted is told from so many runs, the newest: no caller waits for a look at all of them.
MET_RUNS_MAX = 1_000
# Each conflict is another halt that was written first; a hundred of them in a moment are no people.
_CONFLICTS_MAX = 100

_DAMAGED_BY = "remit"
_EVERYTHING = HaltScope()


class UnderWay(Record):
    """A command that was still under way, in another process, when the caller that halted it stopped waiting."""

    run_id: str
    command_id: str = ""
    what: str = ""


class Halted(Record):
    """A halt that stands, and what had not yet been put down."""

    halt: Halt
    under_way: tuple[UnderWay, ...] = ()


class HaltStands(Exception):
    """A command may not go out."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(str(halt.scope))
        self.halt = halt


class Halts:
    """The halts that hold on a store, read and written."""

    def __init__(
        self,
        log: HaltLog,
        clock: Clock,
        name_model: Callable[[str], str] = str,
        cover: Callable[[str], str] = covered,
        key: SigningKey | None = None,
        check_name: Callable[[str, str], None] = NO_SECRETS.check_name,
    ) -> None:
        self._log = log
        # Refuses a name that is a secret of the vault.
        self._check_name = check_name
        # Who vouches for entries.
        self._key = key
        # Takes secrets out of a reason.
        self._cover = cover
        # What a model as a person names it is called in entries.
        self._name_model = name_model
        self._clock = clock
        self._standing = NOTHING_HALTED
        # Whether every entry that was signed was found here; entries are not lost while a process has them open.
        self._is_whole = False

    async def refresh(self) -> None:
        """Have at hand what others have halted by now."""
        await self._log.refresh()

    @property
    def standing(self) -> HaltStanding:
        """The halts as of this moment: everything is halted where entries are missing."""
        if data := self._log.since(self._standing.number):
            self._standing = halts_after(self._standing, data)
        if self._is_whole or (lost := self._lost()) is None:
            return self._standing
        halts = {**self._standing.halts, _EVERYTHING: lost}
        return replace(self._standing, halts=MappingProxyType(halts))

    def _lost(self) -> Halt | None:
        """The halt that stands while an entry is missing that was signed; None where none is."""
        number, head = self._log.signed()
        self._is_whole = not number or head in [hash_turn(data) for data in self._log.since(number - 1)[:1]]
        if self._is_whole:
            return None
        why = f"entry {number} of the journal of halts was signed and is not here, so it is unknown what was halted"
        return Halt(number=number, at_ms=0, previous=b"", scope=_EVERYTHING, by=_DAMAGED_BY, why=why)

    @property
    def entries(self) -> Sequence[Halt]:
        """Every halt and every lifting, oldest first."""
        return [entry for entry in halts_in(self._log.since(0)) if entry.grant is None]

    async def decide(self, entry_of: Callable[[HaltStanding], GrantEntry | None], *, by: str) -> HaltStanding:
        """Write what follows from how grants stand, and give how they stand then; a slower process decides anew."""
        for _ in range(_CONFLICTS_MAX):
            await self.refresh()
            standing = self.standing
            if not self._is_whole:
                raise halt_refusal(standing.halts[_EVERYTHING], "no grant was given, revoked or drawn")
            if (deed := entry_of(standing)) is None:
                return standing
            entry = Halt(
                number=standing.number + 1,
                at_ms=self._clock.now_ms(),
                previous=standing.head,
                scope=_EVERYTHING,
                by=by,
                grant=deed,
            )
            data = encode_halt(entry)
            try:
                head = head_of(self._key, HALTS, data, standing.number)
                await self._log.append(data, after=standing.number, head=head)
            except AppendConflict:
                continue
            await self.refresh()
            return self.standing
        raise AppendConflict(HALTS)

    def stopping(self, state: RunState, command: Command) -> Halt | None:
        """The halt that keeps a command from going out, if one does."""
        damage = self._catch_up()
        if damage is not None or not self._standing.halts:
            return damage
        return self._among_standing(chain(run_scopes(state), _command_scopes(state, command)))

    def stopping_any(self, scopes: Iterable[HaltScope]) -> Halt | None:
        """The halt that keeps something of these scopes from going out, if one does."""
        return self._catch_up() or self._among_standing(scopes)

    def _catch_up(self) -> Halt | None:
        """Take in what was halted and lifted since; gives the halt that stands for a journal of halts that is damaged."""
        try:
            if data := self._log.news(self._standing.number):
                self._standing = halts_after(self._standing, data)
        except InvariantBroken as error:
            return _damage(error)
        return None if self._is_whole else self._lost()

    def _among_standing(self, scopes: Iterable[HaltScope]) -> Halt | None:
        halts = self._standing.halts
        return next((halts[scope] for scope in scopes if scope in halts), None)

    def stopping_run(self, state: RunState) -> Halt | None:
        """The halt that keeps a run from going on: of all of it, or of a command that was withheld."""
        halts = self.standing.halts
        scopes = list(run_scopes(state))
        for command_id in state.commands.withheld:
            scopes += _command_scopes(state, state.commands.open[command_id])
        return next((halts[scope] for scope in scopes if scope in halts), None)

    def check_start(self, tenant_id: str, model: str = "", spec: str = "") -> None:
        """Raise HALTED where a new run of this tenant that asks this model first may not begin."""
        scopes = [_EVERYTHING, HaltScope(HaltKind.TENANT, tenant_id), *model_scopes(model, spec)]
        check_halts(self.standing, scopes, "the run was not begun")

    async def check_yes(self, state: RunState, question: Command | None) -> None:
        """Raise HALTED where a yes would let an agent elsewhere make a call that is held back; the question stays open."""
        if pinned(state).host is None or not isinstance(question, AskHuman) or question.packet is None:
            return
        if question.purpose is AskPurpose.APPROVAL:
            await self.refresh()
            check_host_call(self.standing, pinned(state), question.packet.call.tool)

    def check_resume(self, state: RunState) -> None:
        """Raise HALTED where a run may not go on."""
        if state.end.ending is None and (halt := self.stopping_run(state)) is not None:
            raise halt_refusal(halt, f"run {state.run_id} was not resumed")

    async def write(
        self, scope: HaltScope, *, by: str, why: str = "", is_lift: bool = False, principal: Principal = LOCAL
    ) -> Halt:
        """Write an entry; raises HALT_UNKNOWN for lifting what is not halted."""
        await self.refresh()
        if scope.kind is HaltKind.MODEL and not (is_lift and scope in self.standing.halts):
            scope = HaltScope(HaltKind.MODEL, self._name_model(scope.name))
        tenant_id = "" if principal.tenant_id == EVERY_TENANT else principal.tenant_id
        _check(scope, by, why)
        self._check_name("by", by)
        if not is_lift:
            if scope.kind is HaltKind.TENANT and (problem := tenant_problem(scope.name)):
                raise RequestRejected(HALT_INVALID, f"tenant {scope.name[:80]!r} {problem}")
            check_no_secret(scope.kind.value, scope.name)
            self._check_name(scope.kind.value, scope.name)
        for _ in range(_CONFLICTS_MAX + self._log.signed()[0]):
            standing = self.standing
            if is_lift and scope not in standing.halts:
                raise _not_halted(scope, [halt for halt in standing.halts.values() if is_told(halt, principal)])
            if is_lift and tenant_id and standing.halts[scope].tenant_id != tenant_id:
                expect_scope(principal, Scope.OPERATE, f"lifting a halt of {scope} by the operator of the store")
            if not self._is_whole and not (is_lift and scope == _EVERYTHING):
                raise halt_refusal(
                    standing.halts[_EVERYTHING], f"{scope} was not {'released' if is_lift else 'halted'}"
                )
            entry = Halt(
                number=standing.number + 1,
                at_ms=self._clock.now_ms(),
                previous=standing.head,
                scope=scope,
                by=by,
                why=self._cover(why),
                is_lift=is_lift,
                tenant_id=tenant_id,
            )
            try:
                data = encode_halt(entry)
                await self._log.append(
                    data, after=standing.number, head=head_of(self._key, HALTS, data, standing.number)
                )
            except AppendConflict:
                await self.refresh()
                continue
            # A lift takes the place of every entry that was lost, so that what was signed last is here again.
            if self._is_whole or self._lost() is None:
                return told_to(entry, principal)
        raise RequestRejected(HALT_INVALID, "other processes write halts all the time; look at them and try again")


class HaltWatch:
    """Waits until other processes have put down what a halt stops."""

    def __init__(self, halts: Halts, runner: "Runner", catalogue: Catalogue, leases: Leases) -> None:
        self._halts = halts
        self._runner = runner
        self._catalogue = catalogue
        self._leases = leases

    async def settled(self) -> tuple[UnderWay, ...]:
        """The commands that were still under way after TOLD_WAIT_MS_MAX."""
        left = [UnderWay(entry.run_id) for entry in await self._catalogue.entries(open_only=True)]
        for _ in range(TOLD_WAIT_MS_MAX // _TOLD_POLL_MS):
            # A process that has nothing under way by now begins nothing either, so it is not looked at again.
            left = [found for run_id in dict.fromkeys(one.run_id for one in left) for found in await self._at(run_id)]
            if not left:
                break
            await asyncio.sleep(_TOLD_POLL_MS / 1000)
        return tuple(left)

    async def _at(self, run_id: str) -> list[UnderWay]:
        found = list(self._stopped((await self._runner.load(run_id)).state))
        # What is open of a run that no process drives goes out when one does, and is withheld then.
        return found if found and await self._leases.is_held(run_id) else []

    def _stopped(self, state: RunState) -> Iterable[UnderWay]:
        for command in state.commands.open.values():
            is_waiting = command.id in state.commands.withheld or command.id in state.commands.doubted
            if type(command) not in PERFORMED or isinstance(command, StartChild) or is_waiting:
                continue
            if self._halts.stopping(state, command) is not None:
                yield UnderWay(state.run_id, command.id, _said(command))


def scope_of(*, tenant: str = "", tool: str = "", model: str = "", run: str = "") -> HaltScope:
    """The scope that one name says, everything where none does; raises HALT_INVALID for more than one."""
    given = {HaltKind.TENANT: tenant, HaltKind.TOOL: tool, HaltKind.MODEL: model, HaltKind.RUN: run}
    named = [HaltScope(kind, name) for kind, name in given.items() if name]
    if len(named) > 1:
        said = " and ".join(map(str, named))
        raise RequestRejected(HALT_INVALID, f"a halt is about one thing, and not about {said}; halt them one by one")
    return named[0] if named else _EVERYTHING


def scope_for(principal: Principal, *, tenant: str = "", tool: str = "", model: str = "", run: str = "") -> HaltScope:
    """The scope that a principal may halt or lift: its tenant or a run, and anything for the operator of the store."""
    scope = scope_of(tenant=tenant, tool=tool, model=model, run=run)
    if scope.kind is HaltKind.TENANT:
        tenant_for(principal, tenant)
    is_own = scope.kind in (HaltKind.TENANT, HaltKind.RUN)
    expect_scope(principal, Scope.ADMIN if is_own else Scope.OPERATE, f"halting {scope}")
    return scope


def is_told(halt: Halt, principal: Principal) -> bool:
    """Whether a principal is told of a halt: what its tenant halted, and what holds back all of its runs."""
    if halt.scope.kind is HaltKind.RUN:
        return sees(principal, halt.tenant_id)
    return halt.scope.kind is not HaltKind.TENANT or sees(principal, halt.scope.name)


def told_to(halt: Halt, principal: Principal) -> Halt:
    """A halt as a principal is told of it; how many others there are is for the operator of the store."""
    return halt if principal.tenant_id == EVERY_TENANT else replace(halt, number=0, previous=NO_HASH)


async def has_met(scope: HaltScope, journal: Turns, catalogue: Catalogue) -> bool:
    """Whether a run of the store had the tenant, tool or model of a scope, as far as the newest MET_RUNS_MAX of them tell."""
    if scope.kind is HaltKind.EVERYTHING:
        return True
    for entry in await catalogue.entries(limit=MET_RUNS_MAX):
        try:
            (began,) = [decode_turn(data).arrival for data in (await journal.read(entry.run_id))[:1]]
        except (InvariantBroken, ValueError):
            continue  # It is unknown what a run had whose first turn cannot be read.
        if isinstance(began, RunStarted) and scope in _met_by(entry.run_id, began.manifest):
            return True
    return False


def _met_by(run_id: str, manifest: Manifest) -> Iterable[HaltScope]:
    yield HaltScope(HaltKind.RUN, run_id)
    yield HaltScope(HaltKind.TENANT, manifest.request.tenant_id)
    yield from (HaltScope(HaltKind.TOOL, tool.name) for tool in manifest.tools)
    for info, spec in zip_longest(manifest.models, manifest.engines):
        yield from model_scopes("" if info is None else info.name, spec or "")


def halted(halt: Halt, *withheld: str) -> RunHalted:
    """The report by which a run hears of a halt."""
    return RunHalted(halt.by, halt.number, str(halt.scope), halt.why, withheld)


def halt_refusal(halt: Halt, what: str) -> RequestRejected:
    """Why something is not done while a halt stands."""
    selector = f" --{halt.scope.kind} {quote(halt.scope.name)}" if halt.scope.name else ""
    message = f"{what}: {halt.scope} is halted by {halt.by}: {halt.why}; `remit halt --lift{selector}` lifts that"
    details = {"halt": halt.number, "scope": halt.scope.kind.value, "name": halt.scope.name, "by": halt.by}
    return RequestRejected(HALTED, message, {**details, "why": halt.why})


def run_scopes(state: RunState) -> Iterable[HaltScope]:
    """The scopes that hold back all of a run."""
    yield from scopes_over(pinned(state))


def scopes_over(manifest: Manifest) -> Iterable[HaltScope]:
    """The scopes that hold back all of a run that begins with this manifest."""
    yield _EVERYTHING
    if manifest.request.tenant_id:
        yield HaltScope(HaltKind.TENANT, manifest.request.tenant_id)
    # What holds back a run holds back all that came from it.
    for run_id in (manifest.run_id, *reversed(lineage_of(manifest))):
        yield HaltScope(HaltKind.RUN, run_id)
    if (host := manifest.host) is not None:
        # By the name that its host gives a conversation, and by its host's model, too.
        yield HaltScope(HaltKind.RUN, host.name)
        yield from model_scopes(host.model, host.model) if host.model else ()


def check_halts(standing: HaltStanding, scopes: Iterable[HaltScope], what: str) -> None:
    """Raise HALTED where something of these scopes is held back."""
    halts = standing.halts
    if halts and (halt := next((halts[scope] for scope in scopes if scope in halts), None)) is not None:
        raise halt_refusal(halt, what)


def check_host_call(standing: HaltStanding, manifest: Manifest, tool: str) -> None:
    """Raise HALTED where an agent elsewhere may not make a call, so that no yes lets it be made either."""
    if standing.halts:
        check_halts(standing, (*scopes_over(manifest), tool_scope(tool)), f"tool {tool!r} must not be called")


def _command_scopes(state: RunState, command: Command) -> Iterable[HaltScope]:
    """The scopes that hold back a command by what it calls."""
    if isinstance(command, CallModel):
        manifest = pinned(state)
        # Engines are written in the order of their models.
        specs = dict(zip([info.name for info in manifest.models], manifest.engines, strict=False))
        yield from model_scopes(command.model, specs.get(command.model, ""))
    elif isinstance(command, CallTool | ReconcileTool | StartChild) and command.tool:
        yield tool_scope(command.tool)


def tool_scope(name: str) -> HaltScope:
    """The scope that holds back a tool."""
    return HaltScope(HaltKind.TOOL, name)


def model_scopes(name: str, spec: str) -> Iterable[HaltScope]:
    """The scopes that hold back a model: by its name or the spec of its engine, and by each member of a chain."""
    return [HaltScope(HaltKind.MODEL, one) for one in model_names(name, spec)]


def _said(command: Command) -> str:
    name: str = getattr(command, "tool", "") or getattr(command, "model", "")
    return f"{type(command).__name__} {name}".rstrip()


def _damage(error: InvariantBroken) -> Halt:
    """The halt that stands while it is unknown what is halted."""
    return Halt(number=0, at_ms=0, previous=b"", scope=_EVERYTHING, by=_DAMAGED_BY, why=error.message)


def _check(scope: HaltScope, by: str, why: str) -> None:
    for what, text, limit in (
        ("name", scope.name, NAME_CHARS_MAX),
        ("by", by, NAME_CHARS_MAX),
        ("why", why, WHY_CHARS_MAX),
    ):
        if len(text) > limit or not text.replace("\n", "").isprintable():
            message = f"{what}={text[:80]!r} has {len(text)} characters; it is at most {limit} printable ones"
            raise RequestRejected(HALT_INVALID, message, {"field": what, "limit": limit})
    if (scope.kind is HaltKind.EVERYTHING) == bool(scope.name):
        raise RequestRejected(HALT_INVALID, f"a halt of {scope.kind} needs {'no' if scope.name else 'a'} name")
    if not by:
        raise RequestRejected(HALT_INVALID, "a halt names the person who made it; say who with `by`")
    check_person(by)


def _not_halted(scope: HaltScope, halts: Sequence[Halt]) -> RequestRejected:
    known = [str(halt.scope) for halt in halts]
    message = f"{scope} is not halted, so there is nothing to lift; halted are: {', '.join(known) or 'nothing'}"
    return RequestRejected(HALT_UNKNOWN, message, {"halted": known})
