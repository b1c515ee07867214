"""Addresses: which of them lie on the open internet, and which belong to the machine, its network or its provider.

Rule 1: an address is public only where the tables of the numbers authority say so; everything else is refused.
Rule 2: an IPv6 address that carries an IPv4 address within it is refused, whatever the inner one is: it is a way around.
Rule 3: the tables stand here and not in the standard library, whose answers change from one version to the next.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

IpAddress: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# Everything in IPv4 that is not public: the registry of special purposes, multicast, and what is reserved.
CLOSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network, and on Linux this machine
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by customers of a provider; some clouds keep their metadata here
        "127.0.0.0/8",  # this machine
        "168.63.129.16/32",  # the wire server of a cloud, an ordinary address with extraordinary powers
        "169.254.0.0/16",  # link-local, where most clouds keep their metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)

# In IPv6 only global unicast is open. Loopback, unique-local, link-local, multicast, IPv4-mapped and -compatible
# addresses and both prefixes of NAT64 lie outside of it.
OPEN_V6 = IPv6Network("2000::/3")
CLOSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo and ORCHID among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # an experiment that has ended
        "3fff::/20",  # documentation
    )
)

# ISATAP: the lower half of the address holds this and an IPv4 address.
_ISATAP_MARKS = frozenset({0x0000_5EFE, 0x0200_5EFE})


def is_public(address: IpAddress) -> bool:
    """Whether an address is one of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in CLOSED_V4)
    if address not in OPEN_V6 or address.scope_id is not None or any(address in network for network in CLOSED_V6):
        return False
    return (int(address) >> 32) & 0xFFFF_FFFF not in _ISATAP_MARKS


def is_own_address(address: IpAddress) -> bool:
    """Whether an address belongs to this machine: only then can a socket be bound to it."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def is_reachable(address: IpAddress, allowed: Sequence[Network] = ()) -> bool:
    """Whether a tool may connect to an address: a public one of others, or one that the operator allowed in Python."""
    if any(address.version == network.version and address in network for network in allowed):
        return True
    return is_public(address) and not is_own_address(address)
