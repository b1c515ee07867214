"""What a run is given to do: graphs, plans, goals and the values that steps hand on."""
