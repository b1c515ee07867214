"""Simulated runs as a store keeps them: turns, long texts, heads signed at every barrier, and the log of those heads."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import SignedHead
from remit.core.journal.turn import Turn
from remit.core.record import replace
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.proof.findings import Verification
from remit.observe.proof.verify import AcceptedKeys, verify_run
from remit.orchestrate.loop.durability import barrier_of
from remit.testing.world import SimulatedWorld
from tests.simulation.scenarios import played_world

SIGNER = Signer.from_bytes(bytes(range(32)))
MALLORY = Signer.from_bytes(bytes(32))


class Sealed(NamedTuple):
    """What a store holds of one run."""

    run_id: str
    data: tuple[bytes, ...]
    blobs: dict[bytes, bytes]
    heads: tuple[SignedHead, ...]
    logged: tuple[SignedHead, ...]

    def verified(self, *, signer: AcceptedKeys = SIGNER.did) -> Verification:
        """What verifying it finds."""
        return verify_run(self.run_id, self.data, self.heads, self.logged, signer, self.blobs.get)

    def codes(self) -> set[str]:
        """The codes of the findings."""
        return {finding.code.value for finding in self.verified().findings}

    @property
    def signed_turns(self) -> int:
        """How many turns a head vouches for."""
        return max((head.seq + 1 for head in self.heads), default=0)


def seal(run_id: str, data: Sequence[bytes], blobs: dict[bytes, bytes], signer: Signer = SIGNER) -> Sealed:
    """A run with its heads, signed where the runner asks for it."""
    state, heads = RunState(), []
    for stored in data:
        turn, link = decode_turn(stored), hash_turn(stored)
        if (barrier := barrier_of(state, turn)) is not None:
            heads.append(sign_head(signer, run_id=run_id, seq=turn.seq, head=link, ending=barrier.ending))
        apply(state, turn, link)
    return Sealed(run_id, tuple(data), dict(blobs), tuple(heads), tuple(heads))


def sealed_runs(world: SimulatedWorld) -> list[Sealed]:
    """Every run of a world."""
    return [seal(run_id, world.run(run_id).journal, world.blobs._kept) for run_id in world.run_ids()]


@cache
def simulated(seed: int) -> list[Sealed]:
    """The runs of a scenario."""
    return sealed_runs(played_world(seed))


def rechained(data: Sequence[bytes], start: int) -> tuple[bytes, ...]:
    """The turns with numbers and links made to fit from `start` on, as a forger without the key would do it."""
    chain = list(data[:start])
    for stored in data[start:]:
        turn: Turn = decode_turn(stored)
        previous = hash_turn(chain[-1]) if chain else b""
        chain.append(encode_turn(replace(turn, seq=len(chain), previous=previous)))
    return tuple(chain)
