"""Validate: judge what a model said by rules that are data, and say what is wrong so that it can be corrected."""
