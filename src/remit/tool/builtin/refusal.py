"""Refusing: how a builtin tool says no to the model that called it.

Rule 1: whatever a builtin tool cannot or will not do is a ToolRefused, with a code, the value, the limit and the way out.
Rule 2: a message never tells what the model may not know: no path outside a root, no address that a name resolved to.
Rule 3: what the model wrote comes back shortened and quoted, so that an error is never longer than what it is about.
"""

from remit.core.failure import RemitError
from remit.tool.call.outcomes import NotDone

# As much of a value as a reader needs to recognise it.
SHOWN_CHARS_MAX = 80


class ToolRefused(RemitError, NotDone):
    """A builtin tool did not do what it was asked, nor a part of it; the model reads why."""


def quoted_value(value: str) -> str:
    """A value of the model's, quoted and short enough for a message."""
    return ascii(value if len(value) <= SHOWN_CHARS_MAX else value[:SHOWN_CHARS_MAX] + "...")
