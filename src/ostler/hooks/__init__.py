"""Runs the user's hook programs around tool calls and turns."""
