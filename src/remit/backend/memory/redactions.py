"""Redactions of a store in memory: the laws of backend/embedded/redactions.py, over dictionaries."""

from collections.abc import Callable, Iterable, Iterator

from remit.backend.memory.retention import Kept, MemoryRetention
from remit.backend.redacted_turns import found_in, holds, longest_first, without
from remit.core.journal.codec import digests_in, encode_redacted
from remit.core.journal.signing import Signer, sign_redaction
from remit.core.journal.storage import Redacted, StoreUnusable
from remit.core.journal.turn import RedactedTurn
from remit.core.run.person import check_person
from remit.core.secrets.secret_search import covered
from remit.tool.secrets.redaction import Find, finder_of


class MemoryRedactions:
    """Redacts runs of one store, where somebody brought it a key: what is left of a turn is signed."""

    def __init__(
        self, kept: Kept, retention: MemoryRetention, signer: Signer | None, now_ms: Callable[[], int]
    ) -> None:
        self._kept = kept
        self._retention = retention
        self._signer = signer
        self._now_ms = now_ms

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Take a text in each of its forms, or every secret of a kind, out of a run and those beneath it."""
        find, by, why = finder_of(text, kind), check_person(by), covered(why)
        if self._signer is None:
            message = (
                f"run {run_id} cannot be redacted: what is left of a turn is signed, and this store in memory has no key; "
                "open it with a signer"
            )
            raise StoreUnusable("STORE_KEY_MISSING", message, {"run_id": run_id})
        async with self._retention.held_family(run_id) as runs:
            values = self._found(runs, find)
            if not values:
                return Redacted(len(runs))
            said = RedactedTurn(b"", b"", by, why, self._now_ms(), "", b"")
            done = [self._redact_run(member, values, said, self._signer) for member in runs]
        return Redacted(len(runs), sum(turns for turns, _ in done), sum(texts for _, texts in done))

    def _found(self, runs: Iterable[str], find: Find) -> tuple[str, ...]:
        values: dict[str, None] = {}
        for run_id in runs:
            for data in self._kept.journal.turns_of(run_id):
                values |= found_in(find, data, (blob for _, blob in self._texts_of(data)))
        return longest_first(values)

    def _redact_run(self, run_id: str, values: tuple[str, ...], said: RedactedTurn, signer: Signer) -> tuple[int, int]:
        """Redact one run; gives the numbers of turns that were written anew and of texts that were removed."""
        kept, turns, removed = self._kept, 0, set[bytes]()
        for seq, data in enumerate(kept.journal.turns_of(run_id)):
            held = {digest for digest, blob in self._texts_of(data) if holds(blob, values)}
            for digest in held:
                kept.blobs.remove(digest)
            removed |= held
            left = without(values, data, removed, said)
            if left is not None:
                kept.journal.rewrite(run_id, seq, encode_redacted(sign_redaction(signer, run_id, seq, left)))
                turns += 1
        kept.snapshots.forget(run_id)
        kept.inbox.remove([entry for entry in kept.inbox.of_run(run_id) if holds(entry.data, values)])
        return turns, len(removed)

    def _texts_of(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The long texts that a turn refers to, as far as they are kept."""
        for digest in dict.fromkeys(digests_in(data)):
            if (blob := self._kept.blobs.found(digest)) is not None:
                yield digest, blob
