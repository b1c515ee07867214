"""What `remit doctor` looks at."""
