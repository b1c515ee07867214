"""What a tool says of where values may come from; silence is the worst."""

from remit.core.limits.tool_trust import READS_RANK, UNTRUSTING, Reads, Repeat, Trust
from remit.core.limits.tools import ToolDefinition

REACHES = [Reads, Repeat]


def test_a_tool_that_says_nothing_is_taken_at_its_worst() -> None:
    tool = ToolDefinition("act", "Acts.", {"type": "object"})
    assert tool.trust == UNTRUSTING == Trust()
    assert (tool.trust.payload_args, tool.trust.fields, tool.trust.directory) == ((), (), False)
    assert (tool.trust.repeat, tool.trust.reads, tool.trust.stakes) == (Repeat.ONCE, Reads.PRIVATE, None)


def test_what_is_secret_takes_most_to_be_read_and_what_is_public_least() -> None:
    assert sorted(Reads, key=READS_RANK.__getitem__) == [Reads.PUBLIC, Reads.PRIVATE, Reads.SECRET]
