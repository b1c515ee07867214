"""What a model is shown and what it proposes, as the wire names it: evidence in its place, and one id for every call.

Rule 1: a call has one id wherever the wire speaks of it: in the answer that proposes it, in the messages that later calls are
        shown, where its tool is asked, and in its result. It is that of the model call and the number of the proposal, since
        the ids that providers give to calls repeat. A call that no model proposed has that of its command.
Rule 2: evidence stands just before the last message of the request, as the model is shown it, once it was found.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import place_in_journal
from remit.core.limits.tools import ToolCall
from remit.core.record import replace
from remit.core.run.messages import Message, Role, assistant_message, system_message
from remit.kernel.state import RunState, pinned

# Between a run and its command in an id of the wire. No id of a command has it.
_MARK = ":"


def request_id_of(run_id: str, command_id: str) -> str:
    """The name of a command on the wire."""
    return f"{run_id}{_MARK}{command_id}"


def proposal_ids(run_id: str, answer: ModelAnswered) -> Iterator[str]:
    """The ids of the calls that an answer proposes, in their order."""
    return (f"{request_id_of(run_id, answer.command_id)}.{number}" for number in range(1, len(answer.calls) + 1))


def call_id_of(state: RunState, command_id: str, call_id: str, tool: str, arguments_hash: bytes) -> str:
    """The id of a call: that of the newest proposal before its command which it carries out, else that of its command."""
    seq, found = place_in_journal(command_id)[0], ""
    for answer in reversed(state.talk.context):
        if not isinstance(answer, ModelAnswered) or place_in_journal(answer.command_id)[0] >= seq:
            continue
        for name, call in zip(proposal_ids(state.run_id, answer), answer.calls, strict=True):
            if (call.call_id, call.tool) == (call_id, tool):
                if call.arguments_hash == arguments_hash:
                    return name
                # A person may have changed its arguments.
                found = found or name
    return found or request_id_of(state.run_id, command_id)


def talk_of(state: RunState, count: int, *, has_evidence: bool = True) -> tuple[Message, ...]:
    """The first messages of a run's context as its models are shown them, long texts by reference, calls by their ids."""
    shown = list(_named(state.run_id, state.talk.context[:count]))
    if has_evidence and state.talk.ephemeral:
        shown.insert(len(pinned(state).request.messages) - 1, system_message(state.talk.ephemeral))
    return tuple(shown)


def _named(run_id: str, entries: Sequence[Message | ModelAnswered]) -> Iterator[Message]:
    waiting: dict[str, deque[str]] = {}
    for entry in entries:
        if isinstance(entry, ModelAnswered):
            names = list(proposal_ids(run_id, entry))
            waiting = {}
            for name, call in zip(names, entry.calls, strict=True):
                waiting.setdefault(call.call_id, deque()).append(name)
            proposed = [(name, call) for name, call in zip(names, entry.calls, strict=True) if call.tool]
            calls = tuple([ToolCall(name, call.tool, arguments_in(call.arguments)) for name, call in proposed])
            yield assistant_message(entry.text, calls, entry.reasoning)
        elif entry.role is Role.TOOL and (names_left := waiting.get(entry.tool_call_id)):
            yield replace(entry, tool_call_id=names_left.popleft())
        else:
            yield entry
