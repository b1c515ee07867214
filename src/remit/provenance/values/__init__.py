"""Values: the arguments of a proposed call, each held against the words and the results."""
