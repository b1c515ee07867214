"""Verifying the journal of halts: every entry follows the one before, and a signed head vouches for it."""

from collections.abc import Sequence

from remit.core.failure import InvariantBroken
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import is_head_signed
from remit.core.journal.storage import SignedHead
from remit.core.run.halt import HALTS, NOTHING_HALTED, folded


def verify_halts(
    data: Sequence[bytes], heads: Sequence[SignedHead], logged: Sequence[SignedHead], signer: str | None
) -> tuple[str, ...]:
    """What is wrong with the journal of halts; nothing where it is as it was written.

    `signer` is the did:key the caller trusts; None takes whoever signed.
    """
    found: list[str] = []
    try:
        folded(NOTHING_HALTED, data)
    except InvariantBroken as error:
        found.append(error.message)
    links = [hash_turn(stored) for stored in data]
    vouched: set[int] = set()
    # Of two lines of the log about one entry the later one counts: the first was lost, and a lift accepted that.
    for head in (*heads, *{head.seq: head for head in logged}.values()):
        if head.run_id != HALTS or not is_head_signed(head) or (signer is not None and head.signer != signer):
            found.append(f"the head of entry {head.seq + 1} is not signed by the key of this store")
        elif not 0 <= head.seq < len(links):
            found.append(f"entry {head.seq + 1} was signed, and the journal ends with entry {len(links)}")
        elif links[head.seq] != head.head:
            found.append(f"entry {head.seq + 1} is not the one that was signed")
        else:
            vouched.add(head.seq)
    # A store that has no key signs nothing, and nobody can alter it who could not alter this process.
    if signer is not None:
        found += [f"no signed head vouches for entry {seq + 1}" for seq in range(len(links)) if seq not in vouched]
    return tuple(dict.fromkeys(found))
