"""A check-up of the secrets that tools can be given.

Rule 1: secrets are told by their names, and by nothing else.
"""

from collections.abc import Callable

from remit.core.failure import RemitError
from remit.observe.checkup.checkup import Check, CheckState
from remit.tool.secrets.vault import Vault

_NAME = "secrets"


def check_secrets(open_vault: Callable[[], Vault]) -> list[Check]:
    """Which secrets there are and whether they still hold; nothing where there are none."""
    try:
        vault = open_vault()
    except RemitError as error:
        seen, _, way_out = error.message.partition("; ")
        return [Check(_NAME, CheckState.PROBLEM, f"{error.code}: {seen}", way_out)]
    names = sorted(vault.expiries)
    if not names:
        return []
    seen = f"{len(names)}: {', '.join(names)}"
    revoked = list(vault.revoked)
    if revoked:
        way_out = "set other values, and have the old ones withdrawn where they are accepted"
        told = f"{seen}; revoked because a model knew them: {', '.join(revoked)}"
        return [Check(_NAME, CheckState.PROBLEM, told, way_out)]
    expired = [name for name in names if vault.has_expired(name)]
    if not expired:
        return [Check(_NAME, CheckState.OK, seen)]
    way_out = "put new ones in their place; until then the tools that ask for them are not called"
    return [Check(_NAME, CheckState.DOUBTFUL, f"{seen}; expired: {', '.join(expired)}", way_out)]
