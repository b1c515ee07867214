"""A conversation on a session of governed runs: each message is one run, and the store keeps them all.

Rule 1: nothing of it is kept here: what was said stands in the journal, so any process can go on with it.
Rule 2: an answer to what a run asks goes the way of `remit approve`, in the name of the user.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remit.adapters.cli.answers.attendance import after_answer
from remit.adapters.cli.answers.signal_delivery import at_rest, signal_from
from remit.adapters.cli.arguments.inputs import prompt_from
from remit.adapters.cli.chat.prompt_answers import PromptAnswer
from remit.adapters.cli.screen.narration import Narrator, shown_while_loading
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.storage import RunEntry
from remit.core.limits.tools import ToolDefinition
from remit.core.run.approval import Approval
from remit.core.run.contract import NOTHING_OPEN, SystemRequest, SystemResponse
from remit.core.run.messages import Message, user_message
from remit.core.run.signals import Signal
from remit.core.work.orders import Order
from remit.observe.views.explain import Told
from remit.observe.watcher import metered

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

NOTHING_SAID = "NOTHING_SAID"
EXCHANGE_OPEN = "EXCHANGE_OPEN"

Begin = Callable[[SystemRequest], Coroutine[Any, Any, SystemResponse]]


@dataclass
class ChatTerms:
    """Who talks to which engine, on which terms, in which session."""

    system: "System"
    # Starts a run with the engine, the tools and the terms of this conversation.
    begin: Begin
    models: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    narrator: Narrator
    session_id: str
    user: str
    # What the model is told before each message.
    instructions: tuple[Message, ...] = ()
    # The effects that are wanted of the next exchange; none is carried over to another one.
    orders: tuple[Order, ...] = ()
    # Whether no user was named, so that it is that of the operating system.
    user_assumed: bool = False

    async def say(self, text: str) -> SystemResponse:
        """One exchange: it returns when there is an answer, an ending without one, or a question to a person."""
        if open_run := await self.open_run():
            message = f"run {open_run} of this session is open; /resume goes on with it, /cancel ends it"
            raise RequestRejected(EXCHANGE_OPEN, message, {"run_id": open_run})
        request = SystemRequest(
            messages=(*self.instructions, user_message(prompt_from(text, None))),
            session_id=self.session_id,
            user_id=self.user,
            user_assumed=self.user_assumed,
            orders=self.orders,
        )
        given, self.orders = self.orders, ()
        self.narrator.hear_next()
        try:
            return await self._shown(self.begin(request))
        except RequestRejected:
            # Nothing began: the message said again stands under the same orders, and not under its words alone.
            self.orders = given
            raise

    async def go_on(self) -> SystemResponse:
        """The open exchange at its next rest."""
        run_id = await self._open_run()
        self.narrator.hear_next()
        self.narrator.run_id = run_id

        async def resume() -> SystemResponse:
            # Until its next turn, this is where it stands.
            self.narrator.measured(run_id, metered(await self.system.state_of(run_id)))
            return await self.system.resume(run_id)

        return await self._shown(resume())

    async def answer(self, asked: Approval, reply: PromptAnswer) -> SystemResponse:
        """Answer what a run asks, and let it go on to its next rest."""
        self.narrator.run_id = await self.system.archive.root(asked.run_id)
        return await self._shown(after_answer(self.system, asked, reply, by=self.user))

    async def retry(self) -> SystemResponse:
        """Try the last exchange again, as a fork of it."""
        run_id = await self.last_run()
        told = signal_from(self.user, Signal.RETRY, run_id, {})
        self.narrator.hear_next()
        self.narrator.run_id = run_id

        async def tell() -> SystemResponse:
            heard = await self.system.signal(told)
            self.narrator.run_id = heard.fork_id or run_id
            return await at_rest(self.system, self.narrator.run_id)

        return await self._shown(tell())

    async def cancel(self) -> SystemResponse:
        """End the open exchange."""
        run_id = await self._open_run()
        await self.system.signal(signal_from(self.user, Signal.CANCEL, run_id, {"reason": "cancelled in the chat"}))
        return await at_rest(self.system, run_id)

    async def stop(self) -> bool:
        """Cancel the run that is under way; False when there is none that could be cancelled."""
        # What was begun is finished first, so that there is a run to cancel.
        await self.system.begun()
        if not self.narrator.run_id:
            return False
        told = signal_from(self.user, Signal.CANCEL, self.narrator.run_id, {"reason": "interrupted in the chat"})
        try:
            await self.system.signal(told)
        except RemitError:
            # It may have ended by itself at this very moment; what it came to is on its way.
            return await self._has_ended(self.narrator.run_id)
        return True

    async def last_run(self) -> str:
        """The newest run of the session."""
        if not (run_id := (await self.system.session(self.session_id)).run_id):
            raise RequestRejected(NOTHING_SAID, f"nothing has been said in session {self.session_id!r} yet")
        return run_id

    async def told(self, name: str) -> Told:
        """A run and what it says about itself; without a name the last one."""
        return await self.system.archive.told(await self._named(name))

    async def messages(self) -> tuple[Message, ...]:
        """What was said in the session so far."""
        return (await self.system.session(self.session_id)).messages

    async def open_run(self) -> str:
        """The run of the session that has not ended; empty when there is none."""
        session = await self.system.session(self.session_id)
        return session.run_id if session.is_open else ""

    async def runs(self) -> list[RunEntry]:
        """The runs of the session, newest first."""
        every = await self.system.archive.runs()
        return [entry for entry in every if entry.listing.session_id == self.session_id]

    async def _named(self, name: str) -> str:
        return (await self.system.archive.find(name)).run_id if name else await self.last_run()

    async def _open_run(self) -> str:
        if not (run_id := await self.open_run()):
            raise RequestRejected(NOTHING_OPEN, f"session {self.session_id!r} has no exchange under way")
        return run_id

    async def _has_ended(self, run_id: str) -> bool:
        return bool((await self.system.archive.find(run_id)).ending)

    async def _shown(self, work: Coroutine[Any, Any, SystemResponse]) -> SystemResponse:
        """Wait for the response of an exchange, and show below the text how far it is."""
        self.narrator.progress.begin()
        try:
            with shown_while_loading(self.narrator.progress.loading):
                return await work
        finally:
            self.narrator.progress.end()
