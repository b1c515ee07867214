"""The gateway: what speaks the wire for a system, until it is closed.

Rule 1: a message is done with when what it says is in a journal; until then the broker hands it over again.
Rule 2: what can never be carried out is answered in its channel, or kept as a dead letter, with a code.
Rule 3: under the subjects of what loops tell, a message that no gateway of the deployment has signed is refused, and removed.
Rule 4: what breaks is begun again after a pause: a broker that is away for a while ends nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.signing import Signer
from remit.core.journal.storage import StoreUnusable
from remit.core.raised import raised
from remit.core.task_end import end_tasks
from remit.kernel.state import RunState
from remit.observe.logs import NO_RUN
from remit.orchestrate.facade import System
from remit.orchestrate.gateway.broker import Broker
from remit.orchestrate.gateway.clerk import Clerk, WireWork, destination_for
from remit.orchestrate.gateway.key_room import SealedLine
from remit.orchestrate.gateway.teller import KEPT_S, Identities, LoopTeller
from remit.orchestrate.gateway.told_mark import ToldMark, expect_taken
from remit.orchestrate.ports import Clock
from remit.wire.message_records import UserResponse
from remit.wire.payloads import HandedMessage, delivered, posted
from remit.wire.replies import Destination, refusal_response, sender_named
from remit.wire.subjects import is_of_a_loop

WIRE_UNDELIVERABLE = "WIRE_UNDELIVERABLE"

# A message that failed so often for no reason of its own is kept as a dead letter.
TRIES_MAX = 5
PAUSE_S = 1.0

_log = logging.getLogger(__name__)


class Gateway:
    """Speaks the wire for a system; several may do so on one cluster, and each message is carried out by one."""

    def __init__(
        self,
        system: System,
        broker: Broker,
        work: WireWork,
        *,
        clock: Clock,
        identities: Identities | None = None,
        line: SealedLine | None = None,
        mark: ToldMark | None = None,
    ) -> None:
        self._system, self._broker, self._clock = system, broker, clock
        # With it, only what a key of the deployment has sealed is believed.
        self._line = line
        # With it, what gateways of the deployment have told is known from what others send there.
        self._mark = mark or ToldMark(Signer.generate())
        self.teller = LoopTeller(system, broker, self._learn, self._mark, identities)
        self._clerk = Clerk(system, self.teller.loops, work)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin; returns once whatever happens from then on is told, and whatever is sent is taken."""
        ready = asyncio.Event()
        await self._clerk.look()
        self._tasks = [
            asyncio.create_task(self._again(lambda: self.teller.run(ready.set))),
            asyncio.create_task(self._again(self._take)),
        ]
        await ready.wait()

    async def close(self) -> None:
        """Take and tell nothing more; what was not carried out is handed to another."""
        await end_tasks(self._tasks)
        await self._broker.close()

    def _learn(self, state: RunState) -> None:
        self._clerk.learn(state)

    async def _again(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except RemitError as error:
                _log.warning("the wire is begun again: %s", error, extra=NO_RUN)
            except Exception:  # noqa: BLE001  # whatever broke, others go on being heard
                _log.exception("the wire is begun again", extra=NO_RUN)
            await asyncio.sleep(PAUSE_S)

    async def _take(self) -> None:
        while True:
            for delivery in await self._broker.take():
                await self.carry_out(delivery)

    async def carry_out(self, delivery: HandedMessage) -> None:
        """Do what one message says, and be done with it."""
        to: Destination | None = None
        if is_of_a_loop(delivery.subject) and self._mark.is_own(delivery):
            return await self._broker.leave(delivery)
        try:
            expect_taken(delivery.subject)
            if self._line is not None:
                again = delivery.tries > 1
                await self._line.check(delivery.subject, delivery.data, delivery.headers, is_redelivery=again)
            # Where it is not in order, its sender is told as far as it says who that is.
            to = sender_named(delivery.subject, delivery.data, otherwise=f"message-{delivery.place}")
            message = delivered(delivery.subject, delivery.data, delivery.headers)
            to = destination_for(message)
            answer = await self._clerk.carry_out(message, at_ms=self._clock.now_ms())
        except StoreUnusable as error:
            _log.warning("a message waits: %s", error, extra=NO_RUN)
            return await self._broker.later(delivery)
        except RemitError as error:
            return await self._refuse(delivery, to, error)
        except Exception as error:  # noqa: BLE001  # a defect of ours must not stop those who send
            _log.exception("a message under %s could not be carried out", delivery.subject, extra=NO_RUN)
            if delivery.tries < TRIES_MAX:
                return await self._broker.later(delivery)
            why = f"it failed {delivery.tries} times, last with {raised(error)}"
            return await self._refuse(delivery, to, RequestRejected(WIRE_UNDELIVERABLE, why))
        if answer is not None:
            await self._answer(answer)
        return await self._broker.done(delivery)

    async def _refuse(self, delivery: HandedMessage, to: Destination | None, error: RemitError) -> None:
        if to is not None:
            with suppress(RequestRejected):  # It names a channel that cannot be one.
                await self._answer(refusal_response(error, to, at_ms=self._clock.now_ms()))
        await self._broker.refuse(delivery, error.code, str(error))

    async def _answer(self, answer: UserResponse) -> None:
        await self._broker.publish(self._mark.marked(posted(answer)), key=answer.response_id, keep_s=KEPT_S)
