"""Secrets in texts: how they are found, and how they are sealed."""
