"""Tools: declare them on typed functions, register them, perform their calls, find them again by their source."""
