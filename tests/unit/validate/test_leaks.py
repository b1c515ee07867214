"""What looks like a secret in an answer is told by kind, length and place alone."""

from remit.validate.leaks import Leak, leaks_in
from tests.planted import Planted


def test_a_leak_is_told_without_the_secret() -> None:
    secret = Planted().all()["github"][0]
    assert list(leaks_in(f"Use it: {secret}, please.")) == [Leak("github_token", 40, 8)]


def test_a_handle_leaks_what_it_stands_for() -> None:
    assert list(leaks_in("It is secret:github_token#0123456789ab.")) == [Leak("github_token", 32, 6)]


def test_words_hold_no_leak() -> None:
    assert list(leaks_in("risk-management-of-large-projects")) == []
