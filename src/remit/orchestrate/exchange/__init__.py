"""What a model is shown, how its answer is read, and sessions of several exchanges."""
