"""The last word about a call decides whether it may begin."""

import pytest

from remit.core.journal.queued import Claim, Claimed, ClaimWord, claim_outcome

MINE, THEIRS = "mine", "theirs"


def claimed(by: str, attempt: int = 1) -> Claim:
    return Claim(ClaimWord.CLAIMED, by, attempt)


@pytest.mark.parametrize(
    ("last", "wanted", "found"),
    [
        (None, claimed(MINE), Claimed.GRANTED),
        (Claim(ClaimWord.OFFERED, THEIRS), claimed(MINE), Claimed.GRANTED),
        (claimed(MINE), claimed(MINE), Claimed.GRANTED),
        (Claim(ClaimWord.REVOKED, THEIRS), claimed(MINE), Claimed.REVOKED),
        (Claim(ClaimWord.REVOKED, MINE), claimed(MINE, 2), Claimed.REVOKED),
        (claimed(THEIRS), claimed(MINE), Claimed.TAKEN),
        (claimed(THEIRS, 2), claimed(MINE), Claimed.TAKEN),
        # Its driver knew that it is safe to repeat.
        (claimed(THEIRS), claimed(MINE, 2), Claimed.GRANTED),
    ],
)
def test_a_call_begins_once_unless_a_later_attempt_may_repeat_it(
    last: Claim | None, wanted: Claim, found: Claimed
) -> None:
    assert claim_outcome(last, wanted) is found
