"""Models behind servers that speak the protocol of OpenAI."""
