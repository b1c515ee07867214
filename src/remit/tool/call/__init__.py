"""Call a tool's function: arguments, threads, cancellation, outcomes."""
