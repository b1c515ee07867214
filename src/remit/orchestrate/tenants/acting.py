"""For whom a system acts: what they may do, in whose name, and which runs exist for them."""

from collections.abc import Callable

from remit.core.journal.storage import RunEntry
from remit.core.record import replace
from remit.core.run.principal import Principal, Scope, expect_scope, person_for, tenant_for
from remit.core.run.run_events import Subject
from remit.orchestrate.loop.durability import GUARD_MODE
from remit.orchestrate.tenants.tenancy import Seen


class Acting:
    """Acts for a principal, to whom nothing exists but what is of its tenant."""

    principal: Principal
    _seen: Seen
    _check_name: Callable[[str, str], None]

    def _expect_scope(self, scope: Scope, verb: str) -> None:
        expect_scope(self.principal, scope, verb)

    async def _expect(self, run_id: str, scope: Scope, verb: str) -> RunEntry:
        """A run that exists for the principal, who may do this with it."""
        self._expect_scope(scope, verb)
        entry = await self._seen.runs.entry(run_id)
        # A run that is listed and has no turn was damaged; there is nothing to go on with.
        if entry is None or not entry.turns:
            raise await self._seen.absent(run_id)
        return entry

    @property
    def _whose(self) -> str:
        """The tenant that is told what happens; empty for whoever sees them all."""
        return tenant_for(self.principal, "")

    async def is_guarded(self, run_id: str) -> bool:
        """Whether a run is driven by an agent elsewhere, which goes on when it likes."""
        entry = await self._seen.runs.entry(run_id)
        return entry is not None and entry.listing.mode == GUARD_MODE

    def _person(self, by: str) -> str:
        """In whose name something is done; no secret is one."""
        by = person_for(self.principal, by)
        self._check_name("by", by)
        return by

    def _subject(self, subject: Subject, verb: str) -> Subject:
        """What of a subject exists for the principal."""
        self._expect_scope(Scope.READ, verb)
        return replace(subject, tenant_id=tenant_for(self.principal, subject.tenant_id))
