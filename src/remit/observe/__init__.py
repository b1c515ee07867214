"""Reads the journal and the state folded from it; never writes either."""
