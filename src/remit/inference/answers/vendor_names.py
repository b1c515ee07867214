"""Names of tools as vendors take them: letters, digits, `_` and `-`, at most 64; and back to the tools' own names.

Rule 1: only what is sent to a vendor, and what comes back from there, has such a name. The journal, the boundary and
        the approver of a call know a tool by its own name alone.
Rule 2: two tools never share a name there, nor does a renamed one take the name of another.
Rule 3: the same tools have the same names there whatever their order, so that what a model has read stays true.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256

from remit.core.limits.tools import ToolCall
from remit.core.record import replace
from remit.core.regex import regex
from remit.core.run.inference import ModelRequest, ModelResult
from remit.core.run.messages import Message

# What OpenAI and Anthropic both take; the servers that speak like them take it as well.
VENDOR_NAME_CHARS_MAX = 64

_is_safe = regex(rf"[A-Za-z0-9_-]{{1,{VENDOR_NAME_CHARS_MAX}}}")
_UNSAFE = regex(r"[^A-Za-z0-9_-]")
_MARK_CHARS = 8


def vendor_names(names: Iterable[str]) -> dict[str, str]:
    """By its own name, the name at the vendor of each tool whose own no vendor takes; the others keep theirs."""
    known = frozenset(names)
    strange = sorted(name for name in known if name and not _is_safe.fullmatch(name))
    drafts = {name: _UNSAFE.sub("_", name) for name in strange}
    drawn = Counter(drafts.values())
    taken = {name for name in known if _is_safe.fullmatch(name)}
    found: dict[str, str] = {}
    for name, draft in drafts.items():
        is_alone = drawn[draft] == 1 and draft not in taken and len(draft) <= VENDOR_NAME_CHARS_MAX
        found[name] = draft if is_alone else _marked(draft, name, taken)
        taken.add(found[name])
    return found


def _marked(draft: str, name: str, taken: set[str]) -> str:
    """A name with a mark that comes from the tool's own, made again while another tool has it."""
    digest = sha256(name.encode("utf-8", "surrogatepass"))
    while True:
        mark = digest.hexdigest()[:_MARK_CHARS]
        made = f"{draft[: VENDOR_NAME_CHARS_MAX - _MARK_CHARS - 1]}_{mark}"
        if made not in taken:
            return made
        digest.update(b"again")


class VendorNames:
    """One request in the names that its vendor takes, and its answer in the tools' own."""

    __slots__ = ("_own", "request")

    def __init__(self, request: ModelRequest) -> None:
        names = vendor_names(_names_in(request))
        self._own = {sent: name for name, sent in names.items()}
        self.request = _renamed(request, names) if names else request

    def restored(self, result: ModelResult) -> ModelResult:
        """The answer with the tools' own names."""
        if not self._own or not result.tool_calls:
            return result
        return replace(result, tool_calls=_renamed_calls(result.tool_calls, self._own))


def _names_in(request: ModelRequest) -> Iterable[str]:
    yield from (tool.name for tool in request.tools)
    for message in request.messages:
        yield message.name
        yield from (call.name for call in message.tool_calls)
    yield request.tool_choice.function_name


def _renamed(request: ModelRequest, names: Mapping[str, str]) -> ModelRequest:
    choice = request.tool_choice
    return replace(
        request,
        messages=tuple([_renamed_message(message, names) for message in request.messages]),
        tools=tuple([replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools]),
        tool_choice=replace(choice, function_name=names.get(choice.function_name, choice.function_name)),
    )


def _renamed_message(message: Message, names: Mapping[str, str]) -> Message:
    if not message.tool_calls and message.name not in names:
        return message
    name = names.get(message.name, message.name)
    return replace(message, name=name, tool_calls=_renamed_calls(message.tool_calls, names))


def _renamed_calls(calls: Iterable[ToolCall], names: Mapping[str, str]) -> tuple[ToolCall, ...]:
    return tuple([replace(call, name=names.get(call.name, call.name)) for call in calls])
