"""Every view of a stored run says what it said before: the same facts, in the same words."""

import re
from pathlib import Path

import pytest

from tests.golden.views import VIEWS, Journals, golden_stores, recorded, views_of

# Each plays some hundred commands.
pytestmark = pytest.mark.slow

STORES = dict(golden_stores())
# Where two views told the same thing differently, all tell it alike now: children of one node by their number, as the tree
# always did, and a judge by its own name. Items of queues name their tenant since then,
# and runs of foreign agents what their hosts call them.
CORRECTED = (
    ("told", r"\bfan \d+ ", "fan "),
    ("show", "judge:kind", "check"),
    ("explain", "judge:kind", "check"),
    ("show", r'(?<=\]), "name": ""(?=\})', ""),
    ("queues", r', "tenant_id": "[^"]*"', ""),
    ("approvals", r', "tenant_id": "[^"]*"', ""),
)
# Views told different figures of a gauge, or none; they are compared with each other instead (`test_gauges.py`).
_GAUGE = r"(?:context_tokens|retries|depth|context_now)"
GAUGES = (
    (rf'(?:, )?{{"dimension": "{_GAUGE}"[^}}]*}}', ""),
    (r"\[, ", "["),
    (rf"\n  {_GAUGE} +[^\n]*", ""),
    (r" and (?=\d+ of )", ", "),
    (rf"\d+ of \d+ {_GAUGE}(?: \[[^]]*\])?, ", ""),
    ("spent nothing, ", "spent "),
)


def as_before(asked: str, said: str) -> str:
    """A view in the words that it had before it was corrected."""
    for view, now, before in CORRECTED:
        said = re.sub(now, before, said) if asked.startswith(view) else said
    if asked.startswith(("show", "explain", "trace", "told")):
        for now, before in GAUGES:
            said = re.sub(now, before, said)
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
