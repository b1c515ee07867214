import pytest

from remit.core.failure import RemitError
from remit.core.journal.storage import AppendConflict, BlobMissing, SessionConflict, StoreUnusable


def test_a_conflict_names_the_run_and_the_way_out() -> None:
    conflict = AppendConflict("run")
    assert isinstance(conflict, RemitError)
    assert str(conflict) == "APPEND_CONFLICT: another turn of run run was written first; fold it and decide again"
    assert conflict.details == {"run_id": "run"}


def test_a_missing_text_is_named_by_its_digest() -> None:
    missing = BlobMissing(b"\xab\xcd")
    assert str(missing) == "BLOB_MISSING: no text with digest abcd is kept here"
    assert missing.details == {"digest": "abcd"}


def test_a_place_of_a_session_that_is_taken_makes_the_session_busy() -> None:
    conflict = SessionConflict("support", 3)
    assert conflict.code == "SESSION_BUSY"
    assert conflict.details == {"session_id": "support", "ordinal": 3}
    assert "exchange 3 of session 'support' has begun already" in conflict.message


@pytest.mark.parametrize(
    ("code", "details", "may_pass"),
    [("STORE_FULL", {}, True), ("STORE_FULL", {"is_final": True}, False), ("STORE_DAMAGED", {}, False)],
)
def test_what_is_full_now_may_be_written_later_unless_a_sync_failed(
    code: str, details: dict[str, object], may_pass: bool
) -> None:
    assert StoreUnusable(code, "the store", details).may_pass is may_pass
