"""Filters of the user in a whole system: they change, turn away or let pass, and whatever they do can be told again."""

from collections.abc import Callable
from typing import Any

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal.arrivals import CodeFailed, CodeReturned
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import CallCode, CallTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import CallsFiltered, ToolCallRefused
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject, Text
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Role
from remit.inference.engine import StreamHandler
from remit.kernel.rules.tool import FILTER_MARK
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import FilterSaid, SiftedCall
from remit.orchestrate.facts.facts import Facts
from remit.orchestrate.history.replay import AuditVerdict, audit, kept_texts
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import STANDARD_TERMS, Kit, Terms, ToolCallFilter
from remit.testing.runs import SimulatedRun
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.orchestrate.house import Listening, calls, look, request, systems
from tests.unit.orchestrate.stage import play

BY_NAME: JsonObject = {"text": "done"}
WORD = "word " * 800


def lets_pass(call: ToolCall) -> None:
    """Everything may pass."""


def masks(call: ToolCall) -> ToolCall:
    """Hide what a tool looks at."""
    return ToolCall(call.id, call.name, {"at": "***"})


async def masks_later(call: ToolCall) -> ToolCall:
    """The same, on the loop."""
    return masks(call)


def refuses(call: ToolCall) -> str | None:
    """No moon."""
    return "we do not look at the moon" if call.arguments.get("at") == "moon" else None


def breaks(call: ToolCall) -> None:
    raise LookupError("no list of names")


class Foul:
    """A model that first says what no script can say, where there is such a thing, and keeps what it was asked."""

    def __init__(self, first: ModelResult | None, *replies: JsonObject) -> None:
        self._first, self._script = first, Listening(*replies)
        self.asked = self._script.asked

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The first result as it is, and then the script."""
        first, self._first = self._first, None
        return first or await self._script.infer(request, on_chunk)

    def model_info(self) -> ModelInfo:
        """The model that the script plays."""
        return self._script.model_info()


class Outcome:
    """A run that is over, as its journal tells it."""

    def __init__(self, run: SimulatedRun, model: Foul) -> None:
        self.run, self.model = run, model

    def all(self, kind: type[Any]) -> list[Any]:
        return [d for data in self.run.journal for d in decode_turn(data).decisions if isinstance(d, kind)]

    def results(self) -> list[object]:
        """What the model was shown as results of its calls."""
        return [entry.content for entry in self.model.asked[-1].messages if entry.role is Role.TOOL]


def talk(
    *replies: JsonObject,
    filters: dict[str, ToolCallFilter],
    tools: tuple[Tool, ...] = (look,),
    terms: Terms = STANDARD_TERMS,
    text: str = "please",
    first: ModelResult | None = None,
) -> Outcome:
    """Play a run whose calls pass these filters; its journal is audited, facts and all."""

    async def scene() -> Outcome:
        store, model = MemoryStore(), Foul(first, *replies, BY_NAME)
        kit = Kit({model.model_info().name: model}, Registry(tools), filters=filters)
        async with systems(store) as (system,):
            response = await system.run(request(text), kit, terms)
            journal = await store.journal.read(response.run_id)
            texts = await kept_texts(store.blobs, journal)
            audited = audit(journal, texts.get)
            assert audited.verdict is AuditVerdict.SAME, audited.difference
            return Outcome(SimulatedRun(response.run_id, journal), model)

    return play(scene())


@pytest.mark.req("3.21")
@pytest.mark.req("3.21")
@pytest.mark.parametrize("mask", [masks, masks_later])
def test_a_filter_changes_arguments_before_anything_is_called(mask: ToolCallFilter) -> None:
    outcome = talk(calls("look", at="moon"), filters={"mask": mask})
    assert [command.arguments for command in outcome.all(CallTool)] == ['{"at":"***"}']
    assert outcome.results() == ["seen ***"]
    assert [(f.name, f.changed, f.dropped) for f in outcome.all(CallsFiltered)] == [("mask", 1, 0)]
    assert outcome.run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("3.21")
@pytest.mark.req("3.21")
def test_a_filter_that_turns_a_call_away_gives_a_reason_that_the_model_sees() -> None:
    outcome = talk(
        {"tool_calls": [{"name": "look", "arguments": {"at": at}} for at in ("moon", "sun")]}, filters={"no": refuses}
    )
    (refused,) = outcome.all(ToolCallRefused)
    assert (refused.code, refused.reason) == (Refusal.FILTERED, "we do not look at the moon")
    shown = [str(text) for text in outcome.results()]
    assert any("we do not look at the moon" in text for text in shown)
    assert "seen sun" in shown


def test_a_filter_that_says_nothing_lets_the_call_pass_as_it_is() -> None:
    outcome = talk(calls("look", at="moon"), filters={"idle": lets_pass})
    assert outcome.results() == ["seen moon"]
    assert [(f.changed, f.dropped) for f in outcome.all(CallsFiltered)] == [(0, 0)]


def test_what_a_filter_does_to_the_call_it_was_shown_changes_nothing_unless_it_returns_it() -> None:
    def scribbles(call: ToolCall) -> None:
        call.arguments["at"] = "somewhere else"

    def scribbles_and_returns(call: ToolCall) -> ToolCall:
        call.arguments["at"] = "there"
        return call

    assert talk(calls("look", at="moon"), filters={"bad": scribbles}).results() == ["seen moon"]
    assert talk(calls("look", at="moon"), filters={"own": scribbles_and_returns}).results() == ["seen there"]


def test_filters_look_in_the_order_of_the_kit_and_none_sees_what_one_before_it_turned_away() -> None:
    seen: list[object] = []

    def notes(call: ToolCall) -> None:
        seen.append(call.arguments["at"])

    both = {"tool_calls": [{"name": "look", "arguments": {"at": at}} for at in ("moon", "sun")]}
    outcome = talk(both, filters={"no": refuses, "mask": masks, "notes": notes})
    assert [command.name for command in outcome.all(CallCode)] == [f"{FILTER_MARK}{n}" for n in ("no", "mask", "notes")]
    assert seen == ["***"]
    assert "seen ***" in outcome.results()


def test_a_filter_can_neither_rename_a_call_nor_add_one() -> None:
    def renames(call: ToolCall) -> ToolCall:
        return ToolCall(call.id, "format_the_disk", call.arguments)

    def swaps(call: ToolCall) -> ToolCall:
        return ToolCall("another", call.name, call.arguments)

    renamed = talk(calls("look", at="moon"), filters={"renames": renames})
    assert renamed.all(CallTool) == []
    assert "a call of format_the_disk of it, and a filter can rename no call" in renamed.all(ToolCallRefused)[0].reason
    outcome = talk(calls("look", at="moon"), filters={"swaps": swaps})
    assert (outcome.all(CallTool), outcome.all(ToolCallRefused)[0].reason) == ([], "a filter left it out")


@pytest.mark.parametrize(
    ("filtering", "why"),
    [
        (breaks, "raised LookupError: no list of names"),
        (lambda call: 7, "a filter returns a ToolCall, a text or None, not int"),
        (lambda call: "", "a filter returns a ToolCall, a text or None, not str"),
        (lambda call: [call], "a filter returns a ToolCall, a text or None, not list"),
    ],
)
def test_a_filter_that_breaks_or_says_something_else_has_let_nothing_through(
    filtering: Callable[[ToolCall], Any], why: str
) -> None:
    outcome = talk(calls("look", at="moon"), filters={"bad": filtering})
    assert outcome.all(CallTool) == []
    assert why in outcome.all(ToolCallRefused)[0].reason


def test_arguments_that_break_the_schema_after_a_filter_are_refused() -> None:
    outcome = talk(calls("look", at="moon"), filters={"bad": lambda call: ToolCall(call.id, call.name, {"to": 1})})
    assert (outcome.all(CallTool), outcome.all(ToolCallRefused)[0].code) == ([], "CONSTRAINT_SCHEMA_INVALID")


def test_a_filter_mends_arguments_that_broke_the_schema() -> None:
    outcome = talk(
        calls("look", where="moon"), filters={"mend": lambda call: ToolCall(call.id, call.name, {"at": "x"})}
    )
    assert outcome.results() == ["seen x"]


@tool(effect="read")
def listing(place: str = "here") -> str:
    """List what is there."""
    return f"nothing {place}"


def test_a_call_whose_arguments_cannot_be_written_is_shown_to_no_filter_and_is_not_made() -> None:
    seen: list[ToolCall] = []
    foul = ModelResult("", tool_calls=(ToolCall("foul", "listing", {"place": 2**70}),))
    outcome = talk(BY_NAME, filters={"notes": seen.append}, tools=(listing,), first=foul)
    assert (seen, outcome.all(CallTool)) == ([], [])
    assert outcome.all(ToolCallRefused)[0].code == "CONSTRAINT_SCHEMA_INVALID"


def test_long_arguments_are_shown_whole_and_can_be_changed_to_others_as_long() -> None:
    seen: list[int] = []

    def doubles(call: ToolCall) -> ToolCall:
        seen.append(len(str(call.arguments["at"])))
        return ToolCall(call.id, call.name, {"at": str(call.arguments["at"]).upper()})

    outcome = talk(calls("look", at=WORD), filters={"one": doubles, "two": doubles})
    assert seen == [len(WORD)] * 2
    assert "WORD WORD" in str(outcome.results()[0])


def test_calls_that_have_one_id_are_told_apart_by_their_place() -> None:
    """A model gives a harmless call the id of one that a filter turns away."""
    twins = {
        "tool_calls": [
            {"id": "x", "name": "look", "arguments": {"at": "moon"}},
            {"id": "x", "name": "listing", "arguments": {"place": "moon"}},
        ]
    }
    outcome = talk(twins, filters={"no": refuses}, tools=(look, listing))
    assert [(command.tool, command.arguments) for command in outcome.all(CallTool)] == [("listing", '{"place":"moon"}')]
    assert [refused.tool for refused in outcome.all(ToolCallRefused)] == ["look"]


# Where calls are traced.


@tool(effect="read", result={"[].id": "id:file", "[].name": "label"})
def files() -> str:
    """List the files."""
    return '[{"id": "f-17", "name": "draft"}]'


@tool(effect="write", control_args={"file_id": "id:file"}, repeat="free", asks=("delete",))
def delete_file(file_id: str) -> str:
    """Delete a file."""
    return f"deleted {file_id}"


TRACED = Terms(
    boundary=Boundary(
        "traced",
        approval_effects=(),
        approval_categories=(),
        budget=Budget(side_effects=5),
        authority=Authority(),
    )
)


def test_a_filter_sees_the_value_that_a_handle_names_and_the_handle_still_binds_it() -> None:
    seen: list[object] = []

    def notes(call: ToolCall) -> None:
        seen.append(call.arguments.get("file_id"))

    handle = "$obs0.records[0].id"
    outcome = talk(
        calls("files"),
        calls("delete_file", file_id=handle),
        filters={"notes": notes, "again": notes},
        tools=(files, delete_file),
        terms=TRACED,
        text="Delete the file draft",
    )
    assert seen == [None, None, "f-17", "f-17"]
    assert outcome.all(CallTool)[-1].arguments == '{"file_id":"f-17"}'
    judged = [decode_turn(data).arrival for data in outcome.run.journal]
    last = [arrival for arrival in judged if isinstance(arrival, CodeReturned) and arrival.is_filtered][-1]
    assert (last.calls[0].said, last.calls[0].provenance) == (f'{{"file_id":"{handle}"}}', "bound")


@pytest.mark.req("3.21")
def test_what_a_filter_put_in_is_traced_like_the_words_of_a_model() -> None:
    def redirects(call: ToolCall) -> ToolCall | None:
        return ToolCall(call.id, call.name, {"file_id": "f-99"}) if call.name == "delete_file" else None

    outcome = talk(
        calls("files"),
        calls("delete_file", file_id="f-17"),
        filters={"redirects": redirects},
        tools=(files, delete_file),
        terms=TRACED,
        text="Delete the file draft",
    )
    assert outcome.run.state.end.ending is None
    assert [command.tool for command in outcome.all(CallTool)] == ["files"]


# Facts alone.


def completed(proposed: tuple[ProposedCall, ...], *sifted: SiftedCall) -> tuple[ProposedCall, ...]:
    run = Run(manifest_of(filters=("mask",)))
    run.proposes(*proposed)
    arrival = Facts().complete(run.state, FilterSaid(run.open(CallCode)[0].id, sifted), [])
    assert isinstance(arrival, CodeReturned)
    assert arrival.is_filtered
    return arrival.calls


def test_what_a_report_leaves_out_is_not_made_and_what_it_adds_is_not_heard() -> None:
    one, two = wants("look", 1, call_id="one"), wants("look", 2, call_id="two")
    passed = SiftedCall(ToolCall("one", "look", {"n": 1}))
    (kept, left_out) = completed((one, two), passed)
    assert (kept, left_out.filtered) == (one, "a filter left it out")
    assert completed((one,), passed, SiftedCall(ToolCall("new", "pay", {"n": 9}))) == (one,)
    assert completed((one,), SiftedCall(ToolCall("new", "pay", {"n": 9})))[0].filtered == "a filter left it out"


def test_a_filter_that_nobody_here_has_lets_nothing_through() -> None:
    async def unread(text: Text) -> str:
        raise AssertionError(f"nobody reads {text!r}")

    run = Run(manifest_of(filters=("mask",)))
    run.proposes(wants("look"))
    look_at = run.open(CallCode)[0]
    report = play(Performers(ProcessResources(unread)).carrier(lambda run_id: Kit({}))(Live("run", run.state), look_at))
    assert isinstance(report, CodeFailed)
    assert (report.command_id, report.code) == (look_at.id, ErrorCode.CONFIG_PART_MISSING)
    assert "filter:mask" in report.error
    run.take(report)
    assert (run.all(CallTool), run.last(ToolCallRefused).code) == ([], Refusal.FILTERED)


def test_the_reason_of_a_filter_is_cut_to_a_note() -> None:
    (call,) = completed((wants("look"),), SiftedCall(ToolCall("call", "look", {"n": 1}), "why " * 5_000))
    assert 0 < len(call.filtered) < 5_000
