"""Judge one proposed tool call: every check, and what follows from it."""
