"""Grammars: two notations, made from schemas, checked and matched."""
