"""Runs turns with a backend, sends every tool call through the tool host and publishes the events."""
