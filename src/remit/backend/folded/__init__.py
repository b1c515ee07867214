"""A store over logs of which one entry is written at a time: all that spans entries is decided in logs and folded from them."""
