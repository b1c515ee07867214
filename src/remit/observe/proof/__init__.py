"""Prove that a run is as it was written, and carry it elsewhere."""
