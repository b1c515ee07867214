"""What Seals of every backend must do.

A check is a coroutine function. It opens seals that hold nothing with the function it is given, uses them, and raises
AssertionError with a sentence when they do not do what is relied on. Run each of SEALS_CHECKS against yours, with any test
runner.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.orchestrate.ports import Seals
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN

# Opens seals that hold nothing, and closes them afterwards.
OpenSeals = Callable[[], AbstractAsyncContextManager[Seals]]
SealsCheck = Callable[[OpenSeals], Coroutine[Any, Any, None]]

ODD_VALUES = ("a", "ä\n'; --", " " * 3, "x" * 5_000)


async def a_value_comes_back_by_its_handle(open_seals: OpenSeals) -> None:
    """Exactly, and the handle does not show it."""
    async with open_seals() as seals:
        handles = {seals.seal(RUN, "token", value): value for value in ODD_VALUES}
        assert seals.values(RUN) == handles, "sealed values do not come back by their handles"
        assert not any(value in handle for handle, value in handles.items() if len(value) > 1), (
            "a handle shows its value"
        )


async def a_value_has_one_handle(open_seals: OpenSeals) -> None:
    """Sealing it again gives the same one."""
    async with open_seals() as seals:
        assert seals.seal(RUN, "token", "v") == seals.seal(RUN, "token", "v"), "a value has two handles"
        assert len(seals.values(RUN)) == 1, "a value that was sealed twice is there twice"


async def scopes_are_kept_apart(open_seals: OpenSeals) -> None:
    """A run knows what was sealed for it, or adopted, and nothing else."""
    async with open_seals() as seals:
        handle = seals.seal(RUN, "token", "v")
        assert seals.values(OTHER) == {}, "a run knows what was sealed for another"
        seals.adopt(OTHER, RUN)
        assert seals.values(OTHER) == {handle: "v"}, "a run does not know what it adopted"


async def what_is_forgotten_is_gone(open_seals: OpenSeals) -> None:
    """For its scope alone."""
    async with open_seals() as seals:
        handle = seals.seal(RUN, "token", "v")
        seals.adopt(OTHER, RUN)
        seals.forget(RUN)
        seals.forget("unknown")
        assert seals.values(RUN) == {}, "what was forgotten is still known"
        assert seals.values(OTHER) == {handle: "v"}, "forgetting one scope changed another"


SEALS_CHECKS: Sequence[SealsCheck] = in_words(
    a_value_comes_back_by_its_handle,
    a_value_has_one_handle,
    scopes_are_kept_apart,
    what_is_forgotten_is_gone,
)
