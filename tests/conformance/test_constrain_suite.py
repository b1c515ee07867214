"""`remit constrain --jsonl` agrees with the JSON Schema Test Suite of draft 2020-12, one process for all of its tests.

Every required test is asked, those with references to other documents among them: these come along as resources. The
optional ones are asked, too, except for those that NOT_ASKED names.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from remit.core.record import JsonObject
from tests.vectors import vectors

SUITE = vectors("json_schema_test_suite.json.gz")
DRAFT = "draft2020-12"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Under this address the suite expects its remote schemas.
REMOTE = "http://localhost:1234/"
REQUIRED = 1299
FORMATS = (
    *("date-time", "date", "duration", "ecmascript-regex", "email", "hostname", "idn-email", "idn-hostname", "ipv4"),
    *("ipv6", "iri-reference", "iri", "json-pointer", "regex", "relative-json-pointer", "time", "unknown"),
    *("uri-reference", "uri-template", "uri", "uuid"),
)
# By name, so that a file which becomes required, or is added, is noticed.
NOT_ASKED = {
    "optional/cross-draft.json": "it needs schemas of draft 2019-09 among those of another draft",
    "optional/format-assertion.json": "formats are described and not enforced",
    **{f"optional/format/{name}.json": "formats are described and not enforced" for name in FORMATS},
}
# Tests with references to other documents, which come along as resources.
REMOTE_FILES = {"anchor.json", "dynamicRef.json", "ref.json", "refRemote.json", "vocabulary.json"}


class Case(NamedTuple):
    """One test of the suite."""

    name: str
    line: JsonObject
    is_valid: bool


def resources() -> dict[str, JsonObject]:
    """The remote schemas of the draft, and those that belong to none."""
    others = {name.split("/")[0] for name in SUITE["remotes"] if name.startswith(("draft", "v1"))} - {DRAFT}
    return {
        REMOTE + name: {"$schema": DIALECT, **schema}
        for name, schema in SUITE["remotes"].items()
        if name.split("/")[0] not in others
    }


def cases() -> Iterator[Case]:
    shared = resources()
    for file, groups in sorted(SUITE["drafts"][DRAFT].items()):
        if file in NOT_ASKED:
            continue
        for group in groups:
            schema = group["schema"]
            text = json.dumps(schema)
            named = {"resources": shared} if REMOTE in text else {}
            for test in group["tests"]:
                line = {"text": json.dumps(test["data"]), "schema": schema, **named}
                yield Case(f"{file}: {group['description']}: {test['description']}", line, test["valid"])


CASES = list(cases())


def answers(*, repair: bool) -> list[dict[str, Any]]:
    """What the command says to every test."""
    lines = "".join(json.dumps({**case.line, "repair": repair}) + "\n" for case in CASES)
    command = [sys.executable, "-m", "remit", "constrain", "--jsonl"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    # Some values do not fit, on purpose.
    assert done.returncode == 1
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_required_test_is_asked_and_what_is_not_is_named() -> None:
    assert sum(not case.name.startswith("optional/") for case in CASES) == REQUIRED
    assert {case.name.partition(":")[0] for case in CASES if "resources" in case.line} == REMOTE_FILES
    asked = {case.name.partition(":")[0] for case in CASES}
    assert set(SUITE["drafts"][DRAFT]) - asked == set(NOT_ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("repair", [False, True])
def test_the_command_agrees_with_every_test_that_is_asked(repair: bool) -> None:
    found = answers(repair=repair)
    assert len(found) == len(CASES)
    pairs = list(zip(CASES, found, strict=True))
    assert [case.name for case, answer in pairs if answer["ok"] is not case.is_valid] == []
    for case, answer in pairs:
        if case.is_valid:
            assert answer["repairs"] == [], case.name
            assert json.dumps(answer["value"]) == json.dumps(json.loads(case.line["text"])), case.name
