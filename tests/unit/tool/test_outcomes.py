"""Outcomes are bounded and coded, and even an error that cannot tell its message is described."""

from remit.core.failure import ErrorCode, RemitError
from remit.tool.call.outcomes import ERROR_CHARS_MAX, Performed, ToolFault, error_text, fault_of, shortened_error


class Mute(Exception):
    def __str__(self) -> str:  # type: ignore[explicit-override]
        raise RuntimeError("hush")


def test_a_fault_is_a_coded_error_with_its_text() -> None:
    fault = ToolFault(ErrorCode.TOOL_TIMEOUT, "too slow")
    assert isinstance(fault, RemitError)
    assert (fault.code, fault.error_code, fault.error) == ("TOOL_TIMEOUT", ErrorCode.TOOL_TIMEOUT, "too slow")


def test_an_error_is_described_by_its_type_and_message() -> None:
    assert error_text(ValueError("no")) == "ValueError: no"
    assert error_text(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert error_text(Mute()) == "Mute: its message raised RuntimeError"
    assert fault_of(ValueError("no")).error_code is ErrorCode.TOOL_EXECUTION_FAILED


def test_a_long_error_is_cut_at_its_limit() -> None:
    text = fault_of(ValueError("x" * 1_000_000)).error
    assert len(text) == ERROR_CHARS_MAX
    assert text.endswith(" ...")
    assert shortened_error("x" * ERROR_CHARS_MAX) == "x" * ERROR_CHARS_MAX


def test_a_performed_call_is_verified_unless_refuted() -> None:
    assert Performed("x") == Performed("x", refuted="", stop_loop=False, printed="")
