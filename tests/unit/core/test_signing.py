"""Signatures prove who vouches for what, and a no is never an error."""

import pytest

from remit.core.journal.signing import (
    Signer,
    is_deletion_signed,
    is_head_signed,
    is_signed,
    is_snapshot_signed,
    sign_deletion,
    sign_head,
    sign_snapshot,
)
from remit.core.journal.storage import SignedHead, Snapshot
from remit.core.record import replace

# RFC 8032, section 7.1, test 2.
SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
# From the test vectors of the did:key method.
KNOWN_SEED = bytes(32)
KNOWN_DID = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"


def head(signer: Signer, run_id: str = "run", seq: int = 3, ending: str = "SUCCESS") -> SignedHead:
    return sign_head(signer, run_id=run_id, seq=seq, head=b"\x01" * 32, ending=ending)


def test_the_name_of_a_known_key_is_the_one_others_give_it() -> None:
    assert Signer.from_bytes(KNOWN_SEED).did == KNOWN_DID


def test_a_known_message_gets_the_known_signature() -> None:
    signer = Signer.from_bytes(SECRET)
    assert signer.sign(b"\x72") == SIGNATURE
    assert is_signed(signer.did, b"\x72", SIGNATURE)


def test_a_signer_is_the_same_after_its_key_was_kept() -> None:
    signer = Signer.generate()
    again = Signer.from_bytes(signer.private_bytes())
    assert again.did == signer.did
    assert is_signed(signer.did, b"message", again.sign(b"message"))


def test_two_signers_are_different() -> None:
    first, second = Signer.generate(), Signer.generate()
    assert first.did != second.did
    assert not is_signed(second.did, b"message", first.sign(b"message"))


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_private_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"not {length}"):
        Signer.from_bytes(bytes(length))


@pytest.mark.parametrize("signature", [b"", b"short", bytes(64), SIGNATURE + b"\x00", SIGNATURE[:-1]])
def test_a_malformed_signature_is_a_no(signature: bytes) -> None:
    assert not is_signed(Signer.from_bytes(SECRET).did, b"\x72", signature)


@pytest.mark.parametrize(
    "did",
    [
        "",
        "did:key:",
        "did:key:z",
        "did:key:z6Mk",
        "did:web:example.org",
        "did:key:z0OIl",
        "did:key:z" + "z" * 47,
        "did:key:z" + "1" * 5000,
        # Another kind of key: secp256k1.
        "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
        # A second spelling, with a zero in front.
        KNOWN_DID.replace("did:key:z", "did:key:z1"),
        KNOWN_DID[:-1],
        KNOWN_DID + "1",
        KNOWN_DID + "\n",
        "\ud800",
    ],
)
def test_a_malformed_name_is_a_no(did: str) -> None:
    signature = Signer.from_bytes(KNOWN_SEED).sign(b"message")
    assert is_signed(KNOWN_DID, b"message", signature)
    assert not is_signed(did, b"message", signature)


def test_a_signed_head_is_recognised() -> None:
    signer = Signer.generate()
    signed = head(signer)
    assert signed.signer == signer.did
    assert is_head_signed(signed)


@pytest.mark.parametrize(
    "changed",
    [
        {"run_id": "other"},
        {"seq": 4},
        {"head": b"\x02" * 32},
        {"head": b""},
        {"ending": ""},
        {"signer": KNOWN_DID},
        {"signer": "nobody"},
        {"signature": bytes(64)},
        {"signature": b""},
    ],
    ids=str,
)
def test_a_head_with_anything_changed_is_not_signed(changed: dict[str, object]) -> None:
    assert not is_head_signed(replace(head(Signer.generate()), **changed))


def test_a_head_that_has_no_canonical_form_is_not_signed() -> None:
    signed = head(Signer.generate())
    assert not is_head_signed(replace(signed, run_id="\ud800"))
    assert not is_head_signed(replace(signed, seq=2**60))


def test_fields_cannot_flow_into_each_other() -> None:
    signer = Signer.generate()
    first = head(signer, run_id='a","seq":3,"x":"', ending="")
    assert not is_head_signed(replace(first, run_id="a"))


def test_a_head_is_signed_for_its_purpose_alone() -> None:
    signer = Signer.generate()
    signed = head(signer)
    bare = b'{"ending":"SUCCESS","head":"%s","run_id":"run","seq":3,"signer":"%s"}' % (
        signed.head.hex().encode(),
        signer.did.encode(),
    )
    assert is_signed(signer.did, b"remit head 1\n" + bare, signed.signature)
    assert not is_signed(signer.did, bare, signed.signature)


def test_a_signed_deletion_is_recognised_and_any_change_to_it_found() -> None:
    signed = sign_deletion(Signer.generate(), run_id="run", seq=3, head=b"\x01" * 32, at_ms=7)
    assert is_deletion_signed(signed)
    changes: tuple[dict[str, object], ...] = (
        {"run_id": "other"},
        {"run_id": "\ud800"},
        {"seq": 4},
        {"head": b""},
        {"at_ms": 8},
        {"signer": KNOWN_DID},
        {"signature": b""},
    )
    for changed in changes:
        assert not is_deletion_signed(replace(signed, **changed)), changed


def test_a_signed_snapshot_is_recognised_and_any_change_to_it_found() -> None:
    signer, snapshot = Signer.generate(), Snapshot("run", 3, b"\x01" * 32, b"state")
    signature = sign_snapshot(signer, snapshot)
    assert is_snapshot_signed(signer.did, snapshot, signature)
    changes: tuple[dict[str, object], ...] = (
        {"run_id": "other"},
        {"run_id": "\ud800"},
        {"seq": 4},
        {"seq": 2**60},
        {"head": b""},
        {"data": b"State"},
    )
    for changed in changes:
        assert not is_snapshot_signed(signer.did, replace(snapshot, **changed), signature), changed
    assert not is_snapshot_signed(KNOWN_DID, snapshot, signature)
    assert not is_snapshot_signed("nobody", snapshot, signature)
    assert not is_snapshot_signed(signer.did, snapshot, signature[:-1])


def test_the_signature_of_a_snapshot_is_good_for_nothing_else() -> None:
    signer = Signer.generate()
    signature = sign_snapshot(signer, Snapshot("run", 3, b"\x01" * 32, b"state"))
    assert not is_head_signed(replace(head(signer), signature=signature))
