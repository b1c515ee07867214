"""The costs of runs, and what runs like them needed."""
