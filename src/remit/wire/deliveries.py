"""A message as a broker hands it over, before anything of it is believed."""

from collections.abc import Mapping

from remit.core.record import Record


class HandedMessage(Record, kw_only=True):
    """Subject, bytes and headers as they came; its place among all messages, and how often it was handed over."""

    subject: str
    data: bytes
    headers: Mapping[str, str] = {}
    place: int = 0
    tries: int = 1
