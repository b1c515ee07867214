"""Tell listeners what happens, and carry what people say to runs."""
