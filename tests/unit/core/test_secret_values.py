"""Whether a value beside a telling name is a secret."""

import pytest

from remit.core.secret_values import kind_of_named


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("password", "hunter22", "password"),
        ("db_password", "correcthorse", "password"),
        ("password2", "hunter22", "password"),
        ("password", "short", ""),
        ("password", "two words1", ""),
        ("password", "required", ""),
        ("password", "aaaaaaaa", ""),
        ("api_key", "abcd1234", "key"),
        ("x-api-key", "abcd1234", "key"),
        ("client_secret", "abcd1234", "key"),
        ("access_token", "abcd1234", "key"),
        ("access_token", "abcdefgh", ""),
        ("next_page_token", "abcd1234", ""),
        ("tokens", "abcd1234", ""),
        ("key", "abcd1234", ""),
        ("public_key", "abcd1234", ""),
        ("name", "abcd1234", ""),
        ("x" * 100 + "_password", "hunter22", ""),
    ],
)
def test_the_name_of_a_field_says_what_its_value_is(name: str, value: str, kind: str) -> None:
    assert kind_of_named(name, value) == kind
