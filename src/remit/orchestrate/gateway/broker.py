"""What the gateway asks of the carrier of its messages."""

from typing import Protocol

from remit.wire.payloads import HandedMessage, PublishedMessage


class Broker(Protocol):
    """Hands messages over, each to one gateway; publishes, and keeps the newest entry under each key of a bucket.

    Whatever is named by a key is kept once, however often it is sent within some minutes.
    """

    async def take(self) -> list[HandedMessage]:
        """The next messages, as soon as there are any."""

    async def done(self, delivery: HandedMessage) -> None:
        """A message was carried out, and is not needed any more."""

    async def leave(self, delivery: HandedMessage) -> None:
        """A message was told by a gateway: it stays where it is, for those who listen."""

    async def later(self, delivery: HandedMessage) -> None:
        """A message could not be carried out now; hand it over again."""

    async def refuse(self, delivery: HandedMessage, code: str, why: str) -> None:
        """A message will never be carried out: keep it as a dead letter, with its code."""

    async def publish(self, message: PublishedMessage, *, key: str, keep_s: int) -> None:
        """Publish a message, which is kept for so long."""

    async def put(self, bucket: str, name: str, data: bytes, *, key: str = "") -> None:
        """Keep an entry of a bucket in the place of the one before."""

    async def get(self, bucket: str, name: str) -> bytes | None:
        """The entry of a bucket; None where there is none."""

    async def close(self) -> None:
        """Hand nothing over any more."""
