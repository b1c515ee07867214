"""Compile a graph, check it before it runs, and walk it."""
