"""Secrets that no vault knows are found by their shape, plain and encoded; what only looks alike is not."""

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.secrets.secret_search import covered, secrets_in, without_secrets
from remit.core.secrets.secret_shapes import SHAPES, Shape
from tests.planted import BASE64, ENCODINGS, HEX, LETTERS, Planted, as_base64, as_hex, as_url

PLANTED = Planted().all()
# Shapes without a planted secret, by kind and first literal: values known by what stands around them, shown by the cases
# below. Shrinks only: a new shape is planted in tests/planted.py.
UNPLANTED = [
    ("authorization", "auth"),
    ("aws_signature", "x-amz-s"),
    ("cookie", "cookie"),
    ("cookie", "sessionid"),
    ("discord_webhook", "/api/webhooks/"),
    ("key", "--"),
    ("key", "secret"),
    ("password", "WIFI:"),
    ("password", "curl"),
    ("password", "curl"),
    ("password", "docker login"),
    ("password", "htpasswd"),
    ("password", "http "),
    ("password", "identified"),
    ("password", "keytool"),
    ("password", "ldap"),
    ("password", "mysql"),
    ("password", "pass"),
    ("password", "pass"),
    ("password", "password"),
    ("password", "redis-cli"),
    ("password", "smbclient"),
    ("password", "sqlcmd"),
    ("password", "sshpass"),
    ("password_hash", "$apr1$"),
    ("private_key", "PuTTY-User-Key-File"),
    ("slack_webhook", "hooks.slack.com/"),
]


def marked(text: str) -> str:
    """The text with its secrets named."""
    return without_secrets(text, lambda kind, value: f"<{kind}>")


def unplanted(shapes: Iterable[Shape]) -> list[tuple[str, str]]:
    """The shapes of which no secret is planted."""
    texts = [whole for whole, _ in PLANTED.values()]
    bare = [shape for shape in shapes if not any(shape.pattern.search(text) for text in texts)]
    return sorted((shape.kind, shape.literals[0]) for shape in bare)


def test_every_shape_is_planted() -> None:
    assert unplanted(SHAPES) == UNPLANTED, "plant a secret of the new shape in tests/planted.py"


def test_a_shape_that_is_not_planted_is_found() -> None:
    assert unplanted([Shape("new_key", ("nw_",), re.compile(r"nw_[0-9]{20}"))]) == [("new_key", "nw_")]


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("around", ["{}", "Use {}, please.", '{{"a":"{}"}}', "x={}", "see files/of/{}"])
def test_a_planted_secret_is_found_in_every_encoding(name: str, encoding: str, around: str) -> None:
    whole, value = PLANTED[name]
    encode = ENCODINGS[encoding]
    left = marked(around.format(encode(whole)))
    assert encode(value) not in left
    assert "<" in left


@pytest.mark.parametrize(
    "whole",
    [
        as_base64(as_url(PLANTED["postgres"][0])),
        as_hex(as_base64(PLANTED["github"][0])),
        base64.b64encode(PLANTED["stripe"][0].encode("utf-16-le")).decode(),
        base64.b64encode(b"\0\xff\xfe" + PLANTED["aws"][0].encode() + b"\xff\x80").decode(),
        "".join(f"\\x{byte:02x}" for byte in PLANTED["github"][0].encode()),
        "a" + as_hex(PLANTED["github"][0]),
        "\n".join(as_base64(PLANTED["rsa"][0])[at : at + 76] for at in range(0, 600, 76)),
    ],
    ids=["url in base64", "base64 in hex", "sixteen bits", "among bytes", "escaped hex", "out of step", "lines"],
)
def test_an_encoding_of_an_encoding_is_found(whole: str) -> None:
    assert len(secrets_in(f"here it is: {whole}")) == 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgres://ann:pa/ss1@db/x", "postgres://ann:<password>@db/x"),
        ('{\\"password\\": \\"hunter22\\"}', '{\\"password\\": \\"<password>\\"}'),
        ("config['api_key'] = 'abcd1234'", "config['api_key'] = '<key>'"),
        ("deploy --api-token abcd12345 now", "deploy --api-token <key> now"),
        ("Cookie: session=abcdef0123456789", "Cookie: <cookie>"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=<password>"),
        ("Grüße İstanbul, passwort=hunter22", "Grüße İstanbul, passwort=<password>"),
        (f"https://hooks.slack.com/services/T0{'A1' * 12}", "https://hooks.slack.com/services/<slack_webhook>"),
        (f"two: gh{'p_'}{'Ab1' * 12} and gh{'p_'}{'Cd2' * 12}", "two: <github_token> and <github_token>"),
        (f"token=gh{'p_'}{'Ab1' * 12}", "token=<github_token>"),
        ("the key " + "secret:password#0123456789ab stays, password=secret:key#0123456789ab",) * 2,
        ("password=[secret shop_key] and [exposed secret shop_key]",) * 2,
    ],
)
def test_only_the_secret_itself_is_taken_out(text: str, left: str) -> None:
    assert marked(text) == left


def some(seed: int, count: int, alphabet: str) -> str:
    chance = Random(seed)
    return "".join(chance.choice(alphabet) for _ in range(count))


BENIGN = [
    *[str(uuid.UUID(int=Random(seed).getrandbits(128))) for seed in range(20)],
    *[hashlib.sha1(bytes([seed]), usedforsecurity=False).hexdigest() for seed in range(20)],
    *[hashlib.sha256(bytes([seed])).hexdigest() for seed in range(20)],
    "sha512-" + base64.b64encode(hashlib.sha512(b"1").digest()).decode(),
    "SHA256:" + base64.b64encode(hashlib.sha256(b"1").digest()).decode().rstrip("="),
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "01jqk3v5x8m2n7pt",
    "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
    "3f2b8c1e-9a4d-4E7f-8b6a-0c5d1e2f3A4B",
    "call_" + some(1, 24, LETTERS),
    "toolu_01" + some(2, 22, LETTERS),
    "chatcmpl-" + some(3, 29, LETTERS),
    "pi_3Mtw" + some(4, 20, LETTERS),
    "DE89370400440532013000",
    "https://docs.example/spreadsheets/d/" + some(5, 44, LETTERS) + "/edit#gid=0",
    "/srv/projects/remit/src/remit/orchestrate/executors/tool.py",
    "data:image/png;base64," + some(6, 120, BASE64),
    base64.b64encode(b"Hello world, this is ordinary text of some 60 letters, 12 3").decode(),
    base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(60))).decode(),
    some(7, 4000, BASE64),
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + some(8, 43, BASE64) + " ann@host",
    "-----BEGIN CERTIFICATE-----\n"
    + "\n".join(some(seed, 64, BASE64) for seed in range(9))
    + "\n-----END CERTIFICATE-----",
    "\n".join(some(seed, 76, BASE64) for seed in range(5)),
    "the first\n" + some(1, 60, BASE64) + "\n" + some(2, 60, BASE64),
    "getElementsByClassNameAndTagNameFromDocument2ForV1Api",
    "TheQuickBrownFoxJumpsOverTheLazyDog1234",
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKzAXZ",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "AAAAAAAAAABBBBBBBBBBaaaaaaaaaa1b1b1b1b1b1b",
    "max_tokens=4096, prompt_tokens: 12345678",
    "next_page_token=abc123def456",
    "password: required. The password is required.",
    "def login(user, password=None, token: str = ''):",
    "password = os.environ['PW']",
    "token = get_token2()",
    "secret = config.secret_2",
    "secret = settings.V2.value1",
    "password=form(field2)",
    "Reset your password: click here",
    "api_key=${API_KEY}",
    "API_KEY=<your-key-1>",
    "password=********",
    "password=https://example.com/reset1",
    "Bearer token authentication",
    "basic authentication2024 works",
    "The token count is 12345678",
    "order 4711-2024-000123 of 2024-01-01T00:00:00Z",
    "http://localhost:8080/users/@me",
    "https://ann:${PASSWORD}@host.example/x",
    "mail ann@example.com",
    "idempotency_key: " + hashlib.sha256(b"k").hexdigest(),
    "public_key: abcd1234efgh",
    "key: value1234",
    "the key is under the mat 12",
    "her secret was never told",
    "risk-management-of-large-projects-in-2024, task-abcdefghijklmnopqrstuvwxyz",
    "sk-learn-and-other-libraries",
    "20 % of 100 %41%42%43%44%45%46%47%48",
    "12:30:45 and 99999999:short",
    "a.b.c.d Mxyz.abcdef.ghi",
    "-----BEGIN PUBLIC KEY-----",
    "public_key=MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
    '{"public_key":"Zq3Xb7Yc1Vd9Wf2Tg4Rh6Qj8Pk0Nm5Ls3Zq3Xb7Yc1V"}',
    "token: BRACKET_OPEN1, token: bracket_open1",
    "pass rate: 97, the auth module, pin the version, cookie policy, password reset",
    "PASS: test_login2; pass: 12 of 13; tests pass: build-2024-01-01",
    "pin: 13, spin: 4821, bypass=Ab3dEf6hIj9k, compass: Ab3dEf6hIj9k",
    "docker run -u 1000:1000 -p 8080:80 nginx; mkdir -p src/remit2",
    "the --password option is required, --token TOKEN",
    "auth: oauth2-proxy, auth=kerberos5",
    "session_id: chat-42, sessionid=3f2b8c1e-9a4d-4e7f-8b6a-0c5d1e2f3a4b",
    "cookie=accepted; cookie: none",
    "expected_authorization=self._expected_authorization, authorization: required-for-everybody",
    "inside=Ab3dEf6hIj9kLm, $this->password->hashOf2()",
    "password policy2024 with password strength 100, password md5-hashed",
    '<p class="password-field2 token-list3">',
    "<token>IDENT</token><pass>3</pass>",
    "ldapsearch -x -a always, curl -u ${USER}:${PASSWORD} x",
    "https://ann:password@host.example/x",
    "\\x41\\x42\\x43\\x44\\x45\\x46\\x47\\x48\\x49\\x4a\\x4b\\x4c\\x4d",
]


@pytest.mark.parametrize("text", BENIGN)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert secrets_in(text) == ()
    assert secrets_in(f"They wrote {text} today.") == ()


WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=14)
NAMES = st.one_of(
    WORDS,
    WORDS.map(str.title),
    st.lists(WORDS, min_size=1, max_size=5).map("_".join),
    st.lists(WORDS, min_size=1, max_size=5).map("/".join),
    st.lists(WORDS.map(str.title), min_size=1, max_size=5).map("".join),
    st.text(alphabet=HEX, min_size=32, max_size=64),
    st.uuids().map(str),
    st.integers().map(str),
    st.datetimes().map(str),
)
# A text with one of these may well name a secret: the names of core/secrets/secret_names.py, and the beginnings of keys.
MARKS = (
    *(
        "pass",
        "pw",
        "pin",
        "otp",
        "psk",
        "key",
        "secret",
        "token",
        "credential",
        "bearer",
        "ssws",
        "auth",
        "cookie",
        "sid",
    ),
    *("session", "kennwort", "wachtwoord", "senha", "heslo", "haslo", "senord", "contrasena", "sk", "gh", "gl"),
)


@given(st.lists(NAMES, max_size=30).map(" ".join))
def test_words_numbers_digests_and_names_are_no_secrets(text: str) -> None:
    if not any(mark in text.lower() for mark in MARKS):
        assert secrets_in(text) == ()


@given(st.text(max_size=300))
def test_any_text_can_be_searched_and_what_is_left_holds_no_secret(text: str) -> None:
    left = without_secrets(text, lambda kind, value: "secret:x#0123456789ab")
    assert secrets_in(left) == ()


V = "Hq6jLw9PzCd2"
WORD = "HuShhaUYjJ"
BESIDE = [
    f"curl -u admin:{V} https://x",
    f"curl -sS --user 'admin:{V}' https://x",
    f"sshpass -p '{V}' ssh host",
    f"machine h login joe password {WORD}",
    f"machine h\n  login joe\n  password {WORD}",
    f'{{"headers":{{"Cookie":"sid={V}"}}}}',
    f"Set-Cookie: sid={V}; HttpOnly",
    f'{{"auths":{{"h":{{"auth":"{V}{V}"}}}}}}',
    f"Authorization: Basic {V}",
    f"<password>{V}</password>",
    f"<ns:Password type='x'><![CDATA[{V}]]></ns:Password>",
    f"&lt;password&gt;{V}&lt;/password&gt;",
    f'<add key="DbPassword" value="{V}"/>',
    f"smtp_pass={V}",
    f'{{"pass":"{V}"}}',
    f'{{"dbPass":"{V}"}}',
    f'{{"userpass":"{V}"}}',
    f'{{"passwordConfirm":"{V}"}}',
    f'{{"passcode":["{V}"]}}',
    f"ALTER USER x WITH PASSWORD '{V}'",
    f"the password '{WORD}' and",
    f"the password {V} works",
    f"CREATE USER a IDENTIFIED WITH sha2 BY '{WORD}'",
    f"curl --password {WORD} http://x",
    f"deploy --db_pass {V}",
    f"mysql -u root -p{WORD} shop",
    f"redis-cli -h x -a {V}",
    f"docker login -u bob -p {V} registry",
    f"twilio auth token {V * 2}",
    f"https://s3.example/x?X-Amz-Signature={V * 4}",
    f"WIFI:T:WPA;S:net;P:{V};;",
    f"joe:$apr1$abcdefgh${V}0123456789",
    f"joe:$2y$10${V * 4}abcde",
    f"password='%s_{V}'",
    f"https://ann:%40{V}@host.example/",
    f"user=x;pass={V};",
    f"pw: {V}",
    f"contraseña: {V}",
    f"mot de passe : {V}",
    f"sessionid={V}",
    f"?sid={V}&x=1",
    f"密码: {V}",
    f"**Password:** {V}",
    f"the new password -> {V}",
    f"SET PASSWORD FOR joe = '{WORD}'",
    f"smbclient -U joe%{V} //host/share",
    f"passw0rd={V}",
    f"pass-phrase={V}",
    f"- name: password\n  value: {V}",
    f'{{"key":"DB_PASSWORD","val":"{V}"}}',
    f'{{"password":{{"value":"{V}"}}}}',
    "PIN: 4821",
    "otp=482913",
]


@pytest.mark.parametrize("text", BESIDE)
def test_a_value_beside_a_name_that_means_a_secret_is_found_however_it_stands_there(text: str) -> None:
    left = marked(text)
    assert left != text
    assert not any(value in left for value in (V, WORD, "4821", "482913"))


def test_every_shape_but_a_few_has_literals_that_are_told_from_others() -> None:
    short = {shape.kind for shape in SHAPES if any(len(literal) < 3 for literal in shape.literals)}
    assert short == {"discord_token", "telegram_token", "azure_secret", "twilio_key", "key", "password"}


def test_lines_of_base64_are_read_one_by_one_and_as_one() -> None:
    lines = "\n".join(as_base64(PLANTED[name][0]) for name in ("databricks", "shopify", "vault"))
    assert not any(line in marked(lines) for line in lines.splitlines())
    assert not any(line in marked(json.dumps(lines)) for line in lines.splitlines())


def test_a_long_text_is_searched_for_all_of_them() -> None:
    text = "Plain words. " * 1000 + PLANTED["github"][0]
    assert [found.kind for found in secrets_in(text)] == ["github_token"]


def test_what_belongs_to_no_run_is_covered_by_its_kind() -> None:
    assert covered("password=hunter22 here") == "password=[secret:password] here"


def test_an_id_is_no_secret_and_half_a_pair_hides_none() -> None:
    assert secrets_in("0b9f2c1e-7a44-4a0e-9f63-5d1c2b3a4f50") == ()
    assert marked("\ud800 password: hunter2!") == "\ud800 password: <password>"
    assert marked("\ud800 says nothing") == "\ud800 says nothing"
