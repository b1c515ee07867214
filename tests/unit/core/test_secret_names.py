"""Whether a value beside a telling name is a secret, and which part of it."""

import pytest

from remit.core.secrets.secret_names import secret_of_named

V = "Hq6jLw9PzCd2"


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("password", "hunter22", "password"),
        ("db_password", "correcthorse", "password"),
        ("password2", "hunter22", "password"),
        ("passwordConfirm", "correcthorse", "password"),
        ("password", "%s_correct", "password"),
        ("password", "short", ""),
        ("password", "two words1", ""),
        ("password", "required", ""),
        ("password", "aaaaaaaa", ""),
        ("password", "%(password)s", ""),
        ("contraseña", "correcthorse", "password"),
        ("mot_de_passe", "correcthorse", "password"),
        ("pass", V, "password"),
        ("pass", "Ab3dE6", "password"),
        ("pass", "test_login2", ""),
        ("pass", "correcthorse", ""),
        ("dbPass", V, "password"),
        ("smtp_pass", V, "password"),
        ("userpass", V, "password"),
        ("bypass", V, ""),
        ("smtp_pass", "correcthorse", "password"),
        ("first_pass", "complete", ""),
        ("auth", f"joe:{V}", "authorization"),
        ("auth", "https://auth.example/login2", ""),
        ("пароль", "correcthorse", "password"),
        ("sid", V, "cookie"),
        ("side", V, ""),
        ("pin", "4821", "password"),
        ("otp", V, "password"),
        ("pin", "13", ""),
        ("auth", V, "authorization"),
        ("auth", f"Basic {V}", "authorization"),
        ("auth", "oauth2-proxy", ""),
        ("api_key", "abcd1234", "key"),
        ("x-api-key", "abcd1234", "key"),
        ("client_secret", "abcd1234", "key"),
        ("access_token", "abcd1234", "key"),
        ("access_token", f"Bearer {V}", "key"),
        ("access_token", "abcdefgh", ""),
        ("next_page_token", "abcd1234", ""),
        ("tokens", "abcd1234", ""),
        ("token", "BRACKET_OPEN1", ""),
        ("key", "abcd1234", ""),
        ("public_key", "abcd1234", ""),
        ("sessionid", V, "cookie"),
        ("session_id", "chat-42-of-ann", ""),
        ("session_id", "3f2b8c1e-9a4d-4e7f-8b6a-0c5d1e2f3a4b", ""),
        ("Cookie", f"sid={V}; a=b", "cookie"),
        ("cookie", "accepted", ""),
        ("Authorization", f"Basic {V}", "authorization"),
        ("Authorization", "Basic Ym9iOmFiY2RlZg==", "authorization"),
        ("Authorization", "Bearer secret:key#0123456789ab", ""),
        ("Authorization", "none", ""),
        ("name", "abcd1234", ""),
        ("x" * 100 + "_password", "hunter22", ""),
    ],
)
def test_the_name_of_a_field_says_what_its_value_is(name: str, value: str, kind: str) -> None:
    found = secret_of_named(name, value)
    assert (found.kind if found else "") == kind


def test_of_a_header_only_the_credential_is_taken() -> None:
    found = secret_of_named("Proxy-Authorization", f"Basic {V}")
    assert found is not None
    assert f"Basic {V}"[found.start : found.end] == V
