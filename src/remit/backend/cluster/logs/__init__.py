"""What is written to the logs, and what the logs come to: turns, texts, leases, the index of one process."""
