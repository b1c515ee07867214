"""Benchmarks: what a turn, a loop, a graph and an import cost, each beside a floor measured in the same run."""
