"""Provenance: a gate that stays safe behind a model that is not, because it judges where values came from, not what is said."""
