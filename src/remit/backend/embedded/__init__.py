"""In one folder on this machine: SQLite, a key, an append-only log of signed heads and a file of locks."""
