"""The trace shows every turn, as lines for people and as rows for programs."""

import json

from remit.core.journal.arrivals import CodeReturned, Election, FeedbackGiven, ModelAnswered
from remit.core.journal.rulings import CommandSettled
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.record import BlobRef
from remit.observe.views.trace import LINE_CHARS_MAX, trace_lines, trace_rows
from remit.testing.scripts import in_turn, says
from remit.testing.world import SimulatedWorld
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.observe.sealed import simulated
from tests.unit.observe.test_linked_turns import read

DEMO = demo_world().finish(demo_manifest())


def a_turn(*decisions: CommandSettled, text: object = "hello", at_ms: int = 0) -> Turn:
    return Turn(0, at_ms, b"", KERNEL_VERSION, ModelAnswered("0.1", text), decisions)  # type: ignore[arg-type]


def test_every_turn_and_every_decision_has_a_line() -> None:
    lines = trace_lines(DEMO.turns)
    assert len(lines) == len(DEMO.turns) + sum(len(turn.decisions) for turn in DEMO.turns)
    assert lines[0].startswith("  0      0.0 s  RunStarted customer_support Order 42")
    assert any('refund{"order_id":"42"} because ' in line for line in lines)
    assert any("-> CallTool id=4.1 refund" in line and "approved_by=ada" in line for line in lines)


def test_no_line_of_any_run_is_longer_than_a_line_or_holds_an_escape() -> None:
    lines = [line for seed in range(20) for run in simulated(seed) for line in trace_lines(read(run.data))]
    assert max(map(len, lines)) <= LINE_CHARS_MAX + len("  0      0.0 s     ")
    assert all(line.isprintable() for line in lines)


def test_time_is_counted_from_the_first_turn() -> None:
    lines = trace_lines([a_turn(at_ms=5_000), a_turn(at_ms=7_500)])
    assert [line.split()[1] for line in lines] == ["0.0", "2.5"]
    assert [row["since_start_ms"] for row in trace_rows([a_turn(at_ms=5_000), a_turn(at_ms=7_500)])] == [0, 2500]


def test_a_long_text_is_shown_by_its_size_and_digest() -> None:
    assert "<5000 bytes 01010101>" in trace_lines([a_turn(text=BlobRef(b"\x01" * 32, 5000))])[0]


def test_a_dimension_that_nobody_knows_is_shown_by_its_number() -> None:
    lines = trace_lines([a_turn(CommandSettled("0.1", ((2, 1), (99, 7))))])
    assert lines[1].endswith("charged=1 tool_calls+7 dimension 99")


def test_whatever_is_said_is_shown_as_data() -> None:
    said = "\x1b[2Jowned\x07\u202e"
    text = "\n".join(trace_lines([Turn(0, 0, b"", KERNEL_VERSION, FeedbackGiven(said, said))]))
    assert "\x1b" not in text
    assert "\\x1b[2Jowned\\x07\\u202e" in text


def test_a_row_holds_everything_and_can_be_written_as_json() -> None:
    rows = trace_rows(DEMO.turns)
    assert [row["seq"] for row in rows] == list(range(len(DEMO.turns)))
    assert rows[1]["arrival"]["type"] == "ModelAnswered"
    assert [command["type"] for command in rows[1]["commands"]] == ["CallTool"]
    assert [ruling["type"] for ruling in rows[1]["rulings"]] == ["CommandSettled", "NodeEntered", "ToolCallRefused"]
    assert json.loads(json.dumps(rows)) == rows


def test_a_row_says_where_the_run_stood_and_which_steps_were_settled() -> None:
    rows = trace_rows(DEMO.turns)
    assert [row["node"] for row in rows] == ["think", "act", "think", "act", "act", "think", "done"]
    refund = rows[5]["settled"][0]
    assert (refund["kind"], refund["name"], refund["status"], refund["ordered_seq"]) == (
        "tool",
        "refund",
        "committed",
        4,
    )
    assert (refund["by"], refund["rung"], refund["charged"]["side_effects"]) == ("ada", "committed", 1)
    assert rows[1]["settled"][0]["charged"] == {"input_tokens": 8, "output_tokens": 4, "inference_cost_microusd": 4}


def test_the_last_turns_alone_keep_their_time_since_the_first() -> None:
    whole, some = trace_lines(DEMO.turns), trace_lines(DEMO.turns, last=2)
    assert whole[-len(some) :] == some
    assert (some[0].split()[0], trace_lines([]), trace_rows([])) == ("5", [], [])


def test_a_turn_without_decisions_has_a_row_of_its_own() -> None:
    world = SimulatedWorld(model=in_turn(says("hi")))
    run = world.finish(demo_manifest())
    assert len(trace_rows(run.turns)) == len(run.turns)
    assert trace_rows([a_turn()])[0]["rulings"] == []


def test_a_line_is_cut_to_the_columns_there_are() -> None:
    turns = [Turn(0, 0, b"", KERNEL_VERSION, CodeReturned("0.1", "word " * 100))]
    for columns in (30, 60, 80, 500):
        assert max(map(len, trace_lines(turns, columns=columns))) <= columns
    assert len(trace_lines(turns)[0]) == len(trace_lines(turns, columns=500)[0])


def test_a_count_is_told_in_words() -> None:
    votes = [
        CodeReturned("0.1", election=Election(0, 2, 666_667)),
        CodeReturned("0.1", election=Election(1, 1, 500_000, is_settled=False)),
    ]
    lines = trace_lines([Turn(seq, 0, b"", KERNEL_VERSION, said) for seq, said in enumerate(votes)])
    assert lines[0].endswith("election=answer 1 with 2 votes (67 %)")
    assert lines[1].endswith("election=answer 2 with 1 votes (50 %) so far")
