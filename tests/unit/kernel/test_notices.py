"""What the model is told by the kernel itself."""

import pytest

from remit.core.run.messages import Role
from remit.kernel.results import notices


def test_a_bound_is_the_bytes_of_the_text_and_a_fixed_overhead() -> None:
    assert notices.tokens_bound("äö") == 4 + notices.MESSAGE_TOKENS_OVERHEAD


def test_a_refusal_names_its_code_and_reason_to_the_call_it_answers() -> None:
    message = notices.refusal_notice("call_7", "pay", "PERMISSION_DENIED", "not yours")
    assert (message.role, message.tool_call_id, message.name) == (Role.TOOL, "call_7", "pay")
    assert message.content == "Not called. PERMISSION_DENIED: not yours"


def test_a_failure_is_told_in_the_tools_own_words() -> None:
    assert notices.failure_notice("call_7", "pay", "TOOL_TIMEOUT", "it hangs").content == "TOOL_TIMEOUT: it hangs"


def test_a_correction_lists_every_problem() -> None:
    message = notices.correction(("too long", "too loud"))
    assert message.role is Role.USER
    assert message.content == "The answer was not accepted:\n- too long\n- too loud\nAnswer again."


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (notices.refusal_bound("CODE", "why"), notices.refusal_notice("", "", "CODE", "why").content),
        (notices.failure_bound("CODE", "why"), notices.failure_notice("", "", "CODE", "why").content),
        (notices.correction_bound(("one", "two")), notices.correction(("one", "two")).content),
    ],
)
def test_the_bound_of_a_message_is_that_of_its_text(bound: int, text: str) -> None:
    assert bound == notices.tokens_bound(text)
