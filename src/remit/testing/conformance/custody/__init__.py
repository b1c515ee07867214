"""What a backend vouches for and removes: keys, seals, signed heads, retention, redactions, check-ups."""
