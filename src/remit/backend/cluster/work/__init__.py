"""What is handed from process to process: errands, claims, letters, and dead letters."""
