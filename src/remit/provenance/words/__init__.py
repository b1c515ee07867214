"""Words: what the user wrote themselves, and what it orders."""
