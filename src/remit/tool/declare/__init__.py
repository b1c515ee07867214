"""Declare a tool on a typed function."""
