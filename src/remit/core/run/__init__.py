"""One governed run as data: its request, manifest, messages, signals, people and lineage."""
