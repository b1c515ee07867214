"""The parts of a system: what its verbs call, built once for a store and wired to each other."""

from collections.abc import Callable

from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.bus.post import Post
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.executors.division import DividedWork, Division
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.history.run_copies import Copies
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.hub import FindKit, Hub
from remit.orchestrate.loop.offspring import Lineages
from remit.orchestrate.loop.run_leases import fenced_journal
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.loop.signatures import signed_journal, signed_snapshots
from remit.orchestrate.people.full_response import Responses
from remit.orchestrate.people.grants import Grants
from remit.orchestrate.people.queues import Queues
from remit.orchestrate.ports import Clock, Store
from remit.orchestrate.setup.manifests import Manifests
from remit.orchestrate.tenants.policies import Policies
from remit.orchestrate.tenants.quota_ledger import Quotas
from remit.tool.secrets.vault import Vault


class SystemParts:
    """What the verbs of one system call. `queues` and `custody` are those of the caller that opened it."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        find_kit: FindKit,
        new_id: Callable[[], str],
        secrets: Vault,
        owner: str,
        name_model: Callable[[str], str],
        policies: Policies | None,
        division: Division,
        quotas: Quotas,
        sealer: Sealer,
        queues: Queues,
        custody: Custody,
    ) -> None:
        self.halts = Halts(
            store.halts,
            clock,
            name_model=name_model,
            cover=sealer.covered,
            key=store.key,
            check_name=secrets.check_name,
        )
        self.work = DividedWork(clock, secrets, self.halts, division)
        self.bus = Bus(store)
        self.runner = runner = _runner(store, clock, self.work, quotas, sealer=sealer, bus=self.bus)
        self.grants = Grants(self.halts, clock, runner.text, queues.check_answer, store)
        runner.grants = self.grants.approve
        self.responses = Responses(runner, lambda queue: queues.limits_of(queue).answered_by)
        self.manifests = Manifests(
            runner,
            store.catalogue,
            new_id=new_id,
            halts=self.halts,
            vault=secrets,
            owner=owner,
            custody=custody,
            policies=policies,
        )
        lineages = Lineages(store.catalogue)
        self.hub = hub = Hub(
            runner,
            self.work.dispatch,
            leases=store.leases,
            find_kit=division.finder(find_kit),
            lineages=lineages,
            halts=self.halts,
        )
        hub.custody = custody
        self.children = ChildExecutor(hub, store.inbox, store.log)
        self.copies = Copies(hub, self.children, custody=custody, sealer=sealer, lineages=lineages, new_id=new_id)
        self.post = Post(hub, store.inbox, store.catalogue, store.bell, queues.check_answer)
        hub.on_taken, hub.on_driven = self.post.hear_waiting, self.post.keep_watch
        hub.on_left = None if division.carriage is None or not division.leaves else division.carriage.due
        self.performers = self.work.equip(hub, self.children, sealer, self.bus)


def _runner(store: Store, clock: Clock, work: DividedWork, quotas: Quotas, *, sealer: Sealer, bus: Bus) -> Runner:
    """The runner, over a journal that counts what quotas limit, is fenced by leases and signed."""
    return Runner(
        journal=signed_journal(fenced_journal(quotas.journal, store.leases), store.key),
        blobs=store.blobs,
        clock=clock,
        dispatch=work.dispatch,
        snapshots=signed_snapshots(store.snapshots, store.key),
        sealer=sealer,
        bus=bus,
    )
