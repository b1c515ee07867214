"""Fold turns into the state of a run, and the state into bytes."""
