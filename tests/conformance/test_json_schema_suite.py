"""Every required test of the JSON Schema Test Suite for drafts 2020-12 and 7, through the checker that runs use.

The optional tests run too, except for those listed in NOT_PROMISED.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from remit.core.record import JsonObject
from remit.core.schema.json_schema import JsonSchema, compile_schema
from tests.vectors import vectors

SUITE = vectors("json_schema_test_suite.json.gz")

DIALECTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}

# Under this address the suite expects its remote schemas.
REMOTE = "http://localhost:1234/"

NOT_PROMISED = {
    "optional/cross-draft.json": "it needs schemas of draft 2019-09 in the registry of another draft",
    "optional/format": "draft 2020-12 describes formats and does not enforce them",
}


def dialect(draft: str, schema: JsonSchema) -> JsonSchema:
    """Name the draft where the suite leaves it to the folder."""
    return {"$schema": DIALECTS[draft], **schema} if isinstance(schema, dict) else schema


def remotes(draft: str) -> dict[str, JsonObject]:
    """The remote schemas that concern a draft: its own, and those that belong to none."""
    drafts = {name.split("/")[0] for name in SUITE["remotes"] if name.startswith(("draft", "v1"))} - {draft}
    return {
        REMOTE + name: {"$schema": DIALECTS[draft], **schema}
        for name, schema in SUITE["remotes"].items()
        if name.split("/")[0] not in drafts
    }


REGISTRIES = {draft: remotes(draft) for draft in DIALECTS}


def is_promised(draft: str, name: str) -> bool:
    excluded = [part for part in NOT_PROMISED if name.startswith(part)]
    return not excluded or (draft == "draft7" and excluded == ["optional/format"])


def files() -> Iterator[Any]:
    for draft in DIALECTS:
        for name in sorted(SUITE["drafts"][draft]):
            if is_promised(draft, name):
                yield pytest.param(draft, name, id=f"{draft}-{name.removesuffix('.json')}")


@pytest.mark.parametrize(("draft", "name"), list(files()))
def test_the_checker_agrees_with_every_test_of_the_file(draft: str, name: str) -> None:
    disagreements = []
    for group in SUITE["drafts"][draft][name]:
        checker = compile_schema(dialect(draft, group["schema"]), registry=REGISTRIES[draft])
        for case in group["tests"]:
            verdicts = {checker.is_valid(case["data"]), not checker.violations(case["data"])}
            if verdicts != {case["valid"]}:
                disagreements.append(f"{group['description']}: {case['description']}")
    assert disagreements == []


@pytest.mark.parametrize(("draft", "required"), [("draft2020-12", 1299), ("draft7", 927)])
def test_no_required_test_is_left_out(draft: str, required: int) -> None:
    ran = [name for name in SUITE["drafts"][draft] if is_promised(draft, name) and not name.startswith("optional/")]
    assert sum(len(group["tests"]) for name in ran for group in SUITE["drafts"][draft][name]) == required
