"""Questions to people, and the items that wait for them."""
