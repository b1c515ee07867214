"""Voters by name: a strategy that comes with the house, or one in a file of the caller's.

Rule 1: `FILE.py:NAME` names a strategy or a function of the candidates; anything else is the name of a known one.
Rule 2: the file is compared with its source before it is executed, when a run begins and when it is taken up.
"""

from pathlib import Path

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RequestRejected
from remit.core.run.manifest import Source
from remit.orchestrate.patterns.redundant_graph import VOTE_MARK, Redundancy, check_replicas
from remit.orchestrate.patterns.voters import Strategy, check_strategy, strategy_named
from remit.orchestrate.setup.relied_on import VOTER_CODES, expect
from remit.tool.loader import CODE_FILE_NOT_FOUND, load_code
from remit.tool.source import file_digest

VOTER_NOT_FOUND = "VOTER_NOT_FOUND"

# What stands between a file and the name in it.
_FILE_END = ".py:"


def redundancy_of(
    n: int, voting: str, *, early_stop: bool, is_parallel: bool, base: Path
) -> tuple[Redundancy, tuple[Source, ...]]:
    """How often a model is asked and who counts, with the source of a voter that is named as FILE.py:NAME."""
    check_replicas(n)
    source = voter_source(voting, base=base)
    if source is None:
        return Redundancy(n, voting, early_stop, is_parallel), ()
    load_voter(source, replicas=n)  # What could not vote among so many is refused before anything begins.
    return Redundancy(n, source.name.removeprefix(VOTE_MARK), early_stop, is_parallel), (source,)


def voter_source(voting: str, *, base: Path) -> Source | None:
    """Where a voter is loaded from, as its file is now; None for one that comes with the house."""
    file, found, name = voting.rpartition(_FILE_END)
    if not found:
        strategy_named(voting)
        return None
    path = (base / f"{file}.py").resolve()
    if not name.isidentifier():
        message = f"voting={voting[:SHOWN_CHARS_MAX]!r} names nothing in {str(path)!r}; write FILE.py:NAME"
        raise RequestRejected(VOTER_NOT_FOUND, message, {"place": str(path)})
    digest = file_digest(path)
    if not digest:
        message = f"there is no file {str(path)!r} to take the voter {name!r} from; correct the path"
        raise RequestRejected(CODE_FILE_NOT_FOUND, message, {"place": str(path)})
    return Source(f"{VOTE_MARK}{path.name}:{name}", str(path), name, digest)


def load_voter(source: Source, *, replicas: int | None = None) -> Strategy:
    """The voter that a source names; raises SourceFault where its file is not what the source says."""
    path = Path(source.place)
    expect(source, file_digest(path), VOTER_CODES)
    found: Strategy | None = getattr(load_code(path), source.attribute, None)
    if found is None:
        message = f"{source.place!r} holds no {source.attribute!r} that could vote; define it"
        raise RequestRejected(VOTER_NOT_FOUND, message, {"place": source.place, "name": source.attribute})
    check_strategy(found, replicas=replicas)
    return found
