"""What no run could be started with is refused when the loop is made, and providers may give a text or one message."""

from collections.abc import Callable
from typing import Any

import pytest

from remit import AgentLoop, RedundantLoop, RequestRejected, SpecializedLoop, system_in_memory, user_message
from tests.doors.desk import MOOD, Panel

LOOPS: dict[str, Callable[..., Any]] = {
    "chat": AgentLoop,
    "shaped": lambda engine, **given: SpecializedLoop(engine, **{"schema": MOOD, **given}),
    "vote": lambda engine, **given: RedundantLoop(engine, **{"schema": MOOD, **given}),
}
WRONG: list[dict[str, Any]] = [
    {"grammar": "root ::= x"},
    {"grammar": "missing.gbnf"},
    {"context_provider": lambda query: []},
    {"context_provider": object()},
    {"context_provider": 5},
    {"boundary": "nosuch"},
]


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("given", WRONG, ids=lambda given: "-".join(map(str, *given.items()))[:30])
def test_what_no_run_could_be_started_with_is_refused_when_a_loop_is_made(kind: str, given: dict[str, Any]) -> None:
    with pytest.raises(RequestRejected):
        LOOPS[kind](Panel("hi"), **given)


@pytest.mark.parametrize("kind", ["shaped", "vote"])
@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"type": "object", "properties": {"a": {"minimum": "x"}}}])
def test_a_schema_that_nothing_could_be_checked_with_is_refused_when_a_loop_is_made(kind: str, schema: Any) -> None:
    with pytest.raises(RequestRejected):
        LOOPS[kind](Panel("hi"), schema=schema)


class Provider:
    """Gives whatever it was made with."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def build(self, query: str) -> Any:
        """What it was made with."""
        return self.given


@pytest.mark.parametrize(
    "given", ["Ada is on duty.", user_message("Ada is on duty."), [user_message("Ada is on duty.")]]
)
def test_a_provider_gives_messages_one_message_or_a_text(given: Any) -> None:
    panel = Panel("Ada")
    AgentLoop(panel, context_provider=Provider(given), system=system_in_memory()).chat_sync("Who is on duty?")
    assert any("Ada is on duty." in str(message.content) for message in panel.asked[0].messages)
