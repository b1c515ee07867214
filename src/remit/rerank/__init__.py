"""Rerank: put candidates in order, among them the tools that a model could be offered."""
