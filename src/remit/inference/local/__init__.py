"""Models on this machine: found on disk, loaded into this process, asked."""
