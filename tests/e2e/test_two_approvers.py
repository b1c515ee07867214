"""Two people say yes at the same moment, each in a process of their own: one is heard, and what was begun is done."""

from collections import Counter
from pathlib import Path

from remit.core.failure import EXIT_FAILED, EXIT_OK
from tests.e2e.command import remit_in

# It takes a while, so that the refused approver would have left before it is done.
TOOLS = '''
import asyncio
from typing import Literal
from remit import tool


@tool(effect="write", network=False)
async def keep(text: str) -> Literal["kept"]:
    """Keep a text, in two steps."""
    with open("KEPT", "a") as kept:
        kept.write("begun ")
    await asyncio.sleep(1.0)
    with open("KEPT", "a") as kept:
        kept.write("done ")
    return "kept"
'''


def test_an_approver_who_is_refused_does_not_leave_with_what_the_other_one_allowed(tmp_path: Path) -> None:
    codes: Counter[str] = Counter()
    for round_ in range(3):
        with remit_in(tmp_path / str(round_)) as remit:
            remit.write(TOOLS, [{"tool_calls": [{"name": "keep", "arguments": {"text": "a"}}]}, {"text": "Kept."}])
            waits = remit.run_here()
            (packet,) = waits.values["waiting_for"]["packet_ids"]
            said = [one.answer() for one in [remit.start("approve", packet, "--by", who) for who in ("ann", "bob")]]
            codes.update(answer.error_code for answer in said)
            assert sorted({answer.exit_code for answer in said}) in ([EXIT_OK], [EXIT_OK, EXIT_FAILED])
            assert (remit.folder / "KEPT").read_text() == "begun done "
            assert remit.here("show", "last", "--json").values["response"]["terminal_code"] == "SUCCESS"
    assert codes[""] >= 3, codes
