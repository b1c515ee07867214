"""What people say to runs from a terminal: signals, and answers to what a run asks."""
