"""What an agent is made of, as its maker names or hands it over: the boundary, by name, file or record."""

from pathlib import Path

import pytest

from remit.agents.terms import terms_of
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import PROCUREMENT
from remit.core.run.inference import Routing


def bounds(said: Boundary | Path | str) -> Boundary:
    return terms_of(said, Budget(), Routing.NONE).boundary


def test_an_agent_takes_a_boundary_as_a_record_by_name_or_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nextends: procurement\nbudget: {steps: 3}\n")
    mine = Boundary(name="mine")
    assert bounds(mine) is mine
    assert bounds("procurement") is PROCUREMENT
    assert bounds(path) == bounds(str(path))
    assert (bounds(path).name, bounds(path).budget.steps) == ("mine", 3)


def test_a_boundary_that_cannot_be_used_is_refused_when_the_agent_is_made(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nbugdet: {}\n")
    with pytest.raises(RequestRejected, match="did you mean 'budget'"):
        bounds(path)
    with pytest.raises(RequestRejected, match="is unknown; use one of standard"):
        bounds("nobody")
