"""Laws of the builtin tools: whatever a model says, they answer or refuse in words, and nothing outside is touched."""

import contextlib
import string
from collections.abc import Iterator
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from remit.tool.builtin.addresses import OPEN_V6, is_public
from remit.tool.builtin.calculator import EXPRESSION_CHARS_MAX, calculated, evaluate
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.relative_path import path_names
from remit.tool.builtin.rooted import Root, folder_names
from remit.tool.builtin.targets import CLOSED_ENDS, CLOSED_NAMES, PORTS, target_of

SECRET = b"outside"

TOKENS = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "3",
        "7",
        "10",
        "99",
        "0.5",
        ".1",
        "1e9",
        "1e-9",
        "1e-400",
        "1e999",
        "9e99999",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "**",
        "(",
        ")",
        ",",
        "sqrt(",
        "abs(",
        "min(",
        "max(",
        "round(",
        "floor(",
        "ceil(",
        "sin(",
        "cos(",
        "tan(",
        "log(",
        "log2(",
        "log10(",
        "exp(",
        "pi",
        "e",
        "^",
        "=",
        "x",
        "٣",
        "½",
        "\x00",
    ]
)
EXPRESSIONS = st.lists(TOKENS, max_size=60).map("".join) | st.text(max_size=50)


@given(EXPRESSIONS)
@example("9**9**9**9")
@example("(" * 500)
@example("-" * EXPRESSION_CHARS_MAX)
@example("2**" * 300 + "2")
@example("1e1000" * 100)
@example("sqrt(" * 40 + "2" + ")" * 40)
@example("(1/3)**1000*(1/7)**1000")
@settings(deadline=2_000)
def test_the_calculator_answers_or_refuses_and_raises_nothing_else(expression: str) -> None:
    with contextlib.suppress(ToolRefused):
        assert calculated(expression).result


WHOLE = st.integers(0, 50).map(str)
# What Python calculates exactly with whole numbers; powers stay small, since Python's would not be bounded.
FORMULAS = st.recursive(
    WHOLE,
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["+", "-", "*", "//", "%"]), part).map("".join),
        part.map(lambda inner: f"({inner})"),
        part.map(lambda inner: f"-{inner}"),
        st.tuples(WHOLE, st.integers(0, 4)).map(lambda pair: f"{pair[0]}**{pair[1]}"),
    ),
    max_leaves=12,
)


@given(FORMULAS)
def test_the_calculator_agrees_with_python_on_whole_numbers(formula: str) -> None:
    try:
        expected = eval(formula)
    except ZeroDivisionError:
        with pytest.raises(ToolRefused, match="division by zero"):
            evaluate(formula)
        return
    assert evaluate(formula) == expected
    assert calculated(formula).result == str(expected)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_a_decimal_comes_back_as_it_was_written(number: object) -> None:
    shown = calculated(f"{number:f}")
    assert shown.is_exact
    assert Fraction(shown.result) == Fraction(str(number))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root with links of every kind that lead outside, and secrets around it."""
    top = tmp_path_factory.mktemp("laws")
    root = top / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a").write_bytes(b"inside")
    (root / "sub" / "b").write_bytes(b"inside")
    (root / ".hidden").write_bytes(SECRET)
    (top / "secret").write_bytes(SECRET)
    (top / "rooted").mkdir()
    (top / "rooted" / "a").write_bytes(SECRET)
    for name, target in (("up", ".."), ("out", "../secret"), ("far", "/"), ("self", "."), ("beside", "../rooted")):
        (root / name).symlink_to(target)
        (root / "sub" / name).symlink_to(f"../{target}" if target.startswith(".") else target)
    yield root
    assert (top / "secret").read_bytes() == SECRET
    assert sorted(path.name for path in top.iterdir()) == ["root", "rooted", "secret"]
    assert (top / "rooted" / "a").read_bytes() == SECRET


NAMES = st.sampled_from(
    [
        ".",
        "..",
        "...",
        "",
        "a",
        "sub",
        "deep",
        "b",
        "up",
        "out",
        "far",
        "self",
        "beside",
        "secret",
        "rooted",
        ".hidden",
        "/",
        "\x00",
        "\\",
        "..\\",
        "%2e%2e",
        "\uff0e\uff0e",
        "\u2024.",
        "~",
        "etc",
        "proc",
        "passwd",
        "root",
        "\u202e",
        " ",
    ]
)
PATHS = st.one_of(
    st.lists(NAMES, max_size=8).map("/".join),
    st.lists(NAMES, max_size=8).map(lambda names: "/" + "/".join(names)),
    st.text(st.sampled_from("./\\ab\0~%2e \u202e\uff0f"), max_size=30),
    st.text(max_size=30),
)


@given(PATHS)
def test_no_path_ever_reads_anything_from_outside_a_root(place: Path, path: str) -> None:
    with contextlib.suppress(ToolRefused):
        assert Root(place).read(path) == b"inside"
    with contextlib.suppress(ToolRefused), Root(place).folder(path) as folder:
        found = {entry.name for entry in folder_names(folder, path, names_max=100).entries}
        assert found <= {"a", "b", "sub", "deep", "w"}


@given(PATHS)
def test_no_path_ever_writes_anything_outside_a_root(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    top = tmp_path_factory.mktemp("write")
    (top / "root" / "sub").mkdir(parents=True)
    (top / "root" / "up").symlink_to("..")
    (top / "root" / "sub" / "out").symlink_to("../../secret")
    (top / "secret").write_bytes(SECRET)
    with contextlib.suppress(ToolRefused):
        Root(top / "root").write(path, b"written", if_exists="replace")
    assert sorted(one.name for one in top.iterdir()) == ["root", "secret"]
    assert (top / "secret").read_bytes() == SECRET


@given(PATHS)
def test_the_names_of_a_path_are_plain(path: str) -> None:
    try:
        names = path_names(path)
    except ToolRefused:
        return
    for name in names:
        assert name
        assert not name.startswith(".")
        assert not set(name) & set("/\\\0")


HOSTS = st.one_of(
    st.text(st.sampled_from(string.ascii_letters + string.digits + ".-_:%@[]x\u3002\uff11\\"), max_size=20),
    st.integers(0, 2**33).map(str),
    st.integers(0, 2**33).map(hex),
    st.integers(0, 2**33).map(lambda number: f"0{number:o}"),
    st.lists(st.integers(0, 300).map(str) | st.integers(0, 255).map(hex), min_size=1, max_size=5).map(".".join),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.sampled_from(["localhost", "LOCALHOST.", "a.local", "metadata.google.internal", "example.com", "example.com."]),
)


@given(HOSTS, st.text(st.sampled_from("/?#@:\\ab%\r\n \u202e"), max_size=10))
def test_a_url_that_is_taken_names_one_host_in_one_spelling(host: str, rest: str) -> None:
    try:
        target = target_of(f"http://{host}{rest}")
    except ToolRefused:
        return
    assert target.port in PORTS.values()
    assert target.url.isascii()
    assert not set(target.path) & set(" \r\n\\#")
    # Taken apart again it is the same; no reader takes it in another way.
    assert target_of(target.url) == target
    if target.host.replace(".", "").isdigit():
        assert str(IPv4Address(target.host)) == target.host
    elif ":" in target.host:
        assert str(IPv6Address(target.host)) == target.host
    else:
        assert target.host == target.host.lower()
        assert target.host not in CLOSED_NAMES
        assert not target.host.endswith(CLOSED_ENDS)


@given(st.ip_addresses(v=4))
def test_a_public_address_is_one_that_python_calls_global_too(address: IPv4Address) -> None:
    assume(is_public(address))
    assert not any((address.is_private, address.is_loopback, address.is_link_local, address.is_multicast))
    assert not any((address.is_reserved, address.is_unspecified))


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "::{}", "64:ff9b::{}", "::ffff:0:{}"]))
def test_no_address_within_an_address_is_public(inner: IPv4Address, form: str) -> None:
    assert not is_public(IPv6Address(form.format(inner)))


@given(st.integers(int(OPEN_V6[0]), int(OPEN_V6[-1])).map(IPv6Address))
def test_a_public_address_of_version_6_is_one_that_python_calls_global_too(address: IPv6Address) -> None:
    assume(is_public(address))
    assert not any((address.is_private, address.is_link_local, address.is_multicast, address.is_site_local))
    assert address.ipv4_mapped is None
    assert address.sixtofour is None
    assert address.teredo is None
