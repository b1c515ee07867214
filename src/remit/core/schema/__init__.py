"""Values from outside, read strictly: JSON, YAML and JSON Schema."""
