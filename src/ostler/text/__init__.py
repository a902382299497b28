"""Leaf helpers over text, one duty per file; nothing here knows of agents, tools or terminals."""
