"""Taking words out of runs that were written."""

import asyncio
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.redacted_turns import PATTERN_UNKNOWN
from remit.core.failure import RequestRejected
from remit.observe.proof.findings import Fault
from remit.orchestrate.facade import System
from remit.orchestrate.history.replay import AuditVerdict
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import tool
from tests.e2e.house import asking, calls, house, says, scripted
from tests.planted import Planted
from tests.text_files import bytes_below

WORDS = "the north gate opens at nine"


@tool(effect="read")
def look(what: dict[str, str]) -> str:
    """Look something up."""
    return f"{WORDS} " * (200 if "long" in what else 1)


def kit() -> Kit:
    return scripted(
        [calls("look", {"what": {"short": WORDS}}), calls("look", {"what": {"long": "1"}}), says(WORDS)], look
    )


async def written(home: Path) -> str:
    """The id of a run that holds the words in turns, in a text and in what a person said."""
    async with house(home, kit()) as system:
        done = await system.run(asking(f"I say {WORDS}."), kit())
        return done.run_id


async def opened(home: Path) -> tuple[EmbeddedStore, System]:
    from remit.assemble import system_on

    store = EmbeddedStore.open(home)
    return store, system_on(store, signer=lambda: store.signer)


def test_words_are_taken_out_of_every_byte_and_the_chain_holds(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "store"
        run_id = await written(home)
        assert WORDS.encode() in bytes_below(home)
        store, system = await opened(home)
        done = await store.redactions.redact(run_id, text=WORDS, by="ann", why="a mistake")
        assert (done.runs, done.texts, done.is_cleared) == (1, 1, True)
        assert done.turns >= 4
        verified = await system.archive.verify(run_id)
        assert verified.ok
        assert len(verified.redacted_turns) == done.turns
        (said,) = [finding.message for finding in verified.findings if finding.code is Fault.TURN_REDACTED]
        assert said.endswith("were redacted by ann because 'a mistake'")
        audited = await system.archive.replay(run_id)
        assert audited.verdict in (AuditVerdict.REDACTED, AuditVerdict.OTHER_VERSION)
        assert (await system.result(run_id)).content == "secret:redacted#000000000000"
        # Again finds nothing, and a run that was not started has nothing.
        assert (await store.redactions.redact(run_id, text=WORDS, by="ann", why="again")).turns == 0
        assert (await store.redactions.redact("nobody", text=WORDS, by="ann", why="x")).runs == 0
        with pytest.raises(RequestRejected, match=PATTERN_UNKNOWN):
            await store.redactions.redact(run_id, kind="nothing", by="ann", why="x")
        await system.close()
        assert WORDS.encode() not in bytes_below(home)

    asyncio.run(story())


def test_a_kind_of_secret_is_found_by_its_shape_in_a_run_that_was_written_before(tmp_path: Path) -> None:
    password = Planted(9).all()["password"]

    async def story() -> None:
        home = tmp_path / "store"
        store, system = await opened(home)
        # As an earlier version wrote it: nothing was sealed then.
        system._runner.sealer = None
        done = await system.run(asking(f"Use {password[0]} today."), scripted([says(f"I used {password[1]}.")]))
        assert password[1].encode() in bytes_below(home)
        found = await store.redactions.redact(done.run_id, kind="password", by="ann", why="a mistake")
        assert found.turns == 2
        await system.close()
        assert password[1].encode() not in bytes_below(home)

    asyncio.run(story())
