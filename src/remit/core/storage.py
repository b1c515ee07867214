"""What can go wrong where turns and texts are kept. Every backend raises these, so they are words of the house."""

from remit.core.failure import RemitError


class AppendConflict(RemitError):
    """Another runner has already written the turn that was to be appended."""

    def __init__(self, run_id: str, after: int, last: int) -> None:
        message = f"run {run_id} stands at turn {last}, so nothing can follow turn {after}; fold it and decide again"
        super().__init__("APPEND_CONFLICT", message, {"run_id": run_id, "after": after, "last": last})


class BlobMissing(RemitError):
    """Nothing is kept under this digest."""

    def __init__(self, digest: bytes) -> None:
        super().__init__("BLOB_MISSING", f"no text with digest {digest.hex()} is kept here", {"digest": digest.hex()})
