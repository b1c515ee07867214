"""Calls of a guarded run that wait for their result, found by their id and by their tool.

Rule 1: it holds what is open in the run's state and nothing else, so that looking for a call need not pass by all others.
Rule 2: several calls may have one id; the first of them is answered first.
"""

from collections.abc import Iterable
from typing import Any

from remit.core.commands import CallTool


class Waiting:
    """The open calls of one run."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[CallTool]] = {}
        self._by_tool: dict[str, dict[str, CallTool]] = {}

    def __contains__(self, call_id: str) -> bool:
        """Whether a call of this id waits."""
        return call_id in self._by_id

    def add(self, decisions: Iterable[Any]) -> None:
        """Note the calls among the decisions of a turn."""
        for command in decisions:
            if isinstance(command, CallTool):
                self._by_id.setdefault(command.call_id, []).append(command)
                self._by_tool.setdefault(command.tool, {})[command.id] = command

    def answered(self, call_id: str | None, tool: str) -> list[CallTool]:
        """The calls that a result settles: the first of this id, or without one all of the tool that wait for theirs."""
        if call_id is None:
            return list(self._by_tool.get(tool, {}).values())
        return [command for command in self._by_id.get(call_id, ()) if command.tool == tool][:1]

    def drop(self, command: CallTool) -> None:
        """Forget a call that has its result."""
        same = self._by_id[command.call_id]
        same.remove(command)
        if not same:
            del self._by_id[command.call_id]
        del self._by_tool[command.tool][command.id]
