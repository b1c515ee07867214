"""What parts of the user's own find: candidates and messages, as providers and rerankers give them.

Rule 1: what is neither is refused with the part that gave it, its type and what was expected, and is no evidence.
Rule 2: nothing that was found is an empty list. None is what a function gives that forgot its return.
"""

from collections.abc import Iterable, Mapping
from typing import TypeGuard, TypeVar

from remit.core.clipped import clipped
from remit.core.run.messages import Message, system_message
from remit.core.work.candidate import Candidate
from remit.core.work.plan import ContextFor, RerankInput
from remit.orchestrate.patterns.step_values import NoStepValue

_CANDIDATES = "a list of Candidate or a RerankInput"
_MESSAGES = "a list of messages, a message or a text"

K = TypeVar("K", Candidate, Message)


def candidates_in(said: object, query: str, part: str) -> RerankInput:
    """The candidates that a part gave for a query; raises NoStepValue for anything else."""
    given = said.candidates if isinstance(said, RerankInput) else (said,) if isinstance(said, Candidate) else said
    listed = tuple(given) if _is_list(given) else None
    if listed is None or not _all_of(listed, Candidate):
        raise _unfit(part, said, listed, _CANDIDATES)
    return RerankInput(said.query if isinstance(said, RerankInput) else query, listed)


def messages_in(said: object, query: str, part: str) -> ContextFor:
    """The messages that a part made for a query, or the one that it made of all it found; raises NoStepValue otherwise."""
    given = said.messages if isinstance(said, ContextFor) else (said,) if isinstance(said, Message) else said
    if isinstance(given, str):
        given = (system_message(given),) if given else ()
    listed = tuple(given) if _is_list(given) else None
    if listed is None or not _all_of(listed, Message):
        raise _unfit(part, said, listed, _MESSAGES)
    return ContextFor(said.query if isinstance(said, ContextFor) else query, listed)


def evidence_in(said: object, query: str, part: str) -> RerankInput | ContextFor:
    """The candidates or messages that a function found; raises NoStepValue for anything else."""
    given = tuple(said) if _is_list(said) else said
    if isinstance(given, ContextFor | Message | str) or (
        isinstance(given, tuple) and given and _all_of(given, Message)
    ):
        return messages_in(given, query, part)
    try:
        return candidates_in(given, query, part)
    except NoStepValue:
        raise _unfit(part, said, given if isinstance(given, tuple) else None, f"{_CANDIDATES}, or messages") from None


def _is_list(given: object) -> TypeGuard[Iterable[object]]:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | bytearray | Mapping)


def _all_of(listed: tuple[object, ...], kind: type[K]) -> TypeGuard[tuple[K, ...]]:
    return all(isinstance(each, kind) for each in listed)


def _unfit(part: str, said: object, listed: tuple[object, ...] | None, wanted: str) -> NoStepValue:
    kind = type(said).__name__
    if listed:
        kinds = sorted({type(each).__name__ for each in listed})
        kind = f"{kind} of {', '.join(kinds)}"
    nothing = "; give [] where nothing is found" if said is None else ""
    return NoStepValue(f"{part} gave a {kind} ({clipped(said)}); it gives {wanted}{nothing}")
