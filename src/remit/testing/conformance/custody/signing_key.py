"""What the SigningKey of every backend must do.

A check is a coroutine function. It opens a key with the function it is given, uses it, and raises AssertionError with a
sentence when it does not do what is relied on. Run each of KEY_CHECKS against yours, with any test runner.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.signing import is_head_signed, sign_head
from remit.orchestrate.ports import SigningKey
from remit.testing.conformance.in_words import in_words

# Opens a key, made or not, and closes what it belongs to afterwards.
OpenKey = Callable[[], AbstractAsyncContextManager[SigningKey]]
KeyCheck = Callable[[OpenKey], Coroutine[Any, Any, None]]


async def a_key_signs_and_stays_the_same(open_key: OpenKey) -> None:
    """The second call gives the same signer, and what it signs is found to be signed."""
    async with open_key() as key:
        first, second = key.signer, key.signer
        assert first.did == second.did, "a key is another one each time it is asked for"
        head = sign_head(first, run_id="run", seq=0, head=bytes(32), ending="")
        assert is_head_signed(head), "what a key signed is not signed"


async def a_key_that_was_used_is_made(open_key: OpenKey) -> None:
    """From then on it is there for readers."""
    async with open_key() as key:
        assert key.signer.did, "a key has no name"
        assert key.is_made, "a key that signed is said not to be there"


KEY_CHECKS: Sequence[KeyCheck] = in_words(a_key_signs_and_stays_the_same, a_key_that_was_used_is_made)
