"""What a command line names: files, caps, boundaries. Read here, judged by the house.

Rule 1: what cannot be used is refused with a code that names the input, before anything begins.
Rule 2: every file is read up to a limit, so that a device or a mistake cannot fill the memory.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.durations import DAY_MS, SECOND_MS, duration_ms
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.codec import read_json
from remit.core.journal.signing import DID, is_did
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import FIELDS, Budget, Dimension, check_charged
from remit.core.limits.profiles import KNOWN
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.run.contract import SystemRequest
from remit.core.run.request_checks import REQUEST_BYTES_MAX, TIMEOUT_MS_MAX, check_request
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.strict_yaml import parse_yaml
from remit.core.work.orders import ORDERS_INVALID, Order, orders_of
from remit.observe.plain import printable_line

USAGE = "USAGE"
PROMPT_UNREADABLE = "PROMPT_UNREADABLE"
SCHEMA_FILE_UNREADABLE = "SCHEMA_FILE_UNREADABLE"
ARGUMENTS_UNREADABLE = "ARGUMENTS_UNREADABLE"
BUDGET_INVALID = "BUDGET_INVALID"

STDIN = Path("-")

# As much as every reader of JSON holds exactly, and more than any run can spend.
CAP_MAX = 2**53 - 1
# The time of a run, with a unit.
CLOCK = "wall_clock"
# What its models cost, with a unit.
COST = "inference_cost"
_AMOUNT = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_MONEY = regex(rf"\$\s?(?P<dollar>{_AMOUNT})|(?P<usd>{_AMOUNT})\s?usd")
# A hundred years: what is older has not been written yet.
DAYS_MAX = 36_525


class InputUnusable(RequestRejected):
    """The command line, or a file that it names, cannot be used."""


def wrong_usage(message: str) -> InputUnusable:
    """The refusal of a command line that says too little, too much, or both of two things."""
    return InputUnusable(USAGE, message)


def expect_did(key: str) -> None:
    """Raise where the value of --key spells no key."""
    if not is_did(key):
        raise wrong_usage(f"--key {key[:SHOWN_CHARS_MAX]!r} is no key; one begins with {DID}, as `remit show` has it")


@contextmanager
def as_usage() -> Iterator[None]:
    """Whatever is refused within is wrong usage: the command line named something that cannot be used."""
    try:
        yield
    except RequestRejected as error:
        raise InputUnusable(error.code, error.message, error.details) from error


def usable(request: SystemRequest) -> SystemRequest:
    """A request that the command line made, unless nothing could be asked with it."""
    with as_usage():
        check_request(request)
    return request


def prompt_from(words: str, file: Path | None) -> str:
    """The prompt, given on the command line or in a file."""
    if (file is None) == (not words):
        raise wrong_usage("give a prompt, or a file with --file, and not both")
    if not (prompt := text_from_file(file, PROMPT_UNREADABLE) if file is not None else words).strip():
        raise wrong_usage(f"{'the prompt' if file is None else repr(str(file))} says nothing; say what is wanted")
    if file is not None:
        return prompt
    try:
        words.encode()
    except UnicodeEncodeError as error:
        message = f"the prompt is not UTF-8 text: character {error.start} is wrong; put it into a file"
        raise InputUnusable(PROMPT_UNREADABLE, message) from error
    return words


def grammar_in(file: Path | None) -> str | None:
    """The grammar in a file."""
    return None if file is None else text_from_file(file, ErrorCode.CONFIG_GRAMMAR_NOT_FOUND)


def schema_in(file: Path | None) -> JsonObject | None:
    """The JSON Schema in a file; one that nothing could be checked with is refused here, before a model is asked."""
    if file is None:
        return None
    schema = object_in(file, SCHEMA_FILE_UNREADABLE)
    try:
        compile_schema(schema)
    except RequestRejected as error:
        raise InputUnusable(error.code, f"{str(file)!r}: {error.message}", {"file": str(file)}) from error
    return schema


def arguments_from_file(file: Path | None) -> JsonObject | None:
    """The arguments in a file."""
    return None if file is None else object_in(file, ARGUMENTS_UNREADABLE)


def arguments_from(file: Path | None, text: str) -> JsonObject | None:
    """The arguments in a file, or in a text of the command line."""
    if file is not None and text:
        raise wrong_usage("give the arguments in a file with --args, or as a text with --arguments, and not both")
    return object_in_option(text, "--arguments") if text else arguments_from_file(file)


def object_in_option(text: str, option: str) -> JsonObject:
    """The JSON object in a text of the command line, which this option gives."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError) as error:
        raise InputUnusable(ARGUMENTS_UNREADABLE, f"{option} is not JSON: {error}") from error
    if not isinstance(value, dict):
        problem = f"{option} holds a {type(value).__name__} and must hold a JSON object"
        raise InputUnusable(ARGUMENTS_UNREADABLE, problem)
    return value


def object_in(file: Path, code: str) -> JsonObject:
    """The JSON object in a file."""
    text = text_from_file(file, code)
    try:
        value = read_json(text)
    except (ValueError, RecursionError) as error:
        raise _unusable(code, file, f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _unusable(code, file, f"holds a {type(value).__name__} and must hold a JSON object")
    return value


def orders_from_file(file: Path) -> tuple[Order, ...]:
    """The orders in a file of YAML or JSON: a list, alone or under the key `orders`, or one order by itself."""
    with as_usage():
        said = parse_yaml(text_from_file(file, ORDERS_INVALID), str(file)).value
        if isinstance(said, dict):
            said = said["orders"] if list(said) == ["orders"] else [said]
        return orders_of(said)


def text_from_file(file: Path, code: str) -> str:
    """The text in a file, `-` being stdin."""
    try:
        if file == STDIN:
            data = stdin_bytes(code).read(REQUEST_BYTES_MAX + 1)
        else:
            with file.open("rb") as stream:
                data = stream.read(REQUEST_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise _unusable(
            code, file, f"cannot be read: {getattr(error, 'strerror', '') or error}; check its path and its permissions"
        ) from error
    if len(data) > REQUEST_BYTES_MAX:
        raise _unusable(code, file, f"has more than file_bytes_max={REQUEST_BYTES_MAX}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(code, file, f"is not UTF-8 text: byte {error.start} is wrong") from error


def stdin_bytes(code: str) -> BinaryIO:
    """What stdin holds; the parent process may have closed it."""
    if sys.stdin is None:
        raise InputUnusable(code, "stdin is closed, so nothing can be read from it; name a file, or pipe something in")
    return sys.stdin.buffer


def boundary_given(name: str) -> Boundary:
    """The boundary of this name, or in this file."""
    if name in KNOWN:
        return KNOWN[name]
    # Only those who read a file pay for what reads it.
    from remit.orchestrate.drafts import boundary_at

    with as_usage():
        return boundary_at(name)


def budget_from(caps: Sequence[str]) -> Budget:
    """The budget in texts such as `tool_calls=5`, `wall_clock=5min` or `inference_cost=0.50usd`, which commas may join."""
    said: dict[str, int] = {}
    for cap in [part for given in caps for part in given.split(",")]:
        name, mark, amount = cap.partition("=")
        if name in (CLOCK, FIELDS[Dimension.WALL_CLOCK_MS]) and (time_ms := duration_ms(amount)) is not None:
            name, amount = FIELDS[Dimension.WALL_CLOCK_MS], str(time_ms)
        if name in (COST, FIELDS[Dimension.INFERENCE_COST_MICROUSD]) and (money := _microusd(amount)) is not None:
            name, amount = FIELDS[Dimension.INFERENCE_COST_MICROUSD], str(money)
        if name not in FIELDS:
            units = f"{CLOCK} and {COST} with a unit, such as {CLOCK}=5min or {COST}=0.50usd"
            raise _no_cap(cap, f"caps are {', '.join(FIELDS)}, and {units}")
        if not mark or not amount.isdecimal() or not amount.isascii():
            raise _no_cap(cap, "write it as NAME=NUMBER, a whole number from 0 on")
        if name in said:
            raise _no_cap(cap, f"{name} is capped twice; keep one")
        # The number of digits comes first: reading very many takes long, and Python refuses to.
        if len(amount.lstrip("0")) > len(str(CAP_MAX)) or int(amount) > CAP_MAX:
            raise _no_cap(cap, f"a cap is at most {CAP_MAX}")
        said[name] = int(amount)
    with as_usage():
        check_charged("--budget", tuple(said.items()))
    return Budget(*[said.get(field) for field in FIELDS])


def _microusd(text: str) -> int | None:
    """An amount of money in millionths of a dollar; None where the text is none, or has no unit."""
    found = _MONEY.fullmatch(text.strip().lower())
    amount = Decimal(0) if found is None else Decimal(found["dollar"] or found["usd"]) * 10**6
    # What is less than can be counted is no amount, since a cap of 0 forbids.
    return None if found is None or (amount and not round(amount)) else round(amount)


def timeout_ms_from(text: str) -> int:
    """The time that `--timeout` gives a run, in whole milliseconds; a number alone counts seconds."""
    found = duration_ms(text, alone_ms=SECOND_MS)
    if found is None or found > TIMEOUT_MS_MAX:
        raise wrong_usage(
            f"--timeout {printable_line(text, SHOWN_CHARS_MAX)} is no time up to {TIMEOUT_MS_MAX // DAY_MS} days; "
            f"write it as 90 (seconds), 5min or 2h, 1ms at least"
        )
    return found


def age_ms_from(text: str, option: str = "--older-than") -> int:
    """The age or the time that an option names, in milliseconds; a number alone counts days."""
    found = duration_ms(text, alone_ms=DAY_MS)
    if found is None or found > DAYS_MAX * DAY_MS:
        raise wrong_usage(
            f"{option} {printable_line(text, SHOWN_CHARS_MAX)} is no age up to {DAYS_MAX} days; write it as 90 (days), 12h, 30d or 4w"
        )
    return found


def _no_cap(cap: str, way_out: str) -> InputUnusable:
    shown = cap[:SHOWN_CHARS_MAX]
    return InputUnusable(BUDGET_INVALID, f"budget {shown!r} is no cap; {way_out}", {"cap": shown})


def _unusable(code: str, file: Path, problem: str) -> InputUnusable:
    return InputUnusable(code, f"{str(file)!r} {problem}", {"file": str(file)})
