"""Queues of people, and what callers are told of a run."""
