"""What people are asked, and what waits for them."""
