"""Runs on NATS JetStream: any number of processes on any number of machines share them. docs/cluster.md says how."""
