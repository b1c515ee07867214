"""Whose store it is: its key, the keys that are trusted, and what the log of heads proves."""
