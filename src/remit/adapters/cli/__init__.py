"""The command line: one file per group of commands, plain lines for people, JSON for programs."""
