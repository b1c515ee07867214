"""What every view says of stored runs: the commands that look, the lines that tell of a run while it goes on, its events.

Rule 1: a view is recorded as its reader sees it, byte for byte; keys are named alike and the clock stands, since each store
        has a key of its own and ages grow.
Rule 2: what was recorded is written once, by `python -m tests.golden.views`, and never by a test.
"""

import asyncio
import gzip
import io
import json
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from remit.adapters.cli.main import main
from remit.adapters.cli.screen.call_lines import CallTeller
from remit.adapters.cli.screen.step_lines import WorkTeller
from remit.assemble import opened_to_read, settings_of
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.codec import decode_turn, plain_value
from remit.core.regex import regex
from remit.kernel.state import pinned
from remit.observe.linked_turns import History, read_history, states
from remit.observe.views.event_log import Telling
from remit.observe.watcher import metered
from remit.orchestrate.facade import System
from remit.orchestrate.history.repair import derived_from
from scripts.make_golden import GOLDEN, read_journal

VIEWS = GOLDEN / "views"
# A minute after the second store was left.
NOW_MS = 1_794_833_200_000
_KEY = regex("did:key:[A-Za-z0-9]+")
OF_A_RUN = (("show",), ("explain",), ("trace",), ("trace", "--turns"), ("trace", "--last", "2"))
OF_A_STORE = (
    ("runs", "--children", "--limit", "0"),
    ("approvals",),
    ("queues",),
    *(("cost", "--by", by) for by in ("tenant", "run", "each-run", "node", "tool", "model")),
)

# Runs by their names, each as its turns are stored.
Journals = Mapping[str, Sequence[bytes]]


def golden_stores() -> Iterator[tuple[str, Journals | Path]]:
    """What there is to look at, by its name: journals of every version, and whole stores of earlier ones."""
    for folder in sorted(GOLDEN.glob("v[0-9]")):
        # Some journals are of runs with the same name, and no store has two of them; conversations of foreign agents stand apart.
        shelves: list[dict[str, Sequence[bytes]]] = [{}, {}, {}, {}]
        for path in sorted(folder.glob("*.journal")):
            journal = read_journal(path)
            manifest = decode_turn(journal[0]).arrival.manifest  # type: ignore[union-attr]  # it starts a run
            place = 2 if manifest.host else 0
            place += manifest.run_id in shelves[place]
            shelves[place][manifest.run_id] = journal
        for place, shelf in enumerate(shelves):
            if shelf:
                yield f"{folder.name}{'abcd'[place]}", shelf
    for packed in sorted((GOLDEN / "stores").glob("*.tar.gz")):
        yield f"store_{packed.name.partition('.')[0]}", packed


def views_of(kept: Journals | Path, folder: Path, blobs: Mapping[bytes, bytes] | None = None) -> dict[str, str]:
    """Every view of these runs, by what is asked for."""
    home = folder / ".remit"
    if isinstance(kept, Path):
        with tarfile.open(kept) as archive:
            # Filters came with Python 3.11.4, and are asked for by its successors.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(folder)
    else:
        asyncio.run(_stored(home, kept, blobs or {}))
    histories = asyncio.run(_histories(home))
    with patch("remit.backend.clock.wall_clock_ms", return_value=NOW_MS):
        return dict(_views(home, histories))


async def _stored(home: Path, journals: Journals, blobs: Mapping[bytes, bytes]) -> None:
    store = EmbeddedStore.open(home)
    for digest, text in blobs.items():
        await store.blobs.put(digest, text)
    for run_id, journal in journals.items():
        derived = derived_from(run_id, journal)
        for seq, data in enumerate(journal):
            is_last = seq == len(journal) - 1
            listing, standing = (None if seq else derived.listing), derived.standing if is_last else None
            await store.journal.append(run_id, data, seq - 1, standing, listing)
    await store.close()


async def _histories(home: Path) -> list[History]:
    async with opened_to_read(settings_of({}, home=home)) as system:
        return [await _history(system, entry.run_id) for entry in await system.archive.runs(with_children=True)]


async def _history(system: System, run_id: str) -> History:
    return read_history(run_id, await system.store.journal.read(run_id))


def _views(home: Path, histories: Sequence[History]) -> Iterator[tuple[str, str]]:
    queues = [json.loads(line)["name"] for line in _said(home, "queues", "--json").splitlines()[1:]]
    asked = [*OF_A_STORE, *(("queues", queue) for queue in queues)]
    asked += [(view[0], history.run_id, *view[1:]) for history in histories for view in OF_A_RUN]
    for words in asked:
        yield " ".join(words), _said(home, *words)
        yield " ".join((*words, "--json")), _said(home, *words, "--json")
    for history in histories:
        yield f"told {history.run_id}", "\n".join(_told(history))
        yield f"events {history.run_id}", "\n".join(_events(history))


def _said(home: Path, *words: str) -> str:
    """What a command says: its exit code, then its words."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = main([*words, "--home", str(home)])
    return _KEY.sub("did:key:one", f"{code}\n{out.getvalue()}").replace(str(home), "HOME")


def _told(history: History) -> Iterator[str]:
    """Lines that a watcher of a run is shown for every turn, and what the meter says after it."""
    teller: CallTeller | WorkTeller | None = None
    for turn, state in states(history):
        # A chat tells of its calls, a plan or a vote of its steps.
        teller = teller or (WorkTeller() if WorkTeller.tells(pinned(state).graph) else CallTeller())
        yield from ("".join(text for text, _ in line) for line in teller.lines(turn))
        yield json.dumps(plain_value(metered(state)))


def _events(history: History) -> Iterator[str]:
    telling = Telling()
    for turn, state in states(history):
        yield from (json.dumps(plain_value(event)) for event in telling.events(state, turn))


def recorded(name: str) -> dict[str, str]:
    """What was recorded of a store."""
    views: dict[str, str] = json.loads(gzip.decompress((VIEWS / f"{name}.json.gz").read_bytes()))
    return views


def write() -> None:
    """Record every view of every store of which nothing is recorded yet."""
    VIEWS.mkdir(exist_ok=True)
    for name, kept in golden_stores():
        if (VIEWS / f"{name}.json.gz").exists():
            continue
        with TemporaryDirectory() as folder:
            text = json.dumps(views_of(kept, Path(folder)), indent=0, sort_keys=True)
        (VIEWS / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    write()
