"""What a run is started with: kits, manifests, goals and graphs from files."""
