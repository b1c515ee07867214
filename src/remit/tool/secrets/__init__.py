"""Secrets that tools are given by name, and their masks in texts."""
