"""The ground: where journals and blobs are kept and commands are carried."""
