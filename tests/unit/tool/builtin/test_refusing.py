"""What a model wrote comes back short and harmless."""

from remit.tool.builtin.refusal import SHOWN_CHARS_MAX, ToolRefused, quoted_value


def test_a_value_is_quoted_without_anything_that_a_terminal_would_obey() -> None:
    assert quoted_value("a\x1b[2J\u202e\ud800") == "'a\\x1b[2J\\u202e\\ud800'"


def test_a_long_value_is_cut() -> None:
    assert len(quoted_value("x" * 10_000)) == SHOWN_CHARS_MAX + len("'...'")


def test_a_refusal_tells_its_code_and_its_message() -> None:
    assert str(ToolRefused("CODE", "why")) == "CODE: why"
