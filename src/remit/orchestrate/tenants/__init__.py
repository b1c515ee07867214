"""What exists for a principal, and what a tenant may spend."""
