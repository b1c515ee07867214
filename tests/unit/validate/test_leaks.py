"""What looks like a secret. The examples are put together here, so that no scanner takes this file for one."""

import pytest

from remit.validate.leaks import leaks_in

LETTERS = "Ab1" * 100


@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        ("-----BEGIN " + "RSA PRIVATE KEY-----", "a private key"),
        ("AKIA" + "ABCDEFGHIJKLMNOP", "an access key of AWS"),
        ("ghp_" + LETTERS[:36], "a token of GitHub"),
        ("github_pat_" + LETTERS[:40], "a token of GitHub"),
        ("glpat-" + LETTERS[:20], "a token of GitLab"),
        ("xoxb-" + LETTERS[:24], "a token of Slack"),
        ("AIza" + LETTERS[:35], "a key of Google"),
        ("sk_live_" + LETTERS[:24], "a key of Stripe"),
        ("sk-" + LETTERS[:40], "a key of a model's vendor"),
        ("eyJ" + LETTERS[:20] + ".eyJ" + LETTERS[:30] + "." + LETTERS[:40], "a JSON web token"),
        ("postgres://ann:" + "hunter22" + "@db.example/shop", "an address with a password"),
    ],
)
def test_a_marked_secret_is_found_and_not_shown(secret: str, kind: str) -> None:
    (leak,) = leaks_in(f"Use key={secret}, please.")
    assert (leak.kind, leak.start) == (kind, 8)
    assert leak.beginning == secret[:4]
    assert leak.chars <= len(secret)


@pytest.mark.parametrize(
    "text",
    [
        "task-abcdefghijklmnopqrstuvwxyz", "risk-management-of-large-projects", "sk-short", "AKIAX", "BEGIN PUBLIC KEY",
        "d41d8cd98f00b204e9800998ecf8427e" * 4, "https://example.com:8080/a@b", "mail ann@example.com", "eyJ.eyJ.x",
    ],
)  # fmt: skip
def test_what_only_looks_alike_passes(text: str) -> None:
    assert list(leaks_in(text)) == []
