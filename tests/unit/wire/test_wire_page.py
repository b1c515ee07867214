"""docs/wire.md can be followed: every example in it is delivered under the subject that stands above it."""

import re

import pytest

from remit.core.failure_families import code_family
from remit.core.record import Record
from remit.orchestrate.gateway import clerk, gateway, key_room, told_mark, webhook_channel
from remit.wire import channels, credentials, envelopes, inbound, payloads, subjects
from remit.wire.message_records import LoopEntity, Trajectory
from remit.wire.payloads import KINDS, delivered, read
from scripts.generate_docs import DOCS
from scripts.wire_docs import CODES, EXAMPLES

PAGE = (DOCS / "wire.md").read_text(encoding="utf-8")
SENT = re.findall(r"An example, sent to `([^`]+)`:\n\n```json\n(.*?)\n```", PAGE, re.DOTALL)
SHOWN = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.req("3.12", "3.13")
def test_every_example_of_the_page_is_delivered_under_its_subject() -> None:
    messages: list[Record] = [
        delivered(subject, text.encode()) for subject, text in SENT if "signal_id" in text or "sig" not in subject
    ]
    assert {type(message) for message in messages} >= {
        kind for kind in KINDS.values() if kind.__name__ != "SignalMessage"
    }
    assert all(message in EXAMPLES.values() for message in messages)


def test_a_message_of_a_dispatcher_says_in_its_header_what_it_is() -> None:
    ((subject, text),) = [(subject, text) for subject, text in SENT if "signal_id" not in text and "signal" in subject]
    headers = {"Agentic-Type": "agentic.signal_message.v1"}
    assert delivered(subject, text.encode(), headers) == EXAMPLES["signal_message"]


def test_the_loop_and_the_trajectory_of_the_page_are_read_as_those_of_a_bucket() -> None:
    entity, trajectory = [text for text in SHOWN if text not in {sent for _, sent in SENT}]
    assert read(entity.encode(), LoopEntity) == EXAMPLES["loop_entity"]
    assert read(trajectory.encode(), Trajectory) == EXAMPLES["trajectory"]


def test_every_code_of_the_wire_stands_on_the_page_and_in_a_family() -> None:
    rooms = (
        channels,
        clerk,
        credentials,
        envelopes,
        gateway,
        inbound,
        key_room,
        payloads,
        subjects,
        told_mark,
        webhook_channel,
    )
    beginnings = ("WIRE_", "CHANNEL_", "ENVELOPE_", "CAPABILITY_", "KEYS_")
    codes = {
        value for room in rooms for name, value in vars(room).items() if name.startswith(beginnings) and name == value
    }
    assert codes == set(CODES)
    assert all(code_family(code) is not None and f"`{code}`" in PAGE for code in codes)
