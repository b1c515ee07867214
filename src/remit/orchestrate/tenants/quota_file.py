"""Quotas from the YAML file of a store, in the shape docs/budgets.md describes.

Rule 1: a file and Python build equal quotas; the file is only the friendlier spelling.
Rule 2: a key nobody knows is refused with the nearest one that is known, never skipped: a quota that was misspelled would
        hold nobody back.
"""

from pathlib import Path
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.budget import FIELDS, Budget
from remit.core.limits.quota import Period, Quota, check_quotas
from remit.core.regular_file import open_regular
from remit.core.schema.strict_yaml import Document, Place, YamlFault, block_in, list_in, read_yaml, shown, spelled

# A store of more tenants than this wants their quotas made by a program.
QUOTAS_MAX = 10_000

_FILE_KEYS = ("quotas",)
_QUOTA_KEYS = ("tenant", "period", "caps")


def read_quotas(path: Path) -> tuple[Quota, ...]:
    """The quotas in a file; raises RequestRejected with the line of what is wrong."""
    document = read_yaml(path, open_regular)
    block = block_in(document, document.value, _FILE_KEYS, ())
    entries = list_in(document, block.get("quotas"), ("quotas",))
    if len(entries) > QUOTAS_MAX:
        message = f"quotas has {len(entries)} entries, more than quotas_max={QUOTAS_MAX}"
        document.reject(YamlFault.VALUE_INVALID, message, ("quotas",))
    quotas = [_quota(document, entry, ("quotas", number)) for number, entry in enumerate(entries)]
    for number in range(len(quotas)):
        # One more at a time, so that the first that cannot stand beside those before it is the one with the line.
        _expect_valid(document, quotas, number)
    return tuple(quotas)


def _expect_valid(document: Document, quotas: list[Quota], number: int) -> None:
    rivals = [quota for quota in quotas[:number] if quota.tenant == quotas[number].tenant]
    try:
        check_quotas([*rivals, quotas[number]])
    except RequestRejected as error:
        document.reject(YamlFault.VALUE_INVALID, error.message, ("quotas", number))


def _quota(document: Document, entry: Any, place: Place) -> Quota:
    block = block_in(document, entry, _QUOTA_KEYS, place)
    tenant, period = block.get("tenant"), block.get("period")
    if not isinstance(tenant, str):
        message = f"{spelled((*place, 'tenant'))} must be a text in quotes, `'*'` for every tenant, not {shown(tenant)}"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, "tenant"))
    if not isinstance(period, str) or period not in set(Period):
        message = f"{spelled((*place, 'period'))} must be one of {', '.join(Period)}, not {shown(period)}"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, "period"))
    caps = block_in(document, block.get("caps"), FIELDS, (*place, "caps"))
    for name, amount in caps.items():
        if type(amount) is not int:
            message = f"{spelled((*place, 'caps', name))} must be a whole number, not {shown(amount)}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, "caps", name))
    return Quota(tenant, Period(period), Budget(**caps))
