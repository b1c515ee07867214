"""Executors: perform one command each, and report what came of it."""
