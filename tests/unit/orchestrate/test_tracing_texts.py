"""Traced runs and their texts: long ones, handles, and what becomes of a run when a text is gone."""

import json
from typing import Any

import pytest

from remit.core.journal import arrivals
from remit.core.journal.commands import (
    CallTool,
)
from remit.core.journal.proposed_call import Provenance
from remit.core.record import JsonObject, replace
from remit.orchestrate.executors.reports import (
    PersonApproved,
    PersonSaid,
)
from remit.orchestrate.facts.gate_facts import RESULT_LOST
from remit.orchestrate.history.replay import AuditVerdict
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.traced import (
    BOB,
    BOUND,
    LONG,
    LOOKUP,
    PAID,
    PAY,
    PROMPT,
    SERVICES,
    STOLEN,
    UNTRACED,
    Office,
    answer,
    asked,
    assert_alike,
    manifest,
    performed,
    resumed,
    same,
    to,
)


def test_long_arguments_words_and_results_are_read_from_where_they_are_kept() -> None:
    many = [{"email": f"user{n}@corp.example", "name": f"user {n}"} for n in range(500)]

    def crowd(arguments: JsonObject) -> str:
        return json.dumps([*many, {"email": BOB, "name": "Bob"}])

    async def act() -> None:
        prompt = f"{PROMPT}\n\n{LONG}"
        office = Office(
            answer(LOOKUP),
            answer(("send_mail", to("$obs0.records[500].email", body=LONG))),
            services={**SERVICES, "find_user": crowd},
        )
        live = await office.begin(manifest(prompt))
        assert not isinstance(live.state.manifest.request.messages[0].content, str)  # type: ignore[union-attr]
        assert (await office.found())[-1] == BOUND
        (sent,) = [command for command in office.performed_of(CallTool) if command.tool == "send_mail"]
        assert json.loads(await office.runner.text(sent.arguments))["recipients"] == [BOB]
        await same(office, live)

    play(act())


def test_a_handle_is_called_with_the_value_it_names_and_the_models_words_are_kept() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(("send_mail", to("$obs0.records[0].email"))))
        live = await office.begin()
        call = (await office.calls())[1]
        assert json.loads(str(call.arguments)) == to(BOB)
        assert json.loads(str(call.said)) == to("$obs0.records[0].email")
        assert call.provenance is Provenance.BOUND
        assert call.origins[0].bound_by == "handle:named"
        await same(office, live)

    play(act())


def test_a_handle_that_names_nothing_stays_a_text_that_nothing_binds() -> None:
    async def act() -> None:
        office = Office(answer(LOOKUP), answer(("send_mail", to("$obs0.records[9].email"))))
        live = await office.begin()
        call = (await office.calls())[1]
        assert (call.said, call.objection) == ("", "PROVENANCE_UNBOUND")
        await same(office, live)

    play(act())


@pytest.mark.parametrize("arguments", [[], "text", {"recipients": [BOB], "body": float("nan")}, {5: 5}])
def test_arguments_that_are_none_are_refused_and_judged_by_nobody(arguments: Any) -> None:
    async def act() -> None:
        office = Office(answer(("send_mail", arguments)))
        live = await office.begin()
        assert await office.found() == [UNTRACED]
        assert performed(office) == []
        audited = await office.audited()
        assert audited.verdict is AuditVerdict.SAME
        await office.runner.tracer(live)

    play(act())


def test_a_number_is_judged_as_it_is_written_down() -> None:
    untyped = replace(PAY, control_args=())

    async def act(amount: Any) -> list[str]:
        office = Office(answer(("pay", {**PAID[1], "amount": amount})))
        live = await office.begin(manifest(tools=(untyped,)))
        await same(office, live)
        return await office.found()

    assert play(act(100.0)) == play(act(100))


def test_where_a_result_is_gone_nothing_checked_passes_without_a_person_any_more() -> None:
    async def act() -> None:
        secret = "LOST " * 400
        office = Office(answer(("read_news", {})), answer(STOLEN), services={**SERVICES, "read_news": lambda _: secret})
        await office.begin()
        await office.redact("LOST")
        other, live = await resumed(office, answer(), answer(), answer(PAID), answer(LOOKUP, PAID))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert (await other.found())[-1] == RESULT_LOST
        assert "gone" in (await other.calls())[-1].reasons[0]
        await other.tell(live, PersonApproved(asked(live)[0].id, "ada"))
        assert await other.found() == [UNTRACED, "PROVENANCE_UNBOUND", RESULT_LOST, UNTRACED, "REPEAT"]
        audited = await other.audited()
        assert (audited.verdict, audited.difference) == (AuditVerdict.REDACTED, None)
        assert live.tracer is not None
        assert_alike(live.tracer, await other.retraced())

    play(act())


def test_handles_name_what_they_named_although_an_earlier_result_is_gone() -> None:
    async def act() -> None:
        office = Office(
            answer(("read_news", {})),
            answer(LOOKUP),
            answer(STOLEN),
            services={**SERVICES, "read_news": lambda _: LONG},
        )
        await office.begin()
        await office.redact("long words")
        other, live = await resumed(office, *[answer()] * 3, answer(("send_mail", to("$obs1.records[0].email"))))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert json.loads(str((await other.calls())[-1].arguments)) == to(BOB)

    play(act())


@pytest.mark.parametrize("holding", ["long words", "words of a person", "body of a mail"])
def test_a_text_that_is_gone_makes_an_audit_say_redacted_and_find_no_difference(holding: str) -> None:
    async def act() -> None:
        office = Office(
            answer(LOOKUP, ("read_news", {})),
            answer(("send_mail", to("$obs0.records[0].email", body="body of a mail " * 100))),
            answer(PAID),
            answer(STOLEN),
            services={**SERVICES, "read_news": lambda _: LONG},
        )
        live = await office.begin()
        await office.tell(live, PersonSaid("ada", "words of a person " * 100))
        await office.tell(
            live, PersonApproved(asked(live)[0].id, "ada", to(BOB, body="body of a mail, changed " * 100))
        )
        assert (await office.audited()).verdict is AuditVerdict.SAME
        audited = await office.audited(without=holding)
        assert (audited.verdict, audited.difference) == (AuditVerdict.REDACTED, None)

    play(act())


def test_a_request_that_is_gone_binds_nothing_any_more() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN))
        await office.begin(manifest(f"{PROMPT}\n\n{LONG}"))
        assert (await office.audited(without="long words")).verdict is AuditVerdict.REDACTED
        await office.redact("long words")
        other, live = await resumed(office, answer(), answer(PAID))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert live.tracer is not None
        assert live.tracer.is_lost
        assert (await other.found())[-1] == "PROVENANCE_UNBOUND"

    play(act())


def test_arguments_that_a_person_gave_and_that_are_gone_make_every_call_a_persons() -> None:
    async def act() -> None:
        office = Office(answer(STOLEN), answer(STOLEN))
        live = await office.begin()
        await office.tell(live, PersonApproved(asked(live)[0].id, "ada", to(BOB, body=LONG)))
        await office.redact("long words")
        other, live = await resumed(office, answer(), answer(), answer(PAID))
        await other.tell(live, arrivals.ApprovalRefused(asked(live)[0].id, "ada"))
        assert (await other.found())[-1] == RESULT_LOST

    play(act())
