"""Sessions: one exchange at a time, history of words only, and entries that carry forward."""

import asyncio
from pathlib import Path

import pytest

from remit.backend.clock import WallClock
from remit.core.failure import Ending, RemitError, RequestRejected
from remit.core.journal.arrivals import RetryRequested
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import BlobRef, replace
from remit.core.run.manifest import SESSION_ENTRIES_MAX
from remit.core.run.messages import Role, system_message, user_message
from remit.core.run.signals import Signal
from remit.kernel.state import pinned
from remit.orchestrate.exchange.sessions import SESSION_BUSY, SESSION_ENTRY_INVALID, SessionState, check_entries
from remit.orchestrate.facade import System
from remit.orchestrate.loop import runner as runner_module
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.setup.kit import engine_kit
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import (
    STORES,
    Listening,
    approval,
    calls,
    in_memory,
    keep,
    look,
    request,
    scripted,
    signal,
    store_of,
    systems,
)
from tests.unit.orchestrate.stage import play


async def said_in(system: System, session_id: str = "s") -> list[tuple[str, str]]:
    """What a session remembers."""
    return [(message.role.value, str(message.content)) for message in (await system.session(session_id)).messages]


@pytest.mark.req("2.6")
@pytest.mark.parametrize("kind", STORES)
def test_the_next_exchange_shows_the_model_what_was_said_before(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        engine = Listening({"text": "Paris is warm."}, {"text": "London is wet."})
        async with systems(store_of(kind, tmp_path)) as (system,):
            for text in ("Paris?", "London?"):
                asked = replace(
                    request(text, session_id="s"), messages=(system_message("Be brief."), user_message(text))
                )
                await system.run(asked, engine_kit(engine))
            assert [message.content for message in engine.asked[1].messages] == [
                "Be brief.",
                "Paris?",
                "Paris is warm.",
                "London?",
            ]
            assert await said_in(system) == [
                ("user", "Paris?"),
                ("assistant", "Paris is warm."),
                ("user", "London?"),
                ("assistant", "London is wet."),
            ]

    play(story())


def test_each_run_of_a_session_names_the_one_before_and_its_head() -> None:
    async def story() -> None:
        async with in_memory() as system:
            first = await system.run(request(session_id="s"), scripted({"text": "one"}))
            second = await system.run(request(session_id="s"), scripted({"text": "two"}))
            before, link = await system.state_of(first.run_id), pinned(await system.state_of(second.run_id)).session
            assert link is not None
            assert (link.ordinal, link.previous_run_id, link.previous_head) == (1, first.run_id, before.head)

    play(story())


@pytest.mark.req("2.11")
def test_what_tools_returned_belongs_to_its_own_exchange_only() -> None:
    async def story() -> None:
        engine = Listening(calls("look", at="sky"), {"text": "It is blue."}, {"text": "You are welcome."})
        async with in_memory() as system:
            for text in ("Look up", "Thanks"):
                await system.run(request(text, session_id="s"), engine_kit(engine, Registry([look])))
            assert {message.role for message in engine.asked[1].messages} == {Role.USER, Role.ASSISTANT, Role.TOOL}
            assert [message.content for message in engine.asked[2].messages] == ["Look up", "It is blue.", "Thanks"]

    play(story())


def test_long_words_are_kept_once_and_come_back_in_full() -> None:
    async def story() -> None:
        question, answer = "why? " * 500, "because. " * 500
        async with in_memory() as system:
            await system.run(request(question, session_id="s"), scripted({"text": answer}))
            second = await system.run(request("and?", session_id="s"), scripted({"text": answer}))
            pinned_messages = pinned(await system.state_of(second.run_id)).request.messages
            assert [type(message.content) for message in pinned_messages] == [BlobRef, BlobRef, str]
            assert (await said_in(system))[:2] == [("user", question), ("assistant", answer)]

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_session_whose_exchange_waits_for_a_person_takes_no_other(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            kit = scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep])
            waiting = (await system.run(request("Keep x", session_id="s"), kit)).waiting_for
            assert waiting is not None
            with pytest.raises(RequestRejected) as refused:
                await system.run(request("And y", session_id="s"), kit)
            assert refused.value.code == SESSION_BUSY
            session = await system.session("s")
            assert (session.is_open, [message.content for message in session.messages]) == (True, ["Keep x"])
            await system.signal(approval(waiting.packet_ids[0]))
            await system.settle()
            assert await said_in(system) == [("user", "Keep x"), ("assistant", "kept")]

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_of_two_exchanges_that_begin_together_one_is_refused(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            kit = scripted({"text": "hello", "delay_ms": 50})
            asked = [system.run(request(session_id="s"), kit) for _ in range(2)]
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
            refused = [outcome for outcome in outcomes if isinstance(outcome, RemitError)]
            assert [error.code for error in refused] == [SESSION_BUSY]
            assert len(await system.store.catalogue.session("s")) == 1

    play(story())


def test_an_exchange_that_came_to_nothing_is_over_and_the_next_may_begin() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request("Wait", session_id="s"), scripted({"text": "…", "delay_ms": 20_000}))
            await system.signal(signal(Signal.CANCEL, run_id))
            assert (await system.result(run_id)).terminal_code is Ending.USER_CANCEL
            await system.run(request("Again", session_id="s"), scripted({"text": "hello"}))
            assert await said_in(system) == [("user", "Wait"), ("user", "Again"), ("assistant", "hello")]

    play(story())


@pytest.mark.req("2.10")
def test_entries_carry_forward_from_run_to_run_and_new_ones_are_added() -> None:
    async def story() -> None:
        async with in_memory() as system:
            first = await system.run(request(session_id="s"), scripted({"text": "one"}), entries={"a": "1"})
            await system.note(first.run_id, "ada", "b", "[2]")
            await system.run(request(session_id="s"), scripted({"text": "two"}), entries={"a": "3"})
            assert (await system.session("s")).entries == (("a", "3"), ("b", "[2]"))

    play(story())


def test_a_session_with_too_many_entries_takes_no_more() -> None:
    async def story() -> None:
        entries = {f"key {number}": "1" for number in range(SESSION_ENTRIES_MAX + 1)}
        async with in_memory() as system:
            with pytest.raises(RequestRejected) as refused:
                await system.run(request(session_id="s"), scripted({"text": "one"}), entries=entries)
            assert refused.value.code == "SESSION_FULL"

    play(story())


def test_a_session_that_never_was_has_nothing() -> None:
    async def story() -> None:
        async with in_memory() as system:
            session = await system.session("nobody's")
            assert (session.messages, session.entries, session.run_id, session.is_open) == ((), (), "", False)

    play(story())


def test_a_fork_takes_no_place_in_the_session() -> None:
    async def story() -> None:
        kit = scripted({"text": "hello", "delay_ms": 50})
        async with in_memory() as system:
            run_id = await system.submit(request(session_id="s"), kit)
            await system.signal(signal(Signal.CANCEL, run_id))
            await system.result(run_id)
            heard = await system.signal(signal(Signal.RETRY, run_id), kit=kit)
            await system.result(heard.fork_id)
            assert [entry.run_id for entry in await system.store.catalogue.session("s")] == [run_id]

    play(story())


@pytest.mark.parametrize("value", ["", "{", '{"a": NaN}', '"' + "x" * 5000 + '"', "[" * 200 + "]" * 200])
def test_a_value_that_is_no_small_json_text_is_refused(value: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_entries([("key", value)])
    assert refused.value.code == SESSION_ENTRY_INVALID


def test_values_are_kept_in_their_canonical_form() -> None:
    assert check_entries([("key", ' {"b": 1, "a": 2.0} ')]) == (("key", '{"a":2,"b":1}'),)


def test_a_request_of_a_session_keeps_its_own_terms() -> None:
    async def story() -> None:
        engine = Listening({"text": "one"}, {"text": "two"})
        async with in_memory() as system:
            await system.run(request(session_id="s"), engine_kit(engine, Registry([look])))
            choice = ToolChoice(ToolChoiceMode.NONE)
            await system.run(replace(request(session_id="s"), tool_choice=choice), engine_kit(engine, Registry([look])))
        assert [len(asked.tools) for asked in engine.asked] == [1, 0]

    play(story())


FAILS = {"error": "INFERENCE_CONTEXT_EXCEEDED"}


async def failed(system: System) -> str:
    """The second exchange of a session, which came to nothing; gives its run."""
    await system.run(request("one?", session_id="s"), scripted({"text": "one"}), entries={"city": '"Paris"'})
    tools = [look, keep]
    response = await system.run(request("two?", session_id="s"), scripted(calls("look", at="x"), FAILS, tools=tools))
    assert response.terminal_code is not Ending.SUCCESS
    return response.run_id


@pytest.mark.parametrize("kind", STORES)
def test_the_next_exchange_builds_on_the_retry_of_the_last_one(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            run_id = await failed(system)
            await system.note(run_id, "ada", "city", '"Rome"')
            await system.note(run_id, "ada", "food", '"soup"')
            # Of two retries the first fails, too, and the second begins where the first was tried again.
            first = await system.signal(signal(Signal.RETRY, run_id), kit=scripted(FAILS, tools=[look, keep]))
            assert (await system.result(first.fork_id)).terminal_code is not Ending.SUCCESS
            kit = scripted({"text": "two"}, tools=[look, keep])
            again = await system.signal(signal(Signal.RETRY, first.fork_id), kit=kit)
            assert (await system.result(again.fork_id)).content == "two"
            session = await system.session("s")
            assert (session.run_id, session.is_open) == (again.fork_id, False)
            await system.note(session.run_id, "ada", "food", '"rice"')
            engine = Listening({"text": "three"})
            third = await system.run(request("three?", session_id="s"), engine_kit(engine))
            assert [message.content for message in engine.asked[0].messages] == ["one?", "one", "two?", "two", "three?"]
            link = pinned(await system.state_of(third.run_id)).session
            assert link is not None
            assert (link.ordinal, link.previous_run_id) == (2, again.fork_id)
            assert link.previous_head == (await system.state_of(again.fork_id)).head
            assert dict(link.entries) == {"city": '"Rome"', "food": '"rice"'}

    play(story())


def test_a_session_is_busy_while_its_last_exchange_is_tried_again() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await failed(system)
            kit = scripted(calls("look", at="x"), calls("keep", text="x"), {"text": "two"}, tools=[look, keep])
            heard = await system.signal(signal(Signal.RETRY, run_id), kit=kit)
            await system.settle()
            with pytest.raises(RequestRejected, match=f"exchange 1 of session 's' is open: run {heard.fork_id}"):
                await system.run(request("three?", session_id="s"), scripted({"text": "three"}))

    play(story())


def test_a_retry_that_has_not_begun_changes_nothing_in_its_session() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await failed(system)
            clock, store = WallClock(), system.store
            dead = Runner(journal=store.journal, blobs=store.blobs, clock=clock, dispatch=InProcessDispatch({}, clock))
            await dead.rule_on(await dead.load(run_id), RetryRequested("ada"))
            assert (await system.session("s")).run_id == run_id

    play(story())


def test_an_entry_that_a_run_was_told_after_its_end_is_newer_than_the_one_its_fork_was_copied_with() -> None:
    async def story() -> None:
        kit = scripted(calls("keep", text="x"), tools=[keep])
        async with in_memory() as system:
            run_id = (await system.run(request(session_id="s"), kit)).run_id
            await system.note(run_id, "ada", "city", '"Paris"')
            await system.signal(signal(Signal.CANCEL, run_id))
            await system.note(run_id, "ada", "city", '"Rome"')
            heard = await system.signal(signal(Signal.RETRY, run_id), kit=kit)
            session = await system.session("s")
            assert (session.run_id, session.entries) == (heard.fork_id, (("city", '"Rome"'),))
            await system.note(heard.fork_id, "ada", "city", '"Oslo"')
            assert (await system.session("s")).entries == (("city", '"Oslo"'),)

    play(story())


class Book:
    """Takes entries, slowly, and counts how many are being written at once."""

    def __init__(self) -> None:
        self.writing = self.writing_max = 0
        self.written: list[tuple[str, str]] = []

    async def keep(self, key: str, text: str) -> None:
        """Write an entry; the first takes longest."""
        self.writing += 1
        self.writing_max = max(self.writing_max, self.writing)
        for _ in range(5 - len(self.written) % 5):
            await asyncio.sleep(0)
        self.written.append((key, text))
        self.writing -= 1


def test_entries_are_written_one_after_the_other_and_the_last_is_what_is_read() -> None:
    book = Book()
    state = SessionState(book.keep)

    async def scene() -> None:
        await asyncio.gather(*[state.set("key", number) for number in range(5)])

    play(scene())
    assert book.writing_max == 1
    assert book.written == [("key", str(number)) for number in range(5)]
    assert state.items() == {"key": 4}


def test_entries_can_be_written_in_one_loop_after_another() -> None:
    book = Book()
    state = SessionState(book.keep)

    async def scene() -> None:
        await asyncio.gather(*[state.set("key", number) for number in range(3)])

    play(scene())
    play(scene())
    assert (book.writing_max, len(book.written)) == (1, 6)


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were folded from their journals."""
    runs: list[str] = []
    load = Runner.load

    async def counted(runner: Runner, run_id: str, live: Live | None = None) -> Live:
        runs.append(run_id)
        return await load(runner, run_id, live)

    monkeypatch.setattr(Runner, "load", counted)
    return runs


def test_a_session_is_read_from_an_ended_run_at_hand_and_anew_where_its_journal_went_on(
    folded: list[str], tmp_path: Path
) -> None:
    async def story() -> None:
        stores = [store_of("embedded", tmp_path) for _ in range(2)]
        async with systems(*stores) as (here, there):
            asked = request("Paris?", session_id="s")
            run_id = (await here.run(asked, scripted({"text": "Warm."}))).run_id
            assert await said_in(here) == [("user", "Paris?"), ("assistant", "Warm.")]
            assert not folded
            await there.note(run_id, "ada", "city", '"Paris"')
            folded.clear()
            assert (await here.session("s")).entries == (("city", '"Paris"'),)
            assert folded == [run_id]

    play(story())


def test_of_only_so_many_runs_the_end_is_at_hand(folded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "ENDED_REMEMBERED_MAX", 2)

    async def story() -> None:
        async with in_memory() as system:
            for name in ("a", "b", "c"):
                await system.run(request("Hi", session_id=name), scripted({"text": "Hello."}))
            await said_in(system, "c")
            assert not folded
            await said_in(system, "a")
            assert len(folded) == 1

    play(story())
