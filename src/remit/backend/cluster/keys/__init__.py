"""Which keys count, and what is signed with them."""
