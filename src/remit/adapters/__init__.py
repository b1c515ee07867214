"""The doors: each translates what it is given into requests and signals, and what comes back into its own form."""
