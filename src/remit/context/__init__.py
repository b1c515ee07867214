"""Context: find evidence for a question among documents, and hand it over with where it came from."""
