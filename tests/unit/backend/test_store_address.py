"""An address of servers that is wrong is refused by its part: named with its value and the way out, and no password shown."""

import itertools

import pytest

from remit.backend.cluster.server.address import LEASE_MS_MAX, LEASE_MS_MIN, StoreAddress, read_address
from remit.core.failure import RequestRejected

HOSTS = ("nats-1:4222", "10.0.0.7", "[::1]:4222", "ada:s3cret@queue.example:4222")
SCHEMES = ("nats", "tls")

# What is put in the place of a part that was right, and what the refusal must name.
WRONG = [
    ("{scheme}s://{host}", "scheme"),
    ("http://{host}", "'http'"),
    ("{scheme}://", "host"),
    ("{scheme}://{bare}:x7", "port"),
    ("{scheme}://{bare}:70000", "port"),
    ("{scheme}://{bare}:0", "port 0"),
    ("{scheme}://{host}/orders", "'/orders'"),
    ("{scheme}://{host}/a/b", "'/a/b'"),
    ("{scheme}://{host}#part", "'#part'"),
    ("{scheme}://{host},other:4222", "'other:4222'"),
    ("{scheme}://{host},{scheme}://", "host"),
    ("{scheme}://{host}?leases=5000", "'leases'"),
    ("{scheme}://{host}?lease_ms=5", "lease_ms='5'"),
    ("{scheme}://{host}?lease_ms=5000000000", "lease_ms='5000000000'"),
    ("{scheme}://{host}?lease_ms=", "lease_ms=''"),
    ("{scheme}://{host}?drive=me", "drive='me'"),
    ("{scheme}://{host}?drive=workers&drive=workers", "twice"),
    ("{scheme}://{host}?workers", "'workers'"),
    ("{scheme}://ada:s3cret/7@{bare}", "user or password"),
    ("{scheme}://ada:s3cret?7@{bare}", "user or password"),
    ("{scheme}://ada:s3cret#7@{bare}", "user or password"),
]


@pytest.mark.parametrize(("shape", "named"), WRONG)
def test_the_part_that_is_wrong_is_named_with_its_value_and_a_way_out(shape: str, named: str) -> None:
    for scheme, host in itertools.product(SCHEMES, HOSTS):
        bare = host.rpartition("@")[2].rpartition(":")[0] if host.endswith(":4222") else host
        address = shape.format(scheme=scheme, host=host, bare=bare)
        with pytest.raises(RequestRejected) as refused:
            read_address(address)
        assert refused.value.code == "STORE_ADDRESS_INVALID"
        assert named in refused.value.message, (address, refused.value.message)
        assert "nats://HOST:PORT" in refused.value.message
        assert "s3cret" not in refused.value.message


def test_an_address_that_is_right_is_taken_apart() -> None:
    for scheme, host in itertools.product(SCHEMES, HOSTS):
        one, two = f"{scheme}://{host}", f"{scheme}://other"
        assert read_address(one) == StoreAddress(one)
        assert read_address(f"{one}/") == StoreAddress(f"{one}/")
        assert read_address(f"{one},{two}?drive=workers") == StoreAddress(f"{one},{two}", 0, leaves=True)
        for lease_ms in (LEASE_MS_MIN, LEASE_MS_MAX):
            assert read_address(f"{one}?lease_ms={lease_ms}&drive=workers") == StoreAddress(one, lease_ms, leaves=True)
