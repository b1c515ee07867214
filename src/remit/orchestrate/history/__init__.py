"""Runs that were written down: shown, replayed, forked, restored."""
