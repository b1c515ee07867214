"""What runs cost, and what runs like them needed."""
