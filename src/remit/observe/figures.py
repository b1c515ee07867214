"""Figures, as people read them: spans of time, money, and what is used of a budget.

Rule 1: a unit follows every number, or stands in the name of what is counted.
Rule 2: what is rounded stays true to its size; programs get the exact number, with --json.
"""

_S_MS, _MIN_MS, _H_MS, _DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
_MS_SUFFIX, _MONEY_SUFFIX = "_ms", "_microusd"


def duration(ms: int) -> str:
    """How long something took, or may take."""
    if ms < _S_MS:
        return f"{ms} ms"
    if ms < _MIN_MS:
        return f"{ms / _S_MS:.1f} s"
    if ms < _H_MS:
        return _joined(ms // _MIN_MS, "min", ms % _MIN_MS // _S_MS, "s")
    if ms < _DAY_MS:
        return _joined(ms // _H_MS, "h", ms % _H_MS // _MIN_MS, "min")
    return _joined(ms // _DAY_MS, "d", ms % _DAY_MS // _H_MS, "h")


def money(microusd: int) -> str:
    """An amount of money, to the last millionth of a dollar that was charged."""
    dollars, rest = divmod(microusd, 10**6)
    cents = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"${dollars:,}.{cents}"


def measured(dimension: str, amount: int) -> tuple[str, str]:
    """What a dimension of a budget counts, and an amount of it, with its unit where the name had one."""
    if dimension.endswith(_MS_SUFFIX):
        return dimension.removesuffix(_MS_SUFFIX), duration(amount)
    if dimension.endswith(_MONEY_SUFFIX):
        return dimension.removesuffix(_MONEY_SUFFIX), money(amount)
    return dimension, f"{amount:,}"


def _joined(whole: int, unit: str, rest: int, smaller: str) -> str:
    return f"{whole} {unit} {rest:02d} {smaller}" if rest else f"{whole} {unit}"
