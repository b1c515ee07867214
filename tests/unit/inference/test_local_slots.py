"""A conversation goes on where it is remembered, and a new one disturbs the one that was quiet for longest."""

from remit.core.record import JsonObject
from remit.inference.local.slots import Slots


def conversation(*texts: str) -> list[JsonObject]:
    return [{"role": "system", "content": "Be brief."}, *({"role": "user", "content": text} for text in texts)]


def visited(slots: Slots, *texts: str) -> int:
    """The slot in which a conversation is asked."""
    turns = conversation(*texts)
    slot = slots.take(turns)
    slots.give_back(slot, turns)
    return slot


def test_a_conversation_goes_on_in_the_slot_that_remembers_it() -> None:
    slots = Slots(2)
    first, second = visited(slots, "a"), visited(slots, "b")
    assert first != second
    assert visited(slots, "a", "more") == first
    assert visited(slots, "b", "more") == second
    assert visited(slots, "b", "something else") == second


def test_a_new_conversation_takes_the_slot_that_was_used_longest_ago() -> None:
    slots = Slots(2)
    first, second = visited(slots, "a"), visited(slots, "b")
    assert visited(slots, "a", "more") == first
    assert visited(slots, "c") == second


def test_the_same_instructions_alone_do_not_make_it_the_same_conversation() -> None:
    slots = Slots(2)
    assert visited(slots, "a") != visited(slots, "b")


def test_of_two_that_remember_it_the_one_that_remembers_more_is_taken() -> None:
    slots = Slots(2)
    short, long = conversation("a"), conversation("a", "b", "c")
    one, other = slots.take(short), slots.take(long)
    slots.give_back(other, long)
    slots.give_back(one, short)
    assert visited(slots, "a", "b", "c", "d") == other


def test_a_conversation_whose_slot_is_taken_gets_another() -> None:
    slots = Slots(2)
    slot = visited(slots, "a")
    assert slots.take(conversation("a")) == slot
    assert slots.take(conversation("a")) != slot


def test_a_conversation_without_messages_has_a_slot() -> None:
    slots = Slots(1)
    assert slots.take([]) == 0
