"""A token tells a tool that its call was cancelled."""

import pytest

from remit.tool.call.cancel_token import CancelToken, ToolCancelled


def test_a_fresh_token_stops_nothing() -> None:
    token = CancelToken()
    token.raise_if_cancelled()
    assert not token.cancelled
    assert not token.wait(timeout_ms=1)


def test_a_cancelled_token_tells_everyone_who_asks() -> None:
    token = CancelToken()
    token.cancel()
    assert token.cancelled
    assert token.wait(timeout_ms=60_000)
    with pytest.raises(ToolCancelled, match="was cancelled"):
        token.raise_if_cancelled()
