"""The first arrival of a run: its manifest, with what the kernel needs to know of the request and may not compute.

Rule 1: every text of the request is fit to be written, and a long one goes to Blobs.
Rule 2: what cannot be written and read back must not become a run.
"""

from typing import TypeVar

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.codec import NO_HASH, decode_turn, encode_turn, read_back
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.tools import TOOL_CALL_INVALID, ToolDefinition
from remit.core.record import Record, once_a_record, replace, size_bytes
from remit.core.run.inference import CALL_HINT_BYTES_MAX
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Message
from remit.core.run.request_checks import REQUEST_MALFORMED
from remit.core.work.graph import Graph
from remit.kernel.results.notices import MESSAGE_TOKENS_OVERHEAD
from remit.orchestrate.facts.texts import Kept, clean, name, stored

R = TypeVar("R", bound=Record)

# Graphs, boundaries and tools of all runs; a deployment has some hundred.
_PARTS_KEPT_MAX = 1024
# What stands where those stood, of the bytes that are read for one run alone.
_NO_GRAPH, _NO_BOUNDARY = Graph("-", "-", (), ()), Boundary("-")


def started(manifest: Manifest, kept: Kept) -> RunStarted:
    """The first arrival of a run: its manifest, with bounds of what every model call will carry.

    Raises RequestRejected for a manifest that could not be written and read back.
    """
    messages = tuple(_stored(message, kept) for message in manifest.request.messages)
    bound = sum(_message_bound(position, message) for position, message in enumerate(messages))
    offer = sum(_offer_bound(tool) for tool in manifest.tools)
    if manifest.models:
        offer += manifest.models[0].template_tokens
        if manifest.models[0].calls_by_grammar and manifest.tools:
            offer += CALL_HINT_BYTES_MAX
    pinned_manifest = replace(manifest, request=replace(manifest.request, messages=messages))
    return _read_back(RunStarted(pinned_manifest, bound, offer))


def _stored(message: Message, kept: Kept) -> Message:
    """A message of the request with every text fit to be written, the long ones by reference."""
    content, reasoning = (
        stored(clean(text), kept) if isinstance(text, str) else text for text in (message.content, message.reasoning)
    )
    call_id, tool = name(message.tool_call_id), name(message.name)
    return replace(message, content=content, reasoning=reasoning, tool_call_id=call_id, name=tool)


def _message_bound(position: int, message: Message) -> int:
    bound = size_bytes(message.content) + size_bytes(message.reasoning) + MESSAGE_TOKENS_OVERHEAD
    bound += size_bytes(message.tool_call_id) + size_bytes(message.name)
    for call in message.tool_calls:
        try:
            bound += len(canonical_json([call.id, call.name, call.arguments])) + MESSAGE_TOKENS_OVERHEAD
        except NotCanonical as error:
            reason = f"call {call.name[:80]!r} of message {position} cannot be written: {error}"
            raise RequestRejected(TOOL_CALL_INVALID, reason, {"position": position}) from error
    return bound


@once_a_record(_PARTS_KEPT_MAX)
def _offer_bound(tool: ToolDefinition) -> int:
    described = size_bytes(clean(tool.name)) + size_bytes(clean(tool.description))
    return described + len(canonical_json(tool.parameters)) + MESSAGE_TOKENS_OVERHEAD


def _read_back(arrival: RunStarted) -> RunStarted:
    """The arrival as a process that resumes the run will read it. What cannot be read back must not become a run."""
    before = arrival.manifest
    try:
        # What serves many runs has as much to read as all of a short run, and is read back once for all of them. Tools were
        # checked and typed when the manifest was made: the very same ones are compiled once.
        graph, boundary = _as_read(before.graph), _as_read(before.boundary)
        for tool in before.tools:
            _as_read(tool)
        rest = replace(before, graph=_NO_GRAPH, boundary=_NO_BOUNDARY, tools=())
        read = decode_turn(encode_turn(Turn(0, 0, NO_HASH, KERNEL_VERSION, replace(arrival, manifest=rest)))).arrival
    except (ValueError, TypeError, OverflowError, RecursionError, InvariantBroken) as error:
        raise RequestRejected(REQUEST_MALFORMED, f"run {before.run_id!r} cannot be written down: {error}") from error
    assert isinstance(read, RunStarted)
    return replace(read, manifest=replace(read.manifest, graph=graph, boundary=boundary, tools=before.tools))


@once_a_record(_PARTS_KEPT_MAX)
def _as_read(part: R) -> R:
    """A part of a manifest as it is read from its bytes: itself, where reading changes nothing."""
    read = read_back(part)
    return part if read == part else read
