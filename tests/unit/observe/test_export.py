"""An export carries a run elsewhere, whole; reading it is strict, and verifying it needs the public key alone."""

import io
import json
from collections.abc import Iterator

import pytest

from remit.core.journal.canonical import INTEGER_MAX
from remit.core.journal.signing import Signer
from remit.core.journal.storage import SignedHead
from remit.observe.proof import export
from remit.observe.proof.export import (
    EXPORT_FORMAT_UNKNOWN,
    EXPORT_MALFORMED,
    EXPORT_TRUNCATED,
    ExportUnreadable,
    export_lines,
    read_export,
    read_lines,
    verify_export,
)
from tests.unit.observe.sealed import MALLORY, SIGNER, Sealed, rechained, seal, simulated
from tests.unit.observe.test_verify import DEMO, edited, long_texts


def exported(run: Sealed, signer: Signer = SIGNER) -> list[bytes]:
    return list(
        export_lines(
            run.run_id,
            run.data,
            heads=run.heads,
            logged=run.logged,
            blob_of=run.blobs.get,
            signer=signer.did,
            sign=signer.sign,
        )
    )


WITH_TEXTS = next(run for seed in range(50) for run in simulated(seed) if len(long_texts(run)) > 1 and run.heads)
LINES = exported(WITH_TEXTS)


def codes(lines: list[bytes], *, signer: str | None = SIGNER.did, logged: tuple[SignedHead, ...] = ()) -> set[str]:
    return {finding.code.value for finding in verify_export(lines, signer=signer, logged=logged).findings}


def refusal(lines: list[bytes]) -> ExportUnreadable:
    with pytest.raises(ExportUnreadable) as caught:
        verify_export(lines)
    return caught.value


def test_an_export_verifies_with_the_public_key_alone() -> None:
    found = verify_export(LINES, signer=SIGNER.did)
    assert found.ok
    assert found == WITH_TEXTS.verified()
    assert verify_export(LINES).signer == SIGNER.did


def test_an_export_is_read_back_as_it_was_written() -> None:
    read = read_export(LINES)
    assert (read.run_id, read.data) == (WITH_TEXTS.run_id, WITH_TEXTS.data)
    assert (read.heads, read.logged) == (WITH_TEXTS.heads, WITH_TEXTS.logged)
    assert set(read.blobs) == long_texts(WITH_TEXTS)
    assert all(WITH_TEXTS.blobs[digest] == text for digest, text in read.blobs.items())


def test_every_line_is_json_that_people_can_read() -> None:
    rows = [json.loads(line) for line in LINES]
    kinds = [row["kind"] for row in rows]
    assert kinds == sorted(kinds, key=["header", "turn", "blob", "head", "logged", "footer"].index)
    assert rows[0]["turns"] == len(WITH_TEXTS.data)
    assert rows[1]["turn"]["arrival"]["type"] == "RunStarted"
    assert rows[-1]["lines"] == len(LINES) - 1


def test_an_export_is_written_and_read_line_by_line() -> None:
    lines = exported_slowly(DEMO)
    assert json.loads(next(lines))["kind"] == "header"
    assert verify_export(exported_slowly(DEMO)).ok


def test_a_file_is_read_in_bounded_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(read_lines(io.BytesIO(b"".join(LINES)))) == LINES
    monkeypatch.setattr(export, "LINE_BYTES_MAX", 1000)
    error = refusal(list(read_lines(io.BytesIO(b"x" * 5000))))
    assert (error.code, error.details) == (EXPORT_MALFORMED, {"line": 1})
    assert "line_bytes_max=1000" in error.message


def test_a_redacted_text_is_left_out_and_the_export_verifies() -> None:
    digest = next(iter(long_texts(WITH_TEXTS)))
    kept = {key: text for key, text in WITH_TEXTS.blobs.items() if key != digest}
    found = verify_export(exported(WITH_TEXTS._replace(blobs=kept)), signer=SIGNER.did)
    assert found.ok
    assert found.redacted == (digest.hex(),)


def test_a_damaged_run_is_exported_as_it_is_and_does_not_verify() -> None:
    damaged = DEMO._replace(data=(*DEMO.data[:2], b"\x01nothing", *DEMO.data[3:]))
    lines = exported(damaged)
    assert json.loads(lines[3])["turn"] is None
    assert "TURN_UNREADABLE" in codes(lines)


def test_a_run_that_was_tampered_with_before_the_export_is_found_in_it() -> None:
    assert "HEAD_MISMATCH" in codes(exported(DEMO._replace(data=rechained(edited(DEMO.data, 2), 2))))


def test_an_export_by_a_stranger_is_found_when_the_signer_is_known() -> None:
    forged = exported(seal("demo", DEMO.data, DEMO.blobs, MALLORY), MALLORY)
    assert verify_export(forged).signer == MALLORY.did
    assert "SIGNER_UNTRUSTED" in codes(forged)


def test_an_older_export_is_found_with_heads_known_from_elsewhere() -> None:
    older = exported(seal("demo", DEMO.data[:4], DEMO.blobs))
    assert verify_export(older, signer=SIGNER.did).ok
    assert codes(older, logged=DEMO.logged) == {"HEAD_BEYOND_JOURNAL"}


def test_a_changed_line_is_found_by_the_footer() -> None:
    row = json.loads(LINES[1])
    row["turn"]["at_ms"] += 1
    changed = [LINES[0], compact(row), *LINES[2:]]
    assert codes(changed) == {"EXPORT_READING_DIFFERS", "EXPORT_DIGEST_DIFFERS"}


def test_a_line_with_a_wrong_number_is_found() -> None:
    row = json.loads(LINES[2])
    row["seq"] = 7
    assert "EXPORT_READING_DIFFERS" in codes([*LINES[:2], compact(row), *LINES[3:]])


def test_lines_that_were_dropped_are_found_by_the_counts() -> None:
    assert {"EXPORT_COUNTS_DIFFER", "EXPORT_DIGEST_DIFFERS"} <= codes([*LINES[:-2], LINES[-1]])


@pytest.mark.parametrize("change", [{"lines": 3}, {"sha256": "00" * 32}, {"lines": INTEGER_MAX + 1}])
def test_a_footer_that_was_changed_is_found(change: dict[str, object]) -> None:
    row = json.loads(LINES[-1]) | change
    assert {"EXPORT_DIGEST_DIFFERS", "EXPORT_SIGNATURE_FORGED"} <= codes([*LINES[:-1], compact(row)])


def test_a_footer_of_another_export_is_found() -> None:
    other = exported(DEMO)
    assert {"EXPORT_DIGEST_DIFFERS", "EXPORT_SIGNATURE_FORGED"} <= codes([*LINES[:-1], other[-1]])


def test_a_footer_signed_by_another_is_found() -> None:
    forged = exported(WITH_TEXTS, MALLORY)
    assert "SIGNER_UNTRUSTED" in codes([*LINES[:-1], forged[-1]])


@pytest.mark.parametrize("count", [0, 1, 3, -1])
def test_an_export_without_its_end_is_cut_off(count: int) -> None:
    assert refusal(LINES[:count]).code == EXPORT_TRUNCATED


def test_an_export_that_breaks_off_within_a_line_is_cut_off() -> None:
    error = refusal([*LINES[:2], LINES[2][:40]])
    assert (error.code, error.details["line"]) == (EXPORT_TRUNCATED, 3)


def test_the_last_line_end_may_be_missing() -> None:
    assert verify_export([*LINES[:-1], LINES[-1].rstrip(b"\n")], signer=SIGNER.did).ok


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (1, b"\n"),
        (1, b"not json\n"),
        (1, b'{"kind":"dance"}\n'),
        (1, b'{"kind":"turn","seq":"one"}\n'),
        (2, b'{"kind":"turn","seq":1,"data":"!","turn":null}\n'),
        (2, b"\xff\xfe\n"),
        (2, b"[" * 100_000 + b"\n"),
        (2, b'{"kind": "blob", "digest": "AA==", "data": "AA=="}\n'),
        (0, LINES[1]),
        (1, LINES[0]),
        (len(LINES), LINES[-1]),
        (len(LINES) - 1, LINES[1]),
    ],
)
def test_a_line_that_does_not_belong_is_refused_with_its_number(place: int, line: bytes) -> None:
    error = refusal([*LINES[:place], line, *LINES[place:]])
    assert (error.code, error.details["line"]) == (EXPORT_MALFORMED, place + 1)
    assert error.message.isprintable()


def test_an_export_of_a_later_format_is_not_guessed_at() -> None:
    error = refusal([b'{"kind":"header","format":2,"soul":true}\n'])
    assert (error.code, error.details["format"]) == (EXPORT_FORMAT_UNKNOWN, 2)


def compact(row: object) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def exported_slowly(run: Sealed) -> Iterator[bytes]:
    return export_lines(
        run.run_id,
        run.data,
        heads=run.heads,
        logged=run.logged,
        blob_of=run.blobs.get,
        signer=SIGNER.did,
        sign=SIGNER.sign,
    )
