"""In one process and in memory only: for simulations, benchmarks and short-lived programs."""
