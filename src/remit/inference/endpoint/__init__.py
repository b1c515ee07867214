"""How a server is called: how many calls at once, how often, and when it is left alone."""
