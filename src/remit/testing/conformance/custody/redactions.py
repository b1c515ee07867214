"""What Redactions of every store must do: take words out of every place that they stand in, and leave the chain whole.

A check is a coroutine function. It opens an empty store that has a key with the function it is given, whose argument is the
clock that the store shall go by, uses it, and raises AssertionError with a sentence when it does not do what is relied on. Run
each of REDACTIONS_CHECKS against yours, with any test runner. That no freed page of a disk holds the words any more can only be
seen with a disk of your own.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from remit.core.journal.arrivals import FeedbackGiven
from remit.core.journal.codec import NO_HASH, decode_turn, encode_turn, hash_turn, redacted_in
from remit.core.journal.signing import is_redaction_signed
from remit.core.journal.storage import Barrier, BlobMissing, Redacted, RunListing
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.record import BlobRef, Text, digest_of
from remit.orchestrate.loop.signatures import signed_journal
from remit.orchestrate.ports import Store
from remit.testing.conformance.custody.retention import START_MS, OpenStore, Time
from remit.testing.conformance.in_words import in_words, refusal_code
from remit.testing.conformance.sample_turns import RUN, add

RedactionsCheck = Callable[[OpenStore], Coroutine[Any, Any, None]]

WORDS = "the north gate opens at nine"
_LONG = f"It is said that {WORDS}. " * 200
_OTHER = "nothing of the kind " * 200
# Two secrets of different kinds; the one is written in parts, so that no search for secrets in programs takes it for one.
_PASSWORD, _TOKEN = "Tr0ub4dor-and-3", "AKIA" + "Q3ZK7MWX2PLT9VRB"


async def words_are_taken_out_of_turns_and_texts(open_store: OpenStore) -> None:
    """A turn is written anew without them, a text that holds them goes whole, and what does not hold them stays."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN, f"I say {WORDS}.", _LONG, "Hello.", _OTHER)
        done = await store.redactions.redact(RUN, text=WORDS, by="ann", why="a mistake")
        told = (done.runs, done.turns, done.texts, done.is_cleared)
        assert told == (1, 2, 1, True), f"words stood in a turn and in a text that another names, and {done} is told"
        turns = list(await store.journal.read(RUN))
        assert not [data for data in turns if WORDS.encode() in data], "the words still stand in a turn"
        assert not await _is_kept(store, _LONG), "a text that held the words is still kept"
        assert await _is_kept(store, _OTHER), "a text that never held the words is gone"
        changed = [seq for seq, data in enumerate(turns) if redacted_in(data) is not None]
        assert changed == [0, 1], f"turns 0 and 1 were to be written anew, and {changed} were"
        arrival = decode_turn(turns[0]).arrival
        assert isinstance(arrival, FeedbackGiven), f"what is left of a turn reads as {arrival}"
        assert str(arrival.text).startswith("I say "), f"of a turn more than the words was taken out: {arrival.text!r}"


async def a_redacted_turn_keeps_the_hash_that_it_had(open_store: OpenStore) -> None:
    """So that the chain and every signed head hold; the key of the store signs what is left, with who did it, when and why."""
    time = Time()
    async with open_store(time.now_ms) as store:
        assert store.key is not None, "the suite is played on a store that has a key"
        await _run(store, RUN, WORDS, "Hello.")
        hashes = [hash_turn(data) for data in await store.journal.read(RUN)]
        heads = list(await store.catalogue.heads(RUN))
        time.at_ms += 1
        await store.redactions.redact(RUN, text=WORDS, by="ann", why="a mistake")
        turns = list(await store.journal.read(RUN))
        assert [hash_turn(data) for data in turns] == hashes, "a redacted turn has another hash than it had"
        assert list(await store.catalogue.heads(RUN)) == heads, "the heads of a run changed with a redaction"
        left = redacted_in(turns[0])
        assert left is not None, "a turn was redacted and does not say so"
        told = (left.by, left.why, left.at_ms, left.signer)
        expected = ("ann", "a mistake", START_MS + 1, store.key.signer.did)
        assert told == expected, f"a redacted turn says {told}, and it was {expected}"
        assert is_redaction_signed(RUN, 0, left), "what is left of a turn is not signed"


async def a_run_is_redacted_with_those_beneath_it(open_store: OpenStore) -> None:
    """And with no other."""
    async with open_store(Time().now_ms) as store:
        await _run(store, "root", WORDS)
        await _run(store, "child", WORDS, parent_id="root")
        await _run(store, "beside", WORDS)
        done = await store.redactions.redact("root", text=WORDS, by="ann", why="a mistake")
        assert (done.runs, done.turns) == (2, 2), (
            f"a run and its child hold the words in a turn each, and {done} is told"
        )
        changed = [run_id for run_id in ("root", "child", "beside") if await _is_redacted(store, run_id)]
        assert changed == ["root", "child"], f"a run and its child were to be redacted, and {changed} were"


async def caches_and_entries_that_hold_the_words_go(open_store: OpenStore) -> None:
    """The snapshot of a run is made again; entries of the inbox without the words stay."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN, WORDS)
        await store.snapshots.keep(RUN, 0, hash_turn(b""), WORDS.encode())
        await store.inbox.put(RUN, WORDS.encode())
        other = await store.inbox.put(RUN, b"hello")
        await store.redactions.redact(RUN, text=WORDS, by="ann", why="a mistake")
        assert await store.snapshots.latest(RUN) is None, "a snapshot that may hold the words is still kept"
        pending = [entry.number for entry in await store.inbox.pending(after=0)]
        assert pending == [other], f"entry {other} alone does not hold the words, and {pending} wait"


async def where_the_words_do_not_stand_nothing_changes(open_store: OpenStore) -> None:
    """Nor where the run was never started, nor the second time."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN, WORDS, "Hello.")
        before = list(await store.journal.read(RUN))
        done = await store.redactions.redact(RUN, text="never said", by="ann", why="x")
        assert done == Redacted(1), f"the words stand nowhere, and {done} is told"
        assert list(await store.journal.read(RUN)) == before, "turns that do not hold the words were written anew"
        done = await store.redactions.redact("unknown", text=WORDS, by="ann", why="x")
        assert done == Redacted(), f"the run was never started, and {done} is told"
        await store.redactions.redact(RUN, text=WORDS, by="ann", why="x")
        done = await store.redactions.redact(RUN, text=WORDS, by="ann", why="again")
        assert done == Redacted(1), f"the words were taken out before, and {done} is told"


async def a_run_that_is_driven_is_not_redacted(open_store: OpenStore) -> None:
    """Nor is any other of its family then; no run is held afterwards."""
    async with open_store(Time().now_ms) as store:
        await _run(store, "root", WORDS)
        await _run(store, "child", WORDS, parent_id="root")
        token = await store.leases.take("child") or 0
        code = await refusal_code(store.redactions.redact("root", text=WORDS, by="ann", why="x"))
        assert code == "STORE_BUSY", f"a family of which one is driven was refused with {code!r}"
        assert not await _is_redacted(store, "root"), "a family was refused, and some of it is redacted"
        assert not await store.leases.is_held("root"), "a redaction that was refused holds the run still"
        await store.leases.release("child", token)
        done = await store.redactions.redact("root", text=WORDS, by="ann", why="x")
        assert done.turns == 2, "a family without a driver cannot be redacted"


async def a_kind_that_nobody_knows_is_refused(open_store: OpenStore) -> None:
    """Before anything is looked at."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN, WORDS)
        code = await refusal_code(store.redactions.redact(RUN, kind="nothing", by="ann", why="x"))
        assert code == "PATTERN_UNKNOWN", f"a kind of secret that there is not was refused with {code!r}"


async def secrets_of_a_kind_are_taken_out_of_turns_and_texts(open_store: OpenStore) -> None:
    """Wherever they stand and whatever they are; those of other kinds stay, until every kind is asked for."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN, f"The password is {_PASSWORD}.", f"The password is {_PASSWORD}. " * 20, f"And {_TOKEN}.")
        done = await store.redactions.redact(RUN, kind="password", by="ann", why="a mistake")
        told = (done.runs, done.turns, done.texts, done.is_cleared)
        assert told == (1, 2, 1, True), (
            f"a password stood in a turn and in a text that another names, and {done} is told"
        )
        turns = b"".join(await store.journal.read(RUN))
        assert _PASSWORD.encode() not in turns, "passwords were to be taken out, and one still stands in a turn"
        assert _TOKEN.encode() in turns, "passwords were to be taken out, and a secret of another kind is gone"
        done = await store.redactions.redact(RUN, kind="any", by="ann", why="a mistake")
        assert done.turns == 1, f"one secret was left in one turn, and {done} is told of taking out any"
        turns = b"".join(await store.journal.read(RUN))
        assert _TOKEN.encode() not in turns, "secrets of any kind were to be taken out, and one still stands in a turn"


REDACTIONS_CHECKS: Sequence[RedactionsCheck] = in_words(
    words_are_taken_out_of_turns_and_texts,
    a_redacted_turn_keeps_the_hash_that_it_had,
    a_run_is_redacted_with_those_beneath_it,
    caches_and_entries_that_hold_the_words_go,
    where_the_words_do_not_stand_nothing_changes,
    a_run_that_is_driven_is_not_redacted,
    a_kind_that_nobody_knows_is_refused,
    secrets_of_a_kind_are_taken_out_of_turns_and_texts,
)

# A text that is longer lives beside the turn.
_TEXT_CHARS_MAX = 100


async def _run(store: Store, run_id: str, *texts: str, parent_id: str = "") -> None:
    """A run in each of whose turns a person says a text; a long one is kept beside it."""
    journal, previous = signed_journal(store.journal, store.key), NO_HASH
    for seq, text in enumerate(texts):
        said: Text = text
        if len(text) > _TEXT_CHARS_MAX:
            said = BlobRef(digest_of(text.encode()), len(text.encode()))
            await store.blobs.put(said.digest, text.encode())
        data = encode_turn(Turn(seq, START_MS, previous, KERNEL_VERSION, FeedbackGiven("ann", said)))
        listing = None if seq else RunListing(START_MS, parent_id=parent_id)
        await add(journal, run_id, data, Barrier("SUCCESS"), listing)
        previous = hash_turn(data)


async def _is_redacted(store: Store, run_id: str) -> bool:
    return any(redacted_in(data) is not None for data in await store.journal.read(run_id))


async def _is_kept(store: Store, text: str) -> bool:
    try:
        await store.blobs.get(digest_of(text.encode()))
    except BlobMissing:
        return False
    return True
