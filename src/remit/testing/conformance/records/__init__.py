"""What a backend keeps of runs: turns, texts, the index, what was counted."""
