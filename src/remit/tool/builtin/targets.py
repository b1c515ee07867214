"""Targets: a URL taken apart strictly, and the hosts that an operator allows.

Rule 1: a URL means one thing or is refused. Whatever two programs could read differently is refused: user names, backslashes,
        percent signs in a host, numbers that are no proper address, letters outside ASCII.
Rule 2: names that stand for the machine or its network are refused by name, before they are resolved.
Rule 3: without a list of hosts every public host may be asked, at the two standard ports; with a list, only its entries.
"""

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import quote

from remit.core.regex import regex
from remit.tool.builtin.addresses import is_public
from remit.tool.builtin.refusal import ToolRefused, quoted_value

HTTP_URL_INVALID = "HTTP_URL_INVALID"
HTTP_HOST_REFUSED = "HTTP_HOST_REFUSED"

# What browsers and servers take; longer ones carry data out rather than name a page.
URL_CHARS_MAX = 2_000
HOST_CHARS_MAX = 253
PORTS = {"http": 80, "https": 443}

_URL = regex(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?",
    re.DOTALL,
)
_AUTHORITY = regex(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = regex(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
# The last label of an address in one of its many spellings: decimal, octal or hexadecimal.
_NUMBER = regex(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_UNSAFE = regex(r"[\x00-\x20\x7f\\]")
# What may stand in a path or a query as it is; the percent sign stays, since the text may be encoded already.
_SAFE = "/%:@!$&'()*+,;=-._~?[]"

# Names of this machine and its network, and the ends of such names.
CLOSED_NAMES = frozenset({"localhost", "metadata", "metadata.google.internal", "instance-data", "ip6-localhost"})
CLOSED_ENDS = (
    ".localhost",
    ".local",
    ".internal",
    ".intranet",
    ".lan",
    ".home.arpa",
    ".onion",
    ".arpa",
    ".localdomain",
)


class Target(NamedTuple):
    """What to ask whom: the host as a name or an address in its one spelling, and the path with its query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host and, where it is no standard one, the port, as the header `Host` names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL in its one spelling."""
        return f"{self.scheme}://{self.authority}{self.path}"


class AllowedHost(NamedTuple):
    """A host that may be asked, and its port; port 0 stands for the two standard ones."""

    host: str
    port: int = 0


def target_of(url: str, allowed: Sequence[AllowedHost] | None = None) -> Target:
    """Take a URL apart, or refuse it. `allowed` are the only hosts that may be asked; None is all public ones."""
    if len(url) > URL_CHARS_MAX:
        raise _invalid(url, f"has {len(url)} characters, more than url_chars_max={URL_CHARS_MAX}")
    if _UNSAFE.search(url):
        raise _invalid(url, "holds a space, a control character or a backslash; encode it with %")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise _invalid(url, "is no complete URL; write https://HOST/PATH")
    scheme = parts["scheme"].lower()
    if scheme not in PORTS:
        raise _invalid(url, f"has the scheme {quoted_value(scheme)}; only http and https are spoken")
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None:
        raise _invalid(url, _authority_problem(parts["authority"]))
    port = int(authority["port"]) if authority["port"] else PORTS[scheme]
    host = _host_of(authority["host"], url)
    target = Target(scheme, host, port, _encoded((parts["path"] or "/") + (parts["query"] or ""), url))
    _check_allowed(target, allowed)
    return target


def allowed_host(text: str) -> AllowedHost:
    """An entry of an operator's list: HOST or HOST:PORT. Raises ToolRefused where it is neither."""
    authority = _AUTHORITY.fullmatch(text)
    if authority is None or (authority["port"] and not 0 < int(authority["port"]) < 65_536):
        raise _invalid(text, "is no host; write HOST or HOST:PORT, without a scheme and a path")
    return AllowedHost(_host_of(authority["host"], text), int(authority["port"] or 0))


def check_public(hosts: Sequence[AllowedHost]) -> None:
    """Refuse a list that names an address which it could not reach; names are looked up when they are asked."""
    for one in hosts:
        try:
            address = ip_address(one.host)
        except ValueError:
            continue
        if not is_public(address):
            raise refused_host(one.host)


def _authority_problem(authority: str) -> str:
    if "@" in authority:
        return "holds '@' before its path; user names and passwords are not sent"
    if not authority.isascii():
        return "has a host with letters outside ASCII; write it in its ASCII form, which begins with xn--"
    return "has a host or a port that cannot be read; write HOST or HOST:PORT"


def _host_of(text: str, url: str) -> str:
    """The host in lower case, without the dot that may end it; an address in its one spelling."""
    if text.startswith("["):
        try:
            return str(IPv6Address(text[1:-1]))
        except AddressValueError:
            raise _invalid(url, "has an IPv6 address that cannot be read; correct it") from None
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _plain_v4(host, url)
    if len(host) > HOST_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _invalid(
            url, f"has a host that is no name: labels of 1 to 63 letters, digits and '-', at most {HOST_CHARS_MAX}"
        )
    if host in CLOSED_NAMES or host.endswith(CLOSED_ENDS) or len(labels) < 2:
        raise refused_host(host)
    return host


def _plain_v4(host: str, url: str) -> str:
    try:
        # Four decimal numbers without leading zeros; the library refuses every other spelling.
        return str(IPv4Address(host))
    except AddressValueError:
        raise _invalid(url, "has a host that looks like an address in an unusual spelling; write its name") from None


def _encoded(text: str, url: str) -> str:
    try:
        return quote(text, safe=_SAFE)
    except UnicodeEncodeError:
        raise _invalid(url, "holds a lone surrogate; remove it") from None


def _check_allowed(target: Target, allowed: Sequence[AllowedHost] | None) -> None:
    if allowed is None:
        if target.port not in PORTS.values():
            message = f"port {target.port} of {quoted_value(target.host)} is not open to this tool; only 80 and 443 are"
            raise ToolRefused(HTTP_HOST_REFUSED, message)
        return
    ports = PORTS.values()
    if any(target.host == one.host and target.port in ((one.port,) if one.port else ports) for one in allowed):
        return
    known = ", ".join(f"{one.host}:{one.port}" if one.port else one.host for one in allowed)
    message = f"{quoted_value(target.authority)} is not among the hosts of this tool; use one of {known}"
    raise ToolRefused(HTTP_HOST_REFUSED, message)


def refused_host(host: str) -> ToolRefused:
    """The refusal of a host that is not on the open internet; it does not say where the host lies."""
    message = f"host {quoted_value(host)} is not one of the open internet; use a public host"
    return ToolRefused(HTTP_HOST_REFUSED, message)


def _invalid(url: str, problem: str) -> ToolRefused:
    return ToolRefused(HTTP_URL_INVALID, f"{quoted_value(url)} {problem}")
