"""Ask people, and hold the clock while they are asked."""
