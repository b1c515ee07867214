"""Whether an answer may stand, what happened, and how a run ends."""
