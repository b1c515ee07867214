"""Shipped for users too: builders of scripts, SimulatedWorld, laws and conformance suites."""
