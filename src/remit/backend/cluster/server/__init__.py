"""Connections to the servers, and what is written to and read from JetStream on one."""
