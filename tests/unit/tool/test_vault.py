"""A call gets its secrets just before it is made, if they hold until it must be over; else nothing is called."""

import asyncio
import threading
from typing import Any

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.tool.call.outcomes import ToolFault
from remit.tool.secrets.secret import SECRET_INVALID, Credential, Secret
from remit.tool.secrets.vault import NO_SECRETS, SECRETS_MAX, VALUES_KEPT_MAX, Vault, wall_ms

NOW_MS = 1_893_456_000_000  # 2030-01-01
OLD, NEW = "old-value-0123456789", "new-value-0123456789"
TIMEOUT_MS = 30_000


def vault(**secrets: Any) -> Vault:
    return Vault(secrets, now_ms=lambda: NOW_MS)


def lent(held: Vault, name: str = "TOKEN") -> str:
    filled = asyncio.run(held.fill("send", (("key", name),), timeout_ms=TIMEOUT_MS))
    return filled["key"].reveal()


def refused(held: Vault, name: str = "TOKEN") -> str:
    with pytest.raises(ToolFault) as fault:
        lent(held, name)
    assert fault.value.error_code is ErrorCode.TOOL_UNAVAILABLE
    assert fault.value.error.startswith("tool 'send' was not called: ")
    for value in (OLD, NEW):
        assert value not in fault.value.error
    return fault.value.error


def expiring(value: str, in_ms: int, **more: Any) -> dict[str, Any]:
    return {"value": value, "expires_at": NOW_MS + in_ms, **more}


def test_a_secret_is_lent_by_its_name() -> None:
    assert lent(vault(TOKEN=OLD, OTHER=NEW)) == OLD
    assert lent(vault(TOKEN=expiring(OLD, TIMEOUT_MS + 1))) == OLD


def test_a_secret_that_is_not_here_is_named_with_the_way_out() -> None:
    said = refused(vault(OTHER=OLD))
    assert "the secret 'TOKEN' is not here; set the variable REMIT_SECRET_TOKEN, or put it into secrets.toml" in said
    assert "is not here" in refused(NO_SECRETS)


def test_a_secret_that_has_expired_says_when() -> None:
    assert "the secret 'TOKEN' expired at 2029-12-31T23:59:59Z; put a new one" in refused(
        vault(TOKEN=expiring(OLD, -1_000))
    )


@pytest.mark.req("4.38")
def test_a_secret_that_a_model_knew_is_revoked_until_it_is_renewed() -> None:
    held = vault(TOKEN=OLD, OTHER=NEW)
    held.revoke("TOKEN")
    assert "was revoked at 2030-01-01T00:00:00Z, because a model knew it; put a new one" in refused(held)
    assert lent(held, "OTHER") == NEW
    held.revoke("NONE")
    renewing = vault(TOKEN={"value": OLD, "refresh": lambda: NEW})
    renewing.revoke("TOKEN")
    assert (lent(renewing), lent(renewing)) == (NEW, NEW)


def test_a_secret_that_would_expire_while_it_is_used_is_not_lent() -> None:
    said = refused(vault(TOKEN=expiring(OLD, TIMEOUT_MS)))
    assert "expires at 2030-01-01T00:00:30Z, before a call of timeout_ms=30000 must have ended" in said


def test_a_secret_that_expires_too_soon_is_renewed_before_the_call() -> None:
    held = vault(TOKEN=expiring(OLD, TIMEOUT_MS, refresh=lambda: expiring(NEW, TIMEOUT_MS + 1)))
    assert lent(held) == NEW
    assert held.expiries == {"TOKEN": NOW_MS + TIMEOUT_MS + 1}


def test_a_secret_that_holds_is_not_renewed() -> None:
    assert lent(vault(TOKEN={"value": OLD, "refresh": lambda: NEW})) == OLD


def test_an_asynchronous_renewal_is_awaited() -> None:
    async def renew() -> str:
        await asyncio.sleep(0)
        return NEW

    assert lent(vault(TOKEN={"refresh": renew})) == NEW


def test_a_renewal_may_come_with_the_next_one() -> None:
    later = Credential(Secret(NEW), NOW_MS - 1, lambda: OLD)
    held = vault(TOKEN={"refresh": lambda: later})
    assert "though it was just renewed" in refused(held)
    assert lent(held) == OLD


def test_a_renewal_that_gives_what_has_expired_is_told_as_such() -> None:
    held = vault(TOKEN=expiring(OLD, -1, refresh=lambda: expiring(NEW, -2_000)))
    assert "expired at 2029-12-31T23:59:58Z, though it was just renewed" in refused(held)


def _broken() -> str:
    raise OSError(f"401 for {OLD} and {NEW}")


def _leaves() -> str:
    raise SystemExit(NEW)


@pytest.mark.parametrize(
    ("refresh", "said"),
    [
        (_broken, "was not renewed: OSError"),
        (_leaves, "was not renewed: SystemExit"),
        (lambda: None, "was not renewed: secret 'TOKEN': a NoneType is no secret"),
        (lambda: {"refresh": _broken}, "refresh gave no value"),
    ],
)
def test_a_renewal_that_fails_tells_the_kind_of_the_error_alone(refresh: Any, said: str) -> None:
    assert said in refused(vault(TOKEN=expiring(OLD, -1, refresh=refresh)))


def test_calls_that_need_a_renewal_at_once_share_one() -> None:
    asked = []
    gate = threading.Event()

    def renew() -> dict[str, Any]:
        asked.append(1)
        assert gate.wait(30)
        return expiring(NEW, TIMEOUT_MS + 1)

    held = vault(TOKEN=expiring(OLD, 0, refresh=renew))

    async def play() -> list[Any]:
        wanted = (("key", "TOKEN"),)
        calls = [asyncio.create_task(held.fill("send", wanted, timeout_ms=TIMEOUT_MS)) for _ in range(3)]
        while not asked:  # noqa: ASYNC110  # a thread sets it
            await asyncio.sleep(0.001)
        gate.set()
        return [filled["key"].reveal() for filled in await asyncio.gather(*calls)]

    assert asyncio.run(play()) == [NEW] * 3
    assert len(asked) == 1


def test_a_value_that_was_replaced_is_still_looked_for() -> None:
    held = vault(TOKEN=expiring(OLD, -1, refresh=lambda: NEW))
    assert held.masker.masked(f"{OLD}, {NEW}") == f"[secret TOKEN], {NEW}"
    lent(held)
    assert held.masker.masked(f"{OLD}, {NEW}") == "[secret TOKEN], [secret TOKEN]"


def test_of_many_renewals_the_last_values_are_looked_for() -> None:
    values = [f"value-{number:03}-0123456789" for number in range(VALUES_KEPT_MAX + 2)]
    coming = iter(values)
    held = vault(TOKEN={"refresh": lambda: expiring(next(coming), -1)})
    for _ in values:
        refused(held)
    found = [value for value in values if held.masker.masked(value) == "[secret TOKEN]"]
    assert found == values[-VALUES_KEPT_MAX:]


def test_the_same_value_again_is_kept_once() -> None:
    held = vault(TOKEN={"refresh": lambda: expiring(NEW, -1)})
    for _ in range(VALUES_KEPT_MAX + 1):
        refused(held)
    assert held.masker.masked(NEW) == "[secret TOKEN]"


def test_a_caller_learns_names_and_moments_only() -> None:
    held = vault(TOKEN=expiring(OLD, -1), OTHER=NEW)
    assert held.expiries == {"TOKEN": NOW_MS - 1, "OTHER": None}
    assert held.has_expired("TOKEN")
    assert not held.has_expired("OTHER")
    assert OLD not in repr(held)


def test_more_secrets_than_a_text_can_be_searched_for_are_refused() -> None:
    with pytest.raises(RequestRejected, match=f"exceeds secrets_max={SECRETS_MAX}") as refusal:
        Vault({f"S{number}": OLD for number in range(SECRETS_MAX + 1)})
    assert refusal.value.code == SECRET_INVALID


def test_the_clock_of_a_vault_is_that_of_the_wall() -> None:
    assert wall_ms() > NOW_MS // 2
