"""The contracts of the architecture and of the four patterns, each in a file that runs on its own."""
