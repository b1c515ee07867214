"""Voters by name: known ones, and those in a file of the caller's."""

from hashlib import sha256
from pathlib import Path

import pytest

from remit.core.failure import RemitError, RequestRejected
from remit.core.run.manifest import Source
from remit.orchestrate.patterns.redundant_graph import REPLICAS_MAX, Redundancy
from remit.orchestrate.patterns.voter_file import load_voter, redundancy_of, voter_source
from remit.orchestrate.patterns.voters import STRATEGIES

VOTERS = '''
from remit.orchestrate.patterns.voters import WeightedVoting

heavy = WeightedVoting(weights=[1, 2, 3])
none = None


def first(candidates):
    """The first candidate."""
    return candidates[0], 1.0


class Kind:
    """No strategy, but the kind of one."""
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with voters."""
    path = tmp_path / "voters.py"
    path.write_text(VOTERS)
    return path


def refused(voting: str, base: Path, *, n: int = 3) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        redundancy_of(n, voting, early_stop=False, is_parallel=False, base=base)
    return caught.value


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_a_known_voter_has_no_source(name: str, tmp_path: Path) -> None:
    made = redundancy_of(5, name, early_stop=True, is_parallel=False, base=tmp_path)
    assert made == (Redundancy(5, name, early_stop=True), ())


@pytest.mark.parametrize("name", ["first", "heavy"])
def test_a_voter_in_a_file_is_named_by_it_and_pinned_with_its_digest(name: str, file: Path) -> None:
    redundancy, sources = redundancy_of(3, f"voters.py:{name}", early_stop=False, is_parallel=True, base=file.parent)
    assert redundancy == Redundancy(3, f"voters.py:{name}", is_parallel=True)
    assert sources == (Source(f"vote:voters.py:{name}", str(file), name, sha256(VOTERS.encode()).hexdigest()),)


def test_a_voter_that_was_loaded_votes(file: Path) -> None:
    source = voter_source(f"{file}:first", base=Path("/nowhere"))
    assert source is not None
    strategy = load_voter(source)
    assert callable(strategy)
    assert strategy(["a", "b"]) == ("a", 1.0)


@pytest.mark.parametrize(
    ("voting", "code", "words"),
    [
        ("plurality", "VOTING_UNKNOWN", "majority, unanimity, similarity"),
        ("voters.py", "VOTING_UNKNOWN", "'voters.py' is unknown"),
        ("none.py:first", "CODE_FILE_NOT_FOUND", "there is no file"),
        ("voters.py:", "VOTER_NOT_FOUND", "write FILE.py:NAME"),
        ("voters.py:a b", "VOTER_NOT_FOUND", "write FILE.py:NAME"),
        ("voters.py:second", "VOTER_NOT_FOUND", "holds no 'second'"),
        ("voters.py:none", "VOTER_NOT_FOUND", "holds no 'none'"),
        ("voters.py:Kind", "VOTING_INVALID", "is a class"),
    ],
)
def test_what_cannot_vote_is_refused(voting: str, code: str, words: str, file: Path) -> None:
    error = refused(voting, file.parent)
    assert error.code == code
    assert words in error.message


def test_weights_must_be_as_many_as_replicas(file: Path) -> None:
    assert refused("voters.py:heavy", file.parent, n=4).code == "VOTING_INVALID"


@pytest.mark.parametrize("n", [0, -1, REPLICAS_MAX + 1])
def test_a_number_of_replicas_that_nobody_could_ask_is_refused(n: int, tmp_path: Path) -> None:
    assert refused("majority", tmp_path, n=n).code == "REPLICAS_INVALID"


def test_a_file_that_cannot_be_loaded_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x =\n")
    error = refused("broken.py:x", tmp_path)
    assert (error.code, error.details["line"]) == ("CODE_FILE_UNREADABLE", 1)


def test_a_file_that_changed_is_refused_before_it_is_executed(file: Path) -> None:
    source = voter_source("voters.py:first", base=file.parent)
    assert source is not None
    file.write_text("raise SystemExit")
    with pytest.raises(RemitError) as caught:
        load_voter(source)
    assert caught.value.code == "VOTER_SOURCE_CHANGED"
    file.unlink()
    with pytest.raises(RemitError) as caught:
        load_voter(source)
    assert caught.value.code == "VOTER_SOURCE_MISSING"
