"""Secrets in real runs: tools get them, whatever tells them is redacted, and no byte of the store holds one."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK, EXIT_STOPPED, EXIT_WAITING
from remit.tool.secrets.vault import SECRETS_NOT_PRIVATE
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says

TOKEN, PASSWORD = "ghp_Tq7/vX2+mK9=pL4z-live", "correct horse battery staple"
CANARY = "a canary that is no secret"

TOOLS = """
import base64, hashlib, os, sys
from remit import tool
from remit.tool.secrets.secret import Secret

@tool(effect="read", secrets={"token": "TOKEN", "password": "PASSWORD"})
def leak(how: str, token: str, password: Secret) -> str:
    \"\"\"Tell everything.\"\"\"
    texts = {
        "plain": f"{token} {password.reveal()}",
        "long": f"{token} {password.reveal()} " * 300,
        "base64": base64.b64encode(f"user:{token}:{password.reveal()}".encode()).decode(),
        "hex": token.encode().hex() + password.reveal().encode().hex(),
        "wrapped": f"{password} {password!r} a canary that is no secret",
    }
    if how == "raise":
        raise PermissionError(f"401 for {token} and {password.reveal()}")
    return texts[how]

@tool(effect="read", isolate=True, secrets={"token": "TOKEN"})
def leak_apart(token: str) -> str:
    \"\"\"Tell it from a process of its own.\"\"\"
    print("printed", token, file=sys.stderr, flush=True)
    with open("/proc/self/environ", "rb") as environment, open("/proc/self/cmdline", "rb") as command:
        seen = token.encode() in environment.read() + command.read()
    return f"{hashlib.sha256(token.encode()).hexdigest()} seen={seen} {token}"

@tool(effect="read", isolate=True, secrets={"token": "TOKEN"})
def die(token: str) -> str:
    \"\"\"Print it and die.\"\"\"
    print(token, flush=True)
    os._exit(3)

@tool(effect="read", secrets={"token": "ABSENT"})
def lacking(token: str) -> str:
    \"\"\"Need what is not there.\"\"\"
    return "called"

@tool(effect="read", secrets={"token": "STALE"})
def stale(token: str) -> str:
    \"\"\"Need what has expired.\"\"\"
    return "called"

@tool(effect="external")
def send(body: str) -> str:
    \"\"\"Send words to a person.\"\"\"
    open("sent.txt", "w").write(body)
    return "sent"

@tool(effect="read")
def search(words: str) -> str:
    \"\"\"Look words up.\"\"\"
    open("searched.txt", "w").write(words)
    return "nothing"
"""

SECRETS = f"""
PASSWORD = "{PASSWORD}"
[STALE]
value = "stale-0123456789"
expires_at = 2020-02-02T02:02:02Z
"""


@pytest.fixture
def remit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remit]:
    monkeypatch.setenv("REMIT_SECRET_TOKEN", TOKEN)
    with remit_in(tmp_path / "work") as found:
        put(found, SECRETS)
        yield found


def put(remit: Remit, secrets: str, mode: int = 0o600) -> Path:
    remit.home.mkdir(mode=0o700, exist_ok=True)
    path = remit.home / "secrets.toml"
    path.write_text(secrets)
    path.chmod(mode)
    return path


def forms(value: str) -> list[bytes]:
    """What must be found nowhere: the value, half of it, and what it is commonly encoded as."""
    data = value.encode()
    half = len(data) // 2
    return [data, data[:half], data[-half:], data.hex().encode(), base64.b64encode(data)[: len(data)]]


def holders(remit: Remit, value: bytes) -> list[str]:
    """The files of the store that hold these bytes, the file of secrets aside."""
    files = [path for path in remit.home.rglob("*") if path.is_file() and path.name != "secrets.toml"]
    assert files
    return [path.name for path in files if value in path.read_bytes()]


def told(remit: Remit, run_id: str) -> str:
    """Everything the commands say about a run."""
    asked = [("show", run_id), ("trace", run_id), ("explain", run_id), ("export", run_id), ("runs",), ("doctor",)]
    answers = [remit(*words, *form) for words in asked for form in ((), ("--json",))]
    return "\n".join(answer.out + answer.err for answer in answers)


@pytest.mark.slow
def test_no_byte_of_the_store_holds_a_secret_that_tools_tell(remit: Remit) -> None:
    ways = ("plain", "long", "base64", "hex", "raise", "wrapped")
    remit.write(
        TOOLS, [*(calls("leak", {"how": how}) for how in ways), calls("leak_apart"), calls("die"), says("Done.")]
    )
    done = remit.start_run("--log-level", "debug").answer()
    assert done.exit_code == EXIT_OK, done
    everything = done.out + done.err + told(remit, done.values["run_id"])
    for value in (TOKEN, PASSWORD):
        for form in forms(value):
            assert holders(remit, form) == [], form
            assert form.decode() not in everything, form
    assert "[secret TOKEN]" in everything
    assert "[secret PASSWORD]" in everything
    assert "seen=False" in everything
    # What is no secret is found, so a search would find one.
    assert CANARY in everything
    assert holders(remit, CANARY.encode()) != []


@pytest.mark.slow
def test_a_secret_that_is_missing_or_has_expired_means_that_nothing_was_called(remit: Remit) -> None:
    remit.write(TOOLS, [calls("lacking"), calls("stale"), says("Done.")])
    done = remit.start_run().answer()
    said = told(remit, done.values["run_id"])
    assert "the secret 'ABSENT' is not here; set the variable REMIT_SECRET_ABSENT" in said
    assert "the secret 'STALE' expired at 2020-02-02T02:02:02Z" in said
    assert "TOOL_UNAVAILABLE" in said


@pytest.mark.slow
def test_what_a_model_exposes_is_neither_journaled_nor_sent(remit: Remit) -> None:
    encoded = base64.b64encode(PASSWORD.encode()).decode()
    remit.write(
        TOOLS, [calls("search", {"words": TOKEN}), calls("search", {"words": encoded}), says(f"It is {TOKEN}.")]
    )
    done = remit.start_run().answer()
    everything = done.out + done.err + told(remit, done.values["run_id"])
    for value in (TOKEN, PASSWORD):
        for form in forms(value):
            assert holders(remit, form) == [], form
            assert form.decode() not in everything, form
    assert "SECRET_EXPOSED" in everything
    assert "[exposed secret TOKEN]" in everything
    assert not (remit.folder / "searched.txt").exists()


def test_a_secret_in_an_answer_ends_the_run_as_one_in_a_call_does(remit: Remit) -> None:
    remit.write(TOOLS, [says(f"The key is {TOKEN}.")])
    done = remit.start_run().answer()
    assert done.exit_code == EXIT_STOPPED, done
    assert done.values["terminal_code"] == "UNSAFE_DETECTION"
    assert "SECRET_EXPOSED: model" in done.out
    assert "said the secret 'TOKEN'" in done.out
    assert holders(remit, TOKEN.encode()) == []
    assert done.values["run_id"] in remit("queues", "security", "--json").out
    assert "revoked" in remit("doctor").out


@pytest.mark.slow
def test_a_packet_for_approval_holds_no_secret_and_its_call_is_not_made(remit: Remit) -> None:
    remit.write(TOOLS, [calls("send", {"body": f"the token is {TOKEN}"}), says("Done.")])
    done = remit.start_run().answer()
    assert done.exit_code == EXIT_WAITING, done
    asked = remit("approvals", "--json").out + remit("approvals").out
    assert "[exposed secret TOKEN]" in asked
    assert TOKEN not in asked
    (packet,) = done.values["waiting_for"]["packet_ids"]
    assert remit("approve", packet, "--json").exit_code in (EXIT_OK, 1, 4)
    assert holders(remit, TOKEN.encode()) == []
    assert not (remit.folder / "sent.txt").exists()


@pytest.mark.slow
def test_a_file_of_secrets_that_others_may_read_stops_a_run_before_it_begins(remit: Remit) -> None:
    remit.write(TOOLS, [says("Done.")])
    path = put(remit, SECRETS, 0o644)
    done = remit.start_run().answer()
    assert done.error_code == SECRETS_NOT_PRIVATE, done
    assert f"chmod 600 '{path}'" in done.out + done.err
    assert PASSWORD not in done.out + done.err
    checks = {check["name"]: check for check in remit("doctor", "--json").values["checks"]}
    assert checks["secrets"]["state"] == "problem"
    path.chmod(0o600)


@pytest.mark.slow
def test_the_check_up_names_the_secrets_and_those_that_have_expired(remit: Remit) -> None:
    checks = {check["name"]: check for check in remit("doctor", "--json").values["checks"]}
    assert checks["secrets"]["seen"] == "3: PASSWORD, STALE, TOKEN; expired: STALE"
    assert checks["secrets"]["state"] == "doubtful"


@pytest.mark.req("4.38")
def test_a_secret_that_a_model_knew_stays_revoked_in_the_store_until_it_has_another_value(
    remit: Remit, monkeypatch: pytest.MonkeyPatch
) -> None:
    remit.write(USES, [says(f"It is {TOKEN}.")])
    assert remit.run_here().exit_code == EXIT_STOPPED
    remit.write(replies=[calls("use"), says("Done.")])
    refused = remit.run_here()
    assert (refused.exit_code, refused.error_code) == (1, "SECRET_REVOKED"), refused
    assert "set another value" in refused.values["error"]["message"]
    checks = {check["name"]: check for check in remit.here("doctor", "--json").values["checks"]}
    assert checks["secrets"]["state"] == "problem"
    assert "revoked because a model knew them: TOKEN" in checks["secrets"]["seen"]
    assert holders(remit, TOKEN.encode()) == []
    monkeypatch.setenv("REMIT_SECRET_TOKEN", "a-new-value-0123456789")
    done = remit.run_here()
    assert (done.exit_code, done.values["tool_calls_made"][0]["result"]) == (EXIT_OK, "used 22")


USES = """
from remit import tool

@tool(effect="read", secrets={"token": "TOKEN"})
def use(token: str) -> str:
    \"\"\"Use it.\"\"\"
    return f"used {len(token)}"
"""
