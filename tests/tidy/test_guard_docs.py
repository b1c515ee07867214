"""Every code that a guard may answer with, and every operation that it knows, stands in docs/guard.md.

The codes are found in the functions themselves: whatever the guard calls, and those it calls in turn, as far as they are called
by their names; and what its parts call for it.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from remit.agents.guard_in_memory import guard_in_memory
from remit.core.failure import ArrivalFault, RemitError
from remit.core.regex import regex
from remit.kernel.rules import host, human
from remit.orchestrate.guard import begin_run, guard, host_tools, open_run, protocol, shown_verdicts
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.people.queues import Queues
from remit.orchestrate.tenants.policies import Policies
from remit.orchestrate.tenants.quota_ledger import Quotas
from remit.tool.secrets.vault import Vault

PAGE = Path(__file__).parents[2] / "docs" / "guard.md"
MODULES = (guard, begin_run, host_tools, open_run, protocol, shown_verdicts)
# What the parts of a guard call, and what the kernel says to people and to hosts.
CALLED: tuple[Callable[..., Any], ...] = (
    Custody.expect_kept,
    Custody.expect_no_other,
    Queues.check_answer,
    Policies.of,
    Quotas.begin,
    Vault.check_name,
    human._admit_approval,
    human._admit_person,
    human._admit_packet,
    human._question,
    host.on_proposed,
)
# What the kernel says to reports that no host makes.
ELSEWHERE = ("take_turn", "copy_whole")
# Found, and told to no host.
NEVER = {
    "APPEND_CONFLICT": "another guard began the conversation; told as RUN_HELD, or the conversation is gone on with",
    "ARGUMENTS_INVALID": "how the books of a run name a refusal for CONSTRAINT_SCHEMA_INVALID",
    "JOURNAL_CHAIN_BROKEN": "a journal that is counted for a quota; told as GUARD_RUN_BROKEN",
    "OUTCOME_UNKNOWN": "the code of a run that ended in doubt, which its journal tells",
    "PACKET_UNKNOWN": "a host names calls, and packets are made of them here",
    "PAGE_INVALID": "a host asks for no pages",
    "RUN_NOT_FOUND": "what is gone on with was just found",
    "UNKNOWN_COMMAND": "what a call takes up is found here",
}
_CODE = regex(r"[A-Z]+(_[A-Z]+)+|HALTED|PAUSED")


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from names_in(part)


def functions_of(module: ModuleType) -> Iterator[Callable[..., Any]]:
    for thing in vars(module).values():
        if getattr(thing, "__module__", "") != module.__name__:
            continue
        for part in vars(thing).values() if inspect.isclass(thing) else [thing]:
            function = part.fget if isinstance(part, property) else part
            if inspect.isfunction(function):
                yield function


def codes_of(function: Callable[..., Any], seen: set[Any]) -> Iterator[str]:
    """The codes that a function and those that it calls by their names may raise."""
    function = inspect.unwrap(function)
    if function in seen:
        return
    seen.add(function)
    names = list(names_in(function.__code__))
    owner = function.__globals__.get(function.__qualname__.partition(".")[0])
    methods = vars(owner) if inspect.isclass(owner) else {}
    for name in names:
        known = function.__globals__.get(name, methods.get(name))
        if isinstance(known, str) and known == name and _CODE.fullmatch(name):
            yield name
        elif inspect.isfunction(known) and known.__module__.startswith("remit.") and name not in ELSEWHERE:
            yield from codes_of(known, seen)
        elif inspect.isclass(known) and issubclass(known, RemitError) and known.__init__ is not RemitError.__init__:
            init = inspect.unwrap(known.__init__)
            yield from [code for code in init.__code__.co_consts if isinstance(code, str) and _CODE.fullmatch(code)]
            yield from codes_of(init, seen)
    if ArrivalFault.__name__ in names:
        yield from [name for name in names if name in ArrivalFault.__members__]


def test_every_code_that_a_guard_may_answer_with_is_documented() -> None:
    seen: set[Any] = set()
    roots = [function for module in MODULES for function in functions_of(module)]
    codes = {code for root in (*roots, *CALLED) for code in codes_of(root, seen)} - set(NEVER)
    told = PAGE.read_text("utf-8")
    assert {"GUARD_OP_INVALID", "PERSON_INVALID", "HALTED", "SELF_APPROVAL", "QUOTA_EXHAUSTED"} <= codes
    assert sorted(code for code in codes if f"`{code}`" not in told) == []


def test_the_guard_its_protocol_and_its_page_name_the_same_operations_with_the_same_keys() -> None:
    rows = regex(r"(?m)^\| `(\w+)` \| ((?:`\w+`,? ?)+)\| ((?:`\w+`,? ?)+)\|").findall(PAGE.read_text("utf-8"))
    told = {op: tuple(frozenset(key.strip("`, ") for key in keys.split()) for keys in columns) for op, *columns in rows}
    assert told == {op: tuple(map(frozenset, keys)) for op, keys in protocol._KEYS.items()}
    assert {"start", *guard_in_memory()._operations} == set(told)
