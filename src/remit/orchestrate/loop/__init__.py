"""Drive runs: load, decide, append, dispatch, recover."""
