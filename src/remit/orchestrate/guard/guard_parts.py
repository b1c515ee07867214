"""The parts that guarded runs are built on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from remit.core.run.halt import HaltStanding
from remit.core.run.manifest import Manifest
from remit.core.run.principal import LOCAL, Principal
from remit.core.run.signals import UserSignal
from remit.kernel.state import RunState
from remit.orchestrate.bus.post import Post
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.run_leases import RunLeases
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.ports import Catalogue
from remit.orchestrate.setup.manifests import Manifests
from remit.orchestrate.tenants.policies import Policies
from remit.tool.secrets.vault import NO_SECRETS

Begin = Callable[[Manifest, Callable[[Manifest], Awaitable[Live]]], Awaitable[Live]]


async def _as_it_is(manifest: Manifest, begin: Callable[[Manifest], Awaitable[Live]]) -> Live:
    return await begin(manifest)


@dataclass(frozen=True)
class GuardParts:
    """The parts that guarded runs are built on: the runner that writes their turns, their leases, their names, and the halts."""

    runner: Runner
    run_leases: RunLeases
    new_id: Callable[[], str]
    halts: Callable[[], HaltStanding]
    # Knows which runs there are, so that one can be gone on with; None where nothing outlives the process.
    catalogue: Catalogue | None = None
    # Drops a run that has ended, where it could not be looked at any more.
    forget: Callable[[str], Awaitable[object]] | None = None
    # Begins a run within the quotas of its tenant.
    begin: Begin = _as_it_is
    # Refuses an answer that the queue of its question does not hear.
    check_answer: Callable[[RunState, UserSignal], Awaitable[None]] | None = None
    # Lets runs hear what was left for them in the inbox.
    hear: Callable[[Callable[[str], Live | None]], Awaitable[None]] | None = None
    # Calls back whenever something may have been left there, as long as the listener wants that.
    attend: Callable[[Callable[[], Awaitable[None]], Callable[[], bool]], asyncio.Task[None]] | None = None
    check_name: Callable[[str, str], None] = NO_SECRETS.check_name
    custody: Custody | None = None
    owner: str = ""
    # For whom runs are guarded, and what says which boundary holds for them.
    principal: Principal = LOCAL
    policies: Policies | None = None
    # Raises where the system that runs are guarded in was closed.
    expect_open: Callable[[], None] = lambda: None


def parts_beside(
    post: Post,
    manifests: Manifests,
    halts: Callable[[], HaltStanding],
    begin: Begin,
    principal: Principal,
    expect_open: Callable[[], None],
) -> GuardParts:
    """The parts of guarded runs that are held, listed, told and vouched for like those of the hub that a post delivers to."""
    hub = post.hub
    return GuardParts(
        runner=hub.runner,
        run_leases=hub.run_leases,
        new_id=manifests.new_id,
        halts=halts,
        catalogue=post.catalogue,
        begin=begin,
        check_answer=post.check_answer,
        hear=post.hear_for,
        attend=post.attend,
        check_name=manifests.vault.check_name,
        custody=hub.custody,
        owner=manifests.owner,
        principal=principal,
        policies=manifests.policies,
        expect_open=expect_open,
    )
