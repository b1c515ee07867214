"""The published vectors of RFC 8785."""

import math
import struct

import msgspec
import pytest

from remit.core.journal.canonical import CanonicalFault, NotCanonical, canonical_json
from tests.vectors import vectors

SUITE = vectors("jcs_rfc8785_vectors.json")


@pytest.mark.parametrize("vector", SUITE["vectors"], ids=lambda vector: vector["name"])
def test_a_document_has_the_published_form(vector: dict[str, str]) -> None:
    assert canonical_json(msgspec.json.decode(vector["input"])) == vector["canonical"].encode()


@pytest.mark.parametrize(("bits", "expected"), SUITE["numbers"])
def test_a_double_has_the_published_form(bits: str, expected: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == expected.encode()
    assert canonical_json({"n": [number]}) == f'{{"n":[{expected}]}}'.encode()


@pytest.mark.parametrize("named", SUITE["must_reject"])
def test_a_double_that_must_be_rejected_is(named: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(named.split(maxsplit=1)[0]))
    assert not math.isfinite(number)
    with pytest.raises(NotCanonical) as caught:
        canonical_json(number)
    assert caught.value.code is CanonicalFault.NUMBER_NOT_FINITE
