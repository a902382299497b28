"""Slash commands, built-in and custom, shared by all frontends."""
