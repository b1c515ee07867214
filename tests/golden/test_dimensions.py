"""A dimension that is added to the budget leaves every earlier journal readable, and its run able to go on.

The journals in fewer/ were written when the vector ended before child_runs: a run that waits for a person, and a parent
with its child.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

import remit
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending
from remit.core.journal.codec import decode_turn
from remit.core.limits.budget import DIMENSIONS, FIELDS, STANDARD, Dimension, budget_of
from remit.kernel.state import pinned
from remit.observe.views.explain import spent_of
from remit.orchestrate.facade import System
from remit.orchestrate.history.repair import derived_from
from remit.orchestrate.history.replay import AuditVerdict, audit
from remit.orchestrate.loop.offspring import spent_by
from remit.testing.runs import fold_journal
from remit.tool.declare.decorator import tool
from scripts.make_golden import GOLDEN, read_journal
from tests.golden.views import views_of
from tests.unit.orchestrate.house import approval, calls, scripted, unaudited

FEWER = {path.stem: read_journal(path) for path in sorted((GOLDEN / "fewer").glob("*.journal"))}
KNOWN_THEN = int(Dimension.CHILD_RUNS)


def run_id_of(journal: Sequence[bytes]) -> str:
    return pinned(fold_journal(journal)).run_id


@tool(effect="write")
def keep(n: int) -> int:
    """Keep a number."""
    return n


KIT = scripted(calls("keep", n=1), {"text": "kept"}, tools=(keep,))


def a_minute_later(journal: Sequence[bytes]) -> int:
    return decode_turn(journal[-1]).at_ms + 60_000


async def stored(system: System, journal: Sequence[bytes]) -> str:
    derived = derived_from(run_id_of(journal), journal)
    for seq, data in enumerate(journal):
        listing, standing = (None, derived.standing) if seq else (derived.listing, None)
        await system.store.journal.append(derived.run_id, data, seq - 1, standing, listing)
    return derived.run_id


@pytest.mark.parametrize("name", FEWER)
def test_caps_that_were_never_assigned_are_read_as_those_of_the_boundary(name: str) -> None:
    manifest = pinned(fold_journal(FEWER[name]))
    written = msgspec.msgpack.decode(FEWER[name][0][1:])["arrival"]["manifest"]["caps"]
    assert (len(written), len(manifest.caps)) == (KNOWN_THEN, DIMENSIONS)
    assert manifest.caps[:KNOWN_THEN] == tuple(written)
    standard = manifest.boundary.budget
    for field in FIELDS[KNOWN_THEN:]:
        cap = getattr(standard, field)
        assert getattr(budget_of(manifest.caps), field) == (getattr(STANDARD, field) if cap is None else cap)


@pytest.mark.parametrize("name", FEWER)
def test_what_a_run_of_fewer_dimensions_spent_is_counted(name: str) -> None:
    state = fold_journal(FEWER[name])
    assert dict(spent_by(state))[Dimension.STEPS] > 0
    assert [spent.dimension for spent in spent_of(state, state.at_ms, {})] == list(FIELDS)


@pytest.mark.parametrize("name", FEWER)
def test_an_audit_of_a_run_of_fewer_dimensions_claims_no_equality(name: str) -> None:
    found = audit(FEWER[name], dict[bytes, bytes]().get)
    assert (found.verdict, found.other_version[0]) == (AuditVerdict.OTHER_VERSION, 0)


def test_every_view_shows_runs_of_fewer_dimensions(tmp_path: Path) -> None:
    views = views_of({run_id_of(journal): journal for journal in FEWER.values()}, tmp_path)
    assert {said[:2] for asked, said in views.items() if not asked.startswith(("told", "events"))} == {"0\n"}


def test_a_run_of_fewer_dimensions_goes_on_where_it_waited() -> None:
    async def story() -> None:
        async with unaudited(MemoryStore()) as (system,):
            run_id = await stored(system, FEWER["waiting"])
            (asked,) = await system.archive.approvals()
            await system.signal(approval(asked.id), kit=KIT)
            assert (await system.result(run_id)).terminal_code is Ending.SUCCESS

    with patch("remit.backend.clock.wall_clock_ms", return_value=a_minute_later(FEWER["waiting"])):
        asyncio.run(story())


def test_a_fork_of_a_run_of_fewer_dimensions_caps_them_all() -> None:
    async def story() -> None:
        async with unaudited(MemoryStore()) as (system,):
            run_id = await stored(system, FEWER["waiting"])
            heard = await system.fork(run_id, by="dan", at=0, kit=KIT)
            await system.result(heard.fork_id)
            state = await system.state_of(heard.fork_id)
            assert len(pinned(state).caps) == DIMENSIONS
            assert pinned(state).caps == pinned(fold_journal(FEWER["waiting"])).caps

    with patch("remit.backend.clock.wall_clock_ms", return_value=a_minute_later(FEWER["waiting"])):
        asyncio.run(story())


# What a version does that adds a dimension at the end, as the map of the house says.
LAST, NAME = max(Dimension), FIELDS[-1]
ADDED = (
    (f"    {LAST.name} = {LAST.value}\n", f"    THOUGHTS = {LAST.value + 1}\n"),
    (f"    {NAME}: int | None = None\n", "    thoughts: int | None = None\n"),
    (f"    {NAME}={getattr(STANDARD, NAME)},\n)", "    thoughts=7,\n)"),
)


@pytest.mark.slow
def test_a_version_with_one_more_dimension_reads_the_journals_of_today(tmp_path: Path) -> None:
    package = tmp_path / "remit"
    shutil.copytree(Path(remit.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    budget = package / "core" / "limits" / "budget.py"
    text = budget.read_text(encoding="utf-8")
    for last, added in ADDED:
        assert text.count(last) == 1
        text = text.replace(last, last.removesuffix(")") + added)
    budget.write_text(text, encoding="utf-8")
    told = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"),
            *("tests/golden/test_golden.py", "tests/golden/test_dimensions.py", "-k"),
            "summary_beside or recorded_summary or takes_up or fewer_dimensions or never_assigned or is_the_later_one",
        ],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}.", "REMIT_LATER_VERSION": str(package)},
        cwd=GOLDEN.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-5000:]


@pytest.mark.skipif("REMIT_LATER_VERSION" not in os.environ, reason="only of use in the test above")
def test_what_is_tested_is_the_later_one() -> None:
    assert Path(remit.__file__).parent == Path(os.environ["REMIT_LATER_VERSION"])
    assert FIELDS[-1] == "thoughts"
    for path in GOLDEN.glob("v*/*.journal"):
        assert pinned(fold_journal(read_journal(path))).caps[-1] == 7
