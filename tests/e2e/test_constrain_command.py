"""`remit constrain` as a process beside another program: it answers each line before the next one is asked."""

import json
import subprocess

import pytest

from tests import warm
from tests.e2e.command import COMMAND, PATIENCE_S

pytestmark = pytest.mark.slow


def test_a_line_is_answered_before_the_next_one_is_asked() -> None:
    with warm.Popen(
        [COMMAND, "constrain", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(5):
            process.stdin.write(json.dumps({"text": f"[{number},]", "id": number}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert (answer["value"], answer["id"]) == ([number], number)
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


def test_who_stops_reading_ends_a_stream_without_end() -> None:
    with (
        subprocess.Popen(["yes", '{"text": "{}"}'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as endless,
        warm.Popen(
            [COMMAND, "constrain", "--jsonl"], stdin=endless.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
    ):
        assert endless.stdout is not None
        assert process.stdout is not None
        assert process.stderr is not None
        endless.stdout.close()
        assert json.loads(process.stdout.readline())["ok"]
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
        endless.wait(PATIENCE_S)


def test_many_lines_are_answered_in_order_and_a_bad_one_stops_nothing() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    lines = [json.dumps({"text": json.dumps({"n": n}), "schema": schema}) for n in range(3_000)]
    lines[1_000] = "{"
    done = warm.run(
        [COMMAND, "constrain", "--jsonl"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [answer["ok"] for answer in answers].count(False) == 1
    assert answers[1_000]["code"] == "CONSTRAIN_LINE_INVALID"
    assert answers[2_999]["value"] == {"n": 2_999}
