"""A URL means one thing or is refused, in every spelling that anybody has thought of."""

from ipaddress import ip_address

import pytest

from remit.tool.builtin.addresses import is_public
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.targets import (
    CLOSED_ENDS,
    CLOSED_NAMES,
    HTTP_HOST_REFUSED,
    HTTP_URL_INVALID,
    URL_CHARS_MAX,
    AllowedHost,
    Target,
    allowed_host,
    target_of,
)

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

# Each of them leads, or would lead some program, to the machine itself, its network, its metadata or another protocol.
HOSTILE = [
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0X7F000001/",
    "http://0x7f.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://00000177.0.0.1/",
    "http://127.0.0.01/",
    "http://127.000.000.001/",
    "http://127.0.0.1.1/",
    "http://256.0.0.1/",
    "http://1.2.3.4.0x1/",
    "http://0/",
    "http://0x/",
    "http://0xA9FEA9FE/",
    "http://2852039166/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://LocalHost./",
    "http://a.localhost/",
    "http://metadata.google.internal/",
    "http://Metadata.Google.Internal./",
    "http://metadata/",
    "http://instance-data/",
    "http://printer.local/",
    "http://db.internal/",
    "http://router.lan/",
    "http://nas.home.arpa/",
    "http://1.0.0.127.in-addr.arpa/",
    "http://wiki.intranet/",
    "http://x.localdomain/",
    "http://hidden.onion/",
    "http://intranet/",
    "http://ip6-localhost/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[v1.a]/",
    "http://[::1",
    "http://::1/",
    "http://[]/",
    "http://[127.0.0.1]/",
    "http://[::ffff:127.0.0.1.1]/",
    "http://user@example.com/",
    "http://user:word@example.com/",
    "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com\\.evil.org/",
    "http:\\\\127.0.0.1\\",
    "http://127.0.0.1\t.example.com/",
    "http://exa\nmple.com/",
    "http://example.com/\r\nHost: evil",
    "http://example.com/a b",
    "http://example.com/\x00",
    "http://%31%32%37.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://example.com%00.evil.org/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/",
    "http://\u0661\u0662\u0667.0.0.1/",
    "http://b\xfccher.example/",
    "http://exam\u200bple.com/",
    "http://-a.com/",
    "http://a-.com/",
    "http://a..com/",
    "http://.example.com/",
    "http://example.com../",
    "http://a_b.com/",
    "http://" + "a" * 64 + ".com/",
    "http://" + "a." * 130 + "com/",
    "http:///etc/passwd",
    "http://",
    "http:/example.com/",
    "http:example.com",
    "//example.com/",
    "example.com",
    "/etc/passwd",
    "",
    " http://example.com/",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "ftp://example.com/",
    "gopher://example.com/",
    "dict://example.com:11211/",
    "jar:http://example.com!/",
    "data:text/plain,hi",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "ws://example.com/",
    "http://example.com:/",
    "http://example.com:0/",
    "http://example.com:22/",
    "http://example.com:6379/",
    "http://example.com:8080/",
    "http://example.com:99999/",
    "http://example.com:8O/",
    "http://example.com:-1/",
    "http://example.com:+80/",
    "http://example.com:80:80/",
    "http://example.com/\ud800",
    "http://example.com/" + "a" * URL_CHARS_MAX,
]

# These are well-formed, so they are refused by the address they name.
LITERALS = [
    "http://127.0.0.1#@example.com:99/",
    "http://127.0.0.1?@example.com/",
    "http://127.0.0.1/",
    "https://127.0.0.1:443/",
    "http://127.0.0.1./",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.168.1.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::FFFF:7F00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://[ff02::1]/",
]


def refusal(url: str, allowed: list[AllowedHost] | None = None) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        target_of(url, allowed)
    return caught.value


@pytest.mark.parametrize("url", HOSTILE)
def test_a_url_that_could_lead_inside_is_refused_by_its_spelling(url: str) -> None:
    assert refusal(url).code in {HTTP_URL_INVALID, HTTP_HOST_REFUSED}


@pytest.mark.parametrize("url", LITERALS)
def test_an_address_in_its_one_spelling_is_left_to_the_check_of_addresses(url: str) -> None:
    assert not is_public(ip_address(target_of(url).host))


def test_there_are_enough_hostile_spellings() -> None:
    assert len(set(HOSTILE + LITERALS)) == len(HOSTILE) + len(LITERALS) >= 60


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://example.com", Target("https", "example.com", 443, "/")),
        ("HTTP://Example.COM./a?b=c#d", Target("http", "example.com", 80, "/a?b=c")),
        ("https://example.com:443/", Target("https", "example.com", 443, "/")),
        ("https://example.com:80/", Target("https", "example.com", 80, "/")),
        ("https://example.com?q=1", Target("https", "example.com", 443, "/?q=1")),
        ("https://xn--bcher-kva.example/ü", Target("https", "xn--bcher-kva.example", 443, "/%C3%BC")),
        ("https://example.com/%7Ea/[1]", Target("https", "example.com", 443, "/%7Ea/[1]")),
        ("https://example.com/a@b", Target("https", "example.com", 443, "/a@b")),
        ("https://1.1.1.1/", Target("https", "1.1.1.1", 443, "/")),
        ("https://[2606:4700:0::1111]/", Target("https", "2606:4700::1111", 443, "/")),
        ('https://example.com/"<>', Target("https", "example.com", 443, "/%22%3C%3E")),
        ("https://3com.com/", Target("https", "3com.com", 443, "/")),
    ],
)
def test_a_proper_url_is_taken_apart(url: str, target: Target) -> None:
    assert target_of(url) == target


def test_a_target_has_one_spelling() -> None:
    assert target_of("HTTPS://EXAMPLE.com:443").url == "https://example.com/"
    assert target_of("https://[2606:4700::0]:80").url == "https://[2606:4700::]:80/"


def test_a_list_of_hosts_allows_its_entries_at_their_ports_and_nothing_else() -> None:
    allowed = [AllowedHost("example.com"), AllowedHost("api.example.org", 8443)]
    assert target_of("https://example.com/", allowed).port == 443
    assert target_of("http://example.com/", allowed).port == 80
    assert target_of("https://api.example.org:8443/", allowed).port == 8443
    for url in (
        "https://example.com:8443/",
        "https://api.example.org/",
        "https://www.example.com/",
        "https://example.com.evil.org/",
        "https://evilexample.com/",
        "https://example.org/",
    ):
        found = refusal(url, allowed)
        assert found.code == HTTP_HOST_REFUSED
        assert "example.com, api.example.org:8443" in found.message


def test_an_entry_of_the_list_is_a_host_with_or_without_a_port() -> None:
    assert allowed_host("Example.com") == AllowedHost("example.com")
    assert allowed_host("example.com:8443") == AllowedHost("example.com", 8443)
    assert allowed_host("[2606:4700::1]:8443") == AllowedHost("2606:4700::1", 8443)


@pytest.mark.parametrize(
    "text",
    ["", "https://example.com", "example.com/a", "a:b", "example.com:0", "example.com:70000", "*.com", "localhost"],
)
def test_an_entry_that_is_no_public_host_is_refused(text: str) -> None:
    with pytest.raises(ToolRefused):
        allowed_host(text)


def test_every_closed_name_and_end_is_refused() -> None:
    for name in (*CLOSED_NAMES, *(f"a{end}" for end in CLOSED_ENDS)):
        assert refusal(f"https://{name}/").code == HTTP_HOST_REFUSED
