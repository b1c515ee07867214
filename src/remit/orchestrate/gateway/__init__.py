"""Speak the agentic wire: tasks, messages and signals come in, and what becomes of loops is told."""
