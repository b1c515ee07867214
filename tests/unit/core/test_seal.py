"""Seals and handles."""

import pytest

from remit.core.record import replace
from remit.core.secrets.seal import Sealed, reference_to, sealed, unsealed
from remit.core.secrets.secret_search import HANDLE

KEY, OTHER = b"k" * 32, b"o" * 32


def test_a_handle_follows_from_the_value_and_the_key_and_tells_neither() -> None:
    handle = reference_to(KEY, "password", "hunter22")
    assert HANDLE.fullmatch(handle)
    assert handle == reference_to(KEY, "password", "hunter22")
    assert len({handle, reference_to(OTHER, "password", "hunter22"), reference_to(KEY, "password", "hunter23")}) == 3
    assert reference_to(KEY, "password", "hunter22", 20).startswith(handle[:-1])


@pytest.mark.parametrize("value", ["hunter22", "é\ud800 half a pair", ""])
def test_a_sealed_value_is_opened_with_its_key_scope_and_handle_alone(value: str) -> None:
    one = sealed(KEY, "run", "secret:x#1", value)
    assert unsealed(KEY, "run", one) == value
    assert value == "" or value.encode(errors="surrogatepass") not in one.data
    assert unsealed(OTHER, "run", one) is None
    assert unsealed(KEY, "other", one) is None
    assert unsealed(KEY, "run", replace(one, handle="secret:x#2")) is None
    assert unsealed(KEY, "run", Sealed(one.handle, one.data[:-1] + b"\0")) is None
    assert unsealed(KEY, "run", Sealed(one.handle, b"")) is None
