"""The guard: the protocol by which agents that run elsewhere have their calls judged, each conversation a run of ours."""
