"""The words: frozen records and small pure functions. Imports nothing of ours."""
