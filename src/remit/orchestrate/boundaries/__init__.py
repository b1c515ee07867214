"""Boundaries from files: read, written, reported and compared."""
