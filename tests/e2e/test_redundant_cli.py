"""Votes from the installed command: what the command prints, and runs that are killed between replicas and resumed.

The model is a server that answers each call in turn, and holds on to one of them until its caller is gone.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conformance.chat_server import Call, ChatServer, Peer, served
from tests.e2e.command import Remit, remit_in
from tests.e2e.test_plan_cli import killed_at

pytestmark = pytest.mark.slow
EXIT_OK = 0

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
VOTER = '''
"""The candidate that spoke last is right."""


def last(candidates):
    """The last candidate, half surely."""
    return candidates[-1], 0.5
'''
HELD = None


class Replies:
    """Answers calls in turn, with a number each."""

    def __init__(self, *numbers: int | None) -> None:
        self._numbers: Sequence[int | None] = numbers
        self._given = 0

    async def __call__(self, call: Call, peer: Peer) -> None:
        """The next answer; a call that is held ends when its caller hangs up."""
        number, self._given = self._numbers[self._given], self._given + 1
        if number is HELD:
            assert await peer.wait_for_hanging_up()
            return
        await peer.says(json.dumps({"answer": number}))


def words(remit: Remit, server: ChatServer, *more: str) -> tuple[str, ...]:
    """A command line that has the server vote."""
    (remit.folder / "schema.json").write_text(json.dumps(SCHEMA))
    (remit.folder / "voter.py").write_text(VOTER)
    engine = f"openai:tiny?url={server.url}"
    return ("run", "How many?", "--mode", "redundant", "--schema", "schema.json", "--engine", engine, *more)


def test_the_winner_is_the_answer_and_people_learn_how_many_agree(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit, served(Replies(4, 5, 5)) as server:
        said = remit(*words(remit, server))
        assert (said.exit_code, said.out) == (EXIT_OK, '{"answer": 5}\n')
        told = said.err.splitlines()
        assert [line.split()[:3] for line in told[:-1]] == [
            [mark, "replica", number] for number in "123" for mark in ("->", "<-")
        ]
        assert told[-1] == "2 of 3 agree, confidence 67 %"


def test_programs_get_the_confidence_and_where_it_comes_from(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit, served(Replies(5, 4, 5, 5)) as server:
        said = remit(*words(remit, server, "--n", "4", "--json"))
        assert (said.exit_code, said.err) == (EXIT_OK, "")
        values = said.values
        assert values["structured_output"] == {"answer": 5}
        assert (values["confidence"], values["confidence_source"]) == (0.75, "voting")


@pytest.mark.parametrize("replica", [1, 2, 3])
def test_a_vote_that_is_killed_at_a_replica_is_resumed_with_as_many_replicas_and_the_same_winner(
    replica: int, tmp_path: Path
) -> None:
    numbers: list[int | None] = [4, 5, 5]
    numbers.insert(replica - 1, HELD)
    with remit_in(tmp_path) as remit, served(Replies(*numbers)) as server:
        begun = remit.start(*words(remit, server))
        killed_at(begun, f"-> replica {replica} of 3", lambda: len(server.calls) == replica)
        resumed = remit("resume", "last")
        assert (resumed.exit_code, resumed.out) == (EXIT_OK, '{"answer": 5}\n')
        assert resumed.err.splitlines()[-1] == "2 of 3 agree, confidence 67 %"
        listed = remit("runs", "--children", "--json").out.splitlines()
        assert len(listed) == 1 + 3
        # Each replica that had answered was asked once; the one that was cut off, once more.
        assert len(server.calls) == 3 + 1


def test_a_voter_of_ones_own_is_found_again_unless_its_file_has_changed(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit, served(Replies(5, HELD, 5, 4)) as server:
        begun = remit.start(*words(remit, server, "--voting", "voter.py:last"))
        killed_at(begun, "-> replica 2 of 3", lambda: len(server.calls) == 2)
        (tmp_path / "voter.py").write_text(VOTER.replace("0.5", "0.25"))
        refused = remit("resume", "last")
        assert (refused.exit_code, refused.error_code) == (1, "VOTER_SOURCE_CHANGED")
        assert "remit resume RUN --accept-tools" in refused.err
        (tmp_path / "voter.py").rename(tmp_path / "elsewhere.py")
        assert remit("resume", "last", "--accept-tools").error_code == "VOTER_SOURCE_MISSING"
        (tmp_path / "voter.py").write_text(VOTER.replace("0.5", "0.25"))
        accepted = remit("resume", "last", "--accept-tools", "--json")
        assert accepted.values["structured_output"] == {"answer": 4}
        assert accepted.values["confidence"] == 0.25


def test_a_vote_can_end_early_and_ask_at_once(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit, served(Replies(5, 5, 5, 4, 4, 6)) as server:
        early = remit(*words(remit, server, "--n", "5", "--early-stop"))
        assert early.err.splitlines()[-1] == "3 of 3 agree, 2 not asked, confidence 100 %"
        at_once = remit(*words(remit, server, "--parallel"))
        assert at_once.out == '{"answer": 4}\n'
        assert [line.split()[0] for line in at_once.err.splitlines()[:3]] == ["->", "->", "->"]
        assert at_once.err.splitlines()[-1] == "2 of 3 agree, confidence 67 %"
