"""What the model is told by the kernel itself."""

import pytest

from remit.core.messages import Role
from remit.kernel import words


def test_a_bound_is_the_bytes_of_the_text_and_a_fixed_overhead() -> None:
    assert words.tokens_bound("äö") == 4 + words.MESSAGE_TOKENS_OVERHEAD


def test_a_refusal_names_its_code_and_reason_to_the_call_it_answers() -> None:
    message = words.refusal("call_7", "pay", "PERMISSION_DENIED", "not yours")
    assert (message.role, message.tool_call_id, message.name) == (Role.TOOL, "call_7", "pay")
    assert message.content == "Not called. PERMISSION_DENIED: not yours"


def test_a_failure_is_told_in_the_tools_own_words() -> None:
    assert words.failure("call_7", "pay", "TOOL_TIMEOUT", "it hangs").content == "TOOL_TIMEOUT: it hangs"


def test_a_correction_lists_every_problem() -> None:
    message = words.correction(("too long", "too loud"))
    assert message.role is Role.USER
    assert message.content == "The answer was not accepted:\n- too long\n- too loud\nAnswer again."


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (words.refusal_bound("CODE", "why"), words.refusal("", "", "CODE", "why").content),
        (words.failure_bound("CODE", "why"), words.failure("", "", "CODE", "why").content),
        (words.correction_bound(("one", "two")), words.correction(("one", "two")).content),
    ],
)
def test_the_bound_of_a_message_is_that_of_its_text(bound: int, text: str) -> None:
    assert bound == words.tokens_bound(text)
