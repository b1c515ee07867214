"""Replies from a file, for tests and demonstrations."""
