"""The judge: pure and deterministic. No I/O, clock, chance, logging or async."""
