"""Views of a run: trace, explanation, events, response."""
