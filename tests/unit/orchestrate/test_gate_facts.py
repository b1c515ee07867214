"""What a tool tells the gate, and what a proposed call keeps of its verdict."""

from typing import Any

import pytest

from remit.core.journal.proposed_call import Provenance
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads, Repeat, Trust
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.orchestrate.facts.gate_facts import (
    ORIGINS_SHOWN_MAX,
    PATH_CHARS_MAX,
    REASON_CHARS_MAX,
    REASONS_SHOWN_MAX,
    RESULT_LOST,
    declared,
    found,
)
from remit.provenance.declarations import declaration_of
from remit.provenance.gate_verdict import FIXES, VALUE_SHOWN_CHARS_MAX, Argument, Decision, GateVerdict, Objection
from remit.provenance.origins.labels import OriginPlace

BARE = ToolDefinition("bare", "does something", {"type": "object"})


def test_a_tool_that_declares_nothing_counts_as_the_worst() -> None:
    assert declaration_of(declared(BARE)) == declaration_of(
        {"name": "bare", "description": "does something", "parameters": {"type": "object"}}
    )


@pytest.mark.parametrize(
    ("definition", "key", "value"),
    [
        (replace(BARE, effect=Effect.READ), "effect", Effect.READ),
        (replace(BARE, network=True), "network", True),
        (replace(BARE, control_args=(("to", "email"),)), "control_args", (("to", "email"),)),
        (replace(BARE, trust=Trust(payload_args=("body",))), "payload_args", ("body",)),
        (replace(BARE, trust=Trust(author="from")), "author", "from"),
        (replace(BARE, trust=Trust(directory=True)), "directory", True),
        (replace(BARE, trust=Trust(locator_args=("path",))), "locator_args", ("path",)),
        (replace(BARE, trust=Trust(asks=("pay", "wire"))), "asks", ("pay", "wire")),
        (replace(BARE, trust=Trust(repeat=Repeat.FREE)), "repeat", Repeat.FREE),
        (replace(BARE, trust=Trust(reads=Reads.SECRET)), "reads", Reads.SECRET),
        (replace(BARE, trust=Trust(readers="[].shared_with")), "readers", "[].shared_with"),
        (replace(BARE, trust=Trust(stakes=Stakes.NONE)), "stakes", Stakes.NONE),
        (replace(BARE, category=ToolCategory.PAYMENT), "stakes", Stakes.MONEY),
        (replace(BARE, destructive=True), "stakes", Stakes.DELETION),
    ],
)
def test_what_a_tool_declares_the_gate_is_told(definition: ToolDefinition, key: str, value: Any) -> None:
    assert getattr(declaration_of(declared(definition)), key) == value


def test_fields_of_a_result_are_told_with_their_kinds() -> None:
    told = declaration_of(declared(replace(BARE, trust=Trust(fields=(("[].id", "id:file"),)))))
    assert [(field.path, field.kind) for field in told.result] == [("[].id", "id:file")]


def verdict(decision: Decision, code: Objection | None = None, *arguments: Argument) -> GateVerdict:
    fix = FIXES[code] if code else ""
    return GateVerdict(
        "c", "pay", decision, code, (code.value,) if code else (), arguments, labels=("private",), fix=fix
    )


@pytest.mark.parametrize(
    ("decision", "provenance"),
    [
        (Decision.ALLOW, Provenance.BOUND),
        (Decision.ASK, Provenance.UNBOUND),
        (Decision.REFUSE, Provenance.REFUSED),
    ],
)
def test_each_decision_is_kept_as_one_word(decision: Decision, provenance: Provenance) -> None:
    assert found(verdict(decision), is_lost=False)["provenance"] is provenance


def test_the_reasons_end_with_what_would_make_it_pass() -> None:
    kept = found(verdict(Decision.ASK, Objection.REPEAT), is_lost=False)
    assert (kept["objection"], kept["reasons"]) == ("REPEAT", ("REPEAT", FIXES[Objection.REPEAT]))
    assert kept["labels"] == ("private",)


def test_where_a_text_is_gone_what_was_bound_is_for_a_person_and_objections_stay_as_they_are() -> None:
    lost = found(verdict(Decision.ALLOW), is_lost=True)
    assert (lost["provenance"], lost["objection"]) == (Provenance.UNBOUND, RESULT_LOST)
    assert "approve the call" in lost["reasons"][-1]
    assert found(verdict(Decision.ASK, Objection.QUOTA), is_lost=True)["objection"] == "QUOTA"
    assert found(verdict(Decision.REFUSE), is_lost=True)["provenance"] is Provenance.REFUSED


def test_each_value_is_kept_with_where_it_comes_from() -> None:
    said = Argument("amount", 100, "words", span=(3, 6))
    copied = Argument("to", "bob@corp.example", "field", origin=OriginPlace(2, "[]", 1, "email", "who:email"))
    alien = Argument("cc", "x" * 1000, code=Objection.PROVENANCE_UNBOUND)
    listed = Argument("all", ["y"] * 1000)
    kept = found(verdict(Decision.ASK, Objection.PROVENANCE_UNBOUND, said, copied, alien, listed), is_lost=False)
    origins = kept["origins"]
    assert [origin.where for origin in origins] == ["", "request[3:6]", "$obs2.records[1].email", ""]
    assert [origin.bound_by for origin in origins] == ["", "words", "field", ""]
    assert origins[0].code == "PROVENANCE_UNBOUND"
    assert [len(origin.value) for origin in origins] == [VALUE_SHOWN_CHARS_MAX, 3, 16, VALUE_SHOWN_CHARS_MAX]


def test_of_a_long_list_a_person_is_shown_the_beginning() -> None:
    many = [Argument(f"to[{n}]", "a") for n in range(ORIGINS_SHOWN_MAX + 5)]
    assert len(found(verdict(Decision.ALLOW, None, *many), is_lost=False)["origins"]) == ORIGINS_SHOWN_MAX


def test_names_and_reasons_of_a_model_that_says_too_much_are_cut() -> None:
    arguments = [Argument("x" * 10_000, "a", code=Objection.UNDECLARED)]
    asked = verdict(Decision.ASK, Objection.UNDECLARED, *arguments)
    kept = found(replace(asked, reasons=("y" * 10_000,) * 1_000), is_lost=False)
    assert len(kept["origins"][0].path) == PATH_CHARS_MAX
    assert [len(reason) for reason in kept["reasons"][:-1]] == [REASON_CHARS_MAX] * REASONS_SHOWN_MAX
