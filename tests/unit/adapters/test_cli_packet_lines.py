"""Packets as people see them: every value, where it comes from, and what a yes allows."""

from collections.abc import Iterable
from functools import partial

import pytest

from remit.adapters.cli.screen.colours import Ink, Line, flowed
from remit.adapters.cli.screen.packet_lines import (
    EFFECTS,
    LEFT_MAX,
    NOTE_CHARS_MAX,
    ORIGINS_MAX,
    VALUE_CHARS_MAX,
    WAYS_TO_ANSWER,
    asked_lines,
    change_lines,
    packet_lines,
    place_lines,
    short_lines,
    ticked_lines,
    way_lines,
    way_to_answer,
)
from remit.adapters.cli.screen.response_lines import LINE_CHARS_MAX
from remit.core.failure import Ending
from remit.core.limits.authority import ValueOrigin
from remit.core.limits.escalation import Gravity
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.core.run.approval import Approval, What
from remit.core.run.halt import HELD_BACK
from remit.provenance.gate_verdict import FIXES, MEANINGS, Objection

REACHES = [What]
HELD = Approval(
    id="r/3.2",
    run_id="r",
    purpose=What.APPROVAL,
    ending=Ending.CONFIRM_REQUIRED,
    expires_at_ms=0,
    tool="send",
    effect="external",
    arguments={"to": ["bob@corp.example", "eve@evil.example"], "deep": {"a": [1, "\u202e"]}},
    reasons=("because",),
    releases=(("side_effects", 1),),
    packet="0123456789abcdef" * 4,
    objection="PROVENANCE_UNBOUND",
    origins=(
        ValueOrigin("to[0]", "bob@corp.example", "words", "12-28"),
        ValueOrigin("to[1]", "eve@evil.example", code="PROVENANCE_UNBOUND"),
        ValueOrigin("deep.a[0]", "1", "person"),
    ),
    labels=("private",),
    blast_radius="one mailbox",
    rollback="none: what was sent is sent",
    source="fedcba9876543210" * 4,
    left=(("tool_calls", 5), ("wall_clock_ms", 61_000), ("inference_cost_microusd", 5_000_000)),
    approved_by=("ann",),
    approvals_needed=2,
    queue="user",
    severity=Gravity.MODERATE,
    silences=1,
)
QUESTION = Approval("r/1.1", "r", What.QUESTION, Ending.MISSING_INFO, 0, question="Which one?", queue="user")


def told(lines: Iterable[Line]) -> str:
    """Lines as a pipe gets them."""
    return "\n".join("".join(text for text, _ in line) for line in lines)


def test_everything_that_will_run_is_shown_before_anybody_answers() -> None:
    assert told(packet_lines(HELD)).splitlines() == [
        "r/3.2  send wants to be called",
        '     to = ["bob@corp.example", "eve@evil.example"]',
        "       + to[0] bob@corp.example from the user's words, 12-28",
        "       ! to[1] eve@evil.example nothing that can be trusted supplies it (PROVENANCE_UNBOUND)",
        '     deep = {"a": [1, "\\u202e"]}',
        "       + deep.a[0] 1 from a person",
        f"     effect: external, it {EFFECTS[Effect.EXTERNAL]}",
        "     objection: PROVENANCE_UNBOUND",
        "     why: because",
        "     reaches: one mailbox",
        "     way back: none: what was sent is sent",
        "     has read: private",
        "     a yes allows: 1 of side_effects beyond its cap",
        "     code: fedcba9876543210",
        "     left of the budget: tool_calls 5, wall_clock 1 min 01 s, inference_cost $5.00",
        "     approvals: 1 of 2 different people: ann",
        "     asked of: user, moderate, after 1 who kept silent",
        "     open until: 1970-01-01 00:00:00 UTC, packet 0123456789abcdef",
    ]


def test_a_packet_is_four_lines_call_values_why_and_how_to_answer() -> None:
    held = replace(HELD, reasons=("PROVENANCE_UNBOUND: to[1]='eve@evil.example'", *FIXES.values(), "the boundary asks"))
    assert told(asked_lines([held])).splitlines() == [
        (
            'r/3.2  send(to=["bob@corp.example", "eve@evil.example"], deep={"a": [1, "\\u202e"]}) wants to be called;'
            " it acts on the world outside"
        ),
        (
            "     values: ! to[1] eve@evil.example nothing that can be trusted supplies it;"
            " + to[0] bob@corp.example from the user's words, 12-28; + deep.a[0] 1 from a person"
        ),
        (
            "     why: nothing that can be trusted supplies a value (PROVENANCE_UNBOUND); the boundary asks;"
            " a yes allows 1 of side_effects beyond its cap; approved by 1 of 2 different people: ann"
        ),
        "     answer with: remit approve r/3.2  or: remit reject r/3.2  (until 1970-01-01 00:00:00 UTC)",
    ]
    named = replace(held, objection="RESULT_LOST", reasons=("gone",), answered_by=("bob", "cy"), approvals_needed=1)
    assert "why: RESULT_LOST; gone; a yes allows 1 of side_effects beyond its cap; only bob or cy may answer" in told(
        asked_lines([named])
    )
    assert (
        told(asked_lines([replace(held, objection="", reasons=(), releases=(), approvals_needed=1)])).count("\n") == 2
    )


def test_a_code_is_told_once_and_every_objection_has_its_words() -> None:
    assert set(MEANINGS) == set(FIXES) == set(Objection)
    for is_full in (False, True):
        held = replace(HELD, objection="NOT_ASKED", reasons=("NOT_ASKED", FIXES[Objection.NOT_ASKED]))
        assert told(asked_lines([held], is_full=is_full)).count("NOT_ASKED") == 1


def test_the_name_of_an_argument_cannot_pass_for_another_one() -> None:
    held = replace(HELD, arguments={"to=1, cc": 2}, origins=())
    assert told(asked_lines([held])).startswith('r/3.2  send("to=1, cc"=2) wants to be called')


def test_what_was_shown_before_is_followed_by_how_to_answer_alone() -> None:
    (line,) = told(way_lines([HELD])).splitlines()
    assert line.startswith("     answer with: remit approve r/3.2")


def test_a_value_that_something_supplies_is_green_and_one_that_nothing_supplies_is_red() -> None:
    inks = {text: ink for line in packet_lines(HELD) for text, ink in line}
    assert inks["from the user's words, 12-28"] is Ink.GOOD
    assert inks["nothing that can be trusted supplies it (PROVENANCE_UNBOUND)"] is Ink.BAD
    bare = replace(HELD, origins=(ValueOrigin("to", "x"),))
    assert "! to x nothing that can be trusted supplies it\n" in told(packet_lines(bare))


def test_a_question_in_words_is_shown_as_it_was_asked() -> None:
    assert told(packet_lines(QUESTION)).startswith("r/1.1  Which one?\n")
    chosen = replace(QUESTION, tool="ask_user", options=("red", "blue"))
    shown = told(packet_lines(chosen))
    assert shown.startswith("r/1.1  ask_user asks: Which one?\n")
    assert "options: red | blue" in shown


def test_a_release_says_what_it_is_when_nobody_put_it_in_words() -> None:
    asked = Approval("r/1.1", "r", What.RELEASE, Ending.BUDGET_EXHAUSTED, 0, releases=(("tool_calls", 5),))
    shown = told(packet_lines(asked))
    assert shown.startswith("r/1.1  may it spend more than it was given?\n")
    assert "a yes allows: 5 of tool_calls beyond its cap" in shown


def test_a_doubtful_answer_is_answered_by_a_yes_or_a_no_and_not_in_words() -> None:
    asked = Approval("r/1.1", "r", What.REVIEW, Ending.LOW_CONFIDENCE, 0, question="Let the answer stand?")
    assert told(packet_lines(asked)).startswith("r/1.1  Let the answer stand?\n")
    assert way_to_answer(asked) == "if it may stand: remit approve r/1.1  if it may not: remit reject r/1.1"


def test_a_call_in_doubt_is_said_to_be_one() -> None:
    asked = Approval("r/1.1", "r", What.OUTCOME, Ending.REVIEW_REQUIRED, 0, tool="write", about="0.1")
    assert "write was called, and this run does not know whether it happened" in told(packet_lines(asked))
    asked = replace(asked, reasons=(f"{HELD_BACK} (write, r:0.1)",))
    assert "write was held back by a halt before this run was copied, and was not sent" in told(packet_lines(asked))


def test_every_purpose_has_its_way_to_answer_and_every_effect_its_words() -> None:
    assert set(WAYS_TO_ANSWER) == set(What) - {What.ENDING}
    assert set(EFFECTS) == set(Effect)
    assert way_to_answer(QUESTION) == "answer with: remit approve r/1.1 --text WORDS  or: remit reject r/1.1"


def test_a_list_cuts_what_is_long_and_says_where_all_of_it_is() -> None:
    origins = tuple(ValueOrigin(f"to[{place}]", "v", "words") for place in range(ORIGINS_MAX + 1))
    long = replace(HELD, arguments={"to": "x" * 1000}, origins=origins, left=tuple((f"d{n}", n) for n in range(9)))
    listed = told(asked_lines([long]))
    assert f'send(to="{"x" * (VALUE_CHARS_MAX - 1)} … 1002 characters) wants' in listed
    assert "  all of it: remit approvals r/3.2\n" in listed
    assert f"; … {ORIGINS_MAX + 1} in all" in listed
    full = told(asked_lines([long], is_full=True))
    assert f"d{LEFT_MAX - 1} {LEFT_MAX - 1}, …" in full
    for whole in (told(asked_lines([long], value_chars_max=0)), full):
        assert f'"{"x" * 1000}"' in whole
        assert f"to[{ORIGINS_MAX}] v" in whole
        assert "all of it" not in whole
    words = replace(QUESTION, question="y" * 1000)
    assert "1000 characters" in told(asked_lines([words]))
    assert "y" * 1000 in told(packet_lines(words))


def test_a_value_longer_than_a_line_takes_several_and_nothing_of_it_is_left_out() -> None:
    text = "z" * (LINE_CHARS_MAX * 2)
    for shown in (packet_lines, short_lines):
        lines = told(shown(replace(HELD, arguments={"to": text}, origins=()))).splitlines()
        assert max(map(len, lines)) < LINE_CHARS_MAX + 100
        assert sum(line.count("z") for line in lines) == len(text)
    assert sum(line.count("z") for line in told(packet_lines(replace(QUESTION, question=text))).splitlines()) == len(
        text
    )


def test_what_others_wrote_is_escaped_and_bounded_in_every_place() -> None:
    bad = "\x1b[2J\u202e\n" + "w" * 2000
    hostile = replace(
        HELD,
        tool=bad,
        arguments={bad: bad},
        reasons=(bad,),
        labels=(bad,),
        blast_radius=bad,
        rollback=bad,
        objection=bad,
        origins=(ValueOrigin(bad, bad, bad, bad, bad),),
        approved_by=(bad,),
        queue=bad,
    )
    for shown in (packet_lines, partial(short_lines, value_chars_max=VALUE_CHARS_MAX)):
        lines = told(shown(hostile)).split("\n")
        assert not any("\x1b" in line or "\u202e" in line for line in lines)
        assert max(map(len, lines)) <= LINE_CHARS_MAX + 2 * NOTE_CHARS_MAX
    change = told(change_lines(hostile, {bad: 1}))
    assert "\x1b" not in change
    assert "\n" not in change


def test_calls_that_were_held_together_have_one_head_and_ways_to_answer_all_of_them() -> None:
    other = replace(HELD, id="r/3.4", group="r/3.2")
    lines = told(asked_lines([HELD, other])).splitlines()
    assert lines[0].startswith("r/3.2+  2 calls were held together; packet ")
    assert lines[-2:] == [
        "     all of them: remit approve r/3.2+  or: remit reject r/3.2+",
        "     some, and no to the rest: remit approve r/3.2+ --only 3.2",
    ]
    assert told(place_lines(other, [HELD, other])) == "call 2 of 2 that were held together"
    assert told(place_lines(HELD, [HELD])) == ""


def test_what_is_ticked_is_marked_before_it_is_answered() -> None:
    other = replace(HELD, id="r/3.4", group="r/3.2")
    heads = [line for line in told(ticked_lines([HELD, other], [other])).splitlines() if line.startswith("[")]
    assert [head.partition("(")[0] for head in heads] == ["[ ] r/3.2  send", "[x] r/3.4  send"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"a": 1}, ["     the arguments are those that were proposed"]),
        ({"a": 2}, ["     a: 1 -> 2"]),
        ({"b": "x"}, ["     a: 1 -> (not there)", '     b: (not there) -> "x"']),
    ],
)
def test_other_arguments_are_shown_key_by_key(arguments: dict[str, object], shown: list[str]) -> None:
    assert told(change_lines(replace(HELD, arguments={"a": 1}), arguments)).splitlines() == shown


def test_a_change_that_is_too_long_for_a_line_is_cut_with_its_size() -> None:
    (line,) = told(change_lines(replace(HELD, arguments={"a": 1}), {"a": "x" * 9000})).splitlines()
    assert line.endswith("… 9002 characters")
    assert len(line) < LINE_CHARS_MAX


def test_a_command_that_can_be_copied_is_never_broken_by_a_line_end() -> None:
    rows = ["".join(text for text, _ in row) for row in flowed(next(iter(way_lines([HELD]))), 60, 7)]
    assert rows == [
        "     answer with: remit approve r/3.2  or: ",
        "       remit reject r/3.2  (until 1970-01-01 00:00:00 UTC)",
    ]
    (row,) = flowed((("remit approve " + "x" * 50, Ink.PLAIN),), 20, 7)
    assert row[0][0] == "remit approve " + "x" * 50
    long = ["".join(text for text, _ in row) for row in flowed((("y" * 50, Ink.PLAIN),), 20, 7)]
    assert "".join(long).replace(" ", "") == "y" * 50
