"""What docs/routing.md says of the embedding router is what it does."""

from collections import Counter
from pathlib import Path

import pytest

from remit.core.limits.tools import ToolDefinition
from remit.rerank import embedding
from remit.rerank.embedding import embedding_router
from tests.unit.rerank.asked import AGAIN_ON, CHOSEN_ON, ONE_THING, TWO_THINGS, ToolSet

# Together they take seconds.
pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

DOCS = (Path(__file__).parents[3] / "docs" / "routing.md").read_text(encoding="utf-8")
SETS = {tool_set.name: tool_set for tool_set in (*CHOSEN_ON, *AGAIN_ON)}


def declared(tool_set: ToolSet) -> list[ToolDefinition]:
    return [ToolDefinition(name, description, {"type": "object"}) for name, description in tool_set.tools]


def shortlist(tool_set: ToolSet, words: str) -> tuple[str, ...]:
    return tuple(each.tool for each in embedding_router().shortlist(words, declared(tool_set)))


def counted(sets: tuple[ToolSet, ...]) -> Counter[str]:
    """How often the first choice was right, another, missed, rightly none, and wrongly one."""
    found: Counter[str] = Counter()
    for tool_set in sets:
        for words, wanted in tool_set.requests:
            first = next(iter(shortlist(tool_set, words)), "")
            if wanted:
                found["right" if first == wanted else "another" if first else "missed"] += 1
            else:
                found["wrongly one" if first else "rightly none"] += 1
    return found


def test_the_first_choice_is_as_good_as_the_documentation_says() -> None:
    chosen, again = counted(CHOSEN_ON), counted(AGAIN_ON)
    assert f"| right tool first | {chosen['right']} of 42 | {again['right']} of 31 |" in DOCS
    assert f"| another tool first | {chosen['another']} | {again['another']} |" in DOCS
    assert f"| nothing, although there was a tool | {chosen['missed']} | {again['missed']} |" in DOCS
    assert f"| nothing, and there was none | {chosen['rightly none']} of 18 | {again['rightly none']} of 20 |" in DOCS
    assert f"| a tool, although there was none | {chosen['wrongly one']} | {again['wrongly one']} |" in DOCS


@pytest.mark.parametrize("lowest", ["0.15", "0.17", "0.20", "0.24"])
def test_the_lowest_fit_is_chosen_from_these_figures(lowest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "FITS_MIN", float(lowest))
    found = counted((*CHOSEN_ON, *AGAIN_ON))
    figures = [found[kind] for kind in ("right", "another", "missed", "rightly none", "wrongly one")]
    row = " | ".join(map(str, figures))
    assert f"| {lowest} | {row} |" in DOCS.replace("**", "")


def test_the_lowest_fit_is_the_one_that_the_documentation_marks() -> None:
    assert f"| **{embedding.FITS_MIN}** |" in DOCS
    assert f"({embedding.FITS_CLEARLY_MIN})" in DOCS


def test_two_things_are_told_from_one_as_often_as_the_documentation_says() -> None:
    both = sum(shortlist(SETS[name], words) == wanted for name, words, wanted in TWO_THINGS)
    more = sum(len(shortlist(SETS[name], words)) > 1 for name, words, _ in ONE_THING)
    assert f"Of {len(TWO_THINGS)} requests for two things, both tools were found in {both}" in DOCS
    assert (len(ONE_THING), more) == (9, 1)
