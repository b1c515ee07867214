"""Every view of a stored run says what it said before: the same facts, in the same words."""

from pathlib import Path

import pytest

from tests.golden.views import VIEWS, Journals, golden_stores, recorded, views_of

# Each plays some hundred commands.
pytestmark = pytest.mark.slow

STORES = dict(golden_stores())


@pytest.mark.parametrize("name", STORES)
def test_every_view_of_a_stored_run_says_what_it_said(name: str, tmp_path: Path) -> None:
    kept: Journals | Path = STORES[name]
    views, before = views_of(kept, tmp_path), recorded(name)
    assert views.keys() == before.keys()
    for asked, said in before.items():
        assert views[asked] == said, asked


def test_every_record_of_views_is_of_a_store() -> None:
    assert {path.name.partition(".")[0] for path in VIEWS.glob("*.json.gz")} == set(STORES)
