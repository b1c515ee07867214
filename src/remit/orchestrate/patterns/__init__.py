"""The patterns: graphs over the one kernel, not loops of their own."""
