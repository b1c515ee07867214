"""One file per arrival family: what the kernel rules when the world reports."""
