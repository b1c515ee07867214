"""Only addresses of the open internet that are not our own are reachable."""

from ipaddress import ip_address, ip_network

import pytest

from remit.tool.builtin.addresses import is_own_address, is_public, is_reachable

CLOSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "2620:4f:8000::1",
    "3ffe::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "2a00::5efe:7f00:1",
    "2a00::200:5efe:808:808",
]

OPEN = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2003::1",
    "2400:cb00::1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "2c0f::1",
]


@pytest.mark.parametrize("address", CLOSED)
def test_an_address_of_the_machine_its_network_or_its_provider_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not is_reachable(ip_address(address))


@pytest.mark.parametrize("address", OPEN)
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


def test_an_address_with_a_scope_is_never_public() -> None:
    assert not is_public(ip_address("2a00::1%eth0"))


def test_an_address_of_this_machine_is_told_by_binding_to_it() -> None:
    assert is_own_address(ip_address("127.0.0.1"))
    assert not is_own_address(ip_address("8.8.8.8"))
    assert not is_own_address(ip_address("2001:4860:4860::8888"))


def test_what_an_operator_allows_is_reachable_and_nothing_beside_it() -> None:
    allowed = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
    assert is_reachable(ip_address("127.0.0.1"), allowed)
    assert is_reachable(ip_address("::1"), allowed)
    assert not is_reachable(ip_address("10.0.0.1"), allowed)
    assert not is_reachable(ip_address("::ffff:127.0.0.1"), allowed)
