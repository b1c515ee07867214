"""Origins: where the values of results came from, and which of them the words pick."""
