"""Every view of a stored run says what it said before: the same facts, in the same words."""

import re
from pathlib import Path

import pytest

from tests.golden.views import VIEWS, Journals, golden_stores, recorded, views_of

# Each plays some hundred commands.
pytestmark = pytest.mark.slow

_WHY = r'"details": \{[^{}]*\}, "caused_by": (?:null|\{[^{}]*\{[^{}]*\}[^{}]*\})'
STORES = dict(golden_stores())
# Where two views told the same thing differently, all tell it alike now: children of one node by their number, as the tree
# always did, and a judge by its own name. Items of queues name their tenant since then,
# and runs of foreign agents what their hosts call them. Costs count a success in part apart from the successes.
CORRECTED = (
    ("told", r"\bfan \d+ ", "fan "),
    ("show", "judge:kind", "check"),
    ("explain", "judge:kind", "check"),
    ("show", r'(?<=\]), "name": ""(?=\})', ""),
    ("queues", r', "tenant_id": "[^"]*"', ""),
    ("approvals", r', "tenant_id": "[^"]*"', ""),
    # What a call of a model was charged that did not say what it used is what was set aside for it; and of a run that
    # delegated, usage and calls are told with those beneath it, as its budget always was.
    ("trace", "charged as reserved: ", ""),
    ("show parent", r"(?m)^usage .*$", ""),
    ("show parent", r'"token_usage": \{[^}]*\}', ""),
    ("show parent", r', \{"tool": "look", [^{}]*\}', ""),
    ("explain parent", r', \{"tool": "look", [^{}]*\}', ""),
    ("explain parent", " and look once", ""),
    # Events tell what a call sends, not what its request offers; the first attempt is called the first.
    ("events", r'(?<="to_state": "VALIDATE", "attempt": )\d+', "?"),
    ("events", r'"message_count": \d+, "tool_defs_count": \d+', "?"),
    # Errors name what failed and what it came of.
    ("show", _WHY, '"details": {}, "caused_by": null'),
    ("explain", _WHY, '"details": {}, "caused_by": null'),
    ("cost", r'"in_part": \d+, ', ""),
    ("cost", r'"(succeeded|cost_per_success_microusd)": (\d+|null)', r'"\1"'),
)


def as_before(asked: str, said: str) -> str:
    """A view in the words that it had before it was corrected."""
    for view, now, before in CORRECTED:
        said = re.sub(now, before, said) if asked.startswith(view) else said
    return said


@pytest.mark.parametrize("name", STORES)
def test_every_view_of_a_stored_run_says_what_it_said(name: str, tmp_path: Path) -> None:
    kept: Journals | Path = STORES[name]
    views, before = views_of(kept, tmp_path), recorded(name)
    assert views.keys() == before.keys()
    for asked, said in before.items():
        assert as_before(asked, views[asked]) == as_before(asked, said), asked


def test_every_record_of_views_is_of_a_store() -> None:
    assert {path.name.partition(".")[0] for path in VIEWS.glob("*.json.gz")} == set(STORES)
