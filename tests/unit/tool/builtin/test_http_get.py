"""A page is got as text, through redirects that are each judged anew."""

import encodings
import json
import os
import socket
from typing import Any

import pytest

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.http_client import Deadline
from remit.tool.builtin.http_get import (
    CHARSETS,
    HTTP_NOT_TEXT,
    HTTP_REDIRECT_REFUSED,
    REDIRECTS,
    REDIRECTS_MAX,
    TEXT_TYPES,
    TYPE_CHARS_MAX,
    Page,
    got,
    http_get_tool,
)
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.targets import HTTP_HOST_REFUSED, AllowedHost
from remit.tool.call.cancel_token import CancelToken
from tests.unit.tool.builtin.answering import HERE, Server, moved, reply, serving
from tests.unit.tool.watching import content, fault


def get(server: Server, path: str = "/") -> Page:
    return got(server.url(path), server.hosts, HERE, Deadline(CancelToken()))


def refusal(server: Server) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        get(server)
    return caught.value


def test_the_tool_declares_that_it_leaves_the_machine_and_brings_words_of_strangers() -> None:
    definition = http_get_tool([AllowedHost("example.com"), AllowedHost("a.org", 8443)]).definition
    assert definition.effect is Effect.READ
    assert definition.category is ToolCategory.LIVE_API
    assert definition.network
    assert definition.untrusted_output
    assert definition.control_args == (("url", "url"),)
    assert list(definition.parameters["properties"]) == ["url"]
    assert definition.description.endswith("Only these hosts: example.com, a.org:8443.")


def test_a_page_comes_back_as_text_with_its_status() -> None:
    with serving(reply("grüß".encode(), "404 Not Found")) as server:
        tool = http_get_tool(server.hosts, reach=HERE)
        assert json.loads(content(tool, url=server.url())) == {
            "url": server.url(),
            "status": 404,
            "content_type": "text/plain",
            "text": "grüß",
            "is_complete": True,
        }


def test_a_tool_as_a_place_would_make_it_never_reaches_this_machine() -> None:
    with serving(reply()) as server:
        error = fault(http_get_tool(server.hosts), url=server.url()).error
    assert HTTP_HOST_REFUSED in error
    assert server.asked == []


@pytest.mark.parametrize("status", sorted(REDIRECTS))
def test_a_redirect_is_followed(status: int) -> None:
    with serving(moved("/b?c", f"{status} Moved"), reply(b"there")) as server:
        page = get(server, "/a")
    assert (page.text, page.url) == ("there", server.url("/b?c"))
    assert [line.split()[1] for line in server.asked] == ["/a", "/b?c"]


def test_a_redirect_without_a_location_is_an_answer() -> None:
    with serving(reply(b"where?", "302 Found")) as server:
        assert get(server).status == 302


def test_redirects_without_end_are_left_after_some() -> None:
    with serving(moved("/again")) as server:
        assert refusal(server).code == HTTP_REDIRECT_REFUSED
    assert len(server.asked) == REDIRECTS_MAX + 1


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/",
        "http://169.254.169.254/",
        "//2130706433/",
        "file:///etc/passwd",
        "http://localhost/",
        "http://user@127.0.0.1/",
        "http://[::1",
        "gopher://a/",
        "http://example.com/",
        "/a b",
        "http://aÿ.com/",
    ],
)
def test_a_redirect_to_where_the_tool_may_not_go_is_refused(location: str) -> None:
    with serving(moved(location), reply(b"never")) as server:
        assert refusal(server).code == HTTP_REDIRECT_REFUSED
    assert len(server.asked) == 1


def test_a_redirect_to_a_name_that_lies_inside_is_refused_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = socket.getaddrinfo

    def inside(host: str, port: int, **options: Any) -> Any:
        return look_up("10.0.0.1" if host == "pages.example.org" else host, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", inside)
    with serving(b"") as server:
        server._replies[:] = [moved(server.url(host="pages.example.org"))]
        found = refusal(server)
    assert found.code == HTTP_HOST_REFUSED
    assert "10.0.0.1" not in str(found)


def test_a_redirect_never_leads_from_https_to_http() -> None:
    from remit.tool.builtin.http_get import _next
    from remit.tool.builtin.targets import target_of

    secured = target_of("https://example.com/")
    assert _next(secured, "https://example.org/", None).host == "example.org"
    assert _next(target_of("http://example.com/"), "https://example.com/", None).scheme == "https"
    with pytest.raises(ToolRefused) as caught:
        _next(secured, "http://example.com/", None)
    assert caught.value.code == HTTP_REDIRECT_REFUSED


@pytest.mark.parametrize(
    "kind", ["text/html", "TEXT/Plain ; charset=utf-8", "application/problem+json", "image/svg+xml", ""]
)
def test_text_of_any_kind_is_shown(kind: str) -> None:
    with serving(reply(b"text", content_type=kind)) as server:
        assert get(server).text == "text"
    assert "application/json" in TEXT_TYPES


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "application/zip", "nonsense"])
def test_what_is_no_text_is_named_and_not_shown(kind: str) -> None:
    with serving(reply(b"\x89PNG", content_type=kind)) as server:
        found = refusal(server)
    assert found.code == HTTP_NOT_TEXT
    assert kind in found.message


def test_a_content_type_without_end_is_cut() -> None:
    with serving(reply(b"text", content_type="text/" + "x" * 9_000)) as server:
        assert len(get(server).content_type) == TYPE_CHARS_MAX


def test_bytes_that_call_themselves_text_are_not_shown() -> None:
    with serving(reply(b"a\0b")) as server:
        assert refusal(server).code == HTTP_NOT_TEXT


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; charset=iso-8859-1", b"\xe9", "é"),
        ('text/plain; a=b; Charset="windows-1252"', b"\x80", "€"),
        ("text/plain; charset=utf-16", "é".encode("utf-16"), "é"),
        ("text/plain", b"\xff", "\ufffd"),
        ("text/plain; charset=nonsense", "é".encode(), "é"),
        ("text/plain; charset=" + "n" * 5000, "é".encode(), "é"),
        ("text/plain; charset=", "é".encode(), "é"),
        ("text/plain; charset=a\0b", "é".encode(), "é"),
        # Codecs of Python that unpack or escape, and are no way to write letters.
        ("text/plain; charset=zlib", b"text", "text"),
        ("text/plain; charset=unicode_escape", b"\\x41", "\\x41"),
        ("text/plain; charset=utf-7", b"+AEE-", "+AEE-"),
        ("text/plain; charset=idna", b"xn--bcher-kva", "xn--bcher-kva"),
    ],
)
def test_letters_are_read_in_a_known_charset_or_as_utf_8(kind: str, body: bytes, text: str) -> None:
    with serving(reply(body, content_type=kind)) as server:
        assert get(server).text == text


def test_every_charset_that_is_listed_is_known_by_that_name() -> None:
    import codecs

    # There is no ISO 8859-12.
    assert {codecs.lookup(name).name for name in CHARSETS - {"iso8859-12"}} == CHARSETS - {"iso8859-12"}


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(reply(b"proxied")) as proxy, serving(reply(b"direct")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setitem(os.environ, name, proxy.url())
        assert get(server).text == "direct"
    assert proxy.asked == []


def test_a_charset_that_nobody_knows_is_not_remembered_in_full() -> None:
    with serving(reply(b"x", content_type="text/plain; charset=" + "m" * 50_000)) as server:
        assert get(server).text == "x"
    assert max(map(len, encodings._cache)) < 100
