"""Models behind the Messages API of Anthropic."""
