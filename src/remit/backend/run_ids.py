"""Ids of new runs: short enough to be read out, and in the order in which the runs began."""

import secrets
import time

# Crockford's alphabet: no letter that reads as a digit, so an id can be read out.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BITS_PER_LETTER = 5
# Forty-five bits of milliseconds last for a thousand years; thirty-five of chance keep two runs of one moment apart.
_TIME_LETTERS, _CHANCE_LETTERS = 9, 7


def new_run_id() -> str:
    """A new id: ids of later runs sort behind those of earlier ones."""
    chance = secrets.randbits(_CHANCE_LETTERS * _BITS_PER_LETTER)
    return _letters(time.time_ns() // 1_000_000, _TIME_LETTERS) + _letters(chance, _CHANCE_LETTERS)


def _letters(number: int, count: int) -> str:
    return "".join(
        _ALPHABET[(number >> shift) & (len(_ALPHABET) - 1)]
        for shift in range((count - 1) * _BITS_PER_LETTER, -1, -_BITS_PER_LETTER)
    )
