"""Constraint: the shape that a model's text must have, made into a grammar before it is asked and checked afterwards."""
