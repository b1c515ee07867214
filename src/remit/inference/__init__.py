"""The voice: talk to a model. Each engine translates one vendor's words into ours."""
